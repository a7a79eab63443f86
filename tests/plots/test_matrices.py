"""Mutual information of pairs, and a variable given each component."""

import numpy as np
import pytest
from tests.plots.cases import TREES, labels, mixed

from jointwise.exceptions import InputError
from jointwise.plots import plot_components, plot_mutual_information

DENSITY = mixed()


def test_cells_are_mutual_information_below_the_diagonal():
    density = DENSITY.marginal(["height", "tree", "count"])
    ax = plot_mutual_information(density)
    shown = np.ma.filled(ax.images[0].get_array(), np.nan)
    expected = density.mutual_information("tree", "height").value
    assert shown[0, 0] == pytest.approx(expected)
    assert np.isnan(shown[0, 1])
    assert labels(ax.xaxis) == ["height", "tree"]
    assert labels(ax.yaxis) == ["tree", "count"]
    assert ax.texts[0].get_text() == f"{expected:.2f}"
    assert ax.figure.axes[-1].get_ylabel() == "mutual information (nats)"


def test_independence_is_white():
    alone = DENSITY.condition({"tree": "ash"}).marginal(["height", "count"])
    one = type(alone)(alone.schema, type(alone.mixture)([1.0], [b[:, :1] for b in alone.mixture.coefficients],
                                                        alone.mixture.dictionaries))  # fmt: skip
    image = plot_mutual_information(one).images[0]
    np.testing.assert_allclose(image.to_rgba(image.get_array())[0, 0], 1.0, atol=1e-6)


def test_one_variable_has_no_mutual_information():
    with pytest.raises(InputError, match="only 'tree'"):
        plot_mutual_information(DENSITY.marginal("tree"))


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
