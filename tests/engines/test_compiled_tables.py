"""Compiled coding and counting equal the plain versions, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import engines
from jointwise.axes import BinnedAxis, encode_rows
from jointwise.engines import compiled_tables, reference
from jointwise.marginals import Profile, coding
from jointwise.tables import encode

floats = st.floats(allow_nan=False, allow_infinity=False)
edge_lists = st.lists(floats | st.integers(-5, 5).map(float), max_size=30, unique_by=lambda x: x + 0.0)


@given(edge_lists, st.lists(st.floats(allow_infinity=False) | st.integers(-6, 6).map(float), max_size=40), st.data())
@settings(max_examples=200)
def test_bins_are_those_of_the_axis(edges, values, data):
    edges = sorted(edges)
    spikes = sorted(
        data.draw(st.lists(st.sampled_from(values), max_size=3, unique_by=lambda x: x + 0.0)) if values else []
    )
    axis = BinnedAxis(edges, [s for s in spikes if not np.isnan(s)])
    with np.errstate(all="ignore"):
        near = [np.nextafter(e, side) for e in edges for side in (-np.inf, np.inf)]
    values = np.array([*values, *edges, *[v for v in near if np.isfinite(v)]])
    codes = np.full((len(values), 3), 77, dtype=np.uint8)
    compiled_tables.interval_codes(values, axis.edges, axis.spikes, axis.n_bins, codes[:, 1])
    assert codes[:, 1].tolist() == axis.index(values).tolist()
    assert (codes[:, [0, 2]] == 77).all()


@pytest.mark.parametrize("edges", [[0.0, 1e308], [-1.7e308, 0.0, 1.7e308], [0.0, 5e-324], [1.0, 1.0 + 2**-52, 2.0]])
def test_edges_at_the_ends_of_floats(edges):
    axis = BinnedAxis(edges)
    with np.errstate(all="ignore"):
        near = [*np.nextafter(edges, -np.inf), *np.nextafter(edges, np.inf)]
    values = np.array([*edges, *near, np.inf, -np.inf, np.nan])
    codes = np.empty(len(values), dtype=np.uint16)
    compiled_tables.interval_codes(values, axis.edges, axis.spikes, axis.n_bins, codes)
    assert codes.tolist() == axis.index(values).tolist()


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("rows", [0, 1, 1000])
@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_are_counted_as_by_the_reference(kind, rows, weighted, monkeypatch):
    monkeypatch.setattr(compiled_tables, "CACHED_ROWS", 300)
    n_bins = [3, 1, 40, 7]
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, bins + 1, rows) for bins in n_bins]).astype(kind)
    weights = rng.random(rows) if weighted else None
    ours, theirs = (count(codes, n_bins, weights) for count in (compiled_tables.pair_counts, reference.pair_counts))
    assert ours.dtype == theirs.dtype
    assert np.array_equal(ours, theirs)


def test_weights_of_many_rows_are_added_in_the_order_of_the_reference(monkeypatch):
    monkeypatch.setattr(engines, "COMPILED_PAIRS", 0)
    rng = np.random.default_rng(0)
    for rows in (reference.SHORTEST_BLOCK, reference.SHORTEST_BLOCK + 1):
        codes, weights = rng.integers(0, 3, (rows, 2)).astype(np.uint8), rng.random(rows)
        assert np.array_equal(
            engines.pair_counts(codes, [2, 2], weights), reference.pair_counts(codes, [2, 2], weights)
        )


def test_large_tables_are_coded_and_counted_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    n = 3000
    number, text = rng.normal(size=n), np.array(["a", "b", "c", None], dtype=object)[rng.integers(0, 4, n)]
    number[::7] = np.nan
    number[::5] = 0.0  # a spike
    data = {
        "number": number,
        "text": text,
        "whole": rng.integers(0, 300, n),
        "level": rng.integers(0, 5, n),
        "flag": rng.random(n) < 0.3,
    }
    profile = Profile.of(data)
    schema = profile.schema({"level": "categorical"})
    axes = profile.axes(schema, 64)
    assert axes[0].spikes.tolist() == [0.0]
    expected = encode_rows(encode(data, schema), axes)
    for module in (coding, engines):
        monkeypatch.setattr(module, "COMPILED_TABLE_CELLS", 0)
    monkeypatch.setattr(engines, "COMPILED_PAIRS", 0)
    other = {**data, "text": np.where(np.arange(n) % 2, "unseen", text)}
    assert np.array_equal(coding.code_table(data, schema, axes), expected)
    assert np.array_equal(coding.code_table(other, schema, axes), encode_rows(encode(other, schema), axes))
    n_bins = [axis.n_bins for axis in axes]
    assert np.array_equal(engines.pair_counts(expected, n_bins), reference.pair_counts(expected, n_bins))
