"""Passes over tables of pairs against plain loops."""

from itertools import pairwise

import numpy as np
import pytest

from jointwise.engines import reference
from jointwise.engines.trees.base import pair_starts
from jointwise.engines.trees.gains import filled_tables, joint_sums, pair_information

N_BINS = np.array([3, 1, 4, 2])
PAIRS = np.stack(np.triu_indices(4, 1), axis=1)
ENDS = np.concatenate([[0], np.cumsum(N_BINS)])


def split(flat):
    """Tables of the pairs, as matrices."""
    starts = pair_starts(N_BINS.tolist(), PAIRS)
    return [flat[a:b].reshape(N_BINS[i], -1) for a, b, (i, j) in zip(starts, starts[1:], PAIRS, strict=False)]


def of_columns(stacked):
    return [stacked[a:b] for a, b in pairwise(ENDS)]


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_filled_tables_put_the_mean_in_place_of_gaps(missing, weighted):
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, bins + missing, 50) for bins in N_BINS]).astype(np.uint8)
    weights = rng.random(50) if weighted else None
    counts = reference.pair_counts(codes, N_BINS, weights)
    single = np.diagonal(counts).astype(float)
    means = np.concatenate([each / each.sum() for each in of_columns(single)])
    one_hot = []
    for n, mean in enumerate(of_columns(means)):
        one_hot.append(np.array([np.eye(len(mean))[code] if code < len(mean) else mean for code in codes[:, n]]))
    each = np.ones(50) if weights is None else weights
    found = filled_tables(counts, N_BINS, PAIRS, single, means, float(each.sum()))
    for (i, j), table in zip(PAIRS, split(found), strict=True):
        np.testing.assert_allclose(table, (one_hot[i].T * each) @ one_hot[j] / each.sum(), rtol=1e-12, atol=1e-15)


def test_information_is_that_of_each_table():
    rng = np.random.default_rng(1)
    means = np.concatenate([rng.dirichlet(np.ones(bins)) for bins in N_BINS])
    tables = rng.random(int(pair_starts(N_BINS.tolist(), PAIRS)[-1]))
    tables[::5] = 0.0
    expected = [
        sum(
            table[a, b] * np.log(table[a, b] / of_columns(means)[i][a] / of_columns(means)[j][b])
            for a, b in np.argwhere(table > 0)
        )
        for (i, j), table in zip(PAIRS, split(tables), strict=True)
    ]
    np.testing.assert_allclose(pair_information(tables, N_BINS, PAIRS, means), expected, rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 3.0])
def test_sums_of_pairs_are_those_of_their_entries(gamma):
    rng = np.random.default_rng(2)
    tables = rng.random(int(pair_starts(N_BINS.tolist(), PAIRS)[-1]))
    counts = rng.random((len(tables), 3))
    margins = np.concatenate([rng.dirichlet(np.ones(bins)) for bins in N_BINS])
    found = joint_sums(counts, tables, N_BINS, PAIRS, margins, np.array([gamma, 2.0]))
    for r in range(3):
        for p, (own, known) in enumerate(zip(split(counts[:, r]), split(tables), strict=True)):
            i, j = PAIRS[p]
            x = own + gamma * known + 2.0 * np.outer(of_columns(margins)[i], of_columns(margins)[j])
            np.testing.assert_allclose(found[p, r], (x * np.log(x)).sum(), rtol=1e-12)
