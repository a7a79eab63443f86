"""Support: the bounds of a column that are evident from its rows.

A bound is evident if many rows pile up at it, as at a sentinel or a top code. The natural bounds of numbers (zero; one
and a hundred for shares) are evident if no row lies beyond, although rows would lie there if the column had a Gaussian
tail. Zero is also evident for positive numbers that differ by factors rather than by sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from scipy.special import ndtr, ndtri

from jointwise.marginals.sketch import ValueSketch

# Natural lower and upper bounds of numbers.
LOWER, UPPER = (0.0,), (0.0, 1.0, 100.0)
# A Gaussian through two quantiles predicts the number of rows beyond a bound. The pairs go from the body to the tail.
LEVELS = ((0.5, 0.05), (0.25, 0.025), (0.1, 0.01))
# If this many rows are expected beyond a bound, finding none is hardly chance (1 in 150). A quantile with fewer rows
# below it is not used.
LEAST_EXPECTED = 5.0
# A fraction that repeats this often at a bound is a pile.
LEAST_REPEATS = 5
# Positive numbers differ by factors if the 90% quantile is at least FACTOR times the 10% quantile, and at least SKEW
# times as far from the median.
FACTOR, SKEW = 5.0, 1.5
# Fewest rows that show piles at bounds, and that show factors.
LEAST_ROWS, LEAST_FACTOR_ROWS = 30, 100


def evident_support(sketch: ValueSketch, spikes: Sequence[float], *, natural: bool = True) -> tuple[float, float]:
    """Return the lower and upper bound of a column, infinite where none is evident.

    Parameters
    ----------
    sketch : ValueSketch
    spikes : sequence of float
        Values that repeat far more often than a density allows; a spike at an end of the range is a bound, unless all
        values are spikes.
    natural : bool
        Whether zero, one and a hundred may be bounds; not for dates.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> waiting = ValueSketch.of(rng.exponential(size=1000))
    >>> evident_support(waiting, ()), evident_support(ValueSketch.of(rng.normal(size=1000)), ())
    ((0.0, inf), (-inf, inf))
    """
    if sketch.n < LEAST_ROWS or sketch.min == sketch.max:
        return -inf, inf
    stand_out = len(spikes) < len(sketch.keys)  # where all values are spikes, none is a pile at an end
    low = sketch.min if stand_out and sketch.min in spikes else -inf
    high = sketch.max if stand_out and sketch.max in spikes else inf
    if natural and low == -inf:
        low = max((b for b in LOWER if _Side.below(sketch, b).is_evident()), default=-inf)
    if natural and high == inf:
        # one and a hundred are bounds of shares, which are not negative
        bounds = [b for b in UPPER if b == 0 or sketch.min >= 0]
        high = min((b for b in bounds if _Side.above(sketch, b).is_evident()), default=inf)
    return low, high


class _Side(NamedTuple):
    """A column as distances from a bound."""

    gap: float  # distance to the nearest value; negative if there are values beyond
    repeats: float  # number of rows with the nearest value; zero for integers, which repeat anywhere
    n: float  # number of rows
    quantile: Callable[[float], float]  # returns the distance within which a share of the rows lies
    is_zero: bool  # whether the bound is zero, the origin of factors

    @classmethod
    def below(cls, sketch: ValueSketch, bound: float) -> _Side:
        repeats = 0.0 if sketch.is_integral else float(sketch.low_counts[0])
        return cls(sketch.min - bound, repeats, sketch.n, lambda q: float(sketch.quantile(q)) - bound, bound == 0)

    @classmethod
    def above(cls, sketch: ValueSketch, bound: float) -> _Side:
        repeats = 0.0 if sketch.is_integral else float(sketch.high_counts[-1])
        return cls(bound - sketch.max, repeats, sketch.n, lambda q: bound - float(sketch.quantile(1 - q)), bound == 0)

    def is_evident(self) -> bool:
        """Return whether no row lies beyond the bound, and that is not by chance."""
        if self.gap < 0:
            return False
        return (
            (self.gap == 0 and self.repeats >= LEAST_REPEATS)
            or self._expects_rows_beyond()
            or self._differs_by_factors()
        )

    def _expects_rows_beyond(self) -> bool:
        used = [(upper, lower) for upper, lower in LEVELS if self.n * lower >= LEAST_EXPECTED]
        return bool(used) and all(self.n * _share_beyond(*levels, self.quantile) >= LEAST_EXPECTED for levels in used)

    def _differs_by_factors(self) -> bool:
        if not self.is_zero or self.n < LEAST_FACTOR_ROWS:
            return False
        near, middle, far = (self.quantile(q) for q in (0.1, 0.5, 0.9))
        return far >= FACTOR * near and far - middle >= SKEW * (middle - near)


def _share_beyond(upper: float, lower: float, quantile: Callable[[float], float]) -> float:
    """Return the share of a Gaussian through two quantiles that lies beyond the bound."""
    near, far = quantile(lower), quantile(upper)
    if far <= near:
        return lower if near <= 0 else 0.0
    slope = (ndtri(upper) - ndtri(lower)) / (far - near)
    return float(ndtr(ndtri(lower) - near * slope))
