"""Likelihood by expectation-maximisation: weights of a 1-D mixture, and all factors from pair masses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointwise.exceptions import InputError
from jointwise.solvers.accelerated import LEAST_MASS, AcceleratedEM, EMState, extrapolate, normalised
from jointwise.solvers.problem import Factors, PairwiseProblem

if TYPE_CHECKING:
    from jointwise._typing import FloatArray


def simplex_weights(
    masses: FloatArray, counts: FloatArray, *, prior: float = 0.0, tol: float = 1e-4, max_steps: int = 500
) -> FloatArray:
    r"""Maximum-likelihood weights of a mixture of given atoms, from counts on bins.

    Maximises :math:`\frac1n \sum_i c_i \log \sum_l \bar D_{il} w_l` over the simplex by EM with a squared
    extrapolation, which is kept only where it does not lower the likelihood. The problem is concave, and the
    largest entry of the gradient minus its mean under the weights bounds the distance to the optimum (in mean
    log-likelihood): that is the stopping rule. The true distance is usually far smaller than the bound.

    A prior adds :math:`\frac{\alpha}{nL} \sum_l \log w_l`. Without one the optimum puts all weight on few atoms,
    which follow the noise of the counts.

    Parameters
    ----------
    masses : array of shape (I, L)
        Probability of each bin under each atom.
    counts : array of shape (I,) or (I, K)
        Counts or masses of bins, one column for each of K data sets solved side by side. Bins that no atom
        reaches are ignored, and a data set without counts gets uniform weights.
    prior : float
        Number of rows alpha, spread evenly over the atoms, that are taken to have been seen before.
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
    each = prior / len(weights) / totals[live]
    state = _updated(masses, shares, each, weights[:, live])
    for _ in range(max_steps):
        unfinished = state.gap > tol
        if not unfinished.all():
            weights[:, live] = state.weights
            live, shares, each = live[unfinished], shares[:, unfinished], each[unfinished]
            state = _WeightState(*(array[..., unfinished] for array in state))
        if not live.size:
            break
        state = _weight_step(masses, shares, each, state)
    weights[:, live] = state.weights
    return weights.reshape(-1, *counts.shape[1:])


class _WeightState(NamedTuple):
    """Weights of K mixtures, what they reach, and where an EM update would lead."""

    weights: FloatArray  # (L, K)
    log_posterior: FloatArray  # (K,), per row
    update: FloatArray  # (L, K)
    gap: FloatArray  # (K,)


def _updated(masses: FloatArray, shares: FloatArray, prior: FloatArray, weights: FloatArray) -> _WeightState:
    """One EM update of K mixtures; ``prior`` is what each atom was seen before, per row; shape (K,)."""
    model = np.maximum(masses @ weights, LEAST_MASS)
    pull = masses.T @ (shares / model)
    update = weights * pull + prior
    floored = np.maximum(weights, LEAST_MASS)
    log_posterior = np.einsum("ik,ik->k", shares, np.log(model))
    log_posterior += prior * np.log(floored).sum(axis=0)
    total = update.sum(axis=0)
    return _WeightState(weights, log_posterior, update / total, (pull + prior / floored).max(axis=0) - total)


def _weight_step(masses: FloatArray, shares: FloatArray, prior: FloatArray, state: _WeightState) -> _WeightState:
    """Extrapolate through two updates; where that is worse than the first update, take the first update."""
    plain = _updated(masses, shares, prior, state.update)
    leap = extrapolate(state.weights, state.update, plain.update)
    leaped = _updated(masses, shares, prior, leap / leap.sum(axis=0))
    better = leaped.log_posterior >= plain.log_posterior
    return _WeightState(*(np.where(better, new, old) for new, old in zip(leaped, plain, strict=True)))


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
    """Random factors around the independence of a problem's margins; see `start_around`."""
    return start_around(marginal_coefficients(problem), rank, rng, concentration=concentration)


def start_around(
    margins: Sequence[FloatArray], rank: int, rng: np.random.Generator, *, concentration: float = 1.0
) -> Factors:
    """Random factors around independence: 1-D coefficients times gamma noise, normalised.

    Parameters
    ----------
    margins : sequence of arrays of shape (L_n,)
        Coefficients of the 1-D fit of each variable, as `marginal_coefficients` gives them.
    rank : int
        Number of components F.
    rng : numpy.random.Generator
    concentration : float
        Shape of the gamma noise; the smaller, the more the components differ.
    """
    if rank < 1:
        raise InputError(f"rank must be one or more, not {rank}.")
    coefficients = []
    for margin in margins:
        # A share of uniform coefficients keeps atoms alive that the margin alone does not need.
        centre = 0.95 * margin[:, None] + 0.05 / margin.size
        noisy = centre * (rng.gamma(concentration, size=(margin.size, rank)) + 1e-3)
        coefficients.append(noisy / noisy.sum(axis=0))
    return Factors(np.full(rank, 1.0 / rank), tuple(coefficients))


@dataclass(frozen=True, eq=False)
class PairwiseEM(AcceleratedEM[PairwiseProblem]):
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

    def init(self, problem: PairwiseProblem) -> EMState:
        """Return the start with its objective."""
        problem.check_factors(self.start)
        return super().init(problem)

    def update(self, problem: PairwiseProblem, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean pairwise KL divergence at a point, and the point after one EM update."""
        return _em_update(problem, point)


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
    return objective, normalised(problem.slices, update, point)
