"""Which columns form the block, and why the others do not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from jointwise._checks import shown
from jointwise._typing import FloatArray
from jointwise.axes import Axis, BinnedAxis
from jointwise.fitting.blocks.warps import Counted
from jointwise.fitting.choice.folds import SMALL_TABLE
from jointwise.fitting.starts import spread_positions
from jointwise.joint.block_gaussian import MOST_WHOLE_SPIKED
from jointwise.rows.base import Rows
from jointwise.tables.variables import Kind, Variable

FoundT = TypeVar("FoundT")
# Different values, spikes aside, that a column of the block has at least: fewer are better told apart one by one.
LEAST_VALUES = {Kind.CONTINUOUS: 10, Kind.INTEGER: 20}
# Integers with a straight warp, which knows no bounds, must have theirs this many standard deviations from the mean.
LEAST_REACH = 4.0
# Most columns of a block: time and memory grow with their square.
MOST_COLUMNS = 256
# Two columns are one, up to scale and shift, if this share of the variance of one is left given the other.
SAME_LEFT = 1e-8
# Rows by which columns are compared.
COMPARED_ROWS = 20_000


@dataclass(frozen=True)
class Membership:
    """The columns of a block.

    Parameters
    ----------
    columns : tuple of int
        Positions of the columns in the block.
    left_out : mapping of str to str
        Why each other column is not in it, by name.
    """

    columns: tuple[int, ...]
    left_out: dict[str, str]


def interval_values(axis: Axis) -> FloatArray:
    """Return the value that each interval of a fine axis stands for; shape (n_intervals,)."""
    assert isinstance(axis, BinnedAxis)  # of a column of numbers
    return axis.representatives[: axis.n_intervals]


def found_once(rows: Rows, key: Hashable, find: Callable[[], FoundT]) -> FoundT:
    """Return what follows from the columns of rows alone: blocks of all warps ask for it.

    It is kept with the rows of small tables. That of large ones takes little of the time of a fit, and much memory.

    Parameters
    ----------
    rows : Rows
    key : hashable
        Tells it from what else is kept.
    find : callable
        Returns it.
    """
    if len(rows) >= SMALL_TABLE:
        return find()
    if key not in rows.known:
        rows.known[key] = find()
    found: FoundT = rows.known[key]
    return found


def off_spikes(rows: Rows, n: int) -> Counted | None:
    """Return the values of a column that are no spikes, with their counts; None if there are none."""

    def find() -> Counted | None:
        values = interval_values(rows.axes[n])
        counts = rows.marginal(n)[: len(values)]
        here = np.flatnonzero(counts > 0)
        return Counted(values[here], counts[here]) if len(here) else None

    return found_once(rows, ("off_spikes", n), find)


def of_block(rows: Rows, n: int) -> Counted:
    """Return the values of a column of the block that are no spikes, with their counts."""
    column = off_spikes(rows, n)
    assert column is not None  # it has enough values
    return column


def is_positive(rows: Rows, n: int) -> bool:
    """Return whether a column of the block has a logarithm, spikes aside, that is no straight line."""
    column, whole = off_spikes(rows, n), rows.schema.variables[n].kind is Kind.INTEGER
    return column is not None and column.is_positive() and not (whole and column.is_narrow())


def choose_columns(rows: Rows) -> Membership:
    """Return which columns form the block: those whose values are numbers of many, and differ from each other.

    Parameters
    ----------
    rows : Rows
        With fine axes for columns of numbers.
    """
    return found_once(rows, "block columns", lambda: _chosen(rows))


def _chosen(rows: Rows) -> Membership:
    left_out: dict[str, str] = {}
    able: list[int] = []
    n_whole_spiked = 0
    for n, variable in enumerate(rows.schema):
        reason = _unsuited(rows, n)
        if reason is None and variable.kind is Kind.INTEGER and variable.spikes:
            n_whole_spiked += 1
            if n_whole_spiked > MOST_WHOLE_SPIKED:
                reason = f"more than {MOST_WHOLE_SPIKED} integer columns have values that many rows share"
        if reason is None and len(able) == MOST_COLUMNS:
            reason = f"the block has {MOST_COLUMNS} columns already"
        if reason is None:
            able.append(n)
        else:
            left_out[variable.name] = reason
    copies = dict(_copies(rows, able))
    for n, first in copies.items():
        left_out[rows.schema.names[n]] = f"the same as {shown(rows.schema.names[first])}, up to scale and shift"
    return Membership(tuple(n for n in able if n not in copies), left_out)


def _unsuited(rows: Rows, n: int) -> str | None:
    """Return why a column is not for the block whatever the others are; None if it is."""
    variable = rows.schema.variables[n]
    if variable.categories is not None:
        return "categorical"
    column = off_spikes(rows, n)
    if column is None:  # each value counts as a spike
        return _number_of_values(int(np.count_nonzero(rows.marginal(n))))
    if len(column.values) < LEAST_VALUES[variable.kind]:
        return _number_of_values(len(column.values)) + " besides those that many rows share" * bool(variable.spikes)
    if not column.is_spread():
        return "its values hardly differ"
    if variable.kind is Kind.INTEGER and column.is_narrow() and _reaches_a_bound(column, variable):
        return "integers close to a bound, which a Gaussian would cross"
    return None


def _reaches_a_bound(column: Counted, variable: Variable) -> bool:
    """Whether a Gaussian with the column's mean and deviation has mass beyond a bound of its variable."""
    low, high = variable.support
    return bool(min(column.mean - low, high - column.mean) < LEAST_REACH * column.deviation)


def _number_of_values(n: int) -> str:
    return f"{n} different value{'s' * (n != 1)}"


def _copies(rows: Rows, able: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield each column that is an earlier one up to scale and shift, with that one."""
    if len(able) < 2:
        return
    n = len(rows)
    chosen = np.arange(n) if n <= COMPARED_ROWS else spread_positions(n, COMPARED_ROWS, np.random.default_rng(0))
    codes = rows.take(chosen).codes
    values = np.stack([_standardised(rows, column)[codes[:, column]] for column in able], axis=1)
    seen = np.where(np.isnan(values), 0.0, values)
    # cells of both columns, about a common mean: enough to see which pairs to look at
    both = seen.T @ seen
    squares = (seen**2).T @ (~np.isnan(values)).astype(np.float64)
    near = both**2 >= 0.99 * squares * squares.T
    copied: set[int] = set()
    for k in range(1, len(able)):
        for j in np.flatnonzero(near[k, :k]):
            if j not in copied and _are_affine(values[:, j], values[:, k]):
                copied.add(k)
                yield able[k], able[int(j)]
                break


def _standardised(rows: Rows, n: int) -> FloatArray:
    """Return the standardised value of each bin of a column, NaN for spikes and missing cells."""
    column, values = of_block(rows, n), interval_values(rows.axes[n])
    table = np.full(rows.axes[n].n_bins + 1, np.nan)
    table[: len(values)] = values / column.deviation - column.mean / column.deviation
    return table


def _are_affine(x: FloatArray, y: FloatArray) -> bool:
    """Whether two columns are missing in the same rows, and a line in the others."""
    if not np.array_equal(np.isnan(x), np.isnan(y)):
        return False
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    x, y = x - x.mean(), y - y.mean()
    left = (x @ x) * (y @ y) - (x @ y) ** 2
    return bool(left <= SAME_LEFT * (x @ x) * (y @ y))
