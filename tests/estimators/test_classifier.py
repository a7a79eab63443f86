"""JointClassifier: classes of every type, probabilities, fits from counts alone."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.estimators.cases import QUICK, make_classifier, mixed_columns, same_model, table

from jointwise import JUPAD, PairwiseMarginals, Profile
from jointwise.exceptions import InputError


def problem(n=200, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    return rng.normal(size=(n, 2)) + 4 * codes[:, None], codes


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([3, 7]),
        np.array([False, True]),
        np.array([1.0, 2.0]),
    ],
    ids=lambda classes: classes.dtype.str,
)
def test_classes_of_every_type(classes):
    X, codes = problem()
    model = make_classifier(**QUICK).fit(X, classes[codes])
    np.testing.assert_array_equal(model.classes_, classes)
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype
    assert np.mean(predicted == classes[codes]) > 0.95
    assert set(model.density_.sample(20, rng=0)[:, -1]) <= set(classes.tolist())


@pytest.mark.parametrize("wrap", [list, pd.Series, pd.Categorical, pl.Series])
def test_targets_of_every_container(wrap):
    X, codes = problem()
    model = make_classifier(**QUICK).fit(X, wrap(np.array(["no", "yes"])[codes].tolist()))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, np.array(["no", "yes"])[codes]) > 0.95


def test_probabilities_are_those_of_the_joint_density():
    columns = mixed_columns(150, gaps=True)
    X, y = table("pandas", columns).drop(columns="flag"), mixed_columns(150)["flag"]
    model = make_classifier(**QUICK).fit(X, y)
    found = model.predict_proba(X)
    assert found.shape == (150, 2)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found, model.density_.predict_proba(model.target_name_, X), rtol=1e-9)
    joint = np.column_stack([
        np.exp(model.density_.logpdf(X.assign(**{model.target_name_: value}))) for value in (False, True)
    ])  # fmt: skip
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)


def test_row_without_any_value_gets_the_shares_of_the_classes():
    X, codes = problem(200)
    y = np.where(np.arange(200) % 4 == 0, 1, codes * 0)
    model = make_classifier(**QUICK).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 2), np.nan))[0], [0.75, 0.25], atol=0.01)


def test_a_row_beyond_all_rows_still_has_probabilities():
    X, codes = problem()
    proba = make_classifier(**QUICK).fit(X, codes).predict_proba(np.array([[1e6, -1e6], [1e300, 1e300]]))
    np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize(("name", "expected"), [("kind", "kind"), (None, "target"), ("x0", "x0_")])
def test_name_of_the_class_is_that_of_the_series_and_never_one_of_a_feature(name, expected):
    X, codes = problem(60)
    model = make_classifier(**QUICK).fit(X, pd.Series(codes, name=name))
    assert model.target_name_ == expected
    assert model.density_.names[-1] == expected
    assert model.n_features_in_ == 2


def test_fit_from_counts_alone_is_the_fit_from_rows():
    X, codes = problem()
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.array(["no", "yes"])[codes]})
    profile = Profile.of(frame)
    schema = profile.schema()
    counts = PairwiseMarginals.of(frame, schema, profile.axes(schema, 64))
    from_counts = make_classifier(**QUICK).fit_marginals(counts)
    from_rows = make_classifier(**QUICK, method="pairs", n_bins=64).fit(frame[["a", "b"]], frame["kind"])
    assert same_model(from_counts, from_rows)
    assert from_counts.classes_.tolist() == ["no", "yes"]
    assert from_counts.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(from_counts.predict(frame[["a", "b"]]), from_rows.predict(frame[["a", "b"]]))
    with pytest.raises(InputError, match=r"'b' is continuous.*put the class last"):
        make_classifier(**QUICK).fit_marginals(counts.select(["kind", "a", "b"]))


def test_one_class_is_certain():
    X, _ = problem(50)
    model = make_classifier(**QUICK).fit(X, np.full(50, "only"))
    np.testing.assert_array_equal(model.predict_proba(X), 1)


def test_one_feature_is_enough():
    X, codes = problem()
    assert make_classifier(**QUICK).fit(X[:, :1], codes).score(X[:, :1], codes) > 0.9


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ([0, 1], "inconsistent numbers of samples"),
        ([0.5, 1.5, 2.25], "Unknown label type: continuous"),
        ([0, 1, np.nan], "NaN"),
    ],
)
def test_wrong_targets_get_a_sentence(y, message):
    with pytest.raises(ValueError, match=message):
        make_classifier().fit(np.ones((3, 1)), y)


def test_density_ignores_y():
    X, codes = problem(60)
    assert same_model(JUPAD(**QUICK).fit(X, codes), JUPAD(**QUICK).fit(X))
