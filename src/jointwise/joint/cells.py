"""Cells: a partition of the values of a column into sets such as ``age in 30..40`` or ``gain=0``.

A check compares a model with rows on such sets. A value that many rows share is a cell of its own. The other values
fall into intervals, which are finer in the tails. Every edge between two cells also splits the column into two sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from jointwise._typing import AnyArray, BoolArray, FloatArray, IntArray
from jointwise.axes import Axis, BinnedAxis, DiscreteAxis, midpoints
from jointwise.joint.events import Interval, Point, Region, Values
from jointwise.joint.questions import interval_text, is_single, number_text, quoted, value_text
from jointwise.tables.variables import OUTSIDE, Kind, Variable, as_text

# A value or bin with at least this share of the rows is a cell of its own.
HEAVY = 0.04
# Fewest rows of a cell: fewer are too few to compare.
CELL_ROWS = 20
# Quantiles at which the remaining rows are cut: closer in the tails, where a smooth model errs.
LEVELS = np.array([0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99])
# Bins of a column of numbers before they are grouped, and the most categories with a cell each.
FINE_BINS, MOST_CATEGORIES = 128, 16
# A number is a spike, not rounding, if it is this many times as frequent as the median of this many neighbours on each
# side, and has at least this share of the rows.
SPIKE_RATIO, NEIGHBOURS, SPIKE_SHARE = 20, 4, 0.02
# Most merged categories that a question names one by one.
NAMED = 4


@dataclass(frozen=True)
class Subset:
    """A set of cells of a column.

    Parameters
    ----------
    write : callable
        Returns the set as a question writes it; called only for what is shown.
    kind : str
        "value" (a single number), "category", "interval", "side", or "new" (categories unknown to the model).
    cells : tuple of int
        Positions of the cells.
    """

    write: Callable[[], str]
    kind: str
    cells: tuple[int, ...]

    @property
    def text(self) -> str:
        """The set as a question writes it."""
        return self.write()


@dataclass(frozen=True, eq=False)
class Cells:
    """The K cells of a column.

    Parameters
    ----------
    name : str
    masses : array of shape (K, F)
        Probability of each cell under each component.
    regions : tuple of K regions
        The cells as sets of values.
    codes : array of shape (n,)
        Cell of each row; K for a gap.
    asked : tuple of Subset
        Cells and sides whose probabilities are compared.
    given : tuple of Subset
        Cells and sides that serve as conditions.
    """

    name: str
    masses: FloatArray
    regions: tuple[Region, ...]
    codes: IntArray
    asked: tuple[Subset, ...]
    given: tuple[Subset, ...]

    @property
    def n_cells(self) -> int:
        """Number of cells K."""
        return len(self.masses)

    def members(self, subsets: Iterable[Subset]) -> FloatArray:
        """Return an indicator row for each subset, with ones at its cells; shape (S, K)."""
        return _members(list(subsets), self.n_cells)


def _members(subsets: Sequence[Subset], n_cells: int) -> FloatArray:
    """Return an indicator row for each subset, with ones at its cells; shape (S, K)."""
    out = np.zeros((len(subsets), n_cells))
    rows = np.repeat(np.arange(len(subsets)), [len(subset.cells) for subset in subsets])
    out[rows, [cell for subset in subsets for cell in subset.cells]] = 1.0
    return out


def cells_of_bins(
    variable: Variable, axis: Axis, masses: FloatArray, codes: AnyArray, weights: FloatArray | None
) -> Cells:
    """Group the bins of an axis into cells.

    Parameters
    ----------
    variable : Variable
    axis : Axis
        For a categorical variable, one bin per category, after a bin for new ones if there is one.
    masses : array of shape (n_bins, F)
        Probability of each bin under each component.
    codes : array of shape (n,)
        Bin of each row; `n_bins` for a gap.
    weights : array of shape (n,), optional
        How often each row counts.
    """
    counts = np.bincount(codes, weights, minlength=axis.n_bins + 1)[: axis.n_bins].astype(np.float64)
    if isinstance(axis, DiscreteAxis):
        groups, regions, subsets, sides = _categories(variable, counts, masses.mean(axis=1))
    else:
        assert isinstance(axis, BinnedAxis)  # there are only two kinds of axis
        groups, regions, subsets, sides = _intervals(variable, axis, counts)
    n_cells = int(groups.max()) + 1
    grouped = np.zeros((n_cells, masses.shape[1]))
    np.add.at(grouped, groups, masses)
    held = np.bincount(groups, counts, n_cells)
    both = [side for pair in sides for side in pair]
    rows = (_members(both, n_cells) @ held).reshape(-1, 2)
    # only the smaller side of each edge is compared: the other has the same error
    smaller = [pair[int(upper < lower)] for pair, (lower, upper) in zip(sides, rows, strict=True)]
    known = [subset for subset in subsets if subset.kind != "new"]
    asked, given = _distinct([*subsets, *smaller]), _distinct([*known, *both])
    return Cells(variable.name, grouped, tuple(regions), np.append(groups, n_cells)[codes], asked, given)


def axis_of_values(variable: Variable, values: FloatArray) -> Axis:
    """Return fine bins for the values of a column; their edges have few digits.

    Parameters
    ----------
    variable : Variable
    values : array of shape (n,)
        Encoded, with NaN for gaps.
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
        # each heavy integer lies between two edges of its own, so that it is compared on its own
        singles = found if len(found) <= MOST_CATEGORIES else heavy
        return BinnedAxis(np.unique(np.concatenate([np.floor(gaps) + 0.5, singles - 0.5, singles + 0.5])))
    around = midpoints(found, found)[_beside(found, heavy)] if len(found) > 1 else np.empty(0)
    below = np.searchsorted(found, edges := np.union1d(gaps, around), side="right") - 1
    short = [_short(e, found[i], found[i + 1]) for e, i in zip(edges, below, strict=True)]
    return BinnedAxis(np.unique(short), spikes)


def _spikes(variable: Variable, values: FloatArray, counts: IntArray) -> FloatArray:
    """Return the spikes of a column: those of the variable, and values too frequent to come from rounding."""
    found = [value for value in variable.spikes if value in values]
    for i in np.flatnonzero(counts >= max(SPIKE_SHARE * counts.sum(), CELL_ROWS)):
        near = np.concatenate([counts[max(i - NEIGHBOURS, 0) : i], counts[i + 1 : i + 1 + NEIGHBOURS]])
        if not len(near) or counts[i] > SPIKE_RATIO * np.median(near):
            found.append(float(values[i]))
    return np.unique(np.array(found, dtype=np.float64))


def _beside(values: FloatArray, heavy: FloatArray) -> IntArray:
    """Return the positions of the midpoints next to the heavy values, on both sides."""
    at = np.searchsorted(values, heavy)
    beside = np.unique(np.concatenate([at - 1, at]))
    return np.asarray(beside[(beside >= 0) & (beside < len(values) - 1)])


def _short(edge: float, below: float, above: float) -> float:
    """Round an edge to the fewest digits that still separate the two values next to it.

    >>> _short(57.0, 0.0, 114.0), _short(0.15000000000000002, 0.1, 0.2)
    (60.0, 0.15)
    """
    for digits in range(1, 17):
        rounded = float(f"{edge:.{digits}g}")
        if below < rounded < above:
            return rounded
    return float(edge)


# ---- categories ----------------------------------------------------------------------------------------------

# The cell of each bin, the values of each cell, each cell as a set, and the two sides of each edge.
_Grouped = tuple[IntArray, list[Region], list[Subset], list[tuple[Subset, Subset]]]


def _categories(variable: Variable, counts: FloatArray, model: FloatArray) -> _Grouped:
    """Give each category a cell. If there are many, only the largest get one and the others share a cell.

    The first bin may hold new categories.
    """
    assert variable.categories is not None  # the caller has checked
    offset = len(counts) - len(variable.categories)
    names = [*["(new)"] * offset, *(quoted(as_text(c)) for c in variable.categories)]
    name = quoted(variable.name)
    groups = np.arange(len(counts))
    if len(counts) > MOST_CATEGORIES:
        size = counts / max(counts.sum(), 1.0) + model / max(model.sum(), 1e-300)
        size[:offset] = np.inf
        large = np.sort(np.argsort(-size, kind="stable")[: MOST_CATEGORIES - 1])
        groups = np.full(len(counts), len(large))
        groups[large] = np.arange(len(large))
    subsets: list[Subset] = []
    regions: list[Region] = []
    for g in range(int(groups.max()) + 1):
        held = np.flatnonzero(groups == g)
        regions.append(Values(tuple((held - offset).astype(float).tolist())))
        kind = "new" if held[0] < offset and len(held) == 1 else "category"
        subsets.append(Subset(partial(_categories_text, name, [names[i] for i in held]), kind, (g,)))
    if not variable.ordered or len(counts) > MOST_CATEGORIES:
        return groups, regions, subsets, []
    sides = [
        (
            Subset(partial("{} <= {}".format, name, names[i]), "side", tuple(range(offset, i + 1))),
            Subset(partial("{} > {}".format, name, names[i]), "side", tuple(range(i + 1, len(counts)))),
        )
        for i in range(offset, len(counts) - 1)
    ]
    return groups, regions, subsets, sides


def _categories_text(name: str, categories: Sequence[str]) -> str:
    """Write one or several categories of a column.

    >>> _categories_text("size", ["S"]), _categories_text("size", ["S", "L"]), _categories_text("size", list("abcde"))
    ('size=S', 'size in {S, L}', 'size in {5 rarer ones}')
    """
    if len(categories) == 1:
        return f"{name}={categories[0]}"
    several = ", ".join(categories) if len(categories) <= NAMED else f"{len(categories)} rarer ones"
    return f"{name} in {{{several}}}"


# ---- numbers -------------------------------------------------------------------------------------------------


def _intervals(variable: Variable, axis: BinnedAxis, counts: FloatArray) -> _Grouped:
    """Group the intervals of an axis into cells. A large spike is a cell; a small one joins its interval."""
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
    # half-open: a value on an edge belongs to the cell below
    ends = zip(np.concatenate([[-np.inf], np.nextafter(cuts, np.inf)]), high, strict=True)
    regions: list[Region] = [Interval(float(first), float(last)) for first, last in ends]
    regions += [Point(float(spike)) for spike in spikes]
    single = is_single(variable, low, high)
    subsets = [
        Subset(partial(_interval_text, variable, low[g], high[g], spikes), "value" if single[g] else "interval", (g,))
        for g in range(n_groups)
    ]
    subsets += [Subset(partial(value_text, variable, s), "value", (n_groups + k,)) for k, s in enumerate(spikes)]
    sides = []
    for g, cut in enumerate(cuts.tolist()):
        lower = [*range(g + 1), *(n_groups + k for k, s in enumerate(spikes) if s <= cut)]
        upper = [*range(g + 1, n_groups), *(n_groups + k for k, s in enumerate(spikes) if s > cut)]
        sides.append((
            Subset(partial(interval_text, variable, -np.inf, cut), "side", tuple(lower)),
            Subset(partial(interval_text, variable, cut, np.inf), "side", tuple(upper)),
        ))  # fmt: skip
    return groups, regions, subsets, sides


def _interval_text(variable: Variable, low: float, high: float, spikes: FloatArray) -> str:
    """Write the interval (low, high] without the spikes in it, which are cells of their own."""
    text = interval_text(variable, low, high)
    left_out = [number_text(variable, s) for s in spikes if low < s <= high]
    return f"{text} without {', '.join(left_out)}" if left_out else text


def _starts(counts: FloatArray, total: float) -> BoolArray:
    """Return which bins begin a group. Heavy bins stand alone; the others are cut at the quantiles `LEVELS`."""
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


def _distinct(subsets: list[Subset]) -> tuple[Subset, ...]:
    """Drop subsets that hold the same cells as an earlier one."""
    return tuple({subset.cells: subset for subset in reversed(subsets)}.values())[::-1]
