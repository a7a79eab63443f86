"""Means, variances, covariances, quantiles and modes against loops, laws and SciPy."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy import optimize, stats
from tests.joint.cases import PlainJoint, build, cases, random_density, random_region, single

from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.families import (
    Cauchy,
    Exponential,
    Gamma,
    Gaussian,
    Laplace,
    Lattice,
    PointMass,
    StudentT,
    Truncated,
    Uniform,
)
from jointwise.tables.variables import Variable

FEW = settings(deadline=None, max_examples=40)
NUMBERS = ("smooth", "spiky", "counts", "lattice", "inflated")

X = Variable("x", "continuous")
Y = Variable("y", "continuous")
K = Variable("k", "integer", dtype="int64")
GRADE = Variable("grade", "categorical", categories=("low", "mid", "high"), ordered=True, dtype="string")
LABEL = Variable("label", "categorical", categories=("a", "b"), dtype="string")


# ---- mean, variance, covariance --------------------------------------------------------------------------


@FEW
@given(cases(max_variables=2))
def test_moments_equal_plain_loops(case):
    density, plain = case.density, PlainJoint(case.density)
    mean, var = density.mean(), density.var()
    for n, name in enumerate(density.names):
        # the twin sums integers to the quantile 1 - 1e-13, which leaves 1e-7 of a Student-t's variance
        assert mean[name] == pytest.approx(plain.mean(n), rel=1e-9, abs=1e-7, nan_ok=True)
        assert var[name] == pytest.approx(plain.var(n), rel=1e-5, abs=1e-6, nan_ok=True)
    if len(density.names) == 2:
        assert density.cov()[0, 1] == pytest.approx(plain.cov(0, 1), rel=1e-7, abs=1e-6, nan_ok=True)


@FEW
@given(cases(min_variables=2, kinds=NUMBERS))
def test_total_expectation_and_variance(case):
    """E[X] = E[E[X | A]] and Var[X] = E[Var[X | A]] + Var[E[X | A]] over a split of another variable in two."""
    density, rng = case.density, case.rng
    name, other = density.names[:2]
    cut = density.schema[other].decode_value(density.marginal(other).mixture.sample(1, rng)[0, 0])
    above = np.nextafter(float(cut), np.inf)
    parts = [{other: (None, cut)}, {other: (above, None)}]
    shares = [density.probability(part) for part in parts]
    assume(min(shares) > 1e-6)
    given_part = [density.condition(part) for part in parts]
    mean = sum(p * f.mean()[name] for p, f in zip(shares, given_part, strict=True))
    assert density.mean()[name] == pytest.approx(mean, rel=1e-9, abs=1e-9)
    var = sum(p * (f.var()[name] + (f.mean()[name] - mean) ** 2) for p, f in zip(shares, given_part, strict=True))
    assert density.var()[name] == pytest.approx(var, rel=1e-9, abs=1e-9)


@FEW
@given(cases(kinds=NUMBERS))
def test_covariance_is_symmetric_positive_with_the_variances_on_its_diagonal(case):
    cov = case.density.cov()
    np.testing.assert_allclose(cov, cov.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.diag(cov), list(case.density.var().values()))
    assert np.linalg.eigvalsh(cov).min() >= -1e-9 * max(1.0, np.abs(cov).max())


@FEW
@given(cases(kinds=("smooth", "spiky", "lattice")))
def test_moments_of_a_truncated_variable_equal_quadrature_or_sums(case):
    density, rng = case.density, case.rng
    name = density.names[0]
    low, high = np.sort(density.marginal(name).mixture.sample(2, rng)[:, 0])
    event = {name: (density.schema[name].decode_value(low), density.schema[name].decode_value(high))}
    assume(density.probability(event) > 1e-3)
    part = density.condition(event).marginal(name)
    mixture = part.mixture
    mean, var = part.mean()[name], part.var()[name]
    spikes = mixture.dictionaries[0].spikes
    if density.schema[name].kind == "integer":
        points, weights = np.arange(low, high + 1), np.ones(int(high - low) + 1)
    else:
        points, weights = (
            low + (high - low) * (np.arange(20_000) + 0.5) / 20_000,
            np.full(20_000, (high - low) / 20_000),
        )
        points, weights = np.append(points, spikes), np.append(weights, np.ones(spikes.size))
    mass = weights * np.exp(mixture.logpdf(points[:, None]))
    # jumps of uniform and exponential atoms inside the interval cost the quadrature three digits
    assert mass.sum() == pytest.approx(1.0, abs=3e-3)
    assert mean == pytest.approx((points * mass).sum() / mass.sum(), abs=3e-3 * (high - low) + 1e-9)
    assert var == pytest.approx(((points - mean) ** 2 * mass).sum() / mass.sum(), abs=3e-3 * (high - low) ** 2 + 1e-9)


def test_moments_that_do_not_exist():
    cauchy = single(X, Dictionary((Cauchy(0.0, 1.0),)))
    assert math.isnan(cauchy.mean()["x"])
    assert math.isnan(cauchy.var()["x"])
    right = cauchy.condition({"x": (0.0, None)})
    assert right.mean()["x"] == math.inf
    assert math.isnan(right.var()["x"])
    assert np.isfinite(cauchy.condition({"x": (-1.0, 5.0)}).var()["x"])
    heavy = single(X, Dictionary((StudentT(1.5, 2.0, 1.0),)))
    assert heavy.mean()["x"] == 2.0
    assert heavy.var()["x"] == math.inf
    both = Dictionary((Truncated(Cauchy(0.0, 1.0), 0.0, np.inf), Truncated(Cauchy(0.0, 1.0), -np.inf, 0.0)))
    assert math.isnan(single(X, both).mean()["x"])
    assert np.isnan(single(X, both).cov()).all()
    label = single(LABEL, Dictionary.categories(2))
    assert math.isnan(label.mean()["label"])
    assert math.isnan(label.var()["label"])


def test_an_atom_or_component_without_weight_does_not_spoil_the_moments():
    atoms = Dictionary((Gaussian(1.0, 1.0), Cauchy(0.0, 1.0)))
    density = build([X, Y], [atoms, atoms], [1.0, 0.0], [np.eye(2), np.eye(2)])
    assert density.mean() == {"x": 1.0, "y": 1.0}
    np.testing.assert_allclose(density.cov(), np.eye(2))


def test_a_category_beside_numbers_leaves_their_covariance_alone():
    density = random_density(np.random.default_rng(0), ["smooth", "label", "counts"], 3)
    cov = density.cov()
    assert np.isnan(cov[1]).all()
    np.testing.assert_array_equal(
        cov[np.ix_([0, 2], [0, 2])], density.marginal([density.names[0], density.names[2]]).cov()
    )


def test_variance_beyond_the_largest_number_is_infinite():
    density = single(X, Dictionary((Gaussian([-1e200, 1e200], 1.0),)))
    assert density.var()["x"] == math.inf
    assert np.isinf(density.cov()[0, 0])


# ---- quantiles -------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(cases(max_variables=1, kinds=(*NUMBERS, "grade")))
def test_quantile_is_the_generalised_inverse_of_the_cdf(case):
    """The smallest x with F(x) >= q: F there reaches q, and just below it does not."""
    mixture, rng = case.density.mixture, case.rng
    q = np.concatenate([rng.random(6), [1e-12, 0.5, 1 - 1e-12]])
    x = mixture.margin(0).quantiles(q)
    # F is a sum over atoms, known to some 1e-15, and an atom's own quantile to some units in the last place of x
    step = 4 * np.spacing(np.abs(x))
    assert (mixture.cdf((x + step)[:, None]) >= q - 3e-14).all()
    assert (mixture.cdf((x - step)[:, None]) <= q + 3e-14).all()
    assert (np.diff(mixture.margin(0).quantiles(np.sort(q))) >= 0).all()
    # the quantile at F(x) is x, or the left end of a stretch without mass
    points = mixture.sample(5, rng)
    back = mixture.margin(0).quantiles(mixture.cdf(points))
    assert (back <= points[:, 0] + 1e-9 * (1 + np.abs(points[:, 0]))).all()


@settings(FEW, max_examples=15)
@given(cases(max_variables=1, kinds=("counts", "lattice", "inflated", "grade")))
def test_quantiles_of_discrete_variables_equal_a_running_sum(case):
    density, plain = case.density, PlainJoint(case.density)
    variable = density.schema.variables[0]
    q = case.rng.uniform(0.01, 0.99)
    total = 0.0
    for value in plain.support(0):
        total += plain.pdf([value])
        if total >= q:
            break
    assert density.quantile(variable.name, q) == variable.decode_value(value)


@FEW
@given(cases(max_variables=1, kinds=("smooth",)))
def test_quantiles_of_continuous_variables_equal_a_root_search(case):
    density, plain = case.density, PlainJoint(case.density)
    q = case.rng.uniform(0.01, 0.99)
    found = density.quantile(density.names[0], q)
    root = optimize.brentq(lambda x: plain.cdf([x]) - q, -1e3, 1e3, xtol=1e-12)
    # where uniform atoms leave a gap the cdf is flat and any point of it is a root
    assert found == pytest.approx(root, abs=1e-6) or plain.cdf([found]) == pytest.approx(plain.cdf([root]), abs=1e-12)


def test_quantiles_at_the_ends_are_the_ends_of_the_support():
    density = single(X, Dictionary((Uniform([0.0, 3.0], [1.0, 4.0]), PointMass(2.0))))
    assert density.quantile("x", 0) == 0.0
    assert density.quantile("x", 1) == 4.0
    assert density.quantile("x", [0.0, 1 / 3, 0.5, 2 / 3 + 1e-12, 1.0]).tolist() == pytest.approx([0, 1, 2, 3, 4])
    unused = single(X, Dictionary((Uniform([0.0, 3.0], [1.0, 4.0]),)), [1.0, 0.0])
    assert unused.quantile("x", 1) == 1.0
    line = single(X, Dictionary((Gaussian(0.0, 1.0), Exponential(0.0, 1.0))))
    assert line.quantile("x", 0) == -math.inf
    assert line.quantile("x", 1) == math.inf
    counts = single(K, Dictionary((Lattice(Gaussian(0.0, 1.0)),)))
    assert counts.quantile("k", 0) == -math.inf
    np.testing.assert_array_equal(counts.quantile("k", [0.0, 0.5, 1.0]), [-np.inf, 0.0, np.inf])
    assert counts.quantile("k", [0.1, 0.9]).dtype == np.int64


def test_quantiles_keep_the_shape_and_type_of_what_was_asked():
    density = single(X, Dictionary((Gaussian(0.0, 1.0),)))
    q = np.array([[0.1, 0.5, 0.9], [0.2, 0.3, 0.4]])
    np.testing.assert_allclose(density.quantile("x", q), stats.norm.ppf(q), atol=1e-12)
    assert density.quantile("x", []).shape == (0,)
    assert isinstance(density.quantile("x", np.float64(0.5)), float)
    assert isinstance(single(K, Dictionary.points([1, 2])).quantile("k", 0.5), int)
    grade = single(GRADE, Dictionary.categories(3), [0.2, 0.5, 0.3])
    assert grade.quantile("grade", 0.2) == "low"
    assert grade.quantile("grade", [0.21, 0.71]).tolist() == ["mid", "high"]


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan, [0.5, 2.0]])
def test_q_must_be_a_probability(q):
    with pytest.raises(InputError, match="q must lie between 0 and 1"):
        single(X, Dictionary((Gaussian(0.0, 1.0),))).quantile("x", q)


def test_categories_without_order_have_no_quantiles():
    with pytest.raises(InputError, match=r"'label' has categories without an order.*see predict_proba"):
        single(LABEL, Dictionary.categories(2)).quantile("label", 0.5)


@pytest.mark.parametrize(("loc", "scale"), [(1e15, 1.0), (0.0, 1e-200), (-1e-300, 1e-301), (0.0, 1e200)])
def test_quantiles_at_any_magnitude(loc, scale):
    density = single(X, Dictionary((Gaussian(loc, scale),)))
    expected = stats.norm.ppf([0.1, 0.5, 0.9], loc, scale)
    np.testing.assert_allclose(density.quantile("x", [0.1, 0.5, 0.9]), expected, rtol=1e-9, atol=1e-9 * scale)


# ---- modes -----------------------------------------------------------------------------------------------


@settings(FEW, max_examples=15)
@given(cases(max_variables=1, kinds=("counts", "lattice", "inflated", "label", "grade")))
def test_mode_of_a_discrete_variable_equals_a_search_of_all_values(case):
    density, plain = case.density, PlainJoint(case.density)
    variable = density.schema.variables[0]
    best = max(plain.pdf([value]) for value in plain.support(0))
    found = density.mode()[variable.name]
    assert plain.pdf([variable.encode_value(found)]) == pytest.approx(best, rel=1e-9)


@FEW
@given(cases(max_variables=1, kinds=("smooth",)))
def test_mode_of_a_density_is_no_lower_than_a_fine_grid(case):
    density = case.density
    found = density.mode()[density.names[0]]
    grid = np.linspace(*density.quantile(density.names[0], [0.001, 0.999]), 20_001)
    # of two peaks of nearly the same height the one that is higher on 513 points is taken
    assert density.pdf([[found]])[0] >= density.pdf(grid[:, None]).max() * (1 - 1e-4)


@FEW
@given(cases(max_variables=1, kinds=("spiky",)))
def test_a_point_mass_comes_before_any_density(case):
    density, plain = case.density, PlainJoint(case.density)
    spikes = density.mixture.dictionaries[0].spikes.tolist()
    masses = [plain.pdf([spike]) for spike in spikes]
    assume(max(masses) > 0)
    found = density.mode()[density.names[0]]
    assert found in spikes
    assert plain.pdf([found]) == pytest.approx(max(masses))


def test_mode_between_two_atoms_is_found_to_eight_digits():
    density = single(X, Dictionary((Gaussian([0.0, 1.0], 1.0), Gaussian(1e3, 1.0))), [0.49, 0.49, 0.02])
    assert density.mode()["x"] == pytest.approx(0.5, abs=1e-7)


@pytest.mark.parametrize(
    ("dictionary", "weights", "expected"),
    [
        (Dictionary((Uniform(0.0, 1.0),)), None, 0.5),  # a plateau: its middle
        (Dictionary((Uniform([0.0, 5.0], [1.0, 6.0]),)), None, 0.5),  # two: the first
        (Dictionary((Gaussian([5.0, -5.0], 1.0),)), None, -5.0),  # two equal peaks: the smaller
        (Dictionary((Exponential(2.0, 1.0),)), None, 2.0),
        (Dictionary((Exponential(2.0, 1.0, -1.0),)), None, 2.0),
        (Dictionary((Laplace(0.25, 1e-9), Gaussian(50.0, 20.0))), [0.01, 0.99], 0.25),
        (Dictionary((Gamma(0.3, 1.0), Gaussian(5.0, 1.0))), [0.1, 0.9], 0.0),  # grows without bound
        (Dictionary((Gaussian(0.0, 1.0), Gaussian(3.0, 0.1))), [1.0, 0.0], 0.0),
        (Dictionary((Gaussian(0.0, 1.0), PointMass([3.0, 4.0]))), [1.0, 0.0, 0.0], 0.0),
        (Dictionary((PointMass([0.25, 0.75]),)), [0.4, 0.6], 0.75),
        (Dictionary((PointMass([0.75, 0.25]),)), [0.5, 0.5], 0.25),  # equals: the smaller
    ],
)
def test_modes_by_hand(dictionary, weights, expected):
    assert single(X, dictionary, weights).mode()["x"] == pytest.approx(expected, abs=1e-12)


def test_modes_of_wide_lattices():
    wide = single(K, Dictionary((Lattice(Gaussian([0.0, 15_001.0], 10_000.0)),)), [0.6, 0.4])
    peak = optimize.minimize_scalar(
        lambda x: -0.6 * stats.norm.pdf(x, 0, 1e4) - 0.4 * stats.norm.pdf(x, 15_001, 1e4), bounds=(0, 15_000)
    )
    # the top is flat: neighbours differ in the ninth digit
    assert wide.mode()["k"] == pytest.approx(peak.x, abs=2)
    inflated = single(K, Dictionary((Lattice(Gaussian(5e6, 1e6)), PointMass(123_457.0))), [0.999, 0.001])
    assert inflated.mode()["k"] == 123_457


def test_mode_after_conditioning_on_a_set_of_spikes():
    density = single(X, Dictionary((Gaussian(0.0, 1.0), PointMass([0.25, 0.75]))), [0.5, 0.2, 0.3])
    assert density.condition({"x": {0.25, 0.75}}).mode()["x"] == 0.75
    assert density.condition({"x": (None, 0.5)}).mode()["x"] == 0.25


@FEW
@given(cases(max_variables=2))
def test_answers_of_a_conditional_are_finite_or_said_not_to_exist(case):
    density, rng = case.density, case.rng
    name = density.names[0]
    event = {name: random_region(rng, density, name, shapes=("interval", "set"))}
    assume(density.probability(event) > 1e-9)
    part = density.condition(event)
    for variable in part.schema:
        mean, var, mode = (answer[variable.name] for answer in (part.mean(), part.var(), part.mode()))
        assert mode is not None
        if variable.categories is None:
            assert math.isfinite(mean)
            assert var >= 0
