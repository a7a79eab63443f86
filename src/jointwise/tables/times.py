"""Times: dates and times as days since 1970-01-01 in float64, and back.

Both directions go through whole counts of a unit. A time that is read, written and read again therefore has the same
number of days to the last bit, and a value that repeats is recognised.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from jointwise._checks import shown
from jointwise.exceptions import InputError

if TYPE_CHECKING:
    from jointwise._typing import AnyArray, FloatArray, IntArray

# 0001-01-01 and the day after 9999-12-31: the calendar of Python and of most tools that show dates.
FIRST_DAY, END_DAY = -719_162, 2_932_897
_PER_DAY = {"D": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
OFFSET = re.compile(r"(?:UTC)?([+-])(\d\d):?(\d\d)")  # a time zone without a name
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_NOT_A_TIME = -(2**63)
_EXACT = 2**53  # float64 holds every integer up to here


def time_zone(name: str) -> dt.tzinfo:
    """Return the time zone of a name such as "Europe/Paris" or a fixed offset such as "+02:00"."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones, such as "Europe", is an OSError
        offset = OFFSET.fullmatch(name)
        if offset is None:
            raise InputError(f"Unknown time zone {shown(name)}.") from None
        sign = -1 if offset[1] == "-" else 1
        away = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        if away >= dt.timedelta(days=1):
            raise InputError(f"A time zone is less than a day away from UTC; got {shown(name)}.") from None
        return dt.timezone(sign * away)


# ---- one value -------------------------------------------------------------------------------------------


def days_of_value(value: object, zone: dt.tzinfo | None) -> float:
    """Return days since 1970-01-01 UTC; a time without a zone is taken to be in ``zone``, else in UTC.

    >>> days_of_value("1970-01-02T12:00", None)
    1.5
    """
    if isinstance(value, np.datetime64):
        return float(days_of_times(np.array([value]))[0])
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if not isinstance(value, dt.date):
        raise TypeError
    nanoseconds = getattr(value, "nanosecond", 0)  # pandas' timestamps have them
    day = dt.date(value.year, value.month, value.day)
    value = dt.datetime.combine(day, value.timetz() if isinstance(value, dt.datetime) else dt.time())
    if value.tzinfo is None:
        value = value.replace(tzinfo=zone or dt.UTC)
    return float(((value - _EPOCH) // _MICROSECOND * 1000 + nanoseconds) / _PER_DAY["ns"])


def date_of_days(days: float) -> dt.date:
    """Return the nearest day of the calendar.

    >>> date_of_days(10.2), date_of_days(1e300)
    (datetime.date(1970, 1, 11), datetime.date(9999, 12, 31))
    """
    return dt.date.fromordinal(round(min(max(days, FIRST_DAY), END_DAY - 1)) + _EPOCH.toordinal())


def time_of_days(days: float, zone: dt.tzinfo | None = None) -> dt.datetime:
    """Return the nearest time of the calendar, to the microsecond.

    Near the ends of the calendar a moment may have a date in UTC but not in its zone, or the reverse. It is then
    written in the one where it has a date.

    >>> time_of_days(0.25), time_of_days(1e300)
    (datetime.datetime(1970, 1, 1, 6, 0), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999))
    """
    count = _count(days, _PER_DAY["us"])
    if zone is None:
        return _without_zone(count)
    if not FIRST_DAY <= days <= END_DAY:  # the last microsecond of the calendar is `END_DAY` in float64
        offset = _edge(days, zone).utcoffset() or dt.timedelta()
        return _without_zone(count + offset // _MICROSECOND).replace(tzinfo=zone)
    moment = _without_zone(count).replace(tzinfo=dt.UTC)
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def _edge(days: float, zone: dt.tzinfo) -> dt.datetime:
    """Return the first or the last time of a zone, whichever is nearer."""
    return dt.datetime.min.replace(tzinfo=zone) if days < 0 else dt.datetime.max.replace(tzinfo=zone)


def _without_zone(count: int) -> dt.datetime:
    first, last = _calendar("us")
    return _EPOCH.replace(tzinfo=None) + min(max(count, first), last) * _MICROSECOND


def _count(days: float, per_day: int) -> int:
    """Return the number of units in a number of days, which may lie far beyond any calendar."""
    days = min(max(days, -1e19), 1e19)
    whole = int(days)
    return whole * per_day + round((days - whole) * per_day)


# ---- arrays ----------------------------------------------------------------------------------------------


def time_unit(dtype: np.dtype[Any]) -> str:
    """Return the unit (D, s, ms, us or ns) in which times of a datetime64 type are kept.

    >>> [time_unit(np.dtype(name)) for name in ("M8[M]", "M8[h]", "M8[us]", "M8[ps]")]
    ['D', 's', 'us', 'ns']
    """
    unit = np.datetime_data(dtype)[0]
    if unit in {"D", "W", "M", "Y"}:
        return "D"
    return unit if unit in _PER_DAY else "s" if unit in {"h", "m", "generic"} else "ns"


def days_of_times(times: AnyArray) -> FloatArray:
    """Return an array of datetime64 as days since 1970-01-01, NaN for NaT; each is the nearest float64.

    >>> days_of_times(np.array(["1970-01-02T12", "NaT"], dtype="M8[s]"))
    array([1.5, nan])
    """
    unit = time_unit(times.dtype)
    counts = times.astype(f"M8[{unit}]").astype(np.int64)
    days = _quotients(counts, _PER_DAY[unit])
    days[counts == _NOT_A_TIME] = np.nan
    return days


def _quotients(counts: IntArray, per_day: int) -> FloatArray:
    """Divide with a single rounding: a large count that became a float first would be rounded twice."""
    days: FloatArray = counts / per_day
    large = np.flatnonzero(np.abs(counts) >= _EXACT) if per_day > 1 else np.empty(0, dtype=np.intp)
    if large.size:
        whole, rest = np.divmod(counts[large], per_day)
        share = rest / per_day
        # if the floats below and above the share give the same sum, so does everything between them
        below, above = whole + np.nextafter(share, -1.0), whole + np.nextafter(share, 2.0)
        days[large] = above
        doubtful = large[below != above]
        days[doubtful] = [count / per_day for count in counts[doubtful].tolist()]
    return days


def times_of_days(
    days: FloatArray,
    unit: str,
    *,
    zoned: bool = False,
    seen: tuple[float, float] = (np.nan, np.nan),
    exact: tuple[float, ...] = (),
) -> AnyArray:
    """Return days as datetime64 of a unit, NaT where they are NaN or infinite.

    Days in float64 resolve a time of our century to a third of a microsecond, so nanoseconds are rounded to
    microseconds.

    Parameters
    ----------
    days : array of shape (n,)
    unit : {"D", "s", "ms", "us", "ns"}
    zoned : bool
        Whether the times will be shown in a zone, which may move them by a day.
    seen : tuple of float
        Smallest and largest day observed. Days outside both this range and the years 1 to 9999, or beyond the reach
        of nanoseconds, become the nearest time inside.
    exact : tuple of float
        Days whose nanoseconds are not rounded.
    """
    missing = ~np.isfinite(days)
    counts = _counts(np.where(missing, 0.0, days), unit, *_limits(unit, zoned, seen))
    if unit == "ns":
        rest = counts % 1000
        rounded = (np.abs(counts) < 2**63 - 1000) & ~np.isin(days, exact)
        counts = np.where(rounded, counts - rest + np.where(rest >= 500, 1000, 0), counts)
    times: AnyArray = counts.astype(f"M8[{unit}]")
    times[missing] = np.datetime64("NaT")
    return times


def zoned_times(days: FloatArray, zone: dt.tzinfo) -> AnyArray:
    """Return days as an array of Python datetimes, all in one zone; None where they are NaN or infinite."""
    times: AnyArray = np.empty(len(days), dtype=object)
    for n, day in enumerate(days.tolist()):
        if np.isfinite(day):
            moment = time_of_days(day, zone)
            times[n] = moment if moment.tzinfo is zone else _edge(day, zone)
    return times


def _counts(days: FloatArray, unit: str, first: int, last: int) -> IntArray:
    """Return the nearest whole numbers of a unit, cut to the range from first to last."""
    per_day = _PER_DAY[unit]
    low, high = first / per_day, last / per_day
    inside = np.clip(days, low, high)
    # whole days and the rest apart, because their product may not fit float64
    whole = np.rint(inside) if per_day == 1 else np.trunc(inside)
    counts = whole.astype(np.int64) * per_day + np.rint((inside - whole) * per_day).astype(np.int64)
    return np.where(inside >= high, last, np.where(inside <= low, first, counts))


def _calendar(unit: str) -> tuple[int, int]:
    """Return the first and last count of a unit in the years 1 to 9999, as far as 64 bits reach."""
    per_day = _PER_DAY[unit]
    return max(FIRST_DAY * per_day, -(2**63) + 1), min(END_DAY * per_day - 1, 2**63 - 1)


def _limits(unit: str, zoned: bool, seen: tuple[float, float]) -> tuple[int, int]:
    """Return the first and last count that can be written: those of the calendar, or those observed beyond it."""
    per_day = _PER_DAY[unit]
    most = 2**31 - 1 if unit == "D" else 2**63 - 1  # frames keep dates in 32 bits
    first, last = (end + zoned * step for end, step in zip(_calendar(unit), (per_day, -per_day), strict=True))
    if seen[0] < first / per_day:
        first = max(_count(seen[0], per_day), -most)
    if seen[1] > last / per_day:
        last = min(_count(seen[1], per_day), most)
    return first, last
