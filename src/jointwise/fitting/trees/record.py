"""TreeRecord: where the fit of one mixture of trees stands, in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jointwise.engines.trees import Forest
from jointwise.exceptions import FileFormatError, InputError
from jointwise.fitting.record import RunRecord, read_array, read_history, read_simplex
from jointwise.solvers import Reached
from jointwise.solvers.trees_em import PairPrior, TreeFactors, TreesState, normalised


class TreeRecord(RunRecord):
    """The state of one model of a fit: its start, then that of EM."""

    def begun(self, known: PairPrior, n_components: int) -> TreeFactors | None:
        """Return the start; None if the model has not begun."""
        return self._find("start", lambda content: _factors_from_dict(content["start"], known, n_components))

    def begin(self, start: TreeFactors) -> None:
        """Keep the start of the model."""
        self._keep(start=_factors_to_dict(start))

    def reached(self, known: PairPrior, n_components: int) -> Reached[TreesState] | None:
        """Return the last state of EM; None if it has not begun."""
        return self._find("em", lambda content: _reached_from_dict(content["em"], known, n_components))

    def on_state(self, reached: Reached[TreesState]) -> None:
        """Keep the state of EM."""
        state = reached.state
        self._keep(
            em={
                "factors": _factors_to_dict(state.factors),
                "update": _factors_to_dict(state.update),
                "objective": state.objective,
                "decreases": list(state.decreases),
                "trees": [state.age, state.wait, int(state.settled)],
                "history": np.array(reached.history),
            }
        )


def _factors_to_dict(factors: TreeFactors) -> dict[str, Any]:
    return {
        "parents": factors.forest.parents.astype(np.float64),
        "weights": factors.weights,
        "tables": factors.tables,
    }


def _factors_from_dict(data: Mapping[str, Any], known: PairPrior, n_components: int) -> TreeFactors:
    """Read what `_factors_to_dict` wrote, and check that they are trees over columns with known pairs."""
    parents = read_array(data["parents"], (n_components, len(known.n_bins)))
    if (parents != np.rint(parents)).any() or parents.min() < -1 or parents.max() >= len(known.n_bins):
        raise FileFormatError("parents must be numbers of columns, or -1")
    whole = parents.astype(np.int64)
    r, n = np.nonzero(whole >= 0)
    if (known.numbers[whole[r, n], n] < 0).any():
        raise FileFormatError("trees must join columns that may be joined")
    try:
        forest = Forest(known.n_bins, whole)
    except InputError as error:
        raise FileFormatError(f"trees must have no cycle: {error}") from error
    tables = read_array(data["tables"], (forest.n_entries,))
    if tables.min() < 0 or not np.allclose(normalised(forest, tables), tables, rtol=0, atol=1e-6):
        raise FileFormatError("the rows of tables must not be negative, and must sum to one")
    return TreeFactors(forest, read_simplex(data["weights"], (n_components,)), tables)


def _reached_from_dict(data: Mapping[str, Any], known: PairPrior, n_components: int) -> Reached[TreesState]:
    factors, update = (_factors_from_dict(data[key], known, n_components) for key in ("factors", "update"))
    last, before = (float(number) for number in data["decreases"])
    age, wait, settled = data["trees"]
    if not all(type(number) is int and number >= 0 for number in (age, wait, settled)):
        raise FileFormatError("the steps since trees were looked for must be whole numbers")
    state = TreesState(factors, float(data["objective"]), update, (last, before), age, wait, bool(settled))
    return Reached(state, read_history(data["history"]))
