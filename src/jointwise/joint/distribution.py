"""Distributions as tables: the values that variables take, with exact probabilities.

A table has a row for each category, each value, or each interval between round numbers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.joint.events import Interval, Point, Region, Values
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Kind, Variable

if TYPE_CHECKING:
    from jointwise.joint.density import JointDensity

# Intervals that a numeric variable is shown in, and the share of its mass beyond the first and the last edge.
INTERVALS, TAIL = 10, 0.005
# Integers, or point masses of a number, are shown one by one up to this many.
SINGLE_VALUES = 16
# Smallest share of an integer's rows that gives one value a row of its own between the ranges.
SPIKE_SHARE = 0.05
# Most rows of a table of several variables, and how many of them are made at once.
MOST_ROWS, BLOCK_ROWS = 1_000_000, 100_000
# Steps between edges are these numbers times a power of ten.
_ROUND = np.array([1.0, 2.0, 2.5, 5.0, 10.0])

Columns = dict[str, list[Any]]


class Partition(NamedTuple):
    """The values of a variable, cut into rows."""

    labels: tuple[Any, ...]  # a category or value as it is, an interval as a question writes it: "30..40"
    regions: tuple[Region, ...]  # the same for the density; an interval leaves out points with rows of their own


@dataclass(frozen=True, eq=False)
class Distribution:
    """Probabilities of all combinations of rows of some variables.

    Parameters
    ----------
    names : tuple of str
        The variables.
    parts : tuple of Partition
        The rows of each.
    table : array with a dimension for each variable
        Probability of each combination.
    """

    names: tuple[str, ...]
    parts: tuple[Partition, ...]
    table: FloatArray

    def blocks(self, top: int | None = None) -> Iterator[Columns]:
        """Blocks of columns: a row for each combination and its probability, or only the ``top`` most probable."""
        flat = self.table.ravel()
        order = np.arange(flat.size) if top is None else np.argsort(-flat, kind="stable")[:top]
        for start in range(0, max(len(order), 1), BLOCK_ROWS):
            rows = order[start : start + BLOCK_ROWS]
            places = np.unravel_index(rows, self.table.shape)
            columns: Columns = {
                name: [part.labels[i] for i in place]
                for name, part, place in zip(self.names, self.parts, places, strict=True)
            }
            yield columns | {"probability": [float(f"{p:.10g}") for p in flat[rows].tolist()]}


def distribution(density: JointDensity, names: Sequence[str]) -> Distribution:
    """Return the distribution of some variables, at most a million combinations of rows."""
    parts = tuple(partition(density, name) for name in names)
    if prod(len(part.labels) for part in parts) > MOST_ROWS:
        raise InputError(f"A table of {len(names)} variables would have over {MOST_ROWS:,} rows; ask for fewer.")
    regions = {density.schema.index(name): part.regions for name, part in zip(names, parts, strict=True)}
    return Distribution(tuple(names), parts, density.mixture.crosstab(regions))


def partition(density: JointDensity, name: str) -> Partition:
    """Rows of one variable: its categories, its few values, or intervals between round numbers."""
    variable = density.schema[name]
    if variable.categories is not None:
        regions: list[Region] = [Point(float(code)) for code in range(len(variable.categories))]
    elif variable.kind is Kind.INTEGER:
        regions = _integers(density, name)
    else:
        regions = _intervals(density, name)
    apart = frozenset(region.value for region in regions if isinstance(region, Point))
    possible = density.mixture.crosstab({density.schema.index(name): regions}) > 0
    kept = tuple(region for region, keep in zip(regions, possible, strict=True) if keep)
    return Partition(tuple(label(variable, region, apart) for region in kept), kept)


def label(variable: Variable, region: Region, apart: Container[float] = ()) -> Any:
    """Name of a row: its value or its interval. The interval excludes ends that are rows of their own.

    >>> pay = Variable("pay", "continuous")
    >>> [label(pay, region, {1.0}) for region in (Interval(0, 1), Point(1), Interval(1, 2), Interval(1, np.inf))]
    ['0..<1', 1.0, '>1..2', '>1']
    """
    if isinstance(region, Point):
        return _value(variable, region.value)
    assert isinstance(region, Interval)  # rows are points and intervals
    half = variable.step / 2  # a value lies in the middle of what is rounded to it
    first, last = round(region.low + half, 10), round(region.high - half, 10)
    if first == last:
        return _value(variable, first)
    low, high = (_shown(variable, end) if np.isfinite(end) else "" for end in (first, last))
    above, below = region.low in apart, region.high in apart
    if (above and not high) or (below and not low):
        return f">{low}" if above else f"<{high}"
    return f"{'>' * above}{low}..{'<' * below}{high}"


def _value(variable: Variable, number: float) -> Any:
    value = variable.decode_value(number)
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _shown(variable: Variable, number: float) -> str:
    if is_temporal(variable.dtype):
        day = variable.decode_value(number)
        whole = isinstance(day, dt.datetime) and float(number).is_integer() and day.tzinfo is None
        return str(day.date() if whole else day.isoformat())
    return f"{number + 0.0:.10g}"  # zero has no sign


def _integers(density: JointDensity, name: str) -> list[Region]:
    first, low, high, last = density.quantile(name, [0.0, TAIL, 1 - TAIL, 1.0]).astype(float)
    if last - first < SINGLE_VALUES:
        return [Point(value) for value in np.arange(first, last + 1)]
    step = np.floor(max(_step(high - low), 1.0))  # steps of 2.5 would make unequal rows
    starts = np.arange(np.ceil(low / step) * step, high + 1, step)
    spikes = _spikes(density, density.schema.index(name), SPIKE_SHARE)
    edges = np.unique(np.concatenate([[first], starts[starts > first], spikes, spikes + 1, [last + 1]]))
    return [Interval(a, b - 1) for a, b in pairwise(edges)]


def _rounded(density: JointDensity, name: str) -> list[Region]:
    """Rows of a variable with a step: ranges from a first to a last value, and each point mass by itself."""
    n = density.schema.index(name)
    unit = density.schema.variables[n].step
    spikes = _spikes(density, n)
    low, high = _quantiles(density, name, (TAIL, 1 - TAIL))
    first, last = _quantiles(density, name, (0.0, 1.0))
    width = max(_step(high - low), unit)
    starts = np.round(np.arange(np.ceil(low / width) * width, high, width) / unit) * unit
    edges = np.unique(np.concatenate([starts, spikes, spikes + unit]).round(10)) - unit / 2
    edges = np.concatenate([[first - unit / 2], edges[(edges > first) & (edges < last)], [last + unit / 2]])
    return [Interval(float(a), float(b)) for a, b in pairwise(edges)]


def _intervals(density: JointDensity, name: str) -> list[Region]:
    n = density.schema.index(name)
    is_continuous = density.mixture.dictionary(n).is_continuous
    if density.schema.variables[n].step and is_continuous:
        return _rounded(density, name)
    spikes = _spikes(density, n)
    low, high = _quantiles(density, name, (TAIL, 1 - TAIL))
    first, last = _quantiles(density, name, (0.0, 1.0))
    points: list[Region] = [Point(float(spike)) for spike in spikes]
    if not is_continuous:
        return points
    step = _step(high - low) if high > low else 1.0
    inner = np.arange(np.ceil(low / step) * step, high, step).round(12)
    inner = np.union1d(inner, spikes)  # an interval ends at a point mass, and the next one begins there
    edges = np.concatenate([[first], inner[(inner > first) & (inner < last)], [last]])
    ranges: list[Region] = [Interval(float(a), float(b)) for a, b in pairwise(edges)]
    return sorted([*points, *ranges], key=_start)


def _start(region: Region) -> tuple[float, bool]:
    """Key that sorts rows by where they begin; a point mass comes before the interval that begins there."""
    if isinstance(region, Point):
        return region.value, False
    assert isinstance(region, Interval)  # rows are points and intervals
    return region.low, True


def _spikes(density: JointDensity, n: int, share: float = 0.0) -> FloatArray:
    """Values with a probability of their own above ``share``; if there are many, the most probable of them."""
    found = np.union1d(density.schema.variables[n].spikes, density.mixture.dictionary(n).spikes)
    if not len(found):
        return found
    mass = density.mixture.crosstab({n: [Values((value,)) for value in found]})
    chosen = np.argsort(-mass, kind="stable")[:SINGLE_VALUES]
    return np.sort(found[chosen[mass[chosen] > share]])


def _quantiles(density: JointDensity, name: str, levels: tuple[float, float]) -> tuple[float, float]:
    """Two quantiles as numbers, also for dates."""
    low, high = density.mixture.margin(density.schema.index(name)).quantiles(np.array(levels))
    return float(low), float(high)


def _step(width: float) -> float:
    """Round number near a tenth of ``width``."""
    rough = max(width, np.finfo(float).tiny) / INTERVALS
    power = 10.0 ** np.floor(np.log10(rough))
    return float(power * _ROUND[np.searchsorted(_ROUND, rough / power * (1 - 1e-9))])
