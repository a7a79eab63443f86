import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from tests.solvers.cases import assert_valid, exact_problem, noisy_problem

from jointwise.exceptions import InputError, RankError
from jointwise.solvers import Factors, MirrorDescentPairs, PairwiseProblem, solve, split_factors, split_starts
from jointwise.solvers.pairs_successive_projection import (
    check_n_components,
    most_split_components,
    nonnegative_least_squares,
    successive_projection,
)


def separable_joint(rng, n_components=3):
    """Return a joint whose last variable is the component, so that its pair coefficients are separable."""
    weights = rng.dirichlet(np.full(n_components, 5.0))
    coefficients = (
        rng.dirichlet(np.ones(4), size=n_components).T,
        rng.dirichlet(np.ones(5), size=n_components).T,
        np.eye(n_components),
    )
    pairs = {(j, k): (coefficients[j] * weights) @ coefficients[k].T for j in range(3) for k in range(j + 1, 3)}
    masses = (np.eye(4), np.eye(5), np.eye(n_components))
    return PairwiseProblem(masses, pairs), pairs, Factors(weights, coefficients)


def test_columns_of_a_separable_matrix_are_found():
    rng = np.random.default_rng(0)
    corners = rng.dirichlet(np.ones(8), size=4).T
    inside = corners @ rng.dirichlet(np.full(4, 2.0), size=20).T
    X = np.hstack([inside, corners]) * rng.uniform(0.1, 2, 24)
    order = rng.permutation(24)
    chosen = successive_projection(X[:, order], 4)
    assert sorted(order[chosen]) == [20, 21, 22, 23]


def test_a_separable_joint_is_read_off_its_pairs_exactly():
    rng = np.random.default_rng(7)
    problem, pairs, truth = separable_joint(rng)
    found = split_factors(problem, pairs, 3, ((0, 1), (2,)), rng)
    joint = [np.einsum("r,ir,jr,kr->ijk", f.weights, *f.coefficients) for f in (found, truth)]
    np.testing.assert_allclose(joint[0], joint[1], atol=1e-12)
    with pytest.raises(InputError, match="groups must divide the variables 0 to 2"):
        split_factors(problem, pairs, 3, ((0, 1), ()), rng)


def test_zero_columns_are_never_chosen():
    X = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    assert sorted(successive_projection(X, 2)) == [1, 3]
    assert successive_projection(np.zeros((3, 4)), 2).size == 0


def test_fewer_columns_when_the_rest_is_spanned():
    X = np.outer([1.0, 2.0, 3.0], [1.0, 5.0, 2.0])
    np.testing.assert_array_equal(successive_projection(X, 3), [1])


def test_ties_go_to_the_larger_column_before_scaling():
    X = np.array([[0.1, 0.7, 0.3], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(successive_projection(X, 1), [1])


def test_nonnegative_least_squares_equals_scipy():
    rng = np.random.default_rng(1)
    W, X = rng.uniform(size=(12, 4)) * [1.0, 1e-4, 1.0, 10.0], rng.normal(size=(12, 30))
    X[:, 3] = 0
    expected = np.array([nnls(W, x)[0] for x in X.T])
    np.testing.assert_allclose(nonnegative_least_squares(W, X), expected, rtol=1e-8, atol=1e-10)


def test_nonnegative_least_squares_with_a_zero_column():
    H = nonnegative_least_squares(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[2.0], [1.0]]))
    np.testing.assert_allclose(H, [[2.0, 0.0]])


def test_the_best_split_is_kept():
    problem, pairs, _ = separable_joint(np.random.default_rng(3))
    best = split_starts(problem, pairs, 3, n_splits=20, rng=np.random.default_rng(0))
    assert best.converged
    assert_valid(best.value)
    assert all((b > 0).all() for b in best.value.coefficients)  # multiplicative updates can move everything
    assert best.history[-1] == problem.squared_error(best.value)
    assert np.all(np.diff(best.history) <= 0)
    assert len(best.history) == best.n_steps + 1
    assert best.message == f"The best of {len(best.history)} splits was kept."


def test_same_generator_same_start():
    problem = noisy_problem(np.random.default_rng(4))
    pairs = solve(MirrorDescentPairs(), problem, max_steps=300).value
    a, b = (split_starts(problem, pairs, 3, rng=np.random.default_rng(7)).value for _ in range(2))
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.coefficients[1], b.coefficients[1])


def test_more_components_than_independent_columns_are_filled_up():
    problem, _ = exact_problem(np.random.default_rng(5), bins=(6, 6), sizes=(5, 5), n_components=1)
    independent = {(0, 1): np.outer(np.full(5, 0.2), np.full(5, 0.2))}
    start = split_factors(problem, independent, 4, ((0,), (1,)), np.random.default_rng(0))
    assert start.n_components == 4
    assert_valid(start)
    assert np.unique(start.coefficients[0].round(9), axis=1).shape[1] == 4


def test_pairs_never_observed_are_taken_as_independent():
    problem = noisy_problem(np.random.default_rng(6), drop=((0, 2),))
    pairs = solve(MirrorDescentPairs(), problem, max_steps=300).value
    assert_valid(split_factors(problem, pairs, 3, ((0,), (1, 2)), np.random.default_rng(0)))


def test_n_components_error_says_what_is_possible():
    problem = noisy_problem(np.random.default_rng(7), sizes=(4, 3, 5))
    with pytest.raises(RankError, match=r"7 components .* 4, 3, 5 atoms hold at most 5\..* method=\"pairs\""):
        split_starts(problem, {}, 7, rng=np.random.default_rng(0))


def test_arguments_out_of_range():
    with pytest.raises(InputError, match="n_components must be one or more; got 0"):
        check_n_components((2, 2), 0)
    problem = noisy_problem(np.random.default_rng(7))
    with pytest.raises(InputError, match="n_splits must be one or more; got 0"):
        split_starts(problem, {}, 2, n_splits=0, rng=np.random.default_rng(0))


@pytest.mark.parametrize("groups", [((0, 1), ()), ((0,), (1,)), ((0, 1), (1, 2)), ((0, 1), (2, 3))])
def test_groups_must_divide_the_variables(groups):
    problem = noisy_problem(np.random.default_rng(7))
    with pytest.raises(InputError, match="groups must divide the variables 0 to 2"):
        split_factors(problem, {}, 2, groups, np.random.default_rng(0))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=7))
def test_most_split_components_is_the_best_over_all_splits(sizes):
    halves = []
    for mask in range(1, 2 ** len(sizes) - 1):
        first = sum(size for n, size in enumerate(sizes) if mask >> n & 1)
        halves.append(min(first, sum(sizes) - first))
    assert most_split_components(sizes) == max(halves)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_no_counts_lead_to_nan(seed, n_components):
    rng = np.random.default_rng(seed)
    problem = noisy_problem(rng, bins=(4, 3, 3), sizes=(3, 2, 3), n_rows=3)
    # sparse coefficients with empty rows and columns, as after convergence
    pairs = {
        pair: rng.multinomial(
            2,
            np.full(problem.sizes[pair[0]] * problem.sizes[pair[1]], 1.0)
            / (problem.sizes[pair[0]] * problem.sizes[pair[1]]),
        ).reshape(problem.sizes[pair[0]], problem.sizes[pair[1]])
        / 2
        for pair in problem.pairs
    }
    assert_valid(split_starts(problem, pairs, n_components, rng=rng).value)
