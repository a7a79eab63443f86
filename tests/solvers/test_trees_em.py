"""EM on mixtures of trees: the best tree against all trees, monotone at every step with gaps, plain objectives."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from jointwise.axes import DiscreteAxis
from jointwise.engines.trees import Forest, ReferenceTreeEngine
from jointwise.exceptions import InputError
from jointwise.fitting.trees.space import pair_prior
from jointwise.marginals import PairwiseMarginals
from jointwise.solvers import solve, trees_em
from jointwise.solvers.trees_em import TreeFactors, TreesEM, TreesProblem, averaged, best_trees, chow_liu
from jointwise.tables.variables import Schema, Variable


def make(seed=0, n=60, sizes=(2, 3, 2, 4), missing=0.2, F=2, alpha=0.5, gamma=3.0):
    """Return a problem of random rows that hang together, factors to start from, and the codes."""
    rng = np.random.default_rng(seed)
    codes = np.empty((n, len(sizes)), dtype=np.uint8)
    codes[:, 0] = rng.integers(sizes[0], size=n)
    for k, size in enumerate(sizes[1:], start=1):
        codes[:, k] = np.where(rng.random(n) < 0.7, codes[:, k - 1] % size, rng.integers(size, size=n))
    for k, size in enumerate(sizes):
        codes[rng.random(n) < missing, k] = size
    variables = tuple(
        Variable(f"v{k}", "categorical", categories=tuple(map(str, range(size)))) for k, size in enumerate(sizes)
    )
    axes = tuple(DiscreteAxis(np.arange(float(size))) for size in sizes)
    known = pair_prior(PairwiseMarginals.from_codes(codes, Schema(variables), axes))
    problem = TreesProblem(ReferenceTreeEngine(codes, sizes), n, known, alpha, gamma)
    start = TreeFactors.products(rng.dirichlet(np.ones(F)), [rng.dirichlet(np.ones(size), F).T for size in sizes])
    return problem, start, codes


def plain_log_posterior(problem, factors, codes):
    """Sum over all completions of each row, and the prior by its definition."""
    forest, known = factors.forest, problem.known
    sizes = forest.n_bins
    total = 0.0
    for row in codes:
        free = [range(size) if code == size else [int(code)] for code, size in zip(row, sizes, strict=True)]
        total += np.log(sum(joint(factors, cells) for cells in product(*free)))
    for r, tree in enumerate(forest.parents):
        for n, m in enumerate(tree):
            table = np.log(forest.table(factors.tables, r, n))
            if m < 0:
                prior = (problem.gamma * known.means[n] + problem.alpha * known.margins[n])[None]
            else:
                k = known.numbers[m, n]
                pair = known.tables[known.starts[k] : known.starts[k + 1]].reshape(sizes[min(m, n)], -1)
                pair = pair if m < n else pair.T
                prior = problem.gamma * pair + problem.alpha * np.outer(known.margins[m], known.margins[n])
            total += float((prior * table).sum())
    return total


def joint(factors, cells):
    total = 0.0
    for r, weight in enumerate(factors.weights):
        here = weight
        for n, m in enumerate(factors.forest.parents[r]):
            here *= factors.forest.table(factors.tables, r, n)[0 if m < 0 else cells[m], cells[n]]
        total += here
    return total


def all_trees(N):
    """Parents of every spanning tree with root 0, as rows."""
    found = []
    for parents in product(range(N), repeat=N - 1):
        tree = (-1, *parents)
        at_root = [_climbs(tree, n) for n in range(N)]
        if all(at_root):
            found.append(tree)
    return np.array(found)


def _climbs(tree, n):
    for _ in tree:
        if tree[n] < 0:
            return True
        n = tree[n]
    return False


@given(
    seed=st.integers(0, 10_000),
    F=st.integers(1, 3),
    missing=st.sampled_from([0.0, 0.3, 0.7]),
    gamma=st.sampled_from([0.0, 4.0]),
)
@settings(deadline=None, max_examples=25)
def test_the_objective_never_rises_and_is_the_log_posterior(seed, F, missing, gamma):
    problem, start, codes = make(seed, missing=missing, F=F, gamma=gamma)
    factors = start
    before = np.inf
    for step in range(6):
        objective, after = (problem.update_trees if step % 2 == 0 else problem.update)(factors)
        assert objective == pytest.approx(-plain_log_posterior(problem, factors, codes) / len(codes), abs=1e-9)
        assert objective <= before + 1e-12 * abs(objective)
        before, factors = objective, after


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_trees_are_the_best_of_all(seed, missing):
    problem, start, _ = make(seed, missing=missing, F=1, n=40)
    _, chosen = problem.update_trees(start)
    # the expected log-posterior at the start's posteriors: with given trees, its maximum over tables
    sums = problem.rows.pair_sums(problem.components(start), problem.known.pairs)
    values = {}
    for tree in all_trees(len(problem.known.n_bins)):
        forest = Forest(problem.known.n_bins, tree[None])
        edges = problem._root_counts(forest, sums.nodes)
        problem._fill(forest, edges, np.arange(len(problem.known.pairs)), sums.pairs)
        counts = edges + problem.prior_counts(forest)
        tables = trees_em.normalised(forest, counts)
        values[tuple(tree)] = float(counts @ np.log(tables))
    assert len(values) == 16  # Cayley: 4 ** 2
    best = max(values, key=values.get)
    assert values[tuple(chosen.forest.parents[0])] == pytest.approx(values[best], abs=1e-9)


def test_counting_in_chunks_changes_nothing(monkeypatch):
    problem, start, _ = make(3, F=3)
    objective, whole = problem.update_trees(start)
    monkeypatch.setattr(trees_em, "MOST_ENTRIES", 30)
    parted = problem.update_trees(start)
    assert parted[0] == pytest.approx(objective)
    assert np.array_equal(parted[1].forest.parents, whole.forest.parents)
    assert np.allclose(parted[1].tables, whole.tables)


def test_solving_settles_the_trees_and_stops():
    problem, start, _ = make(1, n=200, missing=0.1)
    run = solve(TreesEM(start, tol=1e-5), problem, max_steps=500)
    assert run.converged
    assert (np.diff(run.history) <= 1e-10).all()
    _, further = problem.update_trees(run.value)
    assert problem.update(further)[0] > run.history[-1] - 1e-3
    kept = solve(TreesEM(run.value, tol=1e-5, fixed=True), problem, max_steps=500)
    assert np.array_equal(kept.value.forest.parents, run.value.forest.parents)


def test_one_tree_from_pairs_is_that_from_rows():
    problem, start, _ = make(5, n=300, missing=0.0, F=1, alpha=2.0, gamma=0.0)
    by_rows = solve(TreesEM(start, tol=1e-9), problem, max_steps=50).value
    by_pairs = chow_liu(problem.known, 300, 2.0)
    assert np.array_equal(by_pairs.forest.parents, by_rows.forest.parents)
    assert np.allclose(by_pairs.tables, by_rows.tables, atol=1e-9)


def test_columns_that_may_not_be_joined_are_roots():
    parents = best_trees(4, np.array([[0, 1], [2, 3]]), np.array([[1.0, 0.0], [0.5, 0.0]]))
    assert parents.tolist() == [[-1, 0, -1, 2], [-1, 0, -1, 2]]


def test_pair_tables_with_gaps_have_equal_margins():
    problem, _, _ = make(2, missing=0.5)
    known = problem.known
    for k, (i, j) in enumerate(known.pairs):
        table = known.tables[known.starts[k] : known.starts[k + 1]].reshape(known.n_bins[i], known.n_bins[j])
        assert np.allclose(table.sum(axis=1), known.means[i])
        assert np.allclose(table.sum(axis=0), known.means[j])


def test_models_are_averaged_once_if_equal():
    problem, start, _ = make(4)
    model = problem.update_trees(start)[1]
    assert averaged([model, model]).n_components == model.n_components
    both = averaged([model, start])
    assert both.n_components == 4
    assert both.weights.sum() == pytest.approx(1.0)
    assert np.allclose(both.take([0, 1]).tables, model.tables)


@pytest.mark.parametrize(("alpha", "gamma", "match"), [(0.0, 1.0, "alpha"), (1.0, -1.0, "gamma")])
def test_a_prior_must_be_one(alpha, gamma, match):
    with pytest.raises(InputError, match=match):
        make(alpha=alpha, gamma=gamma)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 7), st.floats(0.2, 1.0))
def test_best_trees_are_those_of_another_algorithm(seed, n_columns, share):
    """Pairs that are left out may leave several trees; the sums of gains are unique."""
    rng = np.random.default_rng(seed)
    pairs = np.array([pair for pair in combinations(range(n_columns), 2) if rng.random() < share])
    pairs = pairs.reshape(-1, 2).astype(np.int64)
    gains = rng.exponential(size=(len(pairs), 3))
    parents = best_trees(n_columns, pairs, gains)
    for r, gain in enumerate(gains.T):
        joined = {(i, j): g for (i, j), g in zip(pairs.tolist(), gain, strict=True)}
        edges = [tuple(sorted((n, int(p)))) for n, p in enumerate(parents[r]) if p >= 0]
        costs = coo_array((2 + gain.max(initial=0) - gain, pairs.T), shape=(n_columns, n_columns))
        expected = minimum_spanning_tree(costs.tocsr()).tocoo()
        assert sorted(edges) == sorted(zip(expected.row.tolist(), expected.col.tolist(), strict=True))
        assert set(edges) <= set(joined)
    assert Forest((2,) * n_columns, parents).n_trees == 3  # without a cycle
