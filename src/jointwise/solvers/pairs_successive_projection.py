"""Stage (ii): factors to start from, by successive projection on the stacked pair coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls

from jointwise.exceptions import InputError, RankError
from jointwise.solvers.base import Solution, Status
from jointwise.solvers.factors import Factors
from jointwise.solvers.pairs_problem import Pair, PairwiseProblem
from jointwise.solvers.starts import random_start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jointwise._typing import FloatArray, IntArray

# Squared residuals below this share of the largest are rounding: no further column is independent.
_NEGLIGIBLE = 1e-12
# Residuals that agree to this relative precision count as tied.
_TIE = 1e-6
# Share of the margin coefficients mixed into every column, and of uniform weights into the weights: later updates are
# multiplicative and could not leave zero.
_MIXED_IN = 0.02

Groups = tuple[tuple[int, ...], tuple[int, ...]]


def successive_projection(X: FloatArray, n_components: int) -> IntArray:
    """Choose columns of a non-negative matrix whose cone holds the others as nearly as possible.

    Columns are scaled to sum to one. The column of largest norm is chosen and projected out of all others, and so on.
    Columns that are all zero are never chosen. Ties go to the column with the larger norm before scaling, which has
    the least noise, then to the first.

    Parameters
    ----------
    X : array of shape (m, n)
        Non-negative entries.
    n_components : int
        Number of columns to choose.

    Returns
    -------
    array of at most `n_components` column numbers, in the order of choice
        Fewer if the rest of every column is negligible.

    Examples
    --------
    >>> import numpy as np
    >>> corners = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> successive_projection(np.hstack([corners.mean(axis=1, keepdims=True), 2 * corners]), 2)
    array([1, 2])
    """
    norms = np.linalg.norm(X, axis=0)
    sums = X.sum(axis=0)
    residual = X / np.where(sums > 0, sums, 1.0)
    lengths = np.einsum("ij,ij->j", residual, residual)
    negligible = _NEGLIGIBLE * lengths.max(initial=0.0)
    chosen: list[int] = []
    for _ in range(min(n_components, *X.shape)):
        longest = lengths.max(initial=0.0)
        if longest <= negligible:
            break
        tied = lengths >= (1 - _TIE) * longest
        best = int(np.argmax(np.where(tied, norms, -1.0)))
        chosen.append(best)
        direction = residual[:, best] / np.sqrt(lengths[best])
        residual -= np.outer(direction, direction @ residual)
        lengths = np.einsum("ij,ij->j", residual, residual)
        lengths[chosen] = 0.0
    return np.array(chosen, dtype=np.int64)


def nonnegative_least_squares(W: FloatArray, X: FloatArray) -> FloatArray:
    """Return the H >= 0 that minimises ||X - W H'||_F, exactly, column by column of X.

    Parameters
    ----------
    W : array of shape (m, F)
    X : array of shape (m, n)

    Returns
    -------
    array of shape (n, F)

    Examples
    --------
    >>> import numpy as np
    >>> nonnegative_least_squares(np.eye(2), np.array([[1.0], [-1.0]]))
    array([[1., 0.]])
    """
    scales = np.linalg.norm(W, axis=0)
    scales[scales == 0] = 1.0
    # the triangular factor gives the same problem with F rows instead of m
    q, r = np.linalg.qr(W / scales)
    size = np.linalg.norm(X, axis=0)
    targets = q.T @ (X / np.where(size > 0, size, 1.0))
    solved = np.array([nnls(r, target, maxiter=100 * r.shape[1])[0] for target in targets.T])
    return np.asarray(solved.reshape(X.shape[1], -1) * size[:, None] / scales)


def split_factors(
    problem: PairwiseProblem,
    pair_coefficients: Mapping[Pair, FloatArray],
    n_components: int,
    groups: Groups,
    rng: np.random.Generator,
) -> Factors:
    """Return the factors read off one split of the variables into two groups.

    The pair coefficients are stacked into Ttilde, with the atoms of the first group as rows and those of the second as
    columns. W is a choice of its columns by `successive_projection`, H the non-negative least squares fit
    Ttilde ~ W H'. Row blocks of W and H are the B_n up to the scales of columns. The scales of W and of H, averaged
    over blocks (they agree but for noise), multiply to the weights.

    A block without mass in a component takes the coefficients of its margin, and a pair never observed is taken as
    independent. If there are fewer independent columns than components, the rest are drawn around independence
    (`random_start`).

    If every component has a value of its own in the second group, which no other component takes (separability), exact
    pair masses give the joint back exactly.

    Parameters
    ----------
    problem : PairwiseProblem
    pair_coefficients : mapping from (j, k), j < k, to arrays of shape (L_j, L_k)
        T_jk, from `MirrorDescentPairs`.
    n_components : int
        Number of components F.
    groups : two tuples of variable numbers
        The variables of rows and of columns.
    rng : numpy.random.Generator
        For components beyond the independent columns, otherwise unused.
    """
    if not all(groups) or sorted(groups[0] + groups[1]) != list(range(problem.n_variables)):
        raise InputError(
            f"groups must divide the variables 0 to {problem.n_variables - 1} between two groups, neither of them "
            f"empty; got {groups}."
        )
    margins = problem.margin_coefficients
    X = np.block([[_block(pair_coefficients, margins, j, k) for k in groups[1]] for j in groups[0]])
    W = X[:, successive_projection(X, n_components)]
    H = nonnegative_least_squares(W, X)
    coefficients: list[FloatArray] = [np.empty(0)] * problem.n_variables
    scales = []
    for group, factor in zip(groups, (W, H), strict=True):
        parts = np.split(factor, np.cumsum([problem.sizes[n] for n in group])[:-1])
        scales.append(np.mean([part.sum(axis=0) for part in parts], axis=0))
        for n, part in zip(group, parts, strict=True):
            coefficients[n] = _normalised(part, margins[n])
    weights = scales[0] * scales[1]
    return _filled(problem, Factors(weights / weights.sum(), tuple(coefficients)), n_components, rng)


def split_starts(
    problem: PairwiseProblem,
    pair_coefficients: Mapping[Pair, FloatArray],
    n_components: int,
    *,
    n_splits: int = 8,
    rng: np.random.Generator,
) -> Solution[Factors]:
    """Return the start of lowest squared error among several splits; see `split_factors`.

    Every split is as even in atoms as the sizes allow; splits that repeat are tried once. Into each, 2% of the margins'
    coefficients and of uniform weights are mixed, so that multiplicative updates can move everything.

    Parameters
    ----------
    problem, pair_coefficients, n_components, rng
        As those of `split_factors`.
    n_splits : int
        Number of splits to draw.

    Returns
    -------
    Solution
        Its history is the lowest squared error so far, split by split.

    Raises
    ------
    RankError
        If no split has `n_components` atoms or more on both sides.
    """
    check_n_components(problem.sizes, n_components)
    if n_splits < 1:
        raise InputError(f"n_splits must be one or more; got {n_splits}.")
    splits = even_splits(problem.sizes, n_splits, rng)
    found = [split_factors(problem, pair_coefficients, n_components, groups, rng) for groups in splits]
    return best_split(problem, [_mixed(factors, problem.margin_coefficients) for factors in found])


def best_split(problem: PairwiseProblem, found: Sequence[Factors]) -> Solution[Factors]:
    """Return the factors of lowest squared error among those of several splits."""
    errors = np.array([problem.squared_error(factors) for factors in found])
    history = np.minimum.accumulate(errors)
    history.setflags(write=False)
    message = f"The best of {len(found)} splits was kept."
    return Solution(found[int(np.argmin(errors))], Status.CONVERGED, message, history, len(found) - 1)


def even_splits(sizes: Sequence[int], n_splits: int, rng: np.random.Generator) -> list[Groups]:
    """Return at most `n_splits` different splits, each as even in atoms as the sizes allow."""
    return list(dict.fromkeys(_even_split(sizes, rng.permutation(len(sizes))) for _ in range(n_splits)))


def most_split_components(sizes: Sequence[int]) -> int:
    """Return the most components that some split of variables with these numbers of atoms can hold.

    Examples
    --------
    >>> most_split_components([3, 10, 10])
    10
    """
    first, second = _even_split(sizes, range(len(sizes)))
    return min(sum(sizes[n] for n in first), sum(sizes[n] for n in second))


def check_n_components(sizes: Sequence[int], n_components: int) -> None:
    """Raise unless some split can hold this many components."""
    if n_components < 1:
        raise InputError(f"n_components must be one or more; got {n_components}.")
    largest = most_split_components(sizes)
    if n_components > largest:
        raise RankError(
            f"{n_components} components are more than successive projection can find: variables with "
            f"{', '.join(map(str, sizes))} atoms hold at most {largest}. Give the dictionaries more atoms, "
            'ask for fewer components, or use method="pairs", which has no such limit.'
        )


def _even_split(sizes: Sequence[int], order: Sequence[int] | IntArray) -> Groups:
    """Return two groups with sums of sizes as equal as possible; `order` decides between equal splits."""
    half = sum(sizes) // 2
    reached: dict[int, tuple[int, ...]] = {0: ()}
    for n in map(int, order):
        grown = {total + sizes[n]: (*group, n) for total, group in reached.items() if total + sizes[n] <= half}
        reached = grown | reached
    first = reached[max(reached)]
    second = tuple(int(n) for n in order if int(n) not in first)
    return first, second


def _block(pair_coefficients: Mapping[Pair, FloatArray], margins: tuple[FloatArray, ...], j: int, k: int) -> FloatArray:
    if (j, k) in pair_coefficients:
        return pair_coefficients[j, k]
    if (k, j) in pair_coefficients:
        return pair_coefficients[k, j].T
    return np.outer(margins[j], margins[k])


def _normalised(columns: FloatArray, fallback: FloatArray) -> FloatArray:
    """Scale columns to sum to one; a column without mass becomes the fallback."""
    sums = columns.sum(axis=0)
    return np.where(sums > 0, columns / np.where(sums > 0, sums, 1.0), fallback[:, None])


def _filled(problem: PairwiseProblem, found: Factors, n_components: int, rng: np.random.Generator) -> Factors:
    missing = n_components - found.n_components
    if not missing:
        return found
    more = random_start(problem, missing, rng)
    weights = np.concatenate([found.weights * (n_components - missing), more.weights * missing]) / n_components
    pairs = zip(found.coefficients, more.coefficients, strict=True)
    return Factors(weights, tuple(np.hstack(pair) for pair in pairs))


def _mixed(factors: Factors, margins: tuple[FloatArray, ...]) -> Factors:
    """Mix a little of the margins and of uniform weights into the factors."""
    weights = (1 - _MIXED_IN) * factors.weights + _MIXED_IN / factors.n_components
    coefficients = []
    for b, margin in zip(factors.coefficients, margins, strict=True):
        centre = 0.9 * margin + 0.1 / margin.size
        coefficients.append((1 - _MIXED_IN) * b + _MIXED_IN * centre[:, None])
    return Factors(weights, tuple(coefficients))
