"""Writing frames: frame type and column types are those of the table."""

from __future__ import annotations

import datetime as dt
import sys
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.tables.cases import COLUMNS, MIDNIGHT, NOON, cells, profile_schema, table_of

from jointwise.exceptions import MissingDependencyError
from jointwise.tables import decode, encode
from jointwise.tables.variables import Schema, Variable


@pytest.mark.parametrize("name", COLUMNS)
def test_native_types_are_kept(container, name):
    data = table_of(container, {name: COLUMNS[name][0]})
    again = decode(encode(data, profile_schema(data)), profile_schema(data))
    if container == "pandas":
        pd.testing.assert_frame_equal(again, data)
    elif container in {"polars", "pyarrow"}:
        assert again.schema == data.schema


@pytest.mark.parametrize(
    ("array", "logical"),
    [
        (np.array([[1.5, 2.0], [np.nan, 3.0]]), "float64"),
        (np.array([[1.5, 2.0], [2.5, 3.0]], dtype=np.float32), "float64"),
        (np.array([[1, 2], [3, 4]]), "int64"),
        (np.array([[1, 2], [3, 4]], dtype=np.uint8), "int64"),
        (np.array([[True, False], [False, False]]), "bool"),
        (np.array([["a", "b"], ["b", "c"]]), "string"),
        (np.array([["2020-01-01", "2021-01-01"], ["2020-01-02", "NaT"]], dtype="M8[D]"), "date"),
        (np.array([["2020-01-01T01", "2021-01-01"], ["2020-01-02", "NaT"]], dtype="M8[ns]"), "datetime[ns]"),
        (np.array([["2020-01-01T01", "2021-01-01"], ["2020-01-02", "NaT"]], dtype="M8[h]"), "datetime[s]"),
    ],
    ids=lambda value: getattr(value, "dtype", value),
)
def test_arrays_come_back_as_arrays(array, logical):
    schema = profile_schema(array)
    assert schema.names == ("x0", "x1")
    assert {variable.dtype for variable in schema} == {logical}
    again = decode(encode(array, schema), schema)
    assert isinstance(again, np.ndarray)
    if array.dtype.kind in "fM":
        np.testing.assert_array_equal(again.astype(array.dtype), array)
    else:
        assert again.tolist() == array.tolist()


def test_an_array_of_mixed_columns_comes_back_as_objects():
    array = np.array([[1, "a", 0.5], [2, None, 1.5]], dtype=object)
    schema = profile_schema(array)
    assert [variable.dtype for variable in schema] == ["int64", "string", "float64"]
    again = decode(encode(array, schema), schema)
    assert again.dtype == object
    assert again.tolist() == array.tolist()


def test_integers_beside_integers_with_missing_values():
    schema = Schema((Variable("x0", "integer", dtype="int64"), Variable("x1", "integer", dtype="int64")))
    assert decode(np.array([[1.0, 2.0]]), schema).dtype == np.int64
    assert decode(np.array([[1.0, np.nan]]), schema).dtype == np.float64


@pytest.mark.parametrize("gap", [False, True], ids=["full", "gaps"])
def test_integers_beyond_64_bits_do_not_wrap(container, gap):
    schema = Schema((Variable("k", "integer", dtype="int64"),), container)
    numbers = np.array([[1e300], [-1e300], [2.0**63], [7.0], *([[np.nan]] if gap else [])])
    found = [None if cell is None else int(cell) for cell in cells(decode(numbers, schema), "k")]
    assert found == [2**53, -(2**53), 2**53, 7, *([None] if gap else [])]
    assert Variable("k", "integer", dtype="int64").decode_value(1e300) == 2**53


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_zoned_times(container):
    zone = "Europe/Paris"
    frame = pl.DataFrame({"t": [NOON, None]}).with_columns(
        pl.col("t").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    )
    data = {"polars": lambda: frame, "pyarrow": frame.to_arrow, "pandas": frame.to_pandas}[container]()
    schema = profile_schema(data)
    assert schema["t"].dtype == f"datetime[us,{zone}]"
    again = decode(encode(data, schema), schema)
    assert cells(again, "t")[0] == NOON.replace(tzinfo=dt.UTC)
    assert cells(again, "t")[1] is None
    if container == "pyarrow":
        assert again.schema == data.schema
    else:
        assert again["t"].dtype == data["t"].dtype


def test_times_of_a_mapping_keep_their_zone():
    paris = ZoneInfo("Europe/Paris")
    moments = [NOON.replace(tzinfo=paris), None, MIDNIGHT.replace(tzinfo=paris)]
    for data in ({"t": moments}, {"t": np.array(moments, dtype=object)}, np.array([moments], dtype=object).T):
        schema = profile_schema(data)
        again = decode(encode(data, schema), schema)
        column = again["t"] if isinstance(data, dict) else again[:, 0]
        assert column.dtype == object
        assert column.tolist() == moments
        assert {str(moment.tzinfo) for moment in column if moment} == {"Europe/Paris"}
        np.testing.assert_array_equal(encode(again, schema), encode(data, schema))


def test_nanoseconds_among_objects_stay_times():
    stamps = np.array(["2024-05-06T07:08:09.123456789", "2262-04-11T23:47:16.854775807", "NaT"], dtype="M8[ns]")
    for moments in (list(stamps), [pd.Timestamp(stamp) for stamp in stamps]):
        data = np.array([moments, ["a", "b", "c"]], dtype=object).T
        schema = profile_schema(data)
        assert schema["x0"].dtype == "datetime[ns]"
        again = decode(encode(data, schema), schema)
        assert [type(cell) for cell in again[:, 0]] == [np.datetime64] * 3
        np.testing.assert_allclose(encode(again, schema), encode(data, schema), rtol=1e-15)


def test_nanoseconds_in_a_zone_among_objects_end_at_microseconds():
    stamp = pd.Timestamp("2024-05-06T07:08:09.123456789", tz="Europe/Paris")
    data = {"t": [stamp, stamp]}
    schema = profile_schema(data)
    again = decode(encode(data, schema), schema)
    assert again["t"][0] == stamp.replace(nanosecond=0)
    np.testing.assert_array_equal(encode(again, schema), encode(data, schema))


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow", "numpy"])
@pytest.mark.parametrize("dtype", ["date", "datetime[us]", "datetime[ns]"])
def test_days_beyond_the_calendar_become_dates_or_missing(container, dtype):
    schema = Schema((Variable("t", "continuous", dtype=dtype),), container)
    days = np.array([[1e12], [-1e12], [0.0], [np.inf], [np.nan]])
    again = encode(decode(days, schema), schema)[:, 0]
    assert again[0] > 1e5
    assert again[1] < -1e5
    assert again[2] == 0
    assert np.isnan(again[3:]).all()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_missing_library_is_named_with_its_install_command(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=f"pip install {library}"):
        decode(np.zeros((1, 1)), Schema((Variable("x", "continuous"),), library))
