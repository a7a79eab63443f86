"""Reading columns: every type of every library, with and without missing values."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.tables.cases import COLUMNS, NOON, cells, profile_schema, table_of

from jointwise.exceptions import InputError
from jointwise.marginals import Profile
from jointwise.tables import decode, encode


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_objects_has_the_type_of_its_values(name):
    values, encoded, logical = COLUMNS[name]
    for missing in (None, float("nan"), pd.NA, pd.NaT):
        array = np.array([[*values, missing]], dtype=object).T
        schema = profile_schema(array)
        assert schema["x0"].dtype == logical
        np.testing.assert_allclose(encode(array, schema)[:, 0], [*encoded, np.nan], rtol=1e-15)
        assert decode(encode(array, schema), schema).shape == (4, 1)


def test_numpy_strings_with_missing_values():
    text = np.array([["b"], [None], ["a"]], dtype=np.dtypes.StringDType(na_object=None))
    np.testing.assert_array_equal(encode(text, profile_schema(text)), [[1.0], [np.nan], [0.0]])


PANDAS_TYPES = {
    "Int64": ([1, None, 3], "int64", [1, np.nan, 3]),
    "UInt8": ([1, None, 3], "int64", [1, np.nan, 3]),
    "Float64": ([1.5, None, 3], "float64", [1.5, np.nan, 3]),
    "float32": ([1.5, None, 3], "float64", [1.5, np.nan, 3]),
    "boolean": ([True, None, False], "bool", [1, np.nan, 0]),
    "string": (["b", None, "a"], "string", [1, np.nan, 0]),
    "object": (["b", None, "a"], "string", [1, np.nan, 0]),
    "int64[pyarrow]": ([1, None, 3], "int64", [1, np.nan, 3]),
    "string[pyarrow]": (["b", None, "a"], "string", [1, np.nan, 0]),
    "date32[day][pyarrow]": ([dt.date(1970, 1, 2), None, dt.date(1970, 1, 4)], "date", [1, np.nan, 3]),
    "datetime64[s]": (["1970-01-02", None, "1970-01-01T12"], "datetime[s]", [1, np.nan, 0.5]),
    "datetime64[ns]": (["1970-01-02", None, "1970-01-01T12"], "datetime[ns]", [1, np.nan, 0.5]),
    "datetime64[us, Europe/Paris]": (["1970-01-02", None, "1970-01-03"], "datetime[us,Europe/Paris]", None),
}


@pytest.mark.parametrize("dtype", PANDAS_TYPES)
def test_pandas_types(dtype):
    values, logical, encoded = PANDAS_TYPES[dtype]
    values = pd.to_datetime(values, format="ISO8601") if dtype.startswith("datetime") else values
    values = values.tz_localize("Europe/Paris") if "Paris" in dtype else values
    data = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    schema = profile_schema(data)
    assert schema["x"].dtype == logical
    expected = [1 - 1 / 24, np.nan, 2 - 1 / 24] if encoded is None else encoded
    np.testing.assert_allclose(encode(data, schema)[:, 0], expected)
    again = decode(encode(data, schema), schema)
    if dtype in {"Int64", "boolean"} or dtype.startswith("datetime64"):
        pd.testing.assert_frame_equal(again, data)
    np.testing.assert_array_equal(encode(again, schema), encode(data, schema))


@pytest.mark.parametrize("zone", ["America/New_York", "America/Argentina/Buenos_Aires", "+05:30", "Etc/GMT+5"])
def test_zones_of_pandas_with_any_name(zone):
    times = pd.Series(pd.to_datetime(["2024-05-06T07:08", None])).dt.tz_localize("UTC").dt.tz_convert(zone)
    data = pd.DataFrame({"t": times})
    schema = profile_schema(data)
    np.testing.assert_allclose(encode(data, schema)[:, 0], [19849 + (7 + 8 / 60) / 24, np.nan])
    pd.testing.assert_frame_equal(decode(encode(data, schema), schema), data)


def test_big_integers_with_missing_values():
    for data in (
        pd.DataFrame({"x": pd.array([2**52, None, -(2**52)], dtype="Int64")}),
        pl.DataFrame({"x": [2**52, None, -(2**52)]}),
        pa.table({"x": [2**52, None, -(2**52)]}),
    ):
        schema = profile_schema(data)
        matrix = encode(data, schema)
        np.testing.assert_array_equal(matrix[:, 0], [2.0**52, np.nan, -(2.0**52)])
        np.testing.assert_array_equal(encode(decode(matrix, schema), schema), matrix)
    huge = pa.table({"x": [2**62, None]})
    with pytest.raises(InputError, match=r"beyond 2\*\*52"):
        profile_schema(huge)
    assert Profile.of(huge).schema({"x": "continuous"})["x"].dtype == "float64"


def test_integers_that_float64_cannot_tell_apart_are_no_categories(container):
    profile = Profile.of(table_of(container, {"k": np.array([2**60, 2**60 + 1])}))
    with pytest.raises(InputError, match="too large to tell apart"):
        profile.schema({"k": "categorical"})


def categoricals():
    labels, declared = ["low", None, "high", "low"], ["low", "mid", "high"]
    yield "pandas", pd.DataFrame({"x": pd.Categorical(labels, declared, ordered=True)}), declared, True
    yield "pandas-plain", pd.DataFrame({"x": pd.Categorical(labels, declared)}), declared, False
    yield "pandas-int", pd.DataFrame({"x": pd.Categorical([5, None, 2, 5], [5, 2])}), [5, 2], False
    yield "pandas-bool", pd.DataFrame({"x": pd.Categorical([True, None, False, True])}), [False, True], False
    yield "polars-enum", pl.DataFrame({"x": pl.Series(labels, dtype=pl.Enum(declared))}), declared, True
    yield "polars", pl.DataFrame({"x": pl.Series(labels, dtype=pl.Categorical)}), ["high", "low"], False
    yield "arrow", pa.table({"x": pa.array(labels).dictionary_encode()}), ["high", "low"], False
    codes = pa.array([0, None, 2, 0], pa.int32())
    ordered = pa.DictionaryArray.from_arrays(codes, declared, ordered=True)
    yield "arrow-ordered", pa.table({"x": ordered}), declared, True


@pytest.mark.parametrize("case", list(categoricals()), ids=lambda case: case[0])
def test_categoricals(case):
    _, data, categories, ordered = case
    schema = profile_schema(data)
    assert schema["x"].categories == tuple(categories)
    assert schema["x"].ordered == ordered
    matrix = encode(data, schema)
    values = cells(data, "x")
    np.testing.assert_array_equal(
        matrix[:, 0], [np.nan if value is None else categories.index(value) for value in values]
    )
    again = decode(matrix, schema)
    assert cells(again, "x") == values
    if isinstance(data, pd.DataFrame):
        pd.testing.assert_frame_equal(again, data)
    elif isinstance(data, pl.DataFrame):
        assert again.schema == data.schema
    else:
        assert again.schema.field("x").type.ordered == ordered
    assert profile_schema(again) == schema


def test_polars_null_and_nan_are_both_missing():
    data = pl.DataFrame({"x": [1.5, None, float("nan")]})
    np.testing.assert_array_equal(encode(data, profile_schema(data)), [[1.5], [np.nan], [np.nan]])


def test_chunked_dictionaries_with_different_labels():
    chunks = [pa.array(["b", None]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]
    data = pa.table({"x": pa.chunked_array(chunks)})
    schema = profile_schema(data)
    np.testing.assert_array_equal(encode(data, schema)[:, 0], [1, np.nan, 0, 1])


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (pl.DataFrame({"a": [1], "odd": [[1, 2]]}), "odd"),
        (pl.DataFrame({"odd": [{"b": 1}]}), "odd"),
        (pl.DataFrame({"odd": [dt.timedelta(1)]}), "odd"),
        (pl.DataFrame({"odd": [dt.time(1)]}), "odd"),
        (pl.DataFrame({"odd": [b"1"]}), "odd"),
        (pd.DataFrame({"odd": [[1], [2]]}), "odd"),
        (pd.DataFrame({"odd": pd.interval_range(0, 2)}), "odd"),
        (pd.DataFrame({"odd": pd.cut([1.0, 2.0], 2)}), "odd"),
        (pa.table({"odd": [[1], [2]]}), "odd"),
        (np.array([[1], [{"foo": "bar"}]], dtype=object), "x0"),
        (np.array([[np.timedelta64(1, "s")]]), "x0"),
        ([[b"a"], [b"b"]], "x0"),
    ],
)
def test_unsupported_types_name_the_column(data, name):
    with pytest.raises(InputError, match=f"Column '{name}'") as caught:
        Profile.of(data)
    assert isinstance(caught.value, TypeError)


def test_mixed_time_zones_are_refused():
    moments = [NOON, NOON.replace(tzinfo=dt.UTC)]
    with pytest.raises(InputError, match="mixes time zones"):
        Profile.of(np.array([moments], dtype=object).T)
