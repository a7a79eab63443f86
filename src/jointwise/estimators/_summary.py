"""What was fitted, as text."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from jointwise._checks import shown, warn_caller
from jointwise.fitting import Fit
from jointwise.fitting.blocks import BlockFit
from jointwise.fitting.fits import AnyFit, ClassFit
from jointwise.fitting.stack import StackFit
from jointwise.fitting.trees import TreeFit
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


def summary_text(name: str, fit: Fit | BlockFit | TreeFit | StackFit) -> str:
    """Return lines on the fit, then a table of the columns.

    Parameters
    ----------
    name : str
        The estimator's.
    fit : Fit, BlockFit or StackFit
    """
    if isinstance(fit, StackFit):
        return "\n".join([*_stack_lines(name, fit), "", *_aligned(_stack_cells(fit))])
    if isinstance(fit, BlockFit):
        return "\n".join([*_block_lines(name, fit), "", *_aligned(_block_cells(fit))])
    if isinstance(fit, TreeFit):
        return "\n".join([*_tree_lines(name, fit), "", *_aligned(_tree_cells(fit))])
    return "\n".join([*_fit_lines(name, fit), "", *_aligned(_column_cells(fit.density))])


def _fit_lines(name: str, fit: Fit) -> Iterator[str]:
    density, choice = fit.density, fit.choice
    n_columns, n_components = len(density.schema), density.n_components
    yield from _first_lines(name, fit)
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
        yield _steps(fit)
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


def _block_lines(name: str, fit: BlockFit) -> Iterator[str]:
    density, choice, options = fit.density, fit.choice, fit.options
    n_models, n_block = len(fit.final), len(fit.design.columns)
    yield from _first_lines(name, fit)
    yield "fit: likelihood of the rows" + f", average of {n_models} models" * (n_models > 1)
    yield f"block: {n_block} column{'s' * (n_block != 1)}, warp {options.warp}"
    each = f"{n_models} x " * (n_models > 1)
    yield (
        f"components: {density.n_components} kept of {each}{choice.n_components} at the start "
        f"({_how(options.n_components)})"
    )
    yield f"nu: {choice.nu:g} ({_how(options.nu)}), beta: {choice.beta:g}"
    yield _steps(fit)
    if choice.held_out is not None:
        yield f"held-out log-likelihood of a row, one model: {choice.held_out:.3f}"
    yield from _verdict(density)


def _block_cells(fit: BlockFit) -> Iterator[tuple[str, ...]]:
    yield "column", "kind", "values", "step", "in the block"
    for variable in (fit.density.schema[name] for name in fit.density.names):
        reason = fit.design.left_out.get(variable.name)
        place = "yes" if reason is None else f"no: {reason}"
        yield variable.name, *_about(variable), place


def _tree_lines(name: str, fit: TreeFit) -> Iterator[str]:
    density, choice, options = fit.density, fit.choice, fit.options
    n_models = len(fit.final)
    yield from _first_lines(name, fit)
    source = "likelihood of the rows" if n_models else "pairs of columns"
    yield f"fit: {source}" + f", average of {n_models} models" * (n_models > 1)
    each = f"{n_models} x " * (n_models > 1)
    yield (
        f"trees: {density.n_components} kept of {each}{choice.n_components} at the start ({_how(options.n_components)})"
    )
    kind = f"{choice.n_atoms} atoms" if choice.n_atoms else f"{choice.n_states} bins"
    yield f"states: at most {kind} of a column of numbers ({_how(options.n_states)})"
    yield f"alpha: {choice.alpha:g} ({_how(options.alpha)}), gamma: {choice.gamma:g} ({_how(options.gamma)})"
    if n_models:
        yield _steps(fit)
    if choice.held_out is not None:
        yield f"held-out gain over independence, one model: {choice.held_out:.3f} nats per row"
    yield from _verdict(density)


def _tree_cells(fit: TreeFit) -> Iterator[tuple[str, ...]]:
    yield "column", "kind", "values", "step", "states"
    for name, n_states in zip(fit.density.names, fit.n_states, strict=True):
        yield name, *_about(fit.density.schema[name]), str(n_states)


def _stack_lines(name: str, fit: StackFit) -> Iterator[str]:
    yield from _first_lines(name, fit)
    if len(fit.fits) > 1 or fit.held_out is not None:
        yield f"experts: {len(fit.fits)} kept of {len(fit.experts)}, weighted by {_weighted_by(fit)}"
    else:
        yield f"experts: {next(iter(fit.fits))} alone"
    yield f"components: {fit.density.n_components}"
    if fit.final:
        yield _steps(fit)
    if fit.held_out is not None:
        loss = "" if fit.loss is None else f", {max(fit.loss, 0.0):.3f} given up for better answers"
        yield f"held-out log-likelihood of a row: {fit.held_out:.3f}{loss}"
    yield from _verdict(fit.density)
    yield ""
    yield from _aligned(_expert_cells(fit))


def _weighted_by(fit: StackFit) -> str:
    if fit.target is not None:
        return f"how they predict {shown(fit.target)} in held-out rows"
    return "held-out rows" if fit.loss is None else "held-out rows and crosstabs of these"


def _expert_cells(fit: StackFit) -> Iterator[tuple[str, ...]]:
    yield "expert", "weight", "held-out", "components", "chosen"
    for expert in fit.experts:
        held_out = "" if expert.held_out is None else f"{expert.held_out:.3f}"
        if expert.fit is None:
            yield expert.name, "dropped", held_out, "", ""
            continue
        components = str(expert.fit.density.n_components)
        yield expert.name, _weight(expert.weight), held_out, components, _chosen(expert.fit)


def _weight(weight: float) -> str:
    """Show a weight, which may be tiny where a target is predicted.

    >>> _weight(0.257), _weight(3e-8)
    ('0.26', '3e-08')
    """
    return f"{weight:.2f}" if weight >= 0.005 else f"{weight:.0e}"


def _chosen(fit: AnyFit) -> str:
    """What a fit has chosen, in short."""
    if isinstance(fit, ClassFit):
        return f"{len(fit.fits)} classes by themselves"
    n_models = len(fit.final) or 1
    each = f"{n_models} x " * (n_models > 1)
    if isinstance(fit, BlockFit):
        block = len(fit.design.columns)
        return f"{each}{fit.choice.n_components} at the start, nu {fit.choice.nu:g}, {block} columns in the block"
    if isinstance(fit, TreeFit):
        choice = fit.choice
        prior = f"alpha {choice.alpha:g}, gamma {choice.gamma:g}"
        states = f"{choice.n_atoms} atoms" if choice.n_atoms else f"{choice.n_states} states"
        return f"{each}{choice.n_components} at the start, {states}, {prior}"
    beta = "" if fit.choice.beta is None else f", beta {fit.choice.beta:g}"
    return f"{each}{fit.choice.n_components} at the start{beta}"


def _stack_cells(fit: StackFit) -> Iterator[tuple[str, ...]]:
    left_out: dict[str, str] = {}
    for each in fit.fits.values():
        if isinstance(each, BlockFit):
            left_out = left_out or each.design.left_out
    blocks = any(isinstance(each, BlockFit) for each in fit.fits.values())
    yield "column", "kind", "values", "step", "in blocks" if blocks else ""
    for variable in (fit.density.schema[name] for name in fit.density.names):
        place = "" if not blocks else "yes" if variable.name not in left_out else f"no: {left_out[variable.name]}"
        yield variable.name, *_about(variable), place


def _first_lines(name: str, fit: Fit | BlockFit | TreeFit | StackFit) -> Iterator[str]:
    schema = fit.density.schema
    n_columns = len(schema.columns)
    yield f"{name}: joint density of {n_columns} column{'s' * (n_columns > 1)}"
    yield f"rows: {fit.n_rows:,.10g}"
    if schema.gaps:
        yield f"gaps: part of the model for {', '.join(schema.gaps)}"


def _steps(fit: Fit | BlockFit | TreeFit | StackFit) -> str:
    ending = (fit.unfinished.status if fit.unfinished else Status.CONVERGED).value.replace("_", " ")
    return f"steps: {' + '.join(str(solution.n_steps) for solution in fit.final)}, {ending}"


def warn_unfinished(fit: Fit | BlockFit | TreeFit | StackFit) -> None:
    """Warn of a fit that stopped short, with what to do about it."""
    if fit.unfinished is None:
        return
    options = fit.options
    remedy = (
        "The density is the one reached by then; fit again for the rest."
        if fit.was_interrupted
        else f"Raise max_iter (now {options.max_iter}) or tol (now {options.tol})"
        + ("." if isinstance(fit, StackFit) else f", or lower n_components (now {options.n_components}).")
    )
    warn_caller(f"{fit.unfinished.message} {remedy}", ConvergenceWarning)


def _verdict(density: JointDensity) -> Iterator[str]:
    if density.verdict:
        yield f"check: {density.verdict}"


def _how(asked: Any) -> str:
    return "by held-out likelihood" if asked == "auto" else "given"


def _column_cells(density: JointDensity) -> Iterator[tuple[str, ...]]:
    yield "column", "kind", "values", "support", "step", "atoms", "in use"
    for variable in (density.schema[name] for name in density.names):
        margin = density.mixture.margin(density.schema.index(variable.name))
        in_use = int(np.sum(margin.weights > LEAST_WEIGHT))
        kind = "ordinal" if variable.ordered else variable.kind.value
        step = f"{variable.step:g}" if variable.step else ""
        atoms = " + ".join(margin.dictionary.summary())
        yield variable.name, kind, _values(variable), variable.shown_support(), step, atoms, str(in_use)


def _about(variable: Variable) -> tuple[str, str, str]:
    """Kind, values and step of a variable."""
    kind = "ordinal" if variable.ordered else variable.kind.value
    return kind, _values(variable), f"{variable.step:g}" if variable.step else ""


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
