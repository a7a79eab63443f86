"""How the estimators fit: weights, blocks of rows, counts alone, seeds, model selection, copies."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators.cases import QUICK, make_classifier, make_imputer, mixed_columns, same_model, table

from jointwise import JUPAD, Dictionary, PairwiseMarginals, Profile
from jointwise.datasets import hybrid

METHODS = ("rows", "pairs", "paper")


def counts_of(parts, n_bins=64):
    """Marginals of a table met in parts: profiles are added first, then counts."""
    profile = sum(map(Profile.of, parts), Profile.empty())
    schema = profile.schema()
    axes = profile.axes(schema, n_bins)
    return sum((PairwiseMarginals.of(part, schema, axes) for part in parts), PairwiseMarginals.empty(schema, axes))


def blocks(frame, n):
    return [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), n)]


@pytest.fixture(scope="module")
def frame():
    return table("pandas", mixed_columns(300, gaps=True))


# ---- counts, blocks, weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_blocks", [7, 100])
def test_rows_in_blocks_give_the_same_counts_and_the_same_model(frame, n_blocks):
    # a block may hold integers without a gap, or nothing but gaps: types are settled by the sum
    whole, parts = counts_of([frame]), counts_of(blocks(frame, n_blocks))
    assert whole.counts.dtype == parts.counts.dtype == np.int64
    np.testing.assert_array_equal(parts.counts, whole.counts)
    assert parts == whole
    assert same_model(JUPAD(**QUICK).fit_marginals(parts), JUPAD(**QUICK).fit_marginals(whole))


@pytest.mark.parametrize("method", ["pairs", "paper"])
def test_fit_from_counts_alone_is_the_fit_from_rows(frame, method):
    model = JUPAD(**QUICK, method=method, n_bins=64)
    from_rows, from_counts = clone(model).fit(frame), clone(model).fit_marginals(counts_of([frame]))
    assert same_model(from_rows, from_counts)
    assert from_counts.n_features_in_ == 5
    assert from_counts.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(from_rows.score_samples(frame), from_counts.score_samples(frame))


def test_fit_from_counts_of_an_array_has_no_names():
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = JUPAD(**QUICK).fit_marginals(counts_of([X]))
    assert not hasattr(model, "feature_names_in_")
    assert np.all(np.isfinite(model.score_samples(X)))


def test_counts_read_back_from_json_fit_alike(frame):
    counts = counts_of([frame])
    assert same_model(
        JUPAD(**QUICK).fit_marginals(counts),
        JUPAD(**QUICK).fit_marginals(PairwiseMarginals.from_dict(counts.to_dict())),
    )


def test_order_of_rows_does_not_matter(frame):
    shuffled = frame.sample(frac=1, random_state=1)
    assert same_model(JUPAD(**QUICK).fit(frame), JUPAD(**QUICK).fit(shuffled))


@pytest.mark.parametrize("method", METHODS)
def test_whole_weights_are_repeats(frame, method):
    weights = np.random.default_rng(0).integers(0, 4, len(frame))
    repeated = frame.loc[np.repeat(frame.index, weights)]
    profile = Profile.of(frame, weights)
    schema = profile.schema()
    axes = profile.axes(schema, 64)
    again = Profile.of(repeated)
    assert again.schema() == schema
    assert again.axes(schema, 64) == axes
    weighted = PairwiseMarginals.of(frame, schema, axes, weights)
    np.testing.assert_array_equal(weighted.counts, PairwiseMarginals.of(repeated, schema, axes).counts)
    a = JUPAD(**QUICK, method=method).fit(frame, sample_weight=weights)
    b = JUPAD(**QUICK, method=method).fit(repeated)
    np.testing.assert_allclose(a.score_samples(frame), b.score_samples(frame), rtol=1e-9)


def test_rows_of_weight_zero_are_as_good_as_absent(frame):
    weights = np.ones(len(frame))
    weights[::3] = 0
    strange = frame.copy()
    strange.loc[weights == 0, "x"] = 1e9
    a = JUPAD(**QUICK).fit(strange, sample_weight=weights)
    b = JUPAD(**QUICK).fit(frame[weights > 0])
    np.testing.assert_allclose(a.score_samples(frame), b.score_samples(frame), rtol=1e-9)


def test_classifier_weights_are_repeats(frame):
    X, y = frame.drop(columns="flag"), mixed_columns(300)["flag"]
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    a = make_classifier(**QUICK).fit(X, y, sample_weight=weights)
    b = make_classifier(**QUICK).fit(X.loc[np.repeat(X.index, weights)], np.repeat(y, weights))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=1e-9)


# ---- seeds and copies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_an_integer_seed_gives_the_same_model_each_time(frame, method):
    model = JUPAD(n_components=2, method=method, n_init=2, random_state=3)
    first = clone(model).fit(frame)
    assert same_model(first, model.fit(frame))
    assert same_model(first, model.fit(frame))
    state = JUPAD(n_components=2, method=method, n_init=2, random_state=np.random.RandomState(3)).fit(frame)
    assert same_model(first, state)


def test_a_random_state_moves_on_between_fits(frame):
    shared = np.random.RandomState(3)
    model = JUPAD(n_components=2, n_init=1, random_state=shared)
    assert not same_model(clone(model).set_params(random_state=shared).fit(frame), model.fit(frame))


def test_samples_follow_their_own_seed(frame):
    model = JUPAD(**QUICK).fit(frame)
    pd.testing.assert_frame_equal(model.sample(5, random_state=1), model.sample(5, random_state=1))
    assert not model.sample(5).equals(model.sample(5))


@pytest.mark.parametrize("estimator", [JUPAD, make_imputer])
def test_fitting_does_not_touch_the_table(frame, estimator):
    before = frame.copy(deep=True)
    estimator(**QUICK).fit(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_clone_and_pickle(frame):
    mine = {"x": Dictionary.grid("gaussian", -3, 6, step=1, scale=1)}
    model = JUPAD(**QUICK, dictionaries=mine, kinds={"k": "continuous"}).fit(frame)
    copy = clone(model)
    assert not hasattr(copy, "density_")
    assert copy.get_params()["kinds"] == {"k": "continuous"}
    assert same_model(copy.fit(frame), model)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.score_samples(frame), model.score_samples(frame))
    assert restored.stages_["likelihood"].message == model.stages_["likelihood"].message


# ---- dictionaries given by name ------------------------------------------------------------------------------------


def test_dictionaries_of_the_paper_on_float_and_integer_columns():
    rng = np.random.default_rng(0)
    rows = {
        "area": rng.uniform(10, 22, 300),
        "signal": np.rint(rng.normal(-60, 10, 300)).astype(int),
        "share": rng.beta(2, 2, 300),
    }
    dictionaries = {
        "area": Dictionary.grid("gaussian", 10, 22, step=2, scale=1) + Dictionary.uniforms([10, 16, 22]),
        "signal": Dictionary.grid("gaussian", -90, -36, step=4, scale=2),
        "share": Dictionary.grid("gaussian", 0, 1, step=0.04, scale=0.02),
    }
    for method in METHODS:
        model = JUPAD(n_components=3, method=method, dictionaries=dictionaries, random_state=0).fit(rows)
        assert [d.n_atoms for d in model.density_.mixture.dictionaries] == [9, 14, 26]
        assert np.all(np.isfinite(model.score_samples(rows)))
        total = model.density_.marginal("signal").pdf({"signal": np.arange(-200, 100)}).sum()
        assert total == pytest.approx(1, abs=1e-9)


def test_point_masses_of_a_given_dictionary_become_spikes():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(200) < 0.5, 0.0, rng.normal(5, 1, 200))
    mine = Dictionary.grid("gaussian", 2, 8, n=5, scale=1) + Dictionary.points([0.0])
    model = JUPAD(**QUICK, dictionaries={"x": mine}).fit({"x": x, "y": rng.normal(size=200)})
    assert model.density_.schema["x"].spikes == (0.0,)
    assert model.density_.probability({"x": 0.0}) == pytest.approx(np.mean(x == 0), abs=0.02)


# ---- how it went ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_histories_never_rise_on_real_rows(frame, method):
    model = JUPAD(n_components=3, method=method, random_state=0).fit(frame)
    for stage in model.stages_.values():
        assert np.all(np.isfinite(stage.history))
        assert np.all(np.diff(stage.history) <= 1e-9 * np.abs(stage.history[:-1]))
    last = list(model.stages_.values())[-1]
    assert model.converged_
    assert model.n_iter_ == last.n_steps
    assert "converged after" in last.message


@pytest.mark.parametrize("method", METHODS)
def test_stopping_early_warns_with_remedies(frame, method):
    model = JUPAD(n_components=4, method=method, max_iter=1, tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"limit of 1 steps.*Raise max_iter \(now 1\)") as caught:
        model.fit(frame)
    assert caught[0].filename == __file__
    assert not model.converged_
    assert np.all(np.isfinite(model.score_samples(frame)))


def test_given_learning_rates_run_and_a_rise_is_told():
    rows = hybrid(rng=0).sample(500, rng=1)
    gentle = JUPAD(3, method="paper", learning_rates=(5.0, 5.0, 0.5), tol=1e-3, random_state=0).fit(rows)
    assert gentle.stages_["refinement"].history[-1] < gentle.stages_["refinement"].history[0]
    wild = JUPAD(3, method="paper", learning_rates=(1e5, 1e5, 1e5), max_iter=20, tol=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning):
        wild.fit(rows)
    rose = [s for s in wild.stages_.values() if np.any(np.diff(s.history) > 1e-6 * s.history[0])]
    assert rose
    assert all("The objective rose at" in s.message for s in rose)
    assert np.all(wild.density_.mixture.weights >= 0)


# ---- model selection and pipelines ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 240)
    return rng.normal(size=(240, 3)) + 5 * classes[:, None], classes


@pytest.mark.filterwarnings("ignore::jointwise.exceptions.MisfitWarning")  # two components for three clusters
def test_score_is_the_mean_of_score_samples(clusters):
    X, _ = clusters
    model = JUPAD(**QUICK).fit(X)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


@pytest.mark.slow
def test_grid_search_finds_the_clusters_by_held_out_density(clusters):
    X, _ = clusters
    search = GridSearchCV(JUPAD(n_init=2, random_state=0), {"n_components": [1, 3]}, cv=3).fit(X)
    assert search.best_params_ == {"n_components": 3}
    assert search.best_estimator_.density_.n_components == 3


@pytest.mark.slow
def test_grid_search_and_cross_validation_of_the_classifier(clusters):
    X, y = clusters
    search = GridSearchCV(make_classifier(n_init=4, random_state=0), {"estimator__n_components": [1, 3]}, cv=3).fit(
        X, y
    )
    assert search.best_params_ == {"estimator__n_components": 3}
    scores = cross_val_score(search.best_estimator_, X, y, cv=3)
    assert scores.min() > 0.95


@pytest.mark.filterwarnings("ignore::jointwise.exceptions.MisfitWarning")  # two components for three clusters
def test_scaler_then_density(clusters):
    X, _ = clusters
    pipeline = make_pipeline(StandardScaler(), JUPAD(**QUICK)).fit(X)
    assert np.isfinite(pipeline.score(X))
    plain = JUPAD(**QUICK).fit(X)
    # a change of units moves the log-density by the logarithm of the scale
    assert pipeline.score(X) - np.log(X.std(axis=0)).sum() == pytest.approx(plain.score(X), abs=0.05)


def test_more_components_than_one_pay_on_the_laws_of_the_paper():
    law = hybrid(rng=0)
    rows, fresh = law.sample(3000, rng=1), law.sample(2000, rng=2)
    one, eight = (JUPAD(n, random_state=0, n_init=2).fit(rows).score(fresh) for n in (1, 8))
    assert one < eight <= law.logpdf(fresh).mean() + 0.02
