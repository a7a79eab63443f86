"""The command `jointwise`: fit the table in a file, then query, sample, predict, score, impute, compare and plot.

`files` opens tables, in the way that `reading` says, `outputs` writes them, and `cells` finds the types of text cells.
`models` reads models, `fits` makes them from tables, and `rare` merges rare categories. Questions are read and answered
by `jointwise.joint`. `commands`, `predictions`, `rows`, `checks`, `comparing`, `report` and `showcase` hold the
commands, which `app` gathers. `reasons` names the cells that explain a row, `drift` finds what differs between two
models, `survey` looks at a table, and `page` writes HTML.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["main"]


def main() -> None:
    """Run the command; without its packages, say how to get them."""
    try:
        with _interruptible():
            from jointwise.cli import streams

            streams.settle()
            from jointwise.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "rich"}:
            raise
        missing = f"The command jointwise needs {error.name}, which is not installed"
        sys.exit(f"Error: {missing}: pip install 'jointwise[cli]'")
    run()


@contextmanager
def _interruptible() -> Iterator[None]:
    """Context in which an interrupt ends the process at once; half-imported packages would print a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, as in a shell's background jobs
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(_number: int, _frame: object) -> None:
    try:
        os.write(2, b"Interrupted; no result was written.\n")
    finally:
        os._exit(130)
