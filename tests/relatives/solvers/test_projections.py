"""The projection solvers against plain loops, and the law that objectives fall."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relatives.projection_cases import dirichlet_factors, joint_of

from jointwise.relatives.solvers import ProjectionEM, ProjectionProblem, ProjectionScoring, cycle, project
from jointwise.relatives.solvers.projection_scoring import _derivative
from jointwise.relatives.solvers.projections import model_masses
from jointwise.solvers import Factors, solve

# ---- plain twins -------------------------------------------------------------------------------------------


def plain_projection(joint, vector, length):
    masses = np.zeros(length)
    for cell in product(*map(range, joint.shape)):
        masses[int(np.dot(vector, cell)) % length] += joint[cell]
    return masses


def plain_objective(problem, factors):
    model = [plain_projection(joint_of(factors), vector, problem.length) for vector in problem.vectors]
    total = 0.0
    for share, h, p in zip(problem.scaled_shares, problem.masses, model, strict=True):
        total += share * sum(a * np.log(a / b) for a, b in zip(h, p, strict=True) if a > 0)
    return total


def plain_update(problem, factors):
    """Return one EM update, by enumerating every latent value of every projection."""
    new_weights = np.zeros_like(factors.weights)
    new_factors = [np.zeros_like(b) for b in factors.coefficients]
    for share, h, vector in zip(problem.scaled_shares, problem.masses, problem.vectors, strict=True):
        used = np.flatnonzero(vector)
        complete = {}
        for cell in product(*(range(problem.sizes[n]) for n in used)):
            y = int(np.dot(vector[used], cell)) % problem.length
            for r, weight in enumerate(factors.weights):
                mass = weight * np.prod([factors.coefficients[n][i, r] for n, i in zip(used, cell, strict=True)])
                complete[cell, r] = (y, mass)
        model = np.zeros(problem.length)
        for y, mass in complete.values():
            model[y] += mass
        for (cell, r), (y, mass) in complete.items():
            expected = share * h[y] * mass / model[y] if h[y] else 0.0
            new_weights[r] += expected
            for n, i in zip(used, cell, strict=True):
                new_factors[n][i, r] += expected
    return Factors(new_weights / new_weights.sum(), tuple(b / b.sum(axis=0) for b in new_factors))


@st.composite
def problems(draw):
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=4)))
    rank = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_projections = draw(st.integers(1, 4))
    vectors = np.array([v for v in rng.integers(-4, 5, (n_projections, len(sizes))) if v.any()] or [[1] * len(sizes)])
    vectors[0] = np.where(vectors[0] == 0, 1, vectors[0])  # each variable is in at least one projection
    joint = joint_of(dirichlet_factors(sizes, 2, draw(st.integers(0, 10**6))))
    shares = rng.uniform(0.5, 2.0, len(vectors))
    problem = ProjectionProblem(sizes, vectors, project(joint, vectors), shares)
    return problem, dirichlet_factors(sizes, rank, draw(st.integers(0, 10**6)))


@settings(max_examples=30)
@given(problems())
def test_update_is_that_of_plain_enumeration(case):
    problem, factors = case
    objective, update = ProjectionEM(factors).update(problem, factors.point)
    assert objective == pytest.approx(plain_objective(problem, factors), abs=1e-12)
    assert update == pytest.approx(plain_update(problem, factors).point, abs=1e-12)


@settings(max_examples=20)
@given(problems())
def test_objective_never_rises(case):
    problem, factors = case
    history = solve(ProjectionEM(factors, tol=0.0), problem, max_steps=30).history
    assert (history >= 0).all()
    assert (np.diff(history) <= 1e-12).all()


@settings(max_examples=20)
@given(problems())
def test_scoring_never_rises_and_stays_on_the_simplex(case):
    problem, factors = case
    solution = solve(ProjectionScoring(factors), problem, max_steps=10)
    assert solution.history[0] == pytest.approx(plain_objective(problem, factors), abs=1e-12)
    assert (np.diff(solution.history) <= 0).all()
    for block in (solution.value.weights, *solution.value.coefficients):
        assert block.sum(axis=0) == pytest.approx(1)
        assert (block >= 0).all()


@settings(max_examples=20)
@given(problems())
def test_derivative_is_that_of_differences(case):
    problem, factors = case
    point = factors.point
    derivative = _derivative(problem, point)
    for row, component in product(range(point.shape[0]), range(point.shape[1])):
        step = np.zeros_like(point)
        step[row, component] = 1e-6
        difference = model_masses(problem, point + step) - model_masses(problem, point - step)
        expected = difference / 2e-6
        if row:  # a variable with coefficient zero is summed out, and its sums stay one
            n = next(n for n, rows in enumerate(problem.slices) if rows.start < row <= rows.stop)
            expected[problem.vectors[:, n] == 0] = 0.0
        assert derivative[:, :, row, component] == pytest.approx(expected, abs=1e-7)


@settings(max_examples=30)
@given(problems())
def test_projections_of_a_joint_are_those_of_plain_loops(case):
    problem, factors = case
    joint = joint_of(factors)
    expected = [plain_projection(joint, vector, cycle(joint.shape, problem.vectors)) for vector in problem.vectors]
    assert project(joint, problem.vectors) == pytest.approx(np.array(expected))
    reachable = np.array([plain_projection(np.ones(problem.sizes), v, problem.length) for v in problem.vectors]) > 0
    assert np.array_equal(problem.attainable, reachable)
    assert problem.n_equations == reachable.sum() - len(reachable)


def test_the_truth_is_a_fixed_point():
    law = dirichlet_factors((3, 4, 2), 2, seed=0)
    vectors = np.array([[1, 2, 3], [2, -1, 1]])
    problem = ProjectionProblem((3, 4, 2), vectors, project(joint_of(law), vectors))
    objective, update = ProjectionEM(law).update(problem, law.point)
    assert objective == pytest.approx(0, abs=1e-25)
    assert update == pytest.approx(law.point, abs=1e-13)


def test_coefficients_of_a_number_system_hold_the_whole_triple():
    joint = np.random.default_rng(0).dirichlet(np.ones(27)).reshape(3, 3, 3)
    assert np.sort(project(joint, np.array([[1, 3, 9]]))[0]) == pytest.approx(np.sort(joint.ravel()))
