"""Tables in files: which kind one is, by its first bytes, so that a pipe needs no name."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jointwise.cli.arrow_file import ArrowFile
from jointwise.cli.table_file import TableFile
from jointwise.cli.text_files import CsvFile, JsonFile
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
    with place.open("rb") as file:
        start = file.read(4096)
    for magic, kind in ((b"PAR1", "parquet"), (b"ARROW1", "file"), (b"\xff\xff\xff\xff", "stream")):
        if start.startswith(magic):
            return ArrowFile(place, label, kind)
    if start.startswith(b"FEA1"):
        raise InputError(f"{label} is a Feather file of the first version; write it again with a newer library.")
    marks = frozenset(missing)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return JsonFile(place, label, marks) if text[:1] in {b"{", b"["} else CsvFile(place, label, marks)


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
