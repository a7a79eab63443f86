"""Conditionals: the law of one variable in each of many rows, given their other cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

import numpy as np

from jointwise._numerics import far_apart, narrowed, smallest_true
from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.joint.margin import ROUNDING

# Floats beyond this are all integers.
LARGEST_FRACTION = 2.0**52


class Conditionals(ABC):
    """Law of one variable in each of n rows.

    Attributes
    ----------
    log_evidence : array of shape (n,)
        Log-density of the other cells of each row.
    """

    log_evidence: FloatArray

    @abstractmethod
    def pdf(self, points: FloatArray) -> FloatArray:
        """Density of each row's law at each of the points; shape (n, points)."""

    @abstractmethod
    def cdf(self, x: FloatArray) -> FloatArray:
        """P(X <= x[i]) in each row i; shape (n,)."""

    @abstractmethod
    def mean(self) -> FloatArray:
        """Mean in each row, NaN where there is none; shape (n,)."""

    @abstractmethod
    def bracket(self, q: float) -> tuple[FloatArray, FloatArray]:
        """Numbers between which the q-quantile of each row lies; shapes (n,)."""

    # ---- what makes quantiles fast -----------------------------------------------------------------------

    @property
    def whole(self) -> bool:
        """Whether the variable holds integers alone."""
        return False

    @property
    def jumps(self) -> FloatArray:
        """Values at which the cdf of a row may jump, increasing; the search is slower at others, but as exact."""
        return np.empty(0)

    def cdf_in(self, rows: IntArray, x: FloatArray) -> FloatArray:
        """P(X <= x[k]) in row rows[k], each row at most once; shape (len(rows),)."""
        every = np.zeros(len(self.log_evidence))
        every[rows] = x
        return self.cdf(every)[rows]

    def quantile(self, q: float) -> FloatArray:
        """Smallest x with P(X <= x) >= q in each row; shape (n,)."""
        low, high = self.bracket(q)
        if self.whole and max(np.abs(low).max(initial=0.0), np.abs(high).max(initial=0.0)) < LARGEST_FRACTION:
            return self._whole_quantile(q, np.floor(low) - 1, np.ceil(high))
        low, high, rows = self._beside_jumps(q, low, high)
        finite = np.isfinite(low[rows]) & np.isfinite(high[rows])
        smooth = rows[finite]
        low[smooth], high[smooth] = narrowed(
            lambda at, x: self.cdf_in(smooth[at], x) - _reached(q), low[smooth], high[smooth]
        )
        wide = far_apart(low[rows], high[rows])
        for own in (rows[~wide], rows[wide]):  # so that a few rows do not hold up the others
            high[own] = smallest_true(partial(self._reaches, q, own), low[own], high[own])
        return high

    def _reaches(self, q: float, rows: IntArray, x: FloatArray) -> BoolArray:
        return np.asarray(self.cdf_in(rows, x) >= _reached(q))

    def _whole_quantile(self, q: float, low: FloatArray, high: FloatArray) -> FloatArray:
        """Bisect integers; ``low`` is below every quantile."""
        rows = np.flatnonzero(high - low > 1)
        while rows.size:
            middle = np.floor(0.5 * (low[rows] + high[rows]))
            reached = self._reaches(q, rows, middle)
            high[rows[reached]], low[rows[~reached]] = middle[reached], middle[~reached]
            rows = rows[high[rows] - low[rows] > 1]
        return high

    def _beside_jumps(self, q: float, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return brackets without jumps inside, and the rows whose quantile is not a jump, which is ``high`` then."""
        ends = np.concatenate([[-np.inf], self.jumps, [np.inf]])
        rows = np.arange(len(low))
        # the last jump below the quantile, and the first at or above it
        below, above = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), len(ends) - 1)
        open_rows = rows if len(ends) > 2 else rows[:0]
        while open_rows.size:
            middle = (below[open_rows] + above[open_rows]) // 2
            reached = self._reaches(q, open_rows, ends[middle])
            above[open_rows[reached]], below[open_rows[~reached]] = middle[reached], middle[~reached]
            open_rows = open_rows[above[open_rows] - below[open_rows] > 1]
        low, high = np.maximum(low, ends[below]), np.minimum(high, ends[above])
        at_jump = np.flatnonzero(high == ends[above])
        before = np.nextafter(high[at_jump], -np.inf)
        settled = ~self._reaches(q, at_jump, before) if at_jump.size else np.empty(0, dtype=bool)
        high[at_jump[~settled]] = before[~settled]
        return np.minimum(low, high), high, np.setdiff1d(rows, at_jump[settled])


def _reached(q: float) -> float:
    return q * (1 - ROUNDING)
