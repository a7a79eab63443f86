import numpy as np
import pytest
from tests.solvers.cases import (
    assert_descends,
    assert_never_rises,
    assert_valid,
    exact_problem,
    noisy_problem,
    random_factors,
    squared_error_by_loops,
)

from jointwise.exceptions import InputError
from jointwise.solvers import (
    AlternatingMirrorDescent,
    Factors,
    MirrorDescentPairs,
    PairwiseProblem,
    Status,
    random_start,
    solve,
    split_starts,
)


def replaced(factors, n, block):
    coefficients = list(factors.coefficients)
    if n == len(coefficients):
        return Factors(block, factors.coefficients)
    coefficients[n] = block
    return Factors(factors.weights, tuple(coefficients))


def gradient_by_differences(problem, factors, n):
    block = np.array(factors.weights if n == len(factors.coefficients) else factors.coefficients[n])
    gradient = np.zeros_like(block)
    for where in np.ndindex(block.shape):
        nudge = np.zeros_like(block)
        nudge[where] = 1e-4  # J is at most quadratic in one block: central differences are exact
        high = squared_error_by_loops(problem, replaced(factors, n, block + nudge))
        low = squared_error_by_loops(problem, replaced(factors, n, block - nudge))
        gradient[where] = (high - low) / 2e-4
    return gradient


def paper_sweep(problem, factors, rate_b, rate_l):
    """Return one sweep of Algorithm 1 with one inner step, by finite differences."""
    for n in range(problem.n_variables):
        b = factors.coefficients[n] * np.exp(-rate_b * gradient_by_differences(problem, factors, n))
        factors = replaced(factors, n, b / b.sum(axis=0))
    last = problem.n_variables
    weights = factors.weights * np.exp(-rate_l * gradient_by_differences(problem, factors, last))
    return replaced(factors, last, weights / weights.sum())


@pytest.mark.parametrize("shared", [False, True])
def test_a_sweep_with_given_rates_is_the_paper_update(shared):
    rng = np.random.default_rng(0)
    problem = noisy_problem(rng, bins=(4, 3, 3), sizes=(3, 2, 3), shared=shared)
    start = random_factors(rng, problem.sizes, 2)
    solver = AlternatingMirrorDescent(start, coefficient_rate=0.8, weight_rate=0.3, n_inner=1)
    found = solver.value(solver.step(problem, solver.init(problem)))
    expected = paper_sweep(problem, start, 0.8, 0.3)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-7)
    for a, b in zip(found.coefficients, expected.coefficients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7)


@pytest.mark.parametrize("drop", [(), ((0, 1),)])
def test_the_tracked_objective_is_the_true_one_and_never_rises(drop):
    rng = np.random.default_rng(1)
    problem = noisy_problem(rng, shared=True, drop=drop)
    solver = AlternatingMirrorDescent(random_start(problem, 3, rng))
    assert_descends(solver, problem, squared_error_by_loops, n_steps=40)


def test_every_block_descends():
    rng = np.random.default_rng(2)
    problem = noisy_problem(rng, n_rows=50)
    solution = solve(AlternatingMirrorDescent(random_start(problem, 4, rng)), problem, max_steps=500)
    assert solution.converged
    assert_never_rises(solution.history)
    assert solution.history[-1] < 0.9 * solution.history[0]


def test_a_known_joint_is_recovered_through_the_three_stages():
    rng = np.random.default_rng(3)
    problem, _ = exact_problem(rng, bins=(8, 8, 8, 8), sizes=(4, 4, 4, 4), n_components=2)
    pairs = solve(MirrorDescentPairs(tol=1e-4), problem, max_steps=2000)
    start = split_starts(problem, pairs.value, 2, rng=rng)
    solution = solve(AlternatingMirrorDescent(start.value, tol=1e-5), problem, max_steps=2000)
    assert solution.history[-1] < 1e-5 * problem.constant
    assert_never_rises(solution.history)


def test_a_variable_without_pairs_keeps_its_start():
    rng = np.random.default_rng(4)
    problem = noisy_problem(rng, drop=((0, 2), (1, 2)))
    problem = PairwiseProblem(
        problem.masses, problem.pairs, margins=tuple(np.full(d.shape[0], 1 / d.shape[0]) for d in problem.masses)
    )
    start = random_start(problem, 2, rng)
    value = solve(AlternatingMirrorDescent(start), problem, max_steps=20).value
    np.testing.assert_allclose(value.coefficients[2], start.coefficients[2], rtol=1e-9)


def test_zeros_in_the_start_do_no_harm():
    problem = noisy_problem(np.random.default_rng(5), bins=(3, 3), sizes=(2, 2))
    start = Factors([1.0, 0.0], (np.eye(2), np.eye(2)))
    solution = solve(AlternatingMirrorDescent(start), problem, max_steps=50)
    assert_valid(solution.value)
    assert_never_rises(solution.history)


def test_one_bin_and_one_atom():
    problem = PairwiseProblem((np.ones((1, 1)), np.eye(2)), {(0, 1): np.array([[0.3, 0.7]])})
    solution = solve(
        AlternatingMirrorDescent(random_start(problem, 2, np.random.default_rng(0))), problem, max_steps=500
    )
    assert_valid(solution.value)
    np.testing.assert_allclose(solution.value.coefficients[1] @ solution.value.weights, [0.3, 0.7], atol=1e-3)


def test_rates_that_are_too_large_are_said_so():
    rng = np.random.default_rng(6)
    problem = noisy_problem(rng)
    start = random_start(problem, 3, rng)
    solution = solve(AlternatingMirrorDescent(start, 1e3, 1e3), problem, max_steps=30)
    assert solution.status is Status.MAX_STEPS
    assert "The given rates are too large: lower them" in solution.message
    assert_valid(solution.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"coefficient_rate": 0.0}, "coefficient_rate must be a positive number or None; got 0.0"),
        ({"weight_rate": -1.0}, "weight_rate must be a positive number or None; got -1.0"),
        ({"n_inner": 0}, "n_inner must be one or more; got 0"),
    ],
)
def test_arguments_out_of_range(options, sentence):
    with pytest.raises(InputError, match=sentence):
        AlternatingMirrorDescent(Factors([1.0], ([[1.0]],)), **options)
