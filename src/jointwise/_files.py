"""Writing files: to a temporary file that replaces the target in one step, or straight into a stream."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import IO, Any

# Paths of files that the process has open already, such as a shell's >(...).
_OPEN_FILE = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
# Most links that a path may go through; the system itself allows no more.
_MOST_LINKS = 40
# Without this flag Windows would change the line ends.
_BINARY: int = getattr(os, "O_BINARY", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY


class NamedFile(FileIO):
    """An open file, given by its descriptor, whose errors say what it is ``called``; those of a plain one do not."""

    def __init__(self, file: int, called: str, *, closefd: bool = True) -> None:
        super().__init__(file, "wb", closefd=closefd)
        self._called = called

    def write(self, data: Any) -> int:
        """Write bytes."""
        with naming(self._called):
            return super().write(data)


@contextmanager
def naming(called: str) -> Iterator[None]:
    """Context in which an OSError names the file that the caller asked for."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, called) from error


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Context that yields a binary file, which replaces ``path`` when the context ends without an error.

    If the process is killed, either the old file or the new one is there. A link stays, and its target is replaced.
    The new file has the mode of the old one, and its owner if the system allows that. Anything but a regular file (a
    device, a pipe, ``/dev/fd/3``) is written to directly.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "a.txt"
    ...     with replacing(place) as file:
    ...         _ = file.write(b"whole")
    ...     place.read_bytes()
    b'whole'
    """
    if is_stream(path):
        with naming(str(path)):
            descriptor = _opened_stream(path)
        with _file(descriptor, path) as file:
            yield file
        return
    place = target(path)
    beside = place.with_name(f".jointwise-{secrets.token_hex(8)}")
    try:
        with naming(str(path)):
            old = _replaceable(place)
            # who may not read the old file may not read this one either
            descriptor = os.open(beside, _NEW, 0o666 if old is None else 0o600)
        with _file(descriptor, path) as file:
            yield file
            with naming(str(path)):
                file.flush()
                os.fsync(file.fileno())
        with naming(str(path)):
            if old is not None:
                _take_over(beside, old)
            beside.replace(place)
            _settle(place.parent)
    finally:
        beside.unlink(missing_ok=True)


def is_stream(path: str | Path) -> bool:
    """Return whether a path is a stream, which is read or written once from start to end, not a regular file."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):  # a name with a zero byte is a ValueError
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def target(path: str | Path) -> Path:
    """Return the path with all links followed; the file need not exist."""
    return Path(os.path.realpath(path))


@contextmanager
def _file(descriptor: int, path: str | Path) -> Iterator[IO[bytes]]:
    """Context of a buffered file; after an error the unwritten rest is dropped."""
    raw = NamedFile(descriptor, str(path))
    file = BufferedWriter(raw)
    try:
        yield file
        file.flush()
    except BaseException:
        raw.close()
        raise
    with naming(str(path)):
        file.close()


def _opened_stream(path: str | Path) -> int:
    known = _descriptor(path)
    # an open file continues at its position; opened again it would begin at its start
    return os.dup(known) if known is not None else os.open(path, os.O_WRONLY | _BINARY)


def _descriptor(path: str | Path) -> int | None:
    """Return the descriptor that a path such as /dev/fd/63 or /dev/stdout stands for; None for other paths."""
    place = os.path.abspath(path)  # noqa: PTH100  # Path.absolute keeps ".."
    for _ in range(_MOST_LINKS):
        if found := _OPEN_FILE.fullmatch(place):
            return int(found[1])
        try:
            link = os.readlink(place)  # noqa: PTH115  # text in, text out
        except (OSError, ValueError):
            return None
        place = os.path.normpath(os.path.join(os.path.dirname(place), link))  # noqa: PTH118, PTH120
    return None


def _replaceable(place: Path) -> os.stat_result | None:
    """Return the status of the file at a place, None if there is none; raise if no file can be put there."""
    if place.is_symlink():  # links were followed before, so this one leads in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return place.stat() if place.exists() else None


def _take_over(place: Path, old: os.stat_result) -> None:
    """Give a file the mode of another, and its owner if the system allows that."""
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(place, old.st_uid, old.st_gid)
    place.chmod(stat.S_IMODE(old.st_mode))  # after chown, which may clear bits


def _settle(folder: Path) -> None:
    """Flush a move to the disk; if the folder cannot be opened for that, the file is complete all the same."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
