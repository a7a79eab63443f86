from dataclasses import dataclass

import numpy as np
import pytest

from jointwise.exceptions import InputError
from jointwise.solvers import Solver, Status, solve


@dataclass(frozen=True)
class Shrink(Solver):
    """Multiplies a number by a factor."""

    factor: float
    tol: float = 1e-3
    advice = "Take a smaller factor."

    def init(self, problem):
        return problem

    def step(self, problem, state):
        return state * self.factor

    def objective(self, state):
        return float(state)

    def is_done(self, state):
        return state <= self.tol

    def value(self, state):
        return state


def test_converged():
    solution = solve(Shrink(0.5), 1.0, max_steps=100)
    assert solution.status is Status.CONVERGED
    assert solution.converged
    assert solution.n_steps == 10
    assert solution.value == 0.5**10
    np.testing.assert_allclose(solution.history, 0.5 ** np.arange(11))
    assert not solution.history.flags.writeable
    assert solution.message == "Shrink converged after 10 steps."


def test_stops_at_the_limit():
    solution = solve(Shrink(0.5), 1.0, max_steps=3)
    assert solution.status is Status.MAX_STEPS
    assert not solution.converged
    assert solution.n_steps == 3
    assert solution.message == "Shrink stopped at the limit of 3 steps before its tolerance was met."


def test_zero_steps_return_the_start():
    solution = solve(Shrink(0.5), 1.0, max_steps=0)
    assert (solution.value, solution.n_steps, solution.status) == (1.0, 0, Status.MAX_STEPS)


def test_a_start_may_be_done():
    assert solve(Shrink(0.5), 0.0, max_steps=5).n_steps == 0


def test_last_finite_state_is_returned_when_the_objective_overflows():
    with np.errstate(over="ignore"):
        solution = solve(Shrink(1e200), np.float64(1.0), max_steps=10)
    assert solution.status is Status.NOT_FINITE
    assert solution.value == 1e200
    assert np.isinf(solution.history[-1])
    assert "not finite at step 2" in solution.message
    assert "Take a smaller factor." in solution.message


def test_a_start_that_is_not_finite_is_said_so():
    solution = solve(Shrink(0.5), float("nan"), max_steps=10)
    assert solution.status is Status.NOT_FINITE
    assert solution.n_steps == 0


def test_rises_are_counted():
    solution = solve(Shrink(2.0), 1.0, max_steps=4)
    assert "The objective rose at 4 of 4 steps. Take a smaller factor." in solution.message


def test_callback_sees_every_step():
    seen = []
    solution = solve(Shrink(0.1), 1.0, max_steps=10, callback=lambda step, value: seen.append((step, value)))
    assert [step for step, _ in seen] == list(range(solution.n_steps + 1))
    np.testing.assert_array_equal([value for _, value in seen], solution.history)


def test_negative_max_steps():
    with pytest.raises(InputError, match="max_steps must be zero or more; got -1"):
        solve(Shrink(0.5), 1.0, max_steps=-1)


def interrupt_at(step):
    def callback(steps, objective):
        if steps == step:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("step", [0, 4])
def test_an_interrupted_run_keeps_the_state_it_reached(step):
    solution = solve(Shrink(0.5), 1.0, max_steps=100, callback=interrupt_at(step), keep_on_interrupt=True)
    assert solution.status is Status.INTERRUPTED
    assert not solution.converged
    assert solution.n_steps == step
    assert solution.value == 0.5**step
    assert len(solution.history) == step + 1
    assert solution.message == f"Shrink was interrupted after {step} steps, before its tolerance was met."


def test_an_interrupt_is_raised_unless_it_is_to_be_kept():
    with pytest.raises(KeyboardInterrupt):
        solve(Shrink(0.5), 1.0, max_steps=100, callback=interrupt_at(4))
