"""Standard input, output and error of the command: there even where the shell has closed them, and able to say all.

This is done before anything else, so that no file can take the number of a stream that is closed.
"""

from __future__ import annotations

import io
import os
import sys

from jointwise._files import NamedFile

# What a failure to write a result to a closed stream, or to a full disk, names.
OUTPUT = "standard output"


def settle() -> None:
    """Fill closed streams with ones that fail when they are used (input, output) or take anything (error).

    Standard output also tells its name when it fails, and shows what its encoding does not have as escapes.
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
    elif isinstance(sys.stdout, io.TextIOWrapper):  # a console of Windows has a way of its own to write
        sys.stdout.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Give up what was not yet written to standard output, which has failed: at the end it would fail again."""
    sys.stdout = io.TextIOWrapper(io.BytesIO())


def _fill(number: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
