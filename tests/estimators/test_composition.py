"""Classifier and imputer hold any estimator with a density: parameters, clones, weights, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.estimators.cases import QUICK

from jointwise import JUPAD, GaussianBlocks, JointClassifier, JointEstimator, JointImputer, PairwiseMarginals, Profile
from jointwise.exceptions import InputError, LeftOutWarning

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, 120)
X = rng.normal(size=(120, 2)) + 2 * Y[:, None]
WEIGHTS = rng.integers(1, 4, 120)


class Independence(BaseEstimator):
    """The least that can be held: columns that are independent."""

    def __init__(self, kinds=None):
        self.kinds = kinds

    def fit(self, X, y=None):
        self.density_ = JUPAD(1, kinds=self.kinds, random_state=0).fit(X).density_
        self.n_features_in_ = len(self.density_.names)
        return self


class Mute(BaseEstimator):
    """An estimator without a density."""

    def __init__(self, kinds=None):
        self.kinds = kinds

    def fit(self, X, y=None, sample_weight=None):
        return self


@pytest.mark.parametrize("composed", [JointClassifier, JointImputer])
def test_the_held_estimator_stays_as_it_is(composed):
    held = JUPAD(**QUICK)
    model = composed(held).fit(X, Y)
    assert not hasattr(held, "density_")
    assert held.kinds is None
    assert model.estimator_ is not held
    assert model.estimator_.n_components == 2
    assert clone(model).get_params()["estimator__n_components"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("composed", [JointClassifier, JointImputer])
def test_by_default_it_is_a_joint_estimator(composed):
    model = composed(random_state=3).fit(X[:40], Y[:40])
    assert isinstance(model.estimator_, JointEstimator)
    assert model.estimator_.random_state == 3


def test_a_seed_of_its_own_is_the_held_one_s():
    outer = JointClassifier(JUPAD(2, n_init=1), random_state=5).fit(X, Y)
    inner = JointClassifier(JUPAD(2, n_init=1, random_state=5)).fit(X, Y)
    np.testing.assert_array_equal(outer.predict_proba(X), inner.predict_proba(X))
    assert JointClassifier(JUPAD(2, random_state=5)).fit(X, Y).estimator_.random_state == 5


def test_any_estimator_with_a_density_will_do():
    classifier = JointClassifier(Independence()).fit(X, Y)
    np.testing.assert_allclose(classifier.predict_proba(X), np.tile(np.bincount(Y) / 120, (120, 1)))
    assert classifier.summary().startswith("JointClassifier, by JointDensity(3 variables")
    gappy = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    filled = JointImputer(Independence()).fit(gappy).transform(gappy)
    assert np.allclose(filled[np.isnan(gappy)[:, 0], 0], filled[np.isnan(gappy)[:, 0], 0][0])


def test_the_class_may_have_a_kind_of_its_own():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = JointClassifier(JUPAD(**QUICK, kinds={"grade": "ordinal"})).fit(frame, pd.Series(Y, name="grade"))
    assert model.density_.schema["grade"].ordered


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (JUPAD, "`estimator` must be an estimator that has a `density_` once fitted"),
        ("JUPAD", "`estimator` must be an estimator that has a `density_` once fitted"),
        (Mute(), "Mute has none"),
        (LinearRegression(), "must have a parameter `kinds`"),
        (JUPAD(drop=["target"]), "take it out of the estimator's `drop`"),
    ],
)
def test_what_cannot_be_held_is_refused(estimator, message):
    with pytest.raises(InputError, match=message):
        JointClassifier(estimator).fit(X, Y)


def test_weights_reach_the_held_estimator():
    repeated = np.repeat(np.arange(120), WEIGHTS)
    for model in (JointClassifier(JUPAD(**QUICK)), JointImputer(JUPAD(**QUICK))):
        weighted = clone(model).fit(X, Y, sample_weight=WEIGHTS).density_
        np.testing.assert_array_equal(
            weighted.mixture.coefficients[0],
            clone(model).fit(X[repeated], Y[repeated]).density_.mixture.coefficients[0],
        )
    with pytest.raises(InputError, match="Independence takes no sample_weight"):
        JointClassifier(Independence()).fit(X, Y, sample_weight=WEIGHTS)


@pytest.mark.parametrize("routing", [False, True])
def test_weights_pass_through_a_search(routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        model = JointClassifier(JUPAD(**QUICK))
        if routing:
            model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"estimator__n_components": [1, 2]}, cv=2)
        search.fit(X, Y, sample_weight=WEIGHTS)
    assert search.best_estimator_.estimator_.fit_.n_rows == WEIGHTS.sum()


def test_parameters_of_a_pipeline_reach_all_the_way_down():
    pipeline = make_pipeline(JointImputer(JUPAD(**QUICK)), JointClassifier(JUPAD(**QUICK)))
    pipeline.set_params(jointclassifier__estimator__beta=2.0, jointimputer__estimator__method="pairs")
    gappy = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    pipeline.fit(gappy, Y)
    assert pipeline[-1].estimator_.beta_ == 2.0
    assert pipeline[0].estimator_.fit_.options.method == "pairs"
    assert pipeline.score(gappy, Y) > 0.8


def test_a_level_without_rows_is_no_class_of_counts():
    """Columns of probabilities and classes are the same, also where counts declare a level that no row has."""
    frame = pd.DataFrame(
        {"a": X[:, 0], "c": pd.Categorical(np.array(["no", "yes"])[Y], categories=["maybe", "no", "yes"])}
    )
    profile = Profile.of(frame)
    schema = profile.schema()
    marginals = PairwiseMarginals.of(frame, schema, profile.axes(schema, 32))
    model = JointClassifier(JUPAD(**QUICK)).fit_marginals(marginals)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.predict_proba(frame[["a"]]).shape == (120, 2)
    assert model.score(frame[["a"]], frame["c"].astype(str)) > 0.7


def test_counts_alone_are_fitted_by_a_jupad():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.array(["no", "yes"])[Y]})
    profile = Profile.of(frame)
    schema = profile.schema()
    marginals = PairwiseMarginals.of(frame, schema, profile.axes(schema, 32))
    model = JointClassifier(random_state=3).fit_marginals(marginals)
    assert isinstance(model.estimator_, JUPAD)
    same = JointClassifier(JUPAD(random_state=3)).fit_marginals(marginals)
    np.testing.assert_array_equal(model.predict_proba(frame[["a", "b"]]), same.predict_proba(frame[["a", "b"]]))
    with pytest.raises(InputError, match=r"fits counts of pairs, such as JUPAD.*JointEstimator needs rows"):
        JointClassifier(JointEstimator()).fit_marginals(marginals)


@pytest.mark.parametrize(
    "held",
    [
        JUPAD(**QUICK),
        GaussianBlocks("none", n_components=2, random_state=0),
        JointEstimator([("a", JUPAD(2, n_init=1)), ("b", GaussianBlocks("none", n_components=2))], random_state=0),
    ],
    ids=lambda held: type(held).__name__,
)
def test_a_level_without_rows_is_no_class_of_blocks(held):
    """Levels that a table declares and no row has are conditioned away, in every kind of expert."""
    levels = pd.Categorical(np.array(["no", "yes"])[Y], categories=["maybe", "yes", "never", "no"], ordered=True)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": levels})
    model = JointClassifier(held).fit_blocks(lambda: [frame[:50], frame[50:]], "c")
    assert model.classes_.tolist() == ["yes", "no"]
    assert model.density_.schema["c"].ordered
    joint = model.estimator_.density_
    assert joint.schema["c"].categories == ("maybe", "yes", "never", "no")
    by_all = joint.predict_proba("c", frame[["a", "b"]])[:, [1, 3]]
    expected = by_all / by_all.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(frame[["a", "b"]]), expected, rtol=1e-9)
    given = joint.condition({"c": {"yes", "no"}})
    np.testing.assert_allclose(model.density_.logpdf(frame), given.logpdf(frame), rtol=1e-9)


def test_a_mapping_s_further_columns_are_not_filled_in_again():
    columns = {"a": X[:, 0], "b": X[:, 1]}
    imputer = JointImputer(JUPAD(**QUICK)).fit(columns)
    assert list(imputer.transform({**columns, "more": Y})) == ["a", "b"]


@pytest.mark.parametrize(
    "composed", [JUPAD(max_iter=1, tol=0.0, **QUICK), JointClassifier(JUPAD(max_iter=1, tol=0.0, **QUICK))]
)
def test_warnings_name_the_line_of_the_caller(composed):
    with pytest.warns(ConvergenceWarning) as caught:
        composed.fit(X, Y)
    assert {warning.filename for warning in caught} == {__file__}


def test_left_out_columns_are_told_at_the_caller_s_line():
    names = {"id": [f"row {i}" for i in range(120)], "a": X[:, 0]}
    with pytest.warns(LeftOutWarning) as caught:
        JUPAD(**QUICK).fit(names)
    assert caught[0].filename == __file__
