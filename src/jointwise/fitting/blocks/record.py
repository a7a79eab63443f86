"""BlockRecord: where the fit of one model with a Gaussian block stands, in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.exceptions import FileFormatError
from jointwise.fitting.record import RunRecord, read_array, read_history, read_simplex
from jointwise.solvers import Reached
from jointwise.solvers.blocks_em import BlockFactors, BlocksProblem, BlocksState


class BlockRecord(RunRecord):
    """The state of one model of a fit: its start with the scale W, then that of EM."""

    def begun(self, problem: BlocksProblem, n_components: int) -> tuple[BlocksProblem, BlockFactors] | None:
        """Return the problem with its scale, and the start; None if the model has not begun."""
        return self._find(
            "start",
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
        return self._find("em", lambda content: _reached_from_dict(content["em"], problem, n_components))

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
        read_simplex(data["weights"], (n_components,)),
        read_array(data["means"], (n_components, d)),
        _covariances(data["covariances"], n_components, d),
        _tables(data["coefficients"], [len(m) for m in problem.margins], n_components),
        _tables(data["spikes"], [len(q) for q in problem.spike_margins], n_components),
    )


def _reached_from_dict(data: Mapping[str, Any], problem: BlocksProblem, n_components: int) -> Reached[BlocksState]:
    factors, update = (_factors_from_dict(data[key], problem, n_components) for key in ("factors", "update"))
    last, before = (float(number) for number in data["decreases"])
    state = BlocksState(factors, float(data["objective"]), update, (last, before))
    return Reached(state, read_history(data["history"]))


def _tables(tables: Any, lengths: Sequence[int], n_components: int) -> tuple[FloatArray, ...]:
    return tuple(read_simplex(table, (length, n_components)) for table, length in zip(tables, lengths, strict=True))


def _covariances(values: Any, n: int, d: int) -> FloatArray:
    covariances = read_array(values, (n, d * d)).reshape(n, d, d)
    symmetric = np.allclose(covariances, np.swapaxes(covariances, 1, 2), rtol=1e-9, atol=0)
    if not symmetric or (d and not np.linalg.eigvalsh(covariances).min() > 0):
        raise FileFormatError("covariances must be symmetric and positive definite")
    return covariances
