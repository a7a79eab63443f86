"""Projection on the simplex against brute force, exponentiated gradient against its laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.solvers.cases import assert_on_simplex

from jointwise.exceptions import InputError
from jointwise.relatives.solvers.descent import StepRule, descend, project_on_simplex
from jointwise.solvers.simplex import exponentiated_step


def projected_by_bisection(point):
    """Find the shift theta with sum max(p - theta, 0) = 1 by bisection."""
    low, high = point.min() - 1.0, point.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(point - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(point - low, 0.0)


points = st.lists(st.floats(-5, 5), min_size=1, max_size=7)


@settings(deadline=None, max_examples=60)
@given(st.lists(points, min_size=1, max_size=4))
def test_projection_agrees_with_bisection(lists):
    size = min(map(len, lists))
    columns = np.array([p[:size] for p in lists]).T
    found = project_on_simplex(columns)
    assert_on_simplex(found)
    for r in range(columns.shape[1]):
        np.testing.assert_allclose(found[:, r], projected_by_bisection(columns[:, r]), atol=1e-12)
    np.testing.assert_array_equal(project_on_simplex(columns.T, axis=1), found.T)


@settings(deadline=None, max_examples=60)
@given(points, st.integers(0, 1000))
def test_no_point_of_the_simplex_is_nearer(point, seed):
    point = np.array(point)
    nearest = project_on_simplex(point[:, None])[:, 0]
    others = np.random.default_rng(seed).dirichlet(np.ones(point.size), size=50)
    assert (np.linalg.norm(others - point, axis=1) >= np.linalg.norm(nearest - point) - 1e-12).all()
    np.testing.assert_allclose(project_on_simplex(nearest[:, None])[:, 0], nearest, atol=1e-12)


def test_a_point_whose_positive_part_sums_to_less_than_one():
    np.testing.assert_allclose(project_on_simplex(np.array([[0.3], [0.2], [-2.0]]))[:, 0], [0.55, 0.45, 0.0])


def test_exponentiated_step_is_the_formula():
    rng = np.random.default_rng(0)
    columns, change = rng.dirichlet(np.ones(4), size=3).T, rng.normal(size=(4, 3))
    expected = columns * np.exp(-change)
    np.testing.assert_allclose(exponentiated_step(np.log(columns), change), expected / expected.sum(axis=0), rtol=1e-12)


class Quadratic:
    """Half the squared distance to a target."""

    def __init__(self, target):
        self.target = target

    def value(self, columns):
        return 0.5 * float(np.sum((columns - self.target) ** 2)), columns

    def gradient(self, model):
        return model - self.target


def test_descent_reaches_the_projection():
    rng = np.random.default_rng(1)
    target = rng.normal(0.2, 0.2, size=(5, 3))
    start = np.full((5, 3), 0.2)
    columns, _ = descend(Quadratic(target), start, StepRule(rate=8.0, tol=1e-10, max_steps=5000))
    np.testing.assert_allclose(columns, project_on_simplex(target), atol=1e-5)


def test_every_step_of_a_descent_lowers_the_objective():
    target = np.random.default_rng(2).normal(size=(4, 2))
    values = [
        descend(Quadratic(target), np.full((4, 2), 0.25), StepRule(rate=50.0, tol=0.0, max_steps=n))[1]
        for n in range(1, 12)
    ]
    assert (np.diff(values) <= 0).all()


def test_a_descent_that_finds_no_step_stays():
    target = np.array([[0.7], [0.3]])
    columns, value = descend(Quadratic(target), target, StepRule())
    assert value == 0.0
    np.testing.assert_array_equal(columns, target)


def test_zeros_stay_zero():
    start = np.array([[0.0], [0.4], [0.6]])
    columns, _ = descend(Quadratic(np.array([[1.0], [0.0], [0.0]])), start, StepRule())
    assert columns[0, 0] == 0.0
    assert_on_simplex(columns)


@pytest.mark.parametrize(
    "options", [{"rate": 0.0}, {"shrink": 1.0}, {"decrease": 1.0}, {"least_rate": 1.0}, {"max_steps": 0}, {"tol": -1.0}]
)
def test_a_rule_out_of_range_is_refused(options):
    with pytest.raises(InputError, match="A step rule needs"):
        StepRule(**options)


def test_projection_agrees_with_slsqp():
    point = np.array([0.9, -0.1, 0.4, 0.35])
    found = minimize(
        lambda a: np.sum((a - point) ** 2),
        np.full(4, 0.25),
        method="SLSQP",
        bounds=[(0, None)] * 4,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(project_on_simplex(point[:, None])[:, 0], found.x, atol=1e-6)
