"""Values in text: which words mark a gap, and how a cell or a word becomes a value of a logical type."""

from __future__ import annotations

import datetime as dt
from typing import Any

from jointwise._checks import shown
from jointwise.exceptions import InputError
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import as_text

# Text that marks a gap.
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})

_WANTED = {"float64": "numbers", "int64": "numbers", "bool": "true or false"}


def parse(name: str, cell: Any, dtype: str) -> Any:
    """One cell of a column as a value of a logical type; the error names the column and the cell.

    >>> parse("age", "41", "int64"), parse("day", "2024-05-31", "date")
    (41, datetime.date(2024, 5, 31))
    """
    try:
        if dtype == "float64":
            return float(cell)
        if dtype == "int64":
            return _whole(cell)
        if dtype == "bool":
            return cell if isinstance(cell, bool) else {"true": True, "false": False}[cell.lower()]
        if is_temporal(dtype):
            return _moment(cell, dtype)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        what = "dates such as 2024-05-31" if is_temporal(dtype) else _WANTED[dtype]
        raise InputError(f"{shown(name)} takes {what}; got {shown(cell)}.") from None
    return cell if isinstance(cell, str) else as_text(cell)


def _whole(cell: Any) -> int | float:
    if isinstance(cell, float):
        return cell
    try:
        return int(cell)
    except ValueError:
        return float(cell)


def _moment(cell: Any, dtype: str) -> dt.date:
    if dtype == "date":
        return dt.date.fromisoformat(cell)
    moment = dt.datetime.fromisoformat(cell)
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC)  # one zone for summer and winter
