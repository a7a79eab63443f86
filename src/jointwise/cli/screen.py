"""Output for a person: tables and bars on standard output, notes and progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.cli.table_file import TableFile
from jointwise.joint.distribution import Partition
from jointwise.tables.variables import as_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Width of the longest bar, and of a line in a file.
BAR, WIDE = 30, 160
# Most rows of a table on the screen, and most columns of a table of two variables.
ROWS, COLUMNS = 50, 16


def note(sentence: str) -> None:
    """Write a sentence to standard error."""
    sys.stderr.write(f"{sentence}\n")


def is_watched() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()


def console() -> Console:
    """Console for results: as wide as the terminal, or wide if there is none."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDE)


def show(*things: Any) -> None:
    """Show results one below the other."""
    out = console()
    for thing in things:
        out.print(thing, markup=False)


def table(columns: Mapping[str, Sequence[Any]]) -> Table:
    """Columns as a table, with numbers right-aligned."""
    made = _empty_table()
    for name, cells in columns.items():
        numeric = bool(len(cells)) and all(isinstance(cell, (int, float)) for cell in cells)
        made.add_column(name, justify="right" if numeric else "left")
    for row in zip(*columns.values(), strict=True):
        made.add_row(*map(_cell, row))
    return made


def bars(name: str, columns: Mapping[str, Sequence[Any]]) -> Table:
    """Rows of one variable with their probabilities as numbers and bars."""
    made = _empty_table()
    made.add_column(name)
    made.add_column("probability", justify="right")
    made.add_column("")
    largest = max([*columns["probability"], np.finfo(float).tiny])
    for text, p in zip(columns[name], columns["probability"], strict=True):
        made.add_row(_cell(text), percent(p), _bar(p / largest))
    return made


def fits(sizes: Sequence[int]) -> bool:
    """Whether a table of two variables with these numbers of rows fits on the screen, one across and one down."""
    return max(sizes) <= ROWS and min(sizes) <= COLUMNS


def crossed(names: Sequence[str], parts: Sequence[Partition], probabilities: FloatArray) -> Table:
    """Probabilities of two variables as a table; the one with fewer rows goes across."""
    down, across = (0, 1) if len(parts[0].labels) >= len(parts[1].labels) else (1, 0)
    values = probabilities if down == 0 else probabilities.T
    made = _empty_table()
    made.add_column(f"{names[down]} \\ {names[across]}")
    for text in parts[across].labels:
        made.add_column(_cell(text), justify="right")
    for text, row in zip(parts[down].labels, values, strict=True):
        made.add_row(_cell(text), *map(percent, row))
    return made


def percent(p: float) -> str:
    """Write a probability as a percentage.

    >>> percent(0.1234), percent(0.00001), percent(0)
    ('12.3%', '<0.1%', '0')
    """
    if p == 0:
        return "0"
    return "<0.1%" if p < 0.0005 else f"{p:.1%}"


def read_blocks(file: TableFile, doing: str) -> Iterator[Any]:
    """Blocks of a file, with a progress bar on a terminal."""
    with _progress(doing) as update:
        for block in file.blocks():
            yield block
            update(file.share, 1.0)


@contextmanager
def tasks(doing: str) -> Iterator[Callable[[int, int, str], None]]:
    """Context whose value shows progress, given tasks done, all tasks and a name: a bar, or a line for each name."""
    with _progress(doing) as update:

        def show(done: int, total: int, name: str) -> None:
            update(done, total)
            if name and not is_watched():
                note(f"{done} of {total}: {name}")

        yield show


@contextmanager
def _progress(doing: str) -> Iterator[Callable[[float, float], None]]:
    if not is_watched():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=1.0)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _empty_table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)


def _cell(cell: Any) -> Any:
    from rich.text import Text

    if cell is None:
        return Text("")
    return Text(f"{cell:.6g}" if isinstance(cell, float) else as_text(cell))


def _bar(share: float) -> str:
    block = "█" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"
    return block * round(share * BAR)
