"""Fit Gaussian blocks: EM from groups of rows, and the average of several such fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jointwise.axes import Axis
from jointwise.exceptions import InputError
from jointwise.fitting.blocks.choice import BlockChoice, choose_blocks
from jointwise.fitting.blocks.design import Design
from jointwise.fitting.blocks.designs import Designs
from jointwise.fitting.blocks.options import IDENTIFYING, BlockOptions
from jointwise.fitting.blocks.record import BlockRecord
from jointwise.fitting.blocks.result import BlockFit
from jointwise.fitting.blocks.start import settled_start, start_groups
from jointwise.fitting.checkpoint import Checkpoint, open_checkpoint
from jointwise.fitting.growing import Callback, Run, coarser, growing_parts, in_memory, solve_growing
from jointwise.fitting.models import alive, close_checkpoint, fit_models, n_side_by_side, written_on_interrupt
from jointwise.fitting.order import in_canonical_order
from jointwise.fitting.result import level_counts
from jointwise.joint.density import JointDensity
from jointwise.rows.base import Rows
from jointwise.solvers import Solution
from jointwise.solvers.blocks_em import BlockFactors, BlocksEM, BlocksProblem, BlocksState, widened, with_tails


def fit_blocks(
    rows: Rows,
    coarse: Sequence[Axis],
    options: BlockOptions,
    rng: np.random.Generator,
    callback: Callback | None = None,
    *,
    choice: BlockChoice | None = None,
    designs: Designs | None = None,
    checkpoint: Checkpoint | None = None,
) -> BlockFit:
    """Fit a mixture with a Gaussian block to coded rows: the mode of the posterior, or the average of several.

    Parameters
    ----------
    rows : Rows
        With fine axes for columns of numbers.
    coarse : sequence of Axis
        The axes on which dictionaries are chosen and columns outside the block are fitted.
    options : BlockOptions
    rng : numpy.random.Generator
    callback : callable, optional
        Called with the steps taken and the objective, at every step of the runs of each model.
    choice : BlockChoice, optional
        What to fit; by default it is chosen by held-out rows.
    designs : Designs, optional
        What is known of columns already.
    checkpoint : Checkpoint, optional
        Where the fit keeps how far it is; by default the file that the options name.
    """
    if not rows.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    names = rows.schema.names
    ordered, columns = in_canonical_order(rows)
    rows, coarse = ordered.on(options.device), [coarse[n] for n in columns]
    checkpoint = checkpoint or open_checkpoint(rows, options, rng, IDENTIFYING)
    with written_on_interrupt(checkpoint):
        designs = designs or Designs(options.warp)
        design = designs.of(ordered, coarse, rng, choice.dictionaries if choice else None)
        rows = design.coded(rows)
        chosen = choice or choose_blocks(design, rows, options, rng, checkpoint)
        problem = design.problem(rows, chosen.nu, chosen.beta)
        coded, kept = rows, checkpoint

        def fit_model(model: int, seed: int) -> Solution[BlockFactors]:
            record = BlockRecord(kept, f"model {model}")
            return _fit_model(design, problem, coded, chosen, options, seed, callback, record)

        n_models = 1 if chosen.n_components == 1 else chosen.n_models  # one component has one place to go
        n_threads = n_side_by_side(rows, checkpoint, callback)
        stages = fit_models(n_models, rng, fit_model, keep_on_interrupt=options.keep_on_interrupt, n_threads=n_threads)
    close_checkpoint(checkpoint, stages)
    fitted = [run.value.take(alive(run.value.weights, rows.n_rows).tolist()) for run in stages.values()]
    wide = [widened(factors, rows.n_rows, chosen.nu) for factors in fitted]
    density = JointDensity(rows.schema, design.expert(with_tails(wide, chosen.tail), rows))
    if names != rows.schema.names:
        density = density.marginal(names)
    final = tuple(stages.values())
    levels = level_counts(rows.schema, rows.column_counts)
    return BlockFit(density, options, chosen, rows.axes, rows.n_rows, stages, final, design, levels)


def _fit_model(
    design: Design,
    problem: BlocksProblem,
    rows: Rows,
    choice: BlockChoice,
    options: BlockOptions,
    seed: int,
    callback: Callback | None,
    record: BlockRecord,
) -> Solution[BlockFactors]:
    """Return how the last run of one model went.

    Groups of a sample are where EM begins. It then runs on growing parts of a large table, so that few steps on all
    rows are left to do. The scale that the sample settles is that of all runs.
    """
    rng = np.random.default_rng(seed)
    parts = growing_parts(rows, rng)
    tol = max(coarser(options.tol, rows.n_rows), choice.tol)
    begun = record.begun(problem, choice.n_components)
    if begun is None:
        sample = parts[0] if parts else in_memory(rows)
        groups = start_groups(design, sample, choice.n_components, rng)
        some = problem if sample is rows else design.problem(sample, choice.nu, choice.beta)
        begun = settled_start(design, some, sample, choice.n_components, groups, tol)
        begun = replace(problem, scale=begun[0].scale), begun[1]
        record.begin(begun[0].scale, begun[1])
    problem, start = begun

    def run(record: BlockRecord, problem: BlocksProblem) -> Run[BlocksProblem, BlocksState]:
        return Run(problem, record.reached(problem, choice.n_components), record.on_state)

    runs = (
        run(
            record.of_part(len(part)),
            replace(problem, rows=part.block_engine(design.layout), n_rows=part.n_rows),
        )
        for part in parts
    )
    solution = solve_growing(BlocksEM, start, runs, run(record, problem), tol, options, callback)
    record.flush()
    return solution
