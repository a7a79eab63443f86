"""What was fitted, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from jointwise.joint.density import JointDensity
from jointwise.solvers import Solution
from jointwise.variables import Variable

# An atom with less weight than this in its column's density counts as not in use.
LEAST_WEIGHT = 1e-3


@dataclass(frozen=True)
class FitNotes:
    """What a fit was asked and what it saw, beyond the density.

    Parameters
    ----------
    method : str
        What was maximised or minimised.
    n_rows : float
        Number of rows used, or the sum of their weights.
    n_started : int
        Number of components at the start.
    gain : float, optional
        Log-likelihood of a row beyond that of independence, in nats; None from pairs alone.
    beta : float, optional
        Strength of the prior; None from pairs alone.
    beta_given : bool
        Whether the caller gave it.
    """

    method: str
    n_rows: float
    n_started: int
    gain: float | None = None
    beta: float | None = None
    beta_given: bool = False


def summary_text(name: str, density: JointDensity, notes: FitNotes, last: Sequence[Solution[Any]]) -> str:
    """Lines on the fit, then a table of the columns.

    Parameters
    ----------
    name : str
        The estimator's.
    density : JointDensity
    notes : FitNotes
    last : sequence of Solution
        The last stage; empty where one column left nothing to solve.
    """
    return "\n".join([*_fit_lines(name, density, notes, last), "", *_aligned(_column_cells(density))])


def _fit_lines(name: str, density: JointDensity, notes: FitNotes, last: Sequence[Solution[Any]]) -> Iterator[str]:
    n_columns, n_components = len(density.names), density.mixture.n_components
    yield f"{name}: joint density of {n_columns} column{'s' * (n_columns > 1)}"
    yield f"rows: {notes.n_rows:,.10g}"
    if not last:
        yield "fit: one column, by likelihood of its values"
        return
    yield f"fit: {notes.method}"
    yield f"components: {n_components} kept of {notes.n_started} at the start"
    if notes.beta is not None:
        yield f"beta: {notes.beta:g} ({'given' if notes.beta_given else 'by held-out likelihood'})"
    yield f"steps: {last[0].n_steps}, {last[0].status.value.replace('_', ' ')}"
    if notes.gain is not None:
        yield f"gain over independence: {round(notes.gain, 3) + 0.0:.3f} nats per training row"
    if n_components == 1 < notes.n_started:
        yield "The columns show no dependence: the density is their independence."


def _column_cells(density: JointDensity) -> Iterator[tuple[str, ...]]:
    yield "column", "kind", "values", "atoms", "in use"
    mixture = density.mixture
    for variable, coefficients, dictionary in zip(
        density.schema, mixture.coefficients, mixture.dictionaries, strict=True
    ):
        in_use = int(np.sum(coefficients @ mixture.weights > LEAST_WEIGHT))
        kind = "ordinal" if variable.ordered else variable.kind.value
        yield variable.name, kind, _values(variable), " + ".join(dictionary.summary()), str(in_use)


def _values(variable: Variable) -> str:
    """Range of a variable, or its number of categories."""
    if variable.categories is not None:
        return f"{len(variable.categories)} categories"
    low, high = variable.observed
    if isnan(low) or isnan(high):
        return "unknown"
    return f"{_shown(variable.decode_value(low))} to {_shown(variable.decode_value(high))}"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _aligned(table: Iterator[tuple[str, ...]]) -> list[str]:
    rows = list(table)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
