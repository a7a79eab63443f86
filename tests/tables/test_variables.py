"""Variables and schemas."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from math import isnan
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.exceptions import FileFormatError, InputError, UnknownNameError
from jointwise.marginals import Profile
from jointwise.tables import decode, encode
from jointwise.tables.dtypes import DTYPES, is_missing, is_temporal
from jointwise.tables.times import time_zone
from jointwise.tables.variables import CONTAINERS, Kind, Schema, Variable

SIZE = Variable("size", "categorical", categories=("S", "M", "L"), ordered=True, dtype="string")
FLAG = Variable("flag", "categorical", categories=(False, True), dtype="bool")
DAY = Variable("day", "continuous", observed=(0.0, 9.0), dtype="date")
MOMENT = Variable("moment", "continuous", dtype="datetime[us]")
PARIS = Variable("paris", "continuous", dtype="datetime[us,Europe/Paris]")
COUNT = Variable("count", "integer", observed=(0.0, 5.0), dtype="int64")
PAY = Variable("pay", "continuous", spikes=(0.0,), observed=(0.0, 3.5))
ALL = (SIZE, FLAG, DAY, MOMENT, PARIS, COUNT, PAY)


@pytest.mark.parametrize(
    "missing", [None, float("nan"), np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]
)
def test_missing_values_become_nan_and_none(missing):
    assert is_missing(missing)
    for variable in ALL:
        assert isnan(variable.encode_value(missing))
        assert variable.decode_value(float("nan")) is None


@pytest.mark.parametrize("value", ["", "nan", 0, False, 0.0, np.datetime64("2020-01-01")])
def test_present_values_are_not_missing(value):
    assert not is_missing(value)


def test_categories_go_by_code():
    assert [SIZE.encode_value(c) for c in ("S", "M", "L", np.str_("L"))] == [0, 1, 2, 2]
    assert [FLAG.encode_value(c) for c in (False, True, np.True_)] == [0, 1, 1]
    assert [SIZE.decode_value(code) for code in (0.0, 1.0, 2.0)] == ["S", "M", "L"]


@pytest.mark.parametrize("value", ["XL", 1, ["S"]])
def test_unknown_category_lists_the_known(value):
    with pytest.raises(UnknownNameError, match=r"size.*'S', 'M', 'L'"):
        SIZE.encode_value(value)


def test_thousand_categories_are_not_all_listed():
    wide = Variable("id", "categorical", categories=tuple(f"c{i}" for i in range(1000)))
    with pytest.raises(UnknownNameError) as caught:
        wide.encode_value("q")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("code", [-1.0, 3.0])
def test_code_outside_is_refused(code):
    with pytest.raises(InputError, match="codes 0 to 2"):
        SIZE.decode_value(code)


@pytest.mark.parametrize(
    "value",
    [
        "2024-05-31",
        dt.date(2024, 5, 31),
        dt.datetime(2024, 5, 31),  # noqa: DTZ001  # without a zone on purpose
        np.datetime64("2024-05-31"),
        np.datetime64("2024-05-31T00:00:00", "ns"),
        pd.Timestamp("2024-05-31"),
    ],
)
@pytest.mark.parametrize("variable", [DAY, MOMENT], ids=lambda v: v.name)
def test_dates_are_days_since_1970(value, variable):
    assert variable.encode_value(value) == (dt.date(2024, 5, 31) - dt.date(1970, 1, 1)).days


def test_times_without_zone_are_in_the_variables_zone():
    aware = dt.datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Paris"))
    assert PARIS.encode_value("2024-07-01T12:00:00") == PARIS.encode_value(aware)
    assert PARIS.encode_value(aware) == MOMENT.encode_value("2024-07-01T10:00:00")
    assert PARIS.decode_value(PARIS.encode_value(aware)) == aware


@given(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)))  # noqa: DTZ001
@settings(deadline=None, max_examples=60)
def test_moments_round_trip_to_the_microsecond(moment):
    assert abs(MOMENT.decode_value(MOMENT.encode_value(moment)) - moment) <= dt.timedelta(microseconds=4)


@given(st.dates())
@settings(deadline=None, max_examples=60)
def test_dates_round_trip(date):
    assert DAY.decode_value(DAY.encode_value(date)) == date


@pytest.mark.parametrize("value", [3, "yesterday", dt.time(1), ["2020-01-01"]])
def test_what_is_not_a_date_is_refused(value):
    with pytest.raises(InputError, match=r"'day' takes dates"):
        DAY.encode_value(value)


@pytest.mark.parametrize("value", [2, 2.0, np.int8(2), np.float32(2), Decimal(2)])
def test_numbers(value):
    assert COUNT.encode_value(value) == 2.0
    assert PAY.encode_value(value) == 2.0


@pytest.mark.parametrize("value", ["2", b"2", dt.date(2020, 1, 1), [2], 2j, np.datetime64("2020-01-01")])
def test_what_is_not_a_number_is_refused(value):
    with pytest.raises(InputError, match="'pay' takes numbers"):
        PAY.encode_value(value)


def test_native_types_come_back():
    assert type(COUNT.decode_value(3.0)) is int
    assert type(PAY.decode_value(3.0)) is float
    assert COUNT.decode_value(float(2**52)) == 2**52


def test_time_zones():
    assert time_zone("+02:00").utcoffset(None) == dt.timedelta(hours=2)
    assert time_zone("UTC-03:30").utcoffset(None) == -dt.timedelta(hours=3, minutes=30)
    with pytest.raises(InputError, match="Unknown time zone 'Nowhere'"):
        time_zone("Nowhere")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": 3, "kind": "continuous"}, "name must be a string"),
        ({"name": "x", "kind": "odd"}, "`kind` must be one of"),
        ({"name": "x", "kind": "continuous", "dtype": "complex"}, "`dtype` must be one of"),
        ({"name": "x", "kind": "categorical"}, "needs its categories"),
        ({"name": "x", "kind": "integer", "categories": (1,)}, "takes no categories"),
        ({"name": "x", "kind": "categorical", "categories": ("a",), "spikes": (1.0,)}, "only a number can have spikes"),
        ({"name": "x", "kind": "continuous", "support": (1.0, 1.0)}, "low < high"),
        (
            {"name": "x", "kind": "continuous", "support": (1.0, 5.0), "observed": (0.0, 2.0)},
            "must hold the values seen",
        ),
        ({"name": "x", "kind": "continuous", "step": -1.0}, "`step` must be zero or"),
        ({"name": "x", "kind": "integer", "step": 2.0}, "its step is one"),
        ({"name": "x", "kind": "categorical", "categories": ("a",), "step": 2.0}, "only a number can have a support"),
        ({"name": "x", "kind": "categorical", "categories": (dt.date(2020, 1, 1),)}, "Convert the column to text"),
        ({"name": "x", "kind": "categorical", "categories": (float("nan"),)}, "finite number"),
        ({"name": "x", "kind": "categorical", "categories": (1, True)}, "equal categories"),
    ],
)
def test_impossible_variables_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        Variable(**fields)


LABELS = [("a", "b"), (False, True), (True,), (1, 5), (1.5, 2.0), (1, 2.5), ("a", 1), (True, "a"), (False, 3),
          (2**63, 1), (1e300,), ("",), ("\ud800", "b")]  # fmt: skip
LOGICAL = [*DTYPES, *(f"datetime[{kind}]" for kind in ("s", "ns", "ns,UTC", "us,Europe/Paris", "ms,+02:00"))]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", LOGICAL)
@pytest.mark.parametrize("kind", Kind)
def test_what_a_schema_accepts_can_be_written(kind, dtype, container):
    """Any kind, type, categories and container are refused, or written as a frame with and without missing values."""
    for categories in LABELS if kind is Kind.CATEGORICAL else [None]:
        if container == "pandas" and categories == ("\ud800", "b"):
            continue  # whether pandas accepts half a surrogate depends on its text type
        try:
            variable = Variable("v", kind, categories=categories, dtype=dtype)
            schema = Schema((variable, Variable("w", "continuous")), container)
        except InputError:
            continue
        assert (categories is None) or not is_temporal(dtype)
        for first in ([0.0, 0.0], [0.0, np.nan]):
            rows = np.array([first, [0.0, 1.0]]).T
            frame = decode(rows, schema)
            if container not in {"numpy", "dict"}:  # these have no time zones
                np.testing.assert_array_equal(encode(frame, schema), rows)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "categorical", "categories": ("a",), "dtype": "date"}, "'date' holds no categories"),
        ({"kind": "categorical", "categories": ("a",), "dtype": "datetime[s]"}, "holds no categories"),
        ({"kind": "categorical", "categories": ("a",), "dtype": "int64"}, "'int64' holds integers of 64 bits; .* 'a'"),
        ({"kind": "categorical", "categories": (2**63,), "dtype": "int64"}, "holds integers of 64 bits"),
        ({"kind": "categorical", "categories": (True,), "dtype": "int64"}, "holds integers of 64 bits"),
        ({"kind": "categorical", "categories": (1, "a"), "dtype": "bool"}, "holds booleans"),
        ({"kind": "categorical", "categories": (0, 1), "dtype": "bool"}, "holds booleans"),
        ({"kind": "categorical", "categories": ("a", 1), "dtype": "string"}, "'string' holds text"),
        ({"kind": "categorical", "categories": (1,), "dtype": "enum"}, "'enum' holds text"),
        ({"kind": "integer", "dtype": "string"}, "'x' is integer: its `dtype` must be one of 'int64', 'float64' or"),
        ({"kind": "integer", "dtype": "bool"}, "its `dtype` must be one of"),
        ({"kind": "continuous", "dtype": "enum"}, "its `dtype` must be one of 'float64' or that of dates"),
        ({"kind": "continuous", "dtype": "categorical"}, "its `dtype` must be one of"),
        ({"kind": "continuous", "dtype": "int64"}, "its `dtype` must be one of"),
        ({"kind": "continuous", "spikes": (float("inf"),)}, "spikes must be finite"),
        ({"kind": "continuous", "dtype": "datetime[us,+24:00]"}, "less than a day away from UTC"),
    ],
)
def test_types_that_cannot_hold_the_values_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        Variable("x", **fields)


@pytest.mark.parametrize(
    ("variable", "container", "message"),
    [
        (Variable("x", "categorical", categories=(1, 2), dtype="categorical"), "polars", "not text, which polars"),
        (Variable("x", "categorical", categories=(1, "a"), dtype="categorical"), "pyarrow", "different types, which"),
        (Variable("x", "continuous", dtype="datetime[us,+02:00]"), "polars", "an offset, which polars"),
        (Variable("\ud800", "continuous"), "polars", "not valid Unicode, which polars"),
        (Variable("x", "categorical", categories=("\ud800",), dtype="string"), "pyarrow", "Unicode, which pyarrow"),
    ],
)
def test_frames_that_cannot_hold_a_variable_are_refused(variable, container, message):
    assert Schema((variable,), "dict")[variable.name] == variable
    with pytest.raises(InputError, match=message):
        Schema((variable,), container)


@pytest.mark.parametrize(
    ("categories", "dtype"),
    [
        (("a", "b"), "string"),
        ((False, True), "bool"),
        (("a", 1), "categorical"),
        ((1, 2), "float64"),
        ((1.5,), "float64"),
    ],
)
def test_the_type_of_categories_that_are_not_numbers_is_found(categories, dtype):
    assert Variable("x", "categorical", categories=categories).dtype == dtype


DAYS = np.array(["2024-01-01", "2024-03-05", "2024-01-01"], "M8[D]")
COLUMNS = {
    "integers": [3, 1, 3],
    "small": np.array([3, 1, 3], np.uint8),
    "reals": [0.5, 2.0, 0.5],
    "gaps": [1.0, None, 3.0],
    "whole": [1.0, 2.0, 2.0],
    "flags": [True, False, True],
    "text": ["b", "a", "b"],
    "days": DAYS,
    "moments": DAYS.astype("M8[us]") + np.timedelta64(1, "h"),
}


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def frames():
    moments = pd.Series(COLUMNS["moments"]).dt.tz_localize("Europe/Paris")
    yield "dict", COLUMNS
    yield (
        "pandas",
        pd.DataFrame(
            {**COLUMNS, "zoned": moments}
            | {name: pd.Categorical(COLUMNS[key]) for name, key in [("c", "text"), ("n", "integers"), ("f", "flags")]}
            | {"r": pd.Categorical(COLUMNS["reals"], ordered=True), "m": pd.Categorical(["a", 1, "a"])}
            | {"I": pd.array([1, None, 2], "Int64"), "B": pd.array([True, None, True], "boolean")}
        ),
    )
    yield (
        "polars",
        pl.DataFrame(COLUMNS).with_columns(
            pl.col("text").cast(pl.Categorical).alias("c"),
            pl.col("text").cast(pl.Enum(["b", "a"])).alias("e"),
            pl.col("moments").dt.replace_time_zone("Europe/Paris").alias("zoned"),
        ),
    )
    yield (
        "pyarrow",
        pa.table(
            {name: pa.array(values) for name, values in COLUMNS.items()}
            | {key: pa.array(COLUMNS[name]).dictionary_encode() for key, name in [("c", "text"), ("n", "integers")]}
        ),
    )


@pytest.mark.parametrize("kind", [None, *Kind, "ordinal"])
@pytest.mark.parametrize(("container", "frame"), list(frames()), ids=[name for name, _ in frames()])
def test_every_variable_of_a_table_is_accepted_and_written(container, frame, kind):
    """A column of any type gives a variable of any kind it can be, and its rows are decoded as they were."""
    accepted = 0
    for name in frame.column_names if container == "pyarrow" else list(getattr(frame, "columns", frame)):
        part = {name: frame[name]} if container == "dict" else FRAMES[container]({name: frame[name]})
        try:
            schema = Profile.of(part).schema(None if kind is None else {name: kind})
        except InputError as error:
            assert re.search("cannot be|convert", str(error))  # noqa: PT017
            continue
        accepted += 1
        rows = encode(part, schema)
        np.testing.assert_array_equal(encode(decode(rows, schema), schema), rows)
        assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert accepted >= (len(COLUMNS) if kind is None else 3)


def test_messages_stay_short_with_long_names_and_categories():
    long = "n" * 1_000_000
    wide = Variable(long, "categorical", categories=(long, long + "x"), dtype="string")
    for wrong in (
        lambda: wide.encode_value(long + "y"),
        lambda: wide.decode_value(7.0),
        lambda: Variable(long, "continuous", dtype=long),
        lambda: Variable(long, "continuous", dtype=f"datetime[us,{long}]"),
        lambda: Variable(long, "continuous").encode_value(long),
        lambda: Variable(long, "continuous", dtype="date").encode_value(long),
        lambda: Variable(long, "categorical", categories=(long, long)),
        lambda: Schema((wide, wide)),
        lambda: Schema((wide,)).index(long + "z"),
        lambda: Variable.from_dict(wide.to_dict() | {"kind": long}),
        lambda: Variable.from_dict(wide.to_dict() | {"spikes": [long]}),
    ):
        with pytest.raises((InputError, UnknownNameError, FileFormatError)) as caught:
            wrong()
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("variable", ALL, ids=lambda v: v.name)
def test_variables_survive_json(variable):
    assert Variable.from_dict(json.loads(json.dumps(variable.to_dict()))) == variable


def test_schema():
    schema = Schema(ALL, "pandas")
    assert schema.names == tuple(v.name for v in ALL)
    assert schema.index("pay") == 6
    assert schema["day"] is DAY
    assert len(schema) == 7
    assert list(schema) == list(ALL)
    assert schema.select(["pay", "size"]) == Schema((PAY, SIZE), "pandas")
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert PAY.kind is Kind.CONTINUOUS
    with pytest.raises(UnknownNameError, match=r"did you mean 'size'\?"):
        schema.index("sise")


def test_schema_refuses_equal_names_and_odd_containers():
    with pytest.raises(InputError, match="more than one is called 'pay'"):
        Schema((PAY, COUNT, PAY))
    with pytest.raises(InputError, match="`container` must be one of"):
        Schema((PAY,), "spark")


@pytest.mark.parametrize("damage", [{"kind": "odd"}, {"observed": [1]}, {"spikes": ["a"]}, {"categories": 3}])
def test_damaged_variables_are_refused(damage):
    with pytest.raises(FileFormatError, match="Not a variable"):
        Variable.from_dict(PAY.to_dict() | damage)


def test_damaged_schemas_are_refused():
    with pytest.raises(FileFormatError, match="Not a schema"):
        Schema.from_dict({"variables": [PAY.to_dict()]})
    with pytest.raises(FileFormatError, match="Not a schema"):
        Schema.from_dict({"variables": [PAY.to_dict()] * 2, "container": "numpy"})
    with pytest.raises(FileFormatError, match="Not a variable"):
        Schema.from_dict({"variables": [{}], "container": "numpy"})


@pytest.mark.parametrize("zone", ["Europe", "Atlantis/Centre", "../../etc"])
def test_a_time_zone_that_does_not_exist_is_refused(zone):
    with pytest.raises(InputError, match="Unknown time zone"):
        Variable("t", "continuous", dtype=f"datetime[us,{zone}]")


@pytest.mark.parametrize("dtype", ["date", "datetime[us]", "datetime[ns,UTC]"])
def test_days_beyond_the_calendar_stay_dates(dtype):
    when = Variable("t", "continuous", dtype=dtype)
    assert when.decode_value(float("inf")) is None
    assert when.decode_value(1e12).year == 9999
    assert when.decode_value(-1e12).year == 1
