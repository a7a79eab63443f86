"""Pictures of variables with many spikes or heavy tails: colours that show all of them, ticks that do not meet."""

import itertools

import numpy as np
import pytest
from tests.plots.cases import legend, mixed

from jointwise.dictionary import Dictionary
from jointwise.families import Gaussian, LogNormal, PointMass
from jointwise.joint import JointDensity, ProductMixture
from jointwise.plots import plot_corner, plot_marginal, plot_pair
from jointwise.plots._colours import LEAST_POWER, colour_scale, scale_power
from jointwise.plots._ruler import MOST_STRIPS, Ruler
from jointwise.plots.texts import visible
from jointwise.tables.variables import Schema, Variable

SPIKES = (0.0, 3103.0, 5013.0, 5178.0, 7298.0, 7688.0, 15024.0, 99999.0)


def spiky():
    """Gains, mostly zero, with round values and one far beyond the range; hours; and a skewed number."""
    gain = Dictionary((Gaussian([4000.0, 9000.0], [800.0, 2500.0]), PointMass(list(SPIKES))))
    hours = Dictionary((Gaussian([35.0, 45.0], [9.0, 6.0]), PointMass([20.0, 40.0])))
    skewed = Dictionary((LogNormal([0.0, 1.0], [1.0, 1.2]),))
    rng = np.random.default_rng(0)
    gains = np.array([[0.05, 0.3], [0.01, 0.2], [0.9, 0.1], *rng.dirichlet(np.ones(7), 2).T * [0.04, 0.4]])
    schema = Schema(
        (
            Variable("gain", "continuous", spikes=SPIKES, observed=(0, 99999)),
            Variable("hours", "continuous", spikes=(20.0, 40.0)),
            Variable("skewed", "continuous"),
        ),
        "dict",
    )
    coefficients = [gains, np.array([[0.3, 0.2], [0.2, 0.3], [0.1, 0.1], [0.4, 0.4]]), np.eye(2)]
    return JointDensity(schema, ProductMixture([0.7, 0.3], coefficients, (gain, hours, skewed)))


DENSITY = spiky()
ROWS = DENSITY.sample(3000, rng=0)


def test_few_strips_and_no_mass_is_lost():
    ruler = Ruler.of(DENSITY, "gain")
    assert len(ruler.spikes) == MOST_STRIPS
    assert {0.0, 99999.0} <= set(ruler.spikes)
    assert len(ruler.folded) == len(SPIKES) - MOST_STRIPS
    inside = (ruler.conditionals() @ ruler.mixing) @ np.diff(ruler.edges)
    expected = DENSITY.probability({"gain": (ruler.edges[0], ruler.edges[-1])})
    apart = sum(DENSITY.probability({"gain": s}) for s in ruler.spikes if ruler.edges[0] <= s <= ruler.edges[-1])
    assert inside == pytest.approx(expected - apart)


def test_cells_of_a_pair_hold_the_spikes_without_strips():
    mesh = plot_pair(DENSITY, "gain", "skewed").collections[0]
    corners = np.asarray(mesh.get_coordinates())
    x, y = corners[0, :, 0], corners[:, 0, 1]
    masses = (mesh.get_array().reshape(len(y) - 1, len(x) - 1).T @ np.diff(y)) * np.diff(x)
    ruler = Ruler.of(DENSITY, "gain")
    cells = np.searchsorted(x, ruler.folded) - 1
    for i in (*cells, 3, 70):
        assert masses[i] == pytest.approx(DENSITY.probability({"gain": (x[i], x[i + 1]), "skewed": (y[0], y[-1])}))


def boxes(axis):
    axis.figure.draw_without_rendering()
    shown = [*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)]
    return [label.get_window_extent() for label in shown if label.get_text() and label.get_visible()]


@pytest.mark.parametrize(("a", "b"), list(itertools.permutations(DENSITY.names, 2)))
def test_ticks_of_a_pair_do_not_overlap(a, b):
    ax = plot_pair(DENSITY, a, b, data=ROWS)
    for axis in (ax.xaxis, ax.yaxis, ax.figure.axes[-1].yaxis):
        for one, other in itertools.combinations(boxes(axis), 2):
            assert not one.overlaps(other)


def test_ticks_of_a_corner_do_not_overlap():
    axes = plot_corner(DENSITY, data=ROWS)
    for axis in [ax.xaxis for ax in axes[-1]]:
        for one, other in itertools.combinations(boxes(axis), 2):
            assert not one.overlaps(other)


def test_every_strip_has_its_percentage():
    ax = plot_pair(DENSITY, "gain", "hours")
    for axis in (ax.xaxis, ax.yaxis):
        ax.figure.draw_without_rendering()
        assert all(label.get_text().endswith("%") for label in axis.get_ticklabels(minor=True))


def test_half_of_the_mass_is_dark():
    rng = np.random.default_rng(0)
    heights, areas = rng.exponential(size=(40, 30)) ** 1.5, rng.random((40, 30))
    power = scale_power(heights, areas)
    assert LEAST_POWER < power < 1
    dark = np.asarray(colour_scale(heights, areas)(heights)) >= 0.5 - 1e-9
    mass = heights * areas
    assert mass[dark].sum() / mass.sum() == pytest.approx(0.5, abs=0.01)


def test_bell_curves_and_flat_tables_keep_an_even_scale():
    x = np.linspace(-4, 4, 81)
    bell = np.exp(-(x[:, None] ** 2 + x**2) / 2)
    assert scale_power(bell, np.ones_like(bell)) == 1
    assert scale_power(np.full((3, 4), 0.1), np.ones((3, 4))) == 1
    assert scale_power(np.zeros((2, 2)), np.ones((2, 2))) == 1
    assert "uneven" not in plot_pair(mixed(), "tree", "count").figure.axes[-1].get_ylabel()


def test_an_uneven_scale_says_so_and_has_ticks_all_along():
    ax = plot_pair(DENSITY, "skewed", "hours")
    bar = ax.figure.axes[-1]
    assert bar.get_ylabel() == "density (uneven scale)"
    ax.figure.draw_without_rendering()
    places = bar.transAxes.inverted().transform([label.get_window_extent().get_points().mean(axis=0)
                                                 for label in bar.get_yticklabels()])[:, 1]  # fmt: skip
    np.testing.assert_allclose(np.diff(places), 0.2, atol=0.01)


def test_a_crossing_is_dark_if_spikes_come_together():
    schema = Schema(tuple(Variable(name, "continuous", spikes=(0.0,)) for name in "ab"), "dict")
    atoms = Dictionary((Gaussian([5.0], [1.0]), PointMass([0.0])))
    tied = ProductMixture([0.5, 0.5], [np.eye(2)] * 2, (atoms, atoms))
    free = ProductMixture([1.0], [np.array([[0.9], [0.1]])] * 2, (atoms, atoms))
    shades = []
    for mixture in (tied, free):
        ax = plot_pair(JointDensity(schema, mixture), "a", "b")
        crossing = next(m for m in ax.collections if type(m).__name__ == "QuadMesh" and m.get_array().size == 1)
        shades.append(float(crossing.norm(crossing.get_array()).max()))
    assert shades == pytest.approx([1.0, 0.1])


def test_how_many_rows_are_drawn_is_said():
    title = plot_pair(DENSITY, "skewed", "hours", data=ROWS).get_title(loc="right")
    assert title.endswith(" of 3,000 rows drawn")
    axes = plot_corner(DENSITY, data=ROWS)
    assert axes[0, -1].texts[0].get_text() == "at most 2,000 of 3,000 rows drawn"
    few = plot_pair(mixed(), "tree", "count", data=mixed().sample(20, rng=0))
    assert few.get_title(loc="right") == "all 20 rows drawn"


def test_atoms_can_be_left_out():
    assert any("atoms" in words for words in legend(plot_marginal(DENSITY, "skewed")))
    assert not any("atom" in words for words in legend(plot_marginal(DENSITY, "skewed", atoms=False)))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a\u202eb", r"a\u202eb"),
        ("a\nb\x00", r"a\nb\x00"),
        ("\ud800", r"\ud800"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
        ("Größe", "Größe"),
    ],
)
def test_what_hides_or_turns_text_is_written_as_an_escape(words, shown):
    assert visible(words, 40) == shown
    assert len(visible(words * 10_000, 40)) <= 80
