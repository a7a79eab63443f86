"""Where EM on rows begins: the best of several random starts, brought on by EM on growing parts of the rows.

Starts are drawn around independence. In trials on the paper's experiments they ended as well as starts from a pairwise
fit, and they need no pair counts, so the cost grows with columns and not with their pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from jointwise._typing import IntArray
from jointwise.fitting.checkpoint import ModelRecord
from jointwise.fitting.options import Options
from jointwise.fitting.result import Choice
from jointwise.rows.base import Rows
from jointwise.solvers import Factors, RowsEM, RowsProblem, Solution, solve, start_around

# Starts are compared after this many steps, on at most this many rows: by then their order is mostly settled.
SHORT_STEPS, SHORT_ROWS = 12, 20_000
# With fewer components than this, more starts are tried: each costs less, and is more likely to lead astray.
MANY_COMPONENTS = 16
# With more rows than this, the tolerance falls with the root of their number: more rows tell finer differences.
FINER_ROWS = 20_000
# A table of more than twice `PART_ROWS` rows is first fitted on that many, then on `PART_GROWTH` times as many, and so
# on: few steps on all rows are then left to do.
PART_ROWS, PART_GROWTH = 250_000, 16


def starts_per_model(choice: Choice, options: Options) -> int:
    """Return the number of starts of each model.

    With fewer than 16 components, more starts are tried (unless n_init=1).
    """
    if options.n_init == 1:
        return 1
    return int(np.ceil(options.n_init / len(choice.models) * max(1.0, MANY_COMPONENTS / choice.n_components)))


def tolerance(options: Options, n_rows: float) -> float:
    """Return the smallest gain of a step, in nats per row, that keeps EM going."""
    return options.tol * min(1.0, float(np.sqrt(FINER_ROWS / n_rows)))


def first_point(
    rows: Rows,
    problem: RowsProblem,
    choice: Choice,
    options: Options,
    seed: int,
    callback: Callable[[int, float], None] | None,
    record: ModelRecord,
) -> Factors:
    """Return where EM on all rows begins.

    Parameters
    ----------
    rows : Rows
    problem : RowsProblem
        Of these rows.
    choice : Choice
    options : Options
    seed : int
        Of the generators that draw the starts and each of the parts.
    callback : callable, optional
        Called with the steps taken and the objective, at every step on a part.
    record : ModelRecord
        Keeps where EM on the parts stands.
    """
    parts = [(n_part, record.of_part(n_part)) for n_part in part_sizes(len(rows))]
    held = [part.begun(problem, choice.n_components) for _, part in parts]
    last = max((k for k, start in enumerate(held) if start is not None), default=0)
    start = held[last] if held else None
    if start is None:
        start = _best_start(rows, problem, choice, options, np.random.default_rng(seed))
    for (n_part, part), begun in zip(parts[last:], held[last:], strict=True):
        if begun is None:
            part.begin(start)
        some = rows.take(spread_positions(len(rows), n_part, np.random.default_rng([seed, n_part])))
        start = solve(
            RowsEM(start, tol=tolerance(options, some.n_rows)),
            replace(problem, rows=some.engine(), n_rows=some.n_rows),
            max_steps=options.max_iter,
            callback=callback,
            resume=part.reached(problem, choice.n_components),
            on_state=part.on_state,
        ).value
    return start


def _best_start(
    rows: Rows, problem: RowsProblem, choice: Choice, options: Options, rng: np.random.Generator
) -> Factors:
    """Return the start that has come furthest after a few steps, on a sample of the rows if there are many."""
    n_starts = starts_per_model(choice, options)
    starts = [start_around(problem.margins, choice.n_components, rng) for _ in range(n_starts)]
    if n_starts == 1:
        return starts[0]
    if len(rows) > SHORT_ROWS:
        sample = rows.take(np.sort(rng.choice(len(rows), SHORT_ROWS, replace=False)))
        problem = replace(problem, rows=sample.engine(), n_rows=sample.n_rows)
    runs: list[Solution[Factors]] = [
        solve(RowsEM(start, tol=options.tol), problem, max_steps=SHORT_STEPS) for start in starts
    ]
    return min(runs, key=lambda run: float(run.history[-1])).value


def part_sizes(n_rows: int) -> list[int]:
    """Return the numbers of rows that EM runs on before it meets all of them.

    >>> part_sizes(100_000), part_sizes(1_000_000), part_sizes(100_000_000)
    ([], [250000], [250000, 4000000])
    """
    sizes = [PART_ROWS]
    while 2 * sizes[-1] < n_rows:
        sizes.append(sizes[-1] * PART_GROWTH)
    return sizes[:-1]


def spread_positions(n: int, n_chosen: int, rng: np.random.Generator) -> IntArray:
    """Return rising positions, one drawn from each of ``n_chosen`` equal stretches of n; memory does not grow with n.

    >>> spread_positions(100, 4, np.random.default_rng(0)) // 25
    array([0, 1, 2, 3])
    """
    ends = np.arange(n_chosen + 1) * n // n_chosen
    return rng.integers(ends[:-1], ends[1:])
