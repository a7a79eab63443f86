"""Standard input, output and error of the command, usable even if the shell has closed them.

They are set up before anything else, so that no file takes the number of a closed stream.
"""

from __future__ import annotations

import io
import os
import sys

from jointwise._files import NamedFile

# Name of the output in errors, such as that of a closed stream or a full disk.
OUTPUT = "standard output"


def settle() -> None:
    """Replace closed streams: input and output by ones that fail when used, error by one that takes anything.

    Errors of standard output carry its name, and it writes characters that its encoding lacks as escapes.
    """
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            _fill(number, flags)
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", errors="backslashreplace")
    if os.name == "posix":
        encoding = "utf-8" if sys.stdout is None else sys.stdout.encoding
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(NamedFile(1, OUTPUT, closefd=False)),
            encoding=encoding,
            errors="backslashreplace",
            line_buffering=os.isatty(1),
        )
    elif isinstance(sys.stdout, io.TextIOWrapper):  # the console of Windows writes in its own way
        sys.stdout.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Discard what is not yet written to standard output after it has failed; writing it at exit would fail again."""
    sys.stdout = io.TextIOWrapper(io.BytesIO())


def _fill(number: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
