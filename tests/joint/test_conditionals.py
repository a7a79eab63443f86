"""Quantiles of conditionals against bisection of all floats."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from tests.joint.block_cases import BENT, INF, INTEGER, PRODUCT, SPIKED, mixture, plain, rows

from jointwise._numerics import smallest_true
from jointwise.dictionary import Dictionary
from jointwise.joint.block_conditionals import _STEPS, _Lines, _means_through
from jointwise.joint.events import Interval
from jointwise.joint.product import ProductMixture
from jointwise.joint.sum import mixed
from jointwise.warps import Warp

Q = (0.003, 0.7)


def slow_quantile(law, q):
    """Bisect floats between far ends."""
    low, high = law.bracket(q)
    return smallest_true(lambda x: law.cdf(x) >= q * (1 - 1e-14), low - 1, high + 1)


def both():
    """A block and a product mixture of the same five variables."""
    f = mixture(2)
    rng = np.random.default_rng(3)
    atoms = [
        Dictionary.grid("gaussian", -2, 2, n=3, scale=0.7) + Dictionary.points([-0.5, 1.0]),
        Dictionary.categories(3),
        Dictionary.points(np.arange(-5.0, 12.0)),
        Dictionary.grid("gaussian", -2, 5, n=4, scale=0.9),
        Dictionary.grid("gaussian", -1, 1, n=3, scale=0.7) + Dictionary.points([0.25]),
    ]
    g = ProductMixture(
        rng.dirichlet(np.ones(2)), tuple(rng.dirichlet(np.ones(d.n_atoms), 2).T for d in atoms), tuple(atoms)
    )
    return mixed([f, g], [0.6, 0.4])


EXPERTS = {
    "block": mixture(2),
    "window elsewhere": mixture(2).condition({BENT: Interval(0.0, INF)}),
    "windows": mixture(2).condition({BENT: Interval(0.0, 2.0), SPIKED: Interval(-1.0, 1.5)}),
    "sum": both(),
}


@pytest.mark.parametrize("f", EXPERTS.values(), ids=EXPERTS)
@pytest.mark.parametrize("n", [SPIKED, INTEGER, BENT, PRODUCT])
def test_quantiles_are_the_smallest_values_that_reach_a_level(f, n):
    X = rows(f, 1, n=4, gaps=0.5)
    law = f.conditionals(n, X)
    for q in Q:
        found, expected = law.quantile(q), slow_quantile(law, q)
        at_jump = np.isin(expected, law.jumps) | (n == INTEGER)
        assert_array_equal(found[at_jump], expected[at_jump])
        # elsewhere the cdf is flat to rounding over some floats
        assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        assert (law.cdf(found) >= q * (1 - 1e-13)).all()


@pytest.mark.parametrize("f", EXPERTS.values(), ids=EXPERTS)
@pytest.mark.parametrize("n", [SPIKED, INTEGER, PRODUCT])
def test_the_cdf_in_some_rows(f, n):
    X = rows(f, 4, n=9)
    law = f.conditionals(n, X)
    x = f.sample(9, np.random.default_rng(0))[:, n]
    some = np.array([7, 0, 3])
    assert_allclose(law.cdf_in(some, x[some]), law.cdf(x)[some], rtol=1e-12)


def test_a_smooth_quantile_takes_few_steps(monkeypatch):
    f = plain(0, d=3, n_components=4)
    law = f.conditionals(0, f.sample(50, np.random.default_rng(0)))
    calls = []
    plain_cdf = type(law).cdf_in
    monkeypatch.setattr(type(law), "cdf_in", lambda self, at, x: calls.append(len(at)) or plain_cdf(self, at, x))
    law.quantile(0.3)
    assert sum(calls) < 25 * 50


def test_no_rows():
    f = mixture(0)
    for n in (SPIKED, INTEGER, PRODUCT):
        assert f.conditionals(n, np.empty((0, 5))).quantile(0.5).shape == (0,)


@pytest.mark.parametrize("seed", range(3))
def test_means_through_lines_are_those_through_the_warp(seed):
    """The slow twin is the inverse itself with sixteen times as many steps."""
    rng = np.random.default_rng(seed)
    x, w = np.cumsum(rng.uniform(0.2, 2.0, 40)), np.cumsum(rng.uniform(0.05, 0.3, 40))
    warp = Warp(x, w, rng.uniform(0.5, 2.0, 40) * np.gradient(w) / np.gradient(x))
    lines = _Lines(warp)
    z = np.linspace(w[0] - 3, w[-1] + 3, 5001)
    exact = warp.inverse(z)
    assert_allclose(lines(z), exact, atol=1e-4 * np.ptp(x))
    mean, scale = rng.uniform(w[0] - 1, w[-1] + 1, 50), rng.uniform(0.05, 1.0, 50)
    twin = _means_through(warp.inverse, mean, scale, np.linspace(-8, 8, 1025))
    points = warp.inverse(mean + scale * _STEPS[:, None])
    spread = np.sqrt(np.average((points - twin) ** 2, weights=np.exp(-0.5 * _STEPS**2), axis=0))
    found = _means_through(lines, mean, scale, _STEPS)
    assert (np.abs(found - _means_through(warp.inverse, mean, scale, _STEPS)) < 1e-4 * spread).all()
    assert (np.abs(found - twin) < 2e-2 * spread).all()


def test_terms_that_cannot_be_seen_are_left_out_of_a_cdf():
    f = mixture(7, n_components=40)
    X = rows(f, 7, n=20, gaps=0.3)
    law = f.conditionals(BENT, X)
    x = np.linspace(-2, 2, 20)
    found = law.cdf(x)
    whole = law._weights * (
        law._block.no_spike[law._c][law._owner] * ndtr((law._block.warps[law._c](x)[:, None] - law._mean) / law._scale)
    )
    assert_allclose(found, whole.sum(axis=1), atol=1e-12)
