"""What every source of rows owes: to apply a function to its blocks and add what comes out, where the rows lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from jointwise._checks import check_weights, shown, unknown_name
from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.exceptions import InputError
from jointwise.marginals.profile import Profile
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.tables import Table, read_table
from jointwise.tables.variables import Schema


class Statistic(Protocol):
    """A small value that adds up over blocks of rows."""

    def __add__(self, other: Self, /) -> Self: ...


StatisticT = TypeVar("StatisticT", bound=Statistic)


class Source(ABC):
    """A table that is met in blocks, each an Arrow table or another that `read_table` takes.

    Attributes
    ----------
    container : str or None
        Frame type in which samples of a fitted density come back; None for that of the blocks.
    weights : str or None
        Column that holds the weights of the rows, and is then no variable.
    """

    container: str | None = None
    weights: str | None = None

    @abstractmethod
    def reduce(self, statistic: Callable[[Any], StatisticT]) -> StatisticT:
        """Return the sum of a statistic over all blocks, added in their order.

        Parameters
        ----------
        statistic : callable
            From a block to a small value with ``+``; it may be sent to other processes.
        """

    @abstractmethod
    def coded(self, schema: Schema, axes: Sequence[Axis], folder: Path | None) -> AbstractContextManager[Rows]:
        """Return the rows coded, for as long as the context lasts; what was written for them is then removed.

        Parameters
        ----------
        schema : Schema
        axes : sequence of Axis
        folder : Path, optional
            Where codes go that do not fit in memory; the system's folder for temporary files by default.
        """

    def profile(self) -> Profile:
        """Return the profile of the table."""
        profile = self.reduce(Profile.of if self.weights is None else partial(_weighed_profile, column=self.weights))
        return profile if self.container is None else replace(profile, container=self.container)

    def with_weights(self, column: str) -> Self:
        """Return the same table with one of its columns as the weights of its rows."""
        weighted = copy(self)
        weighted.weights = column
        return weighted


def weighed(block: Any, column: str | None) -> tuple[Table, FloatArray | None]:
    """Return a block without the column of weights, and the weights; all of it and None where there is no such column.

    >>> table, weights = weighed({"a": [1, 2], "w": [0.5, 2.0]}, "w")
    >>> table.names, weights
    (('a',), array([0.5, 2. ]))
    """
    table = read_table(block)
    if column is None:
        return table, None
    if column not in table.names:
        raise unknown_name("column in `sample_weight`:", column, table.names)
    where = table.names.index(column)
    found = table.read(where)
    if found.labels is not None or found.dtype not in {"float64", "int64"}:
        raise InputError(f"`sample_weight` must name a column of numbers; {shown(column)} holds {found.dtype} values.")
    rest = [n for n in range(len(table.names)) if n != where]
    if not rest:
        raise InputError(f"The table has no column beside {shown(column)}, which `sample_weight` names.")
    return table.select(rest), check_weights(found.values, table.n_rows)


def _weighed_profile(block: Any, column: str) -> Profile:
    return Profile.of(*weighed(block, column))


def code_block(block: Any, schema: Schema, axes: Sequence[Axis], weights: str | None) -> CodedRows:
    """Return the rows of a block coded, with the weights that one of its columns may hold."""
    table, row_weights = weighed(block, weights)
    return CodedRows.of(table, schema, axes, row_weights)
