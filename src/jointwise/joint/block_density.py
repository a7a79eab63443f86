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
# What a cell says: nothing, a number, a spike, or an integer that may be either of the two.
MISSING, NUMBER, SPIKE, EITHER = range(4)


def log_density(block: GaussianBlock, X: FloatArray, top: FloatArray | None = None) -> FloatArray:
    """Log-density of rows given each component, a missing cell integrated out.

    Parameters
    ----------
    block : GaussianBlock
    X : array of shape (n, d)
        Values of the block's columns, NaN where missing.
    top : array of shape (n, D), optional
        Upper ends of the latent coordinates of missing cells: the density is that of the row and of being below them.

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
    for rows, choice, at in ways(block, X[kept]):
        rows = kept[rows]
        out[rows] = np.logaddexp(out[rows], log_choice(block, choice, X[rows], at, None if top is None else top[rows]))
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
    block: GaussianBlock, choice: IntArray, X: FloatArray, at: IntArray, top: FloatArray | None = None
) -> FloatArray:
    """Log-density of rows whose cells all say the same kind of thing, given each component; shape (n, F)."""
    return _spike_terms(block, choice, at) + _number_terms(block, choice == NUMBER, X, top)


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


def _number_terms(block: GaussianBlock, observed: BoolArray, X: FloatArray, top: FloatArray | None) -> FloatArray:
    """Log-density of the observed columns given each component; shape (n, F)."""
    columns = np.flatnonzero(observed)
    z = np.empty((len(X), len(columns)))
    slope = np.zeros((len(X), 1))
    for k, c in enumerate(columns):
        z[:, k] = block.warps[c](X[:, c])
        slope[:, 0] += block.warps[c].log_slope(X[:, c])
    means, covariances = block.means[:, columns], block.covariances[:, columns][:, :, columns]
    out = slope + log_gaussian(z, means, covariances)
    if block.has_window.any() or top is not None:
        high = block.high[None] if top is None else np.minimum(block.high, top[:, None])
        for k, c in enumerate(columns):
            outside = (z[:, k, None] < block.low[:, c]) | (z[:, k, None] > block.high[:, c])
            out[outside] = -np.inf
        out += log_inside(block, columns, z, block.low[None], high)[0] - block.log_inside[0]
    return out


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
    """Coefficients of some coordinates on given ones, (F, given, rest), and their latent covariance, (F, rest, rest)."""
    own = block.latent_covariances[:, rest][:, :, rest]
    if not len(given):
        return np.zeros((block.n_components, 0, len(rest))), own
    cross = block.covariances[:, given][:, :, rest]
    gain = np.linalg.solve(block.covariances[:, given][:, :, given], cross)
    left = own - np.einsum("fkr,fks->frs", gain, cross)
    return gain, 0.5 * (left + left.transpose(0, 2, 1))


def given_means(block: GaussianBlock, given: IntArray, z: FloatArray, rest: IntArray, gain: FloatArray) -> FloatArray:
    """Means of some coordinates in each component, given others in each row; shape (n, F, rest)."""
    offset = z[:, None, :] - block.means[:, given]
    return block.means[:, rest] + np.einsum("nfk,fkr->nfr", offset, gain)


def log_inside(
    block: GaussianBlock, given: IntArray, z: FloatArray, low: FloatArray, high: FloatArray
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

    Returns
    -------
    two arrays of shape (n, F)
    """
    n = max(len(z), len(low), len(high))
    windowed = ((low > -np.inf) | (high < np.inf)).any(axis=(0, 1))
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
        means = given_means(block, given, z[at], rest, gain).reshape(-1, len(rest))
        every = np.broadcast_to(covariances, (len(z[at]), *covariances.shape)).reshape(-1, len(rest), len(rest))
        ends = (end[at].reshape(-1, len(rest)) for end in (low, high))
        found = log_window(means, every, *ends)
        log_p[at], error[at] = (part.reshape(-1, block.n_components) for part in found)
    return log_p, error
