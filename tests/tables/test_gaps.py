"""Variables that tell the gaps of a column: read from it, and left out when written."""

import numpy as np
import pytest
from tests.tables.cases import table_of

from jointwise.exceptions import FileFormatError, InputError, UnknownNameError
from jointwise.tables import decode, encode, read_table
from jointwise.tables.gaps import emptied, with_gap_columns, with_gap_variables, with_partners
from jointwise.tables.variables import Schema, Variable


@pytest.fixture
def schema(container):
    job = Variable("job", "categorical", categories=("cook", "nurse"), dtype="string")
    plain = Schema((Variable("pay", "continuous"), job), container)
    return with_gap_variables(plain, ["pay", "job"])


def test_gaps_are_read_from_their_columns_in_each_container(container, schema):
    data = table_of(container, {"pay": [1.5, None, 2.5], "job": ["nurse", "cook", None]})
    matrix = encode(data, schema)
    assert schema.names == ("pay", "pay missing", "job", "job missing")
    np.testing.assert_array_equal(matrix, [[1.5, 0, 1, 0], [np.nan, 1, 0, 0], [2.5, 0, np.nan, 1]])
    again = decode(matrix, schema)
    assert type(again) is type(data)
    assert read_table(again).names == (("x0", "x1") if container == "numpy" else ("pay", "job"))
    np.testing.assert_array_equal(encode(again, schema), matrix)


def test_an_absent_column_leaves_its_gaps_unknown():
    schema = with_gap_variables(Schema((Variable("a", "continuous"), Variable("b", "continuous")), "dict"), ["a"])
    np.testing.assert_array_equal(encode({"b": [1.0]}, schema, absent="missing"), [[np.nan, np.nan, 1.0]])
    told = encode({"b": [1.0], "a missing": [True]}, schema, absent="missing")
    np.testing.assert_array_equal(told, [[np.nan, 1.0, 1.0]])
    with pytest.raises(UnknownNameError, match=r"lacks columns 'a'; it has 'b'"):
        encode({"b": [1.0]}, schema)


def test_the_column_itself_is_believed_before_a_column_with_the_name_of_its_gaps():
    schema = with_gap_variables(Schema((Variable("a", "continuous"),), "dict"), ["a"])
    np.testing.assert_array_equal(encode({"a": [1.0], "a missing": [True]}, schema), [[1.0, 0.0]])


def test_gaps_alone_are_a_column_or_read_from_theirs():
    schema = with_gap_variables(Schema((Variable("a", "continuous"),), "dict"), ["a"]).select(["a missing"])
    assert schema.columns == ("a missing",)
    assert not schema.gaps
    np.testing.assert_array_equal(encode({"a": [1.0, None]}, schema), [[0.0], [1.0]])
    np.testing.assert_array_equal(encode({"a missing": [False, True]}, schema), [[0.0], [1.0]])
    np.testing.assert_array_equal(decode(np.array([[0.0], [1.0]]), schema)["a missing"], [False, True])


def test_an_unknown_category_is_there():
    schema = with_gap_variables(Schema((Variable("s", "categorical", categories=("F", "M")),), "dict"), ["s"])
    with pytest.warns(UserWarning, match="treated as missing"):
        matrix = encode({"s": ["X", None]}, schema, unseen="missing")
    np.testing.assert_array_equal(matrix, [[np.nan, 0.0], [np.nan, 1.0]])


def test_a_taken_name_is_avoided():
    schema = Schema((Variable("a", "continuous"), Variable("a missing", "continuous")))
    assert with_gap_variables(schema, ["a"]).names == ("a", "a missing_", "a missing")


def test_an_array_needs_a_column_for_each_variable_but_gaps():
    schema = with_gap_variables(Schema((Variable("x0", "continuous"), Variable("x1", "continuous"))), ["x0"])
    assert encode(np.array([[np.nan, 1.0]]), schema).tolist()[0][1:] == [1.0, 1.0]
    with pytest.raises(InputError, match="X has 1 features, but 2 features are expected"):
        encode(np.ones((3, 1)), schema)
    # a wider array is read by names
    np.testing.assert_array_equal(encode(np.ones((1, 4)), schema), [[1.0, 0.0, 1.0]])


def test_tables_without_gap_variables_stay_as_they_are():
    schema, table = Schema((Variable("a", "continuous"),), "dict"), read_table({"a": [1.0]})
    assert with_gap_columns(table, schema) is table
    rows = np.ones((2, 1))
    assert emptied(rows, schema) is rows
    assert with_partners([0], schema) == [0]


def test_a_schema_with_gaps_is_written_and_read():
    schema = with_gap_variables(Schema((Variable("a", "continuous"),), "dict"), ["a"])
    assert Schema.from_dict(schema.to_dict()) == schema
    assert "gap_of" not in schema["a"].to_dict()  # files of models without gaps stay as they were
    assert schema["a missing"].to_dict()["gap_of"] == "a"


@pytest.mark.parametrize("wrong", [3, "a missing", ["a"]])
def test_hostile_owners_of_gaps_are_refused(wrong):
    fields = with_gap_variables(Schema((Variable("a", "continuous"),)), ["a"])["a missing"].to_dict()
    with pytest.raises(FileFormatError, match="gap_of"):
        Variable.from_dict(fields | {"gap_of": wrong})


def test_gap_variables_are_checked():
    with pytest.raises(InputError, match="must be the booleans"):
        Variable("g", "categorical", categories=("no", "yes"), gap_of="a")
    gap = {"categories": (False, True), "dtype": "bool", "gap_of": "a"}
    with pytest.raises(InputError, match="One variable at most may tell the gaps of a column; two tell those of 'a'"):
        Schema((Variable("g", "categorical", **gap), Variable("h", "categorical", **gap)))
