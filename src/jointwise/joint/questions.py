"""How a question writes columns, values and sets: ``age in 30..40``, ``gain=0``, ``'a|b'=c``."""

from __future__ import annotations

import re

import numpy as np

from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Kind, Variable

# Most characters of a name or value.
NAME_LENGTH = 60

_SIGNS = re.compile(r"""["'=<>!|,(){}]|\.\.|(?:^|\s)in(?:\s|$)|^\s|\s$|^$""")


def interval_text(variable: Variable, low: float, high: float) -> str:
    """Write the interval (low, high].

    >>> age = Variable("age", "integer", dtype="int64")
    >>> interval_text(age, 29.5, 40.5), interval_text(age, 39.5, 40.5), interval_text(age, -np.inf, 17.5)
    ('age in 30..40', 'age=40', 'age <= 17')
    """
    name = quoted(variable.name)
    whole = variable.kind is Kind.INTEGER or variable.dtype == "date"
    first, last = (np.floor(low) + 1, np.floor(high)) if whole else (low, high)
    if np.isneginf(low) and np.isposinf(high):
        return f"{name} in .."
    if np.isneginf(low):
        return f"{name} <= {number_text(variable, last)}"
    if np.isposinf(high):
        return f"{name} {'>=' if whole else '>'} {number_text(variable, first)}"
    if first == last:
        return value_text(variable, first)
    return f"{name} in {number_text(variable, first)}..{number_text(variable, last)}"


def value_text(variable: Variable, value: float) -> str:
    """Write a single number."""
    return f"{quoted(variable.name)}={number_text(variable, value)}"


def beyond_text(variable: Variable, end: float, *, above: bool) -> str:
    """Write the numbers above or below an end."""
    return f"{quoted(variable.name)} {'>' if above else '<'} {number_text(variable, end)}"


def number_text(variable: Variable, number: float) -> str:
    """Write a number, or the date that it encodes."""
    if is_temporal(variable.dtype):
        moment = variable.decode_value(number)
        return str(number) if moment is None else str(moment.isoformat())
    return f"{number + 0.0:.10g}"  # zero has no sign


def quoted(name: str) -> str:
    """Write a name or category, in quotes if it contains signs of the language.

    >>> quoted("hours per week"), quoted("a=b")
    ('hours per week', "'a=b'")
    """
    name = shortened(name)
    if not _SIGNS.search(name):
        return name
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def shortened(name: str) -> str:
    """Return a name, cut to `NAME_LENGTH` characters."""
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 3]}..."
