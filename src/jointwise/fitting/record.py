"""RunRecord: where the fit of one model stands, in a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import repr as short
from typing import Any, Self, TypeVar

import numpy as np

from jointwise._typing import FloatArray
from jointwise.exceptions import FileFormatError
from jointwise.fitting.checkpoint import SUM_TOLERANCE, Checkpoint

T = TypeVar("T")


class RunRecord:
    """The state of one model of a fit: its start, then that of its solver.

    Parameters
    ----------
    checkpoint : Checkpoint
    stage : str
        Name of the model's stage.
    """

    def __init__(self, checkpoint: Checkpoint, stage: str) -> None:
        self._checkpoint = checkpoint
        self._stage = stage
        self._content: dict[str, Any] = checkpoint.find(stage, dict) or {}

    def of_part(self, n_rows: int) -> Self:
        """Return the record of the same model on a part of ``n_rows`` rows."""
        return type(self)(self._checkpoint, f"{self._stage} on {n_rows} rows")

    def flush(self) -> None:
        """Write the file, if anything has changed since the last write."""
        self._checkpoint.flush()

    def _find(self, key: str, build: Callable[[dict[str, Any]], T]) -> T | None:
        """Return what was kept under a key, built from all content; None if there is nothing."""
        return self._checkpoint.find(self._stage, build) if key in self._content else None

    def _keep(self, **content: Any) -> None:
        self._content = {**self._content, **content}
        # seeds of models are drawn again, so the generator stays at its first state
        self._checkpoint.keep(self._stage, self._content, draws_again=True)


def read_history(history: Any) -> tuple[float, ...]:
    """Return the objectives of a run."""
    if not isinstance(history, np.ndarray) or history.ndim != 1:
        raise FileFormatError("a history must be an array of numbers")
    return tuple(history.tolist())


def read_simplex(values: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return an array of a shape whose columns are on the simplex."""
    array = read_array(values, shape)
    if not (np.all(array >= 0) and np.allclose(array.sum(axis=0), 1.0, rtol=0, atol=SUM_TOLERANCE)):
        raise FileFormatError("weights and probabilities must not be negative, and must sum to one")
    return array


def read_array(values: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return an array of finite numbers of a shape."""
    if not isinstance(values, np.ndarray) or values.shape != shape or not np.isfinite(values).all():
        raise FileFormatError(f"an array of numbers must have the shape {shape}, not {short(np.shape(values))}")
    return values
