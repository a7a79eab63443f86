"""Progress of a fit, shown on stderr on request."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec

Callback = Callable[[int, float], None]

LOGGER = logging.getLogger("jointwise")
# Seconds between two lines.
INTERVAL = 1.0


def progress(name: str, max_steps: int, *, enabled: bool) -> AbstractContextManager[Callback | None]:
    """Context that yields a callback for the number of steps taken and the objective, or None if nothing is shown."""
    if not enabled:
        return nullcontext()
    return _bar(name, max_steps) if _has_bar() else _lines(name, max_steps)


def tell(name: str, what: str, *, enabled: bool) -> None:
    """Show what begins now, if progress is shown."""
    if enabled:
        _write(f"{name}: {what}")


def _has_bar() -> bool:
    """Return whether rich is installed and stderr is a terminal or a notebook."""
    if find_spec("rich") is None:
        return False
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal or console.is_jupyter


@contextmanager
def _bar(name: str, max_steps: int) -> Iterator[Callback]:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(f"{name}: choosing dictionaries and starts", total=max_steps)
        yield lambda step, objective: shown.update(
            task, completed=step, description=f"{name}: objective {objective:.5f}, step"
        )


@contextmanager
def _lines(name: str, max_steps: int) -> Iterator[Callback]:
    pending, last = f"{name}: choosing dictionaries and starts", -INTERVAL

    def show() -> None:
        nonlocal pending, last
        if pending:
            _write(pending)
        pending, last = "", time.monotonic()

    def callback(step: int, objective: float) -> None:
        nonlocal pending
        pending = f"{name}: step {step} of at most {max_steps}, objective {objective:.5f}"
        if time.monotonic() - last >= INTERVAL:
            show()

    show()
    try:
        yield callback
    finally:
        show()


def _write(line: str) -> None:
    """Write to the logger if it has a handler for it, else to stderr."""
    if LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers():
        LOGGER.info(line)
    else:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
