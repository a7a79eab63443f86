"""Encoding tables by a schema, and decoding them."""

from __future__ import annotations

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import pytest
from tests.tables.cases import COLUMNS, NOON, cells, profile_schema, table_of

from jointwise.exceptions import InputError, UnknownNameError, UnseenCategoryWarning
from jointwise.tables import decode, encode
from jointwise.tables.variables import Schema, Variable


@pytest.mark.parametrize("gaps", [False, True], ids=["full", "gaps"])
@pytest.mark.parametrize("name", COLUMNS)
def test_each_type_in_each_container_is_encoded_and_decoded(container, name, gaps):
    values, encoded, logical = COLUMNS[name]
    if gaps:
        values, encoded = [*values, None], [*encoded, np.nan]
    data = table_of(container, {name: values})
    schema = profile_schema(data)
    # pandas has no plain integers with missing values: they are floats there
    promoted = gaps and name == "whole" and container == "pandas"
    assert schema[name].dtype == ("float64" if promoted else logical)
    assert schema.container == container
    matrix = encode(data, schema)
    np.testing.assert_allclose(matrix[:, 0], encoded, rtol=1e-15)
    again = decode(matrix, schema)
    assert type(again) is type(data)
    back = [value.astype(object) if isinstance(value, np.datetime64) else value for value in cells(again, name)]
    assert back == values
    np.testing.assert_array_equal(encode(again, schema), matrix)


def test_columns_are_found_by_name(container):
    schema = Schema((Variable("x", "continuous"), Variable("y", "integer")), container)
    data = table_of(container, {"z": ["a", "b"], "y": [1, 2], "x": [0.5, 1.5]})
    np.testing.assert_array_equal(encode(data, schema), [[0.5, 1.0], [1.5, 2.0]])
    part = table_of(container, {"y": [1, 2], "w": [0, 0]})
    with pytest.raises(UnknownNameError, match=r"lacks columns 'x'; it has 'y', 'w'"):
        encode(part, schema)
    np.testing.assert_array_equal(encode(part, schema, absent="missing"), [[np.nan, 1.0], [np.nan, 2.0]])
    assert encode(table_of(container, {"x": [], "y": []}), schema).shape == (0, 2)


def test_unseen_categories(container):
    schema = Schema((Variable("s", "categorical", categories=("a", "b"), dtype="string"), Variable("x", "continuous")))
    data = table_of(container, {"s": ["b", "zebra", None, "a", "yak"], "x": [1.0] * 5})
    np.testing.assert_array_equal(encode(data, schema)[:, 0], [1, -1, np.nan, 0, -1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matrix = encode(data, schema, unseen="missing")
    np.testing.assert_array_equal(matrix[:, 0], [1, np.nan, np.nan, 0, np.nan])
    (warning,) = caught
    assert warning.category is UnseenCategoryWarning
    assert "'s': 'yak', 'zebra'" in str(warning.message)
    assert warning.filename == __file__


def test_declared_categories_that_do_not_occur_give_no_warning():
    schema = Schema((Variable("s", "categorical", categories=("a",), dtype="string"),), "pandas")
    data = pd.DataFrame({"s": pd.Categorical(["a", None], categories=["a", "q"])})
    np.testing.assert_array_equal(encode(data, schema, unseen="missing"), [[0.0], [np.nan]])


def test_numeric_categories(container):
    schema = Schema((Variable("k", "categorical", categories=(1, 5), dtype="int64"),), container)
    data = table_of(container, {"k": [5, 1, None, 7]})
    np.testing.assert_array_equal(encode(data, schema)[:, 0], [1, 0, np.nan, -1])
    assert cells(decode(np.array([[1.0], [0.0]]), schema), "k") == [5, 1]
    assert cells(decode(np.array([[1.0], [np.nan]]), schema), "k") == [5, None]


def test_booleans_are_numbers_and_text_can_be_dates():
    schema = Schema((Variable("k", "integer"), Variable("d", "continuous", dtype="date")), "dict")
    matrix = encode({"k": [True, False, None], "d": ["1970-01-02", None, "1970-01-03"]}, schema)
    np.testing.assert_array_equal(matrix, [[1, 1], [0, np.nan], [np.nan, 2]])


@pytest.mark.parametrize(
    ("variable", "values", "message"),
    [
        (Variable("c", "continuous"), ["a"], "takes numbers; got 'a'"),
        (Variable("c", "continuous"), [dt.date(2020, 1, 1)], "must hold float64 values; it holds date"),
        (Variable("c", "continuous", dtype="date"), [1.5], "must hold date values; it holds float64"),
        (Variable("c", "continuous", dtype="datetime[us,UTC]"), [NOON], "with and without a zone"),
    ],
)
def test_wrong_types_are_refused(container, variable, values, message):
    with pytest.raises(InputError, match=message):
        encode(table_of(container, {"c": values}), Schema((variable,)))


def test_columns_without_values_fit_any_variable(container):
    variables = (
        Variable("a", "continuous", dtype="date"),
        Variable("b", "categorical", categories=("u",)),
        Variable("c", "integer"),
    )
    matrix = encode(table_of(container, {key: [None, None] for key in "abc"}), Schema(variables))
    assert np.isnan(matrix).all()


def test_encoded_values_are_a_copy():
    array = np.ones((3, 2))
    encode(array, profile_schema(array))[:] = 7.0
    assert np.all(array == 1.0)


def test_decode_refuses_what_it_cannot_write():
    schema = Schema((Variable("s", "categorical", categories=("a", "b"), dtype="string"),))
    for code in (-1.0, 2.0):
        with pytest.raises(InputError, match="codes 0 to 1"):
            decode(np.array([[code]]), schema)
    with pytest.raises(InputError, match="one column for each of 1 variables"):
        decode(np.zeros((2, 2)), schema)
