"""LocalSource: blocks that this process reads one by one; it keeps their codes in memory or in a file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Self, TypeVar

import numpy as np

from jointwise._typing import AnyArray, FloatArray
from jointwise.axes import Axis
from jointwise.exceptions import InputError, StorageError
from jointwise.rows.base import Rows, StatisticT
from jointwise.rows.coded import CodedRows
from jointwise.rows.sources.base import Source
from jointwise.tables import Table, encode, read_table
from jointwise.tables.variables import Schema

# Codes that take more bytes than this go to a mapped file.
MEMORY_BYTES = 512 * 2**20
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
        with _Store(folder) as codes, _Store(folder) as weights:
            for part in self._map(code):
                codes.append(part.codes)
                if part.weights is not None:
                    weights.append(part.weights)
            yield CodedRows(schema, tuple(axes), codes.array(), weights.array() if self.weights else None)

    def encoded(self, schema: Schema) -> FloatArray:
        """Return all rows as numbers, eight bytes a cell, in the column order of a schema; shape (n, N)."""
        return np.concatenate(list(self._map(partial(encode, schema=schema))))

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


class _Store:
    """Arrays stacked below each other, in memory while they are small, else in a file without a name."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._parts: list[AnyArray] = []
        self._n_bytes = 0
        self._file: IO[bytes] | None = None

    def append(self, part: AnyArray) -> None:
        self._parts.append(part)
        self._n_bytes += part.nbytes
        if self._n_bytes > MEMORY_BYTES:
            self._file = self._file or _scratch_file(self._folder)
            _append(self._file, self._parts)
            self._parts = [part[:0]]

    def array(self) -> AnyArray:
        """Return all of them as one."""
        if self._file is None:
            return np.concatenate(self._parts)
        _append(self._file, self._parts)
        like = self._parts[0]
        mapped: AnyArray = np.memmap(self._file, dtype=like.dtype, mode="r").reshape(-1, *like.shape[1:])
        return mapped

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _scratch_file(folder: Path | None) -> IO[bytes]:
    """Return a file without a name, so that nothing of it remains, even if this process is killed."""
    try:
        return TemporaryFile(dir=folder)
    except OSError as error:
        place = folder or "the folder for temporary files"
        raise StorageError(
            f"The codes of the rows do not fit in memory, and no file could be created for them in {place}: {error}. "
            "Give scratch_dir a folder that exists and can be written."
        ) from error


def _append(file: IO[bytes], parts: Sequence[AnyArray]) -> None:
    try:
        for part in parts:
            file.write(part.data)
        file.flush()
    except OSError as error:
        raise StorageError(
            f"The codes of the rows could not be written: {error}. They take one or two bytes for each cell of the "
            "table; give scratch_dir a folder with that much space."
        ) from error
