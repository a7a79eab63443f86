"""Draws against the cdf, by p-values.

Each p-value rejects a right sampler with probability 1e-4 for a fresh seed; with about a hundred of them in
the module that is one in a hundred per seed. Seeds are fixed, so a pass stays a pass.
"""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from jointwise.families import Gaussian, Lattice

N = 3000
LEVEL = 1e-4


def p_value(family, atom, draws):
    """Kolmogorov-Smirnov for a density, chi-square on the likely points (the rest in one cell) for masses."""
    if not family.is_discrete:
        return stats.kstest(draws, lambda x: family.cdf(x)[:, atom]).pvalue
    points, counts = np.unique(draws, return_counts=True)
    expected = len(draws) * family.pdf(points)[:, atom]
    likely = expected >= 5
    observed = np.append(counts[likely], counts[~likely].sum())
    expected = np.append(expected[likely], len(draws) - expected[likely].sum())
    kept = expected > 1e-6 * len(draws)
    assert observed[~kept].sum() == 0
    if kept.sum() == 1:
        return 1.0
    return stats.chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()).pvalue


def test_draws_follow_the_cdf(family):
    rng = np.random.default_rng(20)
    for atom in range(family.n_atoms):
        draws = family.sample(np.full(N, atom), rng)
        assert p_value(family, atom, draws) > LEVEL
        low, high = family.support()
        assert ((draws >= low[atom]) & (draws <= high[atom])).all()


def test_draws_have_the_stated_mean_and_variance(family):
    rng = np.random.default_rng(21)
    for atom in range(family.n_atoms):
        mean, var = family.mean()[atom], family.var()[atom]
        if not np.isfinite(var):
            continue
        draws = family.sample(np.full(N, atom), rng)
        # six standard errors; heavy tails make the sample's variance unreliable, so it gets a wide band
        assert_allclose(draws.mean(), mean, rtol=0, atol=6 * np.sqrt(var / N) + 1e-12)
        if not var:
            assert_array_equal(draws, mean)
        else:
            assert 0.4 < draws.var() / var < 1.8


def test_a_wrong_target_fails():
    rng = np.random.default_rng(22)
    draws = Gaussian(0.0, 1.0).sample(np.zeros(N, dtype=int), rng)
    assert p_value(Gaussian(0.15, 1.0), 0, draws) < LEVEL
    assert p_value(Lattice(Gaussian(0.3, 2.0)), 0, np.round(2 * draws)) < LEVEL


def test_each_draw_is_from_its_own_atom(family):
    order = np.arange(family.n_atoms).repeat(5)
    draws = family.sample(order, np.random.default_rng(1))
    low, high = family.support()
    assert ((draws >= low[order]) & (draws <= high[order])).all()
    assert_array_equal(draws, family.sample(order, np.random.default_rng(1)))
    assert np.isfinite(family.logpdf(draws)[np.arange(len(order)), order]).all()
