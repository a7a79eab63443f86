"""Pictures of two variables: colours are exact means over cells, points are at the rows."""

import itertools

import numpy as np
import pytest
from tests.plots.cases import TREES, labels, mixed

from jointwise.exceptions import InputError
from jointwise.plots import plot_corner, plot_pair

DENSITY = mixed()
ROWS = DENSITY.sample(300, rng=0)
KINDS = ("height", "rain", "day", "age", "count", "tree", "long")


def mesh(ax, position=0):
    """Edges and heights of a heat map: (K + 1,), (L + 1,) and (K, L)."""
    found = [each for each in ax.collections if type(each).__name__ == "QuadMesh"][position]
    corners = np.asarray(found.get_coordinates())
    return corners[0, :, 0], corners[:, 0, 1], found.get_array().reshape(corners.shape[0] - 1, -1).T


def test_colours_are_probabilities_of_cells_over_their_areas():
    x, y, heights = mesh(plot_pair(DENSITY, "height", "tail"))
    for i, k in itertools.product((0, 40, 77, 149), repeat=2):
        box = {"height": (x[i], x[i + 1]), "tail": (y[k], y[k + 1])}
        area = (x[i + 1] - x[i]) * (y[k + 1] - y[k])
        assert heights[i, k] == pytest.approx(DENSITY.probability(box) / area, rel=1e-6, abs=1e-14)


def test_names_meet_numbers():
    ax = plot_pair(DENSITY, "tree", "height", data=ROWS)
    x, y, heights = mesh(ax)
    np.testing.assert_array_equal(x, [-0.5, 0.5, 1.5, 2.5])
    middle = (y[70] + y[71]) / 2
    assert heights[1, 70] == pytest.approx(
        float(DENSITY.marginal(["tree", "height"]).pdf({"tree": "birch", "height": middle})[0]), rel=1e-3
    )
    assert labels(ax.xaxis) == list(TREES)


def test_names_meet_names():
    _, _, heights = mesh(plot_pair(DENSITY, "tree", "count"))
    expected = [[DENSITY.probability({"tree": tree, "count": k}) for k in range(3)] for tree in TREES]
    np.testing.assert_allclose(heights, expected, rtol=1e-12)
    assert plot_pair(DENSITY, "tree", "count").figure.axes[-1].get_ylabel() == "probability"


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations(KINDS, 2)))
def test_every_pair_of_kinds_is_drawn_with_its_names_and_points(a, b):
    ax = plot_pair(DENSITY, a, b, data=ROWS)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (a, b)
    points = ax.collections[-1].get_offsets()
    assert 250 < len(points) <= 300
    (left, right), (low, high) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    assert ((points >= [left, low]) & (points <= [right, high])).all()


def test_points_stay_in_their_cells_and_strips():
    ax = plot_pair(DENSITY, "rain", "tree", data=ROWS)
    points = ax.collections[-1].get_offsets()
    rain, tree = np.asarray(ROWS["rain"]), np.array([TREES.index(t) for t in ROWS["tree"]])
    shown = (rain == 0) | ((rain >= mesh(ax)[0][0]) & (rain <= mesh(ax)[0][-1]))
    np.testing.assert_array_equal(np.round(points[:, 1]), tree[shown])
    left, right = mesh(ax, 1)[0]
    in_strip = (points[:, 0] > left) & (points[:, 0] < right)
    np.testing.assert_array_equal(in_strip, rain[shown] == 0)


def test_a_strip_shows_the_other_variable_given_the_spike():
    ax = plot_pair(DENSITY, "rain", "height")
    _, y, heights = mesh(ax, 1)
    given = DENSITY.condition({"rain": 0.0})
    expected = [given.probability({"height": ends}) for ends in itertools.pairwise(y)]
    shares = heights[0] * np.diff(y)
    np.testing.assert_allclose(shares, np.array(expected) * DENSITY.probability({"rain": 0.0}), rtol=1e-6, atol=1e-15)
    ax = plot_pair(DENSITY, "height", "rain")
    assert labels(ax.yaxis, minor=True)[0].startswith("0: ")


def test_many_rows_are_thinned_evenly():
    many = {name: np.tile(np.asarray(ROWS[name]), 20) for name in ("height", "tail")}
    ax = plot_pair(DENSITY, "height", "tail", data=many)
    assert 1000 < len(ax.collections[-1].get_offsets()) <= 2000


def test_a_variable_is_no_pair_with_itself():
    with pytest.raises(InputError, match="see plot_marginal"):
        plot_pair(DENSITY, "tree", "tree")


def test_a_corner_has_marginals_on_its_diagonal_and_names_at_its_edges():
    names = ["height", "rain", "tree"]
    axes = plot_corner(DENSITY, names, data=ROWS)
    assert axes.shape == (3, 3)
    assert [ax.get_xlabel() for ax in axes[-1]] == names
    assert [ax.get_ylabel() for ax in axes[1:, 0]] == names[1:]
    assert not any(axes[i, k].axison for i, k in [(0, 1), (0, 2), (1, 2)])
    for column in range(2):
        assert len({ax.get_xlim() for ax in axes[column:, column]}) == 1
    x, y = axes[0, 0].lines[0].get_data()
    np.testing.assert_allclose(y, DENSITY.marginal("height").pdf({"height": x}), rtol=1e-12)
    assert labels(axes[-1, 2].xaxis) == list(TREES)


def test_a_corner_of_all_takes_the_first_six():
    axes = plot_corner(DENSITY)
    assert [ax.get_xlabel() for ax in axes[-1]] == list(DENSITY.names[:6])


def test_colours_fall_evenly_in_lightness():
    from jointwise.plots._colours import cie_lightness, colour_map

    lightness = cie_lightness(colour_map()(np.linspace(0, 1, 101))[:, :3])
    steps = -np.diff(lightness)
    assert steps.min() > 0
    # 256 colours of 8 bits: a step of 101 may be off by one of them
    assert np.ptp(steps) < 0.5
