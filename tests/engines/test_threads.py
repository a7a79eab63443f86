"""Tasks in threads: every task once, results in order, calls within calls, failures, and processes that fork."""

import gc
import multiprocessing
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from jointwise.engines.threads import _crew, in_threads


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 7, 100])
def test_every_task_runs_once_and_results_are_in_order(n_tasks, n_threads):
    begun = []

    def task(number):
        begun.append(number)
        return number**2

    assert in_threads(task, n_tasks, n_threads) == [number**2 for number in range(n_tasks)]
    assert sorted(begun) == list(range(n_tasks))


def test_tasks_run_side_by_side():
    both = threading.Barrier(2)  # broken unless two threads wait
    assert sorted(in_threads(lambda _: both.wait(timeout=20), 2, 2)) == [0, 1]


def test_a_task_may_have_tasks_of_its_own():
    def outer(number):
        return sum(in_threads(lambda inner: 10 * number + inner, 5, 3))

    assert in_threads(outer, 6, 3) == [50 * number + 10 for number in range(6)]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_a_task_raises_is_raised_and_no_further_task_begins(n_threads):
    begun = []

    def task(number):
        begun.append(number)
        if number == 1:
            raise KeyError(number)
        time.sleep(0.05)

    with pytest.raises(KeyError):
        in_threads(task, 50, n_threads)
    assert len(begun) < 10


def _in_child(queue):
    queue.put(in_threads(lambda number: number, 8, 2))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks by default")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    in_threads(lambda _: time.sleep(0.01), 2, 2)  # so that there is a thread that the child lacks
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=20) == list(range(8))
    finally:
        child.join(timeout=20)


def test_a_caller_that_waits_helps_with_what_others_call():
    # two threads: one has nothing left to do, and the other's tasks wait for each other
    meet = threading.Barrier(2)

    def outer(number):
        return in_threads(lambda _: meet.wait(timeout=20), 2, 2) if number else None

    assert sorted(in_threads(outer, 2, 2)[1]) == [0, 1]


def test_what_a_waiting_caller_raises_is_raised_where_it_was_called():
    meet = threading.Barrier(2)

    def inner(number):
        meet.wait(timeout=20)
        raise KeyError(number)

    def outer(number):
        if number:
            with pytest.raises(KeyError):
                in_threads(inner, 2, 2)
            return "caught"
        return None

    assert in_threads(outer, 2, 2) == [None, "caught"]


def test_nothing_is_kept_for_helpers_that_are_busy():
    go_on = threading.Event()
    n_helpers = _crew().helpers._max_workers
    busy = [_crew().helpers.submit(go_on.wait, 20) for _ in range(n_helpers)]
    try:
        array = np.zeros(10)
        kept = weakref.ref(array)
        results = in_threads(lambda number, array=array: array + number, 3, 2)
        result = weakref.ref(results[0])
        del array, results
        gc.collect()
        assert kept() is None
        assert result() is None
    finally:
        go_on.set()
    assert all(each.result(timeout=20) for each in busy)
