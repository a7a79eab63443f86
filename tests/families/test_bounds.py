"""For all accepted parameters draws are finite and no answer is NaN; others are refused with their bounds."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from jointwise.exceptions import ImpossibleEventError, InputError
from jointwise.families import (
    FAMILIES,
    Beta,
    Cauchy,
    Exponential,
    Gamma,
    Gaussian,
    GeneralizedGaussian,
    Lattice,
    LogNormal,
    StudentT,
    Truncated,
    Uniform,
)

LARGEST = np.finfo(float).max
BASES = sorted(set(FAMILIES) - {"lattice", "truncated", "warped", "category"})
# Numbers of every size, their ends and zero included.
ANY = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -LARGEST, LARGEST, 5e-324, 1e-310, 1.0])
SIZES = st.floats(-323.3, 308.2).map(lambda power: max(10.0**power, 5e-324)) | st.sampled_from([5e-324, 1.0, LARGEST])


def between(low, high):
    """Draw numbers of every size between two positive ones, both included."""
    inner = st.floats(np.log10(low), np.log10(high)).map(lambda power: min(max(10.0**power, low), high))
    return inner | st.sampled_from([low, high, 1.0])


@st.composite
def parameters(draw, name):
    """Draw the parameters of one atom, of every size unless a bound is stated."""
    family = FAMILIES[name]
    values = {}
    for key in family.parameter_names():
        if key in family._bounds and family._bounds[key][0] > 0:
            values[key] = draw(between(*family._bounds[key]))
        elif key in family._bounds:
            values[key] = draw(st.floats(*family._bounds[key]))
        elif key in family._positive:
            values[key] = draw(SIZES)
        elif key == "direction":
            values[key] = draw(st.sampled_from([-1.0, 1.0]))
        else:
            values[key] = draw(ANY)
    return values


@st.composite
def atoms(draw, name):
    """Draw one accepted atom, sometimes on the integers or truncated."""
    values = draw(parameters(name))
    try:
        family = FAMILIES[name](**values)
    except InputError:
        family = FAMILIES[name](**values | {"low": 0.0, "high": 1.0})  # ends the wrong way round, or too far apart
    shape = draw(st.sampled_from(["plain", "plain", "truncated", "lattice", "both"])) if not family.is_discrete else ""
    if shape in {"truncated", "both"}:
        ends = sorted([draw(ANY | st.sampled_from([-np.inf, np.inf])), draw(ANY)])
        with suppress(ImpossibleEventError, InputError):
            family = family.truncate(*ends)
    return Lattice(family) if shape in {"lattice", "both"} else family


@pytest.mark.parametrize("name", BASES)
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_draws_are_finite_and_answers_are_numbers(name, data):
    family = data.draw(atoms(name))
    seed = data.draw(st.integers(0, 2**32 - 1))
    x = family.sample(np.zeros(20, dtype=int), np.random.default_rng(seed))
    assert np.isfinite(x).all()
    points = np.concatenate([x, [data.draw(ANY) for _ in range(3)], [-np.inf, np.inf]])
    assert not np.isnan(family.logpdf(points)).any()
    assert not np.isposinf(family.logpdf(points)).any()
    for probability in (family.cdf(points), family.sf(points), family.mass(points, points[::-1])):
        assert ((probability >= 0) & (probability <= 1)).all()
    assert (family.mass(points, points) == 0).all()
    levels = [0.0, 2.0**-54, 1e-12, 0.3, 0.5, 1 - 1e-12, 1.0]
    for quantile in (family.ppf(levels), family.isf(levels)):
        assert not np.isnan(quantile).any()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Gamma(1e308, 1.0), r"shape of gamma must be from 1e-06 to 1e\+09, got 1e\+308 for atom 0"),
        (lambda: Gamma([1.0, 1e-7], 1.0), "shape of gamma must be from .* for atom 1"),
        (lambda: StudentT(0.01, 0.0, 1.0), r"df of student_t must be from 0.1 to 1e\+12, got 0.01"),
        (lambda: StudentT(1e300, 0.0, 1.0), "df of student_t must be from"),
        (lambda: GeneralizedGaussian(0.01, 0.0, 1.0), "shape of generalized_gaussian must be from 0.05"),
        (lambda: GeneralizedGaussian(1e308, 0.0, 1.0), "shape of generalized_gaussian must be from 0.05"),
        (lambda: LogNormal(1e5, 1.0), "log_mean of log_normal must be from -1000 to 1000"),
        (lambda: LogNormal(0.0, 1e5), "log_std of log_normal must be from 1e-12 to 1000"),
        (lambda: LogNormal(0.0, 1e-300), "log_std of log_normal must be from"),
        (lambda: Beta(1e308, 1.0), "a of beta must be from 1e-06"),
        (lambda: Beta(1.0, 1e-300), "b of beta must be from 1e-06"),
        (lambda: Uniform(-1e308, 1e308), "high of uniform must be less than the largest number above low"),
        (lambda: Beta(1.0, 1.0, -1e308, 1e308), "high of beta must be less than the largest number above low"),
        (lambda: Gaussian(10**400, 1.0), "must be numbers"),
        (lambda: Truncated(Gaussian(0, 1), None, 1.0), "low and high of truncated must be numbers"),
        (lambda: Truncated(Gaussian(0, 1), 0.0, 10**400), "low and high of truncated must be numbers"),
    ],
)
def test_parameters_that_float64_cannot_follow_are_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.parametrize("family", [Gaussian(0.0, 1e308), Cauchy(0.0, 1e308), Exponential(0.0, 1.7e308)])
def test_a_draw_beyond_the_largest_number_is_it(family):
    x = family.sample(np.zeros(2000, dtype=int), np.random.default_rng(0))
    assert np.abs(x).max() == LARGEST


def test_an_empty_interval_has_no_mass_even_for_a_narrow_atom():
    assert Gaussian(1.0, [5e-324, 1e-310]).mass(1.0, 1.0).tolist() == [0.0, 0.0]
    assert Uniform(0.0, 1e-310).mass(0.0, 0.0).tolist() == [0.0]


# ---- truncation of truncation ------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.floats(-3, 0.4), st.floats(0.6, 4)), min_size=1, max_size=6))
def test_nested_truncation_is_one_truncation(ends):
    base = Gaussian([0.0, 1.0], [1.0, 2.0])
    nested = base
    for low, high in ends:
        nested = Truncated(nested, low, high)
    low, high = max(e[0] for e in ends), min(e[1] for e in ends)
    assert nested == Truncated(base, low, high)
    assert type(nested.base) is Gaussian
    # the slow version: each level divides by the mass that the level below leaves
    x = np.linspace(low, high, 7)
    logpdf, cdf, at_low, at_high = base.logpdf(x), base.cdf(x), base.cdf(low), base.cdf(high)
    assert_allclose(nested.logpdf(x), logpdf - np.log(at_high - at_low), rtol=1e-9)
    assert_allclose(nested.cdf(x), (cdf - at_low) / (at_high - at_low), atol=1e-12)
    assert_array_equal(nested.truncate(low, high).support(), nested.support())


def test_nested_truncations_that_do_not_meet_are_refused():
    with pytest.raises(InputError, match=r"low of truncated must be below high, got 2\.0 and 1\.0"):
        Truncated(Truncated(Gaussian(0, 1), 0.0, 1.0), 2.0, 3.0)
    with pytest.raises(InputError, match="low of truncated must be below high"):
        Truncated(Truncated(Gaussian(0, 1), 0.0, 1.0), np.nan, 3.0)
