"""The density of a Gaussian block at rows with gaps, spikes and integers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.window import log_window

# Numbers of an intermediate array: rows x components x coordinates.
NUMBERS = 2**21
LOG_TAU = float(np.log(2 * np.pi))
# A costly term of a row is left out if its logarithm is this much below another's: a share of 1e-10.
NO_SAY = 23.0
# What a cell says: nothing, a number, a spike, or an integer that may be either of the two.
MISSING, NUMBER, SPIKE, EITHER = range(4)


def log_density(
    block: GaussianBlock, X: FloatArray, top: FloatArray | None = None, log_weights: FloatArray | None = None
) -> FloatArray:
    """Log-density of rows given each component, a missing cell integrated out.

    Parameters
    ----------
    block : GaussianBlock
    X : array of shape (n, d)
        Values of the block's columns, NaN where missing.
    top : array of shape (n, D), optional
        Upper ends of the latent coordinates of missing cells: the density is that of the row and of being below them.
    log_weights : array of shape (n, F), optional
        Log-weights of the components in each row. Given these, components without a say in their row may become -inf.

    Returns
    -------
    array of shape (n, F)
        -inf for a fraction of an integer, for an infinite number, and outside the windows.

    Examples
    --------
    >>> from jointwise.warps import Warp
    >>> block = GaussianBlock((Warp.line(10.0, 2.0),), [[0.0]], [[[1.0]]], ([12.0],), ([[0.5]],), (False,))
    >>> np.exp(log_density(block, np.array([[10.0], [12.0], [np.nan]]))).round(4).ravel().tolist()
    [0.0997, 0.5, 1.0]
    """
    out = np.full((len(X), block.n_components), -np.inf)
    kept = np.flatnonzero(possible(block, X))
    for own, choice, at in ways(block, X[kept]):
        rows = kept[own]
        own_top, weights = (None if each is None else each[rows] for each in (top, log_weights))
        part = log_choice(block, choice, X[rows], at, own_top, weights)
        out[rows] = np.logaddexp(out[rows], part)
    return out


def possible(block: GaussianBlock, X: FloatArray) -> BoolArray:
    """Return which rows hold finite numbers, and whole ones where they must; shape (n,)."""
    fraction = np.array(block.whole) & (np.round(X) != X) & ~np.isnan(X)
    fine: BoolArray = ~(np.isinf(X) | fraction).any(axis=1)
    return fine


def ways(block: GaussianBlock, X: FloatArray) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield rows with the same pattern of cells, what each of their cells says, and the positions of their spikes.

    A row comes several times if cells of it are integers that may be a spike or a number.
    """
    kinds, at = cells(block, X)
    patterns, which = np.unique(kinds, axis=0, return_inverse=True)
    for p, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == p)
        unsure = np.flatnonzero(pattern == EITHER)
        for each in product((SPIKE, NUMBER), repeat=len(unsure)):
            choice = pattern.copy()
            choice[unsure] = each
            yield rows, choice, at[rows]


def log_choice(
    block: GaussianBlock,
    choice: IntArray,
    X: FloatArray,
    at: IntArray,
    top: FloatArray | None = None,
    log_weights: FloatArray | None = None,
) -> FloatArray:
    """Log-density of rows whose cells all say the same kind of thing, given each component; shape (n, F)."""
    out, z = _unbounded(block, choice, X, at)
    columns = np.flatnonzero(choice == NUMBER)
    if block.has_window.any() or top is not None:
        high = block.high[None] if top is None else np.minimum(block.high, top[:, None])
        for k, c in enumerate(columns):
            out[(z[:, k, None] < block.low[:, c]) | (z[:, k, None] > block.high[:, c])] = -np.inf
        out -= block.log_inside[0]
        weight = np.where(out > -np.inf, np.inf, -np.inf) if log_weights is None else out + log_weights
        out += log_inside(block, columns, z, block.low[None], high, weight)[0]
    return out


def cells(block: GaussianBlock, X: FloatArray) -> tuple[IntArray, IntArray]:
    """Return what each cell says, and the position of its spike; both of shape (n, d)."""
    kinds = np.where(np.isnan(X), MISSING, NUMBER)
    at = np.zeros(X.shape, dtype=np.int64)
    for c, spikes in enumerate(block.spikes):
        if len(spikes):
            at[:, c] = np.minimum(np.searchsorted(spikes, X[:, c]), len(spikes) - 1)
            kinds[spikes[at[:, c]] == X[:, c], c] = EITHER if block.whole[c] else SPIKE
    return kinds, at


def _spike_terms(block: GaussianBlock, choice: IntArray, at: IntArray) -> FloatArray:
    """Log-probability of the spikes that the cells are at, or of none; shape (n, F)."""
    out = np.zeros((len(at), block.n_components))
    for c in np.flatnonzero(choice != MISSING):
        weights = block.no_spike[c][None] if choice[c] == NUMBER else block.spike_weights[c][at[:, c]]
        with np.errstate(divide="ignore"):  # log 0 = -inf is meant: an impossible component
            out += np.log(weights)
    return out


def _unbounded(block: GaussianBlock, choice: IntArray, X: FloatArray, at: IntArray) -> tuple[FloatArray, FloatArray]:
    """Log-density of rows given each component without windows, (n, F), and the latent numbers of the rows."""
    columns = np.flatnonzero(choice == NUMBER)
    out = _spike_terms(block, choice, at)
    z = np.empty((len(X), len(columns)))
    for k, c in enumerate(columns):
        z[:, k] = block.warps[c](X[:, c])
        out += block.warps[c].log_slope(X[:, c])[:, None]
    out += log_gaussian(z, block.means[:, columns], block.covariances[:, columns][:, :, columns])
    return out, z


def log_gaussian(z: FloatArray, means: FloatArray, covariances: FloatArray) -> FloatArray:
    r"""Log-density :math:`\log N(z_i; \mu_r, \Sigma_r)` of points (n, k) under F Gaussian laws; shape (n, F).

    With L the Cholesky factor of Sigma, it is the sum of squares of :math:`L^{-1} (z - \mu)`, for all components in one
    product of matrices.
    """
    n_components, k = means.shape
    if not k:
        return np.zeros((len(z), n_components))
    factors = np.linalg.cholesky(covariances)
    inverses = np.linalg.inv(factors)  # (F, k, k)
    constant = -np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1) - 0.5 * k * LOG_TAU
    centre = means.mean(axis=0)  # so that no digits cancel where means are large
    stacked = inverses.reshape(n_components * k, k)
    shift = np.einsum("fij,fj->fi", inverses, means - centre)
    out = np.empty((len(z), n_components))
    size = max(NUMBERS // (n_components * k), 1)
    for start in range(0, len(z), size):
        y = ((z[start : start + size] - centre) @ stacked.T).reshape(-1, n_components, k) - shift
        out[start : start + size] = constant - 0.5 * np.einsum("nfk,nfk->nf", y, y)
    return out


def regression(block: GaussianBlock, given: IntArray, rest: IntArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients of some coordinates on given ones, (F, given, rest); their latent covariances, (F, rest, rest)."""
    own = block.latent_covariances[:, rest][:, :, rest]
    if not len(given):
        return np.zeros((block.n_components, 0, len(rest))), own
    cross = block.covariances[:, given][:, :, rest]
    gain = np.linalg.solve(block.covariances[:, given][:, :, given], cross)
    left = own - np.einsum("fkr,fks->frs", gain, cross)
    return np.asarray(gain), np.asarray(0.5 * (left + left.transpose(0, 2, 1)))


def given_means(block: GaussianBlock, given: IntArray, z: FloatArray, rest: IntArray, gain: FloatArray) -> FloatArray:
    """Means of some coordinates in each component, given others in each row; shape (n, F, rest)."""
    centre = block.means[:, given].mean(axis=0)  # so that no digits cancel where means are large
    offset = block.means[:, rest] - np.einsum("fk,fkr->fr", block.means[:, given] - centre, gain)
    flat = gain.transpose(1, 0, 2).reshape(len(given), offset.size)
    return np.asarray(((z - centre) @ flat).reshape(len(z), *offset.shape) + offset)


def log_inside(
    block: GaussianBlock,
    given: IntArray,
    z: FloatArray,
    low: FloatArray,
    high: FloatArray,
    log_weight: FloatArray | None = None,
    *,
    each: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Log-probability that the other coordinates lie in their windows, given some coordinates; its relative error.

    Parameters
    ----------
    block : GaussianBlock
        Its own windows do not count.
    given : array of shape (k,)
        Positions of the given coordinates.
    z : array of shape (n, k)
        Their values.
    low, high : array of shape (n, F, D), or with ones instead of n and F
        Windows of all coordinates; those of given ones are ignored.
    log_weight : array of shape (n, F), optional
        Log-weights of the entries in each row: -inf for one without a say, whose answer is zero, and inf for one that
        is needed in any case. See :func:`leading_windows`.
    each : bool
        Whether every entry is precise; else their sum in each row, by weight.

    Returns
    -------
    two arrays of shape (n, F)
    """
    n = max(len(z), len(low), len(high))
    windowed = np.asarray((low > -np.inf).any(axis=(0, 1)) | (high < np.inf).any(axis=(0, 1)))
    windowed[given] = False
    rest = np.flatnonzero(windowed)
    shape = (n, block.n_components)
    log_p, error = np.zeros(shape), np.zeros(shape)
    if not len(rest):
        return log_p, error
    gain, covariances = regression(block, given, rest)
    low, high = (np.broadcast_to(end[..., rest], (*shape, len(rest))) for end in (low, high))
    z = np.broadcast_to(z, (n, z.shape[1]))
    size = max(NUMBERS // (block.n_components * len(rest) ** 2), 1)
    for start in range(0, n, size):
        at = slice(start, start + size)
        weight = np.full(log_p[at].shape, np.inf) if log_weight is None else log_weight[at]
        row, r = np.nonzero(weight > -np.inf)
        if row.size:
            means = given_means(block, given, z[at], rest, gain)[row, r]
            windows = means, covariances[r], low[at][row, r], high[at][row, r]
            log_p[at][row, r], error[at][row, r] = leading_windows(*windows, weight[row, r], row, each=each)
    return log_p, error


def leading_windows(
    mean: FloatArray,
    covariance: FloatArray,
    low: FloatArray,
    high: FloatArray,
    log_weight: FloatArray,
    group: IntArray,
    no_say: float = NO_SAY,
    *,
    each: bool,
) -> tuple[FloatArray, FloatArray]:
    """Log-probabilities of windows as terms of sums, and their relative errors; those without a say are -inf.

    A probability of three or more windows is costly. It is at most that of each window alone, so a term whose weight
    times that bound is less than exp(-no_say) of another term of its group is left out.

    Parameters
    ----------
    mean, covariance, low, high
        As in :func:`~jointwise.joint.window.log_window`, for B cases.
    log_weight : array of shape (B,)
        Log-weight of each term; with inf it is always found.
    group : array of shape (B,)
        The sum that each term belongs to: 0, 1, ...
    no_say : float
        How far a term must be below another, in nats, to be left out.
    each : bool
        Whether every term is found to the tolerance of :func:`~jointwise.joint.window.log_window`; else their sums are.
    """
    costly = ((low > -np.inf) | (high < np.inf)).sum(axis=1) > 2
    bound = np.zeros(len(mean))
    for k in range(mean.shape[1]):
        own = slice(k, k + 1)
        alone = log_window(mean[costly, own], covariance[costly, own, own], low[costly, own], high[costly, own])[0]
        bound[costly] = np.minimum(bound[costly], alone)
    log_p, error = np.full(len(mean), -np.inf), np.zeros(len(mean))
    best = np.full(int(group.max(initial=-1)) + 1, -np.inf)

    def find(at: IntArray, log_share: FloatArray | None = None) -> None:
        if not at.size:
            return
        log_p[at], error[at] = log_window(mean[at], covariance[at], low[at], high[at], log_share)
        finite = at[np.isfinite(log_weight[at])]
        np.maximum.at(best, group[finite], log_weight[finite] + log_p[finite])

    find(np.flatnonzero(~costly | (log_weight == np.inf)))
    left = np.flatnonzero(costly & (log_weight < np.inf))
    # the most promising term of each group first
    promise = log_weight[left] + bound[left]
    order = np.lexsort((-promise, group[left]))
    left, promise = left[order], promise[order]
    first = np.concatenate([[True], np.diff(group[left]) > 0])[: len(left)]
    find(left[first])
    rest = left[~first & (promise > best[group[left]] - no_say)]
    # a sum is at least its largest term, and as precise as its terms together
    n_terms = np.bincount(group, minlength=len(best))[group[rest]]
    find(rest, None if each else log_weight[rest] - best[group[rest]] + np.log(n_terms))
    return log_p, error
