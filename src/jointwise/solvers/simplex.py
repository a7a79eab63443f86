"""Weights on the simplex: the 1-D fit of given atoms, and a step that stays on the simplex."""

from __future__ import annotations

import numpy as np

from jointwise._typing import FloatArray
from jointwise.engines.atoms import Masses, Places
from jointwise.engines.compiled_margins import weights_of
from jointwise.engines.compiled_parts import locked


def simplex_weights(
    masses: Masses,
    counts: FloatArray,
    *,
    prior: float = 0.0,
    tol: float = 1e-4,
    least_gain: float = -np.inf,
    max_steps: int = 500,
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
    masses : array of shape (I, L), or Places
        Probability of each bin under each atom.
    counts : array of shape (I,) or (I, K)
        Counts or masses of bins, one column for each of K data sets solved side by side. Bins that no atom
        reaches are ignored, and a data set without counts gets uniform weights.
    prior : float
        Number of rows alpha, spread evenly over the atoms, that count as seen before.
    tol : float
        The mean log-likelihood is within `tol` of the largest possible, in nats, unless the steps end before.
    least_gain : float
        Steps end with the first that gains less, in nats.
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
    if isinstance(masses, Places):
        return _shares_of_values(masses, counts, prior)
    shares = np.where(masses.any(axis=1), counts.reshape(len(counts), -1).T, 0.0)
    totals = shares.sum(axis=1)
    weights = np.full((len(shares), masses.shape[1]), 1.0 / masses.shape[1])
    live = np.flatnonzero(totals > 0)
    met = np.flatnonzero(shares.any(axis=0))  # other bins move nothing
    found = np.empty((len(live), masses.shape[1]))
    weights_of(
        locked(masses[met]),
        locked(shares[live][:, met] / totals[live, None]),
        locked(prior / masses.shape[1] / totals[live]),
        float(tol),
        float(least_gain),
        int(max_steps),
        found,
    )
    weights[live] = found
    return np.ascontiguousarray(weights.T).reshape(-1, *counts.shape[1:])


def _shares_of_values(places: Places, counts: FloatArray, prior: float) -> FloatArray:
    """Return the weights of atoms that are single values: their shares of the rows and of the prior."""
    n_bins, n_atoms = places.shape
    sharing = np.bincount(places.bins, minlength=n_bins)[places.bins].reshape(-1, *[1] * (counts.ndim - 1))
    rows = counts[places.bins] / sharing + prior / n_atoms
    totals = rows.sum(axis=0)
    return np.asarray(np.where(totals > 0, rows, 1.0) / np.where(totals > 0, totals, n_atoms))


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
