"""Fit from rows: EM on their codes, with a prior that shrinks components towards independence.

The result may be the average of several such fits with different dictionaries: it errs less than each, and is a
mixture of products too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jointwise._checks import cause, warn_caller
from jointwise.dictionary import Dictionary
from jointwise.engines.threads import both
from jointwise.exceptions import InputError
from jointwise.fitting.atoms import Learned, learn_atoms
from jointwise.fitting.average import average, average_gain, tidied
from jointwise.fitting.checkpoint import Checkpoint, ModelRecord, open_checkpoint
from jointwise.fitting.choice import check_given, choose_model
from jointwise.fitting.held_out import Repeated, held_out_check
from jointwise.fitting.merging import merged_bins
from jointwise.fitting.models import close_checkpoint, fit_models, n_side_by_side, written_on_interrupt
from jointwise.fitting.options import Options
from jointwise.fitting.order import in_canonical_order
from jointwise.fitting.possible import made_possible
from jointwise.fitting.problem import masses_of_models, problem_of_masses
from jointwise.fitting.result import Choice, Fit
from jointwise.fitting.starts import first_point, starts_per_model, tolerance
from jointwise.joint.check import Check
from jointwise.joint.density import MOST_VERDICT, JointDensity
from jointwise.joint.tails import lighter_tails
from jointwise.rows.base import Rows
from jointwise.solvers import Factors, RowsEM, RowsProblem, Solution, Status, solve

Callback = Callable[[int, float], None]


def fit_rows(
    rows: Rows,
    options: Options,
    rng: np.random.Generator,
    callback: Callback | None = None,
    *,
    choice: Choice | None = None,
    repeated: Repeated | None = None,
    checkpoint: Checkpoint | None = None,
) -> Fit:
    """Fit the joint density of coded rows: the mode of the posterior, or the average of several.

    Parameters
    ----------
    rows : Rows
    options : Options
    rng : numpy.random.Generator
    callback : callable, optional
        Called with the steps taken and the objective, at every step of the runs of each model.
    choice : Choice, optional
        What to fit; by default it is chosen by held-out rows.
    repeated : mapping, optional
        What `Profile.repeated` found in the table, for the check of the fit; without it the fit is not checked.
    checkpoint : Checkpoint, optional
        Where the fit keeps how far it is; by default the file that the options name.
    """
    if not rows.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    check_given(options.given, rows.schema)  # here, where names are in the user's order
    ordered, columns = in_canonical_order(rows)
    back = np.argsort(columns)
    checkpoint = checkpoint or open_checkpoint(ordered, options, rng)
    with written_on_interrupt(checkpoint):
        chosen = choice.reordered(columns) if choice else choose_model(ordered, options, rng, checkpoint)
        choice = chosen.reordered(back)
        n_threads, ended = n_side_by_side(ordered, checkpoint, callback), list[Solution[Factors]]()

        def fit_all() -> tuple[list[Learned], dict[str, Solution[Factors]]]:
            found = _fit_models(ordered, chosen, options, rng, callback, checkpoint, n_threads)
            ended.extend(found[1].values())
            return found

        def look_back() -> Check | None:
            if repeated is None or any(stage.status is Status.INTERRUPTED for stage in ended):
                return None
            return _check(rows, choice, options, repeated)

        (fitted, stages), check = both(fit_all, look_back, n_threads)
        stages = {name: replace(stage, value=stage.value.reordered(back)) for name, stage in stages.items()}
        models = [[model.dictionaries[n] for n in back] for model in fitted]
        mixture = average(models, [model.factors.reordered(back) for model in fitted])
        gain = average_gain(fitted) / ordered.n_rows if mixture.n_components > 1 else 0.0
    close_checkpoint(checkpoint, stages)
    mixture = made_possible(mixture, rows, options.given)
    mixture = lighter_tails(mixture, rows.schema, ordered.n_rows, options.given)
    verdict = check.verdict[:MOST_VERDICT] if check else ""
    density = JointDensity(rows.schema, mixture, verdict)
    final = tuple(stages.values())
    counts = rows.column_counts
    return Fit(density, options, choice, tuple(rows.axes), ordered.n_rows, stages, final, gain, check, counts)


def _fit_models(
    rows: Rows,
    choice: Choice,
    options: Options,
    rng: np.random.Generator,
    callback: Callback | None,
    checkpoint: Checkpoint,
    n_threads: int,
) -> tuple[list[Learned], dict[str, Solution[Factors]]]:
    """Return the models that were fitted, and how the last run of each went."""
    all_masses = masses_of_models(choice.models, rows.axes)
    if choice.n_components == 1 or len(rows.axes) == 1:  # components have nothing to tell apart
        problems = [problem_of_masses(rows, masses, choice.beta or 0.0) for masses in all_masses]
        return [_independent(*each) for each in zip(choice.models, problems, strict=True)], {}
    fitted: dict[int, Learned] = {}

    def fit_model(model: int, seed: int) -> Solution[Factors]:
        problem = problem_of_masses(rows, all_masses[model - 1], choice.beta or 0.0)
        record = ModelRecord(checkpoint, f"model {model}")
        fitted[model], solution = _fit_model(
            rows, choice.models[model - 1], problem, choice, options, seed, callback, record
        )
        return solution

    stages = fit_models(
        len(choice.models),
        rng,
        fit_model,
        keep_on_interrupt=options.keep_on_interrupt,
        n_threads=n_threads,
    )
    return [fitted[model] for model in sorted(fitted)], stages


def _independent(dictionaries: Sequence[Dictionary], problem: RowsProblem) -> Learned:
    """Return a model of one component: the columns' own fits."""
    return Learned(tuple(dictionaries), problem, Factors(np.ones(1), tuple(m[:, None] for m in problem.margins)))


def _fit_model(
    rows: Rows,
    dictionaries: Sequence[Dictionary],
    problem: RowsProblem,
    choice: Choice,
    options: Options,
    seed: int,
    callback: Callback | None,
    record: ModelRecord,
) -> tuple[Learned, Solution[Factors]]:
    """Return one model and how its last run went."""
    tol = tolerance(options, rows.n_rows)
    merged_rows, merged = merged_bins(rows, problem)
    reached = record.reached(problem, choice.n_components)
    start = (
        first_point(merged_rows, merged, choice, options, seed, callback, record)
        if reached is None
        else Factors.at(reached.state.point, problem.slices)
    )
    solution = solve(
        RowsEM(start, tol=tol),
        merged,
        max_steps=options.max_iter,
        callback=callback,
        keep_on_interrupt=options.keep_on_interrupt,
        resume=reached,
        on_state=record.on_state,
    )
    record.flush()
    learned = Learned(tuple(dictionaries), problem, solution.value)
    if choice.learn_dictionary and solution.status is not Status.INTERRUPTED:
        try:
            learned = learn_atoms(
                record.learned(learned, rows.axes), rows.axes, tol=tol, held=problem.masses, on_round=record.on_round
            )
            record.flush()
        except KeyboardInterrupt:
            if not options.keep_on_interrupt:
                raise
            message = "The fit was interrupted while atoms were learned."
            solution = replace(solution, status=Status.INTERRUPTED, message=message)
    return replace(learned, factors=tidied(learned.factors, learned.problem)), solution


def _check(rows: Rows, choice: Choice, options: Options, repeated: Repeated) -> Check | None:
    """Compare a model without some rows with these; whatever goes wrong, the fit itself stands."""
    try:
        one = replace(choice, models=choice.models[:1])
        return held_out_check(rows, choice, starts_per_model(one, options), repeated, options.given)
    except KeyboardInterrupt:
        if not options.keep_on_interrupt:
            raise
    except Exception as error:  # noqa: BLE001 -- a fit is worth more than its check
        warn_caller(
            f"The check of the fit failed ({type(error).__name__}: {cause(error)}); the density itself stands. Ask "
            "`density_.check` with rows, and please report this.",
            RuntimeWarning,
        )
    return None
