"""Logical types: what the values of a column are, in any library.

A logical type is a string: "float64", "int64", "bool", "string", "categorical", "enum", "date", "datetime[unit]" or
"datetime[unit,zone]".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np

DTYPES = ("float64", "int64", "bool", "string", "categorical", "enum", "date")
UNITS = ("s", "ms", "us", "ns")
_DATETIME = re.compile(r"datetime\[(s|ms|us|ns)(?:,([^\]]+))?\]")


def is_text(category: object) -> bool:
    """Return whether a category is text."""
    return isinstance(category, str)


def is_boolean(category: object) -> bool:
    """Return whether a category is a boolean."""
    return isinstance(category, bool)


def is_number(category: object) -> bool:
    """Return whether a category is a float, or an integer of 64 bits."""
    return isinstance(category, float) or _is_integer(category)


def _is_integer(category: object) -> bool:
    return isinstance(category, int) and not isinstance(category, bool) and -(2**63) <= category < 2**63


# Logical types of categories, and what each can hold, in words and as a test.
CATEGORY_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "float64": ("numbers", is_number),
    "int64": ("integers of 64 bits", _is_integer),
    "bool": ("booleans", is_boolean),
    "string": ("text", is_text),
    "enum": ("text", is_text),
    "categorical": ("text, booleans or numbers", lambda _: True),
}


def parse_datetime(dtype: str) -> tuple[str, str | None] | None:
    """Split "datetime[us,Europe/Paris]" into unit and zone; None for any other logical type.

    >>> parse_datetime("datetime[ns]"), parse_datetime("date")
    (('ns', None), None)
    """
    match = _DATETIME.fullmatch(dtype)
    return (match[1], match[2]) if match else None


def datetime_dtype(unit: str, zone: str | None) -> str:
    """Return the logical type of times, the inverse of `parse_datetime`."""
    return f"datetime[{unit},{zone}]" if zone else f"datetime[{unit}]"


def zone_of(dtype: str) -> str | None:
    """Return the name of the time zone of a logical type; None if it has none.

    >>> zone_of("datetime[us,Europe/Paris]"), zone_of("int64")
    ('Europe/Paris', None)
    """
    return (parse_datetime(dtype) or (None, None))[1]


def is_temporal(dtype: str) -> bool:
    """Return whether values of this logical type are dates or times."""
    return dtype == "date" or parse_datetime(dtype) is not None


def is_missing(value: object) -> bool:
    """Return whether a scalar means "not observed": None, NaN, NaT, or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing(np.datetime64("NaT")), is_missing("")
    (True, True, True, False)
    """
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating)) and isnan(value)


def category_order(category: Any) -> tuple[str, Any]:
    """Return the sort key of a category: its type first, because text and numbers do not compare."""
    return ("text" if isinstance(category, str) else "number", category)
