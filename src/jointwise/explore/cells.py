"""Cells of a column on the page: the categories, or intervals between round numbers, and the spikes.

The page draws a column by the probabilities of its cells. Evidence need not follow them: it may be any interval.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from jointwise._typing import FloatArray
from jointwise.joint.events import Interval, Point, Region
from jointwise.joint.margin import Margin
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Kind, Variable

# Most cells between the two open ones at the ends.
MOST_CELLS = 60
# Quantiles between which a column is drawn; what lies beyond is in the two open cells.
ENDS = (0.001, 0.999)
# Steps of dates and times in days, up to a week; then months.
_DAYS = (1 / 1440, 5 / 1440, 15 / 1440, 1 / 24, 3 / 24, 6 / 24, 12 / 24, 1.0, 2.0, 7.0, 14.0)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
_EPOCH = dt.date(1970, 1, 1)
# Dates that Python can name, in days.
_NAMED = (-700_000.0, 2_900_000.0)


@dataclass(frozen=True, eq=False)
class Cells:
    """How a column of numbers is cut.

    Parameters
    ----------
    edges : array of shape (K,)
        Inner edges, increasing: there are K + 1 cells, the first and the last of them open.
    ends : tuple of two floats
        A value that stands for each of the two open cells.
    spikes : array of shape (S,)
        Values that are cells of their own.
    """

    edges: FloatArray
    ends: tuple[float, float]
    spikes: FloatArray

    def regions(self) -> list[Region]:
        """Return the cells as regions: the intervals, then the spikes.

        >>> Cells(np.array([0.0, 1.0]), (-1.0, 2.0), np.array([0.5])).regions()[1:]
        [Interval(low=0.0, high=1.0), Interval(low=1.0, high=inf), Point(value=0.5, half=0.0)]
        """
        bounds = [-np.inf, *self.edges.tolist(), np.inf]
        intervals = [Interval(low, high) for low, high in pairwise(bounds)]
        return [*intervals, *map(Point, self.spikes.tolist())]


class Law(Protocol):
    """The law of one column, as far as its cells need it."""

    def quantiles(self, q: FloatArray) -> FloatArray:
        """Return the quantiles at some levels."""

    def below(self, x: FloatArray) -> FloatArray:
        """Return P(X <= x) at some points."""


@dataclass(frozen=True, eq=False)
class MarginLaw:
    """A law that is a mixture of atoms.

    >>> from jointwise.dictionary import Dictionary
    >>> law = MarginLaw(Margin(Dictionary.grid("gaussian", 0, 0, n=1, scale=1), np.ones(1)))
    >>> law.quantiles(np.array([0.5])).round(6) + 0.0, law.below(np.array([0.0]))
    (array([0.]), array([0.5]))
    """

    margin: Margin

    def quantiles(self, q: FloatArray) -> FloatArray:
        """Return the quantiles at some levels."""
        return self.margin.quantiles(q)

    def below(self, x: FloatArray) -> FloatArray:
        """Return P(X <= x) at some points."""
        return np.asarray(self.margin.dictionary.cdf(x) @ self.margin.weights)


@dataclass(frozen=True, eq=False)
class DrawnLaw:
    """A law that is known by draws, (n,), where it would take long to find it.

    >>> law = DrawnLaw(np.array([1.0, 2.0, 3.0]))
    >>> law.quantiles(np.array([0.5])), law.below(np.array([2.5]))
    (array([2.]), array([0.66666667]))
    """

    values: FloatArray

    def quantiles(self, q: FloatArray) -> FloatArray:
        """Return the quantiles at some levels."""
        return np.asarray(np.quantile(self.values, q))

    def below(self, x: FloatArray) -> FloatArray:
        """Return P(X <= x) at some points."""
        return np.searchsorted(np.sort(self.values), x, side="right") / len(self.values)


def cells_of(variable: Variable, law: Law) -> Cells:
    """Return the cells of a number, from what is known of it and from its law.

    >>> law = DrawnLaw(np.linspace(-3.1, 3.1, 100))
    >>> cells_of(Variable("x", "continuous"), law).edges[[0, 1, -1]]
    array([-3.2, -3. ,  3.2])
    """
    low, high = _range(variable, law)
    if is_temporal(variable.dtype):
        half = variable.step / 2  # a rounded date stands for the times around it
        edges = _date_edges(low + half, high + half, variable.step) - half
    elif variable.kind is Kind.INTEGER or variable.step:
        edges = _stepped_edges(low, high, variable.step or 1.0)
    else:
        edges = _round_edges(low, high)
    spikes = np.array(sorted(variable.spikes)) if variable.kind is Kind.CONTINUOUS else np.empty(0)
    return Cells(edges, _tails(law, edges), spikes)


def _range(variable: Variable, law: Law) -> tuple[float, float]:
    """Return the ends between which a column is drawn: most of its law, and no more than was seen."""
    low, high = law.quantiles(np.array(ENDS)).tolist()
    seen = variable.observed
    low, high = float(np.fmax(low, seen[0])), float(np.fmin(high, seen[1]))
    if not (np.isfinite(low) and np.isfinite(high)):
        return 0.0, 1.0
    if low < high:
        return low, high
    room = max(abs(low) * 0.1, 0.5)  # one value: some room around it
    return low - room, low + room


def _round_edges(low: float, high: float) -> FloatArray:
    step = _round_step((high - low) / MOST_CELLS)
    first, last = np.floor(low / step), np.ceil(high / step)
    edges = np.unique(np.arange(first, last + 1) * step)
    return edges if len(edges) > 1 else np.array([low, np.nextafter(high, np.inf)])


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least a number."""
    power = 10.0 ** np.floor(np.log10(max(least, 1e-300)))
    return float(next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= least * (1 - 1e-9)))


def _stepped_edges(low: float, high: float, unit: float) -> FloatArray:
    """Return edges half a unit below multiples of a round number of units."""
    n_units = max(_round_step((high - low + unit) / unit / MOST_CELLS), 1.0)
    n_units = float(np.ceil(n_units))
    width = n_units * unit
    first, last = np.floor((low + unit / 2) / width), np.floor((high + unit / 2) / width) + 1
    return np.asarray((np.arange(first, last + 1) * n_units - 0.5) * unit)


def _date_edges(low: float, high: float, least: float) -> FloatArray:
    for step in _DAYS:
        if step >= least and (high - low) / step <= MOST_CELLS:
            start = 4.0 if step >= 7 else 0.0  # weeks begin on Mondays; the first of 1970 was a Thursday
            first, last = np.floor((low - start) / step), np.ceil((high - start) / step)
            return np.asarray(start + np.arange(first, last + 1) * step)
    if not _NAMED[0] < low < high < _NAMED[1]:
        return _round_edges(low, high)
    for step in _MONTHS:
        edges = _month_edges(low, high, step)
        if len(edges) <= MOST_CELLS + 1:
            return edges
    return _round_edges(low, high)


def _month_edges(low: float, high: float, step: int) -> FloatArray:
    """Return the first days of every ``step``-th month, from one before ``low`` to one after ``high``."""
    begin = dt.date.fromordinal(_EPOCH.toordinal() + int(np.floor(low)))
    month = (begin.year * 12 + begin.month - 1) // step * step
    edges: list[float] = []
    while not edges or edges[-1] <= high:
        edges.append(float((dt.date(month // 12, month % 12 + 1, 1) - _EPOCH).days))
        month += step
    return np.array(edges)


def _tails(law: Law, edges: FloatArray) -> tuple[float, float]:
    """Return the medians of what lies below the first and above the last edge; near them if there is nothing."""
    below, upto = law.below(edges[[0, -1]]).tolist()
    inside = edges[-1] - edges[0]
    levels = np.clip([below / 2, (1 + upto) / 2], 1e-12, 1 - 1e-12)
    low, high = law.quantiles(levels).tolist()
    low = low if below > 1e-9 and np.isfinite(low) else edges[0] - 0.01 * inside
    high = high if 1 - upto > 1e-9 and np.isfinite(high) else edges[-1] + 0.01 * inside
    return float(np.clip(low, edges[0] - inside, edges[0])), float(np.clip(high, edges[-1], edges[-1] + inside))
