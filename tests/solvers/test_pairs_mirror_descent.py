import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.solvers.cases import assert_never_rises, exact_problem, noisy_problem

from jointwise.exceptions import InputError
from jointwise.solvers import MirrorDescentPairs, PairwiseProblem, Status, solve


def pair_error(problem, pair, coefficients):
    j, k = pair
    fitted = problem.masses[j] @ coefficients @ problem.masses[k].T
    return float(np.sum((problem.pairs[pair] - fitted) ** 2))


def gradient_by_loops(problem, pair, coefficients):
    j, k = pair
    dj, dk = problem.masses[j], problem.masses[k]
    gradient = np.zeros_like(coefficients)
    for l in range(dj.shape[1]):
        for m in range(dk.shape[1]):
            for i in range(dj.shape[0]):
                for h in range(dk.shape[0]):
                    residual = problem.pairs[pair][i, h] - dj[i] @ coefficients @ dk[h]
                    gradient[l, m] -= 2 * residual * dj[i, l] * dk[h, m]
    return gradient


def optimum(problem, pair):
    """Return the minimum over the simplex by a general solver."""
    shape = (problem.sizes[pair[0]], problem.sizes[pair[1]])
    size = shape[0] * shape[1]
    result = minimize(
        lambda t: 1e3 * pair_error(problem, pair, t.reshape(shape)),
        np.full(size, 1 / size),
        jac=lambda t: 1e3 * gradient_by_loops(problem, pair, t.reshape(shape)).ravel(),
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda t: t.sum() - 1, "jac": lambda t: np.ones(size)},
        options={"ftol": 1e-14, "maxiter": 500},
        method="SLSQP",
    )
    return result.fun / 1e3


def test_states_carry_the_true_objective_and_gradient():
    problem = noisy_problem(np.random.default_rng(0))
    solver = MirrorDescentPairs(tol=1e-8)
    state = solver.init(problem)
    for _ in range(20):
        for batch in state.batches:
            for n, pair in enumerate(batch.pairs):
                t = batch.coefficients[n]
                np.testing.assert_allclose(batch.objective[n], pair_error(problem, pair, t), rtol=1e-9)
                np.testing.assert_allclose(batch.gradient[n], gradient_by_loops(problem, pair, t), atol=1e-12)
        state = solver.step(problem, state)


def test_gradient_agrees_with_finite_differences():
    problem = noisy_problem(np.random.default_rng(1))
    pair = (0, 1)
    t = np.random.default_rng(2).dirichlet(np.ones(12)).reshape(4, 3)
    gradient = gradient_by_loops(problem, pair, t)
    for l in range(4):
        for m in range(3):
            nudge = np.zeros((4, 3))
            nudge[l, m] = 1e-6
            difference = pair_error(problem, pair, t + nudge) - pair_error(problem, pair, t - nudge)
            np.testing.assert_allclose(difference / 2e-6, gradient[l, m], rtol=1e-5, atol=1e-9)


def test_a_step_with_a_given_rate_is_the_paper_update():
    problem = noisy_problem(np.random.default_rng(3))
    solver = MirrorDescentPairs(rate=0.7, tol=0.0)
    state = solver.init(problem)
    before, after = solver.value(state), solver.value(solver.step(problem, state))
    for pair, t in before.items():
        expected = t * np.exp(-0.7 * gradient_by_loops(problem, pair, t))
        np.testing.assert_allclose(after[pair], expected / expected.sum(), rtol=1e-9)


def test_each_pair_never_rises_and_stays_on_the_simplex():
    problem = noisy_problem(np.random.default_rng(4), n_rows=30)
    solver = MirrorDescentPairs(tol=1e-5)
    state = solver.init(problem)
    errors = {pair: [] for pair in problem.pairs}
    for _ in range(300):
        for pair, t in solver.value(state).items():
            errors[pair].append(pair_error(problem, pair, t))
            assert (t >= 0).all()
            np.testing.assert_allclose(t.sum(), 1)
        state = solver.step(problem, state)
    for history in errors.values():
        assert_never_rises(np.array(history))


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3])
def test_the_gap_bounds_the_distance_to_the_optimum(tol):
    problem = noisy_problem(np.random.default_rng(5), bins=(5, 4), sizes=(3, 3), n_rows=50)
    solution = solve(MirrorDescentPairs(tol=tol), problem, max_steps=5000)
    assert solution.converged
    best = optimum(problem, (0, 1))
    error = pair_error(problem, (0, 1), solution.value[0, 1])
    np.testing.assert_allclose(solution.history[-1], error, rtol=1e-9)
    assert best - 1e-9 <= error <= best + tol * problem.squared_norms[0, 1] + 1e-9


def test_exact_masses_are_fitted():
    problem, _ = exact_problem(np.random.default_rng(6))
    solution = solve(MirrorDescentPairs(tol=1e-5), problem, max_steps=5000)
    assert solution.converged
    assert_never_rises(solution.history)
    assert solution.history[-1] <= 1e-5 * sum(problem.squared_norms.values())


def test_pairs_of_different_shapes_come_back_in_order():
    problem = noisy_problem(np.random.default_rng(7), bins=(4, 4, 3, 1), sizes=(3, 3, 2, 1))
    value = solve(MirrorDescentPairs(), problem, max_steps=1000).value
    assert list(value) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert [t.shape for t in value.values()] == [(3, 3), (3, 2), (3, 1), (3, 2), (3, 1), (2, 1)]


def test_a_rate_that_is_too_large_is_said_so():
    problem = noisy_problem(np.random.default_rng(8))
    solution = solve(MirrorDescentPairs(rate=1e4), problem, max_steps=50)
    assert solution.status is Status.MAX_STEPS
    assert "The given rate is too large: lower it" in solution.message
    assert all(np.isfinite(t).all() for t in solution.value.values())


def test_a_small_given_rate_descends():
    problem = noisy_problem(np.random.default_rng(8))
    assert_never_rises(solve(MirrorDescentPairs(rate=1.0), problem, max_steps=50).history)


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_rate_must_be_positive(rate):
    with pytest.raises(InputError, match="rate must be a positive number or None"):
        MirrorDescentPairs(rate=rate)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 5), st.integers(1, 40))
def test_any_counts_give_coefficients_on_the_simplex(seed, atoms, bins, rows):
    rng = np.random.default_rng(seed)
    masses = (rng.dirichlet(np.full(bins, 0.3), size=atoms).T, np.eye(2))
    counts = rng.multinomial(rows, np.full(bins * 2, 0.5 / bins)).reshape(bins, 2)
    problem = PairwiseProblem(masses, {(0, 1): counts / rows})
    solution = solve(MirrorDescentPairs(), problem, max_steps=400)
    t = solution.value[0, 1]
    assert (t >= 0).all()
    np.testing.assert_allclose(t.sum(), 1)
    assert_never_rises(solution.history)
