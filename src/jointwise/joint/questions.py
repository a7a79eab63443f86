"""How a question writes columns, values and sets: ``age in 30..40``, ``gain=0``, ``'a|b'=c``.

`question_text` writes a whole question in one form, which `jointwise.joint.language` reads back.
"""

from __future__ import annotations

import re
from math import isinf
from typing import TYPE_CHECKING

import numpy as np

from jointwise._typing import BoolArray, FloatArray
from jointwise.joint.events import Alternatives, AnyOf, Interval, Point, Values
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Kind, Schema, Variable, as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jointwise.joint.language import Question

# Most characters of a name or value.
NAME_LENGTH = 60
# Characters by which the number before an end of a rounded column must be shorter to be written instead of it.
SHORTER = 4

_SIGNS = re.compile(
    r"""["'=<>!≤≥≠|,;(){}\[\]&“‘]|\.\.|…|(?:^|\W)(?:and|or|in|is|not|given|where|if|between)(?:\W|$)|^\s|\s$|^$""",
    re.IGNORECASE,
)


def interval_text(variable: Variable, low: float, high: float) -> str:
    """Write the interval (low, high].

    >>> age = Variable("age", "integer", dtype="int64")
    >>> interval_text(age, 29.5, 40.5), interval_text(age, 39.5, 40.5), interval_text(age, -np.inf, 17.5)
    ('age in 30..40', 'age=40', 'age <= 17')
    """
    name = quoted(variable.name)
    whole = _is_whole(variable)
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


def is_single(variable: Variable, low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether the interval (low, high] of a variable of whole numbers holds just one of them.

    >>> is_single(Variable("age", "integer"), np.array([39.5, 29.5]), np.array([40.5, 40.5]))
    array([ True, False])
    """
    return np.asarray(_is_whole(variable) & (np.floor(low) + 1 == np.floor(high)))


def _is_whole(variable: Variable) -> bool:
    return variable.kind is Kind.INTEGER or variable.dtype == "date"


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
    return in_quotes(shortened(name))


def in_quotes(name: str) -> str:
    """Write a name or category of any length, in quotes if it contains signs of the language."""
    if not _SIGNS.search(name):
        return name
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def shortened(name: str) -> str:
    """Return a name, cut to `NAME_LENGTH` characters."""
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 3]}..."


# ---- whole questions ------------------------------------------------------------------------------------------------


def question_text(question: Question, schema: Schema) -> str:
    """Write a question in one form, whatever form it was asked in.

    >>> from jointwise.joint.language import parse_question
    >>> schema = Schema((Variable("age", "integer"), Variable("sex", "categorical", categories=("F", "M"))))
    >>> question_text(parse_question("p(sex is F given 30 < age and age <= 40)", schema), schema)
    'P(sex=F | age in 31..40)'
    """
    asked = ", ".join(map(in_quotes, question.names)) or event_text(question.asked, schema)
    given = event_text(question.given, schema)
    inner = f"{asked} | {given}" if given else asked
    if question.measure == "quantile":
        return f"q{100 * question.level:.10g}({inner})"
    if question.measure or question.asked:
        return f"{question.measure or 'P'}({inner})"
    return inner


def event_text(event: Mapping[str, Alternatives], schema: Schema) -> str:
    """Write conditions, separated by commas; none is empty text."""
    return ", ".join(_region_text(schema[name], region) for name, region in event.items())


def _region_text(variable: Variable, region: Alternatives) -> str:
    name = in_quotes(variable.name)
    if isinstance(region, AnyOf):
        return " or ".join(_region_text(variable, part) for part in region.parts)
    if isinstance(region, Point):
        return f"{name}={_value(variable, region.value)}"
    if isinstance(region, Values):
        return f"{name} in {{{', '.join(_value(variable, value) for value in region.values)}}}"
    return _range(variable, region, name)


def _range(variable: Variable, region: Interval, name: str) -> str:
    """Write an interval; ends just beyond a shorter number leave that number out: ``x > 6``, not ``x >= 6.0001``."""
    step = variable.step
    low, high = (round(end, 10) if step else end for end in (region.low + step / 2, region.high - step / 2))
    below, above = float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))
    if step:
        below, above = round(low - step, 10), round(high + step, 10)
    after, before = (
        variable.kind is Kind.CONTINUOUS and not isinf(end) and _is_shorter(beyond, end, SHORTER if step else 1)
        for end, beyond in ((low, below), (high, above))
    )
    first, last = (_value(variable, end) for end in (below if after else low, above if before else high))
    if isinf(low) and isinf(high):
        return f"{name} in -inf..inf"
    if isinf(low):
        return f"{name} {'<' if before else '<='} {last}"
    if isinf(high):
        return f"{name} {'>' if after else '>='} {first}"
    if after or before:
        return f"{first} {'<' if after else '<='} {name} {'<' if before else '<='} {last}"
    return f"{name} in {first}..{last}"


def _is_shorter(number: float, other: float, by: int) -> bool:
    return len(_shortest(number)) + by <= len(_shortest(other))


def _value(variable: Variable, value: float) -> str:
    if variable.categories is not None:
        return in_quotes(as_text(variable.decode_value(value)))
    if is_temporal(variable.dtype) and not isinf(value):
        return str(variable.decode_value(value).isoformat())
    return _shortest(value)


def _shortest(number: float) -> str:
    return repr(int(number)) if abs(number) < 1e15 and number == int(number) else repr(number)
