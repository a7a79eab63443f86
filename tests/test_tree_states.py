"""The benchmark `tree_states`: trees of atoms beside plain sums over all states."""

from functools import reduce

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import xlogy

atom_trees = pytest.importorskip("benchmarks.atom_trees", reason="benchmarks are in a checkout of the source only")
from benchmarks import tree_states  # noqa: E402
from benchmarks.tree_states import SmoothTree  # noqa: E402


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300)
    return {
        "x": x,
        "spiked": np.where(rng.random(300) < 0.3, 0.0, np.exp(x)),
        "whole": np.round(300 * x + 1_000).astype(int),
        "sign": np.where(x + rng.standard_normal(300) > 0, "plus", "minus"),
    }


@pytest.fixture(scope="module")
def margins(table):
    return atom_trees.Margins(table)


@pytest.fixture(scope="module")
def problem(table, margins):
    return atom_trees.Pairs.of(margins.cells(table, 8), margins.masses(8), 3.0, 10.0)


def dense(cells, n, n_states):
    """Return the ratios of all atoms of a column; shape (rows, states)."""
    found = np.zeros((len(cells), n_states))
    for i, j in np.ndindex(cells.index.shape[0], cells.index.shape[2]):
        if j < cells.count[i, n]:
            found[i, cells.index[i, n, j]] = cells.value[i, n, j]
    return found


@pytest.mark.parametrize("n_atoms", [0, 8, 16])
def test_atoms_with_their_masses_give_the_own_fit_of_each_column(table, margins, n_atoms):
    cells, masses = margins.cells(table, n_atoms), margins.masses(n_atoms)
    for n, q in enumerate(masses):
        assert q.sum() == pytest.approx(1)
        lost = 0 if n_atoms else len(q) * atom_trees.LEAST_SHARE  # atoms with a small share of a cell are left out
        np.testing.assert_allclose(dense(cells, n, len(q)) @ q, 1, atol=lost + 1e-9)


def test_each_spline_has_area_one():
    for low, high in ((0.0, 1.0), (0.2, 0.21)):

        def density(u, k):
            u = np.array([u])
            return atom_trees.splines(u, u, 8)[0, k]

        areas = [quad(density, low, high, args=(k,), limit=200)[0] for k in range(8)]
        mean = atom_trees.splines(np.array([low]), np.array([high]), 8)[0]
        np.testing.assert_allclose(areas, mean * (high - low), atol=1e-7)
        if low == 0:
            np.testing.assert_allclose(areas, 1)


def plainly(model, cells, masses):
    """Return log f of rows and expected counts of edges, by sums over all states of all columns."""
    N = len(masses)
    states = np.ix_(*(np.arange(len(q)) for q in masses))
    each = [dense(cells, n, len(q)) for n, q in enumerate(masses)]
    emitted = np.array([reduce(np.multiply.outer, row) for row in zip(*each, strict=True)])  # (rows, states...)
    joint = []
    for weight, parents, tables in zip(model.weights, model.parents, model.tables, strict=True):
        laws = [tables[n, states[m] if m >= 0 else 0, states[n]] for n, m in enumerate(parents)]
        joint.append(weight * reduce(np.multiply, laws) * emitted)
    f = np.sum(joint, axis=(0, *range(2, N + 2)))
    sums = np.zeros_like(model.tables)
    for r, parents in enumerate(model.parents):
        shares = (joint[r] / f.reshape(-1, *[1] * N)).sum(axis=0)
        for n, m in enumerate(parents):
            pair = shares.sum(axis=tuple(k for k in range(N) if k not in {n, m}), keepdims=True)
            np.add.at(sums[r, n], np.broadcast_arrays(states[m] if m >= 0 else 0, states[n], pair)[:2], pair)
    return np.log(f), sums


def test_messages_are_sums_over_all_states(problem):
    rows = np.arange(len(problem.cells)) < 20
    model = problem.trees(np.random.default_rng(1).dirichlet(np.ones(2), len(problem.cells)))
    cells = problem.cells.take(rows)
    log_f, shares, counts = model._pass(cells, learn=True)
    expected, sums = plainly(model, cells, problem.masses)
    np.testing.assert_allclose(log_f, expected, rtol=1e-10)
    np.testing.assert_allclose(counts, sums, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(counts.sum(axis=(2, 3)), np.tile(shares.sum(axis=0)[:, None], 4))
    np.testing.assert_allclose(model.logpdf(cells), log_f + cells.log_margins)


def test_steps_never_lower_the_posterior(problem):
    model = problem.trees(np.random.default_rng(1).dirichlet(np.ones(2), len(problem.cells)))
    prior, objective = problem._prior_counts(model.parents), []
    for _ in range(10):
        score, after, _ = problem.step(model)
        objective.append(score * len(problem.cells) + xlogy(prior, model.tables).sum())
        model = after
    assert np.diff(objective).min() > -1e-9
    assert objective[-1] > objective[0]


def test_a_smooth_law_is_a_density():
    law = SmoothTree.draw(2, 0)

    def density(a):
        b = np.linspace(-4, 4, 2_001)
        return np.trapezoid(np.exp(law.logpdf({"a": np.full_like(b, a), "b": b})), b)

    assert quad(density, -8, 8)[0] == pytest.approx(1, abs=1e-9)


def test_the_mix_of_two_densities_is_at_least_as_likely_as_either():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 200))
    weight = tree_states.best_weight(first, second)
    assert 0 < weight < 1
    assert tree_states.mixed(weight, first, second).mean() > max(first.mean(), second.mean())
    assert tree_states.best_weight(first, first - 5) < 0.02


def test_both_models_are_compared(monkeypatch):
    monkeypatch.setattr(tree_states, "N_COLUMNS", 3)
    monkeypatch.setattr(tree_states, "N_TEST", 200)
    monkeypatch.setattr(tree_states, "NUMBERS", (1, 2))
    monkeypatch.setattr(tree_states, "FLOORS", {})
    (row,) = tree_states.run(sizes=(200,))
    scores = [float(row[key]) for key in tree_states.KEYS]
    assert max(scores) < float(row["truth"]) + 0.3
    assert min(scores) > float(row["truth"]) - 1.5
    assert all(float(row[f"{key} s"]) > 0 for key in tree_states.KEYS)
