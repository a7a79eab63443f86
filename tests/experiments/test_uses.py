"""Drawing samples and filling gaps, on small stand-ins."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.estimators.cases import make_classifier

from jointwise.dictionary import Dictionary
from jointwise.estimators import JUPAD
from jointwise.experiments import conditional, samples, textures
from jointwise.experiments.splits import TEXTURES, Labelled, patches, stratified
from jointwise.relatives import IndependenceDensity


def rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    first = rng.normal(size=n) + 3 * y
    return np.column_stack([first, 2 * first + rng.normal(size=n), rng.normal(size=n)]), y


def table(seed, *, quick):
    """Return rows with as many columns as a patch has pixels."""
    X, y = rows()
    return stratified(np.column_stack([X, np.random.default_rng(1).normal(size=(len(X), 22))]), y, seed)


def texture(seed, *, quick):
    rng = np.random.default_rng(0)
    images = [patches(rng.integers(low, low + 60, (80, 80))) for low in (0, 90, 180)]
    flat = np.concatenate([image.reshape(-1, 25) for image in images])
    return replace(stratified(flat, np.repeat([0, 1, 2], 256), seed), images=images)


def test_one_gaussian_fills_linear_columns_exactly():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    X = np.column_stack([X, X @ [1.0, 2.0] + 3])
    gappy = X.copy()
    gappy[:100, 2] = np.nan
    gappy[100:, 0] = np.nan
    np.testing.assert_allclose(conditional.gaussian_fill(X, gappy), X, atol=1e-8)
    filled = conditional.mean_fill(X, gappy)
    np.testing.assert_allclose(filled[:100, 2], X[:, 2].mean())
    np.testing.assert_array_equal(filled[:100, :2], X[:100, :2])


def test_a_row_without_known_cells_gets_the_mean():
    X, _ = rows()
    np.testing.assert_allclose(conditional.gaussian_fill(X, np.full((1, 3), np.nan))[0], X.mean(axis=0))


def test_intervals_of_the_true_law_hold_their_probability():
    from jointwise.datasets import gaussians

    law = gaussians(rng=0).marginal(["x0", "x1", "x2"])
    points = np.asarray(law.sample(300, rng=1))
    hidden = np.random.default_rng(2).random(points.shape) < 0.3
    shares = conditional.inside(law, points, hidden, np.random.default_rng(3))
    # 200 cells: three standard deviations of a share are at most 0.11
    np.testing.assert_allclose(shares, conditional.SHARES, atol=0.11)


def test_a_forest_tells_shifted_rows_apart_but_not_rows_of_the_same_law():
    here, there = Labelled(*rows(seed=1)), Labelled(*rows(seed=2))
    assert samples.told_apart(here, there, 0) < 0.62
    assert samples.told_apart(here, Labelled(there.X + np.array([0, 0, 3]), there.y), 0) > 0.9


def test_rows_drawn_by_class_keep_the_shares():
    train = Labelled(*rows())
    drawn = samples.draw_by_class(lambda seed: IndependenceDensity(random_state=seed), train, 0)
    np.testing.assert_array_equal(np.bincount(drawn.y), np.bincount(train.y))
    assert drawn.X.shape == train.X.shape
    assert not np.array_equal(drawn.y, np.sort(drawn.y))


def test_patches_in_rows_have_lines_between():
    page = textures.spaced(np.zeros((5, 25)), columns=3)
    assert page.shape == (11, 17)
    assert page[5].min() == 1
    assert page[:5, 5].min() == 1
    assert page[:5, :5].max() == 0
    assert page[6:, 12:].min() == 1  # the sixth place is empty


@pytest.mark.filterwarnings("ignore::jointwise.exceptions.MisfitWarning")  # the dictionary is far too coarse
@pytest.mark.parametrize("module", [samples, conditional])
def test_a_miniature_run(module, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    # small fits are enough to test the way from rows to page
    given = {f"x{n}": Dictionary.grid("gaussian", -3, 3, n=9, scale=1) for n in range(25)}
    small = {"n_components": 4, "beta": 2.0, "dictionaries": given, "learn_dictionary": False, "n_init": 1}
    monkeypatch.setattr(
        samples, "JointClassifier", lambda _=None, *, random_state: make_classifier(random_state=random_state, **small)
    )
    monkeypatch.setattr(conditional, "JUPAD", partial(JUPAD, **small))
    monkeypatch.setattr(conditional, "JointEstimator", partial(JUPAD, **small))
    monkeypatch.setattr(samples, "RandomForestClassifier", partial(samples.RandomForestClassifier, 5))
    monkeypatch.setattr(samples, "KEYS", {samples.REAL: "real", "JointEstimator()": "joint"})
    monkeypatch.setattr(module, "QUICK_TABLES", ("Banknote",))
    monkeypatch.setattr(conditional, "MOST_CELLS", 10)
    for name in module.QUICK_TABLES:
        monkeypatch.setitem(module.SPLITS, name, table)
    monkeypatch.setitem(module.SPLITS, TEXTURES, texture)
    tasks = module.EXPERIMENT.tasks(quick=True)
    text = module.EXPERIMENT.report({task.key: task.run() for task in tasks}, tmp_path)
    figures = sorted(path.name for path in tmp_path.iterdir())
    assert figures
    assert all(f"({figure})" in text for figure in figures)
    assert "| JointEstimator() | " in text
    keys = [task.key for task in module.EXPERIMENT.tasks(quick=False)]
    assert len(set(keys)) == len(keys)


def test_an_impossible_value_is_ignored():
    table = {"a": [1, 2, 3] * 30, "b": [0.5, 1.5, 2.5] * 30, "c": ["u", "v"] * 45}
    density = JUPAD(2, supports={"a": (1, 3)}, random_state=0).fit(table).density_
    assert conditional.given(density, {}) is density
    assert conditional.given(density, {"a": 50}) is density
    both = conditional.given(density, {"a": 50, "b": 1.5})
    assert both.probability({"c": "u"}) == pytest.approx(density.condition({"b": 1.5}).probability({"c": "u"}))
