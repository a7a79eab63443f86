"""Likelihood by expectation-maximisation: weights of a 1-D mixture, and all factors from pair masses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointwise.exceptions import InputError
from jointwise.solvers.base import Solver
from jointwise.solvers.problem import Factors, PairwiseProblem

if TYPE_CHECKING:
    from jointwise._typing import FloatArray

# A model mass below this is taken as this: quotients and logarithms stay finite where masses underflow.
LEAST_MASS = 1e-290
# An extrapolation may shrink a coefficient to this fraction of its plain update, never to zero: from zero a
# multiplicative update could not bring it back.
_LEAST_SHRINK = 0.1
_LONGEST_STRIDE = 1e3


def simplex_weights(masses: FloatArray, counts: FloatArray, *, tol: float = 1e-4, max_steps: int = 500) -> FloatArray:
    r"""Maximum-likelihood weights of a mixture of given atoms, from counts on bins.

    Maximises :math:`\frac1n \sum_i c_i \log \sum_l \bar D_{il} w_l` over the simplex by EM with a squared
    extrapolation, which is kept only where it does not lower the likelihood. The problem is concave, and the
    largest entry of the gradient minus one bounds the distance to the optimum (in mean log-likelihood): that
    is the stopping rule. The true distance is usually far smaller than the bound.

    Parameters
    ----------
    masses : array of shape (I, L)
        Probability of each bin under each atom.
    counts : array of shape (I,) or (I, K)
        Counts or masses of bins, one column for each of K data sets solved side by side. Bins that no atom
        reaches are ignored, and a data set without counts gets uniform weights.
    tol : float
        The mean log-likelihood is within `tol` of the largest possible, in nats, unless steps run out.
    max_steps : int
        At most so many steps, of two EM updates each.

    Returns
    -------
    array of shape (L,) or (L, K)

    Examples
    --------
    >>> import numpy as np
    >>> simplex_weights(np.eye(2), np.array([3.0, 1.0]))
    array([0.75, 0.25])
    """
    counts = np.asarray(counts, dtype=np.float64)
    shares = np.where(masses.sum(axis=1)[:, None] > 0, counts.reshape(len(counts), -1), 0.0)
    totals = shares.sum(axis=0)
    shares /= np.where(totals > 0, totals, 1.0)
    weights = np.full((masses.shape[1], shares.shape[1]), 1.0 / masses.shape[1])
    live = np.flatnonzero(totals > 0)
    shares = shares[:, live]
    state = _updated(masses, shares, weights[:, live])
    for _ in range(max_steps):
        unfinished = state.gap > tol
        if not unfinished.all():
            weights[:, live] = state.weights
            live, shares = live[unfinished], shares[:, unfinished]
            state = _WeightState(*(array[..., unfinished] for array in state))
        if not live.size:
            break
        state = _weight_step(masses, shares, state)
    weights[:, live] = state.weights
    return weights.reshape(-1, *counts.shape[1:])


class _WeightState(NamedTuple):
    """Weights of K mixtures, what they reach, and where an EM update would lead."""

    weights: FloatArray  # (L, K)
    log_likelihood: FloatArray  # (K,), mean over rows
    update: FloatArray  # (L, K)
    gap: FloatArray  # (K,)


def _updated(masses: FloatArray, shares: FloatArray, weights: FloatArray) -> _WeightState:
    model = np.maximum(masses @ weights, LEAST_MASS)
    gradient = masses.T @ (shares / model)
    update = weights * gradient
    log_likelihood = np.einsum("ik,ik->k", shares, np.log(model))
    return _WeightState(weights, log_likelihood, update / update.sum(axis=0), gradient.max(axis=0) - 1.0)


def _weight_step(masses: FloatArray, shares: FloatArray, state: _WeightState) -> _WeightState:
    """Extrapolate through two updates; where that is worse than the first update, take the first update."""
    plain = _updated(masses, shares, state.update)
    leap = _extrapolate(state.weights, state.update, plain.update)
    leaped = _updated(masses, shares, leap / leap.sum(axis=0))
    better = leaped.log_likelihood >= plain.log_likelihood
    return _WeightState(*(np.where(better, new, old) for new, old in zip(leaped, plain, strict=True)))


def _extrapolate(start: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Squared extrapolation (SQUAREM) through a point and its first and second update; the sum is not kept.

    The stride is the quotient of the lengths of the first and second differences, in the local metric of the
    simplex (squares divided by the coefficient), over all but a last axis of independent problems.
    """
    change = first - start
    bend = second - first - change
    metric = 1.0 / np.maximum(second, 1e-12)
    length = np.sqrt(np.sum(metric * change**2, axis=0))
    bend_length = np.sqrt(np.sum(metric * bend**2, axis=0))
    stride = np.clip(length / np.maximum(bend_length, 1e-150), 1.0, _LONGEST_STRIDE)
    return np.asarray(np.maximum(start + 2 * stride * change + stride**2 * bend, _LEAST_SHRINK * second))


def mean_log_likelihood(masses: FloatArray, counts: FloatArray, weights: FloatArray) -> FloatArray:
    """Mean over rows of the log mass of their bin; minus infinity where a bin with rows has no mass.

    Parameters
    ----------
    masses : array of shape (I, L)
    counts : array of shape (I,) or (I, K)
    weights : array of shape (L,) or (L, K)

    Returns
    -------
    array of shape () or (K,)
        Zero for a data set without counts.

    Examples
    --------
    >>> import numpy as np
    >>> float(mean_log_likelihood(np.eye(2), np.array([1, 1]), np.array([0.5, 0.5])).round(4))
    -0.6931
    """
    counts = np.asarray(counts, dtype=np.float64)
    with np.errstate(divide="ignore"):  # the log of a bin without mass is minus infinity, as documented
        logs = np.log(masses @ weights)
    terms = np.multiply(counts, logs, out=np.zeros(counts.shape), where=counts > 0)
    totals = counts.sum(axis=0)
    return np.asarray(terms.sum(axis=0) / np.where(totals > 0, totals, 1.0))


def marginal_coefficients(problem: PairwiseProblem, *, tol: float = 1e-3) -> tuple[FloatArray, ...]:
    """Coefficients (L_n,) of the 1-D maximum-likelihood fit of each variable's margin."""
    return tuple(
        simplex_weights(d, margin, tol=tol) for d, margin in zip(problem.masses, problem.settled_margins, strict=True)
    )


def random_start(
    problem: PairwiseProblem, rank: int, rng: np.random.Generator, *, concentration: float = 1.0
) -> Factors:
    """Random factors around independence: 1-D coefficients times gamma noise, normalised.

    Parameters
    ----------
    problem : PairwiseProblem
    rank : int
        Number of components F.
    rng : numpy.random.Generator
    concentration : float
        Shape of the gamma noise; the smaller, the more the components differ.
    """
    if rank < 1:
        raise InputError(f"rank must be one or more, not {rank}.")
    coefficients = []
    for marginal in marginal_coefficients(problem):
        # A share of uniform coefficients keeps atoms alive that the margin alone does not need.
        centre = 0.95 * marginal[:, None] + 0.05 / marginal.size
        noisy = centre * (rng.gamma(concentration, size=(marginal.size, rank)) + 1e-3)
        coefficients.append(noisy / noisy.sum(axis=0))
    return Factors(np.full(rank, 1.0 / rank), tuple(coefficients))


class _EMState(NamedTuple):
    point: FloatArray  # weights in the first row, then all B_n stacked: (1 + sum L, F)
    objective: float
    update: FloatArray  # the point after one EM update, found along with the objective
    decreases: tuple[float, float]  # by the last step and the one before


@dataclass(frozen=True, eq=False)
class PairwiseEM(Solver[PairwiseProblem, _EMState, Factors]):
    r"""Composite pairwise likelihood by EM on all factors at once.

    Minimises :math:`\sum_{j<k} s_{jk} \mathrm{KL}(\hat Z_{jk} \,\|\, A_j \Lambda A_k^\top)` with the shares
    s scaled to sum one: the negative mean pairwise log-likelihood up to a constant. With the latent triple
    (component, atom of j, atom of k) of every pair, an EM update is

    .. math:: V_n = \sum_k s_{nk} (\hat Z_{nk} / A_n \Lambda A_k^\top) A_k, \quad
              B_n \leftarrow B_n \circ \bar D_n^\top V_n, \quad
              \lambda \leftarrow \lambda \circ \textstyle\sum_n (A_n \circ V_n)^\top 1,

    each normalised. It needs no learning rate and never raises the objective. A step is an update followed
    by a squared extrapolation; where that is worse than the plain update, the plain update is taken.

    Parameters
    ----------
    start : Factors
        Where to start; zeros in it stay zero.
    tol : float
        Stop when two steps in a row each lower the objective (in nats) by no more than this.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.solvers import solve
    >>> coin = np.eye(2)
    >>> problem = PairwiseProblem((coin, coin), {(0, 1): np.diag([0.3, 0.7])})
    >>> start = random_start(problem, 2, np.random.default_rng(0))
    >>> solution = solve(PairwiseEM(start, tol=1e-9), problem, max_steps=200)
    >>> solution.converged, bool(solution.history[-1] < 1e-6)
    (True, True)
    """

    start: Factors
    tol: float = 1e-5

    def init(self, problem: PairwiseProblem) -> _EMState:
        """Return the start with its objective."""
        problem.check_factors(self.start)
        point = np.vstack([self.start.weights, *self.start.coefficients])
        return _EMState(point, *_em_update(problem, point), (np.inf, np.inf))

    def step(self, problem: PairwiseProblem, state: _EMState) -> _EMState:
        """Return the state after an extrapolated update."""
        point = state.update
        objective, update = _em_update(problem, point)
        leap = _leap(problem, state.point, point, update)
        leap_objective, leap_update = _em_update(problem, leap)
        if leap_objective <= objective:
            point, objective, update = leap, leap_objective, leap_update
        return _EMState(point, objective, update, (state.objective - objective, state.decreases[0]))

    def objective(self, state: _EMState) -> float:
        """Return the mean pairwise KL divergence."""
        return state.objective

    def is_done(self, state: _EMState) -> bool:
        """Return whether each of the last two steps lowered the objective by no more than `tol`."""
        return max(state.decreases) <= self.tol

    def value(self, state: _EMState) -> Factors:
        """Return the factors."""
        cuts = np.cumsum([b.shape[0] for b in self.start.coefficients])[:-1]
        return Factors(state.point[0], tuple(np.split(state.point[1:], cuts)))


def pairwise_divergence(problem: PairwiseProblem, factors: Factors) -> float:
    """Mean over pairs, by share, of KL(Zhat_jk || model): what `PairwiseEM` minimises."""
    problem.check_factors(factors)
    return _em_update(problem, np.vstack([factors.weights, *factors.coefficients]))[0]


def _em_update(problem: PairwiseProblem, point: FloatArray) -> tuple[float, FloatArray]:
    """Return the objective at a point and the point after one EM update.

    Pair by pair: the products are then small enough for the cache and for one thread.
    """
    weights = point[0]
    conditionals = [d @ point[1:][rows] for d, rows in zip(problem.masses, problem.slices, strict=True)]
    weighted = [a * weights for a in conditionals]
    gathered = [np.zeros_like(a) for a in conditionals]  # V_n
    objective = problem.negative_entropy
    for (j, k), z in problem.scaled_pairs.items():
        model = weighted[j] @ conditionals[k].T
        np.maximum(model, LEAST_MASS, out=model)
        ratio = z / model
        objective -= float(np.vdot(z, np.log(model, out=model)))
        gathered[j] += ratio @ conditionals[k]
        gathered[k] += ratio.T @ conditionals[j]
    update = point.copy()
    update[0] *= sum(np.einsum("ir,ir->r", a, v) for a, v in zip(conditionals, gathered, strict=True))
    for d, v, rows in zip(problem.masses, gathered, problem.slices, strict=True):
        update[1:][rows] *= d.T @ v
    return objective, _normalised(problem, update, point)


def _leap(problem: PairwiseProblem, start: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    leap = _extrapolate(start.reshape(-1, 1), first.reshape(-1, 1), second.reshape(-1, 1))
    return _normalised(problem, leap.reshape(start.shape), second)


def _normalised(problem: PairwiseProblem, point: FloatArray, fallback: FloatArray) -> FloatArray:
    """Scale weights and columns to sum one, in place; what is empty becomes what it is in `fallback`."""
    if not point[0].any():
        point[0] = fallback[0]
    point[0] /= point[0].sum()
    for rows in problem.slices:
        block = point[1:][rows]
        sums = block.sum(axis=0)
        empty = sums <= 0
        block[:, empty] = fallback[1:][rows][:, empty]
        block /= np.where(empty, 1.0, sums)
    return point
