"""The factors of a discrete joint from the masses of integer projections of its variables, by EM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import xlog1py

from jointwise._checks import read_only
from jointwise.exceptions import InputError
from jointwise.solvers.accelerated import LEAST_MASS, AcceleratedEM, normalised
from jointwise.solvers.factors import stacked_slices

if TYPE_CHECKING:
    from jointwise._typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ProjectionProblem:
    r"""Masses of the values of projections :math:`y_m = \sum_n a_{mn} x_n` of states :math:`x_n = 0, \dots, I_n - 1`.

    Parameters
    ----------
    sizes : sequence of N int
        Number of states I_n.
    vectors : array of shape (M, N), integers
        Coefficients a_m in the rows, zero for the variables that are not in a projection.
    masses : array of shape (M, L)
        Mass of each value of each projection, at position y modulo L; rows sum to one. L is at least `cycle`, so that
        no two values of a projection share a position.
    shares : array of shape (M,), optional
        Weight of each projection, such as its number of rows; equal by default.

    Examples
    --------
    >>> coins = ProjectionProblem((2, 2), np.array([[1, 1]]), np.array([[0.25, 0.5, 0.25]]))
    >>> coins.length
    3
    """

    sizes: tuple[int, ...]
    vectors: IntArray
    masses: FloatArray
    shares: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        object.__setattr__(self, "vectors", read_only(self.vectors, np.int64))
        object.__setattr__(self, "masses", read_only(self.masses, np.float64))
        n_projections = len(self.vectors)
        if self.vectors.shape != (n_projections, len(self.sizes)) or not n_projections:
            raise InputError(
                f"`vectors` must have a row for each projection and a column for each of the {len(self.sizes)} "
                f"variables; got shape {self.vectors.shape}."
            )
        if not self.vectors.any(axis=1).all():
            raise InputError("`vectors` must have a coefficient that is not zero in each row.")
        least = cycle(self.sizes, self.vectors)
        if self.masses.shape != (n_projections, self.length) or self.length < least:
            raise InputError(
                f"`masses` must have a row for each of the {n_projections} projections and {least} columns or more; "
                f"got shape {self.masses.shape}."
            )
        if (self.masses < 0).any() or not np.allclose(self.masses.sum(axis=1), 1.0):
            raise InputError("`masses` of each projection must not be negative and must sum to one.")
        if self.masses[~self.attainable].any():
            raise InputError("`masses` must be zero at values that a projection cannot take.")

    @property
    def length(self) -> int:
        """L, the number of positions."""
        return int(self.masses.shape[-1])

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Rows of each variable in arrays that stack the states of all variables."""
        return stacked_slices(self.sizes)

    @cached_property
    def attainable(self) -> BoolArray:
        """Which values a projection can take; shape (M, L)."""
        states = _padded([np.ones((size, 1)) for size in self.sizes])
        return np.asarray(_chain(self.terms, states, _start(self, np.ones(1)))[-1][..., 0] > 0)

    @property
    def n_equations(self) -> int:
        """Number of equations: one less than its attainable values, for each projection."""
        return int(np.sum(self.attainable) - len(self.vectors))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The terms of all sums y_m: the first term of each, then the second, and so on."""
        order = np.argsort(self.vectors == 0, axis=1, kind="stable")  # variables in the projection come first
        n_terms = int((self.vectors != 0).sum(axis=1).max())
        position = np.arange(self.length)
        start = self.length * np.arange(len(self.vectors))[:, None]
        terms = []
        for variables in order[:, :n_terms].T:
            step = np.take_along_axis(self.vectors, variables[:, None], axis=1)
            states = np.arange(max(self.sizes))[:, None, None]
            before = start + (position - step * states) % self.length
            after = start + (position + step * states) % self.length
            terms.append(Term(variables, step[:, 0] != 0, before, after))
        return tuple(terms)

    @cached_property
    def scaled_shares(self) -> FloatArray:
        """Shares that sum to one; shape (M,)."""
        shares = np.ones(len(self.vectors)) if self.shares is None else np.asarray(self.shares, dtype=np.float64)
        return np.asarray(shares / shares.sum())


class Term(NamedTuple):
    """The s-th term a_mn x_n of every projection m: its variable, and the positions its states lead to."""

    variables: IntArray  # n, (M,)
    present: BoolArray  # whether the projection has an s-th term, (M,)
    before: IntArray  # flat position of y - a_mn i modulo L, (I, M, L)
    after: IntArray  # flat position of y + a_mn i modulo L, (I, M, L)


def cycle(sizes: Sequence[int], vectors: IntArray) -> int:
    """Return the least length L at which no two values of a projection are equal modulo L.

    >>> cycle((5, 5), np.array([[1, -3]]))
    17
    """
    return int(1 + (np.abs(vectors) @ (np.asarray(sizes) - 1)).max())


def project(joint: FloatArray, vectors: IntArray) -> FloatArray:
    """Return the exact masses of the projections of a joint; shape (M, L) with L from `cycle`.

    Parameters
    ----------
    joint : array of shape (I_1, ..., I_N)
        Masses of all cells.
    vectors : array of shape (M, N), integers

    Examples
    --------
    >>> project(np.full((2, 2), 0.25), np.array([[1, 1], [1, 2]]))
    array([[0.25, 0.5 , 0.25, 0.  ],
           [0.25, 0.25, 0.25, 0.25]])
    """
    length = cycle(joint.shape, vectors)
    states = np.indices(joint.shape).reshape(joint.ndim, -1)
    values = (vectors @ states) % length
    return np.stack([np.bincount(y, joint.ravel(), minlength=length) for y in values])


@dataclass(frozen=True, eq=False)
class ProjectionEM(AcceleratedEM[ProjectionProblem]):
    r"""EM on all factors at once for the composite likelihood of projections.

    Minimises :math:`\sum_m s_m \mathrm{KL}(h_m \,\|\, p_m)` with the shares s scaled to sum one, where the model of a
    projection is a mixture of convolutions,

    .. math:: p_m(y) = \sum_r \lambda_r \sum_{x : \langle a_m, x \rangle = y} \prod_n A_n[x_n, r].

    The latent values are the component and the states of all variables of a projection. An EM update multiplies each
    factor by its share of the observed masses:

    .. math:: A_n[i, r] \leftarrow A_n[i, r] \sum_m s_m \sum_y \frac{h_m(y)}{p_m(y)} \, \lambda_r \,
              p_{m \setminus n}(y - a_{mn} i \mid r), \quad
              \lambda_r \leftarrow \lambda_r \sum_m s_m \sum_y \frac{h_m(y)}{p_m(y)} \, p_m(y \mid r),

    normalised. The convolutions :math:`p_{m \setminus n}` without one variable come from a forward and a backward pass
    over the terms of a projection, on the integers modulo L. They add products and subtract nothing, so no digits are
    lost. The objective never rises, and there is no learning rate.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.solvers import Factors, solve
    >>> vectors = np.array([[1, 2]])
    >>> problem = ProjectionProblem((2, 2), vectors, project(np.array([[0.3, 0.0], [0.0, 0.7]]), vectors))
    >>> start = Factors([0.5, 0.5], ([[0.6, 0.4], [0.4, 0.6]], [[0.6, 0.4], [0.4, 0.6]]))
    >>> solve(ProjectionEM(start, tol=1e-9), problem, max_steps=100).value.weights.round(3)
    array([0.3, 0.7])
    """

    def update(self, problem: ProjectionProblem, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean divergence of the projections at a point, and the point after one EM update."""
        factors, forward, model = _forward(problem, point)
        objective = _divergence(problem, model)
        ratio = problem.scaled_shares[:, None] * problem.masses / model
        gathered = _gathered(problem.terms, factors, forward, ratio)
        update = point.copy()
        update[0] = np.einsum("my,myr->r", ratio, forward[-1])
        for n, rows in enumerate(problem.slices):
            update[1:][rows] *= gathered[n, : problem.sizes[n]]
        return objective, normalised(problem.slices, update, point)


def model_masses(problem: ProjectionProblem, point: FloatArray) -> FloatArray:
    """Return the masses (M, L) of the projections at a point: weights in the first row, then all A_n stacked."""
    return _forward(problem, point)[2]


def _forward(problem: ProjectionProblem, point: FloatArray) -> tuple[FloatArray, list[FloatArray], FloatArray]:
    """Return the padded factors, the masses of all partial sums, and the masses (M, L) of the projections."""
    factors = _padded([point[1:][rows] for rows in problem.slices])
    forward = _chain(problem.terms, factors, _start(problem, point[0]))
    return factors, forward, np.maximum(forward[-1].sum(axis=-1), LEAST_MASS)


def divergence(problem: ProjectionProblem, point: FloatArray) -> float:
    """Return the mean over projections, weighted by share, of KL(masses || model) at a point."""
    return _divergence(problem, model_masses(problem, point))


def leave_one_out(problem: ProjectionProblem, point: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Return masses given each component (M, L, F), and for each term those without it, times the weights."""
    factors = _padded([point[1:][rows] for rows in problem.slices])
    whole = _chain(problem.terms, factors, _start(problem, np.ones_like(point[0])))[-1]
    start = _start(problem, point[0])
    others = [[other for other in problem.terms if other is not term] for term in problem.terms]
    return whole, [_chain(rest, factors, start)[-1] for rest in others]


def _divergence(problem: ProjectionProblem, model: FloatArray) -> float:
    """Return the sum of s (h log(h / p) - h + p), whose terms are never negative.

    Written with h / p - 1, so that the terms keep their digits near the optimum, down to about 1e-30.
    """
    excess = (problem.masses - model) / model
    terms = model * (xlog1py(problem.masses / model, excess) - excess)
    return float(np.sum(problem.scaled_shares[:, None] * terms))


def _start(problem: ProjectionProblem, weights: FloatArray) -> FloatArray:
    """Return the masses of empty sums: each component's weight at zero; shape (M, L, F)."""
    start = np.zeros((len(problem.vectors), problem.length, weights.size))
    start[:, 0] = weights
    return start


def _padded(factors: Sequence[FloatArray]) -> FloatArray:
    """Return all factors in one array of shape (N, largest I, F), zero where a variable has fewer states."""
    padded = np.zeros((len(factors), max(map(len, factors)), factors[0].shape[1]))
    for n, factor in enumerate(factors):
        padded[n, : len(factor)] = factor
    return padded


def _chain(terms: Sequence[Term], factors: FloatArray, start: FloatArray) -> list[FloatArray]:
    """Return the masses (M, L, F) of the partial sums of all projections, before the first term and after each."""
    sums = [start]
    for term in terms:
        flat = sums[-1].reshape(-1, start.shape[-1])
        own = factors[term.variables]  # (M, I, F)
        sums.append(sum(own[:, i, None] * flat[before] for i, before in enumerate(term.before)))
    return sums


def _gathered(
    terms: Sequence[Term], factors: FloatArray, forward: Sequence[FloatArray], ratio: FloatArray
) -> FloatArray:
    """Return derivatives of the log-likelihood by the factors, (N, largest I, F), by a backward pass over the terms."""
    total = np.zeros_like(factors)
    adjoint = np.broadcast_to(ratio[..., None], forward[-1].shape)
    for term, partial in zip(reversed(terms), reversed(forward[:-1]), strict=True):
        flat = adjoint.reshape(-1, factors.shape[-1])
        own = factors[term.variables]
        adjoint = np.zeros_like(partial)
        for i, after in enumerate(term.after):
            led = flat[after]
            here = np.einsum("myr,myr,m->mr", led, partial, term.present)
            np.add.at(total[:, i], term.variables, here)
            adjoint += own[:, i, None] * led
    return total
