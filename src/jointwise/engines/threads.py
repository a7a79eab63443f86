"""Tasks side by side, in threads that live on from call to call, whatever tasks call this again."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Generic, TypeVar

import numba

ResultT = TypeVar("ResultT")
OtherT = TypeVar("OtherT")


def n_cores() -> int:
    """Return the number of threads that compiled work may use."""
    return int(numba.get_num_threads())


def in_threads(task: Callable[[int], ResultT], n_tasks: int, n_threads: int) -> list[ResultT]:
    """Return the results of the tasks 0 to n_tasks - 1, in order; the tasks should release the interpreter's lock.

    The calling thread takes tasks too, and those that help it live on for the next call. So a task may call this again:
    what no thread is free for, the caller does itself, and a caller that waits for others helps with what their tasks
    call. If a task fails, no further one begins.

    Examples
    --------
    >>> in_threads(lambda number: sum(in_threads(lambda inner: number * inner, 3, 2)), 4, 2)
    [0, 3, 6, 9]
    """
    job = _Job(task, n_tasks, min(n_threads, n_tasks) - 1)
    if job.places < 1:
        return [task(number) for number in range(n_tasks)]
    return job.run(_crew())


def both(one: Callable[[], ResultT], other: Callable[[], OtherT], n_threads: int) -> tuple[ResultT, OtherT]:
    """Return the results of two tasks, as `in_threads` does.

    >>> both(lambda: 1, lambda: "b", 2)
    (1, 'b')
    """
    first, second = in_threads(lambda number: other() if number else one(), 2, n_threads)
    return first, second  # type: ignore[return-value]  # one of each


class _Crew:
    """The threads that help, and what they tell each other: `changed` guards the state of every job."""

    def __init__(self) -> None:
        self.helpers = ThreadPoolExecutor(max(numba.config.NUMBA_NUM_THREADS - 1, 1), "jointwise")  # type: ignore[attr-defined]
        self.changed = threading.Condition()
        self.here = threading.local()  # `job` is the one whose task this thread is in


@cache
def _crew() -> _Crew:
    """Return the threads of this process."""
    return _Crew()


# a process that is forked has no threads but its first
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_crew.cache_clear)


class _Job(Generic[ResultT]):
    """Tasks that several threads take.

    Parameters
    ----------
    task : callable
    n_tasks : int
    places : int
        How many threads may help the one that calls `run`.
    """

    def __init__(self, task: Callable[[int], ResultT], n_tasks: int, places: int) -> None:
        self._task = task
        self._n_tasks = n_tasks
        self.left = list(range(n_tasks))[::-1]
        self._results: dict[int, ResultT] = {}
        self._failures: list[BaseException] = []
        self._helping = 0
        self.inner: list[_Job[object]] = []  # those that its tasks have begun and not ended
        self.places = places

    def run(self, crew: _Crew) -> list[ResultT]:
        """Return the results of all tasks."""
        outer: _Job[object] | None = getattr(crew.here, "job", None)
        n_places = self.places
        with crew.changed:
            if outer is not None:
                outer.inner.append(self)  # type: ignore[arg-type]  # its results are none of the outer job's
                crew.changed.notify_all()
        for _ in range(n_places):
            crew.helpers.submit(self.help, crew)
        try:
            self._work(crew)
        finally:
            self._wait(crew, outer)
            # helpers who are busy meet this job later: it must not keep arrays until then
            del self._task
        if self._failures:
            raise self._failures[0]
        return [self._results.pop(number) for number in range(self._n_tasks)]

    def _work(self, crew: _Crew) -> None:
        """Take tasks until none is left."""
        before = getattr(crew.here, "job", None)
        crew.here.job = self
        try:
            while self.left:
                try:
                    number = self.left.pop()
                except IndexError:  # another thread was faster
                    break
                self._results[number] = self._task(number)
        finally:
            self.left.clear()
            crew.here.job = before

    def help(self, crew: _Crew) -> bool:
        """Take tasks beside the caller; return whether there was a place and a task."""
        with crew.changed:
            if not (self.places and self.left):
                return False
            self.places -= 1
            self._helping += 1
        try:
            self._work(crew)
        except BaseException as failure:  # noqa: BLE001 -- the caller raises it
            self._failures.append(failure)
        with crew.changed:
            self._helping -= 1
            crew.changed.notify_all()
        return True

    def _wait(self, crew: _Crew, outer: _Job[object] | None) -> None:
        """Wait for those that help, and help with what their tasks call."""
        while self._helping:
            with crew.changed:
                crew.changed.wait_for(lambda: not self._helping or self._open())
                inner = self._open()
            if inner is not None:
                inner.help(crew)
        with crew.changed:
            self.places = 0
            if outer is not None:
                outer.inner.remove(self)  # type: ignore[arg-type]

    def _open(self) -> _Job[object] | None:
        """Return a job within that has a place and tasks; outer ones first, whose tasks are longer."""
        jobs = list(self.inner)
        for job in jobs:
            if job.places and job.left:
                return job
            jobs.extend(job.inner)
        return None
