"""Reading tables: arrays, mappings and frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from tests.tables.cases import profile_schema, table_of

from jointwise.exceptions import InputError
from jointwise.marginals import Profile
from jointwise.tables import encode, read_table


def test_lists_that_mix_text_and_numbers_keep_the_numbers():
    schema = profile_schema([[1, "a"], [2, "b"]])
    assert [variable.dtype for variable in schema] == ["int64", "string"]


def test_masked_cells_are_missing():
    masked = np.ma.MaskedArray([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(encode(masked, profile_schema(masked)), [[1.0, np.nan], [3.0, 4.0]])


def test_an_object_with_an_array_method_is_an_array():
    class NotAnArray:
        def __array__(self, dtype=None, copy=None):
            return np.eye(2)

    assert read_table(NotAnArray()).n_rows == 2


def test_names_of_pandas_columns_become_text():
    data = pd.DataFrame({0: [1.5, 2.5], ("a", 1): [3.5, 4.5]})
    schema = profile_schema(data)
    assert schema.names == ("0", "('a', 1)")
    np.testing.assert_array_equal(encode(data, schema), [[1.5, 3.5], [2.5, 4.5]])


def test_a_table_is_read_as_itself_and_selects_rows(container):
    table = read_table(table_of(container, {"x": [1.0, 2.0, 3.0], "s": ["a", "b", None]}))
    assert read_table(table) is table
    some = table.rows(np.array([True, False, True]))
    assert some.n_rows == 2
    assert some.read(0).values.tolist() == [1.0, 3.0]  # noqa: PD011  # a Column, no frame
    np.testing.assert_array_equal(some.read(1).values, [0.0, np.nan])


def test_messages_match_those_of_scikit_learn():
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        Profile.of(np.array([[1.0], [{"foo": "bar"}]], dtype=object))
    with pytest.raises(ValueError, match="Complex data not supported"):
        Profile.of(np.array([[1j]]))
    with pytest.raises(ValueError, match="Complex data not supported"):
        Profile.of(np.array([[1j], [None]], dtype=object))
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(np.arange(3.0))
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(pd.Series([1.0]))
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(np.zeros((2, 2, 2)))
    with pytest.raises(TypeError, match="Sparse data"):
        read_table(sparse.csr_array(np.eye(2)))
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required."):
        read_table(np.empty((12, 0)))
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required."):
        profile_schema(np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"X contains infinity.*'x1'"):
        Profile.of(np.array([[1.0, np.inf]]))
    with pytest.raises(ValueError, match="X has 1 features, but 2 features are expected"):
        encode(np.zeros((3, 1)), profile_schema(np.ones((3, 2))))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pl.DataFrame({"a": [1]}).lazy(), "collect"),
        (3.0, "got float"),
        ([[1, 2], [3]], "could not be read"),
        ({"a": [1, 2], "b": [1]}, "one length"),
        ({"a": [[1, 2]]}, "one dimension"),
        ({"a": 1}, "Column 'a' must be a sequence"),
        ({"a": "xyz"}, "Column 'a' must be a sequence"),
        (np.array([["a"], [1.0]], dtype=object), "mixes values of type 'float', 'str'"),
        (np.array([[10**400], [1]], dtype=object), "too large"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column is called 'a'"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "more than one column is called '1'"),
        (pa.table([[1], [2]], names=["a", "a"]), "more than one column is called 'a'"),
    ],
)
def test_what_is_no_table_is_refused(data, message):
    with pytest.raises(InputError, match=message):
        Profile.of(data)
