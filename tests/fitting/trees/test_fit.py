"""Fits of mixtures of trees: known laws found, XOR, gaps, order, checkpoints, choices."""

import numpy as np
import pytest
from tests.fitting.trees.test_states import COLUMNS, design_of

from jointwise import TreeMixture
from jointwise.exceptions import InputError
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.folds import row_folds
from jointwise.fitting.trees import TreeOptions, choose_trees, fit_trees
from jointwise.fitting.trees.choice import _priors, _Search
from jointwise.marginals import PairwiseMarginals, Profile


def chain(n, seed, n_columns=6, keep=0.85):
    """Return binary columns, each mostly a copy of the one before."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(2, size=n)]
    for _ in range(n_columns - 1):
        columns.append(np.where(rng.random(n) < keep, columns[-1], 1 - columns[-1]))
    return {f"c{k}": column for k, column in enumerate(columns)}


def edges_of(density, r=0):
    tree = density.mixture.trees[r]
    pairs = [(tree.variables[n], tree.variables[m]) for n, m in enumerate(tree.parents) if m >= 0]
    return {tuple(sorted((density.names[a], density.names[b]))) for a, b in pairs}


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_one_tree_finds_a_chain(missing):
    data = {name: column.astype(float) for name, column in chain(1500, 0).items()}
    rng = np.random.default_rng(1)
    for column in data.values():
        column[rng.random(len(column)) < missing] = np.nan
    model = TreeMixture(1, random_state=0).fit(data)
    assert edges_of(model.density_) == {(f"c{k}", f"c{k + 1}") for k in range(5)}
    got = model.density_.condition({"c0": 1}).probability({"c2": 1})
    assert got == pytest.approx(0.85**2 + 0.15**2, abs=0.04)


def test_exclusive_or_needs_a_mixture():
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=(2, 2000))
    data = {"a": a, "b": b, "c": a ^ b}
    one = TreeMixture(1, random_state=0).fit(data)
    two = TreeMixture(2, random_state=0).fit(data)
    law = -2 * np.log(2)
    assert one.score(data) == pytest.approx(-3 * np.log(2), abs=0.01)  # pairs are independent: one tree sees nothing
    assert two.score(data) == pytest.approx(law, abs=0.05)
    assert two.density_.condition({"a": 1, "b": 1}).probability({"c": 1}) < 0.05


def test_a_table_of_every_kind_has_no_impossible_sample():
    model = TreeMixture(3, n_states=8, alpha=3, gamma=10, keep=list(COLUMNS), random_state=0).fit(COLUMNS)
    drawn = model.sample(2000, random_state=1)
    assert np.isfinite(model.score_samples(drawn)).all()
    assert np.isfinite(model.score_samples(COLUMNS)).all()
    assert (drawn["share"] >= 0).all()
    assert (drawn["share"] <= 1).all()


def test_order_of_rows_and_columns_does_not_matter():
    data = {name: COLUMNS[name] for name in ("normal", "spiked", "count", "kinds")}
    turn = np.random.default_rng(3).permutation(400)
    other = {name: data[name][turn] for name in ("kinds", "count", "normal", "spiked")}
    first, second = (TreeMixture(2, random_state=0).fit(each) for each in (data, other))
    assert np.allclose(first.score_samples(data)[turn], second.score_samples(other), atol=1e-9)


def test_weights_count_as_rows():
    data = chain(300, 2)
    weights = np.random.default_rng(0).integers(1, 4, size=300)
    repeated = {name: np.repeat(column, weights) for name, column in data.items()}
    by_weight = TreeMixture(2, alpha=1, gamma=3, random_state=0).fit(data, sample_weight=weights)
    by_rows = TreeMixture(2, alpha=1, gamma=3, random_state=0).fit(repeated)
    assert by_weight.score(data) == pytest.approx(by_rows.score(data), abs=1e-9)


def test_a_resumed_fit_is_the_same(tmp_path):
    data = chain(400, 5)
    design, rows, columns = design_of(data)
    del design
    options = TreeOptions(3, alpha=1.0, gamma=3.0, checkpoint=tmp_path / "fit.resume", tol=1e-6)
    whole = fit_trees(rows, columns.coarse, TreeOptions(3, alpha=1.0, gamma=3.0, tol=1e-6), np.random.default_rng(0))
    steps = 0

    def stop(n_steps, _):
        nonlocal steps
        steps += 1
        if steps == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_trees(rows, columns.coarse, options, np.random.default_rng(0), stop)
    assert (tmp_path / "fit.resume").exists()
    resumed = fit_trees(rows, columns.coarse, options, np.random.default_rng(0))
    assert not (tmp_path / "fit.resume").exists()
    X = rows.values()
    assert np.array_equal(resumed.density.mixture.logpdf(X), whole.density.mixture.logpdf(X))


def test_choices_keep_what_is_given():
    design, rows, _ = design_of({name: COLUMNS[name] for name in ("normal", "kinds")})
    given = TreeOptions(n_components=2, n_states=4, alpha=2.0, gamma=5.0)
    choice = choose_trees(design, rows, given, np.random.default_rng(0))
    assert (choice.n_components, choice.n_states, choice.alpha, choice.gamma, choice.n_models) == (2, 4, 2.0, 5.0, 1)
    assert _priors(TreeOptions(alpha=2.0, gamma=5.0)) == [(2.0, 5.0)]
    open_choice = choose_trees(design, rows, TreeOptions(), np.random.default_rng(0), Checkpoint())
    assert open_choice.n_models == 3
    assert open_choice.held_out is not None


def test_pairs_alone_give_the_tree_of_rows():
    data = {**chain(2000, 4, 4), "x": np.random.default_rng(0).normal(size=2000)}
    data["y"] = data["x"] + 0.3 * np.random.default_rng(1).normal(size=2000)
    profile = Profile.of(data)
    schema = profile.schema()
    pairs = PairwiseMarginals.of(data, schema, profile.axes(schema, 64))
    by_pairs = TreeMixture(1, random_state=0).fit_marginals(pairs)
    by_rows = TreeMixture(1, n_states=16, alpha=1, random_state=0).fit(data)
    certain = {("c0", "c1"), ("c1", "c2"), ("c2", "c3"), ("x", "y")}
    assert certain <= edges_of(by_pairs.density_)
    assert certain <= edges_of(by_rows.density_)
    assert by_pairs.score(data) == pytest.approx(by_rows.score(data), abs=0.1)
    assert by_pairs.converged_
    with pytest.raises(InputError, match="one tree"):
        TreeMixture(2).fit_marginals(pairs)


def test_too_many_columns_are_refused():
    data = {f"c{k}": np.array([0, 1, 1]) for k in range(2100)}
    with pytest.raises(InputError, match="at most 2048 columns"):
        TreeMixture(1).fit(data)


def test_many_categories_take_little_memory_and_stay_exact():
    rng = np.random.default_rng(0)
    kind = rng.zipf(1.2, size=3000).clip(max=400)
    data = {"kind": np.array([f"k{i:03d}" for i in kind]), "low": kind < 3, "noise": rng.integers(2, size=3000)}
    model = TreeMixture(2, alpha=1, gamma=3, random_state=0).fit(data)
    density = model.density_
    assert density.probability({"kind": "k001"}) == pytest.approx(np.mean(kind == 1), abs=0.01)
    assert density.condition({"kind": "k001"}).probability({"low": True}) > 0.95
    assert density.condition({"low": False}).probability({"kind": {"k001", "k002"}}) < 0.05


@pytest.mark.parametrize(("n", "fewest"), [(1200, 2), (5000, 4)], ids=["three folds", "one fold"])
def test_more_trees_that_gain_nothing_end_the_way_up(n, fewest):
    asked = set()

    class Flat(_Search):
        def _run(self, n_components, n_states, prior, n_atoms, fold):
            asked.add(n_components)
            return [0.0] * len(self._held[fold])

    design, rows, _ = design_of(chain(n, 0))
    folds = row_folds(rows, np.random.default_rng(0))
    search = Flat(design, folds, [(1.0, 3.0)], 0, Checkpoint(), n_threads=1)
    assert search.best((1, 2, 4, 8, 16, 32), (16,), 0, 0) == (8, 16, 0, 0)
    assert (min(asked), max(asked)) == (fewest, 16)
