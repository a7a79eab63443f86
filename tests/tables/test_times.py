"""Times as days and back: the same to the bit within the calendar, cut to its ends beyond."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jointwise.tables.times import (
    END_DAY,
    FIRST_DAY,
    days_of_times,
    days_of_value,
    time_of_days,
    time_unit,
    time_zone,
    times_of_days,
    zoned_times,
)

PER_DAY = {"D": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001  # zones follow
ZONES = ("UTC", "Europe/Paris", "America/New_York", "Pacific/Kiritimati", "+05:30", "UTC-11:00")


def ends(unit):
    """Return the first and last count of a unit in years 1 to 9999, or in 64 bits."""
    first, last = FIRST_DAY * PER_DAY[unit], END_DAY * PER_DAY[unit] - 1
    return (-(2**63) + 1, 2**63 - 1) if unit == "ns" else (first, last)


@st.composite
def counts(draw):
    """Draw a unit and counts of it: at the ends, around 1970, in our time, and anywhere."""
    unit = draw(st.sampled_from(sorted(PER_DAY)))
    first, last = ends(unit)
    ours = 20_000 * PER_DAY[unit]
    some = st.sampled_from([first, first + 1, last - 1, last, 0, -1]) | st.integers(ours, ours + 10**6)
    return unit, draw(st.lists(some | st.integers(first, last), min_size=1, max_size=30))


@given(counts())
def test_days_of_times_are_the_nearest_floats_and_find_their_times_again(case):
    unit, numbers = case
    times = np.array(numbers, dtype=np.int64).astype(f"M8[{unit}]")
    days = days_of_times(times)
    # Python divides its integers with one rounding
    assert days.tolist() == [float(Fraction(number, PER_DAY[unit])) for number in numbers]
    again = times_of_days(days, unit, exact=tuple(days.tolist()))
    np.testing.assert_array_equal(days_of_times(again), days)
    if unit in {"D", "s", "ms"}:  # coarser than float64 days anywhere in the calendar
        np.testing.assert_array_equal(again, times)


@given(st.datetimes() | st.sampled_from([FIRST, LAST]), st.none() | st.sampled_from(ZONES))
@example(LAST, "America/New_York")
@example(LAST, "Pacific/Kiritimati")
@example(FIRST, "Pacific/Kiritimati")
def test_one_time_is_found_again_in_any_zone(moment, name):
    zone = None if name is None else time_zone(name)
    days = days_of_value(moment.replace(tzinfo=zone), zone)
    assert days_of_value(time_of_days(days, zone), zone) == days
    if zone is not None:
        (again,) = zoned_times(np.array([days]), zone)
        assert again.tzinfo is zone
        assert days_of_value(again, zone) == days
        # a moment that has a date in UTC but perhaps none in its zone
        days = days_of_value(moment.replace(tzinfo=dt.UTC), None)
        assert days_of_value(time_of_days(days, zone), zone) == days


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("days", [1e300, -1e300, FIRST_DAY - 0.5, END_DAY + 0.5])
def test_what_is_beyond_the_calendar_is_at_its_ends_in_the_zone(zone, days):
    (moment,) = zoned_times(np.array([days]), time_zone(zone))
    assert moment.year == (1 if days < 0 else 9999)
    assert str(moment.tzinfo).endswith(zone)
    (stamp,) = times_of_days(np.array([days]), "us", zoned=True)
    assert stamp.item().replace(tzinfo=dt.UTC).astimezone(time_zone(zone)).year == moment.year


def test_missing_and_infinite_days_have_no_time():
    days = np.array([np.nan, np.inf, -np.inf, 0.5])
    assert np.isnat(times_of_days(days, "us")).tolist() == [True, True, True, False]
    assert zoned_times(days, dt.UTC).tolist() == [None, None, None, dt.datetime(1970, 1, 1, 12, tzinfo=dt.UTC)]


def test_days_that_came_from_beyond_the_calendar_are_written_there():
    far = np.array(["12000-01-01", "-5000-01-01", "2024-01-01"], dtype="M8[s]")
    days = days_of_times(far)
    np.testing.assert_array_equal(times_of_days(days, "s", seen=(days.min(), days.max())), far)
    assert times_of_days(days, "s").astype("M8[Y]").astype(int).tolist() == [9999 - 1970, 1 - 1970, 2024 - 1970]
    # and never outside 64 bits
    assert times_of_days(np.array([1e300]), "us", seen=(0.0, 1e300)).astype(np.int64) == 2**63 - 1


def test_nanoseconds_are_noise_unless_they_are_exact():
    times = np.array(["2024-05-06T07:08:09.123456789"], dtype="M8[ns]")
    days = days_of_times(times)
    assert times_of_days(days, "ns").astype(np.int64) % 1000 == 0
    np.testing.assert_array_equal(days_of_times(times_of_days(days, "ns", exact=tuple(days))), days)


def test_one_value_and_an_array_agree_to_the_bit():
    stamp = pd.Timestamp("2024-05-06T07:08:09.123456789")
    (days,) = days_of_times(np.array([stamp.to_datetime64()]))
    assert days_of_value(stamp, None) == days_of_value(stamp.to_datetime64(), None) == days
    assert days_of_value(LAST, None) == days_of_times(np.array([LAST], dtype="M8[us]"))[0]


def test_units_of_numpy():
    units = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
    assert [time_unit(np.dtype(f"M8[{unit}]")) for unit in units] == [
        *"DDDD", "s", "s", "s", "ms", "us", "ns", "ns", "ns", "ns",
    ]  # fmt: skip
    assert time_unit(np.dtype("M8")) == "s"
