"""Maps of all columns together: objective against slow twins, slopes, and curves that become lines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import check_grad
from tests.solvers.cases import slow_map

from jointwise.solvers import straightening
from jointwise.solvers.straightening import N_KNOTS, StraighteningProblem, straightened


def problem_of(columns, weights=None, bent=None):
    """The problem of columns of numbers, each value a coordinate."""
    pairs = [np.unique(column, return_inverse=True) for column in columns]
    n, d = len(columns[0]), len(columns)
    return StraighteningProblem(
        np.column_stack([codes for _, codes in pairs]),
        np.ones(n) if weights is None else weights,
        [values for values, _ in pairs],
        np.ones(d, dtype=bool) if bent is None else bent,
    )


def random_problem(rng):
    n, d = int(rng.integers(5, 40)), int(rng.integers(2, 5))
    columns = rng.normal(size=(d, n)) @ np.diag(np.ones(n)) + 0.5 * rng.normal(size=n)
    columns[0] = np.round(columns[0], 1)  # values that repeat
    return problem_of(columns, rng.uniform(0.5, 2.0, n), rng.random(d) < 0.8)


def slow_objective(problem, z):
    """J by loops over rows and columns, from the formula of the module."""
    n, d = problem.codes.shape
    knots, total = problem.knots, problem.weights.sum()
    w, log_slopes = np.empty((n, d)), np.empty((n, d))
    for i in range(n):
        for c in range(d):
            u = problem.coordinates[c][problem.codes[i, c]]
            w[i, c], slope = slow_map(u, knots[c], np.exp(z[c]))
            log_slopes[i, c] = np.log(slope)
    covariance = np.cov(w.T, aweights=problem.weights, bias=True)
    diagonal = np.diag(np.diag(covariance))
    drawn = problem.share * covariance + (1 - problem.share) * diagonal + straightening.TRACE * diagonal
    cost = 0.0
    for c in range(d):
        step = knots[c, 1] - knots[c, 0]
        cost += step * float((np.diff(z[c], 2) ** 2).sum()) / step**4  # the integral of z''^2
    likelihood = (problem.weights[:, None] * log_slopes).sum() / total
    return 0.5 * np.linalg.slogdet(drawn)[1] - likelihood + straightening.BEND_COST / total * cost


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_objective_is_the_formula(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    z = 0.3 * rng.normal(size=(problem.codes.shape[1], N_KNOTS))
    assert problem.objective(z)[0] == pytest.approx(slow_objective(problem, z), rel=1e-7, abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_gradient_is_that_of_the_objective(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    free, shape = problem.bent, (len(problem.bent), N_KNOTS)

    def at(y):
        z = np.zeros(shape)
        z[free] = y.reshape(-1, N_KNOTS)
        return problem.objective(z)

    y = 0.2 * rng.normal(size=int(free.sum()) * N_KNOTS)
    size = max(np.linalg.norm(at(y)[1]), 1.0)
    assert check_grad(lambda y: at(y)[0], lambda y: at(y)[1][free].ravel(), y, epsilon=1e-6) < 1e-4 * size


def test_a_straight_z_costs_nothing():
    problem = random_problem(np.random.default_rng(0))
    powers = np.array([0.5, -1.0, 2.0, 0.0])[: len(problem.bent), None] * problem.knots
    assert_allclose(np.einsum("cbk,ck->cb", problem.bends, powers), 0.0, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_objective_does_not_rise_and_columns_that_may_not_bend_stay(seed):
    problem = random_problem(np.random.default_rng(seed))
    slopes = straightened(problem)
    assert (slopes > 0).all()
    assert_allclose(slopes[~problem.bent], 1.0)
    before = problem.objective(np.zeros_like(slopes))[0]
    assert problem.objective(np.log(slopes))[0] <= before + 1e-9


def test_a_product_of_columns_becomes_a_plane():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 500))
    columns = [a, b, np.exp(0.3 * (a + b))]
    problem = problem_of([(column - column.mean()) / column.std() for column in columns])

    def left(slopes):
        """Share of the last column's variance that a plane through the others leaves."""
        mapped = problem.maps.values(slopes)[0][problem.cells]
        return 1 / np.linalg.inv(np.corrcoef(mapped.T))[-1, -1]

    assert left(np.ones((3, N_KNOTS))) > 0.05
    assert left(straightened(problem)) < 1e-3
