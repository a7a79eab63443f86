"""CharacteristicDensity: its definition, a mass of one, gaps, samples, wrong use."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import kstest
from sklearn.exceptions import ConvergenceWarning

from jointwise.datasets import gaussians
from jointwise.exceptions import InputError, RankError
from jointwise.metrics import mean_absolute_log_ratio
from jointwise.relatives import CharacteristicDensity


def plain_logpdf(model, rows):
    """Return the log-density by its definition, point by point and component by component."""
    k = model.n_frequencies
    out = []
    for row in (rows - model.low_) / model.width_:
        total = 0.0
        for r, weight in enumerate(model.weights_):
            term = weight
            for n, x in enumerate(row):
                series = sum(model.factors_[n, i, r] * np.exp(-2j * np.pi * (i - k) * x) for i in range(2 * k + 1))
                term *= abs(series.real) / (model.masses_[n, r] if model.normalize else 1.0)
                term *= 0 <= x <= 1
            total += term
        out.append(np.log(total) if total else -np.inf)
    return np.array(out) - np.log(model.width_).sum()


@pytest.mark.parametrize("normalize", [True, False])
def test_density_is_its_definition(normalize):
    X = gaussians(0).sample(300, rng=1)[:, :4]
    model = CharacteristicDensity(3, n_frequencies=3, normalize=normalize, padding=0.0, random_state=0).fit(X)
    rows = np.vstack([X[:5], X.max(axis=0) + 1])
    assert model.score_samples(rows) == pytest.approx(plain_logpdf(model, rows))
    assert np.isneginf(model.score_samples(rows)[-1])


def grid_mass(model, n_points=61):
    """Return the integral over the box of three columns, by the trapezoidal rule."""
    axes = [np.linspace(low, low + width, n_points) for low, width in zip(model.low_, model.width_, strict=True)]
    density = np.exp(model.score_samples(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)))
    density = density.reshape((n_points,) * 3)
    for axis in reversed(axes):
        density = trapezoid(density, axis, axis=-1)
    return float(density)


def test_mass_is_one_with_division_and_above_one_as_published():
    X = gaussians(1).sample(400, rng=1)[:, :3]
    divided = CharacteristicDensity(random_state=0).fit(X)
    published = CharacteristicDensity(normalize=False, random_state=0).fit(X)
    assert grid_mass(divided) == pytest.approx(1, abs=5e-3)
    expected = np.sum(published.weights_ * published.masses_.prod(axis=0))
    assert grid_mass(published) == pytest.approx(expected, rel=5e-3)
    assert expected > 1.02
    assert (published.masses_ >= 1 - 1e-9).all()


def test_distance_to_the_truth_falls_with_rows():
    law = gaussians(0)
    Z = law.sample(1000, rng=3)
    inside = (np.abs(Z) < 7).all(axis=1)  # away from the ends of the range: beyond them there is no density
    distances = [
        mean_absolute_log_ratio(
            CharacteristicDensity(random_state=0).fit(law.sample(n, rng=1)).score_samples, law.logpdf, Z[inside]
        )
        for n in (1_000, 20_000)
    ]
    assert distances[1] < 0.6 * distances[0]


def test_gaps_are_left_out_of_triples_and_integrated_out_of_scores():
    law = gaussians(0)
    X = law.sample(4000, rng=1)
    model = CharacteristicDensity(random_state=0).fit(X)
    gappy = X.copy()
    gappy[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    with_gaps = CharacteristicDensity(random_state=0).fit(gappy)
    Z = law.sample(500, rng=2)
    assert np.median(np.abs(with_gaps.score_samples(Z) - model.score_samples(Z))) < 0.3
    row = np.full((1, 6), np.nan)
    assert model.score_samples(row) == pytest.approx(0, abs=1e-12)
    row[0, 2] = 1.0
    x = np.linspace(model.low_[2], model.low_[2] + model.width_[2], 2001)
    margin = np.exp(model.score_samples(np.where(np.arange(6) == 2, x[:, None], np.nan)))
    assert trapezoid(margin, x) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("normalize", [True, False])
def test_samples_follow_the_margins(normalize):
    X = gaussians(0).sample(2000, rng=1)
    model = CharacteristicDensity(3, normalize=normalize, random_state=0).fit(pd.DataFrame(X, columns=list("abcdef")))
    drawn = model.sample(3000, random_state=1)
    assert list(drawn.columns) == list("abcdef")
    x = np.linspace(model.low_[0], model.low_[0] + model.width_[0], 4001)
    margin = np.exp(model.score_samples({name: x if name == "a" else np.full(4001, np.nan) for name in "abcdef"}))
    cdf = np.concatenate([[0], np.cumsum((margin[1:] + margin[:-1]) / 2 * np.diff(x))])
    assert kstest(drawn["a"], lambda q: np.interp(q, x, cdf / cdf[-1])).pvalue > 1e-4
    assert len(model.sample(0)) == 0


def test_constant_columns_do_not_break_it():
    X = np.column_stack([np.random.default_rng(0).normal(size=(50, 2)), np.full(50, 3.0)])
    assert np.isfinite(CharacteristicDensity(2, random_state=0).fit(X).score_samples(X)).all()


def test_a_share_of_the_triples_is_enough():
    X = gaussians(0).sample(500, rng=1)
    assert np.isfinite(CharacteristicDensity(2, triples=0.5, random_state=0).fit(X).score(X))


# ---- wrong use ---------------------------------------------------------------------------------------------


def test_categories_are_refused():
    with pytest.raises(InputError, match="column 'job' is categorical"):
        CharacteristicDensity().fit({"x": [1.0, 2.0], "y": [0.5, 0.1], "job": ["cook", "nurse"]})


def test_fewer_than_three_columns_are_refused():
    with pytest.raises(InputError, match=r"needs at least 3 columns; got a table with 2 feature\(s\)"):
        CharacteristicDensity().fit(np.zeros((10, 2)))


def test_too_many_components_for_the_frequencies_are_refused():
    with pytest.raises(
        RankError, match="at most 9 components here: that many fit any triple exactly at n_frequencies=1"
    ):
        CharacteristicDensity(10, n_frequencies=1).fit(np.zeros((10, 3)))


def test_columns_that_are_never_seen_together_are_named():
    X = np.random.default_rng(0).uniform(size=(40, 4))
    X[:20, 3] = np.nan
    X[20:, :2] = np.nan
    with pytest.raises(InputError, match="No row holds a value of 'x3' together with values of two other"):
        CharacteristicDensity(1).fit(X)


def test_run_that_stops_early_warns():
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        CharacteristicDensity(max_iter=1, random_state=0).fit(gaussians(0).sample(200, rng=1))


@pytest.mark.parametrize(
    "parameters",
    [{"n_components": 0}, {"n_frequencies": 0}, {"padding": -0.1}, {"tol": -1.0}, {"triples": 0.0}, {"n_init": 0}],
)
def test_wrong_parameters_are_refused(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        CharacteristicDensity(**parameters).fit(np.zeros((3, 3)))
