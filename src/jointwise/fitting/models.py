"""Several models whose average is the density, fitted side by side; Ctrl-C may keep those that are ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.engines.threads import in_threads, n_cores
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.rows.base import Rows
from jointwise.solvers import Solution, Status

# A component with fewer rows than this is dropped.
LEAST_ROWS = 0.5
# Fits of larger tables run one after the other: their passes use all cores, and each takes memory.
SIDE_BY_SIDE = 20_000

Callback = Callable[[int, float], None]
ValueT = TypeVar("ValueT")


def fit_models(
    n_models: int,
    rng: np.random.Generator,
    fit_model: Callable[[int, int], Solution[ValueT]],
    *,
    keep_on_interrupt: bool,
    n_threads: int = 1,
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
    n_threads : int
        How many models may be fitted at once.
    """
    seeds = rng.integers(2**32, size=n_models)
    found: dict[int, Solution[ValueT]] = {}

    def fit(model: int) -> None:
        if not any(solution.status is Status.INTERRUPTED for solution in list(found.values())):
            found[model] = fit_model(model + 1, int(seeds[model]))

    try:
        in_threads(fit, n_models, n_threads)
    except KeyboardInterrupt:
        if not (keep_on_interrupt and found):
            raise
        message = f"The fit was interrupted in model {len(found) + 1} of {n_models}."
        found[max(found)] = replace(found[max(found)], status=Status.INTERRUPTED, message=message)
    return {"likelihood" if n_models == 1 else f"likelihood {model + 1}": found[model] for model in sorted(found)}


def n_side_by_side(rows: Rows, checkpoint: Checkpoint, callback: Callback | None = None) -> int:
    """Return how many fits of a table may run at once; one where their steps are shown or kept."""
    if callback is not None or checkpoint.is_kept or len(rows) > SIDE_BY_SIDE:
        return 1
    return n_cores()


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
