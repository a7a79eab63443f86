"""Without matplotlib the package works, and a plot names what to install."""

import subprocess
import sys

import pytest
from tests.plots.cases import mixed

from jointwise.exceptions import MissingDependencyError
from jointwise.plots import plot_corner, plot_distances, plot_marginal


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot_marginal(mixed(), "height"),
        lambda: plot_corner(mixed(), ["height", "tree"]),
        lambda: plot_distances([{"method": "a", "n": 5, "D": 1.0}]),
    ],
)
def test_it_is_asked_for_by_name(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'jointwise\[plot\]'"):
        draw()


def test_importing_the_plots_does_not_import_it():
    code = "import sys, jointwise.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
