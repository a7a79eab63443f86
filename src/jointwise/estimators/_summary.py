"""What was fitted, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from jointwise.joint.density import JointDensity
from jointwise.solvers import Solution, Status
from jointwise.tables.variables import Variable

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
        Number of components at the start, of each model.
    n_models : int
        Number of models that were averaged.
    gain : float, optional
        Log-likelihood of a row beyond that of independence, in nats; None from pairs alone.
    held_out, independence : float, optional
        Mean log-likelihood of the bins of held-out rows, and the same if the columns were independent; None where
        there was nothing to choose.
    beta : float, optional
        Strength of the prior; None from pairs alone.
    learned : bool
        Whether locations and scales of atoms were learned.
    chosen : tuple of str
        What was chosen by held-out likelihood, of "n_components" and "beta".
    second_share : float
        Share of a second density, of standardised columns, in the probabilities of classes.
    verdict : str
        What the check on held-out rows said; empty where there was none.
    """

    method: str
    n_rows: float
    n_started: int
    n_models: int = 1
    gain: float | None = None
    held_out: float | None = None
    independence: float | None = None
    beta: float | None = None
    learned: bool = False
    chosen: tuple[str, ...] = ()
    second_share: float = 0.0
    verdict: str = ""


def summary_text(name: str, density: JointDensity, notes: FitNotes, final: Sequence[Solution[Any]]) -> str:
    """Lines on the fit, then a table of the columns.

    Parameters
    ----------
    name : str
        The estimator's.
    density : JointDensity
    notes : FitNotes
    final : sequence of Solution
        The runs whose answer the density is; empty where there was nothing to solve.
    """
    return "\n".join([*_fit_lines(name, density, notes, final), "", *_aligned(_column_cells(density))])


def _fit_lines(name: str, density: JointDensity, notes: FitNotes, final: Sequence[Solution[Any]]) -> Iterator[str]:
    n_columns, n_components = len(density.names), density.mixture.n_components
    yield f"{name}: joint density of {n_columns} column{'s' * (n_columns > 1)}"
    yield f"rows: {notes.n_rows:,.10g}"
    if n_columns == 1:
        yield "fit: one column, by likelihood of its values"
        if notes.verdict:
            yield f"check: {notes.verdict}"
        return
    yield f"fit: {notes.method}" + f", average of {notes.n_models} models" * (notes.n_models > 1)
    yield f"components: {n_components} kept of {_started(notes)}"
    if notes.beta is not None:
        yield f"beta: {notes.beta:g} ({_how('beta', notes)})"
    if notes.learned:
        yield "atoms: locations and scales learned from the rows"
    if final:
        yield f"steps: {' + '.join(str(solution.n_steps) for solution in final)}, {_ending(final)}"
    if notes.gain is not None:
        yield f"gain over independence: {round(notes.gain, 3) + 0.0:.3f} nats per training row"
    if notes.held_out is not None:
        yield (
            f"held-out log-likelihood of a row's bins, one model: {notes.held_out:.3f}; "
            f"if the columns were independent: {notes.independence:.3f}"
        )
    if notes.second_share:
        yield f"classes: {notes.second_share:.0%} by a second density, of columns standardised within classes"
    if notes.verdict:
        yield f"check: {notes.verdict}"
    if n_components == 1 and "n_components" in notes.chosen:
        yield "The columns show no dependence: the density is their independence."


def _started(notes: FitNotes) -> str:
    each = f"{notes.n_models} x " * (notes.n_models > 1)
    how = f" ({_how('n_components', notes)})" if notes.beta is not None else ""
    return f"{each}{notes.n_started} at the start{how}"


def _how(name: str, notes: FitNotes) -> str:
    return "by held-out likelihood" if name in notes.chosen else "given"


def _ending(final: Sequence[Solution[Any]]) -> str:
    """How the runs ended; where not all ended alike, the worst."""
    unfinished = [solution for solution in final if not solution.converged]
    return (unfinished[-1].status if unfinished else Status.CONVERGED).value.replace("_", " ")


def _column_cells(density: JointDensity) -> Iterator[tuple[str, ...]]:
    yield "column", "kind", "values", "support", "step", "atoms", "in use"
    mixture = density.mixture
    for variable, coefficients, dictionary in zip(
        density.schema, mixture.coefficients, mixture.dictionaries, strict=True
    ):
        in_use = int(np.sum(coefficients @ mixture.weights > LEAST_WEIGHT))
        kind = "ordinal" if variable.ordered else variable.kind.value
        step = f"{variable.step:g}" if variable.step else ""
        atoms = " + ".join(dictionary.summary())
        yield variable.name, kind, _values(variable), variable.shown_support(), step, atoms, str(in_use)


def _values(variable: Variable) -> str:
    """Range of a variable, or its number of categories."""
    if variable.categories is not None:
        n_categories = len(variable.categories)
        return f"{n_categories} categor{'y' if n_categories == 1 else 'ies'}"
    low, high = variable.observed
    if isnan(low) or isnan(high):
        return "unknown"
    return f"{_shown(variable.decode_value(low))} to {_shown(variable.decode_value(high))}"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _aligned(table: Iterator[tuple[str, ...]]) -> list[str]:
    """Return the rows as lines; columns that say nothing below their head are left out."""
    columns = [column for column in zip(*table, strict=True) if any(column[1:])]
    rows = list(zip(*columns, strict=True))
    widths = [max(map(len, column)) for column in columns]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
