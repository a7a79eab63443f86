"""Pictures of one variable: heights are densities and shares, texts are names, dates and percentages."""

import numpy as np
import pytest
from tests.plots.cases import LONG, TREES, labels, legend, mixed, one

from jointwise import JUPAD
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, UnknownNameError
from jointwise.families import Gamma, Gaussian, Laplace, PointMass
from jointwise.plots import plot_marginal
from jointwise.tables.variables import Variable

DENSITY = mixed()
ROWS = DENSITY.sample(400, rng=0)


def line(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


@pytest.mark.parametrize("name", ["height", "tail"])
def test_the_curve_is_the_density_and_the_atoms_add_up_to_it(name):
    ax = plot_marginal(DENSITY, name)
    curve = line(ax, "model")
    x, y = curve.get_data()
    np.testing.assert_allclose(y, DENSITY.marginal(name).pdf({name: x}), rtol=1e-12)
    atoms = [each.get_ydata() for each in ax.lines if each is not curve]
    np.testing.assert_allclose(np.sum(atoms, axis=0), y, rtol=1e-12)
    assert legend(ax) == ["model", "2 atoms, weighted"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == (name, "density")


def test_stems_are_probabilities_and_bars_shares():
    ax = plot_marginal(DENSITY, "tree", data=ROWS)
    y = line(ax, "model").get_ydata()
    assert list(y) == pytest.approx([DENSITY.probability({"tree": tree}) for tree in TREES])
    assert labels(ax.xaxis) == list(TREES)
    shares = [np.mean(np.asarray(ROWS["tree"]) == tree) for tree in TREES]
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(shares)
    assert ax.get_ylabel() == "probability"


def test_the_histogram_has_the_area_of_the_rows_inside():
    ax = plot_marginal(DENSITY, "tail", data=ROWS)
    heights, edges, _ = ax.patches[0].get_data()
    tail = np.asarray(ROWS["tail"])
    inside = (tail >= ax.get_xlim()[0]) & (tail <= ax.get_xlim()[1])
    assert 0.9 < inside.mean() < 1
    assert np.sum(heights * np.diff(edges)) == pytest.approx(inside.mean())
    assert legend(ax)[1] == f"data (400 rows, {(~inside).sum()} outside)"


def test_heavy_tails_leave_the_middle_in_view_and_rare_far_modes_in_the_picture():
    atoms = Dictionary((Gaussian([0.0, 100.0], [1.0, 1.0]),))
    low, high = plot_marginal(one(Variable("x", "continuous"), atoms, [0.96, 0.04]), "x").get_xlim()
    assert low < -2
    assert high > 100
    low, high = plot_marginal(DENSITY, "tail").get_xlim()
    assert high - low < 50


def test_long_lists_of_categories_go_down_the_side():
    ax = plot_marginal(DENSITY, "long", data=ROWS)
    texts = labels(ax.yaxis)
    assert len(texts) == 20
    assert all(len(text) <= 24 for text in texts)
    assert texts[3].endswith("…")
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top
    assert ax.get_xlabel() == "probability"
    probabilities = line(ax, "model").get_xdata()
    assert list(probabilities) == pytest.approx([DENSITY.probability({"long": name}) for name in LONG])


def test_a_spike_is_a_gauge_beside_the_range_with_its_probability():
    ax = plot_marginal(DENSITY, "rain", data=ROWS)
    probability = DENSITY.probability({"rain": 0.0})
    assert labels(ax.xaxis, minor=True) == [f"0:\n{100 * probability:.0f}%"]
    stem = next(each for each in ax.lines if each.get_transform() == ax.get_xaxis_transform())
    assert stem.get_ydata()[1] == pytest.approx(probability)
    x, y = line(ax, "model").get_data()
    assert x.min() > ax.get_xlim()[0]  # the curve begins after the strip
    np.testing.assert_allclose(y, DENSITY.marginal("rain").pdf({"rain": x}), rtol=1e-12)


def test_dates_are_dates():
    ax = plot_marginal(DENSITY, "day", data=ROWS)
    texts = labels(ax.xaxis)
    assert any("2022" in text or "2023" in text for text in texts), texts


def test_another_epoch_of_dates_is_refused_with_the_remedy(monkeypatch):
    from matplotlib import dates

    monkeypatch.setattr(dates, "get_epoch", lambda: "0000-12-31T00:00:00")
    with pytest.raises(InputError, match=r'leave rcParams\["date.epoch"\]'):
        plot_marginal(DENSITY, "day")


def test_integers_have_probabilities_one_by_one():
    ax = plot_marginal(DENSITY, "age")
    values, heights = line(ax, "model").get_data()
    np.testing.assert_array_equal(np.diff(values), 1)
    np.testing.assert_allclose(heights, DENSITY.marginal("age").pdf({"age": values}), rtol=1e-12)
    assert ax.get_ylabel() == "probability"
    assert all("." not in text for text in labels(ax.xaxis))


def test_integers_of_a_wide_range_are_a_curve_with_a_point_mass_apart():
    atoms = Dictionary((Gaussian([5000.0], [900.0]),)).on_lattice() + Dictionary.points([0.0])
    density = one(Variable("k", "integer", dtype="int64"), atoms, [0.7, 0.3])
    ax = plot_marginal(density, "k", data=density.sample(300, rng=0))
    values, heights = line(ax, "model").get_data()
    assert (values == np.round(values)).all()
    np.testing.assert_allclose(heights, density.pdf({"k": values}), rtol=1e-9)
    assert labels(ax.xaxis, minor=True) == ["0:\n30%"]


def test_one_row_is_a_tick_and_no_rows_are_nothing():
    ax = plot_marginal(DENSITY, "height", data={"height": [1.5]})
    assert line(ax, "data (1 row)").get_xdata() == [1.5]
    assert not ax.patches
    ax = plot_marginal(DENSITY, "height", data={"height": [None, None]})
    assert legend(ax) == ["model", "2 atoms, weighted"]


def test_jumps_and_kinks_are_drawn_where_they_are():
    ax = plot_marginal(one(Variable("x", "continuous"), Dictionary.uniforms([0, 1, 3]), [0.7, 0.3]), "x")
    x, y = line(ax, "model").get_data()
    assert set(np.round(y, 12)) == {0.0, 0.7, 0.15}
    assert np.diff(x)[np.diff(y) != 0].max() < 1e-12
    ax = plot_marginal(one(Variable("x", "continuous"), Dictionary((Laplace([0.0], [1.0]),)), [1.0]), "x")
    assert line(ax, "model").get_ydata().max() == pytest.approx(0.5)


def test_a_density_without_bound_is_cut():
    density = one(Variable("x", "continuous"), Dictionary((Gamma([0.3], [1.0]),)), [1.0])
    assert plot_marginal(density, "x", data=density.sample(200, rng=0)).get_ylim()[1] < 100


def test_spikes_alone_are_stems():
    density = one(Variable("x", "continuous", spikes=(0.5, 2.0)), Dictionary((PointMass([0.5, 2.0]),)), [0.25, 0.75])
    ax = plot_marginal(density, "x")
    np.testing.assert_allclose(line(ax, "model").get_data(), [[0.5, 2.0], [0.25, 0.75]])


def test_a_dollar_is_a_dollar():
    density = one(Variable("cost $ and $", "continuous"), Dictionary((Gaussian([0.0], [1.0]),)), [1.0])
    ax = plot_marginal(density, "cost $ and $")
    assert ax.get_xlabel() == r"cost \$ and \$"
    ax.figure.draw_without_rendering()


def test_it_draws_into_the_given_axes_and_changes_no_setting():
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    before = dict(mpl.rcParams)
    _, ax = plt.subplots()
    assert plot_marginal(DENSITY, "height", data=ROWS, ax=ax) is ax
    assert plt.get_fignums() == [1]
    assert dict(mpl.rcParams) == before


def test_arrays_are_read_by_position_and_frames_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)[["tail", "height"]]
    by_name = plot_marginal(DENSITY, "height", data=frame).patches[0].get_data().values
    np.testing.assert_array_equal(by_name, plot_marginal(DENSITY, "height", data=ROWS).patches[0].get_data().values)
    density = DENSITY.marginal(["height", "tail"])
    array = np.column_stack([ROWS["height"], ROWS["tail"]])
    by_place = plot_marginal(density, "height", data=array).patches[0].get_data().values
    np.testing.assert_array_equal(by_place, by_name)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'height'"):
        plot_marginal(DENSITY, "heigth")
    model = JUPAD(1).fit({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="got JUPAD; pass its `density_`"):
        plot_marginal(model, "a")
    with pytest.raises(UnknownNameError, match="lacks columns 'height'"):
        plot_marginal(DENSITY, "height", data={"tail": [1.0]})
