"""Store: arrays stacked below each other, in memory or in a mapped file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self

import numpy as np

from jointwise._typing import AnyArray
from jointwise.exceptions import StorageError

# Arrays that take more bytes than this go to a mapped file.
MEMORY_BYTES = 512 * 2**20


class Store:
    """Arrays stacked below each other, in memory while they are small, else in a file without a name.

    The mapped array outlives the context: the file's space is freed when the array is no longer used.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._parts: list[AnyArray] = []
        self._n_bytes = 0
        self._file: IO[bytes] | None = None

    def append(self, part: AnyArray) -> None:
        """Add an array below the others."""
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
