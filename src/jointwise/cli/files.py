"""Tables in files: which kind one is, by its first bytes, so that a pipe needs no name."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jointwise._checks import listed
from jointwise.cli.arrow_file import ArrowFile, DatasetFile
from jointwise.cli.table_file import TableFile
from jointwise.cli.text_files import ChainedFile, CsvFile, JsonFile
from jointwise.exceptions import InputError

# Copies of standard input, to be removed at the end.
_SPOOLED: list[Path] = []


def open_table(path: str, missing: Sequence[str] = (), label: str | None = None) -> TableFile:
    """Open a table by what its first bytes show; ``-`` is standard input, kept on disk meanwhile.

    Parameters
    ----------
    path : str
    missing : sequence of str
        Text that marks a gap, beside empty cells, NA and NaN.
    label : str, optional
        What the file is called in sentences.
    """
    place = spooled() if path == "-" else Path(path)
    label = label or ("standard input" if path == "-" else path)
    kind = _kind(place, label)
    if kind in {"csv", "json"}:
        return (CsvFile if kind == "csv" else JsonFile)(place, label, frozenset(missing))
    return ArrowFile(place, label, kind)


def open_tables(paths: Sequence[str], missing: Sequence[str] = ()) -> TableFile:
    """Open a table that is one file, several, or all in folders: Parquet and Arrow, or CSV, or JSON, not mixed.

    Parameters
    ----------
    paths : sequence of str
        A folder may hold others, also named as in ``year=2024``, which is then one more column.
    missing : sequence of str
        Text that marks a gap, beside empty cells, NA and NaN.
    """
    if len(paths) == 1 and not Path(paths[0]).is_dir():
        return open_table(paths[0], missing)
    if "-" in paths:
        raise InputError("Standard input cannot be one of several files; name files only.")
    files = [file for path in paths for file in _files(Path(path))]
    kinds = {_kind(file, str(file)) for file in files}
    label = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    if len(kinds) > 1:
        raise InputError(f"{label}: files of one table must be of one kind; these are {listed(sorted(kinds))}.")
    kind = kinds.pop()
    if kind in {"csv", "json"}:
        type_of_file = CsvFile if kind == "csv" else JsonFile
        return ChainedFile([type_of_file(file, str(file), frozenset(missing)) for file in files], label)
    return DatasetFile(files, label, kind)


def _files(place: Path) -> list[Path]:
    """Return a file, or those in a folder and below; names that begin with a dot or an underscore are no data."""
    if not place.is_dir():
        return [place]
    found = [file for file in sorted(place.rglob("*")) if file.is_file()]
    found = [file for file in found if not any(p.startswith((".", "_")) for p in file.relative_to(place).parts)]
    if not found:
        raise InputError(f"{place} is a folder without files; name one that holds a table.")
    return found


def _kind(place: Path, label: str) -> str:
    """Return what the first bytes of a file show."""
    with place.open("rb") as file:
        start = file.read(4096)
    for magic, kind in ((b"PAR1", "parquet"), (b"ARROW1", "file"), (b"\xff\xff\xff\xff", "stream")):
        if start.startswith(magic):
            return kind
    if start.startswith(b"FEA1"):
        raise InputError(f"{label} is a Feather file of the first version; write it again with a newer library.")
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "json" if text[:1] in {b"{", b"["} else "csv"


def spooled() -> Path:
    """Copy standard input to a file that vanishes with the process, for it is read more than once."""
    with tempfile.NamedTemporaryFile(prefix="jointwise-", delete=False) as file:
        _SPOOLED.append(Path(file.name))
        shutil.copyfileobj(sys.stdin.buffer, file)
    return _SPOOLED[-1]


def forget_spooled() -> None:
    """Remove what was kept of standard input."""
    while _SPOOLED:
        _SPOOLED.pop().unlink(missing_ok=True)
