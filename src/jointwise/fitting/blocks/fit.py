"""Fit Gaussian blocks: EM from groups of rows, and the average of several such fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jointwise.axes import Axis
from jointwise.exceptions import InputError
from jointwise.fitting.blocks.choice import BlockChoice, choose_blocks
from jointwise.fitting.blocks.design import Design
from jointwise.fitting.blocks.options import IDENTIFYING, BlockOptions
from jointwise.fitting.blocks.record import BlockRecord
from jointwise.fitting.blocks.result import BlockFit
from jointwise.fitting.blocks.start import START_ROWS, settled_start, start_groups
from jointwise.fitting.checkpoint import Checkpoint, open_checkpoint
from jointwise.fitting.models import alive, fit_models
from jointwise.fitting.order import in_canonical_order
from jointwise.fitting.result import level_counts
from jointwise.fitting.starts import part_sizes, spread_positions
from jointwise.joint.density import JointDensity
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Solution, Status, solve
from jointwise.solvers.blocks_em import BlockFactors, BlocksEM, averaged

# Runs on parts of a large table stop earlier than that on all rows, by this factor of the tolerance.
PART_TOL = 3.0
# Above this many rows the tolerance grows with them, up to ten times: the last digits would take most of the time.
COARSER_ROWS, COARSEST = 100_000, 10.0

Callback = Callable[[int, float], None]


def fit_blocks(
    rows: Rows,
    coarse: Sequence[Axis],
    options: BlockOptions,
    rng: np.random.Generator,
    callback: Callback | None = None,
    *,
    choice: BlockChoice | None = None,
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
    checkpoint : Checkpoint, optional
        Where the fit keeps how far it is; by default the file that the options name.
    """
    if not rows.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    names = rows.schema.names
    rows, columns = in_canonical_order(rows)
    rows, coarse = rows.on(options.device), [coarse[n] for n in columns]
    checkpoint = checkpoint or open_checkpoint(rows, options, rng, IDENTIFYING)
    try:
        design = Design.of(rows, coarse, options.warp, rng, choice.dictionaries if choice else None)
        rows = rows.regrouped(design.axes)
        chosen = choice or choose_blocks(design, rows, options, rng, checkpoint)
        coded, kept = rows, checkpoint

        def fit_model(model: int, seed: int) -> Solution[BlockFactors]:
            record = BlockRecord(kept, f"model {model}")
            return _fit_model(design, coded, chosen, options, seed, callback, record)

        stages = fit_models(chosen.n_models, rng, fit_model, keep_on_interrupt=options.keep_on_interrupt)
    except KeyboardInterrupt:
        checkpoint.flush()
        raise
    if any(stage.status is Status.INTERRUPTED for stage in stages.values()):
        checkpoint.flush()
    else:
        checkpoint.remove()
    fitted = [run.value.take(alive(run.value.weights, rows.n_rows).tolist()) for run in stages.values()]
    density = JointDensity(rows.schema, design.expert(averaged(fitted), rows)).marginal(names)
    final = tuple(stages.values())
    levels = level_counts(rows.schema, rows.column_counts)
    return BlockFit(density, options, chosen, rows.axes, rows.n_rows, stages, final, design, levels)


def _fit_model(
    design: Design,
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
    tol = options.tol * float(np.clip(rows.n_rows / COARSER_ROWS, 1.0, COARSEST))
    sizes = [n for n in (START_ROWS, *part_sizes(len(rows))) if n < len(rows)]
    parts = [rows.take(spread_positions(len(rows), n, rng)) for n in sizes]
    problem = design.problem(rows, choice.nu, choice.beta)
    begun = record.begun(problem, choice.n_components)
    if begun is None:
        sample = parts[0] if parts else _in_memory(rows)
        groups = start_groups(design, sample, choice.n_components, rng)
        some = design.problem(sample, choice.nu, choice.beta)
        begun = settled_start(design, some, sample, choice.n_components, groups)
        begun = replace(problem, scale=begun[0].scale), begun[1]
        record.begin(begun[0].scale, begun[1])
    problem, start = begun
    for part in parts:
        own = record.of_part(len(part))
        some = replace(problem, rows=part.block_engine(design.layout), n_rows=part.n_rows)
        start = solve(
            BlocksEM(start, tol=PART_TOL * tol),
            some,
            max_steps=options.max_iter,
            callback=callback,
            resume=own.reached(problem, choice.n_components),
            on_state=own.on_state,
        ).value
    solution = solve(
        BlocksEM(start, tol=tol),
        problem,
        max_steps=options.max_iter,
        callback=callback,
        keep_on_interrupt=options.keep_on_interrupt,
        resume=record.reached(problem, choice.n_components),
        on_state=record.on_state,
    )
    record.flush()
    return solution


def _in_memory(rows: Rows) -> CodedRows:
    return rows if isinstance(rows, CodedRows) else rows.take(np.arange(len(rows)))
