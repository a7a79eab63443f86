"""Joints from projections: the solver against plain loops, laws of EM, recovery of known joints, wrong use."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from jointwise.exceptions import InputError, RankError
from jointwise.relatives import ProjectionPMF
from jointwise.relatives.projections import random_vectors
from jointwise.relatives.solvers.projection_scoring import ProjectionScoring, _derivative
from jointwise.relatives.solvers.projections import ProjectionEM, ProjectionProblem, cycle, model_masses, project
from jointwise.solvers import Factors, solve

# ---- plain twins -------------------------------------------------------------------------------------------


def random_law(sizes, rank, seed, concentration=1.0):
    rng = np.random.default_rng(seed)
    return Factors(
        rng.dirichlet(np.full(rank, 5.0)),
        tuple(rng.dirichlet(np.full(size, concentration), rank).T for size in sizes),
    )


def joint_of(factors):
    """All cells of a joint, one by one."""
    sizes = [len(b) for b in factors.coefficients]
    joint = np.zeros(sizes)
    for cell in product(*map(range, sizes)):
        terms = [b[i] for b, i in zip(factors.coefficients, cell, strict=True)]
        joint[cell] = np.sum(factors.weights * np.prod(terms, axis=0))
    return joint


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
    """One EM update by enumerating every latent value of every projection."""
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


def stacked(factors):
    return factors.point


@st.composite
def problems(draw):
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=4)))
    rank = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_projections = draw(st.integers(1, 4))
    vectors = np.array([v for v in rng.integers(-4, 5, (n_projections, len(sizes))) if v.any()] or [[1] * len(sizes)])
    vectors[0] = np.where(vectors[0] == 0, 1, vectors[0])  # each variable is in one projection at least
    joint = joint_of(random_law(sizes, 2, draw(st.integers(0, 10**6))))
    shares = rng.uniform(0.5, 2.0, len(vectors))
    problem = ProjectionProblem(sizes, vectors, project(joint, vectors), shares)
    return problem, random_law(sizes, rank, draw(st.integers(0, 10**6)))


@settings(max_examples=30)
@given(problems())
def test_update_is_that_of_plain_enumeration(case):
    problem, factors = case
    objective, update = ProjectionEM(factors).update(problem, stacked(factors))
    assert objective == pytest.approx(plain_objective(problem, factors), abs=1e-12)
    assert update == pytest.approx(stacked(plain_update(problem, factors)), abs=1e-12)


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
    point = stacked(factors)
    derivative = _derivative(problem, point)
    for row, component in product(range(point.shape[0]), range(point.shape[1])):
        step = np.zeros_like(point)
        step[row, component] = 1e-6
        difference = model_masses(problem, point + step) - model_masses(problem, point - step)
        expected = difference / 2e-6
        if row:  # a variable without a coefficient plays no part: it is summed out, and sums are kept
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
    law = random_law((3, 4, 2), 2, seed=0)
    vectors = np.array([[1, 2, 3], [2, -1, 1]])
    problem = ProjectionProblem((3, 4, 2), vectors, project(joint_of(law), vectors))
    objective, update = ProjectionEM(law).update(problem, stacked(law))
    assert objective == pytest.approx(0, abs=1e-25)
    assert update == pytest.approx(stacked(law), abs=1e-13)


def test_coefficients_of_a_number_system_hold_the_whole_triple():
    joint = np.random.default_rng(0).dirichlet(np.ones(27)).reshape(3, 3, 3)
    assert np.sort(project(joint, np.array([[1, 3, 9]]))[0]) == pytest.approx(np.sort(joint.ravel()))


# ---- recovery ----------------------------------------------------------------------------------------------


def distance(model, joint):
    """Total variation between the fitted joint and a known one."""
    cells = np.indices(joint.shape).reshape(joint.ndim, -1).T
    fitted = np.exp(model.density_.mixture.logpdf(cells.astype(float)))
    return 0.5 * np.abs(fitted - joint.ravel()).sum()


def draws(joint, n, seed):
    cells = np.random.default_rng(seed).choice(joint.size, n, p=joint.ravel())
    return np.column_stack(np.unravel_index(cells, joint.shape))


def test_small_joint_is_recovered_exactly_from_exact_projections():
    joint = joint_of(random_law((3, 3, 3, 3), 2, seed=3, concentration=2.0))
    vectors = random_vectors(4, 8, 3, 6, np.random.default_rng(0))
    model = ProjectionPMF(2, n_init=2, random_state=0).fit_projections(vectors, project(joint, vectors), joint.shape)
    assert distance(model, joint) < 1e-10
    assert model.objective_ < 1e-20


def test_error_falls_with_rows():
    joint = joint_of(random_law((5,) * 6, 5, seed=1, concentration=0.5))
    errors = [
        distance(ProjectionPMF(5, n_init=3, random_state=0).fit(draws(joint, n, seed=0)), joint)
        for n in (1_000, 10_000, 100_000)
    ]
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 0.5 * errors[1]
    assert errors[2] < 0.03


@pytest.mark.parametrize("zeros", [False, True], ids=["generic", "zeros"])
def test_rank_five_joint_of_six_variables_is_recovered_from_exact_projections(zeros):
    law = random_law((5,) * 6, 5, seed=2)
    if zeros:  # where EM alone would creep
        factors = [np.where(b < 0.05, 0.0, b) for b in law.coefficients]
        law = Factors(law.weights, tuple(b / b.sum(axis=0) for b in factors))
    joint = joint_of(law)
    vectors = random_vectors(6, 20, 3, 10, np.random.default_rng(0))
    model = ProjectionPMF(5, n_init=2, random_state=0).fit_projections(vectors, project(joint, vectors), joint.shape)
    assert distance(model, joint) < 1e-10


def test_gaps_are_left_out_of_their_projections_only():
    joint = joint_of(random_law((3, 2, 3, 2), 2, seed=4))
    X = draws(joint, 20_000, seed=0).astype(float)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    assert distance(ProjectionPMF(2, random_state=0).fit(X), joint) < 0.05


def test_text_and_integers_with_holes_have_states_too():
    rng = np.random.default_rng(0)
    table = {
        "job": rng.choice(["cook", "nurse"], 300),
        "k": rng.choice([-5, 70], 300),
        "flag": rng.random(300) < 0.3,
    }
    model = ProjectionPMF(1, random_state=0).fit(table)
    assert model.density_.probability({"k": 70}) == pytest.approx(np.mean(table["k"] == 70), abs=0.01)
    assert set(model.sample(50, random_state=0)["k"]) == {-5, 70}
    assert model.score_samples({"job": ["cook"], "k": [3], "flag": [True]})[0] == -np.inf


def test_same_seed_same_fit():
    X = draws(joint_of(random_law((3, 3, 3), 2, seed=0)), 500, seed=0)
    a, b = (ProjectionPMF(2, random_state=1).fit(X) for _ in range(2))
    assert np.array_equal(a.vectors_, b.vectors_)
    assert np.array_equal(a.score_samples(X), b.score_samples(X))


@given(st.integers(3, 7), st.integers(1, 60), st.integers(1, 3), st.integers(1, 9), st.integers(0, 100))
@settings(max_examples=30)
def test_random_vectors_are_sparse_bounded_and_take_turns(n_variables, n_projections, n_terms, largest, seed):
    vectors = random_vectors(n_variables, n_projections, n_terms, largest, np.random.default_rng(seed))
    assert vectors.shape == (n_projections, n_variables)
    assert ((vectors != 0).sum(axis=1) == n_terms).all()
    assert np.abs(vectors).max() <= largest
    _, turns = np.unique(vectors != 0, axis=0, return_counts=True)
    assert turns.max() - turns.min() <= 1


def test_subsets_of_many_variables_are_drawn_one_by_one():
    vectors = random_vectors(200, 50, 3, 4, np.random.default_rng(0))
    assert ((vectors != 0).sum(axis=1) == 3).all()
    assert len(np.unique(vectors != 0, axis=0)) == 50


# ---- wrong use ---------------------------------------------------------------------------------------------


def test_continuous_columns_are_refused():
    with pytest.raises(InputError, match=r"needs categorical or integer columns; column 'x' is continuous\. Bin it"):
        ProjectionPMF().fit({"x": [0.5, 1.5], "a": [0, 1], "b": [1, 0]})


def test_fewer_columns_than_terms_are_refused():
    with pytest.raises(InputError, match=r"only 2 feature.*Lower n_terms"):
        ProjectionPMF().fit({"a": [0, 1], "b": [1, 0]})


def test_rank_beyond_the_equations_is_refused():
    X = np.random.default_rng(0).integers(0, 2, (50, 3))
    with pytest.raises(RankError, match=r"at most \d+ components here: the projections give \d+ equations"):
        ProjectionPMF(40).fit(X)


def test_columns_in_no_projection_are_named():
    X = np.random.default_rng(0).integers(0, 2, (50, 6))
    with pytest.raises(InputError, match=r"No projection holds columns .*raise n_projections"):
        ProjectionPMF(1, n_projections=1).fit(X)


def test_projection_without_a_row_is_told():
    nan = np.nan
    X = np.array([[0, 1, nan], [1, nan, 0], [nan, 0, 1], [1, 1, nan]])
    with pytest.raises(InputError, match="No row holds all columns of one of the projections"):
        ProjectionPMF(1).fit(X)


def test_projections_too_large_to_hold_are_refused():
    X = np.random.default_rng(0).integers(0, 1000, (3000, 4))
    with pytest.raises(InputError, match="too much to hold"):
        ProjectionPMF(50, n_projections=100).fit(X)


def test_start_that_stops_early_warns():
    X = draws(joint_of(random_law((3, 3, 3), 2, seed=0)), 500, seed=0)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        ProjectionPMF(2, max_iter=1, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("vectors", "masses", "message"),
    [
        ([[1, 2, 3]], [[1.0]], "must have a row for each projection"),
        ([[0, 0]], [[1.0, 0.0]], "coefficient that is not zero"),
        ([[1, 1]], [[0.5, 0.5]], "3 columns or more"),
        ([[1, 1]], [[0.5, 0.2, 0.2]], "sum to one"),
        ([[1, 1]], [[1.5, -0.5, 0.0]], "not be negative"),
        ([[2, 2]], [[0.5, 0.5, 0.0, 0.0, 0.0]], "cannot take"),
    ],
)
def test_wrong_projections_are_told(vectors, masses, message):
    with pytest.raises(InputError, match=message):
        ProjectionPMF(1).fit_projections(vectors, masses, (2, 2))


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_projections": 0},
        {"n_terms": 0},
        {"max_coefficient": "large"},
        {"n_init": 0},
        {"max_iter": 0},
        {"tol": -1.0},
    ],
)
def test_wrong_parameters_are_told(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        ProjectionPMF(**parameters).fit(np.zeros((3, 3), dtype=int))
