"""Events of a Gaussian block: an interval is a window, and spikes split a component in two.

A region of a column holds some of its spikes and some numbers. Given the region, a component becomes a component at
those spikes, in which the latent coordinate is free, and one for each run of numbers, in which the latent coordinate
has a window. A value takes its column out: it is a spike, or the Gaussian is conditioned on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.exceptions import InputError
from jointwise.joint.block_density import LOG_TAU, NUMBERS, leading_windows, log_inside
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.events import Interval, Point, Region

# Most numbers in the covariances of the components that an event leaves (256 MB).
MOST_NUMBERS = 2**25
# Most columns with spikes in a cdf: the number of its terms doubles with each.
MOST_SPIKED = 10
# Variance of a coordinate that a value has settled, so that it says nothing more.
SETTLED = 1e12


def pieces(block: GaussianBlock, c: int, region: Region) -> tuple[BoolArray, FloatArray]:
    """Return which spikes of column ``c`` a region holds, (S_c,), and the windows of its numbers, (m, 2).

    >>> from jointwise.joint.events import Values
    >>> from jointwise.warps import Warp
    >>> block = GaussianBlock((Warp.line(0.0, 1.0),), [[0.0]], [[[4.0]]], ([0.0],), ([[0.5]],), (True,))
    >>> spikes, windows = pieces(block, 0, Values((-1.0, 0.0, 2.5, 4.0)))
    >>> spikes.tolist(), windows.tolist()
    ([True], [[-1.5, 0.5], [3.5, 4.5]])
    """
    held, ends = runs(block, c, region)
    return held, np.asarray(block.warps[c](ends))


def runs(block: GaussianBlock, c: int, region: Region) -> tuple[BoolArray, FloatArray]:
    """Return which spikes of column ``c`` a region holds, (S_c,), and the runs of numbers that it holds, (m, 2)."""
    spikes = block.spikes[c]
    if isinstance(region, Interval):
        ends = np.array([[region.low, region.high]])
        held: BoolArray = np.asarray((spikes >= region.low) & (spikes <= region.high))
        if block.whole[c]:
            ends = np.array([[np.ceil(region.low) - 0.5, np.floor(region.high) + 0.5]])
    else:
        values = np.unique([region.value] if isinstance(region, Point) else region.values)
        half = 0.5 if block.whole[c] else region.half
        if block.whole[c]:
            values = values[values == np.round(values)]
        ends = np.stack([values - half, values + half], axis=1)
        held = _inside_any(spikes, ends) if half and not block.whole[c] else np.asarray(np.isin(spikes, values))
        ends = _runs(ends)
    return held, ends[ends[:, 0] < ends[:, 1]]


def _inside_any(points: FloatArray, ends: FloatArray) -> BoolArray:
    return np.asarray(((points[:, None] > ends[:, 0]) & (points[:, None] <= ends[:, 1])).any(axis=1))


def _runs(ends: FloatArray) -> FloatArray:
    """Join intervals, in increasing order, that meet but for rounding."""
    if len(ends) < 2:
        return ends
    gap = ends[1:, 0] - ends[:-1, 1] > 1e-6 * (ends[1:, 1] - ends[1:, 0])
    first, last = np.concatenate([[True], gap]), np.concatenate([gap, [True]])
    return np.stack([ends[first, 0], ends[last, 1]], axis=1)


@dataclass(frozen=True, eq=False)
class Branches:
    """Components of a block, split by what is given.

    Parameters
    ----------
    block : GaussianBlock
        One component for each branch, all its columns still there.
    parent : array of shape (G,)
        The component that each branch came from.
    log_weight : array of shape (G,)
        Log-likelihood of what is given, without the probability of the branch's window.
    """

    block: GaussianBlock
    parent: IntArray
    log_weight: FloatArray

    @classmethod
    def of(cls, block: GaussianBlock, event: Mapping[int, Region], *, values: bool) -> Branches:
        """Return the branches of a block given an event.

        Parameters
        ----------
        block : GaussianBlock
        event : mapping of columns of the block to regions
        values : bool
            Whether a point takes its column out, with the density there; else its probability counts.
        """
        # a block of its own: `log_likelihood` keeps what it finds there, which holds for this event alone
        branches = cls(block.changed(), np.arange(block.n_components), -block.log_inside[0])
        for c, region in event.items():
            if values and isinstance(region, Point):
                branches = branches.at_value(c, region.value)
            else:
                branches = branches.inside(c, *pieces(block, c, region))
        return branches

    def inside(self, c: int, held: BoolArray, windows: FloatArray) -> Branches:
        """Return the branches given that column ``c`` is at one of some spikes or in one of some windows."""
        parts = [self._in_window(c, low, high) for low, high in windows]
        return self._joined([self._at_spikes(c, held), *parts] if held.any() else parts)

    def at_value(self, c: int, value: float) -> Branches:
        """Return the branches given the value of column ``c``, whose coordinate is settled or hidden."""
        block, at = self.block, self.block.spikes[c] == value
        parts = [self._at_spikes(c, at)] if at.any() else []
        possible = np.isfinite(value) and (not block.whole[c] or value == np.round(value))
        if possible and (block.whole[c] or not at.any()):
            parts.append(self._settled(c, value))
        return self._joined(parts)

    def _at_spikes(self, c: int, held: BoolArray) -> Branches:
        weights = np.where(held[:, None], self.block.spike_weights[c], 0.0)
        total = weights.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):  # components without these spikes are dropped
            return self._kept(total > 0, np.log(total), spike_weights=self._spikes_of(c, weights / total))

    def _in_window(self, c: int, low: float, high: float) -> Branches:
        block = self.block
        lows, highs = block.low.copy(), block.high.copy()
        lows[:, c], highs[:, c] = np.maximum(lows[:, c], low), np.minimum(highs[:, c], high)
        free = block.no_spike[c]
        none = self._spikes_of(c, np.zeros_like(block.spike_weights[c]))
        with np.errstate(divide="ignore"):  # as above
            log_free = np.log(free)
        return self._kept((lows[:, c] < highs[:, c]) & (free > 0), log_free, spike_weights=none, low=lows, high=highs)

    def _settled(self, c: int, value: float) -> Branches:
        """Condition each Gaussian on one coordinate."""
        block, warp = self.block, self.block.warps[c]
        z = float(warp(value))
        column, variance = block.covariances[:, c], block.covariances[:, c, c]
        offset = z - block.means[:, c]
        gain = column / variance[:, None]
        means = block.means + gain * offset[:, None]
        covariances = block.covariances - gain[:, :, None] * column[:, None, :]
        covariances[:, c, :] = covariances[:, :, c] = 0.0
        means[:, c], covariances[:, c, c] = z, SETTLED
        lows, highs = block.low.copy(), block.high.copy()
        lows[:, c], highs[:, c] = -np.inf, np.inf
        free = block.no_spike[c]
        with np.errstate(divide="ignore"):  # components that are always at a spike are dropped
            log_density = np.log(free) - 0.5 * (offset**2 / variance + np.log(variance) + LOG_TAU)
        log_density += float(warp.log_slope(value))
        possible = (free > 0) & (block.low[:, c] <= z) & (z <= block.high[:, c])
        parts = {"means": means, "covariances": covariances, "low": lows, "high": highs}
        return self._kept(possible, log_density, **parts)

    def _spikes_of(self, c: int, weights: FloatArray) -> tuple[FloatArray, ...]:
        old = self.block.spike_weights
        return (*old[:c], weights, *old[c + 1 :])

    def _kept(self, keep: BoolArray, log_likelihood: FloatArray, **parts: object) -> Branches:
        """Return the branches marked in ``keep``, with some parts of their block replaced."""
        at = np.flatnonzero(keep)
        block = self.block.changed(**parts).take(at)
        return Branches(block, self.parent[at], self.log_weight[at] + log_likelihood[at])

    def _joined(self, parts: list[Branches]) -> Branches:
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return self._kept(np.zeros(len(self.parent), dtype=bool), self.log_weight)
        n = sum(len(part.parent) for part in parts)
        if n * self.block.n_coordinates**2 > MOST_NUMBERS:
            raise InputError(
                f"The event splits the mixture into {n:,} components, too many to keep. Use an interval instead of a "
                "set, or fewer values."
            )
        return Branches(
            stacked_blocks([part.block for part in parts]),
            np.concatenate([part.parent for part in parts]),
            np.concatenate([part.log_weight for part in parts]),
        )

    def reduced(self, columns: tuple[int, ...]) -> Branches:
        """Return the branches with the named columns alone; others are hidden if they have a window."""
        return replace(self, block=self.block.marginal(columns))

    def likely(self, log_rest: FloatArray) -> Branches:
        """Return the branches whose parents are possible."""
        return self._kept(log_rest[self.parent] > -np.inf, np.zeros(len(self.parent)))

    def log_likelihood(self, log_rest: FloatArray, no_say: float, *, each: bool) -> FloatArray:
        """Log-weight of each branch with the likelihood of what is given, -inf for one without a say; shape (G,).

        Parameters
        ----------
        log_rest : array of shape (F,)
            Log-weight of each component, with the likelihood of what is given elsewhere.
        no_say : float
            A branch may be left out if it is this much below another, in nats.
        each : bool
            Whether every branch must be precise; else their sum.
        """
        weight, block = self.log_weight + log_rest[self.parent], self.block
        possible = np.flatnonzero(weight > -np.inf)
        every = (block.means, block.latent_covariances, block.low, block.high)
        mean, covariance, low, high = (each[possible] for each in every)
        log_p, error = np.full(len(weight), -np.inf), np.zeros(len(weight))
        one = np.zeros(len(possible), dtype=np.int64)
        found = leading_windows(mean, covariance, low, high, weight[possible], one, no_say, each=each)
        log_p[possible], error[possible] = found
        block.__dict__["log_inside"] = log_p, error  # so that it need not be found again
        return np.asarray(weight + np.where(weight > -np.inf, log_p, 0.0))


def stacked_blocks(blocks: list[GaussianBlock]) -> GaussianBlock:
    """Return the block with the components of several that have the same columns and coordinates."""
    first = blocks[0]
    return first.changed(
        means=np.concatenate([block.means for block in blocks]),
        covariances=np.concatenate([block.covariances for block in blocks]),
        spike_weights=tuple(
            np.concatenate([block.spike_weights[c] for block in blocks], axis=1) for c in range(first.n_columns)
        ),
        low=np.concatenate([block.low for block in blocks]),
        high=np.concatenate([block.high for block in blocks]),
    )


def log_cdf(block: GaussianBlock, X: FloatArray, log_weights: FloatArray) -> FloatArray:
    """Log-probability that all columns are at most the values of a row, given each component; shape (n, F).

    With ``log_weights`` (n, F) of the components in each row, those without a say in their sum may be -inf.

    Missing cells do not count. A column with spikes is at one of those below its value or at none, so there is a window
    for each combination.
    """
    known = ~np.isnan(X)
    tops = np.full((len(X), block.n_coordinates), np.inf)
    below: dict[int, FloatArray] = {}
    for c, (warp, spikes) in enumerate(zip(block.warps, block.spikes, strict=True)):
        at = np.flatnonzero(known[:, c])
        tops[at, c] = warp(np.floor(X[at, c]) + 0.5 if block.whole[c] else X[at, c])
        if len(spikes) and at.size:
            ladder = np.concatenate([np.zeros((1, block.n_components)), np.cumsum(block.spike_weights[c], axis=0)])
            below[c] = np.where(known[:, [c]], ladder[np.searchsorted(spikes, X[:, c], side="right")], 0.0)
    if len(below) > MOST_SPIKED:
        raise InputError(
            f"The cdf of {len(below)} columns with spikes has too many terms; leave cells empty, so that at most "
            f"{MOST_SPIKED} such columns are left."
        )
    out = np.full((len(X), block.n_components), -np.inf)
    for at_spikes in product((False, True), repeat=len(below)):
        high, weight = tops.copy(), np.ones_like(out)
        for (c, mass), at_spike in zip(below.items(), at_spikes, strict=True):
            weight *= mass if at_spike else np.where(known[:, [c]], block.no_spike[c], 1.0)
            high[:, c] = np.inf if at_spike else high[:, c]
        rows = np.flatnonzero(weight.any(axis=1))
        if rows.size:
            with np.errstate(divide="ignore"):  # log 0 = -inf: no such component
                log_weight = np.log(weight[rows])
            part = log_weight + _log_below(block, high[rows], log_weights[rows] + log_weight)
            out[rows] = np.logaddexp(out[rows], part)
    return out


def _log_below(block: GaussianBlock, high: FloatArray, log_weight: FloatArray) -> FloatArray:
    """Log-probability that the latent vector is at most ``high`` (n, D) given its window; shape (n, F)."""
    nothing, z = np.empty(0, dtype=np.int64), np.empty((1, 0))
    size = max(NUMBERS // block.means.size, 1)
    parts = []
    for start in range(0, len(high), size):
        at = slice(start, start + size)
        tops = np.minimum(block.high, high[at, None])
        weight = log_weight[at] - block.log_inside[0]
        parts.append(log_inside(block, nothing, z, block.low[None], tops, weight, each=False)[0])
    return np.asarray(np.concatenate(parts) - block.log_inside[0])
