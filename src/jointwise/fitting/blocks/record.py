"""BlockRecord: where the fit of one model with a Gaussian block stands, in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from reprlib import repr as short
from typing import Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.exceptions import FileFormatError
from jointwise.fitting.checkpoint import SUM_TOLERANCE, Checkpoint
from jointwise.solvers import Reached
from jointwise.solvers.blocks_em import BlockFactors, BlocksProblem, BlocksState


class BlockRecord:
    """The state of one model of a fit: its start with the scale W, then that of EM.

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

    def of_part(self, n_rows: int) -> BlockRecord:
        """Return the record of the same model on a part of ``n_rows`` rows."""
        return BlockRecord(self._checkpoint, f"{self._stage} on {n_rows} rows")

    def begun(self, problem: BlocksProblem, n_components: int) -> tuple[BlocksProblem, BlockFactors] | None:
        """Return the problem with its scale, and the start; None if the model has not begun."""
        if "start" not in self._content:
            return None
        return self._checkpoint.find(
            self._stage,
            lambda content: (
                replace(problem, scale=_covariances(content["scale"], 1, len(problem.scale))[0]),
                _factors_from_dict(content["start"], problem, n_components),
            ),
        )

    def begin(self, scale: FloatArray, start: BlockFactors) -> None:
        """Keep the start of the model."""
        self._keep(scale=scale.reshape(1, -1), start=_factors_to_dict(start))

    def reached(self, problem: BlocksProblem, n_components: int) -> Reached[BlocksState] | None:
        """Return the last state of EM; None if it has not begun."""
        if "em" not in self._content:
            return None
        return self._checkpoint.find(
            self._stage, lambda content: _reached_from_dict(content["em"], problem, n_components)
        )

    def on_state(self, reached: Reached[BlocksState]) -> None:
        """Keep the state of EM."""
        state = reached.state
        self._keep(
            em={
                "factors": _factors_to_dict(state.factors),
                "update": _factors_to_dict(state.update),
                "objective": state.objective,
                "decreases": list(state.decreases),
                "history": np.array(reached.history),
            }
        )

    def flush(self) -> None:
        """Write the file, if anything has changed since the last write."""
        self._checkpoint.flush()

    def _keep(self, **content: Any) -> None:
        self._content = {**self._content, **content}
        # seeds of models are drawn again, so the generator stays at its first state
        self._checkpoint.keep(self._stage, self._content, draws_again=True)


def _factors_to_dict(factors: BlockFactors) -> dict[str, Any]:
    return {
        "weights": factors.weights,
        "means": factors.means,
        "covariances": factors.covariances.reshape(factors.n_components, -1),
        "coefficients": list(factors.coefficients),
        "spikes": list(factors.spikes),
    }


def _factors_from_dict(data: Mapping[str, Any], problem: BlocksProblem, n_components: int) -> BlockFactors:
    """Read what `_factors_to_dict` wrote, and check that they are factors of a problem."""
    d = len(problem.centre)
    return BlockFactors(
        _simplex(data["weights"], (n_components,)),
        _array(data["means"], (n_components, d)),
        _covariances(data["covariances"], n_components, d),
        _tables(data["coefficients"], [len(m) for m in problem.margins], n_components),
        _tables(data["spikes"], [len(q) for q in problem.spike_margins], n_components),
    )


def _reached_from_dict(data: Mapping[str, Any], problem: BlocksProblem, n_components: int) -> Reached[BlocksState]:
    factors, update = (_factors_from_dict(data[key], problem, n_components) for key in ("factors", "update"))
    last, before = (float(number) for number in data["decreases"])
    history = data["history"]
    if not isinstance(history, np.ndarray) or history.ndim != 1:
        raise FileFormatError("a history must be an array of numbers")
    return Reached(BlocksState(factors, float(data["objective"]), update, (last, before)), tuple(history.tolist()))


def _tables(tables: Any, lengths: Sequence[int], n_components: int) -> tuple[FloatArray, ...]:
    return tuple(_simplex(table, (length, n_components)) for table, length in zip(tables, lengths, strict=True))


def _simplex(values: Any, shape: tuple[int, ...]) -> FloatArray:
    array = _array(values, shape)
    if not (np.all(array >= 0) and np.allclose(array.sum(axis=0), 1.0, rtol=0, atol=SUM_TOLERANCE)):
        raise FileFormatError("weights, coefficients and spikes must not be negative, and must sum to one")
    return array


def _covariances(values: Any, n: int, d: int) -> FloatArray:
    covariances = _array(values, (n, d * d)).reshape(n, d, d)
    symmetric = np.allclose(covariances, np.swapaxes(covariances, 1, 2), rtol=1e-9, atol=0)
    if not symmetric or (d and not np.linalg.eigvalsh(covariances).min() > 0):
        raise FileFormatError("covariances must be symmetric and positive definite")
    return covariances


def _array(values: Any, shape: tuple[int, ...]) -> FloatArray:
    if not isinstance(values, np.ndarray) or values.shape != shape or not np.isfinite(values).all():
        raise FileFormatError(f"an array of numbers must have the shape {shape}, not {short(np.shape(values))}")
    return values
