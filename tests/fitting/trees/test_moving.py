"""Edges move to where bins tell most: against plain loops, and to the breaks of laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fitting.trees.test_states import design_of
from tests.rows.test_parted import parted as cut_into_parts

from jointwise.fitting.trees.counts import MergedPairs, RowPairs
from jointwise.fitting.trees.design import TreeDesign
from jointwise.fitting.trees.merging import EVEN_LOSS
from jointwise.fitting.trees.moving import PRIOR_ROWS, moved_cuts


def plain_value(cuts, tables, counts):
    """What edges are to raise: each row's log-likelihood given the others of its bin, less for uneven bins."""
    parts = np.split(np.arange(len(counts)), np.asarray(cuts) + 1)
    value = -EVEN_LOSS * sum((8 * counts[part].sum() / counts.sum()) ** 2 for part in parts)
    for table in tables:
        for part in parts:
            seen, prior = table[part].sum(axis=0), PRIOR_ROWS * table.sum(axis=0) / table.sum()
            value += sum(
                c * np.log((c - 1 + p) / (seen.sum() - 1 + PRIOR_ROWS)) for c, p in zip(seen, prior, strict=True) if c
            )
    return value


def drawn_tables(seed, n_bins, n_tables):
    rng = np.random.default_rng(seed)
    tables = [rng.poisson(rng.gamma(1.0, 4.0, size=(n_bins, 3))).astype(float) for _ in range(n_tables)]
    return tables, np.maximum(sum((table.sum(axis=1) for table in tables), np.zeros(n_bins)), 1.0)


@given(seed=st.integers(0, 1000), n_tables=st.integers(0, 3))
@settings(deadline=None, max_examples=30)
def test_one_cut_lies_where_its_value_is_largest(seed, n_tables):
    tables, counts = drawn_tables(seed, 8, n_tables)
    moved = moved_cuts(np.array([seed % 7]), tables, counts)
    values = [plain_value([cut], tables, counts) for cut in range(7)]
    assert plain_value(moved, tables, counts) == pytest.approx(max(values), abs=1e-9)


@given(seed=st.integers(0, 1000), n_tables=st.integers(1, 2))
@settings(deadline=None, max_examples=30)
def test_cuts_stay_apart_and_gain(seed, n_tables):
    tables, counts = drawn_tables(seed, 12, n_tables)
    cuts = np.sort(np.random.default_rng(seed).choice(11, 4, replace=False))
    moved = moved_cuts(cuts, tables, counts)
    assert moved.min() >= 0
    assert moved.max() < 11
    assert (np.diff(moved) > 0).all()
    assert plain_value(moved, tables, counts) >= plain_value(cuts, tables, counts) - 1e-9


def test_no_cuts_and_no_rows():
    assert moved_cuts(np.empty(0, dtype=np.int64), [], np.ones(3)).tolist() == []
    assert moved_cuts(np.array([0]), [np.zeros((3, 2))], np.zeros(3)).tolist() == [0]


def test_a_pure_bin_is_not_given_up_for_a_bin_of_a_few_rows():
    # of 160 bins the first 80 hold one state alone, the last two another: one cut, and the large break wins
    table = np.array([[1.0, 0.0, 0.0]] * 80 + [[0.1, 0.9, 0.0]] * 158 + [[0.0, 0.0, 1.0]] * 2)
    assert moved_cuts(np.array([80]), [table], table.sum(axis=1)).tolist() == [79]


def test_edges_lie_next_to_the_breaks_of_a_law():
    # an edge lies within a finest bin, some 5 rows of 20,000, of a break: 0.0013 at the density of x at 1.2
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    y = rng.normal(size=20_000)
    y = np.where((x > -0.5) & (x < 1.2), np.abs(y), -np.abs(y))
    design, _, _ = design_of({"x": x, "y": y})
    edges = design.space(4).columns[0].axis.edges
    assert np.abs(edges[:, None] - [-0.5, 1.2]).min(axis=0).max() < 0.004
    assert np.abs(design.space(4).columns[1].axis.edges).min() < 0.004


@pytest.mark.parametrize("weights", [None, "drawn"])
def test_pairs_of_rows_and_of_counts_agree(weights):
    rng = np.random.default_rng(1)
    x = np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300))
    _, rows, _ = design_of({"x": x, "y": rng.choice(["a", "b", None], 300)})
    if weights:
        rows = rows.with_weights(rng.random(len(rows)) + 0.5)
    fine = rows.axes[0]
    axis = type(fine)(fine.edges[::7], fine.spikes)
    table = RowPairs(rows).table(0, 1, axis, rows.axes[1])
    assert np.allclose(table, MergedPairs(rows.pairs()).table(0, 1, axis, rows.axes[1]), rtol=1e-6)
    plain = np.zeros(table.shape)
    own = rows.weights if weights else np.ones(len(rows))
    for row, weight in zip(rows.regrouped((axis, rows.axes[1])).codes, own, strict=True):
        if row[0] < axis.n_bins and row[1] < rows.axes[1].n_bins:
            plain[row[0], row[1]] += weight
    assert np.allclose(table, plain)


def test_rows_in_parts_have_the_same_edges_and_draws():
    rng = np.random.default_rng(2)
    x = rng.normal(size=500)
    _, rows, columns = design_of({"x": x, "y": x + rng.normal(size=500)})
    found, drawn = [], []
    for each in (rows, cut_into_parts(rows, [200])):
        own = np.random.default_rng(3)
        found.append([axis.edges for axis in TreeDesign.of(each, columns.coarse, own).space(8).axes])
        drawn.append(own.random())
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    assert drawn[0] == drawn[1]
