"""CodedRows: coarser axes, values of codes, blocks of columns, and trees."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines import tree_cases

from jointwise.axes import DiscreteAxis
from jointwise.engines.blocks import BlockComponents, BlockLayout, ReferenceBlockEngine
from jointwise.engines.trees import ReferenceTreeEngine
from jointwise.engines.trees.compiled import CompiledTreeEngine
from jointwise.exceptions import InputError
from jointwise.marginals import Profile
from jointwise.rows import coded as coded_module
from jointwise.rows import store
from jointwise.rows.coded import CodedRows
from jointwise.tables.variables import Schema, Variable


def make_table(n=500, seed=0):
    """Return a column of each kind, with gaps and a spike."""
    rng = np.random.default_rng(seed)

    def gaps(values):
        return [None if hole else value for value, hole in zip(values, rng.random(n) < 0.1, strict=True)]

    return {
        "real": gaps(rng.normal(size=n).tolist()),
        "zero": gaps((rng.exponential(size=n) * (rng.random(n) < 0.6)).tolist()),
        "wide": gaps(rng.integers(-900, 900, n).tolist()),
        "few": gaps(rng.integers(0, 5, n).tolist()),
        "text": gaps(rng.choice(["a", "b", "c"], n).tolist()),
    }


NUMBERS = ["real", "zero", "wide", "few"]


def make_rows(n=500, n_bins=16, weights=None):
    """Return the rows on fine axes, the coarse axes, and the same rows coded on these."""
    table = make_table(n)
    profile = Profile.of(table)
    schema = profile.schema()
    fine, coarse = profile.axes(schema, n_bins, fine=NUMBERS), profile.axes(schema, n_bins)
    return CodedRows.of(table, schema, fine, weights), coarse, CodedRows.of(table, schema, coarse, weights)


def assert_same_codes(found, expected):
    assert found.codes.dtype == expected.codes.dtype
    assert np.array_equal(found.codes, expected.codes)
    assert found.axes == expected.axes
    assert np.array_equal(found.weights, expected.weights)


@pytest.mark.parametrize("n_bins", [1, 16, 300])
def test_regrouped_rows_are_those_coded_on_the_coarse_axes(n_bins):
    rows, coarse, expected = make_rows(n_bins=n_bins, weights=np.arange(500.0))
    assert_same_codes(rows.regrouped(coarse), expected)


def test_rows_of_a_mapped_file_are_regrouped_in_blocks(tmp_path, monkeypatch):
    rows, coarse, expected = make_rows()
    monkeypatch.setattr(coded_module, "COUNTED_ROWS", 64)
    mapped = np.memmap(tmp_path / "codes", rows.codes.dtype, "w+", shape=rows.codes.shape)
    mapped[:] = rows.codes
    rows = CodedRows(rows.schema, rows.axes, mapped)
    assert_same_codes(rows.regrouped(coarse), expected)
    monkeypatch.setattr(store, "MEMORY_BYTES", 100)
    found = rows.regrouped(coarse, tmp_path)
    assert isinstance(found.codes, np.memmap)
    assert_same_codes(found, expected)
    assert [path.name for path in tmp_path.iterdir()] == ["codes"]


def test_axes_that_are_no_merger_are_refused():
    rows, coarse, expected = make_rows()
    with pytest.raises(InputError, match="only be merged"):
        expected.regrouped(rows.axes)
    with pytest.raises(InputError, match="Expected 5 axes"):
        rows.regrouped(coarse[:2])


def test_values_are_those_of_the_table():
    rows, _, expected = make_rows()
    found = rows.values()
    for n, name in enumerate(rows.schema.names):
        column = make_table()[name]
        if name == "text":
            column = [None if cell is None else "abc".index(cell) for cell in column]
        np.testing.assert_array_equal(found[:, n], np.array(column, dtype=float))
    np.testing.assert_array_equal(rows.values([4, 1]), found[:, [4, 1]])
    with pytest.raises(InputError, match="no centres"):
        expected.values()


def test_a_block_of_the_rows():
    rows, coarse, _ = make_rows(weights=np.arange(500.0))
    values = [axis.centres / 100 for axis in rows.axes[:3]]
    layout = BlockLayout(rows.n_bins, [0, 1, 2], values, [3, 4])
    rng = np.random.default_rng(0)
    components = BlockComponents(
        np.log([0.3, 0.7]), rng.normal(size=(2, 3)), np.stack([np.eye(3)] * 2),
        [np.log(rng.dirichlet(np.ones(bins), 2).T) for bins in layout.table_bins],
        [np.log(rng.dirichlet(np.ones(1 + n), 2).T) for n in layout.n_spikes],
    )  # fmt: skip
    found = rows.block_engine(layout).sums(components)
    assert layout.n_spikes == (0, 1, 0)
    assert found.totals.sum() == pytest.approx(rows.n_rows)
    expected = ReferenceBlockEngine(rows.codes, layout, rows.weights).sums(components)
    np.testing.assert_allclose(found.seconds, expected.seconds)
    np.testing.assert_allclose(found.counts[1].sum(axis=1), rows.marginal(4))
    np.testing.assert_allclose(found.spikes[1][1].sum(), rows.marginal(1)[-1])
    with pytest.raises(InputError, match="other axes"):
        rows.regrouped(coarse).block_engine(layout)


def test_trees_over_the_rows():
    fine, coarse, _ = make_rows(weights=np.arange(500.0))
    rows, rng = fine.regrouped(coarse), np.random.default_rng(0)
    components = tree_cases.make_components(rng, tree_cases.make_forest(rng, rows.n_bins, 2))
    pairs = tree_cases.all_pairs(len(rows.n_bins))
    found, expected = rows.tree_engine(), ReferenceTreeEngine(rows.codes, rows.n_bins, rows.weights)
    assert isinstance(found, CompiledTreeEngine)
    tree_cases.assert_close(found.edge_sums(components), expected.edge_sums(components))
    tree_cases.assert_close(found.pair_sums(components, pairs), expected.pair_sums(components, pairs))
    assert found.edge_sums(components).totals.sum() == pytest.approx(rows.n_rows)
    with pytest.raises(InputError, match="other states"):
        fine.tree_engine().edge_sums(components)


@given(st.integers(0, 10**6), st.integers(0, 30), st.booleans(), st.booleans())
def test_canonical_rows_are_the_different_ones_in_order_with_their_weights(seed, n, weighted, repeats):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3 if repeats else 400, size=(n, 2)).astype(np.uint16)
    weights = rng.integers(0, 3, size=n).astype(float) if weighted else None
    schema = Schema((Variable("a", "integer"), Variable("b", "integer")))
    axes = (DiscreteAxis(np.arange(codes.max(initial=2) + 0.0)),) * 2  # the largest code is a missing cell
    rows = CodedRows(schema, axes, codes, weights)
    expected = Counter()
    for row, weight in zip(codes.tolist(), np.ones(n) if weights is None else weights, strict=True):
        if weight and any(code < bins for code, bins in zip(row, rows.n_bins, strict=True)):
            expected[tuple(row)] += weight
    found = rows.canonical()
    own = np.ones(len(found)) if found.weights is None else found.weights
    assert dict(zip(map(tuple, found.codes.tolist()), own.tolist(), strict=True)) == expected
    again = rows.take(rng.permutation(n)).canonical()
    assert again.codes.tolist() == found.codes.tolist()
