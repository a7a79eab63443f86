"""LocalSource: blocks that this process reads one by one; it keeps their codes in memory or in a file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from jointwise.axes import Axis
from jointwise.exceptions import InputError
from jointwise.rows.base import Rows, StatisticT
from jointwise.rows.coded import CodedRows
from jointwise.rows.sources.base import Source
from jointwise.rows.store import Store
from jointwise.tables import Table, read_table
from jointwise.tables.variables import Schema

# Cells of a block: enough for long columns, few enough that several blocks need little memory.
BLOCK_CELLS = 5_000_000
# Most rows of a block, for tables of few columns: if all their text differs, it is refused before it fills the memory.
BLOCK_ROWS = 500_000
# Blocks processed at once: threads share the memory's bandwidth, so more of them gain little.
MOST_THREADS = 4

ResultT = TypeVar("ResultT")


def block_rows(n_columns: int) -> int:
    """Return the number of rows of a block with this many columns."""
    return min(max(BLOCK_CELLS // max(n_columns, 1), 1), BLOCK_ROWS)


@contextmanager
def reading(what: str, *errors: type[Exception]) -> Iterator[None]:
    """Context in which errors of the reading package become an InputError of one sentence."""
    try:
        yield
    except errors as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{what} could not be read: {reason}.") from error


class LocalSource(Source):
    """A table that can be read in blocks, one by one, any number of times.

    Parameters
    ----------
    blocks : callable
        Returns the blocks, which are tables with the same columns, in the same order at each call.
    container : str, optional
        See `Source`.

    Examples
    --------
    >>> source = LocalSource(lambda: iter([{"a": [1.5, 2.0]}, {"a": [4.0]}]))
    >>> profile = source.profile()
    >>> schema = profile.schema()
    >>> with source.coded(schema, profile.axes(schema, 4), None) as rows:
    ...     rows.marginal(0).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, blocks: Callable[[], Iterable[Any]], container: str | None = None) -> None:
        self._blocks = blocks
        self.container = container
        self._n_rows: int | None = None  # number of rows in the first whole pass

    def reduce(self, statistic: Callable[[Any], StatisticT]) -> StatisticT:
        """Return the sum of a statistic over all blocks, added in their order."""
        total: StatisticT | None = None
        for part in self._map(statistic):
            total = part if total is None else total + part
        if total is None:
            raise InputError(
                "Found a table with 0 sample(s), because its source has no blocks, while a minimum of 1 is required."
            )
        return total

    @contextmanager
    def coded(self, schema: Schema, axes: Sequence[Axis], folder: Path | None) -> Iterator[Rows]:
        """Context that yields the coded rows, in memory if they are few, else in a file that ends with the context."""
        code = partial(CodedRows.of_block, schema=schema, axes=tuple(axes), weights=self.weights)
        with Store(folder) as codes, Store(folder) as weights:
            for part in self._map(code):
                codes.append(part.codes)
                if part.weights is not None:
                    weights.append(part.weights)
            yield CodedRows(schema, tuple(axes), codes.array(), weights.array() if self.weights else None)

    def _map(self, function: Callable[[Any], ResultT]) -> Iterator[ResultT]:
        """Yield the results of a function for each block, in order; a few blocks run at a time, each in a thread."""
        n_threads = min(os.cpu_count() or 1, MOST_THREADS)
        running: deque[Future[ResultT]] = deque()
        with ThreadPoolExecutor(n_threads) as pool:
            try:
                for table in self._tables():
                    running.append(pool.submit(function, table))
                    if len(running) > n_threads:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            finally:
                for left in running:
                    left.cancel()

    def _tables(self) -> Iterator[Table]:
        """Yield the blocks as tables; raise if another pass had another number of rows."""
        n_rows = 0
        for block in self._blocks():
            table = read_table(block)
            n_rows += table.n_rows
            yield table
        if self._n_rows is None:
            self._n_rows = n_rows
        if n_rows != self._n_rows:
            raise InputError(
                f"The table had {self._n_rows} rows when it was read first and {n_rows} when it was read again. It "
                "must not change during a fit: let nothing write to it, and do not draw its rows at random."
            )
