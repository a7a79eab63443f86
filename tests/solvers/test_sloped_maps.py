"""Maps given by their slopes at knots: against quadrature, and their gradients against differences."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.solvers.cases import slow_map

from jointwise.solvers.sloped_maps import SlopedMaps


def random_maps(rng):
    """Two maps, with some coordinates beyond their knots, and their slopes at knots."""
    n_knots = int(rng.integers(2, 8))
    knots = rng.normal(size=(2, 1)) + rng.uniform(0.1, 2.0, (2, 1)) * np.arange(n_knots)
    coordinates = [rng.uniform(k[0] - 1, k[-1] + 1, n) for k, n in zip(knots, (5, 3), strict=True)]
    return coordinates, knots, rng.uniform(0.1, 3.0, knots.shape)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_maps_are_integrals_of_the_slope(seed):
    coordinates, knots, slopes = random_maps(np.random.default_rng(seed))
    found = np.column_stack(SlopedMaps.of(coordinates, knots).values(slopes))
    assert_allclose(found, [slow_map(u, k, s) for us, k, s in zip(coordinates, knots, slopes, strict=True) for u in us])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_gradients_are_the_adjoint_of_values(seed):
    """Maps are linear in the slopes, so products with either side are equal."""
    rng = np.random.default_rng(seed)
    coordinates, knots, slopes = random_maps(rng)
    maps, (by_map, by_slope) = SlopedMaps.of(coordinates, knots), rng.normal(size=(2, 8))
    own, here = maps.values(slopes)
    assert_allclose((maps.pulled(by_map, by_slope) * slopes).sum(), by_map @ own + by_slope @ here, atol=1e-9)
