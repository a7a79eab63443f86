"""Every family against SciPy's distribution of the same name: random parameters, and far into the tails."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from jointwise.families import (
    Beta,
    Cauchy,
    Exponential,
    Gamma,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    Logistic,
    LogNormal,
    PointMass,
    StudentT,
    Uniform,
)

LOC = st.floats(-100, 100)
SCALE = st.floats(0.01, 100)
SHAPE = st.floats(0.3, 20)


def case(ours, theirs, **parameters):
    return pytest.param(ours, theirs, st.fixed_dictionaries(parameters), id=ours.name)


CASES = [
    case(Gaussian, stats.norm, loc=LOC, scale=SCALE),
    case(Laplace, stats.laplace, loc=LOC, scale=SCALE),
    case(Cauchy, stats.cauchy, loc=LOC, scale=SCALE),
    case(Logistic, stats.logistic, loc=LOC, scale=SCALE),
    case(StudentT, stats.t, df=SHAPE, loc=LOC, scale=SCALE),
    case(
        GeneralizedGaussian,
        lambda shape, loc, scale: stats.gennorm(beta=shape, loc=loc, scale=scale),
        shape=SHAPE,
        loc=LOC,
        scale=SCALE,
    ),
    case(Exponential, lambda origin, scale: stats.expon(loc=origin, scale=scale), origin=LOC, scale=SCALE),
    case(Gamma, lambda shape, scale, origin: stats.gamma(shape, origin, scale), shape=SHAPE, scale=SCALE, origin=LOC),
    case(
        LogNormal,
        lambda log_mean, log_std, origin: stats.lognorm(log_std, origin, np.exp(log_mean)),
        log_mean=st.floats(-3, 3),
        log_std=st.floats(0.05, 3),
        origin=LOC,
    ),
    case(
        Beta,
        lambda a, b, low, high: stats.beta(a, b, low, high - low),
        a=SHAPE,
        b=SHAPE,
        low=st.floats(-5, 0),
        high=st.floats(1, 5),
    ),
    case(Uniform, lambda low, high: stats.uniform(low, high - low), low=st.floats(-5, 0), high=st.floats(1, 5)),
]
Q = np.array([1e-10, 1e-3, 0.1, 0.4, 0.5, 0.6, 0.9, 0.999])


@pytest.mark.parametrize(("ours", "theirs", "parameters"), CASES)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_agrees_with_scipy(ours, theirs, parameters, data):
    values = data.draw(parameters)
    family, reference = ours(**values), theirs(**values)
    with np.errstate(all="ignore"):  # the reference's own warnings
        x = np.concatenate([reference.ppf(Q), reference.ppf(Q) + 1.0, [-300.0, 300.0]])
        expected = reference.logpdf(x)
        shown = np.isfinite(expected) & (expected > -690)  # where SciPy takes no logarithm of an underflow or a pole
        # near the upper end of a beta, SciPy's 1 - u has lost up to eleven digits, which ours has not:
        # at (a, b) = (9, 0.3) ours agrees to the last digit with decimals of sixty digits
        assert_allclose(family.logpdf(x)[shown, 0], expected[shown], rtol=1e-9, atol=1e-4)
        assert_allclose(family.cdf(x)[:, 0], reference.cdf(x), rtol=1e-8, atol=1e-300)
        assert_allclose(family.sf(x)[:, 0], reference.sf(x), rtol=1e-5, atol=1e-300)
        assert_allclose(family.ppf(Q)[:, 0], reference.ppf(Q), rtol=1e-8, atol=1e-10)
        assert_allclose(family.isf(Q)[:, 0], reference.isf(Q), rtol=1e-8, atol=1e-10)
        mean, var = reference.stats("mv")
    if family.name == "student_t" and values["df"] <= 1:
        mean = var = np.nan  # where the reference says infinite
    assert_allclose(family.mean()[0], mean, rtol=1e-9, atol=1e-12)
    assert_allclose(family.var()[0], var, rtol=1e-8)


def test_exponential_to_the_left_is_the_mirror_image():
    right, left = Exponential(1.0, 2.0, 1), Exponential(-1.0, 2.0, -1)
    x = np.linspace(-5, 8, 27)
    assert_array_equal(left.logpdf(-x), right.logpdf(x))
    assert_array_equal(left.cdf(-x), right.sf(x))
    assert_allclose(left.ppf(Q), -right.isf(Q))
    assert_allclose([left.mean(), left.var(), left.mode()], [-right.mean(), right.var(), -right.mode()])


def test_moments_that_do_not_exist():
    assert np.isnan([Cauchy(0, 1).mean(), Cauchy(0, 1).var()]).all()
    student = StudentT([0.5, 1.0, 1.5, 2.0, 3.0], 7.0, 1.0)
    assert_array_equal(student.mean(), [np.nan, np.nan, 7, 7, 7])
    assert_array_equal(student.var(), [np.nan, np.nan, np.inf, np.inf, 3])


# A point whose upper tail is near 1e-300, and the logarithm of that tail from SciPy or in closed form.
TAILS = [
    (Gaussian(0.0, 1.0), 37.0, stats.norm.logsf(37.0)),
    (Laplace(0.0, 1.0), 690.0, -690.0 - np.log(2)),
    (Logistic(0.0, 1.0), 690.0, -690.0),
    (Cauchy(0.0, 1.0), 1e299, -np.log(np.pi * 1e299)),
    (StudentT(3.0, 0.0, 1.0), 1e99, np.log(2 * np.sqrt(3) / np.pi) - 3 * np.log(1e99)),
    (StudentT(1.0, 0.0, 1.0), 1e299, -np.log(np.pi * 1e299)),
    (GeneralizedGaussian(1.0, 0.0, 1.0), 690.0, -690.0 - np.log(2)),
    (GeneralizedGaussian(2.0, 0.0, 1.0), 26.0, stats.norm.logsf(26.0 * np.sqrt(2))),
    (Exponential(0.0, 1.0), 690.0, -690.0),
    (Gamma(1.0, 1.0), 690.0, -690.0),
    (Gamma(2.0, 1.0), 690.0, np.log(691.0) - 690.0),
    (LogNormal(0.0, 1.0), np.exp(37.0), stats.norm.logsf(37.0)),
]


@pytest.mark.parametrize(("family", "x", "log_tail"), TAILS, ids=lambda v: getattr(v, "name", None))
def test_upper_tails_down_to_1e_300(family, x, log_tail):
    assert_allclose(np.log(family.sf(x)), log_tail, rtol=1e-12)
    assert_allclose(family.mass(x, np.inf), family.sf(x), rtol=1e-14)
    assert_allclose(family.isf(np.exp(log_tail)), x, rtol=1e-9)
    assert np.isfinite(family.logpdf(x)).all()


@pytest.mark.parametrize(("family", "x", "log_tail"), TAILS[:8], ids=lambda v: getattr(v, "name", None))
def test_lower_tails_of_symmetric_families(family, x, log_tail):
    assert_allclose(np.log(family.cdf(-x)), log_tail, rtol=1e-12)
    assert_allclose(family.ppf(np.exp(log_tail)), -x, rtol=1e-9)


def test_interval_masses_in_both_tails():
    left, right = np.array([5.0, 12.0, 30.0]), np.array([5.5, 12.001, 30.2])
    for ours, theirs in [
        (Gaussian(0, 1), stats.norm),
        (Laplace(0, 1), stats.laplace),
        (Logistic(0, 1), stats.logistic),
        (Cauchy(0, 1), stats.cauchy),
    ]:
        log_left, log_right = theirs.logsf(left), theirs.logsf(right)
        expected = np.exp(log_left) * -np.expm1(log_right - log_left)
        assert_allclose(ours.mass(left, right)[:, 0], expected, rtol=1e-10)
        assert_allclose(ours.mass(-right, -left)[:, 0], expected, rtol=1e-10)


def test_narrow_intervals_do_not_cancel():
    width = 10.0 ** -np.arange(5, 15)
    for family in (Gaussian(0, 1), Cauchy(0, 1), Gamma(3.0, 1.0)):
        low = np.full_like(width, 0.75)
        expected = (low + width - low) * family.pdf(low + width / 2)[:, 0]
        assert_allclose(family.mass(low, low + width)[:, 0], expected, rtol=1e-7)


def test_log_density_is_finite_where_the_density_underflows():
    for family in (Gaussian(0, 1e-3), Laplace(0, 1e-3), Logistic(0, 1e-3), StudentT(200.0, 0, 1e-3)):
        assert np.isfinite(family.logpdf([1e3, -1e3])).all()
    assert np.isfinite(Cauchy(0, 1).logpdf([1e300, -1e300])).all()
    assert np.isfinite(StudentT(0.5, 0, 1).logpdf([1e300, -1e300])).all()


def test_beta_quantiles_far_below_what_scipy_inverts():
    """For a = 2, b = 1 the cdf is u^2; the other shapes are checked by the cdf of the quantile."""
    q = np.array([1e-300, 1e-200, 1e-30, 1e-3])
    assert_allclose(Beta(2.0, 1.0).ppf(q)[:, 0], np.sqrt(q), rtol=1e-10)
    for a, b in [(2.3265, 700.9), (7.43, 2.24), (5.79, 0.035), (9.9, 9e4), (2.19, 9.5e4)]:
        family = Beta(a, b)
        assert_allclose(family.cdf(family.ppf(q)[:, 0])[:, 0], q, rtol=1e-8)
        assert_allclose(1 - Beta(b, a).isf(q), family.ppf(q), atol=1e-15)


def test_density_at_a_pole_is_large_and_finite():
    assert 300 < Gamma(0.5, 1.0).logpdf(0.0)[0] < np.inf
    assert (Beta(0.5, 0.5).logpdf([0.0, 1.0]) > 300).all()
    assert np.isfinite(Beta(0.5, 0.5).logpdf([0.0, 1.0])).all()


def test_point_mass_is_a_jump():
    atom = PointMass(1.5)
    x = np.array([np.nextafter(1.5, 0), 1.5, np.nextafter(1.5, 2)])
    assert_array_equal(atom.cdf(x)[:, 0], [0, 1, 1])
    assert_array_equal(atom.pdf(x)[:, 0], [0, 1, 0])
    assert_array_equal(atom.mass([1.0, 1.5], [1.5, 2.0])[:, 0], [1, 0])
