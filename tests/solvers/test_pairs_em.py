import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.solvers.cases import (
    assert_descends,
    assert_never_rises,
    assert_on_simplex,
    assert_valid,
    divergence_by_loops,
    exact_problem,
    noisy_problem,
    random_factors,
    random_masses,
)

from jointwise.exceptions import InputError
from jointwise.solvers import (
    AlternatingMirrorDescent,
    Factors,
    PairwiseEM,
    PairwiseProblem,
    mean_log_likelihood,
    random_start,
    simplex_weights,
    solve,
)


def update_by_loops(problem, factors):
    """Return one EM update from posteriors of (component, atom of j, atom of k), cell by cell."""
    weights = np.zeros(factors.n_components)
    coefficients = [np.zeros(b.shape) for b in factors.coefficients]
    for (j, k), z in problem.pairs.items():
        share = 1.0 if problem.shares is None else problem.shares[j, k]
        for i, h in np.argwhere(z > 0):
            left = problem.masses[j][i][:, None] * factors.coefficients[j]
            right = problem.masses[k][h][:, None] * factors.coefficients[k]
            posterior = factors.weights * left[:, None, :] * right[None, :, :]
            posterior *= share * z[i, h] / posterior.sum()
            weights += posterior.sum(axis=(0, 1))
            coefficients[j] += posterior.sum(axis=1)
            coefficients[k] += posterior.sum(axis=0)
    return Factors(weights / weights.sum(), tuple(b / b.sum(axis=0) for b in coefficients))


def maximum(function, size, gtol):
    """Return the maximum of a function of weights on the simplex by a general solver, on the softmax scale."""

    def loss(x):
        weights = np.exp(x - x.max())
        return -float(function(weights / weights.sum()))

    return -minimize(loss, np.zeros(size), method="BFGS", options={"gtol": gtol}).fun


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_weights_are_within_tolerance_of_the_best(tol):
    rng = np.random.default_rng(0)
    masses = random_masses(rng, 12, 5)
    counts = rng.multinomial(100, masses @ rng.dirichlet(np.ones(5)))
    reached = mean_log_likelihood(masses, counts, simplex_weights(masses, counts, tol=tol))
    best = maximum(lambda weights: mean_log_likelihood(masses, counts, weights), 5, gtol=1e-7)
    assert best - tol <= reached <= best + 1e-6


def test_data_sets_side_by_side_equal_one_by_one():
    rng = np.random.default_rng(1)
    masses = random_masses(rng, 20, 8)
    counts = rng.integers(0, 30, size=(20, 5)).astype(float)
    counts[:, 2] = 0
    together = simplex_weights(masses, counts)
    assert together.shape == (8, 5)
    for k in range(5):
        np.testing.assert_allclose(together[:, k], simplex_weights(masses, counts[:, k]), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(together[:, 2], 1 / 8)


def test_bins_that_no_atom_reaches():
    masses = np.array([[0.5, 0.0], [0.5, 1.0], [0.0, 0.0]])
    counts = np.array([1.0, 3.0, 4.0])
    weights = simplex_weights(masses, counts)
    np.testing.assert_allclose(weights, [0.5, 0.5], atol=1e-2)
    assert mean_log_likelihood(masses, counts, weights) == -np.inf
    assert np.isfinite(mean_log_likelihood(masses, counts * [1, 1, 0], weights))
    np.testing.assert_allclose(simplex_weights(masses, np.array([0.0, 0.0, 1.0])), 0.5)


def test_likelihood_of_nothing_is_zero():
    assert mean_log_likelihood(np.eye(2), np.zeros(2), np.array([1.0, 0.0])) == 0


def test_likelihood_equals_plain_loops():
    rng = np.random.default_rng(2)
    masses, counts = random_masses(rng, 6, 3), rng.integers(0, 5, size=(6, 2))
    weights = rng.dirichlet(np.ones(3), size=2).T
    for k, found in enumerate(mean_log_likelihood(masses, counts, weights)):
        total = sum(c * np.log(sum(masses[i] * weights[:, k])) for i, c in enumerate(counts[:, k]))
        np.testing.assert_allclose(found, total / counts[:, k].sum())


def test_atoms_may_underflow():
    masses = np.array([[1.0, 1e-320], [1e-320, 1.0]])
    assert_on_simplex(simplex_weights(masses, np.array([5.0, 1.0])))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 8), st.integers(0, 50))
def test_any_counts_give_weights_on_the_simplex(seed, atoms, bins, rows):
    rng = np.random.default_rng(seed)
    masses = rng.dirichlet(np.full(bins, 0.1), size=atoms).T
    counts = rng.multinomial(rows, np.full(bins, 1 / bins), size=3).T
    assert_on_simplex(simplex_weights(masses, counts, max_steps=50))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("drop", [(), ((0, 2),)])
def test_update_and_objective_equal_plain_loops(shared, drop):
    rng = np.random.default_rng(3)
    problem = noisy_problem(rng, shared=shared, drop=drop)
    factors = random_factors(rng, problem.sizes, 3)
    objective, update = PairwiseEM(factors).update(problem, factors.point)
    np.testing.assert_allclose(objective, divergence_by_loops(problem, factors), rtol=1e-10)
    expected = update_by_loops(problem, factors)
    np.testing.assert_allclose(update[0], expected.weights, rtol=1e-10)
    np.testing.assert_allclose(update[1:], np.vstack(expected.coefficients), rtol=1e-10)


def test_divergence_never_rises_and_is_the_true_one():
    rng = np.random.default_rng(4)
    problem = noisy_problem(rng, shared=True)
    assert_descends(PairwiseEM(random_start(problem, 3, rng)), problem, divergence_by_loops, n_steps=30)


def test_a_known_joint_is_recovered():
    rng = np.random.default_rng(5)
    problem, truth = exact_problem(rng, bins=(8, 8, 8, 8), sizes=(4, 4, 4, 4), n_components=2)
    solution = solve(PairwiseEM(random_start(problem, 2, rng), tol=1e-9), problem, max_steps=2000)
    assert solution.converged
    assert_never_rises(solution.history)
    assert solution.history[-1] < 1e-6
    assert abs(PairwiseEM(truth).init(problem).objective) < 1e-12


def test_extrapolation_pays():
    rng = np.random.default_rng(6)
    problem = noisy_problem(rng, bins=(10, 10, 10), sizes=(6, 6, 6), n_rows=500)
    start = random_start(problem, 3, rng)
    solution = solve(PairwiseEM(start, tol=0.0), problem, max_steps=30)
    point = start.point
    for _ in range(60):  # as many plain updates
        objective, point = PairwiseEM(start).update(problem, point)
    assert solution.history[-1] < objective


def test_cells_that_no_atom_reaches_are_harmless():
    masses = (np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.eye(2))
    pairs = {(0, 1): np.array([[0.4, 0.1], [0.1, 0.2], [0.1, 0.1]])}
    problem = PairwiseProblem(masses, pairs)
    solution = solve(PairwiseEM(random_start(problem, 2, np.random.default_rng(0))), problem, max_steps=50)
    assert_valid(solution.value)
    assert_never_rises(solution.history)


def test_nothing_reached_keeps_the_start():
    masses = (np.array([[1.0], [0.0]]), np.eye(2))
    problem = PairwiseProblem(masses, {(0, 1): np.array([[0.0, 0.0], [0.5, 0.5]])})
    start = random_start(problem, 2, np.random.default_rng(0))
    solution = solve(PairwiseEM(start), problem, max_steps=5)
    assert_valid(solution.value)
    np.testing.assert_allclose(solution.value.coefficients[1], start.coefficients[1])


def test_zeros_in_the_start_stay():
    problem = noisy_problem(np.random.default_rng(7), bins=(3, 3), sizes=(2, 2))
    start = Factors([1.0, 0.0], (np.full((2, 2), 0.5), np.full((2, 2), 0.5)))
    value = solve(PairwiseEM(start), problem, max_steps=20).value
    assert_valid(value)
    assert value.weights[1] == 0


def test_margin_coefficients_fit_the_margins():
    problem, truth = exact_problem(np.random.default_rng(8), bins=(9, 9), sizes=(3, 4))
    for n, coefficients in enumerate(problem.margin_coefficients):
        fitted = problem.masses[n] @ coefficients
        np.testing.assert_allclose(fitted, problem.masses[n] @ truth.coefficients[n] @ truth.weights, atol=1e-3)


def test_random_start_is_centred_on_the_margins():
    rng = np.random.default_rng(9)
    problem = noisy_problem(rng, n_rows=2000)
    start = random_start(problem, 20_000, rng)
    assert_valid(start)
    for b, margin in zip(start.coefficients, problem.margin_coefficients, strict=True):
        centre = 0.95 * margin + 0.05 / margin.size
        # ratios of coefficients are free of the normalisation; their medians have a standard error of 0.014
        np.testing.assert_allclose(np.median(np.log(b / b[0]), axis=1), np.log(centre / centre[0]), atol=0.07)


def test_arguments_out_of_range():
    problem = noisy_problem(np.random.default_rng(10))
    with pytest.raises(InputError, match="n_components must be one or more; got 0"):
        random_start(problem, 0, np.random.default_rng(0))
    with pytest.raises(InputError, match="The factors have"):
        solve(PairwiseEM(Factors([1.0], ([[1.0]],))), problem, max_steps=1)


@pytest.mark.parametrize("solver", [PairwiseEM, AlternatingMirrorDescent])
@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 30))
def test_any_counts_give_factors_on_the_simplex(solver, seed, n_components, rows):
    rng = np.random.default_rng(seed)
    problem = noisy_problem(rng, bins=(4, 2, 1), sizes=(3, 2, 1), n_rows=rows)
    solution = solve(solver(random_start(problem, n_components, rng)), problem, max_steps=30)
    assert_valid(solution.value)
    assert_never_rises(solution.history)


@pytest.mark.parametrize("prior", [0.5, 4.0, 40.0])
def test_weights_with_a_prior_are_within_tolerance_of_the_best(prior):
    rng = np.random.default_rng(3)
    masses = rng.dirichlet(np.ones(12), size=5).T
    counts = rng.integers(0, 20, 12).astype(float)

    def log_posterior(weights):
        return (counts @ np.log(masses @ weights) + prior / 5 * np.log(weights).sum()) / counts.sum()

    best = maximum(log_posterior, 5, gtol=1e-8)
    assert log_posterior(simplex_weights(masses, counts, prior=prior, tol=1e-6)) == pytest.approx(best, abs=2e-6)
