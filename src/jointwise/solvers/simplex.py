"""Weights on the simplex: the 1-D fit of given atoms, and a step that stays on the simplex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointwise._typing import FloatArray
from jointwise.solvers.accelerated import LEAST_MASS, extrapolate


def simplex_weights(
    masses: FloatArray, counts: FloatArray, *, prior: float = 0.0, tol: float = 1e-4, max_steps: int = 500
) -> FloatArray:
    r"""Return the maximum-likelihood weights of a mixture of given atoms, from counts on bins.

    Maximises :math:`\frac1n \sum_i c_i \log \sum_l \bar D_{il} w_l` over the simplex by EM with a squared
    extrapolation, which is kept only where it does not lower the likelihood. The problem is concave. The largest entry
    of the gradient minus its mean under the weights bounds the distance to the optimum (in mean log-likelihood), and
    this bound is the stopping rule. The true distance is usually far smaller.

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
        Number of rows alpha, spread evenly over the atoms, that count as seen before.
    tol : float
        The mean log-likelihood is within `tol` of the largest possible, in nats, unless the steps run out.
    max_steps : int
        Largest number of steps, of two EM updates each.

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
    """Weights of K mixtures, their log-posteriors, and the weights after an EM update."""

    weights: FloatArray  # (L, K)
    log_posterior: FloatArray  # (K,), per row
    update: FloatArray  # (L, K)
    gap: FloatArray  # (K,)


def _updated(masses: FloatArray, shares: FloatArray, prior: FloatArray, weights: FloatArray) -> _WeightState:
    """Return the state of K mixtures after an EM update; ``prior`` is the prior count of an atom per row, (K,)."""
    model = np.maximum(masses @ weights, LEAST_MASS)
    pull = masses.T @ (shares / model)
    update = weights * pull + prior
    floored = np.maximum(weights, LEAST_MASS)
    log_posterior = np.einsum("ik,ik->k", shares, np.log(model))
    log_posterior += prior * np.log(floored).sum(axis=0)
    total = update.sum(axis=0)
    return _WeightState(weights, log_posterior, update / total, (pull + prior / floored).max(axis=0) - total)


def _weight_step(masses: FloatArray, shares: FloatArray, prior: FloatArray, state: _WeightState) -> _WeightState:
    """Extrapolate through two updates; where that is worse than the first update, take the first."""
    plain = _updated(masses, shares, prior, state.update)
    leap = extrapolate(state.weights, state.update, plain.update)
    leaped = _updated(masses, shares, prior, leap / leap.sum(axis=0))
    better = leaped.log_posterior >= plain.log_posterior
    return _WeightState(*(np.where(better, new, old) for new, old in zip(leaped, plain, strict=True)))


def mean_log_likelihood(masses: FloatArray, counts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean over rows of the log mass of their bin; minus infinity if a bin with rows has no mass.

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


def exponentiated_step(logs: FloatArray, change: FloatArray) -> FloatArray:
    """Return columns proportional to exp(logs - change), each summing to one.

    Parameters
    ----------
    logs : array of shape (L, F)
        Logarithms of the columns before the step.
    change : array of shape (L, F)
        Rate times gradient.
    """
    moved = logs - change
    moved -= moved.max(axis=0)
    columns: FloatArray = np.exp(moved)
    columns /= columns.sum(axis=0)
    return columns
