"""1-D fits: compiled steps against plain ones, closed forms of single values, laws of the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.engines.atoms import Places
from jointwise.solvers import mean_log_likelihood, simplex_weights


def plain_update(masses, shares, prior, weights):
    model = masses @ weights
    pull = masses.T @ (shares / model)
    update = weights * pull + prior
    objective = shares @ np.log(model) + prior * np.log(weights).sum()
    return update / update.sum(), objective, (pull + prior / weights).max() - update.sum()


def plain_weights(masses, counts, prior, tol, least_gain, max_steps):
    """EM with squared extrapolation, one data set, in plain numpy."""
    shares, each = counts / counts.sum(), prior / masses.shape[1] / counts.sum()
    here = np.full(masses.shape[1], 1 / masses.shape[1])
    first, reached, gap = plain_update(masses, shares, each, here)
    for _ in range(max_steps):
        if gap <= tol:
            break
        second, plain, plain_gap = plain_update(masses, shares, each, first)
        change, bend = first - here, second - 2 * first + here
        metric = 1 / np.maximum(second, 1e-12)
        stride = np.clip(np.sqrt(metric @ change**2) / np.sqrt(metric @ bend**2), 1, 1e3)
        leap = np.maximum(here + 2 * stride * change + stride**2 * bend, 0.1 * second)
        leap /= leap.sum()
        beyond, leaped, leap_gap = plain_update(masses, shares, each, leap)
        before = reached
        here, first, reached, gap = (
            (leap, beyond, leaped, leap_gap) if leaped >= plain else (first, second, plain, plain_gap)
        )
        if reached - before < least_gain:
            break
    return here


def case(seed, n_bins=11, n_atoms=6):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n_bins), size=n_atoms).T, rng.integers(0, 40, n_bins).astype(float) + 0.5


@pytest.mark.parametrize("prior", [0.0, 4.0])
@pytest.mark.parametrize("how", [(1e-3, -np.inf, 20), (1e-9, 1e-5, 500), (0.0, -np.inf, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_compiled_steps_are_the_plain_ones(seed, how, prior):
    masses, counts = case(seed)
    tol, least_gain, max_steps = how
    found = simplex_weights(masses, counts, prior=prior, tol=tol, least_gain=least_gain, max_steps=max_steps)
    np.testing.assert_allclose(found, plain_weights(masses, counts, prior, *how), rtol=1e-6, atol=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 13), st.integers(1, 9))
def test_no_other_weights_are_more_likely(seed, n_bins, n_atoms):
    masses, counts = case(seed, n_bins, n_atoms)
    best = mean_log_likelihood(masses, counts, simplex_weights(masses, counts, tol=1e-6))
    others = np.random.default_rng(seed).dirichlet(np.ones(n_atoms), size=20).T
    several = np.tile(counts[:, None], 20)
    assert (mean_log_likelihood(masses, several, others) <= best + 1e-6).all()


def test_data_sets_side_by_side_are_solved_as_each_alone():
    masses, _ = case(0)
    counts = np.random.default_rng(1).integers(0, 9, (11, 4)).astype(float)
    counts[:, 2] = 0.0
    together = simplex_weights(masses, counts, prior=1.0)
    alone = np.stack([simplex_weights(masses, column, prior=1.0) for column in counts.T], axis=1)
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together[:, 2], 1 / 6)  # nothing is known


def test_bins_out_of_reach_are_ignored():
    masses, counts = case(3)
    masses[4] = 0.0
    rest = np.arange(11) != 4
    np.testing.assert_allclose(simplex_weights(masses, counts), simplex_weights(masses[rest], counts[rest]), rtol=1e-9)


@pytest.mark.parametrize("prior", [0.0, 3.0])
def test_single_values_have_their_shares(prior):
    counts = np.array([[3.0, 0.0], [1.0, 0.0], [0.0, 0.0], [6.0, 2.0]])
    places = Places(np.array([3, 0, 1, 2]), 4)
    expected = simplex_weights(np.eye(4)[:, [3, 0, 1, 2]], counts, prior=prior, tol=1e-12)
    np.testing.assert_allclose(simplex_weights(places, counts, prior=prior), expected, rtol=1e-9, atol=1e-12)
