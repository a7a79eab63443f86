"""Pictures beside stored ones. JOINTWISE_BASELINE=write pytest tests/plots stores what is drawn now: look at it first.

Texts are taken out, since fonts are drawn differently by each version of matplotlib; other tests read them.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.testing.compare import compare_images
from matplotlib.testing.decorators import remove_ticks_and_titles
from tests.plots.cases import mixed

from jointwise.plots import (
    plot_components,
    plot_corner,
    plot_distances,
    plot_marginal,
    plot_mutual_information,
    plot_pair,
)

BASELINE = Path(__file__).parents[1] / "baseline"
# Root mean square of the differences, in steps of 8 bits. matplotlib 3.9.4 and 3.11.2 draw the same (0.0); the least
# change that must be noticed, the thin lines of the atoms missing, gives 2.8, and a curve that is missing 12 to 17.
TOLERANCE = 1.0
DENSITY = mixed()
ROWS = DENSITY.sample(200, rng=0)
DISTANCES = [
    {"method": method, "n": n, "D": scale * n**-0.3 * (1 + 0.1 * seed)}
    for method, scale in (("a", 3.0), ("b", 4.0))
    for n in (500, 5000, 50_000)
    for seed in range(3)
]

PICTURES = {
    "marginal": lambda ax: plot_marginal(DENSITY, "height", data=ROWS, ax=ax),
    "marginal_spike": lambda ax: plot_marginal(DENSITY, "rain", data=ROWS, ax=ax),
    "marginal_list": lambda ax: plot_marginal(DENSITY, "long", data=ROWS, ax=ax),
    "pair": lambda ax: plot_pair(DENSITY, "height", "rain", data=ROWS, ax=ax),
    "pair_names": lambda ax: plot_pair(DENSITY, "tree", "day", data=ROWS, ax=ax),
    "components": lambda ax: plot_components(DENSITY, "day", ax=ax),
    "information": lambda ax: plot_mutual_information(DENSITY.marginal(["height", "rain", "count", "tree"]), ax=ax),
    "distances": lambda ax: plot_distances(DISTANCES, ax=ax),
}


def new_axes():
    return plt.subplots(figsize=(3.2, 2.4), dpi=60)[1]


def save(figure, path):
    """Write a small picture without texts."""
    for ax in figure.axes:
        if ax.get_legend():
            ax.get_legend().remove()
        for text in list(ax.texts):
            text.remove()
        ax.set(xlabel="", ylabel="")
        ax.set_title("", loc="right")
    remove_ticks_and_titles(figure)
    figure.savefig(path, dpi=60, metadata={"Software": None})


def difference(figure, name, folder):
    """Sentence on how the picture differs from the stored one, or None."""
    if os.environ.get("JOINTWISE_BASELINE") == "write":
        save(figure, BASELINE / f"{name}.png")
    save(figure, folder / f"{name}.png")
    return compare_images(str(BASELINE / f"{name}.png"), str(folder / f"{name}.png"), TOLERANCE)


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_the_stored_one(name, tmp_path):
    message = difference(PICTURES[name](new_axes()).figure, name, tmp_path)
    assert message is None, message


def test_corner_is_the_stored_one(tmp_path):
    axes = plot_corner(DENSITY, ["height", "rain", "tree"], data=ROWS)
    figure = axes[0, 0].figure
    figure.set_layout_engine("none")  # it makes room for texts, whose size is their font's
    figure.set_size_inches(4, 4)
    for (i, k), ax in np.ndenumerate(axes):
        ax.set_position([0.05 + 0.31 * k, 0.67 - 0.31 * i, 0.28, 0.28])
    assert difference(figure, "corner", tmp_path) is None


@pytest.mark.skipif(os.environ.get("JOINTWISE_BASELINE") == "write", reason="wrong pictures are not to be stored")
def test_a_wrong_picture_is_noticed(tmp_path):
    ax = PICTURES["marginal"](new_axes())
    curve = next(line for line in ax.lines if line.get_label() == "model")
    curve.set_xdata(np.asarray(curve.get_xdata()) + 0.02)
    assert difference(ax.figure, "marginal", tmp_path) is not None
    ax = PICTURES["marginal"](new_axes())
    for line in list(ax.lines):
        if line.get_label() != "model":
            line.remove()
    assert difference(ax.figure, "marginal", tmp_path) is not None
