"""The contract of a solver, the loop that runs it, and its outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from jointwise.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jointwise._typing import FloatArray

ProblemT = TypeVar("ProblemT")
StateT = TypeVar("StateT")
ValueT = TypeVar("ValueT")


class Status(Enum):
    """How a run ended."""

    CONVERGED = "converged"
    MAX_STEPS = "max_steps"
    NOT_FINITE = "not_finite"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, eq=False)
class Solution(Generic[ValueT]):
    """The outcome of a run.

    Attributes
    ----------
    value
        The solver's answer at its last finite state.
    status : Status
        How the run ended.
    message : str
        The same as a sentence, with advice if there is any.
    history : array of shape (n_steps + 1,)
        The objective at the start and after every step.
    n_steps : int
        Number of steps taken.
    """

    value: ValueT
    status: Status
    message: str
    history: FloatArray
    n_steps: int

    @property
    def converged(self) -> bool:
        """Whether the solver's own stopping rule was met."""
        return self.status is Status.CONVERGED


@dataclass(frozen=True, eq=False)
class Reached(Generic[StateT]):
    """The position of a run.

    Attributes
    ----------
    state
        The last state with a finite objective.
    history : tuple of float
        The objective at the start and after every step.
    """

    state: StateT
    history: tuple[float, ...]


class Solver(ABC, Generic[ProblemT, StateT, ValueT]):
    """An immutable record of settings, with the steps that improve a state of a problem.

    A concrete solver is a frozen dataclass. States are values: `step` returns a new one. Objectives are minimised.
    """

    #: What to do when the objective rises between steps; empty if it cannot.
    advice: str = ""

    @abstractmethod
    def init(self, problem: ProblemT) -> StateT:
        """Return the state the run starts from."""

    @abstractmethod
    def step(self, problem: ProblemT, state: StateT) -> StateT:
        """Return the state after one step."""

    @abstractmethod
    def objective(self, state: StateT) -> float:
        """Return the value being minimised."""

    @abstractmethod
    def is_done(self, state: StateT) -> bool:
        """Return whether the stopping rule is met."""

    @abstractmethod
    def value(self, state: StateT) -> ValueT:
        """Return the answer that a state holds."""


def solve(
    solver: Solver[ProblemT, StateT, ValueT],
    problem: ProblemT,
    *,
    max_steps: int,
    callback: Callable[[int, float], None] | None = None,
    keep_on_interrupt: bool = False,
    resume: Reached[StateT] | None = None,
    on_state: Callable[[Reached[StateT]], None] | None = None,
) -> Solution[ValueT]:
    """Run a solver until its stopping rule is met, the steps are used up or the objective is not finite.

    Parameters
    ----------
    solver : Solver
        The settings.
    problem
        What to solve.
    max_steps : int
        Largest number of steps; zero returns the start.
    callback : callable, optional
        Called with the number of steps taken and the objective, at the start and after every step.
    keep_on_interrupt : bool
        Whether a keyboard interrupt after the start ends the run with the state reached, instead of being raised.
    resume : Reached, optional
        Position of an earlier run of the same solver on the same problem, from which this one continues.
    on_state : callable, optional
        Called with the position of the run, at the start and after every step.

    Returns
    -------
    Solution
        Its value is that of the last state with a finite objective.
    """
    if max_steps < 0:
        raise InputError(f"max_steps must be zero or more; got {max_steps}.")
    if resume is None:
        state = solver.init(problem)
        history = [solver.objective(state)]
    else:
        state, history = resume.state, list(resume.history)
    status = Status.MAX_STEPS
    try:
        while True:
            if on_state is not None:
                on_state(Reached(state, tuple(history)))
            if callback is not None:
                callback(len(history) - 1, history[-1])
            if not np.isfinite(history[-1]):
                status = Status.NOT_FINITE
                break
            if solver.is_done(state):
                status = Status.CONVERGED
                break
            if len(history) > max_steps:
                break
            proposal = solver.step(problem, state)
            history.append(solver.objective(proposal))
            if np.isfinite(history[-1]):
                state = proposal
    except KeyboardInterrupt:
        if not keep_on_interrupt:
            raise
        status = Status.INTERRUPTED
    record = np.array(history)
    record.setflags(write=False)
    return Solution(solver.value(state), status, _message(solver, status, record), record, len(record) - 1)


def _message(solver: Solver[ProblemT, StateT, ValueT], status: Status, history: FloatArray) -> str:
    steps = len(history) - 1
    name = type(solver).__name__
    message = {
        Status.CONVERGED: f"{name} converged after {steps} steps.",
        Status.MAX_STEPS: f"{name} stopped at the limit of {steps} steps before its tolerance was met.",
        Status.NOT_FINITE: f"{name} met an objective that is not finite at step {steps}.",
        Status.INTERRUPTED: f"{name} was interrupted after {steps} steps, before its tolerance was met.",
    }[status]
    # rounding may raise a converged objective in its last digits: that does not count
    finite = history[np.isfinite(history)]
    rises = int(np.sum(np.diff(finite) > 1e-9 * np.abs(finite[:-1])))
    if rises:
        message += f" The objective rose at {rises} of {steps} steps. {solver.advice}"
    elif status is Status.NOT_FINITE:
        message += f" {solver.advice}"
    return message.rstrip()
