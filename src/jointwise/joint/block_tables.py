"""Tables of a Gaussian block: masses of combinations of regions, and densities on grids, given each component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.exceptions import InputError
from jointwise.joint.block_density import LOG_TAU, NUMBERS, log_density, log_gaussian, log_inside
from jointwise.joint.block_events import runs
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.block_margins import extent
from jointwise.joint.events import Interval, Point, Region
from jointwise.joint.quadrants import quadrants

# Most boxes whose probability is found one by one.
MOST_BOXES = 2**22
# Points in each direction at which the probability of windows elsewhere is found, doubled until all adds up to one:
# with at most two windows, a closed form, and with more.
GRIDS, GRIDS_LATTICE = (65, 129, 257), (17, 33)
UNITY, UNITY_LATTICE = 1e-6, 2e-4
# Two columns under windows elsewhere are integrated with this many nodes on panels of half a standard deviation.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


@dataclass(frozen=True, eq=False)
class Cells:
    """Regions of one column, taken apart.

    Parameters
    ----------
    windows : array of shape (m, 2)
        Windows of the latent coordinate; the last is the whole line, for a column at a spike.
    parts : array of shape (regions, m, F)
        Probability, given the component, that the column is at a spike of a region (last window) or at none (others).
    """

    windows: FloatArray
    parts: FloatArray


def cells_of(block: GaussianBlock, c: int, regions: Sequence[Region]) -> Cells:
    """Take regions of column ``c`` apart; an interval does not count the points that are regions of their own."""
    own = np.array(sorted({region.value for region in regions if isinstance(region, Point)}))
    held, ends = zip(*(runs(block, c, region) for region in regions), strict=True)
    # one call of the warp: each takes as long as thousands of its values
    windows = np.split(block.warps[c](np.concatenate(ends)), np.cumsum([len(each) for each in ends])[:-1])
    found = []
    for region, at_spikes, inside in zip(regions, held, windows, strict=True):
        if isinstance(region, Interval) and len(own):
            holes = block.warps[c](own[:, None] + [-0.5, 0.5]) if block.whole[c] else np.empty((0, 2))
            found.append((at_spikes & ~np.isin(block.spikes[c], own), _without(inside, holes)))
        else:
            found.append((at_spikes, inside))
    everywhere = np.array([[-np.inf, np.inf]])
    every, where = np.unique(np.concatenate([w for _, w in found] + [everywhere]), axis=0, return_inverse=True)
    last = int(where.ravel()[-1])
    order = np.array([*np.flatnonzero(np.arange(len(every)) != last), last])
    # a region may hold the whole line too, besides spikes: then its last part is the sum of both
    parts = np.zeros((len(regions), len(every), block.n_components))
    at = np.argsort(order)[where.ravel()]
    start = 0
    for i, (at_spikes, own_windows) in enumerate(found):
        parts[i, at[start : start + len(own_windows)]] = block.no_spike[c]
        parts[i, -1] += at_spikes @ block.spike_weights[c]
        start += len(own_windows)
    return Cells(every[order], parts)


def _without(windows: FloatArray, holes: FloatArray) -> FloatArray:
    """Cut intervals, in increasing order, out of windows."""
    for low, high in holes:
        left, right = windows.copy(), windows.copy()
        left[:, 1], right[:, 0] = np.minimum(left[:, 1], low), np.maximum(right[:, 0], high)
        windows = np.concatenate([left, right])
        windows = windows[windows[:, 0] < windows[:, 1]]
    return windows


def region_table(block: GaussianBlock, columns: Sequence[int], regions: Sequence[Sequence[Region]]) -> FloatArray:
    """Probability of each combination of regions of some columns given each component; shape (regions..., F)."""
    cells = [cells_of(block, c, each) for c, each in zip(columns, regions, strict=True)]
    table = window_table(block, columns, [each.windows for each in cells])
    for k, each in enumerate(cells):
        # sum over the windows of column k: its axis goes last but one and comes back
        moved = np.moveaxis(table, k, -2)
        flat = moved.reshape(-1, *moved.shape[-2:])
        summed = np.einsum("amf,rmf->arf", flat, each.parts, optimize=True)
        table = np.moveaxis(summed.reshape(*moved.shape[:-2], *summed.shape[1:]), -2, k)
    return table


def window_table(block: GaussianBlock, columns: Sequence[int], windows: Sequence[FloatArray]) -> FloatArray:
    """Probability of each combination of windows (m, 2) of some coordinates given each component; (m..., F)."""
    elsewhere = block.has_window.copy()
    elsewhere[list(columns)] = False
    if len(columns) == 2 and not elsewhere.any():
        return _by_corners(block, columns, windows)
    n_cells = int(np.prod([len(each) for each in windows]))
    if len(columns) == 2 and (elsewhere.sum() <= 2 or n_cells > GRIDS_LATTICE[0] ** 2):
        return _by_quadrature(block, columns, windows)
    return _by_boxes(block, columns, windows)


def _by_boxes(block: GaussianBlock, columns: Sequence[int], windows: Sequence[FloatArray]) -> FloatArray:
    """Probability of each box on its own."""
    shape = tuple(len(each) for each in windows)
    n = int(np.prod(shape))
    if n * block.n_components > MOST_BOXES:
        raise InputError(f"A table of {n:,} cells is too large; ask for fewer columns or regions.")
    at = np.stack(np.unravel_index(np.arange(n), shape))
    out = np.empty((n, block.n_components))
    nothing, z = np.empty(0, dtype=np.int64), np.empty((1, 0))
    size = max(NUMBERS // block.means.size, 1)
    for start in range(0, n, size):
        here = slice(start, start + size)
        low = np.broadcast_to(block.low, (len(out[here]), *block.low.shape)).copy()
        high = np.broadcast_to(block.high, low.shape).copy()
        for c, each, i in zip(columns, windows, at[:, here], strict=True):
            low[:, :, c] = np.maximum(low[:, :, c], each[i, 0][:, None])
            high[:, :, c] = np.minimum(high[:, :, c], each[i, 1][:, None])
        out[here] = log_inside(block, nothing, z, low, high)[0]
    return np.asarray(np.exp(out - block.log_inside[0])).reshape(*shape, -1)


def _by_corners(block: GaussianBlock, columns: Sequence[int], windows: Sequence[FloatArray]) -> FloatArray:
    r"""Probability of each rectangle of two coordinates: differences of :math:`P(X \le x, Y \le y)` at the corners.

    The error is about 1e-15 times the number of cells in a window, absolute.
    """
    i, j = columns
    covariances = block.latent_covariances
    edges = [np.unique(each) for each in windows]
    inside = [held(own, each) for own, each in zip(edges, windows, strict=True)]
    scales = [np.sqrt(covariances[:, c, c])[:, None] for c in columns]
    rho = np.clip(covariances[:, i, j] / scales[0][:, 0] / scales[1][:, 0], -1.0, 1.0)
    with np.errstate(over="ignore"):  # as good as infinite
        x, y = (
            (np.clip(own, block.low[:, [c]], block.high[:, [c]]) - block.means[:, [c]]) / scale
            for own, c, scale in zip(edges, columns, scales, strict=True)
        )
    masses = np.maximum(np.diff(np.diff(quadrants(x, y, rho), axis=1), axis=2), 0.0)
    out = np.moveaxis(inside[0] @ masses @ inside[1].T, 0, -1)
    return np.asarray(np.minimum(out / np.exp(block.log_inside[0]), 1.0))


def held(edges: FloatArray, windows: FloatArray) -> FloatArray:
    """Return which intervals between edges each window holds, as ones; shape (windows, edges - 1)."""
    inside: BoolArray = (edges[:-1] >= windows[:, [0]]) & (edges[1:] <= windows[:, [1]])
    return inside.astype(float)


def _by_quadrature(block: GaussianBlock, columns: Sequence[int], windows: Sequence[FloatArray]) -> FloatArray:
    """Probability of each rectangle of two coordinates under windows elsewhere, by Gauss-Legendre in both.

    The integrand is the density of the two times the probability of the other windows given them. The logarithm of that
    probability is smooth, so it is interpolated by a cubic spline. The integral over everything, which is one, shows
    whether its grid was fine enough.
    """
    given = np.array(columns)
    out = np.empty((len(windows[0]), len(windows[1]), block.n_components))
    for r in range(block.n_components):
        one = block.latent.take([r])
        (x, in_x, all_x), (y, in_y, all_y) = (_rule(one, c, each) for c, each in zip(columns, windows, strict=True))
        z = np.stack([g.ravel() for g in np.meshgrid(x, y, indexing="ij")], axis=1)
        gaussian = log_gaussian(z, one.means[:, given], one.covariances[:, given][:, :, given])[:, 0]
        n_windows = int(one.has_window.sum() - one.has_window[given].sum())
        grids, unity = (GRIDS, UNITY) if n_windows <= 2 else (GRIDS_LATTICE, UNITY_LATTICE)
        for n in grids:
            density = np.exp(gaussian.reshape(len(x), len(y)) + _log_tilt(one, given, x, y, n))
            total = all_x @ density @ all_y
            if abs(total - 1) < unity:
                break
        out[:, :, r] = in_x @ density @ in_y.T / total
    return np.minimum(out, 1.0)


def _log_tilt(block: GaussianBlock, given: IntArray, x: FloatArray, y: FloatArray, n: int) -> FloatArray:
    """Log of P(windows elsewhere | two coordinates) / P(windows) at every combination, from an n x n grid."""
    from scipy.interpolate import RectBivariateSpline  # a third of a second to load

    if not block.has_window[[k for k in range(block.n_coordinates) if k not in given]].any():
        return np.full((len(x), len(y)), -block.log_inside[0][0])
    a, b = np.linspace(x[0], x[-1], n), np.linspace(y[0], y[-1], n)
    z = np.stack([g.ravel() for g in np.meshgrid(a, b, indexing="ij")], axis=1)
    tilt = log_inside(block, given, z, block.low[None], block.high[None])[0].reshape(n, n)
    return np.asarray(RectBivariateSpline(a, b, tilt)(x, y) - block.log_inside[0][0])


def _rule(block: GaussianBlock, c: int, windows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nodes of coordinate ``c`` of one component, their weights in each window, (windows, nodes), and in all."""
    low, high, scale = extent(block, c)
    edges = np.unique(np.clip(windows, low, high))
    edges = np.union1d(edges, np.linspace(low, high, int(np.ceil(2 * (high - low) / scale)) + 1))
    start, half = edges[:-1], 0.5 * np.diff(edges)
    nodes = (start[:, None] + half[:, None] * (1 + _NODES)).ravel()
    inside = (start >= windows[:, [0]]) & (edges[1:] <= windows[:, [1]])
    weights = half[:, None] * _WEIGHTS
    return nodes, (inside[:, :, None] * weights).reshape(len(windows), -1), weights.ravel()


def density_table(block: GaussianBlock, points: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Density of a block of two columns at every combination of points, mixed by ``weights`` (F,); shape (n, m)."""
    if block.has_window.any():
        x, y = points
        out = np.empty((len(x), len(y)))
        size = max(NUMBERS // 4 // (len(y) * block.n_components), 1)
        for start in range(0, len(x), size):
            rows = np.stack([g.ravel() for g in np.meshgrid(x[start : start + size], y, indexing="ij")], axis=1)
            out[start : start + size] = (np.exp(log_density(block, rows)) @ weights).reshape(-1, len(y))
        return out
    at_spike, number = zip(*(at_points(block, c, each) for c, each in enumerate(points)), strict=True)
    margin = [_margins(block, c, each) for c, each in enumerate(points)]
    # a column at a spike is independent of the other, given the component
    out = (at_spike[0] * weights) @ (at_spike[1] + number[1] * margin[1]).T
    out += (number[0] * margin[0] * weights) @ at_spike[1].T
    z = [warp(each) for warp, each in zip(block.warps, points, strict=True)]
    slopes = [np.exp(warp.log_slope(each)) for warp, each in zip(block.warps, points, strict=True)]
    for r in np.flatnonzero(weights > 0):
        left, right = (n[:, r] * s for n, s in zip(number, slopes, strict=True))
        _add_pair(out, z, block.means[r], block.covariances[r], left * weights[r], right)
    return np.asarray(out)


def at_points(block: GaussianBlock, c: int, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probability that column ``c`` is at the spike at each point, and at none if it can be a number; (n, F) each."""
    at_spike = np.zeros((len(points), block.n_components))
    where = np.isin(points, block.spikes[c])
    if where.any():
        at_spike[where] = block.spike_weights[c][np.searchsorted(block.spikes[c], points[where])]
    number = np.isfinite(points) & ((points == np.round(points)) if block.whole[c] else ~where)
    return at_spike, number[:, None] * block.no_spike[c]


def _margins(block: GaussianBlock, c: int, points: FloatArray) -> FloatArray:
    """Density of the numbers of column ``c`` given each component, without windows; shape (n, F)."""
    own = block.marginal([c])
    smooth = own.changed(spikes=(np.empty(0),), spike_weights=(np.empty((0, own.n_components)),), whole=(False,))
    return np.exp(log_density(smooth, points[:, None]))


def _add_pair(
    out: FloatArray,
    z: Sequence[FloatArray],
    mean: FloatArray,
    covariance: FloatArray,
    left: FloatArray,
    right: FloatArray,
) -> None:
    """Add left[i] right[j] N((z_1[i], z_2[j])) to ``out`` in place, a few rows at a time."""
    rows, columns = np.flatnonzero(left > 0), np.flatnonzero(right > 0)
    u, v = z[0][rows] - mean[0], z[1][columns] - mean[1]
    slope = covariance[0, 1] / covariance[1, 1]
    left_variance = covariance[0, 0] - slope * covariance[0, 1]
    root = np.sqrt(0.5 / left_variance)
    # log N(u, v) = log N(v) + log N(u - slope v)
    const = np.log(right[columns]) - 0.5 * v**2 / covariance[1, 1]
    const -= LOG_TAU + 0.5 * np.log(covariance[1, 1] * left_variance)
    u, v, log_left = u * root, slope * root * v, np.log(left[rows])
    every = len(columns) == out.shape[1]
    size = max(2**15 // max(len(columns), 1), 1)
    for start in range(0, len(rows), size):
        at = slice(start, start + size)
        t = u[at, None] - v
        np.multiply(t, t, out=t)
        np.subtract(const, t, out=t)
        t += log_left[at, None]
        np.exp(t, out=t)
        if every:
            out[rows[at]] += t
        else:
            out[np.ix_(rows[at], columns)] += t
