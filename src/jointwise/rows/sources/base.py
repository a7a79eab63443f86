"""The contract of a source: it applies a function to its blocks where the rows are, and adds the results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from jointwise.axes import Axis
from jointwise.marginals.profile import Profile
from jointwise.rows.base import Rows, StatisticT
from jointwise.rows.coded import split_weights
from jointwise.tables.variables import Schema


class Source(ABC):
    """A table that is read in blocks, each an Arrow table or another that `read_table` takes.

    Attributes
    ----------
    container : str or None
        Frame type in which a fitted density returns samples; None for that of the blocks.
    weights : str or None
        Column that holds the weights of the rows; it is not a variable.
    """

    container: str | None = None
    weights: str | None = None

    @abstractmethod
    def reduce(self, statistic: Callable[[Any], StatisticT]) -> StatisticT:
        """Return the sum of a statistic over all blocks, added in their order.

        The statistic maps a block to a small value with ``+``; it may be sent to other processes.
        """

    @abstractmethod
    def coded(self, schema: Schema, axes: Sequence[Axis], folder: Path | None) -> AbstractContextManager[Rows]:
        """Context that yields the coded rows; files written for them are removed at its end.

        Codes that do not fit in memory are written to `folder`, by default the system's folder for temporary files.
        """

    def profile(self) -> Profile:
        """Return the profile of the table."""
        profile = self.reduce(Profile.of if self.weights is None else partial(_weighted_profile, column=self.weights))
        return profile if self.container is None else replace(profile, container=self.container)

    def with_weights(self, column: str) -> Self:
        """Return the same table, one of whose columns holds the weights of its rows."""
        weighted = copy(self)
        weighted.weights = column
        return weighted


def gathered(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    """Gather Arrow record batches into tables of at least ``n_rows`` rows, but for the last; no batch is cut."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= n_rows:
            yield pa.Table.from_batches(waiting)
            waiting.clear()
    if waiting:
        yield pa.Table.from_batches(waiting)


def _weighted_profile(block: Any, column: str) -> Profile:
    return Profile.of(*split_weights(block, column))
