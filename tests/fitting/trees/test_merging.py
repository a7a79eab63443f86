"""Bins that tell the same are merged: against plain loops, breaks found, even where nothing is told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fitting.trees.test_states import design_of

from jointwise.fitting.trees.merging import EVEN_LOSS, _order


def plain_information(table):
    """Mutual information of a table of counts, in nats of all rows."""
    n = table.sum()
    total = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j]:
                total += table[i, j] * np.log(table[i, j] * n / table[i].sum() / table[:, j].sum())
    return total


@given(seed=st.integers(0, 1000), n_tables=st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_the_first_merge_loses_least(seed, n_tables):
    rng = np.random.default_rng(seed)
    tables = [rng.poisson(4.0, size=(6, 3)).astype(float) for _ in range(n_tables)]
    counts = tables[0].sum(axis=1)
    losses = []
    for i in range(5):
        loss = EVEN_LOSS * (8 * (counts[i] + counts[i + 1]) / counts.sum()) ** 2
        for table in tables:
            merged = np.vstack([table[:i], table[i] + table[i + 1], table[i + 2 :]])
            loss += plain_information(table) - plain_information(merged)
        losses.append(loss)
    order = _order(tables, counts)
    assert losses[order[0]] == pytest.approx(min(losses), abs=1e-9)
    assert sorted(order) == list(range(5))


def test_bins_that_tell_nothing_stay_even():
    order = _order([], np.full(64, 10.0))
    kept = np.sort(np.append(order[-7:], [-1, 63]))
    sizes = np.diff(kept)
    assert sizes.max() <= 2 * sizes.min()


def test_edges_lie_where_another_column_changes():
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    design, _, _ = design_of({"x": x, "y": np.where((x > -0.5) & (x < 1.2), "in", "out")})
    edges = design.space(4).columns[0].axis.edges
    assert np.abs(edges[:, None] - [-0.5, 1.2]).min(axis=0).max() < 0.03
    assert len(edges) == 3
