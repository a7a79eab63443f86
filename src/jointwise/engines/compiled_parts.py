"""What compiled passes share: rows cut into parts, parts run in threads, logarithms turned into posteriors.

The rows are cut into parts by their number alone. Each part fills its own sums, which are added in order. So the result
is the same, bit for bit, on every repeat and for every number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import numba
import numpy as np

from jointwise._typing import AnyArray

# Fewest rows of a part, most parts, and most bytes of all their sums.
LEAST_PART, MOST_PARTS, PARTS_BYTES = 4096, 64, 512 * 2**20
# Smaller posteriors count as zero: they are less than the rounding of the others, and most are.
LEAST_POSTERIOR = 1e-16

FAST = {"reassoc", "contract", "arcp", "nsz"}  # fast arithmetic in which infinite logarithms stay what they are

ResultT = TypeVar("ResultT")
OtherT = TypeVar("OtherT")


def count_parts(n: int, n_bytes: int) -> int:
    """Return the number of parts of n rows, each with sums of this many bytes; it does not depend on the machine."""
    most = min(MOST_PARTS, PARTS_BYTES // max(n_bytes, 1))
    return int(np.clip(n // LEAST_PART, 1, max(most, 1)))


def n_cores() -> int:
    """Return the number of threads that compiled work may use."""
    return int(numba.get_num_threads())


def in_threads(task: Callable[[int], ResultT], n_tasks: int, n_threads: int) -> list[ResultT]:
    """Return the results of the tasks 0 to n_tasks - 1, in order; the tasks should release the interpreter's lock.

    The calling thread takes tasks too, and those that help it live on for the next call. So a task may call this again:
    what no thread is free for, the caller does itself. If a task fails, no further one begins.
    """
    results: dict[int, ResultT] = {}
    numbers = list(range(n_tasks))[::-1]

    def work() -> None:
        try:
            for number in _popped(numbers):
                results[number] = task(number)
        finally:
            numbers.clear()

    helpers: list[Future[None]] = [_helpers().submit(work) for _ in range(min(n_threads, n_tasks) - 1)]
    try:
        work()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    return [results[number] for number in range(n_tasks)]


def both(one: Callable[[], ResultT], other: Callable[[], OtherT], n_threads: int) -> tuple[ResultT, OtherT]:
    """Return the results of two tasks, as `in_threads` does.

    >>> both(lambda: 1, lambda: "b", 2)
    (1, 'b')
    """
    first, second = in_threads(lambda number: other() if number else one(), 2, n_threads)
    return first, second  # type: ignore[return-value]  # one of each


def _popped(numbers: list[int]) -> Iterator[int]:
    """Yield numbers until none is left; several threads may share them."""
    while True:
        try:
            yield numbers.pop()
        except IndexError:
            return


@cache
def _helpers() -> ThreadPoolExecutor:
    """Return the threads that help the calling one."""
    return ThreadPoolExecutor(max(numba.config.NUMBA_NUM_THREADS - 1, 1), "jointwise")  # type: ignore[attr-defined]


# a process that is forked has no threads but its first
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)


def locked(array: AnyArray) -> AnyArray:
    """Return a contiguous read-only view, whatever the array; numba compiles anew for each kind of array."""
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def to_posteriors(logs: AnyArray, weight: float) -> float:
    """Turn logarithms into posteriors times a weight, in place; return the log of their sum."""
    top = -np.inf
    for r in range(len(logs)):
        top = max(top, logs[r])
    total = 0.0
    for r in range(len(logs)):
        logs[r] = np.exp(logs[r] - top)
        total += logs[r]
    least, share = LEAST_POSTERIOR * total, weight / total
    for r in range(len(logs)):
        logs[r] = logs[r] * share if logs[r] > least else 0.0
    log_sum: float = top + np.log(total)
    return log_sum
