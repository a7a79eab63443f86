"""Pictures of a sum of experts are those of the mixture that it equals."""

import numpy as np
import pytest
from tests.joint.experts import taken_apart
from tests.plots.cases import mixed

from jointwise.plots import plot_components, plot_corner, plot_marginal, plot_mutual_information, plot_pair

WHOLE = mixed()
APART = taken_apart(WHOLE)
ROWS = WHOLE.sample(200, rng=0)


def meshes(ax):
    return [c.get_array() for c in ax.collections if type(c).__name__ == "QuadMesh"]


@pytest.mark.parametrize(("a", "b"), [("height", "rain"), ("age", "tree"), ("day", "count"), ("tree", "long")])
def test_pairs(a, b):
    ours, theirs = (meshes(plot_pair(density, a, b, data=ROWS)) for density in (APART, WHOLE))
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", WHOLE.names)
def test_marginals(name):
    ours, theirs = (plot_marginal(density, name, data=ROWS) for density in (APART, WHOLE))
    model = [next(line for line in ax.lines if line.get_label() == "model") for ax in (ours, theirs)]
    for x, y in zip(model[0].get_data(), model[1].get_data(), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
    assert ours.get_xlabel() == theirs.get_xlabel()


@pytest.mark.parametrize("name", WHOLE.names)
def test_components(name):
    ours, theirs = (meshes(plot_components(density, name)) for density in (APART, WHOLE))
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_corner_and_mutual_information():
    names = ["height", "rain", "tree", "count"]
    assert plot_corner(APART, names, data=ROWS).shape == (4, 4)
    ours, theirs = (
        plot_mutual_information(density.marginal(names)).images[0].get_array() for density in (APART, WHOLE)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-4)  # quadrature on fewer points
