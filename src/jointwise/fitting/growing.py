"""EM on growing parts of a large table, then on all of it: few steps on all rows are then left to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from jointwise.fitting.starts import part_sizes, spread_positions
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Reached, Solution, solve
from jointwise.solvers.base import Solver

# Groups of rows, where EM begins, are found on at most this many rows.
START_ROWS = 20_000
# Runs on parts of a large table stop earlier than that on all rows, by this factor of the tolerance.
PART_TOL = 3.0
# Fits without held-out rows say how to weigh experts, which the last digits do not change.
FOLD_TOL = 1e-3
# Above this many rows the tolerance grows with them, up to ten times: the last digits would take most of the time.
COARSER_ROWS, COARSEST = 100_000, 10.0

Callback = Callable[[int, float], None]
ProblemT = TypeVar("ProblemT")
StateT = TypeVar("StateT")
ValueT = TypeVar("ValueT")


class RunOptions(Protocol):
    """What of the options says how a run goes."""

    @property
    def max_iter(self) -> int:
        """Most steps of a run."""

    @property
    def keep_on_interrupt(self) -> bool:
        """Whether Ctrl-C keeps what is reached by then."""


class Run(NamedTuple, Generic[ProblemT, StateT]):
    """A run of EM: its problem, where it stood when it was stopped, and what keeps each of its states."""

    problem: ProblemT
    reached: Reached[StateT] | None
    on_state: Callable[[Reached[StateT]], None]


def growing_parts(rows: Rows, rng: np.random.Generator, most: float | None = None) -> list[CodedRows]:
    """Return parts of the rows, each spread over all of them: the first to begin with, then ever larger ones.

    Parameters
    ----------
    rows : Rows
    rng : numpy.random.Generator
    most : float, optional
        Parts have fewer rows than this; than all by default.
    """
    n = len(rows)
    sizes = [size for size in (START_ROWS, *part_sizes(n)) if size < (n if most is None else most)]
    return [rows.take(spread_positions(n, size, rng)) for size in sizes]


def in_memory(rows: Rows) -> CodedRows:
    """Return all the rows, in memory."""
    return rows if isinstance(rows, CodedRows) else rows.take(np.arange(len(rows)))


def coarser(tol: float, n_rows: float) -> float:
    """Return the tolerance of a table of this many rows.

    >>> [coarser(0.25, n) for n in (1_000, 200_000, 10**7)]
    [0.25, 0.5, 2.5]
    """
    return tol * float(np.clip(n_rows / COARSER_ROWS, 1.0, COARSEST))


def solve_growing(
    begin: Callable[[ValueT, float], Solver[ProblemT, StateT, ValueT]],
    start: ValueT,
    parts: Iterable[Run[ProblemT, StateT]],
    whole: Run[ProblemT, StateT],
    tol: float,
    options: RunOptions,
    callback: Callback | None,
) -> Solution[ValueT]:
    """Return how the run on all rows went, from where those on parts of them ended.

    Parameters
    ----------
    begin : callable
        Returns the solver, from a start and a tolerance.
    start
        Where the first run begins.
    parts : iterable of Run
        On growing parts of the rows.
    whole : Run
        On all rows.
    tol : float
        Tolerance of the run on all rows.
    options : RunOptions
    callback : callable, optional
        Called with the steps taken and the objective, at every step of each run.
    """

    def solved(run: Run[ProblemT, StateT], tol: float, *, keep: bool) -> Solution[ValueT]:
        return solve(
            begin(start, tol),
            run.problem,
            max_steps=options.max_iter,
            callback=callback,
            keep_on_interrupt=keep,
            resume=run.reached,
            on_state=run.on_state,
        )

    for part in parts:
        start = solved(part, PART_TOL * tol, keep=False).value
    return solved(whole, tol, keep=options.keep_on_interrupt)
