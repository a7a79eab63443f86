"""Passes over mixtures of trees: every engine against all states of all rows, and the laws of its sums."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from tests.engines.tree_cases import all_pairs, assert_close, make_codes, make_components, make_forest

from jointwise.engines.base import bin_starts
from jointwise.engines.trees import (
    EdgeSums,
    Forest,
    PairSums,
    ReferenceTreeEngine,
    TreeComponents,
    pair_starts,
)
from jointwise.engines.trees.base import LEAST_LOG
from jointwise.engines.trees.compiled import CompiledTreeEngine
from jointwise.exceptions import InputError

ENGINES = [ReferenceTreeEngine, CompiledTreeEngine]


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
)
@settings(deadline=None, max_examples=60)
def test_sums_are_those_of_all_states(engine, seed, F, n_bins, roots, missing, weighted, n):
    rng = np.random.default_rng(seed)
    components = make_components(rng, make_forest(rng, n_bins, F, roots))
    codes = make_codes(rng, n_bins, n, missing)
    weights = rng.gamma(1.0, size=n) if weighted else None
    pairs = all_pairs(len(n_bins))
    pairs = pairs[rng.random(len(pairs)) < 0.7]
    edges, counts = by_enumeration(codes, components, np.ones(n) if weights is None else weights, pairs)
    found = engine(codes, n_bins, weights)
    assert_close(found.edge_sums(components), edges)
    assert_close(found.pair_sums(components, pairs), counts)
