"""Mutual information of all pairs."""

import numpy as np
import pytest
from tests.plots.cases import labels, mixed

from jointwise.exceptions import InputError
from jointwise.plots import plot_mutual_information

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
