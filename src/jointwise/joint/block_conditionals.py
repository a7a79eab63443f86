"""Laws of one column of a Gaussian block in many rows, given their other cells."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri, softmax

from jointwise._typing import FloatArray, IntArray
from jointwise.joint.block_density import (
    NUMBER,
    NUMBERS,
    given_means,
    log_choice,
    log_density,
    possible,
    regression,
    ways,
)
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.block_tables import at_points
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.intervals import interval_quantile, log_interval
from jointwise.warps import Warp

# Levels and weights of means through a warp: the quantile function at even steps of a standard Gaussian. The error is
# about 1e-3 standard deviations where the warp bends sharply, and less where it does not.
_STEPS = np.linspace(-8.0, 8.0, 65)
# A term with little weight in its row has a quarter of the steps; the error of the row's mean grows by 2%.
_COARSE, LITTLE = _STEPS[::4], 1e-3
# Pieces of the straight lines that stand for the inverse of a warp, and the least standard deviation, in pieces, of a
# Gaussian that is seen through them: the error of its mean is below 1e-4 standard deviations.
N_PIECES, LEAST_PIECES = 2**16, 32.0
# Nodes for means under windows elsewhere, how far they reach in standard deviations, and how often they are placed.
_LEGENDRE, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(64)
REACH, N_PASSES = 9.0, 3
# Terms of a row with no more weight than this do not move its mean, and those without this its cdf.
NEGLIGIBLE, VANISHING = 1e-12, 1e-17
# Numbers of an array that stays in the cache while it is worked on.
CACHED = 2**16
# Standard deviations beyond which no quantile is looked for.
WIDEST = 60.0


class BlockConditionals(Conditionals):
    r"""Law of column ``c`` in each row: a mixture of Gaussians cut to their windows and seen through the warp.

    .. math:: f(x \mid \text{row}) = \sum_t P_t \left( s_t [x \text{ a spike}] + (1 - s_t) \, w'(x) \,
              \frac{N(w(x); m_t, v_t)}{P(\text{window})} \right)

    The terms t are the components, times the ways in which cells with integers are at a spike or not.

    Parameters
    ----------
    block : GaussianBlock
        Without windows on coordinates that a row may miss, other than c.
    c : int
        The column.
    X : array of shape (n, d)
        Rows of the block's columns; column c is ignored.
    log_rest : array of shape (n, F)
        Log-weight of each component, with the likelihood of the cells outside the block.
    """

    def __init__(self, block: GaussianBlock, c: int, X: FloatArray, log_rest: FloatArray) -> None:
        X = _without(X, c)
        fine = possible(block, X)
        X[~fine] = np.nan
        log_rest = np.where(fine[:, None], log_rest, -np.inf)
        self._block, self._c = block, c
        found = list(ways(block, X))
        turn = _turns(found)
        most, n_components = max(turn, default=0) + 1, block.n_components
        shape = (len(X), most, n_components)
        logs, self._mean, self._scale = np.full(shape, -np.inf), np.zeros(shape), np.ones(shape)
        for k, (rows, choice, at) in zip(turn, found, strict=True):
            logs[rows, k] = log_rest[rows] + log_choice(block, choice, X[rows], at)
            self._mean[rows, k], self._scale[rows, k] = _moments(block, c, np.flatnonzero(choice == NUMBER), X[rows])
        flat = (len(X), most * n_components)
        logs, self._mean, self._scale = logs.reshape(flat), self._mean.reshape(flat), self._scale.reshape(flat)
        self._owner = np.tile(np.arange(n_components), most)
        top = logs.max(axis=1, keepdims=True, initial=-np.inf)
        impossible = np.isneginf(top[:, 0])
        with np.errstate(invalid="ignore"):  # -inf - -inf in impossible rows, which have any law
            terms = np.exp(logs - top)
            terms[impossible] = 1.0
            self.log_evidence = np.where(impossible, -np.inf, top[:, 0] + np.log(terms.sum(axis=1)))
        self._weights = terms / terms.sum(axis=1, keepdims=True)
        self._low, self._high = block.low[self._owner, c], block.high[self._owner, c]
        self._log_window = np.broadcast_to(0.0, flat)
        if block.has_window[c]:
            self._log_window = self._by_rows(self._log_mass, np.full(len(X), np.inf))

    def pdf(self, points: FloatArray) -> FloatArray:
        """Density of each row's law at each of the points; shape (n, points)."""
        block, c = self._block, self._c
        z, slope = block.warps[c](points), np.exp(block.warps[c].log_slope(points))
        spikes, numbers = at_points(block, c, points)
        out = self._weights @ spikes[:, self._owner].T
        # integers have the variance of rounding too
        scale = np.sqrt(self._scale**2 + block.rounding[self._owner, c])
        numbers = numbers[:, self._owner] * slope[:, None]
        numbers = numbers * (z[:, None] >= self._low) * (z[:, None] <= self._high)
        size = max(NUMBERS // self._weights.shape[1], 1)
        with np.errstate(under="ignore"):
            for p in range(len(points)):
                if numbers[p].any():
                    for start in range(0, len(out), size):
                        at = slice(start, start + size)
                        y = (z[p] - self._mean[at]) / scale[at]
                        height = np.exp(-0.5 * y**2 - self._log_window[at]) / scale[at] / np.sqrt(2 * np.pi)
                        out[at, p] += (self._weights[at] * height) @ numbers[p]
        return np.asarray(out)

    def cdf(self, x: FloatArray) -> FloatArray:
        """P(X <= x[i]) in each row i; shape (n,)."""
        return self.cdf_in(np.arange(len(x)), x)

    def cdf_in(self, rows: IntArray, x: FloatArray) -> FloatArray:
        """P(X <= x[k]) in row rows[k]; shape (len(rows),)."""
        block, c = self._block, self._c
        tops = block.warps[c](np.floor(x) + 0.5 if block.whole[c] else x)
        below = _below(block, c, x) if len(block.spikes[c]) else None
        part, size = (self._cut_cdf, NUMBERS) if block.has_window[c] else (self._free_cdf, CACHED)
        size = max(size // self._few.weights.shape[1], 1)
        out = np.empty(len(x))
        for s in range(0, len(x), size):
            at = slice(s, s + size)
            out[at] = part(rows[at], tops[at], None if below is None else below[at])
        return np.minimum(out, 1.0)

    def _cut_cdf(self, rows: IntArray, tops: FloatArray, below: FloatArray | None) -> FloatArray:
        mass = np.exp(self._log_mass(rows, tops) - self._log_window[rows])
        inside = self._block.no_spike[self._c][self._owner] * mass
        if below is not None:
            inside += below[:, self._owner]
        return np.asarray(np.einsum("nt,nt->n", self._weights[rows], inside))

    def _free_cdf(self, rows: IntArray, tops: FloatArray, below: FloatArray | None) -> FloatArray:
        few = self._few
        y = tops[:, None] - few.mean[rows]
        y *= few.rate[rows]
        out = np.einsum("nt,nt->n", few.off_spike[rows], ndtr(y, out=y))
        if below is not None:
            out += np.einsum("nt,nt->n", few.weights[rows], np.take_along_axis(below, few.owner[rows], axis=1))
        return np.asarray(out)

    @cached_property
    def _few(self) -> _Terms:
        """The terms of each row whose weight can be seen in its cdf: of hundreds, a quarter or fewer."""
        weights, no_spike = self._weights, self._block.no_spike[self._c]
        owner = np.broadcast_to(self._owner, weights.shape)
        most = max(int((weights > VANISHING).sum(axis=1).max(initial=0)), 1)
        if 4 * most > 3 * weights.shape[1]:
            return _Terms(weights, self._mean, 1 / self._scale, owner, weights * no_spike[owner])
        order = np.argpartition(-weights, most - 1, axis=1)[:, :most]
        weights, mean, scale, owner = (
            np.take_along_axis(each, order, axis=1) for each in (weights, self._mean, self._scale, owner)
        )
        return _Terms(weights, mean, 1 / scale, owner, weights * no_spike[owner])

    @property
    def whole(self) -> bool:
        """Whether the column holds integers."""
        return self._block.whole[self._c]

    @property
    def jumps(self) -> FloatArray:
        """The spikes."""
        return self._block.spikes[self._c]

    def mean(self) -> FloatArray:
        """Mean in each row; shape (n,)."""
        block, c = self._block, self._c
        rows, terms = np.nonzero(self._weights > NEGLIGIBLE)  # of hundreds of terms, few matter in a row
        size = NUMBERS
        find = self._cut_means if block.has_window[c] else self._free_means
        means = [find(rows[s : s + size], terms[s : s + size]) for s in range(0, len(rows), size)]
        owner = self._owner[terms]
        spikes = block.spikes[c] @ block.spike_weights[c]
        given_term = spikes[owner] + block.no_spike[c][owner] * np.concatenate([np.empty(0), *means])
        weights = self._weights[rows, terms]
        return np.asarray(np.bincount(rows, weights * given_term, len(self._weights)))

    def _free_means(self, rows: IntArray, terms: IntArray) -> FloatArray:
        """Mean of the numbers of a term in a row, for each of some pairs of a row and a term; shape (pairs,)."""
        warp, mean, scale = self._block.warps[self._c], self._mean[rows, terms], self._scale[rows, terms]
        if warp.is_straight:
            return warp.inverse(mean)
        lines, out = _Lines(warp), np.empty(len(mean))
        wide, little = scale > LEAST_PIECES * lines.width, self._weights[rows, terms] < LITTLE
        for inverse, of in ((lines, wide), (warp.inverse, ~wide)):
            for steps, own in ((_COARSE, little & of), (_STEPS, ~little & of)):
                out[own] = _means_through(inverse, mean[own], scale[own], steps)
        return out

    def _cut_means(self, rows: IntArray, terms: IntArray) -> FloatArray:
        """Mean of the numbers of each pair of a row and a term, cut to the term's window; shape (pairs,)."""
        warp = self._block.warps[self._c]
        mean, scale = self._mean[rows, terms], self._scale[rows, terms]
        low, high = self._low[terms], self._high[terms]
        total = np.zeros(len(mean))
        for level, weight in zip(np.minimum(ndtr(_STEPS), 1 - 2.0**-53), _weights(_STEPS), strict=True):
            total += weight * warp.inverse(_cut_quantiles(mean, scale, low, high, level))
        return total

    def bracket(self, q: float) -> tuple[FloatArray, FloatArray]:
        """Numbers between which the q-quantile of each row lies; shapes (n,)."""
        low, high = self._warped_bracket(q)
        low, high = self._block.warps[self._c].inverse(low), self._block.warps[self._c].inverse(high)
        spikes = self._block.spikes[self._c][self._block.spike_weights[self._c].any(axis=1)]
        if len(spikes):
            low, high = np.minimum(low, spikes[0]), np.maximum(high, spikes[-1])
        return (np.floor(low), np.ceil(high)) if self._block.whole[self._c] else (low, high)

    def _warped_bracket(self, q: float) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest q-quantile of the terms of each row, before the warp; infinite if all is at spikes."""
        if self._block.has_window[self._c]:
            ends = self._by_rows(self._quantiles, np.full(len(self._weights), q))
            used = (self._weights > 0) & (self._block.no_spike[self._c][self._owner] > 0)
        else:
            ends, used = self._few.mean + ndtri(q) / self._few.rate, self._few.off_spike > 0
        return np.where(used, ends, np.inf).min(axis=1), np.where(used, ends, -np.inf).max(axis=1)

    def _by_rows(self, function: Callable[[slice, FloatArray], FloatArray], x: FloatArray) -> FloatArray:
        """Values (n, terms) of a function of rows, some at a time."""
        size = max(NUMBERS // self._weights.shape[1], 1)
        parts = [function(slice(s, s + size), x[s : s + size]) for s in range(0, max(len(x), 1), size)]
        return np.concatenate(parts)

    def _log_mass(self, at: IntArray | slice, top: FloatArray) -> FloatArray:
        """Log-probability of the window below ``top`` (rows,) under the Gaussian of each term."""
        high = np.minimum(self._high, top[:, None])
        a, b = (self._low - self._mean[at]) / self._scale[at], (high - self._mean[at]) / self._scale[at]
        width = np.where(np.isfinite(self._low) & np.isfinite(high), (high - self._low), np.inf) / self._scale[at]
        out = np.full(a.shape, -np.inf)
        some = a < b
        out[some] = log_interval(a[some], b[some], width[some])
        return out

    def _quantiles(self, at: slice, q: FloatArray) -> FloatArray:
        """Quantiles of the numbers of each term, before the warp."""
        return _cut_quantiles(self._mean[at], self._scale[at], self._low, self._high, q[:, None])


class _Terms(NamedTuple):
    """Terms of each row: weight, mean, one over the deviation, component, and the weight off spikes; (n, K) each."""

    weights: FloatArray
    mean: FloatArray
    rate: FloatArray
    owner: IntArray
    off_spike: FloatArray


class _Lines:
    """The inverse of a warp as straight lines between points that are evenly spaced, which is faster to evaluate."""

    def __init__(self, warp: Warp) -> None:
        at = np.linspace(warp.w[0], warp.w[-1], N_PIECES + 1)
        x, self.width = warp.inverse(at), float(at[1] - at[0])
        ends = self.width / warp.slopes[[0, -1]]  # beyond the ends by the slope there
        self._rise = np.concatenate([ends[:1], np.diff(x), ends[1:]])
        self._start = np.concatenate([x[:1], x[:-1] - np.arange(N_PIECES) * np.diff(x), x[-1:] - N_PIECES * ends[1:]])
        self._first = warp.w[0]

    def __call__(self, w: FloatArray) -> FloatArray:
        """Return the x of w; shape as ``w``."""
        place = (w - self._first) / self.width
        piece = np.clip(place + 1, 0, N_PIECES + 1).astype(np.intp)
        return np.asarray(self._start[piece] + place * self._rise[piece])


def _means_through(
    inverse: Callable[[FloatArray], FloatArray], mean: FloatArray, scale: FloatArray, steps: FloatArray
) -> FloatArray:
    """Mean of a function of Gaussians, by sums at even steps of a standard one; shape as ``mean``."""
    out, weights = np.zeros(len(mean)), _weights(steps)
    for s in range(0, len(mean), CACHED):
        at = slice(s, s + CACHED)
        for step, weight in zip(steps.tolist(), weights.tolist(), strict=True):
            out[at] += weight * inverse(mean[at] + step * scale[at])
    return out


def _weights(steps: FloatArray) -> FloatArray:
    heights = np.exp(-0.5 * steps**2)
    return np.asarray(heights / heights.sum())


class WindowedConditionals(Conditionals):
    """Law of column ``c`` in each row under windows on coordinates that rows miss: ratios of densities with windows.

    Parameters
    ----------
    block, c, X, log_rest
        As in :class:`BlockConditionals`.
    """

    def __init__(self, block: GaussianBlock, c: int, X: FloatArray, log_rest: FloatArray) -> None:
        X = _without(X, c)
        fine = possible(block, X)
        X[~fine] = np.nan
        log_rest = np.where(fine[:, None], log_rest, -np.inf)
        self._block, self._c, self._X = block, c, X
        logs = log_rest + log_density(block, X)
        impossible = np.isneginf(logs.max(axis=1))
        X[impossible] = np.nan  # any law will do
        self._log_rest = np.where(impossible[:, None], 0.0, log_rest)
        self._logs = self._log_rest + log_density(block, X)
        self._total = np.asarray(logsumexp(self._logs, axis=1))
        self.log_evidence = np.where(impossible, -np.inf, self._total)

    def pdf(self, points: FloatArray) -> FloatArray:
        """Density of each row's law at each of the points; shape (n, points)."""
        out = np.empty((len(self._X), len(points)))
        rows = self._X.copy()
        for p, point in enumerate(points):
            rows[:, self._c] = point
            logs = self._log_rest + log_density(self._block, rows)
            out[:, p] = np.exp(logsumexp(logs, axis=1) - self._total)
        return out

    def cdf(self, x: FloatArray) -> FloatArray:
        """P(X <= x[i]) in each row i; shape (n,)."""
        return self.cdf_in(np.arange(len(x)), x)

    def cdf_in(self, rows: IntArray, x: FloatArray) -> FloatArray:
        """P(X <= x[k]) in row rows[k]; shape (len(rows),)."""
        block, c = self._block, self._c
        top = np.full((len(x), block.n_coordinates), np.inf)
        top[:, c] = block.warps[c](np.floor(x) + 0.5 if block.whole[c] else x)
        total = self._total[rows, None]
        inside = np.exp(self._log_rest[rows] + log_density(block, self._X[rows], top) - total)
        at_spikes = _below(block, c, x) * np.exp(self._logs[rows] - total)
        return np.asarray(np.minimum((at_spikes + block.no_spike[c] * inside).sum(axis=1), 1.0))

    @property
    def whole(self) -> bool:
        """Whether the column holds integers."""
        return self._block.whole[self._c]

    @property
    def jumps(self) -> FloatArray:
        """The spikes."""
        return self._block.spikes[self._c]

    def mean(self) -> FloatArray:
        """Mean in each row; shape (n,)."""
        block, c = self._block, self._c
        posterior = np.exp(self._logs - self._total[:, None])
        # integers of the column itself are roundings of these numbers
        covariances = block.covariances.copy()
        covariances[:, c, c] -= block.rounding[:, c]
        smooth = block.changed(whole=(*block.whole[:c], False, *block.whole[c + 1 :]), covariances=covariances)
        total = np.empty_like(posterior)
        for r in range(block.n_components):
            total[:, r] = _tilted_mean(smooth.take([r]), c, self._X)
        total[posterior == 0] = 0.0
        spikes = block.spikes[c] @ block.spike_weights[c]
        return np.asarray(np.einsum("nr,nr->n", posterior, spikes + block.no_spike[c] * total))

    def bracket(self, q: float) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002  # one bracket holds all quantiles
        """Numbers between which the quantiles of each row lie; shapes (n,)."""
        block, c = self._block, self._c
        reach = WIDEST * np.sqrt(block.covariances[:, c, c])
        low = np.maximum(block.low[:, c], block.means[:, c] - reach).min()
        high = np.minimum(block.high[:, c], block.means[:, c] + reach).max()
        ends = np.concatenate([block.warps[c].inverse(np.array([low, high])), block.spikes[c]])
        return np.full(len(self._X), np.floor(ends.min())), np.full(len(self._X), np.ceil(ends.max()))


def _cut_quantiles(
    mean: FloatArray, scale: FloatArray, low: FloatArray, high: FloatArray, q: FloatArray | float
) -> FloatArray:
    """Quantiles of Gaussians cut to [low, high], an end infinite where there is none; arrays are broadcast."""
    finite = np.isfinite(low) & np.isfinite(high)
    if not (np.isfinite(low) | np.isfinite(high)).any():
        return np.asarray(mean + scale * ndtri(q))
    with np.errstate(invalid="ignore"):
        width = np.where(finite, high - low, np.inf) / scale
    y = interval_quantile((low - mean) / scale, (high - mean) / scale, width, np.asarray(q))[0]
    return np.clip(mean + scale * y, low, high)


def _without(X: FloatArray, c: int) -> FloatArray:
    X = X.copy()
    X[:, c] = np.nan
    return X


def _turns(found: list[tuple[IntArray, IntArray, IntArray]]) -> list[int]:
    """Return which way of its rows each entry is: the first, the second, ..."""
    out: list[int] = []
    for i, (rows, _, _) in enumerate(found):
        out.append(out[-1] + 1 if i and found[i - 1][0] is rows else 0)
    return out


def _moments(block: GaussianBlock, c: int, given: IntArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (n, F) and deviation (F,) of coordinate ``c`` given the numbers of some columns."""
    z = np.stack([block.warps[k](X[:, k]) for k in given], axis=1) if len(given) else np.empty((len(X), 0))
    rest = np.array([c])
    gain, covariance = regression(block, given, rest)
    return given_means(block, given, z, rest, gain)[:, :, 0], np.sqrt(covariance[:, 0, 0])


def _below(block: GaussianBlock, c: int, x: FloatArray) -> FloatArray:
    """Probability of the spikes of column ``c`` that are at most ``x`` given each component; shape (n, F)."""
    ladder = np.concatenate([np.zeros((1, block.n_components)), np.cumsum(block.spike_weights[c], axis=0)])
    return np.asarray(ladder[np.searchsorted(block.spikes[c], x, side="right")])


def _tilted_mean(block: GaussianBlock, c: int, X: FloatArray) -> FloatArray:
    """Mean of column ``c`` in each row of one component, its numbers alone; shape (n,).

    Gauss-Legendre nodes follow the tilted law: its moments from one pass place the nodes of the next.
    """
    mean, scale = np.zeros(len(X)), np.ones(len(X))
    for rows, choice, _ in ways(block, X):
        means, scales = _moments(block, c, np.flatnonzero(choice == NUMBER), X[rows])
        mean[rows], scale[rows] = means[:, 0], scales[0]
    spikes, weights = list(block.spikes), list(block.spike_weights)
    spikes[c], weights[c] = np.empty(0), np.empty((0, 1))
    bare = block.changed(spikes=tuple(spikes), spike_weights=tuple(weights))
    low, high, warp = block.low[0, c], block.high[0, c], block.warps[c]
    for _ in range(N_PASSES):
        mean = np.clip(mean, low, high)
        start, end = np.maximum(low, mean - REACH * scale), np.minimum(high, mean + REACH * scale)
        z = start[:, None] + 0.5 * (end - start)[:, None] * (1 + _LEGENDRE)
        x = warp.inverse(z)
        filled = np.repeat(X, x.shape[1], axis=0)
        filled[:, c] = x.ravel()
        logs = log_density(bare, filled)[:, 0].reshape(x.shape) - warp.log_slope(x)
        share = softmax(np.where(np.isneginf(logs), -1e300, logs), axis=1) * _LEGENDRE_WEIGHTS
        share /= share.sum(axis=1, keepdims=True)
        mean = (share * z).sum(axis=1)
        scale = np.maximum(np.sqrt((share * (z - mean[:, None]) ** 2).sum(axis=1)), 1e-3 * scale)
    return np.asarray((share * x).sum(axis=1))
