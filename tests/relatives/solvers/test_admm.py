"""Least squares on the simplex against SLSQP, and the optimality conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.solvers.cases import assert_on_simplex

from jointwise.exceptions import InputError
from jointwise.relatives.solvers.admm import PrimalDual, SimplexADMM


def random_quadratic(seed, size, rank):
    rng = np.random.default_rng(seed)
    basis, data = rng.normal(size=(rank + 3, rank)), rng.normal(size=(size, rank + 3))
    return basis.T @ basis, data @ basis


def loss(gram, target, block):
    return 0.5 * np.sum((block @ gram) * block) - np.sum(target * block)


def cold(shape):
    return PrimalDual(np.full(shape, 1.0 / shape[0]), np.zeros(shape))


def solved_by_slsqp(gram, target):
    size, rank = target.shape
    found = minimize(
        lambda a: loss(gram, target, a.reshape(size, rank)),
        np.full(size * rank, 1.0 / size),
        jac=lambda a: (a.reshape(size, rank) @ gram - target).ravel(),
        method="SLSQP",
        bounds=[(0, None)] * (size * rank),
        constraints={"type": "eq", "fun": lambda a: a.reshape(size, rank).sum(axis=0) - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x.reshape(size, rank)


@pytest.mark.parametrize("rho", [None, 0.3, 20.0])
def test_columns_agree_with_slsqp(rho):
    gram, target = random_quadratic(0, size=4, rank=3)
    found = SimplexADMM(rho=rho, tol=1e-10, max_steps=20_000).solve(gram, target, cold((4, 3))).block
    expected = solved_by_slsqp(gram, target)
    assert_on_simplex(found)
    assert loss(gram, target, found) <= loss(gram, target, expected) + 1e-7
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_row_on_the_simplex_agrees_with_slsqp():
    gram, target = random_quadratic(1, size=1, rank=5)
    start = PrimalDual(np.full((1, 5), 0.2), np.zeros((1, 5)))
    found = SimplexADMM(tol=1e-10, max_steps=20_000).solve(gram, target, start, axis=1).block[0]
    expected = minimize(
        lambda a: loss(gram, target, a[None]),
        np.full(5, 0.2),
        method="SLSQP",
        bounds=[(0, None)] * 5,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        options={"ftol": 1e-14},
    ).x
    np.testing.assert_allclose(found, expected, atol=1e-4)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5))
def test_the_gradient_is_constant_where_there_is_mass(seed, size, rank):
    gram, target = random_quadratic(seed, size, rank)
    found = SimplexADMM(tol=1e-9, max_steps=50_000).solve(gram, target, cold((size, rank))).block
    assert_on_simplex(found)
    gradient = found @ gram - target
    least = gradient.min(axis=0)
    # first-order optimality: mass only where the gradient is least
    assert np.max(found * (gradient - least)) < 1e-4


def test_a_warm_start_at_the_optimum_stays():
    gram, target = random_quadratic(3, size=5, rank=3)
    admm = SimplexADMM(tol=1e-9, max_steps=50_000)
    end = admm.solve(gram, target, cold((5, 3)))
    again = SimplexADMM(tol=1e-9, max_steps=1).solve(gram, target, end)
    np.testing.assert_allclose(again.block, end.block, atol=1e-8)


def test_nothing_to_fit_is_allowed():
    found = SimplexADMM().solve(np.zeros((2, 2)), np.zeros((3, 2)), cold((3, 2)))
    assert_on_simplex(found.block)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rho": 0.0}, "`rho` must be a positive number or None; got 0.0"),
        ({"tol": -1.0}, "ADMM needs max_steps of at least 1 and tol of at least 0"),
        ({"max_steps": 0}, "ADMM needs max_steps of at least 1 and tol of at least 0"),
    ],
)
def test_arguments_out_of_range(options, sentence):
    with pytest.raises(InputError, match=sentence):
        SimplexADMM(**options)
