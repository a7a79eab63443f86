"""Iterative runs from several starts: their parameters, the best of them, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from sklearn.exceptions import ConvergenceWarning

from jointwise._checks import check_integer, check_real, warn_caller
from jointwise.exceptions import InputError
from jointwise.solvers import Solution, Solver, solve

ProblemT = TypeVar("ProblemT")
ValueT = TypeVar("ValueT")


def check_not_negative(argument: str, value: object) -> None:
    """Refuse anything but a finite number of zero or more."""
    if check_real(argument, value) < 0:
        raise InputError(f"`{argument}` must not be negative; got {value!r}.")


def check_run(n_init: object, max_iter: object, tol: object) -> None:
    """Check the number of starts, the most steps of each, and the tolerance."""
    check_integer("n_init", n_init, 1)
    check_integer("max_iter", max_iter, 1)
    check_not_negative("tol", tol)


def best_run(solvers: Iterable[Solver[ProblemT, Any, ValueT]], problem: ProblemT, max_steps: int) -> Solution[ValueT]:
    """Run every solver, one for each start, and return the run with the lowest objective."""
    runs = [solve(solver, problem, max_steps=max_steps) for solver in solvers]
    return min(runs, key=lambda run: float(run.history[-1]))


def record(model: Any, solution: Solution[Any]) -> None:
    """Set ``n_iter_``, ``converged_`` and ``objective_`` of an estimator, and warn if the run did not converge."""
    model.n_iter_ = max(solution.n_steps, 1)
    model.converged_ = solution.converged
    model.objective_ = float(solution.history[-1])
    if not solution.converged:
        warn_caller(
            f"{solution.message} Raise max_iter (now {model.max_iter}) or tol (now {model.tol}).",
            ConvergenceWarning,
        )
