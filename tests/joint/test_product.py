"""The arithmetic on encoded values against plain loops, and far out where numbers end."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.joint.cases import PlainJoint, cases, random_density, random_rows

from jointwise.dictionary import Dictionary
from jointwise.exceptions import ImpossibleEventError, InputError
from jointwise.families import Gaussian, Laplace, Lattice, PointMass, StudentT, Uniform
from jointwise.joint import ProductMixture
from jointwise.joint import expert as expert_module
from jointwise.joint.events import Interval, Point, Values

FEW = settings(deadline=None, max_examples=40)


@FEW
@given(cases())
def test_density_and_cdf_equal_plain_loops(case):
    mixture, plain = case.density.mixture, PlainJoint(case.density)
    rows = random_rows(case.rng, case.density, 5)
    # atoms are combined in another order, and a cell mass is a difference of cdf values
    np.testing.assert_allclose(np.exp(mixture.logpdf(rows)), [plain.pdf(row) for row in rows], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(mixture.cdf(rows), [plain.cdf(row) for row in rows], rtol=1e-9, atol=1e-13)


@FEW
@given(cases())
def test_posterior_equals_plain_loops(case):
    mixture, plain = case.density.mixture, PlainJoint(case.density)
    rows = random_rows(case.rng, case.density, 5)
    posterior = mixture.posterior(rows)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-12)
    for row, found in zip(rows, posterior, strict=True):
        expected = plain.posterior(row)
        if expected is not None and plain.pdf(row) > 1e-250:  # below, the loops' products underflow
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


@FEW
@given(cases())
def test_density_is_never_nan_and_a_row_without_cells_has_density_one(case):
    mixture = case.density.mixture
    odd = np.array([-np.inf, -1e300, -1.0, -0.0, 0.0, 0.5, 1e300, np.inf, np.nan])
    rows = case.rng.choice(odd, size=(30, mixture.n_variables))
    assert not np.isnan(mixture.logpdf(rows)).any()
    assert not np.isnan(mixture.cdf(rows)).any()
    assert not np.isnan(mixture.posterior(rows)).any()
    np.testing.assert_allclose(mixture.logpdf(np.full((1, mixture.n_variables), np.nan)), 0.0, atol=1e-12)


def test_both_zeros_are_one_value():
    mixture = random_density(np.random.default_rng(1), ["spiky", "inflated"], 3).mixture
    np.testing.assert_array_equal(mixture.logpdf(np.zeros((1, 2))), mixture.logpdf(np.full((1, 2), -0.0)))


def test_single_values_are_looked_up_as_their_densities_say():
    atoms = Dictionary.points([3.0, 1.0]) + Dictionary.points([1.0, 2.0])  # two atoms at one point add up
    mixture = ProductMixture([1.0], [[[0.4], [0.3], [0.2], [0.1]]], [atoms])
    found = mixture.log_conditionals(0, np.array([2.0, 1.0, 7.0, np.nan, 3.0, 1.5]))[:, 0]
    np.testing.assert_allclose(np.exp(found), [0.1, 0.5, 0.0, 1.0, 0.4, 0.0])


def test_blocks_do_not_show(monkeypatch):
    rng = np.random.default_rng(2)
    density = random_density(rng, ["spiky", "lattice", "label"], 3)
    rows = random_rows(rng, density, 50)
    whole = [getattr(density.mixture, name)(rows) for name in ("logpdf", "cdf", "posterior")]
    monkeypatch.setattr(expert_module, "BLOCK", 7)
    parts = [getattr(density.mixture, name)(rows) for name in ("logpdf", "cdf", "posterior")]
    for a, b in zip(whole, parts, strict=True):
        # a block may take another path through BLAS
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_no_rows_give_no_answers():
    mixture = random_density(np.random.default_rng(3), ["smooth", "label"], 2).mixture
    nothing = np.empty((0, 2))
    assert mixture.logpdf(nothing).shape == mixture.cdf(nothing).shape == (0,)
    assert mixture.posterior(nothing).shape == (0, 2)
    assert mixture.sample(0, np.random.default_rng(0)).shape == (0, 2)


# ---- underflow -------------------------------------------------------------------------------------------


def wide(n_variables, n_components=3):
    rng = np.random.default_rng(4)
    atoms = Dictionary((Gaussian(rng.normal(size=4), 0.5), Laplace(rng.normal(size=2), 1.0)))
    coefficients = [rng.dirichlet(np.ones(6), size=n_components).T for _ in range(n_variables)]
    return ProductMixture(np.full(n_components, 1 / n_components), coefficients, [atoms] * n_variables)


def test_five_hundred_variables_far_away_have_finite_log_density():
    mixture = wide(500)
    rows = np.vstack([np.zeros(500), np.full(500, 30.0), np.full(500, -1e4), np.full(500, 1e150)])
    found = mixture.logpdf(rows)
    assert np.isfinite(found).all()
    # the Laplace tail decides far away: -|x| per variable
    assert found[2] == pytest.approx(-500 * 1e4, rel=1e-3)
    posterior = mixture.posterior(rows)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-12)


def test_log_density_far_away_equals_the_sum_of_logarithms():
    atoms = Dictionary((Gaussian([0.0, 10.0], [1.0, 2.0]),))
    mixture = ProductMixture([1.0], [np.array([[0.3], [0.7]])] * 500, [atoms] * 500)
    x = 100.0
    each = np.logaddexp(np.log(0.3) - x**2 / 2, np.log(0.7) - np.log(2) - (x - 10) ** 2 / 8) - 0.5 * np.log(2 * np.pi)
    assert mixture.logpdf(np.full((1, 500), x))[0] == pytest.approx(500 * each, rel=1e-13)


def test_posterior_of_impossible_rows_leaves_out_the_impossible_cells():
    atoms = Dictionary((Uniform([0.0, 5.0], [1.0, 6.0]),))
    mixture = ProductMixture([0.25, 0.75], [np.eye(2)] * 3, [atoms] * 3)
    rows = np.array([[0.5, 99.0, np.nan], [99.0, 5.5, np.nan], [99.0, 99.0, 99.0], [0.5, 5.5, 5.5]])
    # the last row contradicts itself: read from the left, its first cell stands
    np.testing.assert_allclose(mixture.posterior(rows), [[1, 0], [0, 1], [0.25, 0.75], [1, 0]])
    assert np.isneginf(mixture.logpdf(rows)[2:]).all()


def test_conditioning_on_a_far_away_point_keeps_the_nearest_component():
    atoms = Dictionary((Gaussian([0.0, 10.0], 1.0),))
    mixture = ProductMixture([0.5, 0.5], [np.eye(2), np.eye(2)], [atoms, atoms])
    given_point = mixture.condition({0: Point(1e6)})
    np.testing.assert_allclose(given_point.weights, [0.0, 1.0])
    assert given_point.logpdf(np.array([[10.0]]))[0] == pytest.approx(-0.5 * np.log(2 * np.pi))


@pytest.mark.parametrize(("low", "high"), [(30.0, 31.0), (-37.0, -36.0), (30.0, np.inf), (5.0, 5.0 + 1e-9)])
def test_conditioning_on_a_tiny_mass_gives_a_proper_density(low, high):
    atoms = Dictionary((Gaussian([0.0, 0.5], 1.0),))
    mixture = ProductMixture([0.5, 0.5], [np.eye(2), np.eye(2)], [atoms, atoms])
    tail = mixture.condition({0: Interval(low, high)})
    assert tail.weights.sum() == pytest.approx(1.0)
    assert tail.cdf(np.array([[high, np.nan]]))[0] == pytest.approx(1.0)
    drawn = tail.sample(200, np.random.default_rng(0))[:, 0]
    assert ((drawn >= low) & (drawn <= high)).all()
    assert np.isfinite(tail.logpdf(tail.sample(20, np.random.default_rng(1)))).all()


def test_mass_below_the_smallest_number_is_an_impossible_event():
    mixture = ProductMixture([1.0], [np.ones((1, 1))], [Dictionary((Gaussian(0.0, 1.0),))])
    assert mixture.log_probability({0: Interval(60.0, 61.0)}) == -np.inf
    with pytest.raises(ImpossibleEventError):
        mixture.condition({0: Interval(60.0, 61.0)})


# ---- construction ----------------------------------------------------------------------------------------

GAUSSIANS = Dictionary((Gaussian([0.0, 1.0], 1.0),))


@pytest.mark.parametrize(
    ("weights", "coefficients", "dictionaries", "message"),
    [
        ([0.5, 0.6], [np.eye(2)], [GAUSSIANS], "weights must sum to one"),
        ([0.5, np.nan], [np.eye(2)], [GAUSSIANS], "weights must hold numbers from 0 to 1"),
        ([-0.5, 1.5], [np.eye(2)], [GAUSSIANS], "weights must hold numbers from 0 to 1"),
        ([1e308, 1e308], [np.eye(2)], [GAUSSIANS], "weights must hold numbers from 0 to 1"),
        ([], [np.eye(2)], [GAUSSIANS], "weights must be a non-empty array"),
        ([[1.0]], [np.ones((2, 1))], [GAUSSIANS], "weights must be a non-empty array of 1 dimension"),
        (["much", "less"], [np.eye(2)], [GAUSSIANS], "weights must be an array of numbers"),
        ([0.5, 0.5], [[[1.0], [1.0, 0.0]]], [GAUSSIANS], r"coefficients\[0\] must be an array of numbers"),
        ([0.5, 0.5], [np.eye(2) * 0.9], [GAUSSIANS], r"coefficients\[0\] must sum to one"),
        ([1.0], [np.ones(2) / 2], [GAUSSIANS], r"coefficients\[0\] must be a non-empty array of 2"),
        ([1.0], [np.ones((3, 1)) / 3], [GAUSSIANS], r"shape \(atoms, components\) = \(2, 1\), got \(3, 1\)"),
        ([1.0], [np.ones((2, 1)) / 2] * 2, [GAUSSIANS], "one coefficient matrix per dictionary"),
        ([1.0], [], [], "at least one of each"),
    ],
)
def test_parts_that_do_not_fit_are_refused(weights, coefficients, dictionaries, message):
    with pytest.raises(InputError, match=message):
        ProductMixture(weights, coefficients, dictionaries)


def test_sums_a_rounding_away_from_one_are_scaled_and_arrays_cannot_be_written():
    mine = np.array([0.5, 0.5 + 1e-9])
    mixture = ProductMixture(mine, [np.eye(2)], [GAUSSIANS])
    assert mixture.weights.sum() == pytest.approx(1.0, abs=1e-15)
    assert mine[1] == 0.5 + 1e-9
    with pytest.raises(ValueError, match="read-only"):
        mixture.weights[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        mixture.coefficients[0][0, 0] = 1.0


def test_sampling_never_draws_atoms_or_components_without_weight():
    atoms = Dictionary((PointMass([0.0, 1.0, 2.0, 3.0]),))
    coefficients = np.array([[0.0, 1.0], [0.5, 0.0], [0.5, 0.0], [0.0, 0.0]])
    mixture = ProductMixture([1.0, 0.0], [coefficients], [atoms])
    assert set(mixture.sample(2000, np.random.default_rng(0))[:, 0]) == {1.0, 2.0}


def test_restricting_to_values_keeps_only_those_with_probability():
    atoms = Dictionary((Lattice(StudentT(3.0, 0.0, 1.0)), PointMass(4.0)))
    mixture = ProductMixture([1.0], [np.array([[0.5], [0.5]])], [atoms])
    some = mixture.condition({0: Values((-1.0, 2.5, 4.0))})
    assert some.dictionaries[0].spikes.tolist() == [-1.0, 4.0]
    assert some.logpdf(np.array([[2.5]]))[0] == -np.inf


def test_conditionals_of_impossible_rows_are_laws_too():
    """Also if the first component has no weight."""
    atoms = Dictionary((Uniform([0.0, 5.0], [1.0, 6.0]),))
    mixture = ProductMixture([0.0, 1.0], [np.eye(2)] * 2, [atoms] * 2)
    law = mixture.conditionals(0, np.array([[np.nan, 99.0], [np.nan, 5.5], [3.0, np.nan]]))
    np.testing.assert_array_equal(law.log_evidence, [-np.inf, 0.0, 0.0])
    np.testing.assert_allclose(law.cdf(np.full(3, 5.5)), 0.5)
    np.testing.assert_allclose(law.mean(), 5.5)
    np.testing.assert_allclose(law.pdf(np.array([0.5, 5.5])), [[0.0, 1.0]] * 3)
