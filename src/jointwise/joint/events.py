"""Regions of a variable: a point, an interval, a set of values, or any of several of these.

Users write plain Python: a value, a closed interval ``(low, high)`` with ``None`` for an open end, or a set or list of
values and intervals.

>>> from jointwise.tables.variables import Variable
>>> age = Variable("age", "integer", observed=(0, 99))
>>> parse_region(age, (30, None))
Interval(low=30.0, high=inf)
>>> parse_region(age, [30, 35])
Values(values=(30.0, 35.0), half=0.0)
>>> parse_region(age, [(None, 17), (65, None)])
AnyOf(parts=(Interval(low=-inf, high=17.0), Interval(low=65.0, high=inf)))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import product
from math import inf, isfinite, prod
from typing import Any, TypeAlias, TypeVar

import numpy as np

from jointwise._checks import shown
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.tables.variables import Kind, Schema, Variable

# Largest distance of a value from a multiple of the step, in steps, that is taken for rounding of floats.
STEP_SLACK = 1e-6
# Most boxes that the parts of several variables may make together.
MOST_BOXES = 1_000


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


@dataclass(frozen=True)
class AnyOf:
    """The variable is in one of ``parts``: intervals and sets of values that share no value."""

    parts: tuple[Region, ...]


# What an expert takes is a box: a region for some variables. `boxes` turns an event with alternatives into boxes.
Alternatives: TypeAlias = Region | AnyOf
KeyT = TypeVar("KeyT")


def parse_region(variable: Variable, given: Any) -> Alternatives:
    """Return the region of an encoded ``variable`` that a user wrote; a region is returned as it is.

    A set, a list, an array or a series means any of its members: values, or intervals as tuples.
    """
    if isinstance(given, Region | AnyOf):
        return given
    if isinstance(given, tuple):
        return rounded(variable, Interval(*_ends(variable, given)))
    members = _members(given)
    if members is None:
        value = _encode(variable, given)
        return Point(value, _half(variable, value))
    if not members:
        raise InputError(f"The set of values for {shown(variable.name)} is empty: name at least one value.")
    if any(isinstance(member, tuple) for member in members):
        ends = [_ends(variable, m) if isinstance(m, tuple) else (_encode(variable, m),) * 2 for m in members]
        return region_of(variable, joined(variable, ends))
    return _values(variable, {_encode(variable, member) for member in members})


def _members(given: Any) -> list[Any] | None:
    """Return the members of a set, list, array or series; None for a single value."""
    if isinstance(given, list | AbstractSet | range):
        return list(given)
    if isinstance(given, np.ndarray):
        return list(given.tolist()) if given.ndim == 1 else None
    return list(given.to_list()) if hasattr(given, "to_list") else None  # a series of pandas or Polars


def _values(variable: Variable, values: AbstractSet[float]) -> Values:
    ordered = sorted(values)
    possible = [value for value in ordered if _half(variable, value)]  # multiples of the step
    return Values(tuple(possible or ordered), variable.step / 2 if possible else 0.0)


# ---- sets of values as closed intervals that are sorted and apart ---------------------------------------------------

# Closed intervals (low, high) of encoded values; a single value has low = high. Categories are their codes.
Pieces: TypeAlias = tuple[tuple[float, float], ...]


def everything(variable: Variable) -> Pieces:
    """Return all values of a variable."""
    return ((0.0, len(variable.categories) - 1.0),) if variable.categories is not None else ((-inf, inf),)


def neighbour(variable: Variable, value: float, *, above: bool) -> float:
    """Return the next value that a variable can take, above or below a number.

    >>> [neighbour(Variable("k", "integer"), value, above=True) for value in (3.0, 3.5)]
    [4.0, 4.0]
    >>> neighbour(Variable("price", "continuous", step=0.25), 1.5, above=False)
    1.25
    """
    if not isfinite(value):
        return value
    if variable.kind is Kind.CONTINUOUS and not variable.step:
        return float(np.nextafter(value, inf if above else -inf))
    step, slack = (variable.step, STEP_SLACK) if variable.step else (1.0, 0.0)
    steps = np.floor(value / step + slack) + 1 if above else np.ceil(value / step - slack) - 1
    return float(steps * step)


def joined(variable: Variable, pieces: Iterable[tuple[float, float]]) -> Pieces:
    """Return the values in any of some closed intervals.

    >>> joined(Variable("k", "integer"), [(5.0, 9.0), (1.0, 2.0), (3.0, 3.0)])
    ((1.0, 3.0), (5.0, 9.0))
    """
    found: list[tuple[float, float]] = []
    for low, high in sorted(pieces):
        if found and low <= neighbour(variable, found[-1][1], above=True):
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def common(a: Pieces, b: Pieces) -> Pieces:
    """Return the values in both of two sets.

    >>> common(((0.0, 4.0), (6.0, 9.0)), ((3.0, 7.0),))
    ((3.0, 4.0), (6.0, 7.0))
    """
    found = [(max(low, first), min(high, last)) for low, high in a for first, last in b]
    return tuple(sorted((low, high) for low, high in found if low <= high))


def others(variable: Variable, pieces: Pieces) -> Pieces:
    """Return the values of a variable that are not in a set.

    >>> others(Variable("k", "integer"), ((3.0, 3.0),))
    ((-inf, 2.0), (4.0, inf))
    """
    left = everything(variable)
    for low, high in pieces:
        outside = [] if low == -inf else [(-inf, neighbour(variable, low, above=False))]
        outside += [] if high == inf else [(neighbour(variable, high, above=True), inf)]
        left = common(left, tuple(outside))
    return left


def region_of(variable: Variable, pieces: Pieces) -> Alternatives:
    """Return a set of values as what a density takes; a single value is a point.

    >>> region_of(Variable("k", "integer"), ((1.0, 1.0), (3.0, 3.0), (5.0, 9.0)))
    AnyOf(parts=(Interval(low=5.0, high=9.0), Values(values=(1.0, 3.0), half=0.0)))
    """
    if variable.categories is not None:
        known = common(pieces, everything(variable))
        pieces = tuple((float(code), float(code)) for low, high in known for code in range(int(low), int(high) + 1))
    single = [low for low, high in pieces if low == high]
    if len(single) == len(pieces) == 1:
        return Point(single[0], _half(variable, single[0]))
    parts: list[Region] = [rounded(variable, Interval(low, high)) for low, high in pieces if low < high]
    parts += [_values(variable, set(single))] if single else []
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def boxes(event: Mapping[KeyT, Alternatives]) -> Iterator[dict[KeyT, Region]]:
    """Yield the boxes, disjoint from each other, that make up an event.

    >>> [box["k"] for box in boxes({"k": AnyOf((Interval(0, 2), Interval(5, 9))), "s": Point(1)})]
    [Interval(low=0, high=2), Interval(low=5, high=9)]
    """
    parts = [region.parts if isinstance(region, AnyOf) else (region,) for region in event.values()]
    if prod(map(len, parts)) > MOST_BOXES:
        raise InputError(
            f"The alternatives make {prod(map(len, parts)):,} combinations; at most {MOST_BOXES:,} are answered. Ask "
            "for fewer values or intervals."
        )
    yield from (dict(zip(event, chosen, strict=True)) for chosen in product(*parts))


# ---- rounding ---------------------------------------------------------------------------------------------------


def _half(variable: Variable, value: float) -> float:
    """Return half the step of a rounded variable; zero if ``value`` is no multiple of the step."""
    off = abs(value / variable.step - round(value / variable.step)) if variable.step and isfinite(value) else 1.0
    return variable.step / 2 if off <= STEP_SLACK else 0.0


def _ends(variable: Variable, given: tuple[Any, ...]) -> tuple[float, float]:
    """Return the encoded ends of an interval that a user wrote."""
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
    return low, high


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
    """Cut ``values`` to the support of a variable and round them to its steps: (v - step/2, v + step/2] becomes v.

    >>> rounded_quantiles(Variable("share", "continuous", support=(0, 1)), np.array([-np.inf, 0.3, np.inf]))
    array([0. , 0.3, 1. ])
    """
    if variable.is_bounded:
        values = np.clip(values, *variable.support)
    if not variable.step:
        return values
    finite = np.isfinite(values)
    cells = np.ceil(np.where(finite, values, 0.0) / variable.step - 0.5 - STEP_SLACK) * variable.step
    return np.where(finite, variable.settle(cells), values)


def rounded_inside(variable: Variable, ends: FloatArray) -> FloatArray:
    """Return the first and the last value of a variable inside intervals; shape (n, 2), as ``ends``.

    An interval between two steps becomes the step that is nearest to its middle.

    >>> price = Variable("price", "continuous", step=0.5)
    >>> rounded_inside(price, np.array([[0.6, 2.4], [0.8, 0.9], [0.5, np.inf]])).tolist()
    [[1.0, 2.0], [1.0, 1.0], [0.5, inf]]
    """
    nearest, step = rounded_quantiles(variable, ends), variable.step
    if not step:
        return nearest
    low, high = ends.T
    # with slack: 0.3 / 0.1 is just below three
    up, down = np.ceil(low / step - STEP_SLACK) * step, np.floor(high / step + STEP_SLACK) * step
    inside = rounded_quantiles(variable, np.stack([up, down], axis=1))
    middle = rounded_quantiles(variable, np.where(np.isfinite(low + high), (low + high) / 2, nearest[:, 0]))
    return np.where((up <= down + step / 2)[:, None], inside, middle[:, None])


def _encode(variable: Variable, value: Any) -> float:
    encoded = variable.encode_value(value)
    if np.isnan(encoded):
        raise InputError(
            f"The value for {shown(variable.name)} is missing ({shown(value)}). Leave the variable out to say nothing "
            'about it; a model says which cells are missing if it was fitted with missing="informative".'
        )
    return encoded
