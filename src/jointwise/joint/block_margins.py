"""Laws of single columns of a Gaussian block, as atoms of a dictionary.

Without windows on other coordinates the law of a column given a component is a Gaussian, cut to the column's own window
and seen through its warp. Windows elsewhere tilt it. A tilted law is tabulated: its quantiles are those of a Gaussian
through a warp with a few hundred knots, exact at the knots. Its density there comes from closed forms with at most two
windows, and from :mod:`jointwise.joint.block_nodes` with more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.families import Family, Gaussian, Lattice, PointMass, Warped
from jointwise.joint.block_density import log_inside, regression
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.block_nodes import NodeLaw, node_law
from jointwise.joint.window import sample_window
from jointwise.warps import Warp

Curve = Callable[[FloatArray], FloatArray]

# A window that is further out, in standard deviations, sees the Gaussian as one with the same slope at its end.
FARTHEST = 30.0
# Points that tell where a law has mass, and at which the bends of a mixture at nodes are measured.
N_COARSE, N_FINE = 65, 257
# Points at which the tilt by at most two windows is found: a step of this many standard deviations given the windows.
STEP, LEAST_POINTS, MOST_POINTS = 0.15, 129, 1025
# Knots of a tabulated law, and draws that say where it lies.
N_KNOTS, N_DRAWS = 257, 512
# A law is tabulated as far as this many standard deviations, and at least until its density has fallen by exp(-FALL).
REACH, FALL, STEEPEST = 9.0, 35.0, 600.0
# Mass beyond the last knot on either side.
TAIL = 1e-14


def column_factor(block: GaussianBlock, c: int) -> tuple[Dictionary, FloatArray]:
    """Law of column ``c`` given each component: atoms, and their weights of shape (atoms, F)."""
    families, owners = _families(block, c)
    used = block.spike_weights[c].any(axis=1)
    coefficients = np.zeros((len(owners) + int(used.sum()), block.n_components))
    coefficients[np.arange(len(owners)), owners] = block.no_spike[c][owners]
    coefficients[len(owners) :] = block.spike_weights[c][used]
    return _with_spikes(block, c, families), coefficients / coefficients.sum(axis=0)


def plain_dictionary(block: GaussianBlock, c: int) -> Dictionary:
    """Atoms of column ``c`` without windows: its kind and its spikes."""
    plain = block
    if block.has_window.any():
        unbounded = np.full_like(block.low, np.inf)
        plain = block.changed(low=-unbounded, high=unbounded)
    return _with_spikes(plain, c, _families(plain, c)[0])


def _with_spikes(block: GaussianBlock, c: int, families: list[Family]) -> Dictionary:
    used = block.spike_weights[c].any(axis=1)
    return Dictionary((*families, PointMass(block.spikes[c][used])) if used.any() else tuple(families))


def _families(block: GaussianBlock, c: int) -> tuple[list[Family], list[int]]:
    """Return the laws of the numbers of column ``c``, and the component of each atom."""
    elsewhere = block.has_window.copy()
    elsewhere[c] = False
    latent = block.latent
    families: list[Family] = []
    owners: list[int] = []
    for r_all, low, high in _own_windows(block, c):
        own_low, own_high = block.low[r_all][:, elsewhere], block.high[r_all][:, elsewhere]
        if (own_low > -np.inf).any() or (own_high < np.inf).any():
            families += [_tilted(latent, r, c) for r in r_all]
        else:
            scale = np.sqrt(latent.covariances[r_all, c, c])
            families.append(_windowed(block.means[r_all, c], scale, low, high))
        owners += r_all
    seen = [Warped.through(block.warps[c], family) for family in families]
    return [Lattice(family) if block.whole[c] else family for family in seen], owners


def _own_windows(block: GaussianBlock, c: int) -> list[tuple[list[int], float, float]]:
    """Return the components that are not always at a spike, grouped by their windows of column ``c``."""
    groups: dict[tuple[float, float], list[int]] = {}
    low, high = block.low[:, c].tolist(), block.high[:, c].tolist()
    for r in np.flatnonzero(block.no_spike[c] > 0).tolist():
        groups.setdefault((low[r], high[r]), []).append(r)
    return [(components, *window) for window, components in groups.items()]


def _windowed(mean: FloatArray, scale: FloatArray, low: float, high: float) -> Family:
    """Return Gaussian atoms cut to a window."""
    if low == -np.inf and high == np.inf:
        return Gaussian(mean, scale)
    end = np.clip(mean, low, high)  # the point of the window nearest to the mean
    out = np.abs(end - mean) / scale
    far = out > FARTHEST
    new = np.where(far, scale * FARTHEST / np.maximum(out, FARTHEST), scale)
    atoms = Gaussian(np.where(far, end - np.sign(end - mean) * FARTHEST * new, mean), new)
    return atoms.truncate(low, high)


def extent(block: GaussianBlock, c: int) -> tuple[float, float, float]:
    """Return the ends between which coordinate ``c`` of a block with one component has its mass, and its spread."""
    z, log_density, _, scale = _curve(block, 0, c)
    return *_within(z, log_density(z)), scale


def _curve(block: GaussianBlock, r: int, c: int) -> tuple[FloatArray, Curve, float, float]:
    """Return points of coordinate ``c`` of one component wherever it has mass, its log-density, centre and spread."""
    from scipy.interpolate import CubicSpline  # a third of a second to load

    if ((block.low[r] > -np.inf) | (block.high[r] < np.inf)).sum() > 2:
        law = node_law(block, r, c)
        return _ends(law), law.log_density, *law.moments()
    centre, scale, one = *_place(block, r, c), block.take([r])
    z, log_density = _log_density(one, c, float(block.low[r, c]), float(block.high[r, c]), centre, scale)
    curve = CubicSpline(z, log_density) if (np.diff(z) > 0).all() else lambda z: np.zeros(len(z))
    return z, curve, centre, scale


def _ends(law: NodeLaw) -> FloatArray:
    """Return points wherever a law has mass."""
    reach = REACH * law.scale
    low, high = max((law.mean - reach).min(), law.low), min((law.mean + reach).max(), law.high)
    z = np.linspace(low, high, N_COARSE)
    return np.linspace(*_within(z, law.log_density(z)), N_FINE)


def _place(block: GaussianBlock, r: int, c: int) -> tuple[float, float]:
    """Return centre and spread of coordinate ``c`` of one component inside its windows, from fixed draws."""
    if r not in block.places:
        own = block.means[r], block.covariances[r], block.low[r], block.high[r]
        draws = sample_window(*own, N_DRAWS, np.random.default_rng(0))
        least = 1e-12 * np.sqrt(np.diagonal(block.covariances[r]))
        block.places[r] = draws.mean(axis=0), np.maximum(draws.std(axis=0), least)
    centre, scale = block.places[r]
    return float(centre[c]), float(scale[c])


def _tilted(block: GaussianBlock, r: int, c: int) -> Family:
    """Return the law of coordinate ``c`` of one component with windows elsewhere, tabulated."""
    low, high = float(block.low[r, c]), float(block.high[r, c])
    z, curve, centre, scale = _curve(block, r, c)
    if not (np.diff(z) > 0).all():  # a window so thin that neighbouring numbers are its ends
        return _windowed(np.array([centre]), np.array([scale]), low, high)
    log_density = curve(z)
    knots = _knots(z, log_density, scale)
    # the density on three points between neighbouring knots integrates to 1e-10 or so by Simpson's rule
    fine = np.interp(np.arange(4 * (len(knots) - 1) + 1) / 4, np.arange(len(knots)), knots)
    density = np.exp(curve(fine) - log_density.max())
    masses = (
        np.diff(knots)
        / 12
        * (density[:-4:4] + 4 * density[1:-3:4] + 2 * density[2:-2:4] + 4 * density[3:-1:4] + density[4::4])
    )
    below = np.concatenate([[0.0], np.cumsum(masses)])
    above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
    total = below[-1]
    keep = (below >= TAIL * total) & (above >= TAIL * total)
    keep[0] |= knots[0] == low
    keep[-1] |= knots[-1] == high
    below, above, knots, height = below[keep] / total, above[keep] / total, knots[keep], density[::4][keep] / total
    base = _windowed(np.array([centre]), np.array([scale]), low, high)
    v = np.where(below < 0.5, base.ppf(np.minimum(below, 1.0))[:, 0], base.isf(np.minimum(above, 1.0))[:, 0])
    slopes = height / base.pdf(v)[:, 0]
    rising = np.concatenate([[True], (np.diff(v) > 0) & (np.diff(knots) > 0)]) & (slopes > 0) & np.isfinite(slopes)
    return Warped.through(Warp(knots[rising], v[rising], slopes[rising]), base)


def _log_density(
    block: GaussianBlock, c: int, low: float, high: float, centre: float, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Return points of coordinate ``c`` and its log-density there, up to a constant, wherever it has mass."""
    left, right = REACH, REACH
    for _ in range(12):
        z = np.linspace(max(low, centre - left * scale), min(high, centre + right * scale), N_COARSE)
        log_density = _log_heights(block, c, z)
        top = log_density.max()
        short_left = log_density[0] > top - FALL and z[0] > low
        short_right = log_density[-1] > top - FALL and z[-1] < high
        if not short_left and not short_right:
            break
        left, right = left * (1.5 if short_left else 1.0), right * (1.5 if short_right else 1.0)
    start, end = _within(z, log_density)
    z = np.linspace(start, end, _n_points(block, c, end - start))
    log_density = _log_heights(block, c, z)
    # what is much further down is nothing, and a spline would not follow its fall
    first, last = np.flatnonzero(log_density > log_density.max() - STEEPEST)[[0, -1]]
    return z[first : last + 1], log_density[first : last + 1]


def _log_heights(block: GaussianBlock, c: int, z: FloatArray) -> FloatArray:
    """Log-density of coordinate ``c`` of one component at points (n,), up to a constant."""
    tilt = log_inside(block, np.array([c]), z[:, None], block.low[None], block.high[None])[0][:, 0]
    return np.asarray(tilt - 0.5 * (z - block.means[0, c]) ** 2 / block.covariances[0, c, c])


def _within(z: FloatArray, log_density: FloatArray) -> tuple[float, float]:
    """Return the ends of the points between which a law has its mass."""
    first, last = np.flatnonzero(log_density > log_density.max() - FALL)[[0, -1]]
    return float(z[max(first - 1, 0)]), float(z[min(last + 1, len(z) - 1)])


def _n_points(block: GaussianBlock, c: int, width: float) -> int:
    """Return how many points resolve the edges of the windows elsewhere, as seen from coordinate ``c``."""
    others = np.flatnonzero(block.has_window)
    others = others[others != c]
    # the edges are blurred by what the others leave of this coordinate
    rest = regression(block, others, np.array([c]))[1][0, 0, 0]
    return int(np.clip(width / (STEP * np.sqrt(max(rest, 1e-300))), LEAST_POINTS, MOST_POINTS))


def _knots(z: FloatArray, log_density: FloatArray, scale: float) -> FloatArray:
    """Return knots that are closer where the log-density bends."""
    bend = np.gradient(np.gradient(log_density, z), z)
    speed = 1 / scale + np.sqrt(np.abs(bend))
    speed = speed * np.exp(0.1 * np.maximum(log_density - log_density.max(), -80.0))  # and where there is mass
    speed += 0.1 * speed.mean()
    steps = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(z))])
    knots = np.interp(np.linspace(0.0, steps[-1], N_KNOTS), steps, z)
    knots[[0, -1]] = z[[0, -1]]
    return np.unique(knots)
