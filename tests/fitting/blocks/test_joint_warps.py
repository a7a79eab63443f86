"""Warps of all columns together: what they straighten, and where they leave columns as they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from jointwise import GaussianBlocks
from jointwise.fitting.blocks.joint_warps import LEAST_ROWS, _composed
from jointwise.fitting.blocks.warps import Counted, log

N = 400


def ellipses(n=N, seed=0):
    """Two axes of each ellipse, and its eccentricity: a function of both that is no plane of logarithms."""
    rng = np.random.default_rng(seed)
    major = rng.lognormal(1.0, 0.2, n)
    minor = major * rng.uniform(0.3, 0.9, n)
    return {"major": major, "minor": minor, "eccentricity": np.sqrt(1 - (minor / major) ** 2)}


def width(model, given, column):
    """Width of the 95% interval of a column, given others, in units of its standard deviation."""
    told = model.density_.condition(given)
    return np.diff(told.quantile(column, [0.025, 0.975]))[0] / ellipses()[column].std()


def test_a_function_of_columns_is_followed_by_one_component():
    models = {warp: GaussianBlocks(warp, n_components=1, random_state=0).fit(ellipses()) for warp in ("log", "joint")}
    given = {"major": 3.0, "minor": 2.0}
    assert width(models["log"], given, "eccentricity") > 1.0
    assert width(models["joint"], given, "eccentricity") < 0.25
    expected = np.sqrt(1 - (2 / 3) ** 2)
    assert models["joint"].density_.condition(given).mean()["eccentricity"] == pytest.approx(expected, abs=0.01)
    fresh = ellipses(seed=1)
    assert models["joint"].score(fresh) > models["log"].score(fresh) + 1.0


def test_warps_standardise_and_rise():
    table = ellipses()
    for name, warp in warps_of(table).items():
        values = table[name]
        w = warp(values)
        assert abs(w.mean()) < 0.02, name
        assert abs(w.std() - 1) < 0.02, name
        assert (np.diff(warp(np.sort(values))) >= 0).all(), name
        assert_allclose(warp.inverse(w), values, rtol=1e-9, err_msg=name)


def warps_of(table, warp="joint"):
    """The warps of a table's columns, by name."""
    design = GaussianBlocks(warp, n_components=1, random_state=0).fit(table).fit_.design
    return {design.schema.names[n]: warp for n, warp in zip(design.columns, design.warps, strict=True)}


def bent(table):
    """Names of the columns whose warp is not the logarithm."""
    joint, own = warps_of(table), warps_of(table, "log")
    return {name for name in table if not np.array_equal(joint[name].w, own[name].w)}


@pytest.mark.parametrize("n", [LEAST_ROWS - 1, N])
def test_few_rows_keep_their_logarithms(n):
    table = {name: column[:n] for name, column in ellipses().items()}
    assert bent(table) == (set(table) if n >= LEAST_ROWS else set())


def test_a_column_with_few_values_keeps_its_own_warp():
    table = ellipses()
    rare = np.where(np.arange(N) < N // 4, table["minor"] * table["major"], np.nan)
    assert bent({**table, "rare": rare}) == set(table)


def test_a_column_that_does_not_vary_beside_others_keeps_its_own_warp():
    table = ellipses()
    table["major"][:200] = np.nan
    table["other"] = np.where(np.arange(N) < 200, np.random.default_rng(3).lognormal(size=N), 2.5)
    assert "other" not in bent(table)


def test_narrow_integers_keep_a_straight_line():
    rng = np.random.default_rng(0)
    size = rng.poisson(40, N)
    warp = warps_of({"size": size, "area": size**2 * np.exp(0.1 * rng.normal(size=N))})["size"]
    steps = np.diff(warp(np.linspace(size.min(), size.max(), 7)))
    assert_allclose(steps, steps[0])


def test_the_order_of_rows_and_columns_does_not_matter():
    table, order = ellipses(), np.random.default_rng(2).permutation(N)
    shuffled = {name: table[name][order] for name in reversed(table)}
    one, other = (GaussianBlocks("joint", n_components=1, random_state=0).fit(each) for each in (table, shuffled))
    assert_allclose(one.score_samples(table), other.score_samples(table), rtol=1e-9)


def test_warps_composed_together_are_those_composed_one_by_one():
    rng = np.random.default_rng(0)
    columns = [Counted(np.sort(rng.lognormal(size=n)), rng.integers(1, 4, n).astype(float)) for n in (30, 50, 40)]
    bases = [log(column) for column in columns]
    knots, slopes = np.linspace([-3.0, -2.5, -4.0], 3.0, 9).T, rng.lognormal(0, 0.3, (3, 9))
    together = _composed(bases, columns, knots, slopes)
    for k, warp in enumerate(together):
        (alone,) = _composed(bases[k : k + 1], columns[k : k + 1], knots[k : k + 1], slopes[k : k + 1])
        for name in ("x", "w", "slopes"):
            assert np.array_equal(getattr(warp, name), getattr(alone, name))
        # the map of a value is the integral of its slopes from the first knot on, up to shift and scale
        u = bases[k](columns[k].values)
        within = (u > knots[k, 0]) & (u < knots[k, -1])
        own = [np.trapezoid(np.interp(fine, knots[k], slopes[k]), fine) for fine in np.linspace(knots[k, 0], u, 4001).T]
        line = np.polyfit(np.array(own)[within], warp(columns[k].values)[within], 1)
        assert_allclose(np.polyval(line, np.array(own)[within]), warp(columns[k].values)[within], atol=2e-3)
