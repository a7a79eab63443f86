"""The warp of a column: the increasing map after which a Gaussian suits it best.

"none" is the straight line to mean 0 and standard deviation 1. "power" is the Yeo-Johnson power whose likelihood is
highest. "log" is the logarithm of a positive column: products and ratios of columns, such as areas and densities, are
then straight lines. "scores" takes the column to the quantiles of a Gaussian by the cdf of the column's own 1-D fit.
These are made from the counts of a column's bins, so their cost does not grow with rows, and spikes are left out.
"joint" begins from the logarithm; `joint_warps` has the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from jointwise._typing import FloatArray, IntArray
from jointwise.axes import half_integers
from jointwise.dictionary import Dictionary
from jointwise.warps import Warp

# Beyond this many standard deviations there is no mass to speak of; knots of an end that leads there.
FAR, TAIL_KNOTS = 8.0, 25
WarpName = Literal["none", "power", "log", "scores", "joint"]
WARPS: tuple[WarpName, ...] = ("none", "power", "log", "scores", "joint")
# Exponents of the power, and how finely they are searched; beyond them a warp would flatten what it should spread.
LEAST_POWER, MOST_POWER, POWER_STEPS = -1.0, 3.0, 41
# Groups of bins by which powers are compared.
POWER_GROUPS = 512
# Integers whose quartiles are closer than this keep a straight warp: their lattice is then the same everywhere.
STRAIGHT_RANGE = 15.0
# Knots of a warp that is not straight.
N_KNOTS = 129
# How far the knots of a power go beyond the observed range, in standard deviations.
POWER_BEYOND = 3.0
# Those of a logarithm go this many standard deviations of the logarithms from their mean, further than `FAR`.
LOG_REACH = 9.0
# Scores are tabulated where both tails hold at least this; beyond, the warp is straight.
LEAST_TAIL = 1e-9
# Neighbouring knots differ by at least this much in w.
LEAST_RISE = 1e-6
# Slopes of scores lie within this factor of what a straight line between the neighbouring knots has.
MOST_BEND = 10.0


@dataclass(frozen=True, eq=False)
class Counted:
    """The values of a column that are not spikes, and their counts.

    Parameters
    ----------
    values : array of shape (I,)
        Increasing.
    counts : array of shape (I,)
        Not negative; some positive.
    """

    values: FloatArray
    counts: FloatArray

    @cached_property
    def _unit(self) -> float:
        """A number near the largest: sums of values divided by it stay in range."""
        return float(max(np.abs(self.values[[0, -1]]).max(), 1e-300))

    @cached_property
    def mean(self) -> float:
        """Mean of the values."""
        return float(self.mean_of(self.values / self._unit) * self._unit)

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of the values."""
        away = self.values / self._unit - self.mean / self._unit
        widest = float(np.abs(away).max())
        if not widest > 0:
            return 0.0
        return float(np.sqrt(self.mean_of((away / widest) ** 2)) * widest * self._unit)

    def mean_of(self, numbers: FloatArray) -> float:
        """Mean over the rows of a number that each value has."""
        return float(self.counts @ numbers / self.counts.sum())

    def quantile(self, q: FloatArray) -> FloatArray:
        """Values below which these shares of the rows lie."""
        cumulative = np.cumsum(self.counts)
        return np.asarray(self.values[np.searchsorted(cumulative, q * cumulative[-1]).clip(max=len(self.values) - 1)])

    def standardised(self) -> FloatArray:
        """Values with mean 0 and standard deviation 1."""
        return self.values / self.deviation - self.mean / self.deviation

    def is_positive(self) -> bool:
        """Whether the values have logarithms whose differences mean something."""
        return bool(self.values[0] > 1e-300)

    def is_narrow(self) -> bool:
        """Whether the values, if they are integers, lie so close that they need a straight warp."""
        lower, upper = self.quantile(np.array([0.25, 0.75]))
        return bool(upper - lower < STRAIGHT_RANGE)

    def is_spread(self) -> bool:
        """Whether the values differ by more than the distance of neighbouring floats, and can be standardised."""
        least = 64 * float(np.spacing(np.abs(self.values).max()))
        return bool(least < self.deviation < 1e307) and bool(self.deviation > 1e-300)


def straight(column: Counted) -> Warp:
    """Return the line to mean 0 and standard deviation 1.

    >>> straight(Counted(np.array([1.0, 3.0]), np.ones(2)))(np.array([3.0])).tolist()
    [1.0]
    """
    return Warp.line(column.mean, column.deviation)


def power(column: Counted) -> Warp:
    r"""Return the Yeo-Johnson power of the highest likelihood, tabulated, to mean 0 and standard deviation 1.

    With z the standardised value and :math:`\lambda` the exponent,

    .. math:: \psi(z) = \frac{(1 + z)^\lambda - 1}{\lambda} \; (z \ge 0), \qquad
              \psi(z) = -\frac{(1 - z)^{2 - \lambda} - 1}{2 - \lambda} \; (z < 0).

    >>> values = np.exp(np.linspace(-2, 2, 101))
    >>> bend = power(Counted(values, np.exp(-np.linspace(-2, 2, 101)**2 / 2)))
    >>> w = bend(values)
    >>> bool(abs(w[50] - (w[0] + w[-1]) / 2) < 0.6), bool(bend.slopes[0] > bend.slopes[-1])
    (True, True)
    """
    z = column.standardised()
    exponent = _best_power(z, column.counts)
    psi = _yeo_johnson(z, exponent)
    centre = column.mean_of(psi)
    spread = float(np.sqrt(column.mean_of((psi - centre) ** 2)))
    low, high = np.arcsinh(z[0] - POWER_BEYOND), np.arcsinh(z[-1] + POWER_BEYOND)
    knots = np.sinh(np.linspace(low, high, N_KNOTS))
    slopes = (1 + np.abs(knots)) ** (np.sign(knots) * (exponent - 1))
    x = column.mean + column.deviation * knots
    return warp_through(x, (_yeo_johnson(knots, exponent) - centre) / spread, slopes / spread / column.deviation)


def log(column: Counted) -> Warp:
    """Return the logarithm of positive values, tabulated, to mean 0 and standard deviation 1; else their power.

    >>> bend = log(Counted(np.array([1.0, 10.0, 100.0]), np.array([1.0, 2.0, 1.0])))
    >>> bend(np.array([1.0, 100.0, 1000.0])).round(3).tolist()
    [-1.414, 1.414, 2.828]
    """
    if not column.is_positive():
        return power(column)
    logs = np.log(column.values)
    centre = column.mean_of(logs)
    spread = float(np.sqrt(column.mean_of((logs - centre) ** 2)))
    w = np.linspace(min(-LOG_REACH, (logs[0] - centre) / spread), max(LOG_REACH, (logs[-1] - centre) / spread), N_KNOTS)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        x = np.exp(centre + spread * w)
        return warp_through(x, w, 1 / (spread * x))


def scores(column: Counted, dictionary: Dictionary, weights: FloatArray, *, whole: bool = False) -> Warp:
    r"""Return :math:`\Phi^{-1}(F(x))`, tabulated, with F the cdf of the column's own 1-D fit.

    Parameters
    ----------
    column : Counted
    dictionary : Dictionary
        Its atoms; point masses are left out.
    weights : array of shape (L,)
        Their weights.
    whole : bool
        Whether the column holds integers; F is then taken midway between them.

    Examples
    --------
    >>> column = Counted(np.linspace(-3.0, 3.0, 61), np.ones(61))
    >>> bend = scores(column, Dictionary.grid("gaussian", 5, 5, n=1, scale=2), np.ones(1))
    >>> bend(np.array([5.0, 7.0, 1.0])).round(3).tolist()
    [0.0, 1.0, -2.0]
    """
    dictionary, weights = _without_points(dictionary, weights)
    x = _score_knots(column)
    x = half_integers(x) if whole else x
    below, above = dictionary.cdf(x) @ weights, dictionary.sf(x) @ weights
    inside = (below > LEAST_TAIL) & (above > LEAST_TAIL)
    if inside.sum() < 2:
        return straight(column)
    x, below, above = x[inside], below[inside], above[inside]
    w = np.where(below < above, ndtri(below), -ndtri(above))
    kept = _rising(x, w)
    if len(kept) < 2:
        return straight(column)
    x, w = x[kept], w[kept]
    with np.errstate(over="ignore", under="ignore"):
        slopes = dictionary.pdf(x) @ weights * np.exp(0.5 * w**2) * np.sqrt(2 * np.pi)
    return warp_through(x, w, _near_secants(slopes, x, w))


def bounded(warp: Warp, column: Counted, support: tuple[float, float]) -> Warp:
    r"""Return the warp with ends that take the bounds of a column far out, so that no mass lies beyond them.

    Between the smallest value v and a lower bound b, and likewise above the largest value, it goes on as

    .. math:: w(x) = w(v) - c \left(\frac{v - b}{x - b} - 1\right), \qquad c = w'(v) (v - b),

    with the same slope at v. A bound that is far out already changes nothing.

    >>> column = Counted(np.array([1.0, 2.0, 4.0]), np.ones(3))
    >>> bend = bounded(straight(column), column, (0.0, np.inf))
    >>> bool(bend(np.array([0.0]))[0] < -10), bend(np.array([2.0, 4.0])).round(3).tolist()
    (True, [-0.267, 1.336])
    """
    (low, high), values = support, column.values
    if np.isfinite(low) and float(warp(low)) > -FAR:
        warp = _with_lower_end(warp, float(values[0]), low, float(values[1] - values[0]) / 2)
    if np.isfinite(high) and float(warp(high)) < FAR:
        mirrored = Warp(-warp.x[::-1], -warp.w[::-1], warp.slopes[::-1])
        mirrored = _with_lower_end(mirrored, -float(values[-1]), -high, float(values[-1] - values[-2]) / 2)
        warp = Warp(-mirrored.x[::-1], -mirrored.w[::-1], mirrored.slopes[::-1])
    return warp


def _with_lower_end(warp: Warp, value: float, bound: float, gap: float) -> Warp:
    """Return a warp whose lower end takes the bound far out; where rows are at the bound, a point just beyond it."""
    reach = max(value - bound, gap)
    start, slope = float(warp(value)), float(np.exp(warp.log_slope(value)))
    c = slope * reach
    t = np.geomspace(c / (c + max(start, 1 - FAR) + FAR), 1.0, TAIL_KNOTS)
    inner = warp.x > value
    return warp_through(
        np.concatenate([value - reach + reach * t, warp.x[inner]]),
        np.concatenate([start - c * (1 / t - 1), warp.w[inner]]),
        np.concatenate([slope / t**2, warp.slopes[inner]]),
    )


def _best_power(z: FloatArray, counts: FloatArray) -> float:
    """Return the exponent of the highest likelihood of standardised values, to the second digit."""
    z, counts = _grouped(z, counts)
    logs = np.sign(z) * np.log1p(np.abs(z)) @ counts / counts.sum()

    shares = counts / counts.sum()

    def likeliest(exponents: FloatArray) -> float:
        psi = _yeo_johnson(z, exponents[:, None])
        centre = (psi * shares).sum(axis=1, keepdims=True)
        spread = ((psi - centre) ** 2 * shares).sum(axis=1)
        return float(exponents[np.argmax(-0.5 * np.log(spread) + (exponents - 1) * logs)])

    width = (MOST_POWER - LEAST_POWER) / (POWER_STEPS - 1)
    best = likeliest(np.linspace(LEAST_POWER, MOST_POWER, POWER_STEPS))
    return likeliest(np.clip(np.linspace(best - width, best + width, 21), LEAST_POWER, MOST_POWER))


def _grouped(values: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means and counts of at most `POWER_GROUPS` groups of neighbouring values."""
    here = counts > 0
    values, counts = values[here], counts[here]
    if len(values) <= POWER_GROUPS:
        return values, counts
    cumulative = np.cumsum(counts)
    group = np.minimum((cumulative - counts / 2) / cumulative[-1] * POWER_GROUPS, POWER_GROUPS - 1).astype(np.int64)
    total: FloatArray = np.bincount(group, counts, minlength=POWER_GROUPS).astype(np.float64)
    mean = np.bincount(group, counts * values, minlength=POWER_GROUPS) / np.where(total > 0, total, 1.0)
    return mean[total > 0], total[total > 0]


def _yeo_johnson(z: FloatArray, exponent: float | FloatArray) -> FloatArray:
    """Return the power of standardised values, with one exponent or several, of shape (n, 1)."""
    logs, own = np.log1p(np.abs(z)), np.where(z >= 0, exponent, 2 - np.asarray(exponent))
    nothing = np.abs(own) < 1e-9
    found = np.where(nothing, logs, np.expm1(own * logs) / np.where(nothing, 1.0, own))
    return np.asarray(np.where(z >= 0, found, -found))


def _without_points(dictionary: Dictionary, weights: FloatArray) -> tuple[Dictionary, FloatArray]:
    """Return atoms and weights without point masses; as they are if there would be nothing left."""
    if not dictionary.spikes.size:
        return dictionary, weights / weights.sum()
    smooth = ~np.repeat([f.name == "point_mass" for f in dictionary.families], [f.n_atoms for f in dictionary.families])
    if not (weights[smooth] > 0).any():
        return dictionary, weights
    return dictionary.take(smooth), weights[smooth] / weights[smooth].sum()


def _score_knots(column: Counted) -> FloatArray:
    """Return where scores are tabulated: evenly in the scores of the rows, and on to where hardly any row would be."""
    inner = column.quantile(_normal_levels(column.counts.sum()))
    low, high = float(column.values[0]), float(column.values[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = (high - low) * np.geomspace(0.02, 1e4, 24)
        x = np.concatenate([low - beyond, [low], inner, [high], high + beyond])
    return np.unique(x[np.isfinite(x)])


def _normal_levels(n_rows: float) -> FloatArray:
    """Return levels whose Gaussian quantiles are evenly spaced, about as far out as rows are."""
    end = -ndtri(0.5 / max(n_rows, 2.0))
    grid = np.linspace(-end, end, N_KNOTS)
    return np.asarray(ndtr(grid))


def _rising(x: FloatArray, w: FloatArray) -> IntArray:
    """Return the positions of knots at which x and w both rise, by enough for a slope to mean something."""
    if (np.diff(w) >= LEAST_RISE).all() and (np.diff(x) > 0).all():
        return np.arange(len(x))
    kept = [0]
    for k in range(1, len(x)):
        if w[k] - w[kept[-1]] >= LEAST_RISE and x[k] > x[kept[-1]]:
            kept.append(k)
    return np.array(kept)


def _near_secants(slopes: FloatArray, x: FloatArray, w: FloatArray) -> FloatArray:
    """Return slopes near those of the lines to the neighbouring knots: a density may jump or vanish at a knot."""
    secants = np.diff(w) / np.diff(x)
    left, right = np.concatenate([secants[:1], secants]), np.concatenate([secants, secants[-1:]])
    least, most = np.minimum(left, right), np.maximum(left, right)
    found = np.where(np.isfinite(slopes) & (slopes > 0), slopes, np.sqrt(left) * np.sqrt(right))
    return np.asarray(np.clip(found, least / MOST_BEND, most * MOST_BEND))


def warp_through(x: FloatArray, w: FloatArray, slopes: FloatArray) -> Warp:
    """Return the warp through those knots at which x and w rise."""
    kept = np.isfinite(x) & np.isfinite(w) & (slopes > 0) & np.isfinite(slopes)
    x, w, slopes = x[kept], w[kept], slopes[kept]
    rising = np.concatenate([[True], (np.diff(x) > 0) & (np.diff(w) > 0)])
    return Warp(x[rising], w[rising], slopes[rising])
