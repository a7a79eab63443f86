"""Fit from rows: EM on their codes, from several starts, with a prior that shrinks components towards independence.

Starts are drawn around independence. In trials on the paper's experiments they ended as well as starts from a pairwise
fit, and they need no pair counts, so the cost grows with columns and not with their pairs. The result may be the
average of several such fits with different dictionaries: it errs less than each, and is a mixture of products too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise._checks import check_integer, check_real
from jointwise._typing import FloatArray, IntArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.fitting.atoms import Learned, learn_atoms
from jointwise.fitting.average import average, average_gain
from jointwise.fitting.checkpoint import Checkpoint, ModelRecord
from jointwise.fitting.result import Fit
from jointwise.joint.density import JointDensity
from jointwise.rows.base import Rows
from jointwise.solvers import (
    Factors,
    RowsEM,
    RowsProblem,
    Solution,
    Status,
    simplex_weights,
    solve,
    start_around,
)

# Starts are compared after this many steps, on at most this many rows: by then their order is mostly settled.
SHORT_STEPS, SHORT_ROWS = 12, 20_000
# Fewer components than this get more starts: each costs less, and is more likely to lead astray.
MANY_COMPONENTS = 16
# Beyond so many rows the tolerance falls with the root of their number: more rows tell finer differences.
FINER_ROWS = 20_000
# Of more than twice as many rows, EM runs on so many first, then on `PART_GROWTH` times as many, and so on: few steps
# on all of them are then left to do.
PART_ROWS, PART_GROWTH = 250_000, 16
# A component with less than this many rows to its name is dropped.
LEAST_ROWS = 0.5
# Components whose conditionals differ in no column by more than this in total variation are one.
SAME = 1e-3
# Rows spread over the atoms of a column before its own are counted, in units of the counts' noise, the root of n.
SMOOTHING = 0.15


@dataclass(frozen=True)
class LikelihoodSettings:
    """How to fit from rows.

    Parameters
    ----------
    n_components : int
        Number of components to start with; those left without rows are dropped.
    beta : float
        Strength of the prior, in rows per component.
    n_init : int
        Number of starts, shared by the models; of the starts of a model the best after a few steps is finished. Of
        less than 16 components there are more, unless it is one.
    max_iter : int
        The most steps of the last run.
    tol : float
        It stops when two steps in a row each gain no more than this in nats per row; of more than 20,000 rows, less.
    learn_dictionary : bool
        Whether locations and scales of atoms are learned too, after the last run.
    keep_on_interrupt : bool
        Whether a keyboard interrupt of the last run ends it there, rather than being raised.
    """

    n_components: int = 8
    beta: float = 3.0
    n_init: int = 4
    max_iter: int = 500
    tol: float = 1e-5
    learn_dictionary: bool = False
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        check_integer("n_components", self.n_components, 1)
        if check_real("beta", self.beta) < 0:
            raise InputError(f'`beta` must be "auto" or a number of rows, zero or more; got {self.beta!r}.')
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        if check_real("tol", self.tol) < 0:
            raise InputError(f"`tol` must not be negative; got {self.tol!r}.")

    def starts_of_each(self, n_models: int) -> int:
        """Number of starts of each of several models."""
        if self.n_init == 1:
            return 1
        return int(np.ceil(self.n_init / n_models * max(1.0, MANY_COMPONENTS / self.n_components)))


def fit_likelihood(
    rows: Rows,
    models: Sequence[Sequence[Dictionary]],
    settings: LikelihoodSettings,
    rng: np.random.Generator,
    callback: Callable[[int, float], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Fit:
    """Joint density of coded rows, the mode of the posterior or the average of several.

    Parameters
    ----------
    rows : Rows
    models : sequence of sequences of Dictionary
        One dictionary per variable for each of the models to be averaged.
    settings : LikelihoodSettings
    rng : numpy.random.Generator
    callback : callable, optional
        Called with the steps taken and the objective, at every step of the runs of each model.
    checkpoint : Checkpoint, optional
        Where the fit notes how far it has come, and from where it goes on.
    """
    if not rows.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    checkpoint = checkpoint or Checkpoint()
    fitted: list[Learned] = []
    stages: dict[str, Solution[Factors]] = {}
    for model, dictionaries in enumerate(models):
        record = ModelRecord(checkpoint, f"model {model + 1}")
        try:
            learned, solution = _fit_model(rows, dictionaries, settings, len(models), rng, callback, record)
        except KeyboardInterrupt:
            if not (settings.keep_on_interrupt and stages):
                raise
            last, solution = stages.popitem()
            stages[last] = _interrupted(solution, f"The fit was interrupted in model {model + 1} of {len(models)}.")
            break
        fitted.append(learned)
        if solution is not None:
            stages["likelihood" if len(models) == 1 else f"likelihood {model + 1}"] = solution
            if solution.status is Status.INTERRUPTED:
                break
    mixture = average([model.dictionaries for model in fitted], [model.factors for model in fitted])
    gain = average_gain(fitted) / rows.n_rows if mixture.n_components > 1 else 0.0
    return Fit(JointDensity(rows.schema, mixture), stages, tuple(stages.values()), gain)


def _fit_model(
    rows: Rows,
    dictionaries: Sequence[Dictionary],
    settings: LikelihoodSettings,
    n_models: int,
    rng: np.random.Generator,
    callback: Callable[[int, float], None] | None,
    record: ModelRecord,
) -> tuple[Learned, Solution[Factors] | None]:
    """One of ``n_models`` models and how its last run went; None where components have nothing to tell apart."""
    problem = likelihood_problem(rows, dictionaries, settings.beta)
    if settings.n_components == 1 or len(dictionaries) == 1:
        independence = Factors(np.ones(1), tuple(m[:, None] for m in problem.margins))
        return Learned(tuple(dictionaries), problem, independence), None
    tol = _tolerance(settings, rows)
    reached = record.reached(problem, settings.n_components)
    start = (
        _first_point(rows, problem, settings, n_models, rng, callback, record)
        if reached is None
        else Factors.at(reached.state.point, problem.slices)
    )
    solution = solve(
        RowsEM(start, tol=tol),
        problem,
        max_steps=settings.max_iter,
        callback=callback,
        keep_on_interrupt=settings.keep_on_interrupt,
        resume=reached,
        on_state=record.on_state,
    )
    record.flush()
    learned = Learned(tuple(dictionaries), problem, solution.value)
    if settings.learn_dictionary and solution.status is not Status.INTERRUPTED:
        try:
            learned = learn_atoms(
                record.learned(learned, rows.axes), rows.axes, tol=tol, held=problem.masses, on_round=record.on_round
            )
            record.flush()
        except KeyboardInterrupt:
            if not settings.keep_on_interrupt:
                raise
            solution = _interrupted(solution, "The fit was interrupted while atoms were learned.")
    return replace(learned, factors=tidied(learned.factors, learned.problem)), solution


def _interrupted(solution: Solution[Factors], message: str) -> Solution[Factors]:
    return replace(solution, status=Status.INTERRUPTED, message=message)


def smoothing_rows(n_rows: float) -> float:
    """Rows that are spread evenly over the atoms of a column's own fit, lest it follow the noise of its counts."""
    return SMOOTHING * float(np.sqrt(n_rows))


def likelihood_problem(rows: Rows, dictionaries: Sequence[Dictionary], beta: float) -> RowsProblem:
    """Atoms on the axes, the 1-D fit of every column, and the rows."""
    masses, margins = [], []
    for n, (dictionary, axis) in enumerate(zip(dictionaries, rows.axes, strict=True)):
        prior = 0.0 if dictionary.is_identity else smoothing_rows(rows.n_rows)
        masses.append(dictionary.masses(axis))
        margins.append(simplex_weights(masses[n], rows.marginal(n), prior=prior))
    return RowsProblem(tuple(masses), tuple(margins), rows.engine(), rows.n_rows, beta)


def best_start(
    rows: Rows,
    problem: RowsProblem,
    settings: LikelihoodSettings,
    n_starts: int,
    rng: np.random.Generator,
) -> Factors:
    """The start that has come furthest after a few steps, on a sample of the rows if there are many."""
    starts = [start_around(problem.margins, settings.n_components, rng) for _ in range(n_starts)]
    if n_starts == 1:
        return starts[0]
    if len(rows) > SHORT_ROWS:
        sample = rows.take(np.sort(rng.choice(len(rows), SHORT_ROWS, replace=False)))
        problem = replace(problem, rows=sample.engine(), n_rows=sample.n_rows)
    runs: list[Solution[Factors]] = [
        solve(RowsEM(start, tol=settings.tol), problem, max_steps=SHORT_STEPS) for start in starts
    ]
    return min(runs, key=lambda run: float(run.history[-1])).value


def _first_point(
    rows: Rows,
    problem: RowsProblem,
    settings: LikelihoodSettings,
    n_models: int,
    rng: np.random.Generator,
    callback: Callable[[int, float], None] | None,
    record: ModelRecord,
) -> Factors:
    """Where EM on all rows begins: the best of some starts, brought on by EM on growing parts where rows are many."""
    parts = [(n_part, record.of_part(n_part)) for n_part in part_sizes(len(rows))]
    held = [part.begun(problem, settings.n_components) for _, part in parts]
    last = max((k for k, start in enumerate(held) if start is not None), default=0)
    start = held[last] if held else None
    if start is None:
        start = best_start(rows, problem, settings, settings.starts_of_each(n_models), rng)
    for (n_part, part), begun in zip(parts[last:], held[last:], strict=True):
        if begun is None:
            part.begin(start)
        some = rows.take(spread_positions(len(rows), n_part, rng))
        start = solve(
            RowsEM(start, tol=_tolerance(settings, some)),
            replace(problem, rows=some.engine(), n_rows=some.n_rows),
            max_steps=settings.max_iter,
            callback=callback,
            resume=part.reached(problem, settings.n_components),
            on_state=part.on_state,
        ).value
    return start


def part_sizes(n_rows: int) -> list[int]:
    """Numbers of rows that EM runs on before it meets all of them.

    >>> part_sizes(100_000), part_sizes(1_000_000), part_sizes(100_000_000)
    ([], [250000], [250000, 4000000])
    """
    sizes = [PART_ROWS]
    while 2 * sizes[-1] < n_rows:
        sizes.append(sizes[-1] * PART_GROWTH)
    return sizes[:-1]


def spread_positions(n: int, n_chosen: int, rng: np.random.Generator) -> IntArray:
    """Positions that rise, one drawn from each of so many equal stretches of n; takes no memory of size n.

    >>> spread_positions(100, 4, np.random.default_rng(0)) // 25
    array([0, 1, 2, 3])
    """
    ends = np.arange(n_chosen + 1) * n // n_chosen
    return rng.integers(ends[:-1], ends[1:])


def _tolerance(settings: LikelihoodSettings, rows: Rows) -> float:
    """Nats per row by which a step must gain; more rows tell finer differences."""
    return settings.tol * min(1.0, float(np.sqrt(FINER_ROWS / rows.n_rows)))


def tidied(factors: Factors, problem: RowsProblem) -> Factors:
    """The same density with components that have no rows dropped and equal ones merged, largest first."""
    least = min(LEAST_ROWS / problem.n_rows, float(factors.weights.max()))
    alive = np.flatnonzero(factors.weights >= least)
    order = alive[np.argsort(-factors.weights[alive], kind="stable")]
    weights, stacked = factors.weights[order], np.vstack(factors.coefficients)[:, order]
    conditionals = problem.conditionals(stacked)
    kept: list[int] = []
    for r in range(len(order)):
        twin = next((k for k in kept if _distance(problem, conditionals[:, r], conditionals[:, k]) < SAME), None)
        if twin is None:
            kept.append(r)
            continue
        share = weights[r] / (weights[r] + weights[twin])
        stacked[:, twin] = (1 - share) * stacked[:, twin] + share * stacked[:, r]
        weights[twin] += weights[r]
    coefficients = [stacked[rows][:, kept] for rows in problem.slices]
    return Factors(weights[kept] / weights[kept].sum(), tuple(coefficients))


def held_out_gain(problem: RowsProblem, factors: Factors, rows: Rows) -> float:
    """Log-likelihood of other rows beyond that of independence, summed over them."""
    return average_gain([Learned((), replace(problem, rows=rows.engine()), factors)])


def _distance(problem: RowsProblem, a: FloatArray, b: FloatArray) -> float:
    """Largest total variation between two components' conditionals of one variable."""
    return max(float(np.abs(a[rows] - b[rows]).sum()) / 2 for rows in problem.bin_slices)
