"""Truncated and lattice families against closed forms, SciPy and plain sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats

from jointwise.families import (
    Cauchy,
    Exponential,
    Gamma,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    Lattice,
    LogNormal,
    StudentT,
    Truncated,
    Uniform,
)


@settings(deadline=None, max_examples=30)
@given(loc=st.floats(-3, 3), scale=st.floats(0.25, 5), low=st.floats(-4, 4), width=st.floats(0.1, 6))
@example(loc=1.0, scale=1.0, low=6.639780383536758e-268, width=0.25)
@example(loc=0.0, scale=0.986328125, low=-1.28125, width=3.6953125)  # quadrature on coarse levels stopped by chance
def test_truncated_gaussian_agrees_with_scipy(loc, scale, low, width):
    family = Truncated(Gaussian(loc, scale), low, low + width)
    reference = stats.truncnorm((low - loc) / scale, (low + width - loc) / scale, loc, scale)
    x, q = np.linspace(low - 0.5, low + width + 0.5, 11), np.linspace(0.01, 0.99, 9)
    x = x[np.minimum(np.abs(x - low), np.abs(x - low - width)) > 1e-9]  # which side of an end is a matter of rounding
    assert_allclose(family.logpdf(x)[:, 0], reference.logpdf(x), rtol=1e-9, atol=1e-9)
    assert_allclose(family.cdf(x)[:, 0], reference.cdf(x), rtol=1e-8, atol=1e-14)
    assert_allclose(family.sf(x)[:, 0], reference.sf(x), rtol=1e-8, atol=1e-14)
    assert_allclose(family.ppf(q)[:, 0], reference.ppf(q), rtol=1e-8, atol=1e-9)
    # SciPy's variance cancels in the tails: Gauss-Legendre on pieces of the interval instead
    node, weight = np.polynomial.legendre.leggauss(20)
    edge = np.linspace(low, low + width, 101)
    points = (edge[:-1, None] + 0.5 * (width / 100) * (node + 1)).ravel()
    mass = np.tile(0.5 * width / 100 * weight, 100) * reference.pdf(points)
    assert_allclose(family.mean()[0], mass @ points, rtol=1e-8, atol=1e-9)
    assert_allclose(family.var()[0], mass @ (points - mass @ points) ** 2, rtol=1e-6)


@pytest.mark.parametrize("low", [8.0, 20.0, 30.0, 37.0])
def test_far_gaussian_tail(low):
    family = Gaussian([0.0, 1.0], [1.0, 1.0]).truncate(low, np.inf)
    start = low - np.array([0.0, 1.0])
    hazard = np.exp(stats.norm.logpdf(start) - stats.norm.logsf(start))
    assert_allclose(family.mean() - low, hazard - start, rtol=1e-8)
    # variance 1 + a h - h^2 cancels: its asymptotic series instead
    series = 1 / start**2 - 6 / start**4 + 50 / start**6 - 518 / start**8 + 6354 / start**10
    assert_allclose(family.var(), series, rtol=1e5 / (low - 1) ** 10 + 1e-8)
    x = low + np.array([0.1, 1.0, 5.0]) / low
    assert_allclose(np.log(family.sf(x))[:, 0], stats.norm.logsf(x) - stats.norm.logsf(low), rtol=1e-9, atol=1e-11)
    assert_array_equal(family.mode(), low)


def test_exponential_forgets_where_it_was_cut():
    family = Exponential(0.0, 2.0).truncate(1000.0, np.inf)
    fresh = Exponential(1000.0, 2.0)
    q = np.linspace(0, 0.999, 7)
    assert_allclose(family.ppf(q), fresh.ppf(q), rtol=1e-13)
    assert_allclose(family.mean(), 1002.0, rtol=1e-14)
    assert_allclose(family.var(), 4.0, rtol=1e-9)


def test_cauchy_between_two_ends():
    low, high = 1.0, 50.0
    family = Cauchy(0.0, 1.0).truncate(low, high)
    total = np.arctan(high) - np.arctan(low)
    mean = 0.5 * np.log((1 + high**2) / (1 + low**2)) / total
    assert_allclose(family.mean(), mean, rtol=1e-11)
    assert_allclose(family.var(), (high - low) / total - 1 - mean**2, rtol=1e-10)


def test_far_cauchy_tail_is_a_power_law():
    family = Cauchy(0.0, 1.0).truncate(1e280, np.inf)
    assert_allclose(family.sf([2e280, 1e282])[:, 0], [0.5, 0.01], rtol=1e-12)
    assert_allclose(family.ppf([0.5, 0.99])[:, 0], [2e280, 1e282], rtol=1e-12)


def test_moments_of_half_infinite_heavy_tails():
    student = StudentT([0.5, 1.5, 4.0], 0.0, 1.0)
    right, left = student.truncate(0.0, np.inf), student.truncate(-np.inf, 0.0)
    assert_allclose(
        right.mean(),
        [np.inf, 2 * special.gamma(1.25) / special.gamma(0.75) * np.sqrt(1.5 / np.pi) / 0.5, 1.0],
        rtol=1e-9,
    )
    assert_allclose(left.mean(), -right.mean(), rtol=1e-9)
    assert_allclose(right.var(), [np.nan, np.inf, 1.0], rtol=1e-8)
    bounded = student.truncate(-1.0, 1e4)
    assert np.isfinite(bounded.mean()).all()
    assert np.isfinite(bounded.var()).all()


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1.0, 1e3, 1e9])
def test_moments_do_not_care_about_the_scale(scale):
    for base in (Laplace(0.3 * scale, scale), GeneralizedGaussian(0.7, 0.3 * scale, scale), Gamma(0.4, scale)):
        family = base.truncate(-0.5 * scale, 2.0 * scale)
        x = np.linspace(-0.5, 2.0, 100_001)[1:] * scale
        mass = family.mass(x - x[1] + x[0], x)[:, 0]
        middle = x - 0.5 * (x[1] - x[0])
        mean = mass @ middle
        assert_allclose(family.mean()[0], mean, rtol=1e-6)
        assert_allclose(family.var()[0], mass @ (middle - mean) ** 2, rtol=1e-5)


def test_draws_in_a_far_tail_stay_there():
    family = Gaussian([0.0, 1.0], 1.0).truncate(30.0, np.inf)
    draws = family.sample(np.zeros(4000, dtype=int), np.random.default_rng(3))
    assert (draws > 30).all()
    assert stats.kstest(draws, lambda x: family.cdf(x)[:, 0]).pvalue > 1e-4


# ---- lattice ---------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(loc=st.floats(-20, 20), scale=st.floats(0.05, 30))
def test_lattice_probabilities_are_cell_masses(loc, scale):
    k = np.arange(-30.0, 31.0)
    family = Lattice(Laplace(loc, scale))
    assert_allclose(family.pdf(k), Laplace(loc, scale).mass(k - 0.5, k + 0.5), rtol=1e-12, atol=1e-300)
    assert_allclose(family.cdf(k)[-1] - family.cdf(k)[0], family.pdf(k)[1:].sum(axis=0), atol=1e-12)
    assert_array_equal(family.cdf(k + 0.7), family.cdf(k))
    assert np.isneginf(family.logpdf(k + 0.7)).all()
    assert_allclose(family.mass(k - 1, k), family.pdf(k), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("k", [5.0, 38.0, 45.0, 100.0, 1000.0])
def test_lattice_log_probability_in_a_gaussian_tail(k):
    """Below 1e-290 the cell is log-linear: exact to about 1/(12 k) nats, see Lattice."""
    near, far = special.log_ndtr(-(k - 0.5)), special.log_ndtr(-(k + 0.5))
    expected = near + np.log1p(-np.exp(far - near))
    for at in (k, -k):
        assert_allclose(Lattice(Gaussian(0, 1)).logpdf(at), expected, rtol=0, atol=1e-9 if k < 30 else 1e-2)


def test_lattice_log_probability_in_an_exponential_tail_is_exact():
    family = Lattice(Exponential(0.0, 1.0))
    k = np.array([600.0, 700.0, 1e4])
    assert_allclose(family.logpdf(k)[:, 0], -(k - 0.5) + np.log(-np.expm1(-1.0)), rtol=1e-12)


def test_lattice_where_the_support_ends_in_an_underflowing_cell():
    log_mass = Lattice(Gamma(400.0, 1.0)).logpdf([0.0, -1.0])[:, 0]
    # cdf(1/2) of a gamma with a large shape: x^a e^-x / Gamma(a + 1), to first order in x / a
    assert_allclose(log_mass[0], 400 * np.log(0.5) - 0.5 - special.gammaln(401), rtol=0, atol=0.5)
    assert np.isneginf(log_mass[1])


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e9, 1e12, 1e17])
def test_lattice_of_a_wide_base_has_the_bases_density(scale):
    for base in (Gaussian(0, scale), Cauchy(0, scale), Exponential(-scale, scale, 1)):
        k = np.round(scale * np.array([-0.5, 0.1, 3.0]))
        assert_allclose(Lattice(base).logpdf(k), base.logpdf(k), rtol=0, atol=1 / scale + 3e-8)


def sums(family, reach):
    """Return mean and variance as sums over every integer within ``reach``."""
    k = np.arange(-reach, reach + 1.0)
    mass = family.mass(k - 1, k)
    mean = k @ mass
    return mean, np.sum((k[:, None] - mean) ** 2 * mass, axis=0)


@pytest.mark.parametrize("scale", [1e-3, 0.1, 0.4, 1.0, 7.0, 60.0, 200.0, 900.0])
@pytest.mark.parametrize(
    "make",
    [
        lambda s: Gaussian([0.2, 0.5], s),
        lambda s: Laplace([0.2, 0.5], s),
        lambda s: Exponential([0.2, 0.5], s, [1, -1]),
        lambda s: Uniform([0.2, 0.5], [0.2 + s, 0.5 + 2 * s]),
        lambda s: Gamma([0.5, 3.0], s, 0.1),
        lambda s: Truncated(Gaussian([0.2, 0.5], s), 0.1 - s, 0.6 + s),
    ],
)
def test_lattice_moments_are_those_of_the_plain_sums(make, scale):
    family = Lattice(make(scale))
    mean, var = sums(family, 60_000)
    # a jump of the density beyond the window, of height 1 / scale at a distance of about scale: see Lattice
    jump = 0.0 if scale < 500 else 1 / scale
    assert_allclose(family.mean(), mean, rtol=1e-9, atol=1e-9 + jump / 12)
    assert_allclose(family.var(), var, rtol=1e-9, atol=1e-12 + jump * 1.05 * scale / 6)


def test_lattice_moments_with_heavy_tails():
    narrow = Lattice(StudentT(5.0, [0.2, 0.5], 0.3))
    mean, var = sums(narrow, 60_000)
    assert_allclose(narrow.mean(), mean, rtol=1e-9)
    assert_allclose(narrow.var(), var, rtol=1e-7)
    skew = Lattice(LogNormal(1.0, 1.0))
    mean, var = sums(skew, 200_000)
    assert_allclose(skew.mean(), mean, rtol=1e-9)
    assert_allclose(skew.var(), var, rtol=1e-7)
    assert_allclose(Lattice(StudentT([0.5, 1.5], 0, 1)).mean(), [np.nan, 0], atol=1e-12)
    assert_array_equal(Lattice(StudentT([0.5, 1.5], 0, 1)).var(), [np.nan, np.inf])
    assert np.isnan(Lattice(Cauchy(0, 1)).mean()).all()


def test_lattice_moments_of_a_huge_base_are_sheppards():
    family = Lattice(Gaussian(1e5, 1e4))
    assert_allclose(family.mean(), 1e5, rtol=1e-12)
    assert_allclose(family.var(), 1e8 + 1 / 12, rtol=1e-11)


def test_lattice_mode_may_leave_the_cell_of_the_bases_mode():
    assert_array_equal(Lattice(Exponential([0.3, 0.5, 0.1], [5.0, 5.0, 0.1])).mode(), [1, 1, 0])
    assert_array_equal(Lattice(Gaussian([0.3, 7.8], [1e6, 0.1])).mode(), [0, 8])
