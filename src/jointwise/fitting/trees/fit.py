"""Fit a mixture of trees: EM from groups of rows, and the average of several such fits; or one tree, from pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.exceptions import InputError
from jointwise.fitting.checkpoint import Checkpoint, open_checkpoint
from jointwise.fitting.counted import Counts
from jointwise.fitting.growing import Callback, Run, coarser, growing_parts, in_memory, solve_growing
from jointwise.fitting.models import alive, close_checkpoint, fit_models, n_side_by_side, written_on_interrupt
from jointwise.fitting.order import in_canonical_order
from jointwise.fitting.result import level_counts
from jointwise.fitting.trees.atoms import AtomSpace
from jointwise.fitting.trees.choice import FIRST_STATES, TreeChoice, choose_trees
from jointwise.fitting.trees.counts import MergedPairs, regrouped_pairs
from jointwise.fitting.trees.design import TreeDesign
from jointwise.fitting.trees.options import IDENTIFYING, TreeOptions
from jointwise.fitting.trees.record import TreeRecord
from jointwise.fitting.trees.result import TreeFit
from jointwise.fitting.trees.space import StateSpace, pair_prior
from jointwise.fitting.trees.start import start_factors
from jointwise.joint.density import JointDensity
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Solution, Status
from jointwise.solvers.trees_em import TreeFactors, TreesEM, TreesProblem, TreesState, averaged, chow_liu

# Rows of independent columns that a tree from pairs has seen, which no held-out rows can choose.
PAIRS_ALPHA = 1.0


def fit_trees(
    rows: Rows,
    coarse: Sequence[Axis],
    options: TreeOptions,
    rng: np.random.Generator,
    callback: Callback | None = None,
    *,
    choice: TreeChoice | None = None,
    checkpoint: Checkpoint | None = None,
) -> TreeFit:
    """Fit a mixture of trees to coded rows: the mode of the posterior, or the average of several.

    Parameters
    ----------
    rows : Rows
        With fine axes for columns of numbers.
    coarse : sequence of Axis
        The axes on which dictionaries are chosen.
    options : TreeOptions
    rng : numpy.random.Generator
    callback : callable, optional
        Called with the steps taken and the objective, at every step of the runs of each model.
    choice : TreeChoice, optional
        What to fit; by default it is chosen by held-out rows.
    checkpoint : Checkpoint, optional
        Where the fit keeps how far it is; by default the file that the options name.
    """
    if not rows.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    names = rows.schema.names
    fine, columns = in_canonical_order(rows)
    fine, coarse = fine.on(options.device), [coarse[n] for n in columns]
    kept = checkpoint or open_checkpoint(fine, options, rng, IDENTIFYING)
    with written_on_interrupt(kept):
        design = TreeDesign.of(fine, coarse, rng, choice.dictionaries if choice else None)
        chosen = choice or choose_trees(design, fine, options, rng, kept)
        space = design.space(chosen.n_states)
        coded = fine.regrouped(space.axes)
        problem = space.problem(coded, chosen.alpha, chosen.gamma)

        atoms = design.atoms(chosen.n_states, chosen.n_atoms) if chosen.n_atoms else None
        final = fine if atoms is None else in_memory(fine).regrouped(atoms.space.axes)

        def fit_model(model: int, seed: int) -> Solution[TreeFactors]:
            record = TreeRecord(kept, f"model {model}")
            solution = _fit_model(problem, coded, chosen, options, seed, callback, record)
            factors = solution.value.take(alive(solution.value.weights, coded.n_rows).tolist())
            solution = replace(solution, value=factors)
            if atoms is None or not isinstance(final, CodedRows):
                return solution
            record = TreeRecord(kept, f"atoms of model {model}")
            return _smoothed(solution, problem, atoms, final, chosen, options, callback, record)

        n_threads = n_side_by_side(fine, kept, callback)
        stages = fit_models(
            chosen.n_models, rng, fit_model, keep_on_interrupt=options.keep_on_interrupt, n_threads=n_threads
        )
    close_checkpoint(kept, stages)
    factors, counts = averaged([run.value for run in stages.values()]), fine.column_counts
    if atoms is not None:
        space, margins = atoms.space, atoms.laws(problem.known.margins)
    else:
        margins = problem.known.margins
    return _result(space, margins, factors, names, counts, options, chosen, stages, coded.n_rows)


def fit_pairs_tree(marginals: PairwiseMarginals, options: TreeOptions, rng: np.random.Generator) -> TreeFit:
    """Fit one tree to pair counts: the spanning tree of the largest mutual information.

    Parameters
    ----------
    marginals : PairwiseMarginals
    options : TreeOptions
    rng : numpy.random.Generator
        Deals counts to folds, where dictionaries are chosen.
    """
    if options.n_components not in {1, "auto"}:
        raise InputError(
            f"Pair counts tell of one tree; got n_components={options.n_components!r}. Use TreeMixture(1), or fit rows."
        )
    if not marginals.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    counts = tuple(np.asarray(marginals.marginal(n), dtype=np.float64) for n in range(len(marginals.axes)))

    own = Counts(marginals.schema, marginals.axes, counts)
    design = TreeDesign.of_counts(own, marginals.axes, counts, MergedPairs(marginals), rng)
    choice = TreeChoice(
        1,
        FIRST_STATES if options.n_states == "auto" else options.n_states,
        PAIRS_ALPHA if options.alpha == "auto" else float(options.alpha),
        0.0,  # one component is the whole table
    )
    space = design.space(choice.n_states)
    known = pair_prior(regrouped_pairs(marginals, space.axes))
    factors = chow_liu(known, marginals.n_rows, choice.alpha)
    return _result(space, known.margins, factors, marginals.schema.names, counts, options, choice, {}, marginals.n_rows)


def _result(
    space: StateSpace,
    margins: Sequence[FloatArray],
    factors: TreeFactors,
    names: Sequence[str],
    counts: Sequence[FloatArray],
    options: TreeOptions,
    choice: TreeChoice,
    stages: dict[str, Solution[TreeFactors]],
    n_rows: float,
) -> TreeFit:
    density = JointDensity(space.schema, space.expert(factors, margins)).marginal(names)
    axes = dict(zip(space.schema.names, space.axes, strict=True))
    levels = level_counts(space.schema, counts)
    own = tuple(axes[name] for name in names)
    sizes = dict(zip(space.schema.names, factors.forest.n_bins, strict=True))
    n_states = tuple(sizes[name] for name in names)
    return TreeFit(density, options, choice, own, n_rows, stages, tuple(stages.values()), levels, n_states)


def _fit_model(
    problem: TreesProblem,
    rows: Rows,
    choice: TreeChoice,
    options: TreeOptions,
    seed: int,
    callback: Callback | None,
    record: TreeRecord,
) -> Solution[TreeFactors]:
    """Return how the last run of one model went.

    Groups of a sample are where EM begins. It then runs on growing parts of a large table, so that few steps on all
    rows are left to do.
    """
    rng = np.random.default_rng(seed)
    # a run that ends early has no time to save
    parts = growing_parts(rows, rng, len(rows) / 2 if choice.tol else None)
    start = record.begun(problem.known, choice.n_components)
    if start is None:
        sample = parts[0] if parts else in_memory(rows)
        start = start_factors(sample, problem.known, choice.n_components, rng)
        record.begin(start)

    def run(record: TreeRecord, problem: TreesProblem) -> Run[TreesProblem, TreesState]:
        return Run(problem, record.reached(problem.known, choice.n_components), record.on_state)

    runs = (
        run(record.of_part(len(part)), replace(problem, rows=part.tree_engine(), n_rows=part.n_rows)) for part in parts
    )
    tol = max(coarser(options.tol, rows.n_rows), choice.tol)
    solution = solve_growing(TreesEM, start, runs, run(record, problem), tol, options, callback)
    record.flush()
    return solution


def _smoothed(
    solution: Solution[TreeFactors],
    bins: TreesProblem,
    atoms: AtomSpace,
    rows: CodedRows,
    choice: TreeChoice,
    options: TreeOptions,
    callback: Callback | None,
    record: TreeRecord,
) -> Solution[TreeFactors]:
    """Return how the run with atoms went, from where that with bins ended; the trees stay."""
    start = atoms.start(solution.value, bins.known)
    if solution.status is Status.INTERRUPTED:
        return replace(solution, value=start)
    problem = atoms.problem(rows, bins, start.forest.parents)
    whole = Run(problem, record.reached(problem.known, start.n_components), record.on_state)
    tol = max(coarser(options.tol, rows.n_rows), choice.tol)
    found = solve_growing(partial(TreesEM, fixed=True), start, (), whole, tol, options, callback)
    record.flush()
    return found
