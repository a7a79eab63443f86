"""Splines of a column's 1-D fit: smooth laws of its fine bins."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.interpolate import BSpline

from jointwise.fitting.trees.splines import DEGREE, splines


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), n_knots=st.integers(0, 12), power=st.sampled_from([1, 8]))
def test_the_mixture_of_splines_is_the_fit(seed, n, n_knots, power):
    rng = np.random.default_rng(seed)
    masses = rng.uniform(0.01, 1, n) ** power
    found = splines(masses, rng.integers(0, n + 1, n_knots))
    assert (found.table >= 0).all()
    assert np.allclose(found.table.sum(axis=1), 1)
    assert found.weights.sum() == pytest.approx(1)
    assert np.allclose(found.weights @ found.table, masses / masses.sum(), atol=1e-6)
    assert (found.table.max(axis=0) > 0).all()


def test_bins_between_knots_have_three_splines():
    found = splines(np.full(40, 1.0), np.arange(4, 40, 4))
    assert len(found.weights) == 10 + DEGREE
    assert ((found.table > 0).sum(axis=0) == DEGREE + 1).all()


def test_masses_are_areas():
    masses, knots = np.array([0.1, 0.2, 0.3, 0.25, 0.15]), np.array([2, 3])
    found, ends = splines(masses, knots), np.append(0, np.cumsum(masses))
    t = np.concatenate([np.zeros(3), ends[knots], np.ones(3)])
    for k in range(len(found.weights)):
        spline = BSpline.basis_element(t[k : k + 4], extrapolate=False)
        areas = [quad(lambda u, b=spline: np.nan_to_num(b(u)), a, c)[0] for a, c in pairwise(ends)]
        assert np.allclose(found.table[k], np.array(areas) / np.sum(areas), atol=1e-6)
