"""Tables in and out of the estimators: names, containers, tags, categories never seen, gaps."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.estimators.cases import (
    CONTAINERS,
    FRAMES,
    QUICK,
    library,
    make_classifier,
    make_imputer,
    mixed_columns,
    table,
)

from jointwise import JUPAD
from jointwise.exceptions import InputError, UnknownNameError, UnseenCategoryWarning

ESTIMATORS = (JUPAD, make_classifier, make_imputer)


@pytest.fixture(scope="module")
def fitted():
    """One density per container, fitted to the same mixed rows with gaps."""
    return {name: JUPAD(**QUICK).fit(table(name, mixed_columns(gaps=True))) for name in CONTAINERS}


@pytest.mark.parametrize("container", CONTAINERS)
def test_samples_come_in_the_container_that_was_fitted(fitted, container):
    rows = fitted[container].sample(4, random_state=0)
    assert library(rows) == container
    assert np.all(np.isfinite(fitted[container].score_samples(rows)))


@pytest.mark.parametrize("container", CONTAINERS)
def test_scores_are_the_same_whatever_held_the_rows(fitted, container):
    columns = mixed_columns(20, seed=1, gaps=True)
    expected = fitted["pandas"].score_samples(table("pandas", columns))
    np.testing.assert_allclose(fitted[container].score_samples(table(container, columns)), expected, rtol=1e-9)


@pytest.mark.parametrize("container", FRAMES)
def test_names_are_kept(fitted, container):
    assert fitted[container].feature_names_in_.tolist() == ["x", "k", "job", "flag", "when"]
    assert fitted[container].n_features_in_ == 5


def test_arrays_have_no_names(fitted):
    assert not hasattr(fitted["numpy"], "feature_names_in_")
    assert fitted["numpy"].density_.names == ("x0", "x1", "x2", "x3", "x4")


def test_refitting_on_an_array_forgets_the_names():
    model = JUPAD(**QUICK).fit(pd.DataFrame({"a": [1.0, 2, 3], "b": [1.0, 3, 2]}))
    model.fit(np.ones((3, 2)))
    assert not hasattr(model, "feature_names_in_")
    model.fit({"a": [1.0, 2, 3]})
    assert model.feature_names_in_.tolist() == ["a"]
    assert model.n_features_in_ == 1


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_frames_with_other_columns_are_refused(fitted, container):
    columns = mixed_columns(5, seed=1)
    with pytest.raises(ValueError, match="must be in the same order"):
        fitted[container].score_samples(table(container, dict(reversed(columns.items()))))
    with pytest.raises(ValueError, match="yet now missing:\n- when"):
        fitted[container].score_samples(table(container, {k: v for k, v in columns.items() if k != "when"}))
    with pytest.raises(ValueError, match="unseen at fit time:\n- more"):
        fitted[container].score_samples(table(container, {**columns, "more": columns["x"]}))


def test_mappings_are_read_by_name(fitted):
    columns = mixed_columns(5, seed=1)
    model = fitted["dict"]
    expected = model.score_samples(columns)
    np.testing.assert_array_equal(model.score_samples(dict(reversed(columns.items()))), expected)
    np.testing.assert_array_equal(model.score_samples({**columns, "more": columns["x"]}), expected)
    with pytest.raises(UnknownNameError, match="lacks columns 'when'"):
        model.score_samples({k: v for k, v in columns.items() if k != "when"})


def test_arrays_of_another_width_are_refused(fitted):
    with pytest.raises(ValueError, match="X has 2 features, but JUPAD is expecting 5"):
        fitted["numpy"].score_samples(np.ones((1, 2)))


def test_an_array_for_a_model_with_names_is_read_in_order_with_a_warning(fitted):
    columns = mixed_columns(5, seed=1)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        found = fitted["pandas"].score_samples(table("numpy", columns))
    np.testing.assert_allclose(found, fitted["pandas"].score_samples(table("pandas", columns)))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_tags(estimator):
    tags = estimator().__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    assert tags.input_tags.string
    assert not tags.input_tags.sparse
    kind = {JUPAD: "density_estimator", make_classifier: "classifier", make_imputer: None}[estimator]
    assert tags.estimator_type == kind


# ---- categories never seen -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_unseen_categories_count_as_missing_with_one_warning(fitted, container):
    columns = mixed_columns(6, seed=1)
    columns["job"][0] = "astronaut"
    columns["job"][1] = "pirate"
    missing = {**columns, "job": columns["job"].copy()}
    missing["job"][:2] = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fitted[container].score_samples(table(container, columns))
    assert [w.category for w in caught] == [UnseenCategoryWarning]
    text = str(caught[0].message)
    assert "'astronaut', 'pirate'" in text
    assert ("'x2'" if container == "numpy" else "'job'") in text
    np.testing.assert_allclose(found, fitted[container].score_samples(table(container, missing)))


def test_classifier_and_imputer_warn_alike():
    columns = mixed_columns()
    classes = columns.pop("flag")
    strange = {name: column[:2].copy() for name, column in columns.items()}
    strange["job"][:] = "astronaut"
    with pytest.warns(UnseenCategoryWarning, match="'job': 'astronaut'"):
        probabilities = make_classifier(**QUICK).fit(columns, classes).predict_proba(strange)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    with pytest.warns(UnseenCategoryWarning, match="'job': 'astronaut'"):
        filled = make_imputer(**QUICK).fit(columns).transform(strange)
    assert set(filled["job"]) <= {"cook", "nurse"}


# ---- gaps ----------------------------------------------------------------------------------------------------------


def test_a_row_without_any_value_has_density_one(fitted):
    empty = {name: np.array([None]) for name in mixed_columns()}
    assert fitted["dict"].score_samples(empty)[0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", ["x", "k", "job", "flag", "when"])
def test_a_gap_integrates_its_column_out(fitted, name):
    model = fitted["polars"]
    columns = mixed_columns(10, seed=2)
    gap = table("polars", {**columns, name: np.full(10, None)})
    rest = [other for other in columns if other != name]
    expected = model.density_.marginal(rest).logpdf(table("polars", columns).select(rest))
    np.testing.assert_allclose(model.score_samples(gap), expected, rtol=1e-9)


def test_rows_without_any_value_do_not_change_a_fit():
    columns = mixed_columns()
    longer = {name: np.append(column.astype(object), [None] * 5) for name, column in columns.items()}
    some, more = (JUPAD(**QUICK).fit(pd.DataFrame(c).infer_objects()) for c in (columns, longer))
    rows = pd.DataFrame(mixed_columns(10, seed=3))
    np.testing.assert_allclose(some.score_samples(rows), more.score_samples(rows), rtol=1e-9)


def test_pandas_types_all_fit():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "nullable": pd.array([1, 2, None, 4] * 10, dtype="Int64"),
        "real": pd.array([0.5, None, 1.5, 2.5] * 10, dtype="Float64"),
        "size": pd.Categorical(["S", "L", "M", None] * 10, categories=["S", "M", "L"], ordered=True),
        "zoned": pd.date_range("2024-01-01", periods=40, tz="Europe/Paris"),
        "small": rng.normal(size=40).astype(np.float32),
    })  # fmt: skip
    model = JUPAD(**QUICK).fit(frame)
    assert np.all(np.isfinite(model.score_samples(frame)))
    sample = model.sample(3, random_state=0)
    assert sample["zoned"].dtype == frame["zoned"].dtype
    assert sample["size"].cat.ordered


# ---- what a column is ----------------------------------------------------------------------------------------------


def test_kinds_override_what_is_found():
    frame = pl.DataFrame({"a": [1, 2, 3, 2] * 10, "b": [1, 2, 3, 1] * 10, "c": ["lo", "hi", "lo", "mid"] * 10})
    model = JUPAD(**QUICK, kinds={"a": "categorical", "b": "continuous", "c": "ordinal"}).fit(frame)
    kinds = [(str(v.kind), v.ordered) for v in model.density_.schema]
    assert kinds == [("categorical", False), ("continuous", False), ("categorical", True)]


@pytest.mark.parametrize(
    ("kinds", "error", "message"),
    [
        ({"z": "integer"}, UnknownNameError, "Unknown variable in `kinds`: 'z'"),
        ({"a": "number"}, InputError, r"`kinds\['a'\]` must be one of .*; got 'number'"),
        ({"c": "continuous"}, InputError, "'c' holds string values and cannot be continuous"),
        ({"b": "integer"}, InputError, "'b' holds fractions"),
    ],
)
def test_wrong_kinds_get_a_sentence(kinds, error, message):
    with pytest.raises(error, match=message):
        JUPAD(kinds=kinds).fit({"a": [1, 2], "b": [0.5, 1], "c": ["u", "v"]})
