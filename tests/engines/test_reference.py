"""Counts of pairs and of other subsets against plain loops and the one-hot matrix."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from jointwise.engines import pair_counts, reference, subset_counts


def looped(codes, n_bins, weights):
    """Count row by row and pair by pair."""
    starts = np.concatenate([[0], np.cumsum(n_bins)])
    counts = np.zeros((starts[-1], starts[-1]))
    for row, weight in zip(codes, weights, strict=True):
        present = [starts[n] + code for n, code in enumerate(row) if code < n_bins[n]]
        for a in present:
            for b in present:
                counts[a, b] += weight
    return counts


def one_hot(codes, n_bins, weights):
    """Return H' diag(w) H with H the one-hot matrix."""
    n, _ = codes.shape
    starts = np.concatenate([[0], np.cumsum(n_bins)])[:-1]
    rows, columns = np.nonzero(codes < np.asarray(n_bins))
    place = codes[rows, columns].astype(int) + starts[columns]
    hot = csr_array((np.ones(len(rows)), (rows, place)), shape=(n, sum(n_bins)))
    return (hot.T @ (hot * weights[:, None])).toarray()


@st.composite
def coded_rows(draw):
    n_bins = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    n = draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = np.column_stack([rng.integers(0, bins + 1, n) for bins in n_bins])
    return codes.astype(draw(st.sampled_from([np.uint8, np.uint16]))), n_bins, rng.integers(0, 5, n) / 2


@given(coded_rows())
@settings(deadline=None, max_examples=60)
def test_counts_agree_with_loops(case):
    codes, n_bins, weights = case
    counts = pair_counts(codes, n_bins)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, looped(codes, n_bins, np.ones(len(codes))))
    weighted = pair_counts(codes, n_bins, weights)
    assert weighted.dtype == np.float64
    np.testing.assert_array_equal(weighted, looped(codes, n_bins, weights))


@pytest.mark.parametrize("n_bins", [[3, 200, 7], [300, 5, 40], [2]])
def test_counts_agree_with_the_one_hot_matrix_over_many_blocks(monkeypatch, n_bins):
    monkeypatch.setattr(reference, "SHORTEST_BLOCK", 64)
    monkeypatch.setattr(reference, "LONGEST_BLOCK", 999)
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, bins + 1, 5000) for bins in n_bins]).astype(np.uint16)
    weights = rng.random(5000)
    counts = pair_counts(codes, n_bins)
    np.testing.assert_array_equal(counts, one_hot(codes, n_bins, np.ones(5000)))
    np.testing.assert_array_equal(counts, counts.T)
    np.testing.assert_allclose(pair_counts(codes, n_bins, weights), one_hot(codes, n_bins, weights), rtol=1e-12)


def test_layout_of_rows_does_not_matter():
    codes = np.random.default_rng(0).integers(0, 5, (100, 3)).astype(np.uint8)
    np.testing.assert_array_equal(pair_counts(np.asfortranarray(codes), [4] * 3), pair_counts(codes, [4] * 3))
    np.testing.assert_array_equal(pair_counts(codes[::-2], [4] * 3), pair_counts(codes[::-2].copy(), [4] * 3))


def subset_looped(codes, n_bins, subset, weights):
    """Count row by row, if no column of the subset is missing."""
    table = np.zeros([n_bins[n] for n in subset])
    for row, weight in zip(codes, weights, strict=True):
        cell = tuple(int(row[n]) for n in subset)
        if all(code < n_bins[n] for code, n in zip(cell, subset, strict=True)):
            table[cell] += weight
    return table


@given(coded_rows())
@settings(deadline=None, max_examples=60)
def test_counts_of_subsets_agree_with_loops(case):
    codes, n_bins, weights = case
    subsets = [s for size in (1, 2, 3) for s in combinations(range(len(n_bins)), size)]
    counts = subset_counts(codes, n_bins, subsets)
    weighted = subset_counts(codes, n_bins, subsets, weights)
    assert list(counts) == subsets
    for subset in subsets:
        assert (counts[subset].dtype, weighted[subset].dtype) == (np.int64, np.float64)
        np.testing.assert_array_equal(counts[subset], subset_looped(codes, n_bins, subset, np.ones(len(codes))))
        np.testing.assert_array_equal(weighted[subset], subset_looped(codes, n_bins, subset, weights))


def test_triples_sum_to_pairs_where_nothing_is_missing(monkeypatch):
    monkeypatch.setattr(reference, "SHORTEST_BLOCK", 64)
    monkeypatch.setattr(reference, "LONGEST_BLOCK", 999)
    rng = np.random.default_rng(0)
    n_bins = [3, 20, 7, 11]
    codes = np.column_stack([rng.integers(0, bins, 5000) for bins in n_bins]).astype(np.uint8)
    counts = subset_counts(codes, n_bins, [(0, 1, 3), (1, 2, 3)])
    pairs = pair_counts(codes, n_bins)
    np.testing.assert_array_equal(counts[0, 1, 3].sum(axis=2), pairs[:3, 3:23])
    np.testing.assert_array_equal(counts[1, 2, 3].sum(axis=0), pairs[23:30, 30:])


def test_no_subset_and_no_rows():
    assert subset_counts(np.empty((0, 2), dtype=np.uint8), [2, 3], []) == {}
    assert subset_counts(np.empty((0, 2), dtype=np.uint8), [2, 3], [(0, 1)])[0, 1].sum() == 0
