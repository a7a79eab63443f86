"""Cells: the values of one column in a few sets that can be asked for, such as ``age in 30..40`` or ``gain=0``.

A check compares a model with rows on such sets. Values that many rows share stand alone, the others fall into
intervals that are finer in the tails, and every edge between two cells also makes the two sides of the column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointwise._typing import AnyArray, BoolArray, FloatArray, IntArray
from jointwise.axes import Axis, BinnedAxis, DiscreteAxis, midpoints
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import OUTSIDE, Kind, Variable

# A value or bin with this share of the rows has a cell of its own.
HEAVY = 0.04
# Rows that a cell should hold: fewer settle nothing, not even together with others.
CELL_ROWS = 20
# Shares of the remaining rows at which they are cut: closer in the tails, where a smooth model errs.
LEVELS = np.array([0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99])
# Bins of a column of numbers before they are grouped, and the most categories with a cell each.
FINE_BINS, MOST_CATEGORIES = 128, 16
# A number repeats more than rounding explains if so many times as often as its neighbours, with this share of the rows.
SPIKE_RATIO, SPIKE_SHARE, NEIGHBOURS = 20, 0.02, 4
# Merged categories that are named one by one, and characters of a name or value.
NAMED, NAME_LENGTH = 4, 60

_SIGNS = re.compile(r"""["'=<>!|,(){}]|\.\.|(?:^|\s)in(?:\s|$)|^\s|\s$|^$""")


@dataclass(frozen=True)
class Subset:
    """Some cells of a column.

    Parameters
    ----------
    text : str
        What a question calls it.
    kind : str
        "value" for a single number, "category", "interval", "side", or "new" for categories that the model does not
        know.
    cells : tuple of int
    """

    text: str
    kind: str
    cells: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Cells:
    """The values of a column in K cells.

    Parameters
    ----------
    name : str
    masses : array of shape (K, F)
        Probability of each cell under each component.
    codes : array of shape (n,)
        Cell of each row; K where it has a gap.
    asked : tuple of Subset
        Cells and sides whose probability is compared.
    given : tuple of Subset
        Cells and sides that are conditions.
    """

    name: str
    masses: FloatArray
    codes: IntArray
    asked: tuple[Subset, ...]
    given: tuple[Subset, ...]

    @property
    def n_cells(self) -> int:
        """Number of cells K."""
        return len(self.masses)

    def members(self, subsets: Iterable[Subset]) -> FloatArray:
        """Return a row per subset with ones at its cells; shape (S, K)."""
        subsets = list(subsets)
        out = np.zeros((len(subsets), self.n_cells))
        for row, subset in zip(out, subsets, strict=True):
            row[list(subset.cells)] = 1.0
        return out


def cells_of_bins(
    variable: Variable, axis: Axis, masses: FloatArray, codes: AnyArray, weights: FloatArray | None
) -> Cells:
    """Group the bins of an axis into cells.

    Parameters
    ----------
    variable : Variable
    axis : Axis
        Of a categorical variable, one bin for each of its categories.
    masses : array of shape (n_bins, F)
        Probability of each bin under each component.
    codes : array of shape (n,)
        Bin of each row, `n_bins` where it has a gap.
    weights : array of shape (n,), optional
    """
    counts = np.bincount(codes, weights, minlength=axis.n_bins + 1)[: axis.n_bins].astype(np.float64)
    if isinstance(axis, DiscreteAxis):
        groups, subsets, sides = _categories(variable, counts, masses.mean(axis=1))
    else:
        assert isinstance(axis, BinnedAxis)  # the two kinds of axis there are
        groups, subsets, sides = _intervals(variable, axis, counts)
    n_cells = int(groups.max()) + 1
    grouped = np.zeros((n_cells, masses.shape[1]))
    np.add.at(grouped, groups, masses)
    shares = np.bincount(groups, counts, n_cells) / max(counts.sum(), 1.0)
    # of the two sides of an edge the smaller is asked for: the other errs by as much
    smaller = [min(pair, key=lambda side: float(shares[list(side.cells)].sum())) for pair in sides]
    both = [side for pair in sides for side in pair]
    known = [subset for subset in subsets if subset.kind != "new"]
    cell_codes = np.append(groups, n_cells)[codes]
    return Cells(
        variable.name,
        grouped,
        cell_codes,
        tuple(_distinct([*subsets, *smaller])),
        tuple(_distinct([*known, *both])),
    )


def axis_of_values(variable: Variable, values: FloatArray) -> Axis:
    """Return fine bins for the values of a column, NaN for gaps; edges are short numbers.

    Parameters
    ----------
    variable : Variable
    values : array of shape (n,)
    """
    if variable.categories is not None:
        return DiscreteAxis(np.arange(OUTSIDE, len(variable.categories)))
    found, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    if len(found) == 0:
        return BinnedAxis(np.empty(0))
    spikes = np.empty(0) if variable.kind is Kind.INTEGER else _spikes(variable, found, counts)
    rest = ~np.isin(found, spikes)
    found, counts = found[rest], counts[rest]
    gaps = BinnedAxis.quantiles(found, counts, FINE_BINS).edges if len(found) else np.empty(0)
    heavy = found[counts >= HEAVY * values.size]
    if variable.kind is Kind.INTEGER:
        # whole numbers: each heavy one between two edges of its own, so that it is asked for as it is
        singles = found if len(found) <= MOST_CATEGORIES else heavy
        return BinnedAxis(np.unique(np.concatenate([np.floor(gaps) + 0.5, singles - 0.5, singles + 0.5])))
    around = midpoints(found, found)[_beside(found, heavy)] if len(found) > 1 else np.empty(0)
    below = np.searchsorted(found, edges := np.union1d(gaps, around), side="right") - 1
    short = [_short(e, found[i], found[i + 1]) for e, i in zip(edges, below, strict=True)]
    return BinnedAxis(np.unique(short), spikes)


def _spikes(variable: Variable, values: FloatArray, counts: IntArray) -> FloatArray:
    """Values of a number with a probability of their own: those known, and those that rounding does not explain."""
    found = [value for value in variable.spikes if value in values]
    for i in np.flatnonzero(counts >= max(SPIKE_SHARE * counts.sum(), CELL_ROWS)):
        near = np.concatenate([counts[max(i - NEIGHBOURS, 0) : i], counts[i + 1 : i + 1 + NEIGHBOURS]])
        if not len(near) or counts[i] > SPIKE_RATIO * np.median(near):
            found.append(float(values[i]))
    return np.unique(np.array(found, dtype=np.float64))


def _beside(values: FloatArray, heavy: FloatArray) -> IntArray:
    """Positions of the gaps on both sides of some of the values."""
    at = np.searchsorted(values, heavy)
    beside = np.unique(np.concatenate([at - 1, at]))
    return np.asarray(beside[(beside >= 0) & (beside < len(values) - 1)])


def _short(edge: float, below: float, above: float) -> float:
    """Return the number of fewest digits near an edge that keeps the two values next to it apart.

    >>> _short(57.0, 0.0, 114.0), _short(0.15000000000000002, 0.1, 0.2)
    (60.0, 0.15)
    """
    for digits in range(1, 17):
        rounded = float(f"{edge:.{digits}g}")
        if below < rounded < above:
            return rounded
    return float(edge)


# ---- categories ----------------------------------------------------------------------------------------------

_Grouped = tuple[IntArray, list[Subset], list[tuple[Subset, Subset]]]


def _categories(variable: Variable, counts: FloatArray, model: FloatArray) -> _Grouped:
    """Give each category a cell; of many, the largest, and one for all others. The first bin may be of new ones."""
    assert variable.categories is not None  # the caller asked
    offset = len(counts) - len(variable.categories)
    names = [*["(new)"] * offset, *(_text(_plain_category(c)) for c in variable.categories)]
    name = _text(variable.name)
    groups = np.arange(len(counts))
    if len(counts) > MOST_CATEGORIES:
        size = counts / max(counts.sum(), 1.0) + model / max(model.sum(), 1e-300)
        size[:offset] = np.inf
        large = np.sort(np.argsort(-size, kind="stable")[: MOST_CATEGORIES - 1])
        groups = np.full(len(counts), len(large))
        groups[large] = np.arange(len(large))
    subsets = []
    for g in range(int(groups.max()) + 1):
        held = np.flatnonzero(groups == g)
        kind = "new" if held[0] < offset else "category"
        subsets.append(Subset(f"{name}={names[held[0]]}", kind, (g,)))
        if len(held) > 1:
            several = ", ".join(names[i] for i in held) if len(held) <= NAMED else f"{len(held)} rarer ones"
            subsets[-1] = Subset(f"{name} in {{{several}}}", "category", (g,))
    if not variable.ordered or len(counts) > MOST_CATEGORIES:
        return groups, subsets, []
    sides = [
        (
            Subset(f"{name} <= {names[i]}", "side", tuple(range(offset, i + 1))),
            Subset(f"{name} > {names[i]}", "side", tuple(range(i + 1, len(counts)))),
        )
        for i in range(offset, len(counts) - 1)
    ]
    return groups, subsets, sides


def _plain_category(category: Any) -> str:
    return str(category).lower() if isinstance(category, bool) else str(category)


# ---- numbers -------------------------------------------------------------------------------------------------


def _intervals(variable: Variable, axis: BinnedAxis, counts: FloatArray) -> _Grouped:
    """Group the intervals of an axis; large spikes have cells of their own, small ones stay in their interval."""
    total = counts.sum()
    intervals, at_spikes = counts[: axis.n_intervals], counts[axis.n_intervals :]
    alone = (at_spikes >= HEAVY * total) & (at_spikes >= CELL_ROWS)
    inside = np.searchsorted(axis.edges, axis.spikes)
    merged = intervals.copy()
    np.add.at(merged, inside[~alone], at_spikes[~alone])
    first = _starts(merged, total)
    groups = np.empty(axis.n_bins, dtype=np.int64)
    groups[: axis.n_intervals] = np.cumsum(first) - 1
    groups[axis.n_intervals :] = groups[inside]
    n_groups = int(first.sum())
    groups[axis.n_intervals :][alone] = n_groups + np.arange(int(alone.sum()))
    starts = np.flatnonzero(first)
    cuts = axis.edges[starts[1:] - 1]
    low, high = np.concatenate([[-np.inf], cuts]), np.concatenate([cuts, [np.inf]])
    spikes = axis.spikes[alone]
    subsets = []
    for g in range(n_groups):
        text = interval_text(variable, low[g], high[g])
        kind = "interval" if " in " in text or "<" in text or ">" in text else "value"
        left_out = [_number(variable, s) for s in spikes if low[g] < s <= high[g]]
        subsets.append(Subset(f"{text} without {', '.join(left_out)}" if left_out else text, kind, (g,)))
    subsets += [Subset(value_text(variable, s), "value", (n_groups + k,)) for k, s in enumerate(spikes)]
    sides = []
    for g, cut in enumerate(cuts):
        lower = [*range(g + 1), *(n_groups + k for k, s in enumerate(spikes) if s <= cut)]
        upper = [*range(g + 1, n_groups), *(n_groups + k for k, s in enumerate(spikes) if s > cut)]
        sides.append((
            Subset(interval_text(variable, -np.inf, cut), "side", tuple(lower)),
            Subset(interval_text(variable, cut, np.inf), "side", tuple(upper)),
        ))  # fmt: skip
    return groups, subsets, sides


def _starts(counts: FloatArray, total: float) -> BoolArray:
    """Which bins begin a group: heavy ones stand alone, others are cut at `LEVELS` of what they hold."""
    heavy = (counts >= HEAVY * total) & (counts > 0)
    light = np.where(heavy, 0.0, counts)
    middle = (np.cumsum(light) - light / 2) / max(float(light.sum()), 1e-300)
    level = np.searchsorted(LEVELS, middle)
    first = np.ones(len(counts), dtype=bool)
    rows = 0.0
    for i in range(1, len(counts)):
        rows = counts[i - 1] if first[i - 1] else rows + counts[i - 1]
        joins = level[i] == level[i - 1] or rows < CELL_ROWS
        first[i] = heavy[i] or heavy[i - 1] or not joins
    return first


def interval_text(variable: Variable, low: float, high: float) -> str:
    """Return what a question calls the values above ``low``, up to ``high``.

    >>> age = Variable("age", "integer", dtype="int64")
    >>> interval_text(age, 29.5, 40.5), interval_text(age, 39.5, 40.5), interval_text(age, -np.inf, 17.5)
    ('age in 30..40', 'age=40', 'age <= 17')
    """
    name = _text(variable.name)
    whole = variable.kind is Kind.INTEGER or variable.dtype == "date"
    first, last = (np.floor(low) + 1, np.floor(high)) if whole else (low, high)
    if np.isneginf(low) and np.isposinf(high):
        return f"{name} in .."
    if np.isneginf(low):
        return f"{name} <= {_number(variable, last)}"
    if np.isposinf(high):
        return f"{name} {'>=' if whole else '>'} {_number(variable, first)}"
    if first == last:
        return f"{name}={_number(variable, first)}"
    return f"{name} in {_number(variable, first)}..{_number(variable, last)}"


def value_text(variable: Variable, value: float) -> str:
    """Return what a question calls a single number."""
    return f"{_text(variable.name)}={_number(variable, value)}"


def beyond_text(variable: Variable, end: float, *, above: bool) -> str:
    """Return what a question calls the values beyond the largest or smallest of the rows."""
    return f"{_text(variable.name)} {'>' if above else '<'} {_number(variable, end)}"


def _number(variable: Variable, number: float) -> str:
    if is_temporal(variable.dtype):
        moment = variable.decode_value(number)
        return str(number) if moment is None else str(moment.isoformat())
    return f"{number + 0.0:.10g}"  # zero has no sign


def _text(name: str) -> str:
    """Return a name or value as a question writes it: in quotes where it has signs.

    >>> _text("hours per week"), _text("a=b")
    ('hours per week', "'a=b'")
    """
    name = shortened(name)
    if not _SIGNS.search(name):
        return name
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def shortened(name: str) -> str:
    """Return a name, cut short if it is very long."""
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 3]}..."


def _distinct(subsets: list[Subset]) -> list[Subset]:
    """Subsets without those that hold the same cells as an earlier one."""
    return list({subset.cells: subset for subset in reversed(subsets)}.values())[::-1]
