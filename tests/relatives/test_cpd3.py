"""CPD3: the formula, its mass before and after normalisation, states, gaps, and wrong use."""

import warnings

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from jointwise.datasets import gaussians, hybrid
from jointwise.exceptions import InputError, RankError
from jointwise.metrics import covering_proposal, mean_absolute_log_ratio, total_mass
from jointwise.relatives import CPD3
from jointwise.relatives._conditionals import bin_codes

KINDS = {"x3": "categorical"}


def fitted(law, n=2000, seed=1, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CPD3(**{"n_components": 3, "n_init": 1, "random_state": 0, "tol": 1e-3} | options).fit(
            law.sample(n, rng=seed)
        )


def test_the_score_is_the_formula():
    law = hybrid(0)
    model = fitted(law, kinds=KINDS)
    Z = law.sample(20, rng=2)
    expected = []
    for row in Z:
        total = 0.0
        for r, weight in enumerate(model.weights_):
            term = weight
            for n, (masses, edges) in enumerate(zip(model.masses_, model.edges_, strict=True)):
                if edges is None:
                    term *= max(masses[int(row[n]), r], 1e-5)
                    continue
                width = np.diff(edges).mean()
                cdf = np.concatenate([[0.0], np.cumsum(masses[:-1, r]), np.ones(400 - len(edges) + 1)])
                z = np.pi * (row[n] - edges[0] - np.arange(400) * width) / width
                term *= max(np.pi / width * np.sum(cdf * (np.cos(z) / z - np.sin(z) / z**2)), 1e-5)
            total += term
        expected.append(np.log(total))
    np.testing.assert_allclose(model.score_samples(Z), expected, rtol=1e-9)


def test_masses_follow_the_bins_of_the_data():
    law = gaussians(0)
    X = law.sample(3000, rng=1)
    model = fitted(law, n=3000, n_components=8, tol=1e-5)
    for n, (masses, edges) in enumerate(zip(model.masses_, model.edges_, strict=True)):
        shares = np.bincount(bin_codes(X[:, n], edges), minlength=15) / len(X)
        np.testing.assert_allclose(masses @ model.weights_, shares, atol=0.02)


@pytest.mark.parametrize("loss", ["frobenius", "kl"])
def test_more_rows_come_closer_to_the_truth(loss):
    law = gaussians(1).marginal(["x0", "x1", "x2", "x3"])
    Z = law.sample(500, rng=3)
    near = [
        mean_absolute_log_ratio(fitted(law, n, loss=loss, n_components=8, tol=1e-4).score_samples, law.logpdf, Z)
        for n in (500, 5_000)
    ]
    assert near[1] < 0.6 * near[0]


def test_as_published_the_mass_is_above_one_and_normalised_it_is_one():
    law = hybrid(0)
    proposal = covering_proposal(law)
    published = total_mass(fitted(law, 500, kinds=KINDS).score_samples, proposal, 20_000, rng=0)
    repaired = total_mass(fitted(law, 500, kinds=KINDS, normalize=True).score_samples, proposal, 20_000, rng=0)
    assert published.value > 1 + 4 * published.error
    assert abs(repaired.value - 1) < 4 * repaired.error + 0.01  # the proposal's box leaves out the far tails


def test_draws_have_the_margins_of_the_data():
    law = hybrid(0)
    X = law.sample(3000, rng=1)
    model = fitted(law, 3000, kinds=KINDS, normalize=True, n_components=8, tol=1e-4)
    drawn = model.sample(3000, random_state=0)
    for n in range(3):
        assert ks_2samp(X[:, n].astype(float), drawn[:, n].astype(float)).statistic < 0.06
    shares = [np.bincount(table[:, 3].astype(int), minlength=10) / 3000 for table in (X, drawn)]
    np.testing.assert_allclose(shares[0], shares[1], atol=0.04)
    np.testing.assert_array_equal(drawn, model.sample(3000, random_state=0))


def test_only_a_normalised_density_is_sampled():
    with pytest.raises(InputError, match="fit with normalize=True to sample"):
        fitted(gaussians(0), 200).sample(3)


def test_gaps_count_as_factors_of_one():
    law = gaussians(0)
    X = law.sample(500, rng=1)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = CPD3(2, n_init=1, tol=1e-2, random_state=0).fit(X)
    rows = np.full((3, 6), np.nan)
    rows[:, 0] = [-2.0, 0.0, 3.0]
    alone = model._conditionals[0].values(rows[:, 0]) @ model.weights_
    np.testing.assert_allclose(np.exp(model.score_samples(rows)), alone)
    assert model.score_samples(np.full((1, 6), np.nan)) == pytest.approx(0.0)


def test_far_rows_have_finite_scores():
    law = gaussians(0)
    for normalize in (False, True):
        model = fitted(law, 300, normalize=normalize)
        assert np.isfinite(model.score_samples(np.full((2, 6), [[1e3], [-1e9]]))).all()


def test_frames_and_states_come_back():
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 600)
    frame = pl.DataFrame(
        {"x": side + rng.normal(0, 0.3, 600), "k": side + 1, "who": np.where(side == 1, "cook", "nurse")}
    )
    model = CPD3(2, normalize=True, tol=1e-3, random_state=0).fit(frame)
    drawn = model.sample(200, random_state=0)
    assert isinstance(drawn, pl.DataFrame)
    assert drawn.schema == frame.schema
    assert (drawn["k"] - 1 == (drawn["who"] == "cook")).mean() > 0.95
    assert model.edges_[1] is None
    one = frame.head(1).with_columns(k=pl.Series([7]))
    assert model.score_samples(one)[0] == -np.inf
    assert np.isfinite(CPD3(2, tol=1e-3, random_state=0).fit(frame).score_samples(one)[0])


def test_spikes_have_no_bins_of_their_own():
    """A repeated value stays in its bin: the base measure has no atoms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[:200, 0] = 0.0
    model = CPD3(2, tol=1e-2, random_state=0).fit(X)
    assert all(len(masses) == 15 for masses in model.masses_)
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "l1"}, "`loss` must be one of 'frobenius', 'kl'"),
        ({"n_bins": 1}, "`n_bins` must be an integer of at least 2"),
        ({"n_terms": 15}, "`n_terms` must be an integer of at least 16"),
        ({"floor": 0.0}, "`floor` must be a positive number"),
        ({"triples": 2.0}, "`triples` must be a share"),
        ({"n_init": 0}, "`n_init` must be an integer of at least 1"),
    ],
)
def test_parameters_out_of_range(options, sentence):
    with pytest.raises(InputError, match=sentence):
        CPD3(**options).fit(np.zeros((3, 3)))


def test_what_cannot_be_fitted():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(InputError, match="CPD3 needs at least 3 columns; got a table with 2 feature"):
        CPD3(2).fit(X[:, :2])
    with pytest.raises(RankError, match="CPD3 can hold at most 225 components here"):
        CPD3(226).fit(X)
    X[:, 1] = 3.5
    with pytest.raises(InputError, match="Column 'x1' holds fewer than two different values"):
        CPD3(2).fit(X)


def test_a_clone_has_the_same_parameters():
    model = CPD3(4, loss="kl", normalize=True)
    assert clone(model).get_params() == model.get_params()
