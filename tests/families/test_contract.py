"""One suite for all families: shapes, limits, laws of probability, equality and immutability."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from jointwise.exceptions import ImpossibleEventError, InputError, UnknownNameError
from jointwise.families import FAMILIES, Gaussian, Lattice, PointMass, Uniform, Warped, family_from_dict
from jointwise.warps import Warp

QUANTILES = np.array([1e-12, 1e-6, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-6])
POINTS = np.array([-1e300, -1e9, -40.0, -1.0, -0.0, 0.0, 0.3, 1.0, 2.5, 4.0, 30.5, 1e3, 1e9, 1e300])


def typical_points(family):
    """Return quantiles of every atom and fixed points, in one sorted array."""
    points = np.concatenate([family.ppf(QUANTILES).ravel(), POINTS])
    return np.unique(points[np.isfinite(points)])


def kinks(family):
    """Return where the density of a warped family has kinks: at the knots of its warps."""
    if not isinstance(family, Warped):
        return []
    return [*family.x, *Warp(family.x, family.w, family.slopes).inverse(kinks(family.base))]


def test_every_registered_family_is_in_the_table(instances):
    assert {f.name for f in instances.values()} == set(FAMILIES)


@pytest.mark.parametrize("method", ["logpdf", "pdf", "cdf", "sf"])
def test_shape_is_that_of_x_then_atoms(family, method):
    for shape in [(), (4,), (2, 3), (0,)]:
        assert getattr(family, method)(np.ones(shape)).shape == (*shape, family.n_atoms)


def test_shapes_of_quantiles_masses_and_summaries(family):
    assert family.ppf(np.full((2, 3), 0.4)).shape == (2, 3, family.n_atoms)
    assert family.isf(0.4).shape == (family.n_atoms,)
    assert family.mass(np.zeros((4, 1)), np.ones(3)).shape == (4, 3, family.n_atoms)
    for summary in (family.mean(), family.var(), family.mode(), *family.support()):
        assert summary.shape == (family.n_atoms,)


def test_limits_at_infinity_and_nan(family):
    ends = [-np.inf, np.inf, np.nan]
    atoms = np.ones(family.n_atoms)
    assert_array_equal(family.logpdf(ends), np.outer([-np.inf, -np.inf, np.nan], atoms))
    assert_array_equal(family.cdf(ends), np.outer([0, 1, np.nan], atoms))
    assert_array_equal(family.sf(ends), np.outer([1, 0, np.nan], atoms))


def test_values_are_numbers_in_range_everywhere(family):
    x = typical_points(family)
    log_density = family.logpdf(x)
    assert not np.isnan(log_density).any()
    assert (log_density < np.inf).all()
    for values in (family.cdf(x), family.sf(x)):
        assert ((values >= 0) & (values <= 1)).all()
    assert_allclose(family.cdf(x) + family.sf(x), 1, rtol=0, atol=1e-9)  # narrow intervals: see Family.mass


def test_density_is_zero_outside_the_support(family):
    low, high = family.support()
    outside = np.concatenate([low - 1, high + 1])
    outside = outside[np.isfinite(outside)]
    density = family.logpdf(outside)
    beyond = (outside[:, None] < low) | (outside[:, None] > high)
    assert np.isneginf(density[beyond]).all()


def test_cdf_is_monotone_and_right_continuous(family):
    x = typical_points(family)
    x = x[np.abs(x) < 1e200]
    assert (np.diff(family.cdf(x), axis=0) >= -1e-15).all()
    assert (np.diff(family.sf(x), axis=0) <= 1e-15).all()
    # a step of some units in the last place moves a bounded density's cdf by rounding only
    near_pole = (family.logpdf(x) > 10) & (not family.is_discrete)
    jump = family.cdf(x + 1e-13 * np.maximum(1, np.abs(x))) - family.cdf(x)
    assert (np.abs(jump[~near_pole]) < 1e-8).all()


def test_ppf_is_the_smallest_point_that_reaches_q(family):
    x = family.ppf(QUANTILES)
    for atom in range(family.n_atoms):
        reached = family.cdf(x[:, atom])[:, atom]
        if family.is_discrete:
            assert (reached >= QUANTILES * (1 - 1e-9)).all()
            assert (family.cdf(x[:, atom] - 0.5)[:, atom] < QUANTILES).all()
        else:
            spacing = 3e-15 * np.abs(x[:, atom]) * family.pdf(x[:, atom])[:, atom]  # of numbers near x
            assert (np.abs(reached - QUANTILES) <= 1e-7 * QUANTILES + spacing).all()


def test_isf_is_the_quantile_from_above(family):
    q = np.array([0.125, 0.25, 0.5, 0.75])
    assert_allclose(family.isf(q), family.ppf(1 - q), rtol=1e-9, atol=1e-12)
    if not family.is_discrete:
        small = np.array([1e-250, 1e-30, 1e-3])
        x = family.isf(small)
        reached = np.stack([family.sf(x[:, atom])[:, atom] for atom in range(family.n_atoms)], axis=1)
        # near a finite end of the support, neighbouring numbers are further apart than q resolves
        resolved = np.isfinite(x) & (x < family.support()[1] - 1e-3)
        assert_allclose(reached[resolved], np.broadcast_to(small[:, None], x.shape)[resolved], rtol=1e-8)


def test_quantiles_at_zero_and_one_are_the_ends_of_the_support(family):
    low, high = family.support()
    assert_array_equal(family.ppf(0.0), low)
    assert_array_equal(family.ppf(1.0), high)
    assert_array_equal(family.isf(1.0), low)
    assert_array_equal(family.isf(0.0), high)


@pytest.mark.parametrize("q", [-0.1, 1.5])
def test_quantile_of_no_probability_is_refused(family, q):
    with pytest.raises(InputError, match=r"probabilities in \[0, 1\]"):
        family.ppf([0.5, q])


def test_mass_of_the_line_is_one_and_of_nothing_zero(family):
    assert_allclose(family.mass(-np.inf, np.inf), 1, rtol=1e-15)
    x = typical_points(family)
    assert_array_equal(family.mass(x, x), 0)
    assert_array_equal(family.mass(x + 1, x), 0)
    assert_array_equal(family.mass([-np.inf, np.inf], [-np.inf, np.inf]), 0)


@settings(deadline=None, max_examples=25)
@given(cuts=st.lists(st.floats(-60, 60), min_size=1, max_size=8))
def test_masses_of_bins_sum_to_one(family, cuts):
    edges = np.concatenate([[-np.inf], np.sort(cuts), [np.inf]])
    masses = family.mass(edges[:-1], edges[1:])
    assert (masses >= 0).all()
    assert_allclose(masses.sum(axis=0), 1, rtol=1e-7)


@settings(deadline=None, max_examples=20)
@given(cuts=st.lists(st.floats(-30, 30), max_size=6, unique=True))
def test_a_partition_is_the_mass_of_its_intervals(family, cuts):
    edges = np.unique(cuts)
    expected = family.mass(np.append(-np.inf, edges), np.append(edges, np.inf))
    # a difference of two tails loses at most the rounding of the larger one
    assert_allclose(family.partition(edges), expected, rtol=1e-7, atol=1e-15)
    if len(edges) > 1:
        assert_allclose(family.inside(edges[0], edges[1]), expected[1], rtol=1e-7, atol=1e-15)


def test_density_adds_up_to_interval_masses(family):
    for atom in range(family.n_atoms):
        one = family.take([atom])
        low, high = one.ppf([0.2, 0.7])[:, 0]
        if family.is_discrete:
            k = np.arange(np.floor(low) + 1, np.floor(high) + 1)
            total = one.pdf(k).sum()
        else:
            node, weight = np.polynomial.legendre.leggauss(60)
            ends = np.unique(np.clip([low, high, one.mode()[0], *kinks(one)], low, high))
            total = sum(
                0.5 * (b - a) * weight @ one.pdf(a + 0.5 * (b - a) * (node + 1))[:, 0] for a, b in pairwise(ends)
            )
        assert_allclose(total, one.mass(low, high)[0], rtol=2e-6)


def test_mode_has_the_highest_density(family):
    x = typical_points(family)
    at_mode = np.diagonal(family.logpdf(family.mode()))
    assert (family.logpdf(x) <= at_mode + 2e-9).all()


def test_take_keeps_the_named_atoms(family):
    x = typical_points(family)
    order = np.arange(family.n_atoms)[::-1]
    assert_array_equal(family.take(order).logpdf(x), family.logpdf(x)[:, order])
    mask = np.arange(family.n_atoms) == 1
    assert family.take(mask) == family.take([1])
    assert family.take(mask).n_atoms == 1


def test_take_of_nothing_is_refused(family):
    with pytest.raises(InputError, match="at least one"):
        family.take(np.zeros(family.n_atoms, dtype=bool))


@settings(deadline=None, max_examples=20)
@given(cut=st.floats(-5, 40), q=st.floats(0.05, 0.95))
def test_law_of_total_probability(family, cut, q):
    below, above = family.mass(-np.inf, cut), family.mass(cut, np.inf)
    both = (below > 1e-250) & (above > 1e-250)
    if not both.any():
        return
    kept = family.take(both)
    left, right = kept.truncate(-np.inf, cut), kept.truncate(cut, np.inf)
    x = np.concatenate([kept.ppf(q), [cut - 1, cut + 1]])
    total = below[both] * left.cdf(x) + above[both] * right.cdf(x)
    assert_allclose(total, kept.cdf(x), rtol=1e-7, atol=1e-12)


@settings(deadline=None, max_examples=20)
@given(cuts=st.lists(st.floats(-5, 40), min_size=4, max_size=4, unique=True))
def test_truncating_twice_is_truncating_to_the_intersection(family, cuts):
    a, b, c, d = sorted(cuts)
    kept = family.mass(b, c) > 1e-250
    if not kept.any():
        return
    kept = family.take(kept)
    twice, once = kept.truncate(a, c).truncate(b, d), kept.truncate(b, c)
    x = np.linspace(a, d, 9)
    assert_allclose(twice.cdf(x), once.cdf(x), rtol=1e-9)
    assert_allclose(twice.logpdf(x), once.logpdf(x), rtol=1e-9, atol=1e-9)
    assert_allclose(twice.mass(-np.inf, np.inf), 1, rtol=1e-12)


def test_truncating_to_the_line_changes_nothing(family):
    assert family.truncate(-np.inf, np.inf) == family


def test_truncating_to_where_nothing_is_says_so(family):
    if (family.mass(1e307, 1.5e307) > 0).all():
        return  # a Cauchy tail
    with pytest.raises(ImpossibleEventError, match="no mass in"):
        family.truncate(1e307, 1.5e307)


def test_dict_round_trip(family):
    data = family.to_dict()
    assert data["family"] == family.name
    assert family_from_dict(data) == family


def test_equality_is_of_kind_and_parameters(family):
    assert family == family.take(np.arange(family.n_atoms))
    assert family != family.take([0])
    assert family != "gaussian"
    assert family == copy.deepcopy(family)
    assert family == pickle.loads(pickle.dumps(family))
    with pytest.raises(TypeError, match="unhashable"):
        hash(family)


def test_a_family_is_immutable(family):
    field = dataclasses.fields(family)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(family, field, 0.0)
    value = getattr(family, field)
    if isinstance(value, np.ndarray):
        with pytest.raises(ValueError, match="read-only"):
            value[0] = 1.0


def test_summaries_are_the_callers_to_change(family):
    for summary in (family.mean, family.var, family.mode):
        before = summary()
        summary()[:] = 17.0
        assert_array_equal(summary(), before)


def test_unknown_family_lists_the_known():
    with pytest.raises(UnknownNameError, match=r"Unknown family 'weibull'\. Known: gaussian, laplace"):
        family_from_dict({"family": "weibull"})
    with pytest.raises(InputError, match="a mapping"):
        family_from_dict(["gaussian"])
    with pytest.raises(InputError, match=r"gaussian takes the parameters loc, scale, got 'loc'\."):
        family_from_dict({"family": "gaussian", "loc": 0.0})
    with pytest.raises(InputError, match="got 'loc', 'scale', 'shape'"):
        family_from_dict({"family": "gaussian", "loc": 0.0, "scale": 1.0, "shape": 2.0})


def test_truncation_keeps_simple_families_simple():
    assert Uniform(0.0, [1.0, 4.0]).truncate(0.5, 2.0) == Uniform(0.5, [1.0, 2.0])
    assert PointMass([1.0, 2.0]).truncate(0.0, 2.0) == PointMass([1.0, 2.0])
    with pytest.raises(ImpossibleEventError, match="Atom 0 of 2 point_mass"):
        PointMass([1.0, 2.0]).truncate(1.0, 2.0)
    integer = Lattice(Gaussian(0.0, 2.0))
    assert integer.truncate(0.2, 3.9) == Lattice(Gaussian(0.0, 2.0).truncate(0.5, 3.5))
    assert_allclose(integer.truncate(0.2, 3.9).pdf(np.arange(5.0))[:, 0].nonzero()[0], [1, 2, 3])
