"""Passes over mixtures of trees: every engine against all states of all rows, and the laws of its sums."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from itertools import product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from tests.engines.tree_cases import all_pairs, assert_close, make_codes, make_components, make_forest

from jointwise.engines import compiled_parts
from jointwise.engines.base import bin_starts
from jointwise.engines.trees import (
    EdgeSums,
    Forest,
    PairSums,
    ReferenceTreeEngine,
    TreeComponents,
    compiled,
    cuda,
    kernels,
    pair_starts,
    reference,
    tree_engine,
)
from jointwise.engines.trees.base import LEAST_LOG
from jointwise.engines.trees.compiled import CompiledTreeEngine
from jointwise.engines.trees.cuda import CudaTreeEngine
from jointwise.exceptions import InputError


def on_torch(codes, n_bins, weights=None):
    return CudaTreeEngine(codes, n_bins, weights, device="cpu")


torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
ENGINES = [ReferenceTreeEngine, CompiledTreeEngine, pytest.param(on_torch, marks=torch)]
FAST = [CompiledTreeEngine, pytest.param(on_torch, marks=torch)]


def by_enumeration(codes, components, weights, pairs):
    """Both sums of a pass: every row, component and state of its missing cells, one after the other."""
    forest = components.forest
    n_bins, F = forest.n_bins, forest.n_trees
    edges, nodes = np.zeros(forest.n_entries), np.zeros((sum(n_bins), F))
    totals, likelihood = np.zeros(F), 0.0
    starts, bins = pair_starts(n_bins, pairs), bin_starts(n_bins)
    counts = np.zeros((starts[-1], F))
    for row, weight in zip(codes.astype(int), weights, strict=True):
        possible = [[code] if code < S else range(S) for code, S in zip(row, n_bins, strict=True)]
        states = list(product(*possible))
        logs = np.array([[log_probability(components, r, s) for s in states] for r in range(F)])
        logs += components.log_weights[:, None]
        likelihood += weight * logsumexp(logs)
        for r, s in product(range(F), range(len(states))):
            p = weight * np.exp(logs[r, s] - logsumexp(logs))
            totals[r] += p
            for n, state in enumerate(states[s]):
                parent = forest.parents[r, n]
                forest.table(edges, r, n)[states[s][parent] if parent >= 0 else 0, state] += p
                nodes[bins[n] + state, r] += p
            for k, (i, j) in enumerate(pairs):
                counts[starts[k] + states[s][i] * n_bins[j] + states[s][j], r] += p
    return EdgeSums(totals, edges, likelihood), PairSums(totals, counts, nodes, likelihood)


def log_probability(components, r, states):
    forest, total = components.forest, 0.0
    for n, state in enumerate(states):
        parent = forest.parents[r, n]
        table = forest.table(components.tables, r, n)
        total += max(table[states[parent] if parent >= 0 else 0, state], LEAST_LOG)
    return total


@pytest.mark.parametrize("engine", ENGINES)
@given(
    seed=st.integers(0, 10**6),
    F=st.integers(1, 3),
    n_bins=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    roots=st.sampled_from([0.0, 0.3, 1.0]),
    missing=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    weighted=st.booleans(),
    n=st.sampled_from([0, 1, 5]),
    concentration=st.sampled_from([1.0, 0.005]),
)
@settings(deadline=None, max_examples=80)
def test_sums_are_those_of_all_states(engine, seed, F, n_bins, roots, missing, weighted, n, concentration):
    """Tables of a concentration of 0.005 are full of zeros, so that most rows are impossible."""
    rng = np.random.default_rng(seed)
    components = make_components(rng, make_forest(rng, n_bins, F, roots), concentration)
    codes = make_codes(rng, n_bins, n, missing)
    weights = rng.gamma(1.0, size=n) if weighted else None
    pairs = all_pairs(len(n_bins))
    pairs = pairs[rng.random(len(pairs)) < 0.7]
    edges, counts = by_enumeration(codes, components, np.ones(n) if weights is None else weights, pairs)
    found = engine(codes, n_bins, weights)
    assert_close(found.edge_sums(components), edges)
    assert_close(found.pair_sums(components, pairs), counts)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize(
    ("n_bins", "F", "missing"),
    [([2] * 12, 3, 0.1), ([4, 9, 2, 5, 3], 5, 0.0), ([7, 3, 300, 5], 2, 0.3), ([3, 4, 2, 3, 5, 2], 4, 0.6)],
)
def test_large_tables_agree_with_the_plain_engine(monkeypatch, engine, n_bins, F, missing):
    """Many batches, parts and windows, also where they end inside each other."""
    monkeypatch.setattr(compiled_parts, "LEAST_PART", 700)
    monkeypatch.setattr(compiled, "WINDOW_BYTES", 100_000)
    monkeypatch.setattr(cuda, "BATCH_BYTES", 1 << 21)
    monkeypatch.setattr(reference, "BATCH_BYTES", 1 << 24)
    rng = np.random.default_rng(F)
    n = 40 if max(n_bins) > 255 else 3001
    components = make_components(rng, make_forest(rng, n_bins, F))
    codes, weights = make_codes(rng, n_bins, n, missing), rng.gamma(1.0, size=n)
    pairs = all_pairs(len(n_bins))[::2]
    found, plain = (each(codes, n_bins, weights) for each in (engine, ReferenceTreeEngine))
    assert_close(found.edge_sums(components), plain.edge_sums(components), 1e-8)
    assert_close(found.pair_sums(components, pairs), plain.pair_sums(components, pairs), 1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_of_parts_add_up_and_rows_may_be_repeated_or_weigh_more(engine):
    rng = np.random.default_rng(0)
    n_bins = [3, 2, 4, 2]
    components, codes = make_components(rng, make_forest(rng, n_bins, 3)), make_codes(rng, n_bins, 600, 0.1)
    pairs, often = all_pairs(4), rng.integers(0, 4, 600)
    for sums in (lambda rows: rows.edge_sums(components), lambda rows: rows.pair_sums(components, pairs)):
        whole = sums(engine(codes, n_bins))
        assert_close(sums(engine(codes[:250], n_bins)) + sums(engine(codes[250:], n_bins)), whole)
        assert_close(sums(engine(rng.permutation(codes), n_bins)), whole)
        repeated = sums(engine(np.repeat(codes, often, axis=0), n_bins))
        assert_close(sums(engine(codes, n_bins, often.astype(float))), repeated)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_sums_are_consistent(engine, missing):
    """Counts of an edge are those of its pair; both sum to the counts of nodes, and these to the totals."""
    rng = np.random.default_rng(1)
    n_bins, F = [3, 2, 4, 2, 5], 3
    forest = make_forest(rng, n_bins, F)
    components, codes = make_components(rng, forest), make_codes(rng, n_bins, 500, missing)
    rows, pairs = engine(codes, n_bins), all_pairs(5)
    edges, sums = rows.edge_sums(components), rows.pair_sums(components, pairs)
    assert edges.totals.sum() == pytest.approx(500)
    np.testing.assert_allclose(edges.totals, sums.totals)
    assert edges.log_likelihood == pytest.approx(sums.log_likelihood)
    nodes = np.split(sums.nodes, np.cumsum(n_bins)[:-1])
    tables = np.split(sums.pairs, pair_starts(n_bins, pairs)[1:-1])
    tables = {(i, j): t.reshape(n_bins[i], n_bins[j], F) for (i, j), t in zip(pairs, tables, strict=True)}
    for (i, j), table in tables.items():
        np.testing.assert_allclose(table.sum(axis=1), nodes[i], rtol=1e-9)
        np.testing.assert_allclose(table.sum(axis=0), nodes[j], rtol=1e-9)
        np.testing.assert_allclose(table.sum(axis=(0, 1)), sums.totals, rtol=1e-9)
    for r, n in product(range(F), range(5)):
        p, own = forest.parents[r, n], forest.table(edges.edges, r, n)
        if p < 0:
            np.testing.assert_allclose(own[0], nodes[n][:, r], rtol=1e-9)
        else:
            expected = tables[p, n][:, :, r] if p < n else tables[n, p][:, :, r].T
            np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_step_from_the_sums_raises_the_likelihood(engine):
    rng = np.random.default_rng(2)
    n_bins = [3, 2, 4, 2]
    forest = make_forest(rng, n_bins, 3)
    components, rows = make_components(rng, forest), engine(make_codes(rng, n_bins, 400, 0.2), n_bins)
    reached = []
    for _ in range(6):
        sums = rows.edge_sums(components)
        reached.append(sums.log_likelihood)
        tables = np.maximum(sums.edges, 1e-300)
        for r, n in product(range(3), range(4)):
            forest.table(tables, r, n)[:] /= forest.table(tables, r, n).sum(axis=1, keepdims=True)
        components = TreeComponents(forest, np.log(sums.totals / 400), np.log(tables))
    assert np.all(np.diff(reached) > -1e-9)
    assert reached[-1] > reached[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_impossible_rows_leave_numbers(engine):
    """A chain of three columns that must be equal, and rows that are not, with and without a gap."""
    same = np.eye(2)
    forest = Forest([2, 2, 2], [[-1, 0, 1], [-1, 0, 1]])
    with np.errstate(divide="ignore"):
        tables = np.log(np.concatenate([[0.5, 0.5], same.ravel(), same.ravel()] * 2))
        components = TreeComponents(forest, np.log([1.0, 0.0]), tables)
    codes = np.array([[0, 1, 0], [0, 2, 1], [2, 0, 1], [2, 2, 2]], dtype=np.uint8)
    sums = engine(codes, [2, 2, 2]).edge_sums(components)
    np.testing.assert_array_equal(sums.totals, [4.0, 0.0])
    assert sums.log_likelihood == pytest.approx(3 * np.log(0.5) + 4 * LEAST_LOG + np.log(2))
    counts = engine(codes, [2, 2, 2]).pair_sums(components, all_pairs(3))
    # the gap of the second row is one or the other, and that of the third is the state of its neighbour
    np.testing.assert_allclose(counts.pairs[:, 0].reshape(3, 2, 2)[0], [[2.0, 1.5], [0.0, 0.5]], atol=1e-12)
    np.testing.assert_allclose(counts.nodes.sum(axis=0), [12.0, 0.0])


@pytest.mark.parametrize("engine", ENGINES)
def test_many_columns_do_not_underflow(engine):
    """Three hundred children of a missing cell, each with a probability of 1e-4."""
    N = 301
    forest = Forest([2] * N, [[-1] + [0] * (N - 1)])
    table = np.log([[1e-4, 1 - 1e-4], [2e-4, 1 - 2e-4]]).ravel()
    components = TreeComponents(forest, [0.0], np.concatenate([np.log([0.5, 0.5]), np.tile(table, N - 1)]))
    codes = np.zeros((2, N), dtype=np.uint8)
    codes[:, 0] = 2
    codes[1, 1:] = 1
    sums = engine(codes, [2] * N).edge_sums(components)
    ratio = 300 * (np.log(1 - 2e-4) - np.log(1 - 1e-4))
    expected = 300 * np.log(2e-4) + np.log(0.5) + 300 * np.log(1 - 1e-4) + np.log(0.5 + 0.5 * np.exp(ratio))
    assert sums.log_likelihood == pytest.approx(expected)
    np.testing.assert_allclose(sums.edges[:2], [1 / (1 + np.exp(ratio)), 1 + 1 / (1 + np.exp(-ratio))])


def test_threads_windows_and_repeats_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(compiled, "ONE_THREAD", 0)
    rng = np.random.default_rng(4)
    n_bins = [4, 3, 5, 2, 4]
    components, codes = make_components(rng, make_forest(rng, n_bins, 3)), make_codes(rng, n_bins, 20_000, 0.1)

    def sums(n_threads):
        rows = CompiledTreeEngine(codes, n_bins, None, n_threads)
        return rows.edge_sums(components), rows.pair_sums(components, all_pairs(5))

    found = [sums(n_threads) for n_threads in (None, None, 1, 3, 20)]
    n_threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        found.append(sums(None))
    finally:
        numba.set_num_threads(n_threads)
    for edges, pairs in found[1:]:
        assert np.array_equal(edges.edges, found[0][0].edges)
        assert edges.log_likelihood == found[0][0].log_likelihood
        for name in ("totals", "pairs", "nodes"):
            assert np.array_equal(getattr(pairs, name), getattr(found[0][1], name))


def test_arrays_that_must_not_be_written_are_compiled_for_once():
    rng = np.random.default_rng(7)
    n_bins = [3, 4]
    components, codes = make_components(rng, make_forest(rng, n_bins, 2)), make_codes(rng, n_bins, 100, 0.1)
    expected = ReferenceTreeEngine(codes, n_bins).edge_sums(components)
    frozen = codes.copy()
    frozen.flags.writeable = False
    CompiledTreeEngine(codes, n_bins).edge_sums(components)
    CompiledTreeEngine(codes, n_bins).pair_sums(components, all_pairs(2))
    n_compiled = len(kernels.edge_part.signatures), len(kernels.count_pairs.signatures)
    for name in ("log_weights", "tables"):
        getattr(components, name).flags.writeable = False
    for each in (frozen, np.asfortranarray(codes)):
        rows = CompiledTreeEngine(each, n_bins, np.ones(100))
        assert_close(rows.edge_sums(components), expected)
        rows.pair_sums(components, all_pairs(2))
    assert (len(kernels.edge_part.signatures), len(kernels.count_pairs.signatures)) == n_compiled
    assert codes.flags.writeable


def test_the_engine_follows_the_size():
    rng = np.random.default_rng(8)
    assert isinstance(tree_engine(make_codes(rng, [2, 3], 10, 0.0), [2, 3]), ReferenceTreeEngine)
    assert isinstance(tree_engine(make_codes(rng, [2, 3], 60_000, 0.0), [2, 3]), CompiledTreeEngine)


@given(seed=st.integers(0, 10**6), N=st.integers(1, 30), roots=st.sampled_from([0.0, 0.2]))
@settings(max_examples=40)
def test_parents_come_before_children(seed, N, roots):
    rng = np.random.default_rng(seed)
    forest = make_forest(rng, [2] * N, 3, roots)
    ranks = np.argsort(forest.order, axis=1)
    assert np.array_equal(np.sort(forest.order, axis=1), np.tile(np.arange(N), (3, 1)))
    for r, n in np.argwhere(forest.parents >= 0):
        assert ranks[r, forest.parents[r, n]] < ranks[r, n]


def test_a_long_chain_has_an_order():
    parents = np.arange(5000)[None, :] - 1
    assert np.array_equal(Forest([2] * 5000, parents).order[0], np.arange(5000))


def test_forests_components_and_pairs_that_do_not_fit_are_refused():
    for arguments, words in [
        (([], np.zeros((1, 0), dtype=int)), "`n_bins` must be one positive number"),
        (([2, 0], [[-1, 0]]), "`n_bins` must be one positive number"),
        (([2, 2], [-1, 0]), r"shape \(trees, 2\); got int64 of shape \(2,\)"),
        (([2, 2], [[-1.0, 0.0]]), "integers"),
        (([2, 2], np.empty((0, 2), dtype=int)), "`parents` must be"),
        (([2, 2], [[-1, 2]]), "columns below 2, or -1"),
        (([2, 2, 2], [[-1, -1, 0], [-1, 2, 1]]), "tree 1 must have no cycle; the ancestors of column 1"),
        (([2, 2], [[0, -1]]), "cycle"),
    ]:
        with pytest.raises(InputError, match=words):
            Forest(*arguments)
    forest = Forest([2, 3], [[-1, 0]])
    with pytest.raises(InputError, match="other states"):
        forest.check([2, 2])
    good = TreeComponents(forest, [0.0], np.zeros(8))
    for change, words in [
        ({"log_weights": np.zeros(2)}, r"`log_weights` must have shape \(1,\); got \(2,\)"),
        ({"tables": np.zeros(7)}, r"`tables` must have shape \(8,\)"),
        ({"tables": np.full(8, np.nan)}, "`tables` must not be NaN or inf"),
        ({"log_weights": [-np.inf]}, "a component with a weight above zero"),
    ]:
        with pytest.raises(InputError, match=words):
            replace(good, **change)
    codes = np.zeros((3, 2), dtype=np.uint8)
    for engine in (ReferenceTreeEngine, CompiledTreeEngine):
        with pytest.raises(InputError, match="other states"):
            engine(codes, [2, 2]).edge_sums(good)
        for pairs, words in [
            (np.array([0, 1]), "shape"),
            (np.array([[0.0, 1.0]]), "integers"),
            (np.array([[1, 0]]), "i < j below 2"),
            (np.array([[0, 2]]), "i < j below 2; got numbers from 0 to 2"),
            (np.array([[0, 1], [0, 1]]), "twice"),
        ]:
            with pytest.raises(InputError, match=words):
                engine(codes, [2, 3]).pair_sums(good, pairs)
