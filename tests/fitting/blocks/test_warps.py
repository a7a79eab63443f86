"""Warps of columns: the right standardisation, the likeliest power, the scores of the 1-D fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, yeojohnson_normmax

from jointwise.dictionary import Dictionary
from jointwise.fitting.blocks import warps
from jointwise.fitting.blocks.warps import Counted, log, power, scores, straight


def counted(values):
    distinct, counts = np.unique(values, return_counts=True)
    return Counted(distinct, counts.astype(float))


@pytest.mark.parametrize("scale", [1e-290, 1e-9, 1.0, 1e9, 1e299])
@pytest.mark.parametrize("make", [straight, power, log])
def test_values_are_standardised(make, scale):
    values = scale * np.random.default_rng(0).gamma(2.0, size=2000)
    w = make(counted(values))(values)
    assert abs(w.mean()) < 1e-2
    assert abs(w.std() - 1) < 1e-2


@pytest.mark.parametrize("shape", ["gamma", "negative", "normal", "both"])
def test_the_power_is_scipys(shape):
    rng = np.random.default_rng(1)
    values = {
        "gamma": rng.gamma(1.5, size=400),
        "negative": -(rng.gamma(2.0, size=400)),
        "normal": rng.normal(size=400),
        "both": rng.normal(size=400) ** 3,
    }[shape]
    z = counted(values).standardised()
    found = warps._best_power(z, counted(values).counts)
    expected = np.clip(yeojohnson_normmax((values - values.mean()) / values.std()), warps.LEAST_POWER, warps.MOST_POWER)
    assert found == pytest.approx(expected, abs=0.02)


def test_a_power_is_tabulated_closely():
    values = np.random.default_rng(2).lognormal(size=1000)
    column = counted(values)
    bend = power(column)
    z = column.standardised()
    psi = warps._yeo_johnson(z, warps._best_power(z, column.counts))
    expected = (psi - column.mean_of(psi)) / np.sqrt(column.mean_of((psi - column.mean_of(psi)) ** 2))
    np.testing.assert_allclose(bend(column.values), expected, atol=2e-4)


def test_a_logarithm_is_tabulated_closely():
    column = counted(np.random.default_rng(2).lognormal(3.0, 0.4, size=1000))
    logs = np.log(column.values)
    expected = (logs - column.mean_of(logs)) / np.sqrt(column.mean_of((logs - column.mean_of(logs)) ** 2))
    np.testing.assert_allclose(log(column)(column.values), expected, atol=1e-5)


def test_values_that_are_not_positive_have_a_power_instead_of_a_logarithm():
    column = counted(np.random.default_rng(2).normal(size=100))
    assert np.array_equal(log(column).w, power(column).w)


def test_scores_are_quantiles_of_a_gaussian():
    atoms = Dictionary.grid("gaussian", -2, 3, n=2, scale=0.7)
    weights = np.array([0.3, 0.7])
    values = np.random.default_rng(3).normal(size=3000)
    bend = scores(counted(values), atoms, weights)
    x = np.linspace(-4, 5, 301)
    below = atoms.cdf(x) @ weights
    inside = (below > 1e-6) & (below < 1 - 1e-6)
    np.testing.assert_allclose(bend(x)[inside], norm.ppf(below[inside]), atol=5e-3)


def test_spikes_are_no_part_of_scores():
    atoms = Dictionary.grid("gaussian", 0, 0, n=1, scale=1.0) + Dictionary.points([0.0])
    column = counted(np.linspace(-2, 2, 200))
    bend = scores(column, atoms, np.array([0.5, 0.5]))
    assert bend(np.array([1.0]))[0] == pytest.approx(1.0, abs=1e-3)


def test_scores_of_integers_lie_midway():
    atoms = Dictionary.grid("gaussian", 100, 100, n=1, scale=15.0).on_lattice()
    column = counted(np.arange(60, 140).astype(float))
    bend = scores(column, atoms, np.ones(1), whole=True)
    np.testing.assert_allclose(bend(np.array([100.0, 115.0])), [0.0, 1.0], atol=1e-2)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_warps_rise_and_come_back(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 300))
    values = [
        rng.normal(size=n),
        rng.standard_cauchy(n) ** 3,
        rng.uniform(size=n) ** 8,
        np.r_[rng.normal(size=n), 1e6 + rng.normal(size=n)],
    ][seed % 4] * 10.0 ** rng.integers(-100, 100)
    column = counted(values)
    if not column.is_spread():
        return
    unit = float(column.deviation)
    atoms = Dictionary.grid("gaussian", column.mean - unit, column.mean + unit, n=5, scale=unit / 5)
    for bend in (straight(column), power(column), log(column), scores(column, atoms, rng.dirichlet(np.ones(5)))):
        w = bend(column.values)
        assert np.isfinite(w).all()
        assert np.isfinite(bend.log_slope(column.values)).all()
        back = bend(bend.inverse(w))
        np.testing.assert_allclose(back, w, rtol=1e-6, atol=1e-6)
