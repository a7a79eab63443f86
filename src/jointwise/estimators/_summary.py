"""What was fitted, as text."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from jointwise._checks import warn_caller
from jointwise.fitting import Fit
from jointwise.joint.density import JointDensity
from jointwise.solvers import Status
from jointwise.tables.variables import Variable

# An atom with less weight than this in its column's density counts as not in use.
LEAST_WEIGHT = 1e-3


METHODS = {
    "rows": "likelihood of the rows",
    "pairs": "likelihood of pairs of columns",
    "paper": "squared error of pairs of columns",
}


def summary_text(name: str, fit: Fit) -> str:
    """Return lines on the fit, then a table of the columns.

    Parameters
    ----------
    name : str
        The estimator's.
    fit : Fit
    """
    return "\n".join([*_fit_lines(name, fit), "", *_aligned(_column_cells(fit.density))])


def _fit_lines(name: str, fit: Fit) -> Iterator[str]:
    density, choice = fit.density, fit.choice
    n_columns, n_components = len(density.names), density.n_components
    yield f"{name}: joint density of {n_columns} column{'s' * (n_columns > 1)}"
    yield f"rows: {fit.n_rows:,.10g}"
    if n_columns == 1:
        yield "fit: one column, by likelihood of its values"
        yield from _verdict(density)
        return
    from_rows = choice.beta is not None
    method = fit.options.method if from_rows or fit.options.method == "paper" else "pairs"
    n_models = len(fit.final) or len(choice.models)  # fewer where the fit was interrupted
    yield f"fit: {METHODS[method]}" + f", average of {n_models} models" * (n_models > 1)
    each = f"{n_models} x " * (n_models > 1)
    how = f" ({_how(fit.options.n_components)})" if from_rows else ""
    yield f"components: {n_components} kept of {each}{choice.n_components} at the start{how}"
    if from_rows:
        yield f"beta: {choice.beta:g} ({_how(fit.options.beta)})"
    if choice.learn_dictionary:
        yield "atoms: locations and scales learned from the rows"
    if fit.final:
        ending = (fit.unfinished.status if fit.unfinished else Status.CONVERGED).value.replace("_", " ")
        yield f"steps: {' + '.join(str(solution.n_steps) for solution in fit.final)}, {ending}"
    if fit.gain is not None:
        yield f"gain over independence: {round(fit.gain, 3) + 0.0:.3f} nats per training row"
    if choice.held_out is not None:
        yield (
            f"held-out log-likelihood of a row's bins, one model: {choice.held_out:.3f}; "
            f"if the columns were independent: {choice.independence:.3f}"
        )
    yield from _verdict(density)
    if n_components == 1 and from_rows and fit.options.n_components == "auto":
        yield "The columns show no dependence: the density is their independence."


def warn_unfinished(fit: Fit) -> None:
    """Warn of a fit that stopped short, with what to do about it."""
    if fit.unfinished is None:
        return
    options = fit.options
    remedy = (
        "The density is the one reached by then; fit again for the rest."
        if fit.was_interrupted
        else f"Raise max_iter (now {options.max_iter}) or tol (now {options.tol}), or lower n_components (now "
        f"{options.n_components})."
    )
    warn_caller(f"{fit.unfinished.message} {remedy}", ConvergenceWarning)


def _verdict(density: JointDensity) -> Iterator[str]:
    if density.verdict:
        yield f"check: {density.verdict}"


def _how(asked: Any) -> str:
    return "by held-out likelihood" if asked == "auto" else "given"


def _column_cells(density: JointDensity) -> Iterator[tuple[str, ...]]:
    yield "column", "kind", "values", "support", "step", "atoms", "in use"
    for n, variable in enumerate(density.schema):
        margin = density.mixture.margin(n)
        in_use = int(np.sum(margin.weights > LEAST_WEIGHT))
        kind = "ordinal" if variable.ordered else variable.kind.value
        step = f"{variable.step:g}" if variable.step else ""
        atoms = " + ".join(margin.dictionary.summary())
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
