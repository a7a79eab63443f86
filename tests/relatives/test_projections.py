"""ProjectionPMF: recovery of known joints, gaps, states, random vectors, wrong use."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from tests.relatives.projection_cases import dirichlet_factors, joint_of

from jointwise.exceptions import InputError, RankError
from jointwise.relatives import ProjectionPMF
from jointwise.relatives.projections import random_vectors
from jointwise.relatives.solvers import project
from jointwise.solvers import Factors

# ---- recovery ----------------------------------------------------------------------------------------------


def distance(model, joint):
    """Return the total variation between the fitted joint and a known one."""
    cells = np.indices(joint.shape).reshape(joint.ndim, -1).T
    fitted = np.exp(model.density_.mixture.logpdf(cells.astype(float)))
    return 0.5 * np.abs(fitted - joint.ravel()).sum()


def draws(joint, n, seed):
    cells = np.random.default_rng(seed).choice(joint.size, n, p=joint.ravel())
    return np.column_stack(np.unravel_index(cells, joint.shape))


def test_small_joint_is_recovered_exactly_from_exact_projections():
    joint = joint_of(dirichlet_factors((3, 3, 3, 3), 2, seed=3, concentration=2.0))
    vectors = random_vectors(4, 8, 3, 6, np.random.default_rng(0))
    model = ProjectionPMF(2, n_init=2, random_state=0).fit_projections(vectors, project(joint, vectors), joint.shape)
    assert distance(model, joint) < 1e-10
    assert model.objective_ < 1e-20


def test_error_falls_with_rows():
    joint = joint_of(dirichlet_factors((5,) * 6, 5, seed=1, concentration=0.5))
    errors = [
        distance(ProjectionPMF(5, n_init=3, random_state=0).fit(draws(joint, n, seed=0)), joint)
        for n in (1_000, 10_000, 100_000)
    ]
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 0.5 * errors[1]
    assert errors[2] < 0.03


@pytest.mark.parametrize("zeros", [False, True], ids=["generic", "zeros"])
def test_joint_of_rank_five_is_recovered_from_exact_projections(zeros):
    law = dirichlet_factors((5,) * 6, 5, seed=2)
    if zeros:  # EM alone would be slow here
        factors = [np.where(b < 0.05, 0.0, b) for b in law.coefficients]
        law = Factors(law.weights, tuple(b / b.sum(axis=0) for b in factors))
    joint = joint_of(law)
    vectors = random_vectors(6, 20, 3, 10, np.random.default_rng(0))
    model = ProjectionPMF(5, n_init=2, random_state=0).fit_projections(vectors, project(joint, vectors), joint.shape)
    assert distance(model, joint) < 1e-10


def test_gaps_are_left_out_of_their_projections_only():
    joint = joint_of(dirichlet_factors((3, 2, 3, 2), 2, seed=4))
    X = draws(joint, 20_000, seed=0).astype(float)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    assert distance(ProjectionPMF(2, random_state=0).fit(X), joint) < 0.05


def test_text_and_integers_with_holes_have_states_too():
    rng = np.random.default_rng(0)
    table = {"job": rng.choice(["cook", "nurse"], 300), "k": rng.choice([-5, 70], 300), "flag": rng.random(300) < 0.3}
    model = ProjectionPMF(1, random_state=0).fit(table)
    assert model.density_.probability({"k": 70}) == pytest.approx(np.mean(table["k"] == 70), abs=0.01)
    assert set(model.sample(50, random_state=0)["k"]) == {-5, 70}
    assert model.score_samples({"job": ["cook"], "k": [3], "flag": [True]})[0] == -np.inf


def test_same_seed_same_fit():
    X = draws(joint_of(dirichlet_factors((3, 3, 3), 2, seed=0)), 500, seed=0)
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


def test_more_components_than_equations_are_refused():
    X = np.random.default_rng(0).integers(0, 2, (50, 3))
    with pytest.raises(RankError, match=r"at most \d+ components here: the projections give \d+ equations"):
        ProjectionPMF(40).fit(X)


def test_columns_in_no_projection_are_named():
    X = np.random.default_rng(0).integers(0, 2, (50, 6))
    with pytest.raises(InputError, match=r"No projection holds columns .*raise n_projections"):
        ProjectionPMF(1, n_projections=1).fit(X)


def test_a_projection_without_rows_is_refused():
    nan = np.nan
    X = np.array([[0, 1, nan], [1, nan, 0], [nan, 0, 1], [1, 1, nan]])
    with pytest.raises(InputError, match="For one of the projections, no row has values in all"):
        ProjectionPMF(1).fit(X)


def test_projections_too_large_for_memory_are_refused():
    X = np.random.default_rng(0).integers(0, 1000, (3000, 4))
    with pytest.raises(InputError, match="too much memory"):
        ProjectionPMF(50, n_projections=100).fit(X)


def test_start_that_stops_early_warns():
    X = draws(joint_of(dirichlet_factors((3, 3, 3), 2, seed=0)), 500, seed=0)
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
def test_wrong_projections_are_refused(vectors, masses, message):
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
def test_wrong_parameters_are_refused(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        ProjectionPMF(**parameters).fit(np.zeros((3, 3), dtype=int))
