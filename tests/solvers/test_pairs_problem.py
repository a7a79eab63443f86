import numpy as np
import pytest
from tests.solvers.cases import exact_problem, noisy_problem, random_factors, squared_error_by_loops

from jointwise.exceptions import InputError
from jointwise.solvers import Factors, PairwiseProblem

COIN = np.eye(2)
AGREE = np.eye(2) / 2


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("drop", [(), ((0, 2),)])
def test_squared_error_equals_plain_loops(shared, drop):
    rng = np.random.default_rng(3)
    problem = noisy_problem(rng, shared=shared, drop=drop)
    for rank in (1, 2, 4):
        factors = random_factors(rng, problem.sizes, rank)
        expected = squared_error_by_loops(problem, factors)
        np.testing.assert_allclose(problem.squared_error(factors), expected, rtol=1e-9)


def test_squared_error_vanishes_at_the_truth():
    problem, factors = exact_problem(np.random.default_rng(0))
    assert problem.squared_error(factors) < 1e-14 * problem.constant


def test_derived_arrays():
    problem = noisy_problem(np.random.default_rng(1), shared=True, drop=((1, 2),))
    assert problem.sizes == (4, 3, 5)
    assert problem.slices == (slice(0, 4), slice(4, 7), slice(7, 12))
    np.testing.assert_allclose(problem.stacked, problem.stacked.T)
    np.testing.assert_array_equal(problem.stacked[4:7, 7:], 0)
    c = problem.masses[0].T @ problem.pairs[0, 2] @ problem.masses[2]
    np.testing.assert_allclose(problem.projected[0, 2], c)
    np.testing.assert_allclose(problem.stacked[:4, 7:], problem.shares[0, 2] * c)
    np.testing.assert_allclose(sum(z.sum() for z in problem.scaled_pairs.values()), 1.0)
    np.testing.assert_allclose(problem.grams[1], problem.masses[1].T @ problem.masses[1])
    for array in (
        problem.stacked,
        problem.masses[0],
        problem.pairs[0, 1],
        problem.grams[0],
        problem.scaled_pairs[0, 1],
    ):
        assert not array.flags.writeable


def test_margins_are_those_of_the_pairs_by_share():
    z = {(0, 1): AGREE, (0, 2): np.array([[1.0, 0.0], [0.0, 0.0]])}
    problem = PairwiseProblem((COIN, COIN, COIN), z, shares={(0, 1): 3.0, (0, 2): 1.0})
    np.testing.assert_allclose(problem.settled_margins[0], [0.625, 0.375])
    np.testing.assert_allclose(problem.settled_margins[2], [1, 0])


def test_a_variable_without_pairs_needs_margins():
    problem = PairwiseProblem((COIN, COIN, COIN), {(0, 1): AGREE})
    with pytest.raises(InputError, match="Variable 2 shares no row"):
        _ = problem.settled_margins
    margins = ([0.5, 0.5], [0.5, 0.5], [0.1, 0.9])
    assert PairwiseProblem((COIN, COIN, COIN), {(0, 1): AGREE}, margins=margins).settled_margins[2][1] == 0.9


@pytest.mark.parametrize(
    ("masses", "pairs", "options", "sentence"),
    [
        ((COIN,), {}, {}, "two or more variables"),
        ((COIN, COIN), {}, {}, "at least one observed pair"),
        ((COIN, np.ones(2) / 2), {(0, 1): AGREE}, {}, r"masses\[1\] must be a table"),
        ((COIN, COIN / 2), {(0, 1): AGREE}, {}, r"masses\[1\] must hold probabilities"),
        ((COIN, COIN), {(1, 0): AGREE}, {}, r"got \(1, 0\)"),
        ((COIN, COIN), {(0, 2): AGREE}, {}, r"got \(0, 2\)"),
        ((COIN, np.eye(3)), {(0, 1): AGREE}, {}, r"must have shape \(2, 3\)"),
        ((COIN, COIN), {(0, 1): AGREE * 2}, {}, "masses that sum to one"),
        ((COIN, COIN), {(0, 1): np.array([[1.5, -0.5], [0, 0]])}, {}, "masses that sum to one"),
        ((COIN, COIN), {(0, 1): np.full((2, 2), np.nan)}, {}, "masses that sum to one"),
        ((COIN, COIN), {(0, 1): AGREE}, {"shares": {}}, "one positive number for each pair"),
        ((COIN, COIN), {(0, 1): AGREE}, {"shares": {(0, 1): 0.0}}, "one positive number for each pair"),
        ((COIN, COIN), {(0, 1): AGREE}, {"margins": ([1.0], [1.0])}, "margins must hold masses"),
        ((COIN, COIN), {(0, 1): AGREE}, {"margins": ([1.0, 1.0], [1.0, 0.0])}, "margins must hold masses"),
    ],
)
def test_what_does_not_fit_is_refused(masses, pairs, options, sentence):
    with pytest.raises(InputError, match=sentence):
        PairwiseProblem(masses, pairs, **options)


def test_factors_that_do_not_fit():
    with pytest.raises(InputError, match=r"coefficients\[0\] must have one column for each of the 2 weights"):
        Factors([0.5, 0.5], (np.ones((3, 1)) / 3,))
    problem = PairwiseProblem((COIN, COIN), {(0, 1): AGREE})
    with pytest.raises(InputError, match=r"The factors have \(2,\) atoms"):
        problem.check_factors(Factors([1.0], ([[0.5], [0.5]],)))
