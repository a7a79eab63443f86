"""Sources whose blocks come to this process one by one; codes are kept here, in memory or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from jointwise._typing import CodeArray
from jointwise.axes import Axis
from jointwise.exceptions import InputError, StorageError
from jointwise.marginals.coded import CodedRows, Rows
from jointwise.marginals.sources.base import Source, StatisticT
from jointwise.variables import Schema

# Codes that take more bytes than this go to a file, of which the system keeps in memory what it can.
MEMORY_BYTES = 512 * 2**20


class LocalSource(Source):
    """A table whose blocks come one by one, from the first on as often as wanted.

    Parameters
    ----------
    blocks : callable
        Returns the blocks, tables with the same columns, in the same order at each call.

    Examples
    --------
    >>> source = LocalSource(lambda: iter([{"a": [1.0, 2.0]}, {"a": [4.0]}]))
    >>> profile = source.profile()
    >>> schema = profile.schema()
    >>> with source.coded(schema, profile.axes(schema, 4), None) as rows:
    ...     rows.marginal(0).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, blocks: Callable[[], Iterable[Any]], container: str | None = None) -> None:
        self._blocks = blocks
        self.container = container

    def reduce(self, statistic: Callable[[Any], StatisticT]) -> StatisticT:
        """Return the sum of a statistic over all blocks, added in their order."""
        total: StatisticT | None = None
        for block in self._blocks():
            part = statistic(block)
            total = part if total is None else total + part
        if total is None:
            raise InputError(
                "Found a table with 0 sample(s), for its source has no blocks, while a minimum of 1 is required."
            )
        return total

    @contextmanager
    def coded(self, schema: Schema, axes: Sequence[Axis], folder: Path | None) -> Iterator[Rows]:
        """Return the rows coded, in memory while they are few, else in a file that has no name and ends with it."""
        parts: list[Any] = []
        file: IO[bytes] | None = None
        try:
            n_bytes = 0
            for block in self._blocks():
                codes = CodedRows.of(block, schema, axes).codes
                n_bytes += codes.nbytes
                parts.append(codes)
                if n_bytes > MEMORY_BYTES:
                    file = file or _scratch_file(folder)
                    _append(file, parts)
                    parts.clear()
            if file is None:
                whole: CodeArray = np.concatenate(parts)
                yield CodedRows(schema, tuple(axes), whole)
                return
            _append(file, parts)
            yield CodedRows(schema, tuple(axes), _mapped(file, codes.dtype, len(axes)))
        finally:
            if file is not None:
                file.close()


def _scratch_file(folder: Path | None) -> IO[bytes]:
    """Return a file without a name, so that nothing remains of it whatever happens to this process."""
    try:
        return TemporaryFile(dir=folder)
    except OSError as error:
        place = folder or "the folder for temporary files"
        raise StorageError(
            f"Codes of the rows are too many for memory, and no file could be made for them in {place}: {error}. "
            "Give scratch_dir a folder that exists and can be written."
        ) from error


def _append(file: IO[bytes], parts: Sequence[CodeArray]) -> None:
    try:
        for part in parts:
            file.write(part.data)
        file.flush()
    except OSError as error:
        raise StorageError(
            f"Codes of the rows could not be written: {error}. They take one or two bytes for each cell of the table; "
            "give scratch_dir a folder with so much room."
        ) from error


def _mapped(file: IO[bytes], dtype: Any, n_columns: int) -> CodeArray:
    codes: CodeArray = np.memmap(file, dtype=dtype, mode="r").reshape(-1, n_columns)
    return codes
