"""Tables in files. The first bytes of a file show its kind, so a pipe needs no extension."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO

from jointwise._checks import listed
from jointwise._files import is_stream, naming
from jointwise.cli.arrow_file import ArrowFile, DatasetFile
from jointwise.cli.reading import DEFAULT, Reading
from jointwise.cli.table_file import TableFile
from jointwise.cli.text_files import ChainedFile, CsvFile, JsonFile
from jointwise.exceptions import InputError

# Copies of standard input and of pipes by their path; removed at the end.
_SPOOLED: dict[str, Path] = {}
# Largest share of the free disk space that a copy may take, and most bytes from a device, which might never end.
SPOOL_SHARE, MOST_OF_A_DEVICE = 0.9, 1 << 30
# Bytes copied at once.
CHUNK = 1 << 20
# Most bytes of a file of questions.
MOST_OF_QUESTIONS = 1 << 20
TEXT_FILES = {"csv": CsvFile, "json": JsonFile}


def open_table(path: str, reading: Reading = DEFAULT) -> TableFile:
    """Open a table, of the kind that its first bytes show. ``-`` is standard input.

    Standard input and pipes are copied to disk for the time being.
    """
    place = rereadable(path)
    label = label_of(path)
    kind = _kind(place, label)
    reading.check_kind(kind, label)
    if kind in TEXT_FILES:
        return TEXT_FILES[kind](place, label, reading)
    return ArrowFile(place, label, kind)


def open_tables(paths: Sequence[str], reading: Reading = DEFAULT) -> TableFile:
    """Open a table in one file, in several, or in folders; all files must be of one kind.

    A folder may hold other folders. One named like ``year=2024`` adds a column.
    """
    if len(paths) == 1 and not Path(paths[0]).is_dir():
        return open_table(paths[0], reading)
    if "-" in paths:
        raise InputError("Standard input cannot be one of several files; name files only.")
    found = [file for path in paths for file in _files(Path(path))]
    files = [rereadable(str(file)) for file in found]
    kinds = {_kind(file, str(name)) for file, name in zip(files, found, strict=True)}
    label = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    if len(kinds) > 1:
        raise InputError(f"{label}: files of one table must be of one kind; these are {listed(sorted(kinds))}.")
    kind = kinds.pop()
    reading.check_kind(kind, label)
    if kind in TEXT_FILES:
        named = zip(files, map(str, found), strict=True)
        return ChainedFile([TEXT_FILES[kind](file, name, reading) for file, name in named], label)
    return DatasetFile(files, label, kind)


def read_questions(path: str) -> list[str]:
    """Lines of a file of questions, without empty lines and those that begin with #; ``-`` is standard input."""
    with rereadable(path).open("rb") as file, naming(label_of(path)):
        data = file.read(MOST_OF_QUESTIONS + 1)
    if len(data) > MOST_OF_QUESTIONS:
        raise InputError(f"{label_of(path)}: a file of questions has at most {MOST_OF_QUESTIONS:,} bytes.")
    try:
        lines = [line.strip() for line in data.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise InputError(f"{label_of(path)}: the text is not UTF-8 ({error.reason}).") from None
    return [line for line in lines if line and not line.startswith("#")]


def _files(place: Path) -> list[Path]:
    """The file itself, or all files in a folder and below, without names that begin with a dot or an underscore."""
    if not place.is_dir():
        return [place]
    found = [file for file in sorted(place.rglob("*")) if file.is_file()]
    found = [file for file in found if not any(p.startswith((".", "_")) for p in file.relative_to(place).parts)]
    if not found:
        raise InputError(f"{place} is a folder without files; name one that holds a table.")
    return found


def _kind(place: Path, label: str) -> str:
    """Kind of a file, from its first bytes."""
    with place.open("rb") as file:
        start = file.read(4096)
    for magic, kind in ((b"PAR1", "parquet"), (b"ARROW1", "file"), (b"\xff\xff\xff\xff", "stream")):
        if start.startswith(magic):
            return kind
    if start.startswith(b"FEA1"):
        raise InputError(f"{label} is a Feather file of version 1; write it again with a newer library.")
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "json" if text[:1] in {b"{", b"["} else "csv"


def label_of(path: str) -> str:
    """Name of an input in messages."""
    return "standard input" if path == "-" else path


def rereadable(path: str) -> Path:
    """A file that can be read more than once: a copy if the input is standard input or a pipe.

    Copies are removed at the end of the process.
    """
    if path != "-" and (not is_stream(path) or Path(path).is_file()):
        return Path(path)
    if path not in _SPOOLED:
        if path == "-" and sys.stdin is None:
            raise InputError("Standard input is closed, so there is nothing to read; name a file.")
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as stream:
            _spool(path, stream)
    return _SPOOLED[path]


def _spool(path: str, stream: IO[bytes]) -> None:
    with tempfile.NamedTemporaryFile(prefix="jointwise-", delete=False) as file:
        _SPOOLED[path] = Path(file.name)
        free, folder = shutil.disk_usage(file.name).free, _SPOOLED[path].parent
        most = int(free * SPOOL_SHARE)
        if _is_device(stream):
            most = min(most, MOST_OF_A_DEVICE)
        while chunk := _read(stream, path):
            most -= len(chunk)
            if most < 0:
                raise InputError(
                    f"{label_of(path)} does not end, or is more than the folder {folder} may hold for it; name a file "
                    "instead, or another folder by the variable TMPDIR."
                )
            with naming(f"The copy of {label_of(path)} in {folder}"):
                file.write(chunk)


def _read(stream: IO[bytes], path: str) -> bytes:
    with naming(label_of(path)):
        return stream.read(CHUNK)


def _is_device(stream: IO[bytes]) -> bool:
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except OSError:  # not a file of the operating system
        return False


def forget_spooled() -> None:
    """Remove the copies of standard input and of pipes."""
    while _SPOOLED:
        _SPOOLED.popitem()[1].unlink(missing_ok=True)
