"""Distances against the number of rows."""

import numpy as np
import pytest
from tests.plots.cases import labels, legend, mixed

from jointwise.exceptions import InputError
from jointwise.plots import plot_distances

ROWS = {name: column for name, column in mixed().sample(200, rng=0).items() if name in {"height", "tree", "count"}}


def results(**methods):
    return [{"method": name, "n": n, "D": d} for name, by_n in methods.items() for n, ds in by_n.items() for d in ds]


def test_points_are_means_and_bars_standard_errors():
    ax = plot_distances(results(a={500: [0.2, 0.4], 5000: [0.1, 0.1]}, b={500: [1.0]}))
    line, _, (bars,) = ax.containers[0]
    np.testing.assert_allclose(line.get_ydata(), [0.3, 0.1])
    assert line.get_xdata() == pytest.approx([500, 5000], rel=0.02)
    np.testing.assert_allclose([segment[:, 1] for segment in bars.get_segments()], [[0.2, 0.4], [0.1, 0.1]])
    assert legend(ax) == ["a", "b"]
    assert labels(ax.xaxis) == ["500", "5,000"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_infinite_distances_are_left_out_and_counted():
    ax = plot_distances(results(a={500: [0.2, np.inf]}, b={500: [np.inf]}))
    np.testing.assert_allclose(ax.containers[0][0].get_ydata(), [0.2])
    assert legend(ax) == ["a (1 of 2 not finite)", "b (1 of 1 not finite)"]


def test_ten_methods_all_look_different():
    ax = plot_distances(results(**{f"m{i}": {500: [i + 1.0], 1000: [i + 0.5]} for i in range(10)}))
    looks = {(c[0].get_color(), c[0].get_marker(), c[0].get_linestyle()) for c in ax.containers}
    assert len(looks) == 10


def test_rows_must_have_their_keys():
    with pytest.raises(InputError, match="lacks 'D'"):
        plot_distances([{"method": "a", "n": 5}])
    with pytest.raises(InputError, match="no rows"):
        plot_distances([])
