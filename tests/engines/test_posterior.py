"""The posterior-count pass: both engines against a plain loop, and their laws."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.engines import ReferenceEngine, posterior_engine
from jointwise.engines.compiled import CompiledEngine
from jointwise.engines.compiled_bundles import LEAST_ROWS, Bundles

ENGINES = [ReferenceEngine, CompiledEngine]
# Sums of a few thousand terms of size one in float64, taken in another order.
ROUNDING = 1e-10


def looped(codes, n_bins, weights, tables, mixing):
    """Sum posteriors row by row, in logarithms."""
    starts = np.concatenate([[0], np.cumsum(n_bins)])
    counts, totals, log_likelihood = np.zeros(tables.shape), np.zeros(len(mixing)), 0.0
    for row, weight in zip(codes, weights, strict=True):
        present = [starts[n] + code for n, code in enumerate(row) if code < n_bins[n]]
        logs = np.log(mixing) + sum((np.log(tables[b]) for b in present), np.zeros(len(mixing)))
        top = logs.max()
        total = top + np.log(np.exp(logs - top).sum())
        posterior = weight * np.exp(logs - total)
        for b in present:
            counts[b] += posterior
        totals += posterior
        log_likelihood += weight * total
    return counts, totals, log_likelihood


def random_case(rng, n, n_bins, n_components, dtype=np.uint8):
    codes = np.column_stack([rng.integers(0, bins + 1, n) for bins in n_bins]).astype(dtype)
    tables = rng.gamma(1.0, size=(sum(n_bins), n_components)) + 1e-6
    return codes, tables, rng.dirichlet(np.ones(n_components))


def assert_agrees(found, expected, tolerance=ROUNDING):
    counts, totals, log_likelihood = expected
    np.testing.assert_allclose(found.counts, counts, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.totals, totals, rtol=tolerance, atol=tolerance)
    assert found.log_likelihood == pytest.approx(log_likelihood, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("engine", ENGINES)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 40),
    n_bins=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    n_components=st.integers(1, 5),
    dtype=st.sampled_from([np.uint8, np.uint16]),
)
@settings(deadline=None, max_examples=40)
def test_pass_agrees_with_a_loop(engine, seed, n, n_bins, n_components, dtype):
    rng = np.random.default_rng(seed)
    codes, tables, mixing = random_case(rng, n, n_bins, n_components, dtype)
    assert_agrees(
        engine(codes, n_bins).posterior_counts(tables, mixing), looped(codes, n_bins, np.ones(n), tables, mixing)
    )
    weights = rng.integers(0, 4, n) / 2
    assert_agrees(
        engine(codes, n_bins, weights).posterior_counts(tables, mixing), looped(codes, n_bins, weights, tables, mixing)
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [1e-25, 1.0, 1e5])
def test_five_hundred_variables_neither_underflow_nor_overflow(engine, size):
    rng = np.random.default_rng(0)
    n_bins = [4] * 500
    codes, tables, mixing = random_case(rng, 20, n_bins, 3)
    tables = size * (tables + 0.1)
    found = engine(codes, n_bins).posterior_counts(tables, mixing)
    assert np.isfinite(found.log_likelihood)
    # 500 logarithms of size 60 are summed: their rounding is 1e-16 times 30,000
    assert_agrees(found, looped(codes, n_bins, np.ones(20), tables, mixing), 1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dead_component_and_an_empty_row_are_no_trouble(engine):
    codes = np.array([[2, 2], [0, 1]], dtype=np.uint8)
    tables = np.full((4, 2), 0.5)
    found = engine(codes, [2, 2]).posterior_counts(tables, np.array([1.0, 0.0]))
    np.testing.assert_allclose(found.totals, [2.0, 0.0])
    assert found.log_likelihood == pytest.approx(2 * np.log(0.5))


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_add_up_and_repeats_are_identical(engine):
    rng = np.random.default_rng(1)
    n_bins = [7, 5, 3]
    codes, tables, mixing = random_case(rng, 1000, n_bins, 4)
    whole = engine(codes, n_bins).posterior_counts(tables, mixing)
    again = engine(codes, n_bins).posterior_counts(tables, mixing)
    assert np.array_equal(whole.counts, again.counts)
    assert whole.log_likelihood == again.log_likelihood
    parts = [engine(part, n_bins).posterior_counts(tables, mixing) for part in np.array_split(codes, 3)]
    total = parts[0] + parts[1] + parts[2]
    assert_agrees(total, (whole.counts, whole.totals, whole.log_likelihood))


def test_number_of_threads_changes_only_rounding():
    rng = np.random.default_rng(2)
    n_bins = [20] * 6
    codes, tables, mixing = random_case(rng, 5000, n_bins, 8)
    engine = CompiledEngine(codes, n_bins)
    most = engine.posterior_counts(tables, mixing)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        one = engine.posterior_counts(tables, mixing)
    finally:
        numba.set_num_threads(before)
    assert_agrees(one, (most.counts, most.totals, most.log_likelihood))


@pytest.mark.parametrize("n", [1, 20, 100_000])
def test_passes_on_the_processor_are_compiled(n):
    assert isinstance(posterior_engine(np.zeros((n, 5), dtype=np.uint8), [1] * 5), CompiledEngine)


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(100, 400),
    n_bins=st.lists(st.integers(1, 4), min_size=2, max_size=20),
    gaps=st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_columns_taken_together_agree_with_a_loop(seed, n, n_bins, gaps):
    rng = np.random.default_rng(seed)
    codes, tables, mixing = random_case(rng, n, n_bins, 3)
    codes = codes if gaps else np.minimum(codes, np.array(n_bins) - 1).astype(np.uint8)
    bundles = Bundles.of(codes, n_bins)
    assert bundles.sizes.sum() == len(n_bins)
    assert bundles.n_bins.max() <= max(n // LEAST_ROWS, max(n_bins) + 1)
    found = CompiledEngine(codes, n_bins).posterior_counts(tables, mixing)
    assert_agrees(found, looped(codes, n_bins, np.ones(n), tables, mixing))


def test_products_of_columns_taken_together_do_not_underflow():
    codes = np.zeros((5_000, 60), dtype=np.uint8)
    codes[0] = 1
    tables = np.full((120, 2), 1e-30)
    tables[:, 1] = 1e-29
    found = CompiledEngine(codes, [2] * 60).posterior_counts(tables, np.array([0.5, 0.5]))
    assert len(Bundles.of(codes, [2] * 60)) == 8
    np.testing.assert_allclose(found.totals, [0.0, 5_000.0], atol=1e-30)
    assert found.log_likelihood == pytest.approx(5_000 * (np.log(0.5) + 60 * np.log(1e-29)), rel=1e-12)
