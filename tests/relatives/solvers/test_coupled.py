"""Coupled factorisation against plain loops, known joints, and the law that objectives fall."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from tests.relatives.solvers.coupled_cases import (
    divergence_of_subsets,
    exact_coupled,
    model_tensor,
    noisy_coupled,
    squared_error_of_subsets,
)
from tests.solvers.cases import assert_never_rises, assert_valid
from tests.solvers.cases import random_factors as dirichlet_factors

from jointwise.exceptions import InputError
from jointwise.relatives.solvers.admm import SimplexADMM
from jointwise.relatives.solvers.coupled import CoupledADMM, CoupledMirrorDescent
from jointwise.relatives.solvers.coupled_problem import CoupledProblem, random_factors
from jointwise.relatives.solvers.descent import StepRule
from jointwise.solvers import Factors, solve

ORDERS = [(2,), (3,), (2, 3), (2, 4)]


@pytest.mark.parametrize("orders", ORDERS)
def test_objectives_agree_with_loops(orders):
    rng = np.random.default_rng(0)
    problem = noisy_coupled(rng, orders=orders)
    factors = dirichlet_factors(rng, problem.sizes, 3)
    assert problem.squared_error(factors) == pytest.approx(squared_error_of_subsets(problem, factors), rel=1e-12)
    assert problem.divergence(factors) == pytest.approx(divergence_of_subsets(problem, factors), rel=1e-12)


@pytest.mark.parametrize("orders", ORDERS)
def test_the_unfolded_model_is_the_model(orders):
    rng = np.random.default_rng(1)
    problem = noisy_coupled(rng, orders=orders)
    factors = dirichlet_factors(rng, problem.sizes, 3)
    exact = CoupledProblem(problem.sizes, {s: model_tensor(factors, s) for s in problem.masses})
    for n, a in enumerate(factors.coefficients):
        model = (a * factors.weights) @ exact.khatri_rao(n, factors.coefficients).T
        np.testing.assert_allclose(model, exact.unfolded[n], atol=1e-14)


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("solver", [CoupledADMM, CoupledMirrorDescent])
def test_the_tracked_objective_is_the_true_one_and_never_rises(solver, orders):
    rng = np.random.default_rng(2)
    problem = noisy_coupled(rng, orders=orders)
    if solver is CoupledADMM:  # only exact blocks never raise the objective
        admm = SimplexADMM(tol=1e-10, max_steps=20_000)
        run, twin = CoupledADMM(random_factors(problem.sizes, 3, rng), admm, admm), squared_error_of_subsets
    else:
        run, twin = CoupledMirrorDescent(random_factors(problem.sizes, 3, rng)), divergence_of_subsets
    state = run.init(problem)
    history = []
    for _ in range(8):
        factors = run.value(state)
        assert_valid(factors)
        history.append(twin(problem, factors))
        np.testing.assert_allclose(run.objective(state), history[-1], rtol=1e-9)
        state = run.step(problem, state)
    assert_never_rises(np.array(history))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 40))
def test_any_counts_give_factors_on_the_simplex(seed, rank, n_rows):
    rng = np.random.default_rng(seed)
    problem = noisy_coupled(rng, sizes=(3, 1, 2, 4), orders=(2, 3), n_rows=n_rows)
    start = random_factors(problem.sizes, rank, rng)
    for solver in (CoupledADMM(start), CoupledMirrorDescent(start)):
        solution = solve(solver, problem, max_steps=10)
        assert_valid(solution.value)
        assert solution.history[-1] <= solution.history[0] + 1e-9
    assert_never_rises(solution.history)


def test_least_squares_recovers_a_joint_from_its_exact_triples():
    rng = np.random.default_rng(3)
    problem, truth = exact_coupled(rng, sizes=(3, 3, 3, 3), rank=2)
    admm = SimplexADMM(tol=1e-8)
    start = random_factors(problem.sizes, 2, rng)
    found = solve(CoupledADMM(start, admm, admm, tol=1e-12), problem, max_steps=300).value
    whole = tuple(range(4))
    np.testing.assert_allclose(model_tensor(found, whole), model_tensor(truth, whole), atol=1e-7)


def test_divergence_comes_near_a_joint_from_its_exact_triples():
    rng = np.random.default_rng(4)
    problem, truth = exact_coupled(rng, sizes=(3, 3, 3, 3), rank=2)
    found = solve(CoupledMirrorDescent(random_factors(problem.sizes, 2, rng), tol=1e-9), problem, max_steps=400)
    assert found.history[-1] < 1e-4
    whole = tuple(range(4))
    assert np.abs(model_tensor(found.value, whole) - model_tensor(truth, whole)).sum() < 0.02


def test_the_block_of_a_factor_is_the_nonnegative_least_squares_where_sums_are_free_to_fit():
    """On exact masses the optimum of one block needs no constraint on its sums, so nnls finds it."""
    rng = np.random.default_rng(5)
    problem, truth = exact_coupled(rng, sizes=(3, 4, 3, 3), rank=2)
    basis = problem.khatri_rao(0, truth.coefficients) * truth.weights
    expected = np.array([nnls(basis, row)[0] for row in problem.unfolded[0]])
    start = Factors(truth.weights, (np.full((3, 2), 1 / 3), *truth.coefficients[1:]))
    run = CoupledADMM(start, SimplexADMM(tol=1e-10, max_steps=5000))
    found = run.value(run.step(problem, run.init(problem)))
    np.testing.assert_allclose(found.coefficients[0], expected, atol=1e-7)


def test_a_penalty_far_too_large_hardly_moves():
    """With rho = 10 the same sweeps end far above those with rho = trace(G) / F."""
    rng = np.random.default_rng(6)
    problem, _ = exact_coupled(rng, sizes=(4, 4, 4, 4), rank=3)
    start = random_factors(problem.sizes, 3, rng)
    ends = []
    for rho in (None, 10.0):
        admm = SimplexADMM(rho=rho, max_steps=100)
        ends.append(solve(CoupledADMM(start, admm, admm), problem, max_steps=30).history[-1])
    assert ends[1] > 1.5 * ends[0]


def test_steps_as_published_are_the_defaults():
    run = CoupledMirrorDescent(Factors([1.0], ([[1.0]], [[1.0]])))
    assert run.factor_rule == StepRule(0.5, 0.5, 1e-3, 1e-5, 1000, 1e-4)
    assert run.weight_rule == StepRule(0.2, 0.5, 1e-3, 1e-5, 100, 1e-4)
    run = CoupledADMM(Factors([1.0], ([[1.0]], [[1.0]])))
    assert (run.factor_admm, run.weight_admm) == (SimplexADMM(None, 1e-5, 1000), SimplexADMM(None, 1e-5, 200))


def test_starts_are_on_the_simplex_with_equal_weights():
    factors = random_factors((4, 2), 3, np.random.default_rng(0))
    assert_valid(factors)
    np.testing.assert_array_equal(factors.weights, np.full(3, 1 / 3))


@pytest.mark.parametrize(
    ("masses", "sentence"),
    [
        (
            {(1, 0): np.eye(2) / 2},
            r"`masses` must have keys of two or more increasing variables from 0 to 1; got \(1, 0\)",
        ),
        ({(0,): np.ones(2) / 2}, r"got \(0,\)"),
        ({(0, 2): np.eye(2) / 2}, "from 0 to 1"),
        ({(0, 1): np.eye(3) / 3}, r"`masses\[\(0, 1\)\]` must have shape \(2, 2\)"),
        ({(0, 1): np.eye(2)}, r"`masses\[\(0, 1\)\]` must sum to one"),
        ({}, r"Variables \[0, 1\] are in no subset"),
    ],
)
def test_malformed_problems_are_refused(masses, sentence):
    with pytest.raises(InputError, match=sentence):
        CoupledProblem((2, 2), masses)


def test_factors_of_another_problem_are_refused():
    problem = CoupledProblem((2, 2), {(0, 1): np.eye(2) / 2})
    for solver in (CoupledADMM, CoupledMirrorDescent):
        with pytest.raises(InputError, match=r"must have the problem's \(2, 2\) states; got \(3, 2\)"):
            solve(solver(random_factors((3, 2), 2, np.random.default_rng(0))), problem, max_steps=1)


def test_every_subset_is_owned_once():
    problem = noisy_coupled(np.random.default_rng(0), orders=(2, 3))
    owned = sum(z[:, c].size for z, c in zip(problem.unfolded, problem.owned, strict=True))
    assert owned == sum(z.size for z in problem.masses.values())
    assert set(problem.masses) == {s for order in (2, 3) for s in combinations(range(4), order)}
