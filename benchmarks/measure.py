"""Time and memory of work, and the draws that the benchmarks of laws share."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from jointwise import JointDensity

# Fresh points of a law on which the distance D is taken.
N_TEST = 1_000


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of work, and its seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def repeated(work: Callable[[], Any], repeats: int) -> list[float]:
    """Return the seconds of each of several runs of the same work."""
    return [timed(work)[1] for _ in range(repeats)]


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Run work in a new process, so that its peak of memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def peak_bytes() -> int:
    """Return the largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def train_and_test(law: JointDensity, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw n rows of a law to fit, and `N_TEST` fresh points."""
    return law.sample(n, rng=1_000 + seed), law.sample(N_TEST, rng=2_000 + seed)


def kinds_of(law: JointDensity) -> dict[str, str]:
    """Return the kind of each variable of a law."""
    return {variable.name: str(variable.kind) for variable in law.schema}
