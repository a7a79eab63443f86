"""The pass over a Gaussian block: both engines against plain loops, and their laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from jointwise.engines.block_sums import GaussianComponents, compiled_sums, reference_sums

ENGINES = (reference_sums, compiled_sums)


def components(rng, F, d):
    root = rng.normal(size=(F, d, d))
    covariances = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(d)
    return GaussianComponents(rng.dirichlet(np.ones(F)), rng.normal(size=(F, d)), covariances)


def rows(rng, n, d, missing):
    x = 2 * rng.normal(size=(n, d))
    x[rng.random(x.shape) < missing] = np.nan
    return x


def by_loops(x, c, others, weights):
    """Sums row by row: densities by SciPy, missing cells by the formulas of the conditional Gaussian."""
    F, d = c.means.shape
    totals, firsts, seconds, likelihood = np.zeros(F), np.zeros((F, d)), np.zeros((F, d, d)), 0.0
    for row, other, weight in zip(x, others, weights, strict=True):
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        density = c.weights * np.exp(other)
        for r in range(F):
            if len(o):
                density[r] *= multivariate_normal(c.means[r, o], c.covariances[r][np.ix_(o, o)]).pdf(row[o])
        likelihood += weight * np.log(density.sum())
        for r, p in enumerate(weight * density / density.sum()):
            S, mean = c.covariances[r], c.means[r]
            filled, spread = row.copy(), np.zeros((d, d))
            regression = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)]) if len(o) else np.zeros((len(m), 0))
            filled[m] = mean[m] + regression @ (row[o] - mean[o])
            spread[np.ix_(m, m)] = S[np.ix_(m, m)] - regression @ S[np.ix_(o, m)]
            totals[r] += p
            firsts[r] += p * filled
            seconds[r] += p * (np.outer(filled, filled) + spread)
    return totals, firsts, seconds, likelihood


@pytest.mark.parametrize("engine", ENGINES)
@given(seed=st.integers(0, 10**6), F=st.integers(1, 4), d=st.integers(1, 4), missing=st.sampled_from([0.0, 0.3, 1.0]))
def test_sums_are_those_of_plain_loops(engine, seed, F, d, missing):
    rng = np.random.default_rng(seed)
    c, x = components(rng, F, d), rows(rng, 12, d, missing)
    others, weights = rng.normal(size=(12, F)), rng.random(12)
    found, posteriors = engine(x, c, others, weights)
    expected = by_loops(x, c, others, weights)
    for name, value in zip(("totals", "firsts", "seconds", "log_likelihood"), expected, strict=True):
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(posteriors.sum(axis=0), found.totals, rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_of_parts_add_up(engine):
    rng = np.random.default_rng(0)
    c, x = components(rng, 3, 3), rows(rng, 4000, 3, 0.1)
    whole = engine(x, c, None, None)[0]
    parts = engine(x[:1500], c, None, None)[0] + engine(x[1500:], c, None, None)[0]
    np.testing.assert_allclose(parts.seconds, whole.seconds, rtol=1e-10)
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_component_without_weight_and_rows_far_out_leave_numbers(engine):
    rng = np.random.default_rng(0)
    c = components(rng, 2, 2)
    c = GaussianComponents(np.array([1.0, 0.0]), c.means, c.covariances)
    found, posteriors = engine(np.array([[1e8, -1e8], [0.0, np.nan]]), c, None, None)
    assert np.isfinite(found.log_likelihood)
    np.testing.assert_array_equal(posteriors, [[1.0, 0.0], [1.0, 0.0]])
