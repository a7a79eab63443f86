"""Independence, Gaussian mixtures and kernels, compared with what they wrap."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from jointwise.datasets import gaussians, hybrid
from jointwise.exceptions import InputError, RankError
from jointwise.metrics import mean_absolute_log_ratio
from jointwise.relatives import GaussianMixtureDensity, IndependenceDensity, KernelDensityEstimate


def two_clusters(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 8 * (rng.random(n) < 0.4)[:, None]


# ---- independence ------------------------------------------------------------------------------------------


def test_independence_is_the_product_of_its_margins():
    X = hybrid(0).sample(400, rng=1)
    density = IndependenceDensity(kinds={"x3": "categorical"}, random_state=0).fit(X).density_
    apart = sum(density.marginal(name).logpdf(X[:, [n]]) for n, name in enumerate(density.names))
    assert density.n_components == 1
    assert density.logpdf(X) == pytest.approx(apart)


def test_independence_of_categories_is_their_shares():
    data = {"a": ["x"] * 3 + ["y"], "b": [True, False, True, None]}
    density = IndependenceDensity().fit(data).density_
    assert density.probability({"a": "x"}) == pytest.approx(3 / 4)
    assert density.probability({"b": True}) == pytest.approx(2 / 3)


def test_independence_comes_close_to_a_normal_density():
    X = np.random.default_rng(0).normal(2.0, 3.0, size=(5000, 2))
    Z = np.random.default_rng(1).normal(2.0, 3.0, size=(500, 2))
    model = IndependenceDensity(random_state=0).fit(X)
    assert mean_absolute_log_ratio(model.score_samples, lambda z: norm(2, 3).logpdf(z).sum(axis=1), Z) < 0.08


def test_independence_integrates_gaps_and_draws_the_frame_type_fitted():
    frame = pl.DataFrame({"x": [1.5, 2.5, None, 3.0] * 10, "job": ["cook", "nurse", "cook", None] * 10})
    model = IndependenceDensity(random_state=0).fit(frame)
    assert isinstance(model.sample(3, random_state=0), pl.DataFrame)
    assert model.score_samples(pl.DataFrame({"x": [None], "job": ["cook"]}, schema=frame.schema)) == pytest.approx(
        np.log(2 / 3)
    )


# ---- Gaussian mixtures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_mixture_is_that_of_scikit_learn(covariance_type):
    X = two_clusters()
    model = GaussianMixtureDensity(2, covariance_type=covariance_type, random_state=0).fit(X)
    theirs = GaussianMixture(2, covariance_type=covariance_type, random_state=1).fit(X)
    assert model.score_samples(X) == pytest.approx(theirs.score_samples(X), abs=1e-2)
    assert model.n_components_ == 2
    assert model.criteria_ == {}
    assert model.converged_


def test_bic_finds_two_clusters():
    model = GaussianMixtureDensity("bic", candidates=(1, 2, 3), random_state=0).fit(two_clusters())
    assert model.n_components_ == 2
    assert list(model.criteria_) == [1, 2, 3]


def test_hindsight_takes_the_candidate_closest_to_the_truth():
    law = gaussians(0)
    model = GaussianMixtureDensity("hindsight", candidates=(1, 3, 5), random_state=0).fit(
        law.sample(400, rng=1), truth=law
    )
    assert model.n_components_ == min(model.criteria_, key=model.criteria_.get)
    Z = law.sample(1000, rng=5)
    fixed = [GaussianMixtureDensity(k, random_state=0).fit(law.sample(400, rng=1)) for k in (1, 3, 5)]
    best = min(mean_absolute_log_ratio(m.score_samples, law.logpdf, Z) for m in fixed)
    assert mean_absolute_log_ratio(model.score_samples, law.logpdf, Z) < best + 0.05


def test_truth_and_hindsight_are_given_together():
    law = gaussians(0)
    X = law.sample(20, rng=0)
    with pytest.raises(InputError, match="give both or neither"):
        GaussianMixtureDensity("hindsight").fit(X)
    with pytest.raises(InputError, match="give both or neither"):
        GaussianMixtureDensity(2).fit(X, truth=law)


def test_search_ends_where_a_covariance_fails():
    # six different rows on a line: with many components, some have one point only
    X = np.repeat(np.arange(6.0), 5)[:, None] * np.ones(3)
    model = GaussianMixtureDensity("bic", candidates=(1, 2, 10, 31), reg_covar=0.0, random_state=0)
    with pytest.raises(InputError, match=r"covariance of the mixture of 1 Gaussians failed.*raise reg_covar"):
        model.fit(X)
    model.set_params(reg_covar=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    assert 31 not in model.criteria_
    assert model.n_components_ in model.criteria_


def test_more_components_than_rows_are_refused():
    with pytest.raises(RankError, match="at most 5 components here: there are 5 sample"):
        GaussianMixtureDensity(6).fit(np.random.default_rng(0).normal(size=(5, 2)))


def test_mixture_that_stops_early_warns():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        GaussianMixtureDensity(5, max_iter=1, random_state=0).fit(two_clusters())


def test_mixture_samples_are_repeatable_and_in_the_frame_type_fitted():
    frame = pd.DataFrame(two_clusters(), columns=["a", "b"])
    model = GaussianMixtureDensity(2, random_state=0).fit(frame)
    drawn = model.sample(2000, random_state=3)
    assert isinstance(drawn, pd.DataFrame)
    pd.testing.assert_frame_equal(drawn, model.sample(2000, random_state=3))
    assert drawn.mean().to_numpy() == pytest.approx(frame.mean().to_numpy(), abs=0.5)
    assert len(model.sample(0)) == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": "aic"}, "'bic', 'hindsight'"),
        ({"candidates": ()}, "increasing"),
        ({"candidates": (2, 1)}, "increasing"),
        ({"covariance_type": "tied"}, "'full', 'diag'"),
        ({"reg_covar": -1.0}, "must not be negative"),
        ({"n_init": 0}, "n_init"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_wrong_parameters_of_a_mixture_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        GaussianMixtureDensity(**parameters).fit(two_clusters(20))


# ---- kernels -----------------------------------------------------------------------------------------------


def test_kernel_estimate_is_that_of_scikit_learn_on_standardised_columns():
    X = two_clusters() * [1.0, 100.0]
    model = KernelDensityEstimate(0.3).fit(X)
    scale = X.std(axis=0)
    theirs = KernelDensity(bandwidth=0.3).fit((X - X.mean(axis=0)) / scale)
    expected = theirs.score_samples((X - X.mean(axis=0)) / scale) - np.log(scale).sum()
    assert model.score_samples(X) == pytest.approx(expected)


def test_kernel_estimate_is_the_mean_of_its_kernels():
    X = np.random.default_rng(0).normal(size=(7, 2)) * [1.0, 5.0]
    model = KernelDensityEstimate(0.5).fit(X)
    z = np.array([0.3, -1.0])
    kernels = [np.prod(norm.pdf(z, x, 0.5 * X.std(axis=0))) for x in X]
    assert model.score_samples(z[None]) == pytest.approx(np.log(np.mean(kernels)))


def test_bandwidth_is_smaller_for_a_density_with_more_detail():
    rng = np.random.default_rng(0)
    smooth = rng.normal(size=(300, 1))
    comb = rng.integers(0, 8, size=(300, 1)) + 0.02 * rng.normal(size=(300, 1))
    narrow = KernelDensityEstimate(random_state=0).fit(comb).bandwidth_
    assert narrow < KernelDensityEstimate(random_state=0).fit(smooth).bandwidth_


def test_kernel_samples_have_the_spread_of_the_rows():
    X = two_clusters(500)
    drawn = KernelDensityEstimate(0.1).fit(X).sample(4000, random_state=0)
    assert drawn.std(axis=0) == pytest.approx(X.std(axis=0), rel=0.1)


@pytest.mark.parametrize("parameters", [{"bandwidth": 0.0}, {"bandwidth": "scott"}, {"n_folds": 1}])
def test_wrong_parameters_of_kernels_are_refused(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        KernelDensityEstimate(**parameters).fit(two_clusters(20))


def test_too_few_rows_for_the_folds_are_refused():
    with pytest.raises(InputError, match="Lower n_folds or give a bandwidth"):
        KernelDensityEstimate().fit(two_clusters(3))


# ---- all ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [GaussianMixtureDensity(1), KernelDensityEstimate(1.0)], ids=lambda m: type(m).__name__
)
class TestNumbersOnly:
    def test_categories_are_refused(self, model):
        with pytest.raises(InputError, match="needs continuous or integer columns; column 'job' is categorical"):
            model.fit({"x": [1.0, 2.0], "job": ["cook", "nurse"]})

    def test_gaps_are_refused_in_fitting_and_in_scoring(self, model):
        X = two_clusters(30)
        X[3, 1] = np.nan
        with pytest.raises(InputError, match=r"cannot use missing values .*'x1'.*JUPAD"):
            model.fit(X)
        model.fit(two_clusters(30))
        with pytest.raises(InputError, match="cannot use missing values"):
            model.score_samples(X)
