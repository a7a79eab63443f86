"""Passes over mixtures of trees whose states overlap: every engine against all states of all rows."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from tests.engines.test_trees import log_probability
from tests.engines.tree_cases import all_pairs, assert_close, make_codes, make_components, make_forest

from jointwise.engines.base import bin_starts
from jointwise.engines.trees import (
    EdgeSums,
    Emissions,
    PairSums,
    ReferenceTreeEngine,
    TreeComponents,
    overlapping,
    pair_starts,
    tree_engine,
)
from jointwise.engines.trees.overlapping import OverlappingTreeEngine
from jointwise.exceptions import InputError

ENGINES = [ReferenceTreeEngine, OverlappingTreeEngine]


def make_emissions(rng, n_states, n_codes):
    """Return laws of codes with zeros, each code possible in some state."""
    tables = []
    for S, C in zip(n_states, n_codes, strict=True):
        table = rng.random((S, C)) * (rng.random((S, C)) < 0.5)
        table[rng.integers(S, size=C), np.arange(C)] += 0.5
        tables.append(table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300))
    return Emissions(tuple(tables))


def by_enumeration(codes, components, emissions, weights, pairs):
    """Both sums of a pass: every row, component and combination of states, one after the other."""
    forest = components.forest
    n_bins, F = forest.n_bins, forest.n_trees
    edges, nodes = np.zeros(forest.n_entries), np.zeros((sum(n_bins), F))
    totals, likelihood = np.zeros(F), 0.0
    starts, bins = pair_starts(n_bins, pairs), bin_starts(n_bins)
    counts = np.zeros((starts[-1], F))
    for row, weight in zip(codes.astype(int), weights, strict=True):
        states = list(product(*map(range, n_bins)))
        emitted = [sum(emissions.logs(n)[code, s[n]] for n, code in enumerate(row)) for s in states]
        logs = np.array([[log_probability(components, r, s) for s in states] for r in range(F)]) + emitted
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


@pytest.mark.parametrize("engine", ENGINES)
@given(
    seed=st.integers(0, 10**6),
    F=st.integers(1, 3),
    sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=4),
    roots=st.sampled_from([0.0, 0.3, 1.0]),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    weighted=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_sums_are_those_of_all_states(engine, seed, F, sizes, roots, missing, weighted):
    rng = np.random.default_rng(seed)
    n_states, n_codes = zip(*sizes, strict=True)
    emissions = make_emissions(rng, n_states, n_codes)
    components = make_components(rng, make_forest(rng, n_states, F, roots))
    codes, weights = make_codes(rng, n_codes, 4, missing), rng.uniform(0.5, 2, 4) if weighted else None
    pairs = all_pairs(len(sizes))
    expected = by_enumeration(codes, components, emissions, np.ones(4) if weights is None else weights, pairs)
    made = engine(codes, n_codes, weights, emissions)
    assert_close(made.edge_sums(components), expected[0])
    assert_close(made.pair_sums(components, pairs), expected[1])


def test_compiled_sums_of_wide_rows_are_the_plain_ones():
    rng = np.random.default_rng(0)
    n_states, n_codes = rng.integers(2, 9, 300), rng.integers(9, 12, 300)
    emissions = make_emissions(rng, n_states, n_codes)
    forest = make_forest(rng, n_states.tolist(), 2, 0.0)
    star = np.where(np.arange(300) == 7, -1, 7)  # one column with all others below it
    components = make_components(rng, type(forest)(forest.n_bins, np.vstack([forest.parents[0], star])))
    codes = make_codes(rng, n_codes, 20, 0.1)
    plain, compiled = (engine(codes, n_codes, None, emissions).edge_sums(components) for engine in ENGINES)
    assert_close(compiled, plain, 1e-7)


@pytest.mark.parametrize("places", [1, overlapping.PLACES])
def test_sums_do_not_depend_on_how_many_rows_are_taken_together(monkeypatch, places):
    monkeypatch.setattr(overlapping, "PLACES", places)
    rng = np.random.default_rng(2)
    n_states, n_codes = [3, 1, 5, 4], [6, 2, 9, 5]
    emissions = make_emissions(rng, n_states, n_codes)
    components = make_components(rng, make_forest(rng, n_states, 3))
    codes, weights = (
        make_codes(rng, n_codes, 5 * overlapping.BATCH + 3, 0.2),
        rng.uniform(0, 2, 5 * overlapping.BATCH + 3),
    )
    plain, compiled = (engine(codes, n_codes, weights, emissions).edge_sums(components) for engine in ENGINES)
    assert_close(compiled, plain)


def test_states_that_do_not_overlap_are_the_codes():
    rng = np.random.default_rng(1)
    n_bins = [3, 2, 4]
    components = make_components(rng, make_forest(rng, n_bins, 2))
    codes = make_codes(rng, n_bins, 200, 0.2)
    emissions = Emissions(tuple(np.eye(bins) for bins in n_bins))
    assert_close(
        tree_engine(codes, n_bins, emissions=emissions).edge_sums(components),
        tree_engine(codes, n_bins).edge_sums(components),
    )


def test_an_impossible_row_has_a_finite_density():
    emissions = Emissions((np.eye(2), np.eye(2)))
    forest = make_forest(np.random.default_rng(0), [2, 2], 1, 0.0)
    impossible = TreeComponents(forest, [0.0], np.full(forest.n_entries, -np.inf))
    codes = np.zeros((1, 2), dtype=np.uint8)
    assert np.isfinite(OverlappingTreeEngine(codes, [2, 2], None, emissions).edge_sums(impossible).log_likelihood)


def test_wrong_tables_are_refused():
    with pytest.raises(InputError, match="possible in some state"):
        Emissions((np.array([[1.0, 0.0]]),))
    with pytest.raises(InputError, match="other codes"):
        ReferenceTreeEngine(np.zeros((1, 1), dtype=np.uint8), [3], None, Emissions((np.eye(2),)))
