"""Fits from rows: settings, tidying of components, recovery, missing values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fitting.cases import fit_models

from jointwise import JUPAD, Dictionary, Profile
from jointwise.datasets import hybrid
from jointwise.exceptions import InputError
from jointwise.fitting import Options, models, starts
from jointwise.fitting import rows as fitting_rows
from jointwise.fitting.average import average, tidied
from jointwise.fitting.problem import all_masses, masses_of_models, rows_problem, smoothing_rows
from jointwise.fitting.starts import spread_positions
from jointwise.joint.product import ProductMixture
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Factors, Status, simplex_weights


def coded(data, n_bins=64, weights=None, kinds=None):
    profile = Profile.of(data, weights)
    schema = profile.schema(kinds)
    return CodedRows.of(data, schema, profile.axes(schema, n_bins), weights)


def binary(n=4000, seed=0):
    """Five yes-no columns of a two-class law."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n) < 0.4
    return {f"q{k}": rng.random(n) < np.where(hidden, 0.85, 0.15) for k in range(5)}


COINS = [Dictionary.categories(2)] * 5


def test_generous_numbers_of_components_shrink_to_what_the_rows_show():
    fit = fit_models(coded(binary()), [COINS], 8, 10.0)
    density = fit.density
    # P(all yes) = 0.4 * 0.85^5 + 0.6 * 0.15^5; four standard errors of a share of 4,000 rows
    expected = 0.4 * 0.85**5 + 0.6 * 0.15**5
    found = density.probability(dict.fromkeys(density.names, True))
    assert found == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 4000))
    assert fit.stages["likelihood"].converged
    assert np.all(np.diff(fit.stages["likelihood"].history) <= 1e-12)


def test_xor_is_seen_by_rows_though_not_by_pairs():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 2000)) < 0.5
    rows = coded({"a": a, "b": b, "c": a ^ b})
    density = fit_models(rows, [[Dictionary.categories(2)] * 3], 8, 0.1, rng=rng).density
    assert density.condition({"a": True, "b": True}).probability({"c": False}) > 0.9


def test_tidying_changes_no_density():
    rows = coded(binary(500))
    problem = rows_problem(rows, COINS, 1.0)
    b = np.array([[0.2, 0.2, 0.7, 0.5], [0.8, 0.8, 0.3, 0.5]])
    factors = Factors(np.array([0.3, 0.2, 0.5 - 1e-9, 1e-9]), (b,) * 5)
    tidy = tidied(factors, problem)
    assert tidy.weights == pytest.approx([0.5, 0.5])
    before, after = (np.einsum("r,ir,jr->ij", f.weights, f.coefficients[0], f.coefficients[1]) for f in (factors, tidy))
    np.testing.assert_allclose(before, after, atol=1e-8)


def test_one_variable_is_its_own_fit():
    rows = coded({"x": np.random.default_rng(0).normal(size=200)})
    dictionary = Dictionary.grid("gaussian", -3, 3, n=9, scale=0.7)
    fit = fit_models(rows, [[dictionary]])
    prior = smoothing_rows(200)
    expected = simplex_weights(dictionary.masses(rows.axes[0]), rows.marginal(0), prior=prior)
    np.testing.assert_allclose(fit.density.mixture.coefficients[0][:, 0], expected)


def test_gaps_at_random_cost_little():
    """Missing cells carry no bias: with 30% deleted, fresh rows score nearly as well (0.05 nats is five times the
    difference seen here)."""
    law = hybrid(0)
    X, fresh = law.sample(4000, rng=1), law.sample(1000, rng=2)
    holes = X.copy()
    holes[np.random.default_rng(3).random(X.shape) < 0.3] = np.nan
    kinds = {"x3": "categorical"}
    scores = []
    for table in (X, holes):
        rows = coded(table, kinds=kinds)
        dictionaries = [Dictionary.grid("gaussian", -8, 8, n=17, scale=1.2)] * 3 + [Dictionary.categories(10)]
        fit = fit_models(rows, [dictionaries], 12, 10.0)
        scores.append(fit.density.logpdf(fresh).mean())
    assert scores[1] > scores[0] - 0.05


def test_canonical_rows_add_up():
    rows = coded({"a": [1.0, 2.0, 1.0, None], "b": ["x", "y", "x", None]})
    tidy = rows.canonical()
    assert tidy.codes.tolist() == [[0, 0], [1, 1]]
    assert tidy.weights.tolist() == [2.0, 1.0]
    assert tidy.n_rows == 3


def test_no_rows_is_a_sentence():
    rows = coded(binary(10)).take(np.array([], dtype=int))
    with pytest.raises(InputError, match="no rows"):
        fit_models(rows, [COINS])


@pytest.mark.parametrize(
    "wrong",
    [{"n_components": 0}, {"n_components": "many"}, {"beta": -1.0}, {"n_init": 0}, {"max_iter": 0}, {"tol": -1}],
)
def test_wrong_settings_are_told(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Options(**wrong)


def test_the_average_is_the_mean_of_the_densities():
    rng = np.random.default_rng(0)
    wide, narrow = (Dictionary.grid("gaussian", -3, 3, n=n, scale=s) for n, s in ((4, 1.5), (7, 0.8)))
    coin = Dictionary.categories(2)
    models = [(wide, coin), (narrow, coin), (wide, coin)]
    factors = [
        Factors(rng.dirichlet(np.ones(r)), tuple(rng.dirichlet(np.ones(d.n_atoms), r).T for d in model))
        for r, model in zip((2, 3, 1), models, strict=True)
    ]
    mixture = average(models, factors)
    assert [d.n_atoms for d in mixture.dictionaries] == [11, 2]  # what models share appears once
    rows = np.column_stack([rng.normal(size=50), rng.integers(0, 2, 50)]).astype(float)
    each = [ProductMixture(f.weights, f.coefficients, m).logpdf(rows) for f, m in zip(factors, models, strict=True)]
    np.testing.assert_allclose(np.exp(mixture.logpdf(rows)), np.exp(each).mean(axis=0))


def test_the_average_of_independences_is_independence():
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=300), "b": rng.normal(size=300)}
    grids = [Dictionary.grid("gaussian", -3, 3, n=n, scale=1.0) for n in (7, 9)]
    fit = fit_models(coded(X), [(g, g) for g in grids], 1, rng=rng)
    assert fit.density.n_components == 1
    assert fit.gain == pytest.approx(0.0, abs=1e-9)
    assert not fit.stages


def test_models_share_the_starts_and_each_has_its_stage():
    grids = [Dictionary.categories(2)] * 5, [Dictionary.categories(2)] * 5
    fit = fit_models(coded(binary(400)), grids, 3, 1.0, n_init=3)
    assert list(fit.stages) == ["likelihood 1", "likelihood 2"]
    assert fit.final == tuple(fit.stages.values())


def interrupted_fit(monkeypatch, where, nth, keep=True):
    """Fit of four models with an interrupt in the nth call of a function of `jointwise.fitting.rows`."""
    whole, calls = getattr(fitting_rows, where), []

    def interrupt(*args, **kwargs):
        calls.append(1)
        if len(calls) == nth:
            raise KeyboardInterrupt
        return whole(*args, **kwargs)

    monkeypatch.setattr(fitting_rows, where, interrupt)
    monkeypatch.setattr(models, "n_cores", lambda: 1)  # Ctrl-C comes to the main thread alone
    grids = [[Dictionary.categories(2)] * 5 for _ in range(4)]
    learn = where == "learn_atoms"
    return fit_models(coded(binary(400)), grids, 3, 1.0, learn_dictionary=learn, keep_on_interrupt=keep)


@pytest.mark.parametrize(("where", "kept"), [("first_point", 2), ("learn_atoms", 3)])
def test_an_interrupt_between_runs_keeps_the_models_fitted_by_then(monkeypatch, where, kept):
    fit = interrupted_fit(monkeypatch, where, 3)
    assert [stage.status for stage in fit.final] == [Status.CONVERGED] * (kept - 1) + [Status.INTERRUPTED]
    assert fit.density.n_components <= 3 * kept
    assert "interrupted" in fit.final[-1].message


def test_an_interrupt_is_raised_where_it_is_not_to_be_kept_or_nothing_is_there(monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        interrupted_fit(monkeypatch, "first_point", 3, keep=False)
    with pytest.raises(KeyboardInterrupt):
        interrupted_fit(monkeypatch, "first_point", 1)


def test_many_rows_are_met_in_growing_parts_first(monkeypatch):
    """It ends about where EM on all rows does from the start; parts are of the sizes that were asked for."""
    rows, fresh = hybrid(0).sample(30_000, rng=1), hybrid(0).sample(20_000, rng=2)
    whole = JUPAD(4, random_state=0, learn_dictionary=False).fit(rows).score(fresh)
    sizes = []
    monkeypatch.setattr(starts, "PART_ROWS", 2_000)
    monkeypatch.setattr(starts, "PART_GROWTH", 4)
    monkeypatch.setattr(starts, "spread_positions", lambda n, k, rng: sizes.append(k) or spread_positions(n, k, rng))
    in_parts = JUPAD(4, random_state=0, learn_dictionary=False).fit(rows).score(fresh)
    assert sizes == [2_000, 8_000]
    assert in_parts == pytest.approx(whole, abs=0.02)


@given(st.integers(1, 10**12), st.integers(1, 50), st.integers(0, 5))
def test_spread_positions_rise_and_are_one_of_each_stretch(n, n_chosen, seed):
    n_chosen = min(n, n_chosen)
    positions = spread_positions(n, n_chosen, np.random.default_rng(seed))
    assert len(positions) == n_chosen
    assert np.all(np.diff(positions) > 0)
    assert positions[0] >= 0
    assert positions[-1] < n


def test_masses_of_several_models_are_those_of_each():
    X = {"x": np.random.default_rng(0).normal(size=200), "y": np.arange(200) % 3}
    profile = Profile.of(X)
    axes = profile.axes(profile.schema(), 32)
    grids = [Dictionary.grid("gaussian", -2, 2, n=n, scale=1) for n in (3, 5)]
    values = Dictionary.points(np.arange(3))
    models = [(grids[0], values), (grids[1], values), (grids[0], values)]
    for found, model in zip(masses_of_models(models, axes), models, strict=True):
        for one, other in zip(found, all_masses(model, axes), strict=True):
            np.testing.assert_allclose(one @ np.eye(one.shape[1]), other @ np.eye(other.shape[1]), rtol=1e-12)
