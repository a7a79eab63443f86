"""Drawn gaps against the exact conditional, by p-value: a right sampler fails a test with probability 1e-4.

Seeds are fixed, so a test that passes once passes always; the probability is that of a bad seed. Each test also tries
a wrong target, which must fail.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats
from tests.joint.cases import cases, random_rows

from jointwise.dictionary import Dictionary
from jointwise.families import Category, Gaussian
from jointwise.joint.product import ProductMixture

N = 20_000
LEVEL = 1e-4

# x, y and the label depend on each other through the component: x and y are both near -2 or both near 2
NORMALS = Dictionary((Gaussian([-2.0, 2.0], [1.0, 1.0]),))
LABELS = Dictionary((Category([0.0, 1.0]),))
SHARES = np.array([[0.9, 0.2], [0.1, 0.8]])
MIXTURE = ProductMixture(np.array([0.3, 0.7]), (np.eye(2), np.eye(2), SHARES), (NORMALS, NORMALS, LABELS))


def drawn(row, n=N, seed=0):
    return MIXTURE.complete(np.tile(row, (n, 1)), np.random.default_rng(seed))


def posterior_of(row):
    return MIXTURE.posterior(np.array([row]))[0]


def test_a_drawn_number_follows_the_conditional():
    row = [0.2, np.nan, 0.0]
    found = drawn(row)[:, 1]
    p = posterior_of(row)
    assert 0.2 < p[0] < 0.8  # else the test could not tell the components apart

    def cdf(x, p=p):
        return p @ [stats.norm.cdf(x, -2), stats.norm.cdf(x, 2)]

    assert stats.kstest(found, cdf).pvalue > LEVEL
    assert stats.kstest(found, lambda x: cdf(x, MIXTURE.weights)).pvalue < LEVEL  # not the marginal


def test_a_drawn_category_follows_the_conditional():
    row = [0.2, 0.1, np.nan]
    ones = int(drawn(row)[:, 2].sum())
    share = float(SHARES[1] @ posterior_of(row))
    assert stats.binomtest(ones, N, share).pvalue > LEVEL
    assert stats.binomtest(ones, N, float(SHARES[1] @ MIXTURE.weights)).pvalue < LEVEL


def test_gaps_of_one_row_are_drawn_together():
    row = [np.nan, np.nan, 1.0]
    found = drawn(row)
    p = posterior_of(row)
    signs = stats.norm.sf(0, [-2, 2])  # P(positive | component)
    both = float(p @ signs**2)
    positive = (found[:, :2] > 0).all(axis=1).sum()
    assert stats.binomtest(int(positive), N, both).pvalue > LEVEL
    assert stats.binomtest(int(positive), N, float(p @ signs) ** 2).pvalue < LEVEL  # not independent
    assert np.corrcoef(found[:, 0], found[:, 1])[0, 1] > 0.4


def test_an_empty_row_is_drawn_from_the_joint():
    found = drawn([np.nan] * 3)
    fresh = MIXTURE.sample(N, np.random.default_rng(1))
    for n in range(2):
        assert stats.ks_2samp(found[:, n], fresh[:, n]).pvalue > LEVEL
    assert stats.ks_2samp(found[:, 0], -fresh[:, 0]).pvalue < LEVEL


@settings(deadline=None, max_examples=40)
@given(cases())
def test_known_cells_stay_and_draws_have_density(case):
    mixture = case.density.mixture
    rows = mixture.sample(6, case.rng)
    known = case.rng.random(rows.shape) < 0.6
    filled = mixture.complete(np.where(known, rows, np.nan), case.rng)
    np.testing.assert_array_equal(filled[known], rows[known])
    assert np.isfinite(mixture.logpdf(filled)).all()


@settings(deadline=None, max_examples=40)
@given(cases())
def test_rows_without_density_are_drawn_too(case):
    rows = random_rows(case.rng, case.density, 6, missing=0.4)
    assert not np.isnan(case.density.mixture.complete(rows, case.rng)).any()


@pytest.mark.parametrize("n", [0, 5])
def test_rows_without_gaps_stay_as_they_are(n):
    rows = MIXTURE.sample(n, np.random.default_rng(0))
    np.testing.assert_array_equal(MIXTURE.complete(rows, np.random.default_rng(0)), rows)
