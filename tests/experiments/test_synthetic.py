"""The four experiments of section IV-A, run in miniature."""

import numpy as np
import pytest

from jointwise.exceptions import CovarianceError
from jointwise.experiments import EXPERIMENTS, synthetic
from jointwise.experiments.distances import CONTROL, CPD, DEFAULT, INDEPENDENCE, PAPER, Measurement
from jointwise.experiments.runner import run
from jointwise.experiments.synthetic import ESTIMATORS, LAWS, Trial, run_estimator, run_mixtures
from jointwise.relatives import GaussianMixtureDensity


class Shifted:
    """The truth, with a log-density that is off by the number of rows fitted."""

    def __init__(self, law):
        self.law = law

    def fit(self, rows):
        self.shift = len(rows)

    def score_samples(self, rows):
        return self.law.logpdf(rows) + self.shift * np.where(np.arange(len(rows)) % 2, 1, -1)


def test_all_four_are_registered_in_the_order_of_the_figure():
    assert list(EXPERIMENTS)[:4] == ["laplacians", "gaussians", "laplacians-gaussians", "hybrid"] == list(LAWS)


def test_the_full_run_has_the_sizes_of_the_paper():
    assert (synthetic.SIZES[0], synthetic.SIZES[-1], synthetic.N_POINTS) == (500, 50_000, 1_000)
    for name in LAWS:
        full, quick = EXPERIMENTS[name].tasks(quick=False), EXPERIMENTS[name].tasks(quick=True)
        assert len(full) == len(synthetic.SIZES) * synthetic.N_TRUTHS * 6
        assert {task.key for task in quick} < {task.key for task in full}


def test_a_trial_takes_the_mean_absolute_log_ratio_on_fresh_points():
    law = LAWS["hybrid"](0)
    found = Trial(law, 7, 0).measure(Shifted(law), "shifted")
    assert (found.method, found.n, found.seed) == ("shifted", 7, 0)
    assert pytest.approx(7.0) == found.D
    assert found.seconds >= 0


def test_the_methods_are_those_of_the_paper_and_the_default():
    law = LAWS["hybrid"](0)
    made = {name: recipe(law, 1).get_params() for name, recipe in ESTIMATORS.items()}
    assert set(made) == {INDEPENDENCE, PAPER, CONTROL, DEFAULT, CPD}
    published = {"n_components": 8, "method": "paper", "dictionaries": "auto"}
    assert {key: made[PAPER][key] for key in published} == published
    assert made[CONTROL].pop("dictionaries") == dict(zip(law.names[:3], law.mixture.dictionaries[:3], strict=True))
    assert made[CONTROL].items() <= made[PAPER].items()
    assert made[DEFAULT]["n_components"] == "auto"
    published = {"n_components": 8, "n_bins": 15, "loss": "frobenius", "n_init": 3, "max_iter": 500, "normalize": False}
    assert {key: made[CPD][key] for key in published} == published
    kinds = {"x0": "continuous", "x1": "continuous", "x2": "continuous", "x3": "categorical"}
    assert all(params["kinds"] == kinds for params in made.values())


@pytest.mark.parametrize("method", list(ESTIMATORS))
def test_every_method_takes_states_and_gives_a_finite_distance(method):
    (row,) = run_estimator(method, "hybrid", 300, 0)["rows"]
    assert Measurement(**row).method == method
    assert 0 < row["D"] < 2


def test_mixtures_grow_until_a_covariance_fails(monkeypatch):
    monkeypatch.setattr(synthetic, "PATIENCE", 100)
    result = run_mixtures("laplacians", 100, 0)
    methods = [row["method"] for row in result["rows"]]
    assert methods == [f"GMM-{5 * (i + 1)}" for i in range(len(methods))]
    assert result["failed"] == 5 * (len(methods) + 1) <= 100
    law = LAWS["laplacians"](0)
    with pytest.raises(CovarianceError):
        GaussianMixtureDensity(result["failed"], reg_covar=0.0, random_state=0).fit(law.sample(100, rng=1_000))


@pytest.mark.parametrize(
    ("series", "tried"), [([5, 4, 3, 3, 3, 3, 9], 6), ([1, 2, 3, 4, 0], 4), ([3, 4, 4, 2, 5, 5, 1, 0, 0, 0, 0], 11)]
)
def test_mixtures_end_after_three_numbers_without_gain(monkeypatch, series, tried):
    numbers = iter(series)
    monkeypatch.setattr(Trial, "measure", lambda _self, _model, method: Measurement(method, 10, 0, next(numbers), 0.0))
    result = run_mixtures("laplacians", 10, 0)
    assert [row["D"] for row in result["rows"]] == series[:tried]
    assert result["failed"] is None


@pytest.mark.parametrize("name", list(LAWS))
def test_a_miniature_run_of_each_experiment(name, tmp_path, monkeypatch):
    """From tasks to page, with one Gaussian in place of every method; other tests check the numbers."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(synthetic, "QUICK_SIZES", (200, 1_000))
    monkeypatch.setattr(synthetic, "PATIENCE", 1)
    monkeypatch.setattr(synthetic, "ESTIMATORS", dict.fromkeys(ESTIMATORS, lambda _, __: GaussianMixtureDensity(1)))
    page = run([EXPERIMENTS[name]], quick=True, folder=tmp_path, command=f"jointwise reproduce {name} --quick")
    text = page.read_text()
    for part in (EXPERIMENTS[name].title, f"]({name}.png)", "Mean and standard error of 2", "N_s = 1,000", "GMM-5"):
        assert part in text
    # the methods are all the same here, and nothing is below itself
    assert text.count("**Does not hold**") == 2
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000
