"""Bounds on what a case may take: hangs and memory bombs are failures, not the end of the run."""

import re
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Wall-clock time is no measure where others use the machine too: it only bounds what waits without working.
WALL_SECONDS = 90.0
# The most that a case may add to the memory in use, and all that its process may ask for.
CASE_BYTES = 1 << 30
PROCESS_BYTES = 8 << 30
# A limit that was caught and forgotten on its way up comes again.
AGAIN_SECONDS = 2.0


class TooLongError(BaseException):
    """A case that takes too long; not an `Exception`, so that nobody handles it."""


class TooMuchMemoryError(Exception):
    """A case that takes too much memory."""


@contextmanager
def bounded_time(cpu: float, wall: float = WALL_SECONDS) -> Iterator[None]:
    """Raise `TooLongError` in what runs inside after so many seconds."""
    timers = [
        (signal.SIGALRM, signal.ITIMER_REAL, wall, f"over {wall:g} s by the clock"),
        (signal.SIGPROF, signal.ITIMER_PROF, cpu, f"over {cpu:g} s of processor time"),
    ]

    def handler(sentence):
        def stop(_number, _frame):
            raise TooLongError(sentence)

        return stop

    before = [signal.signal(number, handler(sentence)) for number, _, _, sentence in timers]
    try:
        for _, timer, seconds, _ in timers:
            signal.setitimer(timer, seconds, AGAIN_SECONDS)
        yield
    finally:
        for (number, timer, _, _), old in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, old)


@contextmanager
def bounded_memory(most: int = CASE_BYTES) -> Iterator[None]:
    """Raise `TooMuchMemoryError` at the end if what ran inside has taken more, where the system tells."""
    before = _resident("VmRSS")
    _forget_peak()
    yield
    peak = _resident("VmHWM")
    if peak - before > most:
        raise TooMuchMemoryError(f"{(peak - before) >> 20:,} MiB")


def limit_process() -> None:
    """Bound the address space of this process and those it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (PROCESS_BYTES, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _resident(key: str) -> int:
    status = Path("/proc/self/status")
    found = re.search(rf"{key}:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) << 10 if found else 0


def _forget_peak() -> None:
    with suppress(OSError):  # another system: only the address space is bounded
        Path("/proc/self/clear_refs").write_text("5")
