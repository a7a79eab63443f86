"""Variables and schemas."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from math import isnan
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.exceptions import FileFormatError, InputError, UnknownNameError
from jointwise.times import time_zone
from jointwise.variables import Kind, Schema, Variable, is_missing

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
        (
            {"name": "x", "kind": "categorical", "categories": (dt.date(2020, 1, 1),)},
            "Convert the column to text",
        ),
        ({"name": "x", "kind": "categorical", "categories": (float("nan"),)}, "finite number"),
        ({"name": "x", "kind": "categorical", "categories": (1, True)}, "equal categories"),
    ],
)
def test_impossible_variables_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        Variable(**fields)


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
