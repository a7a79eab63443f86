"""Support: the bounds of a column that its rows make plain.

A bound is plain if the column piles up at it, as a sentinel or a top code does. The bounds that numbers have by nature
(zero; one and a hundred for shares) are plain if no row lies beyond and rows would lie there if the column thinned out
as a Gaussian does. So is zero for positive numbers that differ by factors rather than by sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from scipy.special import ndtr, ndtri

from jointwise.marginals.sketch import ValueSketch

# Bounds that numbers have by nature: below which, and above which, there is nothing.
LOWER, UPPER = (0.0,), (0.0, 1.0, 100.0)
# A Gaussian through two quantiles tells how many rows to expect beyond a bound: from the body to far in the tail.
LEVELS = ((0.5, 0.05), (0.25, 0.025), (0.1, 0.01))
# With so many rows expected beyond a bound, none there is no chance (1 in 150). A level that fewer rows lie below is
# not asked.
LEAST_EXPECTED = 5.0
# A fraction that comes back so often at a bound is a pile of its own.
LEAST_REPEATS = 5
# Positive numbers differ by factors where the 90% quantile is so many times the 10% quantile, and lies so many times
# further from the median.
FACTOR, SKEW = 5.0, 1.5
# Fewer rows than this tell nothing of piles at bounds, or of factors.
LEAST_ROWS, LEAST_FACTOR_ROWS = 30, 100


def plain_support(sketch: ValueSketch, spikes: Sequence[float], *, natural: bool = True) -> tuple[float, float]:
    """Return the lower and upper bound of a column, infinite where none is plain.

    Parameters
    ----------
    sketch : ValueSketch
    spikes : sequence of float
        Values that repeat far more often than a density allows; one at an end of the range is a bound.
    natural : bool
        Whether zero, one and a hundred mean something; not so for dates.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> waiting = ValueSketch.of(rng.exponential(size=1000))
    >>> plain_support(waiting, ()), plain_support(ValueSketch.of(rng.normal(size=1000)), ())
    ((0.0, inf), (-inf, inf))
    """
    if sketch.n < LEAST_ROWS or sketch.min == sketch.max:
        return -inf, inf
    low = sketch.min if sketch.min in spikes else -inf
    high = sketch.max if sketch.max in spikes else inf
    if natural and low == -inf:
        low = max((b for b in LOWER if _Side.below(sketch, b).is_plain()), default=-inf)
    if natural and high == inf:
        # one and a hundred are bounds of shares, which are not negative
        bounds = [b for b in UPPER if b == 0 or sketch.min >= 0]
        high = min((b for b in bounds if _Side.above(sketch, b).is_plain()), default=inf)
    return low, high


@dataclass(frozen=True)
class _Side:
    """A column as seen from a bound, in distances to it.

    Parameters
    ----------
    gap : float
        Distance of the nearest value; negative if there are values beyond.
    repeats : float
        Rows that hold the nearest value; of integers none, for they repeat anywhere.
    n : float
        Number of rows.
    quantile : callable
        Distance within which a share of the rows lies.
    is_zero : bool
        Whether the bound is zero, from which factors count.
    """

    gap: float
    repeats: float
    n: float
    quantile: Callable[[float], float]
    is_zero: bool

    @classmethod
    def below(cls, sketch: ValueSketch, bound: float) -> _Side:
        repeats = 0.0 if sketch.is_integral else float(sketch.low_counts[0])
        return cls(sketch.min - bound, repeats, sketch.n, lambda q: float(sketch.quantile(q)) - bound, bound == 0)

    @classmethod
    def above(cls, sketch: ValueSketch, bound: float) -> _Side:
        repeats = 0.0 if sketch.is_integral else float(sketch.high_counts[-1])
        return cls(bound - sketch.max, repeats, sketch.n, lambda q: bound - float(sketch.quantile(1 - q)), bound == 0)

    def is_plain(self) -> bool:
        """Whether nothing lies beyond the bound, and that is no chance."""
        if self.gap < 0:
            return False
        return (self.gap == 0 and self.repeats >= LEAST_REPEATS) or self._would_be_passed() or self._has_factors()

    def _would_be_passed(self) -> bool:
        told = [(upper, lower) for upper, lower in LEVELS if self.n * lower >= LEAST_EXPECTED]
        return bool(told) and all(self.n * _share_beyond(*levels, self.quantile) >= LEAST_EXPECTED for levels in told)

    def _has_factors(self) -> bool:
        if not self.is_zero or self.n < LEAST_FACTOR_ROWS:
            return False
        near, middle, far = (self.quantile(q) for q in (0.1, 0.5, 0.9))
        return far >= FACTOR * near and far - middle >= SKEW * (middle - near)


def _share_beyond(upper: float, lower: float, quantile: Callable[[float], float]) -> float:
    """Share of a Gaussian through two quantiles that lies beyond the bound."""
    near, far = quantile(lower), quantile(upper)
    if far <= near:
        return lower if near <= 0 else 0.0
    slope = (ndtri(upper) - ndtri(lower)) / (far - near)
    return float(ndtr(ndtri(lower) - near * slope))
