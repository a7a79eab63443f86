"""Words of a question as values of a variable: numbers with signs and units of size, dates, true and false, gaps."""

from __future__ import annotations

import datetime as dt
import re
from calendar import isleap
from math import inf, isnan, nan

import numpy as np

from jointwise.exceptions import InputError
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.texts import MISSING, parse
from jointwise.tables.variables import Kind, Variable, as_text

# Words for a value that is not known, besides those that mark a gap in a file.
UNKNOWN = frozenset({"missing", "unknown", "?"})
# Words for false and true, in pairs.
TRUTHS = (("false", "true"), ("no", "yes"), ("0", "1"), ("n", "y"), ("f", "t"))
# A column within -1 and 1 holds shares, so 20% is 0.2 there; one that goes beyond this holds percentages, so it is 20.
LARGEST_SHARE, SMALLEST_PERCENTAGE = 1.0, 2.0

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+(?:_\d+)*)"  # thousands may be apart
_NUMBER = re.compile(
    rf"[+\-−]?(?:{_DIGITS}(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+\-−]?inf(?:inity)?(?!\w)", re.IGNORECASE
)
_PLAIN = re.compile(
    r"[+\-−]?(?:\d+(?:_\d+)*(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+\-−]?inf(?:inity)?(?!\w)", re.IGNORECASE
)
_SIZES = {"k": 1e3, "K": 1e3, "M": 1e6}
_MOMENT = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2})"
    r"(?P<time>[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?)?)?",
    re.IGNORECASE,
)

# First and last number of a value.
Span = tuple[float, float]


def value_in(variable: Variable, text: str, *, in_list: bool) -> tuple[int, Span]:
    """Return the length of the value that a text begins with, and the encoded numbers it spans; 0 and NaN for none.

    A number or category spans itself. A year, a month, or a day of a variable of times spans all of it. In a list,
    commas separate values and not thousands.

    >>> humidity, age = Variable("humidity", "continuous", observed=(0, 100)), Variable("age", "integer")
    >>> value_in(humidity, "80% | ...", in_list=False), value_in(age, "1,000..", in_list=False)
    ((3, (80.0, 80.0)), (5, (1000.0, 1000.0)))
    >>> value_in(Variable("day", "continuous", dtype="date"), "1970-01)", in_list=False)
    (7, (0.0, 30.0))
    """
    truth = truth_of(variable)
    if truth is not None and (word := re.match(r"\w+", text)) and (pair := _truth(word[0])) is not None:
        return word.end(), (truth[pair], truth[pair])
    if variable.categories is None and is_temporal(variable.dtype):
        moment = _MOMENT.match(text)
        return (moment.end(), _period(variable, moment)) if moment else (0, (nan, nan))
    length, value = _category(variable, text) if variable.categories is not None else _number(variable, text, in_list)
    return length, (value, value)


def _period(variable: Variable, moment: re.Match[str]) -> Span:
    """Return the first and last encoded number of a year, month, day or moment."""
    year, month, day, time = moment.group("year", "month", "day", "time")
    text = f"{year}-{month or '01'}-{day or '01'}{time or ''}"
    low = variable.encode_value(parse(variable.name, text, variable.dtype))
    if time or (day and variable.dtype == "date"):
        return low, low
    first = dt.date.fromisoformat(text)
    if day:
        after = first.toordinal() + 1
    elif month:
        after = (first + dt.timedelta(days=31)).replace(day=1).toordinal()
    else:
        after = first.toordinal() + 365 + isleap(first.year)
    if variable.dtype == "date":
        return low, low + after - 1 - first.toordinal()
    if after > dt.date.max.toordinal():
        return low, inf
    return low, float(np.nextafter(variable.encode_value(dt.date.fromordinal(after).isoformat()), -inf))


def number_in(text: str) -> float | None:
    """Return the number that a text is; None if it is none.

    >>> number_in("-1e3"), number_in("1,000.5"), number_in("old")
    (-1000.0, 1000.5, None)
    """
    return _float(text) if _NUMBER.fullmatch(text) else None


def is_gap(text: str) -> bool:
    """Return whether a word says that a value is not known.

    >>> is_gap("missing"), is_gap("NaN"), is_gap("none")
    (True, True, False)
    """
    return text in MISSING or text.lower() in UNKNOWN


def truth_of(variable: Variable) -> dict[bool, float] | None:
    """Return the codes of false and true of a variable that has just these, such as no and yes; None for others.

    >>> truth_of(Variable("smoker", "categorical", categories=("yes", "no")))
    {False: 1.0, True: 0.0}
    """
    if variable.categories is None:
        return {False: 0.0, True: 1.0} if variable.kind is Kind.INTEGER and variable.observed == (0.0, 1.0) else None
    words = [as_text(category).lower() for category in variable.categories]
    pair = next((pair for pair in TRUTHS if sorted(pair) == sorted(words)), None)
    return (
        None
        if pair is None
        else {truth: float(words.index(word)) for truth, word in zip((False, True), pair, strict=True)}
    )


def _truth(word: str) -> bool | None:
    return next((bool(pair.index(word.lower())) for pair in TRUTHS if word.lower() in pair), None)


def _category(variable: Variable, text: str) -> tuple[int, float]:
    """Return a category that is written as another number or moment of the same value, such as 1.0 for 1."""
    word = re.match(r"[^\s,|(){}\[\]&=<>!]+", text)
    if word is None or isinstance((variable.categories or ("",))[0], str):
        return 0, nan
    try:
        return word.end(), variable.encode_value(parse(variable.name, word[0], variable.dtype))
    except (InputError, KeyError):
        return 0, nan


def _number(variable: Variable, text: str, in_list: bool) -> tuple[int, float]:
    match = (_PLAIN if in_list else _NUMBER).match(text)
    if match is None:
        return 0, nan
    number, end = _float(match[0]), match.end()
    sign = text[end : end + 1]
    if sign in _SIZES and not text[end + 1 : end + 2].isalnum():
        return end + 1, number * _SIZES[sign]
    if sign == "%":
        return end + 1, number * _percent(variable, f"{match[0]}%")
    return end, number


def _float(text: str) -> float:
    return float(text.replace(",", "").replace("_", "").replace("−", "-"))


def _percent(variable: Variable, text: str) -> float:
    """Return what one percent is in the units of a variable."""
    largest = max(abs(end) for end in variable.observed)
    if isnan(largest) or largest <= LARGEST_SHARE:
        return 0.01
    if largest > SMALLEST_PERCENTAGE:
        return 1.0
    raise InputError(f"{text} of {variable.name} may be a share or a percentage: write the number without %.")
