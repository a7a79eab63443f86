"""Classifiers chosen on validation rows, and the report of their accuracies."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from jointwise.exceptions import RankError
from jointwise.experiments import classification
from jointwise.experiments.classification import EXPERIMENT, Score, run_method, score_table, verdicts
from jointwise.experiments.classifiers import METHODS, DensityClassifier, Method, chosen_on_validation
from jointwise.experiments.splits import TEXTURES, patches, stratified
from jointwise.relatives import GaussianMixtureDensity


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 4)) + 2.5 * y[:, None] * [1, 0, 1, 0], y


def split(seed=0, *, quick=False):
    return stratified(*rows(), seed)


def test_one_gaussian_per_class_is_quadratic_discriminant_analysis():
    X, y = rows()
    ours = DensityClassifier(GaussianMixtureDensity(1, reg_covar=0.0)).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), QuadraticDiscriminantAnalysis().fit(X, y).predict(X))
    naive = DensityClassifier(GaussianMixtureDensity(1, covariance_type="diag", reg_covar=0.0)).fit(X, y)
    np.testing.assert_array_equal(naive.predict(X), GaussianNB().fit(X, y).predict(X))


def test_a_uniform_prior_ignores_the_shares_of_the_classes():
    X = np.concatenate([np.linspace(-2, 2, 99), [0.9, 1.0, 1.1]])[:, None]
    y = np.repeat([0, 1], [99, 3])
    by_share = DensityClassifier(GaussianMixtureDensity(1)).fit(X, y).log_prior_
    np.testing.assert_allclose(np.exp(by_share), [99 / 102, 3 / 102])
    uniform = DensityClassifier(GaussianMixtureDensity(1), uniform_prior=True).fit(X, y).log_prior_
    np.testing.assert_allclose(np.exp(uniform), 0.5)


class Stub:
    """Correct on a given share of rows; a share of None means too large to fit."""

    def __init__(self, size, shares):
        self.share = shares[size]

    def fit(self, X, y):
        if self.share is None:
            raise RankError("too large")
        self.truth = dict(zip(map(tuple, X), y, strict=True))

    def predict(self, X):
        return np.where(np.arange(len(X)) < self.share * len(X), self.answer, -1)


@pytest.mark.parametrize(
    ("shares", "best"), [({1: 0.5, 2: 0.9, 3: 0.7}, 2), ({1: 0.5, 2: 0.5, 3: 0.5}, 1), ({1: 0.3, 2: 0.4, 3: None}, 2)]
)
def test_the_size_is_the_best_on_the_validation_rows(shares, best, monkeypatch):
    data = split()
    monkeypatch.setattr(Stub, "answer", data.validation.y, raising=False)
    method = Method("stub", lambda size, *_: Stub(size, shares), "size")
    assert chosen_on_validation(method, data, list(shares), 0)[1] == best


def test_a_first_size_that_is_too_large_raises():
    method = Method("stub", lambda size, *_: Stub(size, {9: None}), "size")
    with pytest.raises(RankError):
        chosen_on_validation(method, split(), [9], 0)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "JointEstimator()"])
def test_every_method_learns_an_easy_table(name, monkeypatch):
    monkeypatch.setitem(classification.SPLITS, "Toy", split)
    result = run_method("Toy", 0, name, METHODS[name].quick_sizes, quick=True)
    assert result["score"]["accuracy"] > 0.7
    assert 0 <= result["score"]["log_loss"] < 3
    assert result["score"]["size"] in METHODS[name].quick_sizes
    assert "collage" not in result


def texture_split(seed, *, quick):
    rng = np.random.default_rng(0)
    images = [patches(rng.integers(low, low + 60, (100, 100))) for low in (0, 90, 180)]
    flat = np.concatenate([image.reshape(-1, 25) for image in images])
    dealt = stratified(flat, np.repeat([0, 1, 2], [len(image.reshape(-1, 25)) for image in images]), seed)
    return replace(dealt, images=images)


def toy_scores(n_seeds=4, gap=0.02):
    wobble = [0.0, 0.01, -0.01, 0.0, 0.02][:n_seeds]
    levels = {"JointEstimator()": 0.9, "GMM-Full": 0.9 - gap, "GMM-Diag": 0.8}
    return [
        Score(dataset, method, seed, level + shift * (1 + (method == "JointEstimator()")), 1 - level + shift, 0, 1.0)
        for dataset in ("Banknote", "Wifi")
        for method, level in levels.items()
        for seed, shift in enumerate(wobble)
    ]


def test_verdicts_are_computed():
    banknote, wifi = verdicts(toy_scores()).splitlines()
    assert banknote.startswith("- **Does not hold:** JointEstimator() has at least 0.99 on Banknote: 0.900")
    assert wifi.startswith("- **Holds:** JointEstimator() is no worse")
    assert "of GMM-Full (mean difference over the splits +0.020 ± 0.004)" in wifi
    assert "**Does not hold:**" in verdicts(toy_scores(gap=-0.02)).splitlines()[1]
    assert "**Holds:**" in verdicts(toy_scores(gap=-0.001)).splitlines()[1]  # within one standard error
    assert "Too few splits" in verdicts(toy_scores(n_seeds=2))


def test_the_table_has_the_best_in_bold_and_empty_cells_for_methods_not_run():
    lines = score_table(toy_scores(), "accuracy").splitlines()
    assert lines[2] == "| JointEstimator() | **0.900 ± 0.008** | **0.900 ± 0.008** |"
    assert lines[3] == "| JUPAD(), joint alone |  |  |"
    lines = score_table(toy_scores(), "log-loss").splitlines()
    assert lines[0].startswith("| log-loss |")
    assert lines[2] == "| JointEstimator() | **0.100 ± 0.004** | **0.100 ± 0.004** |"


def test_probabilities_of_densities_follow_bayes():
    data = split()
    model = DensityClassifier(GaussianMixtureDensity(1)).fit(data.train.X, data.train.y)
    found = model.predict_proba(data.test.X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(data.test.X))
    scaled = model.scaler_.transform(data.test.X)
    of_classes = zip(model.densities_, model.log_prior_, strict=True)
    joint = [np.exp(density.score_samples(scaled) + prior) for density, prior in of_classes]
    np.testing.assert_allclose(found, (joint / np.sum(joint, axis=0)).T, rtol=1e-9)


def test_tasks_have_distinct_keys_and_settings_they_depend_on():
    for quick in (False, True):
        tasks = EXPERIMENT.tasks(quick=quick)
        assert len({task.key for task in tasks}) == len(tasks)
        assert all({"dataset", "seed", "method", "sizes", "version"} <= set(task.settings) for task in tasks)
    given = {task.settings["dataset"] for task in tasks if task.key.endswith("dictionaries")}
    assert given == {"Wifi", "Seeds", TEXTURES}


def test_the_report_writes_figures_and_a_section(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(classification.SPLITS, TEXTURES, texture_split)
    monkeypatch.setattr(classification, "SHOWN_TEXTURES", 0)
    results = {
        name: run_method(TEXTURES, 0, name, METHODS[name].quick_sizes, quick=True)
        for name in ("GMM-Full", "GMM-Diag", "GaussianNB")
    }
    results["ours"] = {"score": results["GMM-Full"]["score"] | {"method": "JointEstimator()"}}
    text = EXPERIMENT.report(results, tmp_path)
    for figure in ("classification.png", "classification-collage.png"):
        assert figure in text
        assert (tmp_path / figure).stat().st_size > 10_000
    assert "GMM-Full 100.0%" in text
