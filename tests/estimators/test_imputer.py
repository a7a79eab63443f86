"""JointImputer, by JUPAD: what is filled, and in which table it comes back."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from tests.estimators.cases import CONTAINERS, QUICK, library, make_classifier, make_imputer, mixed_columns, table

NAMES = ["x", "k", "job", "flag", "when"]
PANDAS_TYPES = {"x": "f", "k": "i", "flag": "b", "when": "M"}


def is_complete(frame):
    if library(frame) == "pyarrow":
        return sum(column.null_count for column in frame.columns) == 0
    if library(frame) == "polars":
        return frame.null_count().sum_horizontal()[0] == 0
    return not pd.DataFrame(frame).isna().any(axis=None)


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_mixed_table_comes_back_full_as_asked(container, output):
    gappy = table(container, mixed_columns(gaps=True))
    imputer = make_imputer(**QUICK).set_output(transform=output).fit(gappy)
    filled = imputer.transform(gappy)
    assert library(filled) == (container if output == "default" else output)
    assert is_complete(filled)
    names = ["x0", "x1", "x2", "x3", "x4"] if container == "numpy" else NAMES
    assert imputer.get_feature_names_out().tolist() == names
    if output != "default":
        assert list(filled.columns) == names


@pytest.mark.parametrize("container", CONTAINERS)
def test_pandas_output_keeps_column_types_of_mixed_tables(container):
    complete = table(container, mixed_columns())
    filled = make_imputer(**QUICK).set_output(transform="pandas").fit_transform(complete)
    filled.columns = NAMES
    assert {name: filled[name].dtype.kind for name in PANDAS_TYPES} == PANDAS_TYPES
    assert filled["job"].tolist() == mixed_columns()["job"].tolist()


def test_polars_output_keeps_column_types_of_mixed_tables():
    filled = make_imputer(**QUICK).set_output(transform="polars").fit_transform(table("pandas", mixed_columns()))
    assert filled.dtypes == [pl.Float64, pl.Int64, pl.String, pl.Boolean, pl.Datetime("us")]


def test_global_output_setting_is_followed():
    X = np.array([[0.0, 1.0], [1.0, np.nan], [2.0, 0.5]])
    with config_context(transform_output="pandas"):
        assert library(make_imputer(**QUICK).fit_transform(X)) == "pandas"


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_index_of_a_pandas_frame_is_kept(output):
    frame = table("pandas", mixed_columns(gaps=True))
    frame.index = pd.Index([f"row{n}" for n in range(len(frame))], name="id")
    filled = make_imputer(**QUICK).set_output(transform=output).fit_transform(frame)
    pd.testing.assert_index_equal(filled.index, frame.index)


def test_names_that_are_not_text_are_kept():
    frame = pd.DataFrame({2020: [1.0, 2.0, np.nan], 2021: [3.0, np.nan, 1.0]})
    assert make_imputer(**QUICK).fit_transform(frame).columns.tolist() == [2020, 2021]


@pytest.mark.parametrize("container", CONTAINERS)
def test_observed_cells_stay_as_they_are(container):
    columns = mixed_columns(gaps=True)
    gappy = table(container, columns)
    filled = make_imputer(**QUICK).set_output(transform="polars").fit_transform(gappy)
    for name, new in zip(columns, filled.iter_columns(), strict=True):
        known = [n for n, cell in enumerate(columns[name]) if cell is not None]
        assert new[known].to_list() == [columns[name][n] for n in known]


def test_transform_follows_the_table_it_gets_not_the_one_of_the_fit():
    imputer = make_imputer(**QUICK).fit(table("pandas", mixed_columns()))
    for container in ("pandas", "polars", "pyarrow", "dict"):
        assert library(imputer.transform(table(container, mixed_columns(5, gaps=True)))) == container


def test_gaps_are_filled_from_the_rest_of_the_row():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)
    frame = pd.DataFrame({"group": np.array(["low", "high"])[group], "x": 10 * group + rng.normal(size=400)})
    imputer = make_imputer(n_components=2, random_state=0).fit(frame)
    filled = imputer.transform(pd.DataFrame({"group": ["low", "high", None], "x": [np.nan, np.nan, 9.5]}))
    assert filled["x"].tolist() == pytest.approx([0, 10, 9.5], abs=0.5)
    assert filled["group"].tolist() == ["low", "high", "high"]


def test_row_without_any_value_gets_what_is_most_common():
    imputer = make_imputer(**QUICK).fit({"c": ["a", "b", "b", "b"], "k": [1, 3, 3, 3]})
    filled = imputer.transform({"c": np.array([None]), "k": np.array([np.nan])})
    assert filled["c"].tolist() == ["b"]
    assert filled["k"][0] in {2, 3}  # the mean is 2.5


def test_integers_stay_integers():
    X = np.array([[1.0, 2], [np.nan, 4], [3, 6], [4, np.nan]] * 5)
    filled = make_imputer(**QUICK).fit_transform(X)
    np.testing.assert_array_equal(filled, np.rint(filled))


def test_heavy_tails_are_filled_with_finite_values():
    X = np.random.default_rng(0).standard_cauchy((200, 2))
    X[::5, 0] = np.nan
    assert np.all(np.isfinite(make_imputer(**QUICK).fit_transform(X)))


def test_imputer_then_classifier():
    columns = mixed_columns(150, gaps=True)
    frame = table("pandas", columns).drop(columns="flag")
    classes = mixed_columns(150)["flag"]
    pipeline = make_pipeline(make_imputer(**QUICK), make_classifier(**QUICK)).set_output(transform="pandas")
    assert pipeline.fit(frame, classes).score(frame, classes) > 0.6
