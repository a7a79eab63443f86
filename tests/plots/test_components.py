"""One variable given each component."""

import numpy as np
import pytest
from tests.plots.cases import TREES, mixed

from jointwise.plots import plot_components

DENSITY = mixed()


def test_rows_are_components_as_high_as_their_weights():
    ax = plot_components(DENSITY, "tree")
    heights = np.asarray(ax.collections[0].get_coordinates())[:, 0, 1]
    np.testing.assert_allclose(heights, [0.0, 0.6, 1.0])
    given = np.asarray(ax.collections[0].get_array()).reshape(2, 3)
    np.testing.assert_allclose(given, DENSITY.mixture.coefficients[DENSITY.schema.index("tree")].T, rtol=1e-12)
    marginal = np.diff(heights) @ given
    np.testing.assert_allclose(marginal, [DENSITY.probability({"tree": tree}) for tree in TREES], rtol=1e-12)


@pytest.mark.parametrize("name", DENSITY.names)
def test_every_kind_has_components(name):
    ax = plot_components(DENSITY, name)
    ax.figure.draw_without_rendering()
    assert ax.get_xlabel() == name
    unit = "probability" if name in {"age", "count", "tree", "long"} else "density"
    assert ax.figure.axes[-1].get_ylabel() == f"{unit} given the component"


def test_a_spike_is_a_strip_of_probabilities():
    ax = plot_components(DENSITY, "rain")
    strip = np.asarray(ax.collections[1].get_array()).ravel()
    np.testing.assert_allclose(strip, DENSITY.mixture.coefficients[1][1], rtol=1e-12)
