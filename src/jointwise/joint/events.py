"""Regions of a variable: a point, an interval or a set of values.

Users write plain Python: a value, a closed interval ``(low, high)`` with ``None`` for an open end, or a set.

>>> from jointwise.tables.variables import Variable
>>> age = Variable("age", "integer", observed=(0, 99))
>>> parse_region(age, (30, None))
Interval(low=30.0, high=inf)
>>> parse_region(age, {30, 31})
Values(values=(30.0, 31.0), half=0.0)
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

import numpy as np

from jointwise._checks import shown
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.tables.variables import Kind, Schema, Variable

# Largest distance of a value from a multiple of the step, in steps, that is taken for rounding of floats.
STEP_SLACK = 1e-6


@dataclass(frozen=True)
class Point:
    """The variable equals ``value``; a rounded variable lies within ``half`` of it, half a step."""

    value: float
    half: float = 0.0


@dataclass(frozen=True)
class Interval:
    """The variable is in [low, high]; an open end is infinite."""

    low: float
    high: float


@dataclass(frozen=True)
class Values:
    """The variable is one of ``values``; a rounded variable lies within ``half`` of one, half a step."""

    values: tuple[float, ...]
    half: float = 0.0


Region: TypeAlias = Point | Interval | Values


def parse_region(variable: Variable, given: Any) -> Region:
    """Return the region of an encoded ``variable`` that a user wrote; a region is returned as it is."""
    if isinstance(given, Region):
        return given
    if isinstance(given, tuple):
        return _interval(variable, given)
    if isinstance(given, AbstractSet):
        if not given:
            raise InputError(f"The set of values for {shown(variable.name)} is empty: name at least one value.")
        # a date and its text are two members of the set but one value
        values = sorted({_encode(variable, value) for value in given})
        possible = [value for value in values if _half(variable, value)]  # multiples of the step
        return Values(tuple(possible or values), variable.step / 2 if possible else 0.0)
    value = _encode(variable, given)
    return Point(value, _half(variable, value))


def _half(variable: Variable, value: float) -> float:
    """Return half the step of a rounded variable; zero if ``value`` is no multiple of the step."""
    off = abs(value / variable.step - round(value / variable.step)) if variable.step and isfinite(value) else 1.0
    return variable.step / 2 if off <= STEP_SLACK else 0.0


def _interval(variable: Variable, given: tuple[Any, ...]) -> Interval:
    if len(given) != 2:
        raise InputError(
            f"An interval for {shown(variable.name)} is written (low, high) with None for an open end, got "
            f"{shown(given)}. For several values use a set."
        )
    if variable.kind is Kind.CATEGORICAL and not variable.ordered:
        raise InputError(
            f"{shown(variable.name)} has categories without an order, so {shown(given)} is not an interval; "
            "use a set of categories, such as {" + ", ".join(shown(c) for c in given if c is not None) + "}."
        )
    low = -np.inf if given[0] is None else _encode(variable, given[0])
    high = np.inf if given[1] is None else _encode(variable, given[1])
    if low > high:
        raise InputError(
            f"The interval {shown(given)} for {shown(variable.name)} is empty: its ends are the wrong way round."
        )
    return rounded(variable, Interval(low, high))


def rounded(variable: Variable, interval: Interval) -> Interval:
    """Return the interval of the numbers that are rounded into ``interval``; it may be empty.

    >>> price = Variable("price", "continuous", step=0.5)
    >>> rounded(price, Interval(1.0, 2.2))
    Interval(low=0.75, high=2.25)
    """
    step = variable.step
    if not step:
        return interval
    # with slack: 0.3 / 0.1 is just below three
    low = np.ceil(interval.low / step - STEP_SLACK) * step - step / 2
    high = np.floor(interval.high / step + STEP_SLACK) * step + step / 2
    return Interval(float(low), float(high))


def rounded_up(schema: Schema, X: FloatArray) -> FloatArray:
    """Return encoded rows with each cell replaced by the largest number that is rounded to at most it; shape (n, N)."""
    out = X.copy()
    for n, variable in enumerate(schema):
        if variable.step:
            out[:, n] = np.floor(X[:, n] / variable.step + STEP_SLACK) * variable.step + variable.step / 2
    return out


def rounded_quantiles(variable: Variable, values: FloatArray) -> FloatArray:
    """Round ``values`` to the steps of a variable: all in (v - step/2, v + step/2] become v."""
    if not variable.step:
        return values
    finite = np.isfinite(values)
    cells = np.ceil(np.where(finite, values, 0.0) / variable.step - 0.5 - STEP_SLACK) * variable.step
    return np.where(finite, variable.settle(cells), values)


def _encode(variable: Variable, value: Any) -> float:
    encoded = variable.encode_value(value)
    if np.isnan(encoded):
        raise InputError(
            f"The value for {shown(variable.name)} is missing ({shown(value)}). Leave the variable out to say nothing "
            "about it."
        )
    return encoded
