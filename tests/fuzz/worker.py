"""Cases in a process of their own, and what became of them."""

import contextlib
import os
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from tests.fuzz.campaigns import campaign
from tests.fuzz.case import Campaign, Case
from tests.fuzz.limits import TooLongError, bounded_memory, bounded_time, limit_process

# The innermost frames of a traceback that are shown.
FRAMES = 14


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Parameters
    ----------
    number : int
    seconds : float
    failure : str, optional
        Traceback and notes; None if all went well.
    signature : str
        Tells a failure from others: the error and the place in the package where it was raised.
    """

    number: int
    seconds: float
    failure: str | None = None
    signature: str = ""


def attempt(tried: Campaign, seed: int, number: int) -> Outcome:
    """Run one case within its limits."""
    start = perf_counter()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name, contextlib.chdir(name):
        case = Case(tried.name, seed, number, Path(name))
        try:
            with warnings.catch_warnings(), bounded_memory(), bounded_time(tried.seconds):
                warnings.simplefilter("ignore")
                tried.run(case)
        except (Exception, TooLongError) as error:  # noqa: BLE001  # whatever it is, it is told
            return Outcome(number, perf_counter() - start, _told(error, case), _signature(error))
        finally:
            _open_all(Path(name))
    return Outcome(number, perf_counter() - start)


def serve(connection: Any) -> None:
    """Run the cases whose campaigns, seeds and numbers come in, until there are no more."""
    limit_process()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    while True:
        try:
            name, seed, number = connection.recv()
        except EOFError:
            return
        connection.send(attempt(campaign(name), seed, number))


def _told(error: BaseException, case: Case) -> str:
    lines = traceback.format_exception(type(error), error, error.__traceback__, limit=-FRAMES)
    text = "".join(lines)
    if len(text) > 6_000:
        text = f"{text[:2_000]}\n...\n{text[-4_000:]}"
    return "\n".join([*(f"  {note[:600]}" for note in case.notes), text]).encode(errors="backslashreplace").decode()


def _signature(error: BaseException) -> str:
    if isinstance(error, TooLongError):  # where it was by then is chance
        return str(error)
    first = str(error).split("\n", 1)[0]
    words = " ".join("#" if any(c.isdigit() for c in word) else word for word in first.split()[:8])
    return f"{type(error).__name__} at {_place(error.__traceback__)}: {words[:80]}"


def _place(trace: TracebackType | None) -> str:
    """The innermost line of the package; else the innermost one."""
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if "/jointwise/" in frame.filename]
    own = own or [frame for frame in frames if Path(frame.filename).name != "case.py"]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"


def _open_all(folder: Path) -> None:
    """Give back the rights that a case has taken from folders, so that they can be removed."""
    for place in [folder, *folder.rglob("*")]:
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o700)
