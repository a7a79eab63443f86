"""Fits of Gaussian blocks: known laws are found, choices are sensible, densities sum to one."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from jointwise import JUPAD, GaussianBlocks
from jointwise._numerics import LATTICE_FLOOR
from jointwise.engines.atoms import Places
from jointwise.fitting.blocks import choice as choosing
from jointwise.fitting.blocks.choice import NUS, BlockOptions, choose_blocks

RNG = np.random.default_rng(0)
COVARIANCE = np.array([[1.0, 0.95, 0.3], [0.95, 1.0, 0.2], [0.3, 0.2, 1.0]])


def correlated(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(3), COVARIANCE, n)
    return {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}


def two_groups(n=400, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.4
    x = rng.normal(size=n)
    return {
        "x": x + 4 * group,
        "y": np.where(group, -x, x) + 0.3 * rng.normal(size=n),
        "g": np.where(group, "u", "v"),
    }


@pytest.mark.parametrize("warp", ["none", "power", "log", "scores", "joint"])
def test_a_gaussian_is_one_component(warp):
    train, test = correlated(), correlated(seed=1)
    model = GaussianBlocks(warp, random_state=0).fit(train)
    truth = multivariate_normal.logpdf(np.stack([*test.values()], axis=1), np.zeros(3), COVARIANCE).mean()
    assert model.fit_.choice.n_components <= 2
    assert truth - 0.06 < model.score(test) < truth + 0.01


def boxes(n=300, seed=0):
    """Three sides, independent of each other, and the volume up to 1%."""
    rng = np.random.default_rng(seed)
    sides = rng.lognormal(1.0, 0.4, size=(n, 3))
    volume = sides.prod(axis=1) * np.exp(0.01 * rng.normal(size=n))
    return {"a": sides[:, 0], "b": sides[:, 1], "c": sides[:, 2], "volume": volume}


def test_products_of_columns_are_lines_of_logarithms():
    model = GaussianBlocks("log", n_components=1, random_state=0).fit(boxes())
    told = model.density_.condition({"a": 2.0, "b": 3.0, "c": 4.0})
    assert told.mean()["volume"] == pytest.approx(24, rel=0.01)
    assert told.quantile("volume", 0.975) / told.quantile("volume", 0.025) < 1.1


def test_correlation_is_followed_with_few_components():
    train, test = correlated(), correlated(seed=1)
    blocks = GaussianBlocks("none", n_components=2, random_state=0).fit(train).score(test)
    products = JUPAD(n_components=2, random_state=0).fit(train).score(test)
    assert blocks > products + 0.5


def test_groups_with_other_correlations_and_classes():
    train, test = two_groups(), two_groups(seed=1)
    density = GaussianBlocks("none", random_state=0).fit(train).density_
    assert density.probability({"g": "u"}) == pytest.approx(np.mean(train["g"] == "u"), abs=0.01)
    told = {name: density.condition({"g": name}) for name in "uv"}
    covariance = {name: told[name].cov() for name in told}
    at = [told["u"].names.index(name) for name in "xy"]
    assert covariance["u"][at[0], at[1]] < -0.7
    assert covariance["v"][at[0], at[1]] > 0.7
    predicted = density.predict("g", {"x": test["x"], "y": test["y"]})
    assert np.mean(np.asarray(predicted).ravel() == test["g"]) > 0.9


def test_a_spike_has_its_share_in_each_component():
    rng = np.random.default_rng(0)
    group = rng.random(500) < 0.5
    x = np.where(rng.random(500) < np.where(group, 0.6, 0.05), 0.0, rng.normal(3, 1, 500))
    table = {"x": x, "y": rng.normal(size=500) + 5 * group, "z": x + rng.normal(size=500)}
    density = GaussianBlocks("none", n_components=2, random_state=0).fit(table).density_
    assert density.schema.variables[0].spikes == (0.0,)
    assert density.probability({"x": 0.0}) == pytest.approx(np.mean(x == 0), abs=0.01)
    for end, seen in (((3, None), table["y"] > 3), ((None, 2), table["y"] < 2)):
        share = density.condition({"y": end}).probability({"x": 0.0})
        assert share == pytest.approx(np.mean(x[seen] == 0), abs=0.02)


def test_integers_sum_to_one_and_keep_the_floor():
    rng = np.random.default_rng(0)
    k = rng.poisson(60, 800)
    table = {"k": k, "m": k + rng.integers(0, 2, 800), "x": k + 0.05 * rng.normal(size=800)}
    model = GaussianBlocks("scores", n_components=2, random_state=0).fit(table)
    assert model.block_ == ("k", "m", "x")
    block = model.density_.mixture.block
    for covariance in block.covariances:
        inner = covariance[:2, :2] - np.outer(covariance[:2, 2], covariance[:2, 2]) / covariance[2, 2]
        slopes = [np.exp(block.warps[c].log_slope(60.0)) for c in range(2)]
        assert np.linalg.eigvalsh(inner / np.outer(slopes, slopes)).min() > LATTICE_FLOOR * (1 - 1e-9)
    values = np.arange(-40, 160)
    assert model.density_.marginal(["k"]).pdf({"k": values}).sum() == pytest.approx(1.0, abs=1e-6)
    assert model.density_.pdf({"k": [30.5], "m": [30], "x": [30.0]})[0] == 0


def test_an_integer_that_is_a_spike_is_counted_once():
    rng = np.random.default_rng(0)
    hours = np.where(rng.random(1000) < 0.4, 40, np.round(rng.normal(40, 8, 1000))).astype(int)
    model = GaussianBlocks("none", n_components=1).fit({"h": hours, "x": rng.normal(size=1000)})
    assert model.block_ == ("h", "x")
    pdf = model.density_.marginal(["h"]).pdf({"h": np.arange(-40, 140)})
    assert pdf.sum() == pytest.approx(1.0, abs=1e-6)
    assert pdf[80] == pytest.approx(np.mean(hours == 40), abs=1e-3)


def test_the_density_integrates_to_one():
    model = GaussianBlocks("scores", n_components=3, random_state=0).fit(
        {"a": np.random.default_rng(0).gamma(2, size=300), "b": np.random.default_rng(1).normal(size=300)}
    )
    a, b = np.linspace(-6, 30, 500), np.linspace(-9, 9, 300)
    grid = model.density_.pdf({"a": np.repeat(a, 300), "b": np.tile(b, 500)}).reshape(500, 300)
    assert np.trapezoid(np.trapezoid(grid, b), a) == pytest.approx(1.0, abs=2e-3)


def test_gaps_cost_little():
    rng = np.random.default_rng(3)
    train, test = correlated(), correlated(seed=1)
    holes = {name: np.where(rng.random(600) < 0.2, np.nan, column) for name, column in train.items()}
    whole, part = (GaussianBlocks("none", n_components=1).fit(table) for table in (train, holes))
    assert part.score(test) > whole.score(test) - 0.05


def test_many_components_are_wanted_where_rows_allow():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 800)
    ring = {"x": np.cos(angle) + 0.03 * rng.normal(size=800), "y": np.sin(angle) + 0.03 * rng.normal(size=800)}
    model = GaussianBlocks("none", random_state=0).fit(ring)
    assert model.fit_.choice.n_components >= 8
    assert model.fit_.choice.for_folds().n_components in choosing.NUMBERS  # folds have fewer rows
    assert model.fit_.choice.for_folds().n_components < model.fit_.choice.n_components
    assert model.nu_ in NUS


def test_heavy_tails_are_found_and_gaussians_have_none():
    rng = np.random.default_rng(4)
    mix = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.3, 0.3, 0.9]])
    normal = rng.normal(size=(1200, 3)) @ mix.T
    heavy = normal * np.sqrt(4 / rng.chisquare(4, size=(1200, 1)))
    plain, tailed = (GaussianBlocks("none", random_state=0).fit(rows[:800]) for rows in (normal, heavy))
    assert plain.fit_.choice.tail == 0.0
    assert tailed.fit_.choice.tail > 0.05
    without = GaussianBlocks("none", n_components=tailed.fit_.choice.n_components, random_state=0).fit(heavy[:800])
    assert without.fit_.choice.tail == 0.0  # a given number of components is kept to
    assert tailed.score(heavy[800:]) > without.score(heavy[800:])


def test_groups_far_apart_need_few_components_and_a_weak_prior():
    rng = np.random.default_rng(1)
    centres, maps = 3 * rng.normal(size=(4, 5)), rng.normal(size=(4, 5, 5)) / np.sqrt(5)
    group = rng.integers(4, size=8000)
    rows = centres[group] + np.einsum("nij,nj->ni", maps[group], rng.normal(size=(8000, 5)))
    laws = [multivariate_normal(c, m @ m.T) for c, m in zip(centres, maps, strict=True)]
    truth = logsumexp([law.logpdf(rows[4000:]) for law in laws], axis=0).mean() - np.log(4)
    model = GaussianBlocks("none", random_state=0).fit(rows[:4000])
    assert model.fit_.choice.n_components <= 12
    assert model.nu_ <= 3.0  # of a prior that is thin wherever a group is
    assert model.score(rows[4000:]) > truth - 0.02


def test_no_score_is_computed_twice(monkeypatch):
    runs = []
    run = choosing._Search._run

    def counted(self, *asked):
        runs.append(asked)
        return run(self, *asked)

    monkeypatch.setattr(choosing._Search, "_run", counted)
    GaussianBlocks("none", random_state=0).fit(two_groups())
    assert len(runs) == len(set(runs)) > 3


def test_what_is_given_is_not_chosen():
    assert BlockOptions(n_components=3, nu=5.0).nu == 5.0
    model = GaussianBlocks("none", n_components=3, nu=5.0, n_models=2, random_state=0).fit(two_groups())
    assert (model.fit_.choice.n_components, model.nu_, len(model.stages_)) == (3, 5.0, 2)
    assert model.fit_.choice.held_out is None
    assert callable(choose_blocks)


def test_large_tables_begin_with_a_part(monkeypatch):
    from jointwise.fitting import growing

    table = two_groups(3000)
    whole = GaussianBlocks("none", n_components=2, random_state=0).fit(table)
    monkeypatch.setattr(growing, "START_ROWS", 500)
    parts = GaussianBlocks("none", n_components=2, random_state=0).fit(table)
    assert parts.score(table) == pytest.approx(whole.score(table), abs=5e-3)


def test_the_objective_falls_at_every_step_of_a_fit():
    table = two_groups() | {"k": np.random.default_rng(1).poisson(40, 400)}
    table["x"] = np.where(np.random.default_rng(2).random(400) < 0.2, np.nan, table["x"])
    model = GaussianBlocks("power", n_components=6, n_models=3, tol=1e-7, max_iter=2000, random_state=0).fit(table)
    for stage in model.stages_.values():
        assert np.all(np.diff(stage.history) <= 1e-10)
        assert "rose" not in stage.message


@pytest.mark.parametrize(("d", "first"), [(3, [3, 12]), (40, [2]), (80, [1])])
def test_the_search_begins_with_components_that_the_rows_bear(monkeypatch, d, first):
    begun, best = [], choosing._Search.best

    def noted(self, numbers, nus, starts, *rest):
        begun.append([numbers[at] for at in starts])
        return best(self, numbers, nus, starts, *rest)

    monkeypatch.setattr(choosing._Search, "best", noted)
    X = np.random.default_rng(0).normal(size=(300, d))
    GaussianBlocks("none", random_state=0).fit(X)
    assert begun[0] == first


def test_categories_outside_the_block_are_looked_up_and_bound_the_components():
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(3_000), rng.integers(3_000, size=9_000)])
    table = {"kind": [f"c{k}" for k in codes], "x": rng.normal(codes % 7), "y": rng.normal(size=len(codes))}
    model = GaussianBlocks(random_state=0, keep=["kind"]).fit(table)
    (masses,) = model.fit_.design.atoms.masses
    assert isinstance(masses, Places)
    assert model.fit_.choice.n_components <= choosing.MOST_ENTRIES / 3_000
    assert model.density_.probability({"kind": [f"c{k}" for k in range(3_000)]}) == pytest.approx(1)
