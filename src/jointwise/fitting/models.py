"""Several models fitted one after the other, whose average is the density; Ctrl-C may keep those that are ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.solvers import Solution, Status

# A component with fewer rows than this is dropped.
LEAST_ROWS = 0.5

ValueT = TypeVar("ValueT")


def fit_models(
    n_models: int,
    rng: np.random.Generator,
    fit_model: Callable[[int, int], Solution[ValueT]],
    *,
    keep_on_interrupt: bool,
) -> dict[str, Solution[ValueT]]:
    """Return how the last run of each model went, by stage.

    Parameters
    ----------
    n_models : int
    rng : numpy.random.Generator
        Draws the seeds of the models.
    fit_model : callable
        Returns how the last run of a model went, from its number, one and up, and its seed.
    keep_on_interrupt : bool
        Whether Ctrl-C keeps the models that are fitted by then.
    """
    stages: dict[str, Solution[ValueT]] = {}
    for model, seed in enumerate(rng.integers(2**32, size=n_models), start=1):
        try:
            solution = fit_model(model, int(seed))
        except KeyboardInterrupt:
            if not (keep_on_interrupt and stages):
                raise
            last, solution = stages.popitem()
            message = f"The fit was interrupted in model {model} of {n_models}."
            stages[last] = replace(solution, status=Status.INTERRUPTED, message=message)
            break
        stages["likelihood" if n_models == 1 else f"likelihood {model}"] = solution
        if solution.status is Status.INTERRUPTED:
            break
    return stages


@contextmanager
def written_on_interrupt(checkpoint: Checkpoint) -> Iterator[None]:
    """Write the checkpoint if Ctrl-C ends what runs within."""
    try:
        yield
    except KeyboardInterrupt:
        checkpoint.flush()
        raise


def close_checkpoint(checkpoint: Checkpoint, stages: Mapping[str, Solution[ValueT]]) -> None:
    """Remove the checkpoint of a fit that has ended; write that of one that was interrupted and kept what it had."""
    if any(stage.status is Status.INTERRUPTED for stage in stages.values()):
        checkpoint.flush()
    else:
        checkpoint.remove()


def alive(weights: FloatArray, n_rows: float) -> IntArray:
    """Return the positions of the components that have rows, largest first.

    >>> alive(np.array([0.2, 0.0, 0.8]), 100)
    array([2, 0])
    """
    kept = np.flatnonzero(weights >= min(LEAST_ROWS / n_rows, float(weights.max())))
    return np.asarray(kept[np.argsort(-weights[kept], kind="stable")])
