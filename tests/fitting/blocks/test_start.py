"""Where EM begins: sums of groups against loops."""

import numpy as np
from numpy.testing import assert_allclose

from jointwise.engines.blocks import BlockLayout
from jointwise.fitting.blocks.start import _spike_counts


def test_without_block_columns_there_are_no_spikes():
    layout = BlockLayout([2], (), (), (0,))
    assert _spike_counts(layout, np.zeros((3, 1), np.uint8), np.zeros(3, np.int64), np.ones(3), 2) == []


def test_spike_counts_are_those_of_loops():
    rng = np.random.default_rng(0)
    n, n_groups, sizes, n_spikes = 60, 3, (5, 4, 7), (0, 2, 1)
    bins = [2, *(a + b for a, b in zip(sizes, n_spikes, strict=True))]
    layout = BlockLayout(bins, (1, 2, 3), [np.arange(size, dtype=float) for size in sizes], (0,))
    codes = np.column_stack([rng.integers(0, bins_of + 1, n) for bins_of in bins]).astype(np.uint8)  # some are missing
    groups, weights = rng.integers(0, n_groups, n), rng.random(n)
    found = _spike_counts(layout, codes, groups, weights, n_groups)
    for c, (size, spikes) in enumerate(zip(sizes, n_spikes, strict=True)):
        expected = np.zeros((1 + spikes, n_groups))
        for code, group, weight in zip(codes[:, c + 1], groups, weights, strict=True):
            if code < size + spikes:
                expected[max(int(code) - size + 1, 0), group] += weight
        assert_allclose(found[c], expected, rtol=1e-12)
