"""Passes over a Gaussian block: every engine against a loop over rows, and the laws of its sums."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from tests.engines.block_cases import assert_close, make_codes, make_components, make_layout

from jointwise.engines import compiled_parts
from jointwise.engines.blocks import (
    BlockComponents,
    BlockLayout,
    BlockSums,
    ReferenceBlockEngine,
    base,
    block_engine,
    compiled,
    cuda,
)
from jointwise.engines.blocks.compiled import CompiledBlockEngine
from jointwise.engines.blocks.cuda import CudaBlockEngine
from jointwise.exceptions import InputError


def on_torch(codes, layout, weights=None):
    return CudaBlockEngine(codes, layout, weights, device="cpu")


torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
ENGINES = [ReferenceBlockEngine, CompiledBlockEngine, pytest.param(on_torch, marks=torch)]
FAST = [CompiledBlockEngine, pytest.param(on_torch, marks=torch)]


def by_loops(codes, layout, c, weights):
    """Sums row by row, component by component, cell by cell; densities by SciPy."""
    F, d = c.means.shape
    totals, firsts, seconds, likelihood = np.zeros(F), np.zeros((F, d)), np.zeros((F, d, d)), 0.0
    counts, spikes = [np.zeros_like(t) for t in c.tables], [np.zeros_like(s) for s in c.spikes]
    for row, weight in zip(codes.astype(int), weights, strict=True):
        cells = row[list(layout.columns)]
        n_intervals = np.array([len(w) for w in layout.values], dtype=int)
        o, m = np.flatnonzero(cells < n_intervals), np.flatnonzero(cells >= n_intervals)
        x = np.array([layout.values[j][cells[j]] for j in o])
        hits = [(counts[k], c.tables[k], row[n]) for k, n in enumerate(layout.others)]
        hits += [(spikes[j], c.spikes[j], max(0, cells[j] - n_intervals[j] + 1)) for j in range(d)]
        hits = [(sums, table, place) for sums, table, place in hits if place < len(table)]
        logs = c.log_weights + sum((table[place] for _, table, place in hits), np.zeros(F))
        for r in range(F):
            if len(o):
                logs[r] += multivariate_normal(c.means[r, o], c.covariances[r][np.ix_(o, o)]).logpdf(x)
        likelihood += weight * logsumexp(logs)
        for r, p in enumerate(weight * np.exp(logs - logsumexp(logs))):
            S, filled, spread = c.covariances[r], np.zeros(d), np.zeros((d, d))
            regression = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)]) if len(o) else np.zeros((len(m), 0))
            filled[o] = x - c.means[r, o]
            filled[m] = regression @ filled[o]
            spread[np.ix_(m, m)] = S[np.ix_(m, m)] - regression @ S[np.ix_(o, m)]
            totals[r] += p
            firsts[r] += p * filled
            seconds[r] += p * (np.outer(filled, filled) + spread)
            for sums, _, place in hits:
                sums[place, r] += p
    return BlockSums(totals, firsts, seconds, tuple(counts), tuple(spikes), likelihood)


@pytest.mark.parametrize("engine", ENGINES)
@given(
    seed=st.integers(0, 10**6),
    F=st.integers(1, 4),
    d=st.integers(0, 4),
    n_others=st.integers(0, 2),
    spikes=st.integers(0, 2),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    weighted=st.booleans(),
    n=st.sampled_from([0, 1, 12]),
)
@settings(deadline=None, max_examples=60)
def test_sums_are_those_of_loops_over_rows(engine, seed, F, d, n_others, spikes, missing, weighted, n):
    rng = np.random.default_rng(seed)
    layout = make_layout(rng, d, n_others, spikes)
    codes, components = make_codes(rng, layout, n, missing), make_components(rng, layout, F)
    weights = rng.gamma(1.0, size=n) if weighted else None
    found = engine(codes, layout, weights).sums(components)
    assert_close(found, by_loops(codes, layout, components, np.ones(n) if weights is None else weights))


@pytest.mark.parametrize("engine", [ReferenceBlockEngine, CompiledBlockEngine])
@pytest.mark.parametrize(("d", "missing"), [(0, 0.0), (1, 0.2), (5, 0.0), (5, 0.3)])
def test_log_densities_are_those_of_single_rows(engine, d, missing):
    rng = np.random.default_rng(d)
    layout = make_layout(rng, d, 2, spikes=1)
    codes, components = make_codes(rng, layout, 150, missing), make_components(rng, layout, 3)
    weights = rng.gamma(1.0, size=len(codes))
    found = engine(codes, layout, weights).log_densities(components, (1.0, 3.0))
    for logs, scale in zip(found, (1.0, 3.0), strict=True):
        scaled = replace(components, covariances=scale * components.covariances)
        plain = [ReferenceBlockEngine(row[None], layout).sums(scaled).log_likelihood for row in codes]
        np.testing.assert_allclose(logs, plain, rtol=1e-12)
    assert weights @ found[0] == pytest.approx(engine(codes, layout, weights).sums(components).log_likelihood)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize(
    ("d", "F", "spikes", "missing", "n_intervals"), [(3, 5, 2, 0.1, 40), (6, 2, 0, 0.0, 900), (13, 3, 1, 0.2, 300)]
)
def test_large_tables_agree_with_the_plain_engine(monkeypatch, engine, d, F, spikes, missing, n_intervals):
    """Many batches, parts, windows and patterns, also where runs end inside them."""
    monkeypatch.setattr(compiled_parts, "LEAST_PART", 700)
    monkeypatch.setattr(compiled, "WINDOW", 4000)
    monkeypatch.setattr(cuda, "BATCH_BYTES", 1 << 22)
    rng = np.random.default_rng(d)
    layout = make_layout(rng, d, 2, spikes, n_intervals)
    codes, components = make_codes(rng, layout, 9001, missing), make_components(rng, layout, F)
    weights = rng.gamma(1.0, size=9001)
    found, plain = (each(codes, layout, weights).sums(components) for each in (engine, ReferenceBlockEngine))
    assert_close(found, plain, 1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_of_parts_add_up_and_rows_may_be_repeated_or_weigh_more(engine):
    rng = np.random.default_rng(0)
    layout = make_layout(rng, 3, 2, spikes=1)
    codes, components = make_codes(rng, layout, 600, 0.1), make_components(rng, layout, 3)
    whole = engine(codes, layout).sums(components)
    parts = [engine(codes[rows], layout).sums(components) for rows in (slice(0, 250), slice(250, None))]
    assert_close(parts[0] + parts[1], whole)
    often = rng.integers(0, 4, len(codes))
    repeated = engine(np.repeat(codes, often, axis=0), layout).sums(components)
    assert_close(engine(codes, layout, often.astype(float)).sums(components), repeated)
    assert_close(engine(rng.permutation(codes), layout).sums(components), whole)


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_are_consistent(engine):
    """Counts of a column sum to the totals of the rows that have the cell, and seconds are symmetric."""
    rng = np.random.default_rng(1)
    layout = make_layout(rng, 3, 2, spikes=1)
    codes, components = make_codes(rng, layout, 500, 0.0), make_components(rng, layout, 4)
    sums = engine(codes, layout).sums(components)
    assert sums.totals.sum() == pytest.approx(500)
    for table in sums.counts + sums.spikes:
        np.testing.assert_allclose(table.sum(axis=0), sums.totals, rtol=1e-9)
    np.testing.assert_allclose(sums.seconds, np.swapaxes(sums.seconds, 1, 2), rtol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_step_from_the_sums_raises_the_likelihood(engine):
    rng = np.random.default_rng(2)
    layout = make_layout(rng, 3, 1, spikes=1)
    codes, components = make_codes(rng, layout, 400, 0.2), make_components(rng, layout, 3)
    rows, reached = engine(codes, layout), []
    for _ in range(6):
        sums = rows.sums(components)
        reached.append(sums.log_likelihood)
        first = sums.firsts / sums.totals[:, None]
        spread = sums.seconds / sums.totals[:, None, None] - first[:, :, None] * first[:, None, :]
        tables, spikes = (
            [np.log(np.maximum(t / t.sum(axis=0), 1e-300)) for t in each] for each in (sums.counts, sums.spikes)
        )
        components = BlockComponents(
            np.log(sums.totals / sums.totals.sum()), components.means + first, spread, tables, spikes
        )
    assert np.all(np.diff(reached) > -1e-9)
    assert reached[-1] > reached[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_impossible_and_remote_rows_leave_numbers(engine):
    layout = BlockLayout([3, 2], [0], [np.array([-1e8, 0.0, 1e8])], [1])
    with np.errstate(divide="ignore"):
        components = BlockComponents(
            np.log([1.0, 0.0]), np.zeros((2, 1)), np.ones((2, 1, 1)), (np.log([[1.0, 1.0], [0.0, 0.0]]),),
            (np.zeros((1, 2)),),
        )  # fmt: skip
    codes = np.array([[1, 1], [0, 0], [2, 1], [3, 2]], dtype=np.uint8)
    sums = engine(codes, layout).sums(components)
    np.testing.assert_array_equal(sums.totals, [4.0, 0.0])
    assert np.isfinite(sums.log_likelihood)
    assert np.isfinite(sums.seconds).all()
    assert sums.log_likelihood < 2 * base.LEAST_LOG


@pytest.mark.parametrize("engine", ENGINES)
def test_no_digits_are_lost_far_from_zero(engine):
    """Values of 1e6 with a spread of one: sums about the means keep twelve digits of the variance."""
    rng = np.random.default_rng(3)
    values = 1e6 + np.sort(rng.normal(size=200))
    layout = BlockLayout([200], [0], [values], [])
    codes = np.arange(200, dtype=np.uint8)[:, None]
    one = np.ones((1, 1, 1))
    sums = engine(codes, layout).sums(BlockComponents(np.zeros(1), [[1e6]], one, (), (np.zeros((1, 1)),)))
    found = sums.seconds[0, 0, 0] / 200 - (sums.firsts[0, 0] / 200) ** 2
    assert found == pytest.approx(np.var(values - 1e6), rel=1e-12)


def test_threads_and_repeats_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(compiled, "ONE_THREAD", 0)
    rng = np.random.default_rng(4)
    layout = make_layout(rng, 4, 1, spikes=1)
    codes, components = make_codes(rng, layout, 50_000, 0.1), make_components(rng, layout, 3)
    found = [CompiledBlockEngine(codes, layout, None, n_threads).sums(components) for n_threads in (None, None, 1)]
    n_threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        found.append(CompiledBlockEngine(codes, layout).sums(components))
    finally:
        numba.set_num_threads(n_threads)
    for other in found[1:]:
        assert np.array_equal(other.seconds, found[0].seconds)
        assert np.array_equal(other.counts[0], found[0].counts[0])
        assert other.log_likelihood == found[0].log_likelihood


def test_few_parts_where_sums_are_large(monkeypatch):
    monkeypatch.setattr(compiled_parts, "PARTS_BYTES", 1)
    rng = np.random.default_rng(5)
    layout = make_layout(rng, 2, 1)
    codes, components = make_codes(rng, layout, 20_000, 0.1), make_components(rng, layout, 2)
    found, plain = (e(codes, layout).sums(components) for e in (CompiledBlockEngine, ReferenceBlockEngine))
    assert_close(found, plain)


def test_windows_of_sorted_rows(monkeypatch):
    """A window without gaps beside one with gaps, and more cells than one word of bits holds."""
    rng = np.random.default_rng(6)
    layout = BlockLayout([3] * 70, range(70), [np.arange(3.0)] * 70, [])
    codes = rng.integers(0, 3, (300, 70)).astype(np.uint8)
    codes[100:][rng.random((200, 70)) < 0.005] = 3
    monkeypatch.setattr(compiled, "WINDOW", 100)
    order = compiled._sorted(codes, layout).reshape(3, 100)
    assert np.array_equal(np.sort(order, axis=1), np.tile(np.arange(100), (3, 1)))
    assert np.array_equal(order[0], np.arange(100))
    for window, own in zip(np.split(codes, 3), order, strict=True):
        patterns = ["".join(row) for row in np.where(window[own] == 3, "1", "0")]
        runs = [a for a, b in zip(patterns, ["", *patterns], strict=False) if a != b]
        assert len(runs) == len(set(patterns))
    assert len(compiled._sorted(codes[:100], layout)) == 0


def test_arrays_that_must_not_be_written_are_compiled_for_once():
    rng = np.random.default_rng(7)
    layout = make_layout(rng, 2, 1)
    codes, components = make_codes(rng, layout, 100, 0.1), make_components(rng, layout, 2)
    locked = codes.copy()
    locked.flags.writeable = False
    columns = np.asfortranarray(codes)
    expected = ReferenceBlockEngine(codes, layout).sums(components)
    for each in (locked, columns):
        assert_close(CompiledBlockEngine(each, layout).sums(components), expected)
    assert codes.flags.writeable
    n_compiled = len(compiled._part.signatures)
    for name in ("log_weights", "means", "covariances"):
        getattr(components, name).flags.writeable = False
    CompiledBlockEngine(codes, layout, np.ones(100)).sums(components)
    assert len(compiled._part.signatures) == n_compiled


def test_the_engine_follows_the_size():
    rng = np.random.default_rng(8)
    layout = make_layout(rng, 2, 1)
    assert isinstance(block_engine(make_codes(rng, layout, 10, 0.0), layout), ReferenceBlockEngine)
    assert isinstance(block_engine(make_codes(rng, layout, 60_000, 0.0), layout), CompiledBlockEngine)


def test_layouts_and_components_that_do_not_fit_are_refused():
    w = [np.arange(3.0)]
    for arguments, words in [
        (([3, 2], [0, 0], w * 2, []), "different positions"),
        (([3, 2], [0], w, [2]), "different positions below 2"),
        (([3, 2], [0], [], [1]), "1 arrays"),
        (([2, 2], [0], w, [1]), "at most 2 finite numbers"),
        (([3, 2], [0], [np.array([0.0, np.nan])], [1]), "finite"),
    ]:
        with pytest.raises(InputError, match=words):
            BlockLayout(*arguments)
    layout = BlockLayout([4, 2], [0], w, [1])
    with pytest.raises(InputError, match="other axes"):
        layout.check([4, 3])
    good = BlockComponents(np.zeros(1), np.zeros((1, 1)), np.ones((1, 1, 1)), (np.zeros((2, 1)),), (np.zeros((2, 1)),))
    good.check(layout)
    for change, words in [
        ({"means": np.zeros((1, 2))}, "`means` must have shapes"),
        ({"tables": ()}, "`tables` must have shapes"),
        ({"spikes": (np.zeros((1, 1)),)}, "`spikes` must have shapes"),
        ({"covariances": -np.ones((1, 1, 1))}, "positive definite; that of component 0"),
        ({"covariances": np.full((1, 1, 1), np.nan)}, "`covariances` must be finite"),
        ({"means": np.full((1, 1), np.inf)}, "`means` must be finite"),
        ({"tables": (np.full((2, 1), np.nan),)}, "`tables` must not be NaN or inf"),
        ({"log_weights": np.full(1, -np.inf)}, "`log_weights`"),
    ]:
        with pytest.raises(InputError, match=words):
            replace(good, **change).check(layout)
