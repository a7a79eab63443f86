"""Variables and schemas: what a column of a table is, and how its values become numbers.

Inside the package every cell is one float64, and NaN is a missing value. A number is itself, a date or time is days
since 1970-01-01 (in UTC if it has a zone), a category is its position in `Variable.categories`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from math import inf, isfinite, isinf, isnan, nan
from numbers import Real
from typing import Any

import numpy as np

from jointwise._checks import check_choice, listed, reading, shown, unknown_name
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.tables.dtypes import (
    CATEGORY_TYPES,
    DTYPES,
    is_boolean,
    is_missing,
    is_number,
    is_temporal,
    is_text,
    parse_datetime,
    zone_of,
)
from jointwise.tables.times import OFFSET, date_of_days, days_of_value, time_of_days, time_zone

CONTAINERS = ("numpy", "dict", "pandas", "polars", "pyarrow")
OUTSIDE = -1.0  # code of a category that the schema does not know
OTHER = "(other)"  # a category of this name stands for all that the schema does not name
EVERYWHERE = (-inf, inf)  # the support of a variable without bounds
MAX_ENUMERATED = 32  # an integer variable whose range has at most this many values gets one atom per value
LARGEST_WHOLE = 2**53  # limit of decoded integers: beyond it, where heavy tails may reach, float64 skips some


class Kind(StrEnum):
    """What a variable is; this determines its base measure."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    CATEGORICAL = "categorical"


# Logical types of each kind of number, besides dates and times.
NUMBER_TYPES = {Kind.CONTINUOUS: ("float64",), Kind.INTEGER: ("int64", "float64")}


@dataclass(frozen=True)
class Variable:
    """One variable of a table.

    Parameters
    ----------
    name : str
    kind : Kind or str
        "continuous", "integer" or "categorical".
    categories : tuple of str, bool, int or float, optional
        The categories in the order of their codes 0, 1, ...; None unless categorical.
    ordered : bool
        Whether the order of the categories has a meaning.
    spikes : tuple of float
        Values of a continuous or integer variable that have a positive probability of their own.
    observed : tuple of float
        Smallest and largest encoded value observed.
    dtype : str
        Logical type of the values in the table: "float64", "int64", "bool", "string", "categorical", "enum",
        "date", "datetime[unit]" or "datetime[unit,zone]". If the categories are not numbers, the default "float64"
        becomes the type that holds them: "bool", "string" or "categorical".
    support : tuple of float
        Smallest and largest value that the variable can take; infinite where there is no bound.
    step : float
        The values of a continuous variable are whole multiples of this; zero if they are not rounded.
    gap_of : str, optional
        Name of the column whose gaps this variable tells: true where its cell is missing. See `jointwise.tables.gaps`.

    Examples
    --------
    >>> size = Variable("size", "categorical", categories=("S", "M", "L"), ordered=True, dtype="string")
    >>> size.encode_value("M"), size.decode_value(2.0)
    (1.0, 'L')
    >>> day = Variable("day", "continuous", dtype="date")
    >>> day.encode_value("1970-01-11"), day.decode_value(10.2)
    (10.0, datetime.date(1970, 1, 11))
    """

    name: str
    kind: Kind
    categories: tuple[Any, ...] | None = None
    ordered: bool = False
    spikes: tuple[float, ...] = ()
    observed: tuple[float, float] = (nan, nan)
    dtype: str = "float64"
    support: tuple[float, float] = EVERYWHERE
    step: float = 0.0
    gap_of: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"A variable's name must be a string; got {shown(self.name)}.")
        check_choice("kind", self.kind, list(Kind))
        object.__setattr__(self, "kind", Kind(self.kind))
        if self.dtype not in DTYPES and parse_datetime(self.dtype) is None:
            raise InputError(
                f"Variable {shown(self.name)}: `dtype` must be one of {listed(DTYPES)} or 'datetime[unit,zone]'; "
                f"got {shown(self.dtype)}."
            )
        self._zone()  # raises if the zone does not exist
        self._check_categories()
        object.__setattr__(self, "spikes", tuple(sorted(float(spike) for spike in self.spikes)))
        if self.spikes and self.kind is Kind.CATEGORICAL:
            raise InputError(f"Variable {shown(self.name)} is categorical: only a number can have spikes.")
        self._check_support_and_step()
        low, high = self.observed
        # one NaN object for "unknown", so that equal variables compare equal
        ends = tuple(nan if isnan(end) else float(end) for end in (low, high))
        object.__setattr__(self, "observed", ends)
        self._check_type()
        self._check_gap()

    def _check_type(self) -> None:
        """Raise if the logical type cannot hold values of this kind, or these categories."""
        if not all(isfinite(spike) for spike in self.spikes):
            raise InputError(f"Variable {shown(self.name)}: spikes must be finite; got {listed(self.spikes)}.")
        if self.categories is None:
            known = NUMBER_TYPES[self.kind]
            if self.dtype not in known and not is_temporal(self.dtype):
                raise InputError(
                    f"Variable {shown(self.name)} is {self.kind}: its `dtype` must be one of {listed(known)} or that "
                    f"of dates or times; got {shown(self.dtype)}."
                )
            return
        if self.dtype == "float64":
            fitting = (each for each in ("float64", "bool", "string", "categorical") if self._holds(each))
            object.__setattr__(self, "dtype", next(fitting))
        if not self._holds(self.dtype):
            held = CATEGORY_TYPES[self.dtype][0] if self.dtype in CATEGORY_TYPES else "no categories"
            raise InputError(
                f"Variable {shown(self.name)} is categorical: `dtype` {shown(self.dtype)} holds {held}; its categories "
                f"are {listed(self.categories)}."
            )

    def _check_gap(self) -> None:
        if self.gap_of is None:
            return
        if not isinstance(self.gap_of, str) or self.gap_of == self.name:
            raise InputError(
                f"Variable {shown(self.name)}: `gap_of` must be the name of another column or None; got "
                f"{shown(self.gap_of)}."
            )
        if self.categories != (False, True) or self.dtype != "bool":
            raise InputError(
                f"Variable {shown(self.name)} tells gaps of {shown(self.gap_of)}: its categories must be the booleans "
                f"False and True; got {self.kind} of type {self.dtype}."
            )

    def _holds(self, dtype: str) -> bool:
        """Return whether a logical type can hold these categories."""
        return dtype in CATEGORY_TYPES and all(map(CATEGORY_TYPES[dtype][1], self.categories or ()))

    def _check_categories(self) -> None:
        if (self.categories is None) == (self.kind is Kind.CATEGORICAL):
            need = "needs its categories" if self.categories is None else "takes no categories"
            raise InputError(f"Variable {shown(self.name)} is {self.kind} and {need}.")
        if self.categories is None:
            return
        categories = tuple(_plain(category) for category in self.categories)
        for category in categories:
            number = isinstance(category, float) and isfinite(category)
            if not (number or isinstance(category, (str, int))):
                raise InputError(
                    f"Variable {shown(self.name)}: a category must be text, a boolean or a finite number; "
                    f"got {shown(category)} of type {type(category).__name__}. Convert the column to text first."
                )
        if len(set(categories)) < len(categories):
            raise InputError(f"Variable {shown(self.name)} has equal categories: {listed(categories)}.")
        object.__setattr__(self, "categories", categories)

    def _check_support_and_step(self) -> None:
        low, high = (float(end) for end in self.support)
        object.__setattr__(self, "support", (low, high))
        object.__setattr__(self, "step", float(self.step))
        if not low < high:
            raise InputError(
                f"Variable {shown(self.name)}: `support` must be (low, high) with low < high; got {(low, high)}."
            )
        if not 0 <= self.step < inf:
            raise InputError(f"Variable {shown(self.name)}: `step` must be zero or a positive number; got {self.step}.")
        if self.kind is Kind.CATEGORICAL and (self.is_bounded or self.step):
            raise InputError(f"Variable {shown(self.name)} is categorical: only a number can have a support or a step.")
        if self.kind is Kind.INTEGER and self.step:
            raise InputError(f"Variable {shown(self.name)} is integer: its step is one, so leave `step` out.")
        low_seen, high_seen = self.observed
        if low_seen < low or high_seen > high:  # false for unknown ends, which are NaN
            raise InputError(
                f"Variable {shown(self.name)}: `support` must hold the values seen, from {low_seen:g} to "
                f"{high_seen:g}; got {low:g} to {high:g}."
            )

    @property
    def is_bounded(self) -> bool:
        """Whether the support has a finite end."""
        return self.support != EVERYWHERE

    @property
    def is_enumerated(self) -> bool:
        """Whether this is an integer variable with a range so short that each value gets its own atom."""
        low, high = self.observed
        return self.kind is Kind.INTEGER and high - low < MAX_ENUMERATED

    def shown_support(self) -> str:
        """Return the support as questions write it, or an empty string if there are no bounds.

        >>> Variable("share", "continuous", support=(0, 1)).shown_support()
        '0..1'
        """
        low, high = ("" if isinf(end) else _short(self.decode_value(end)) for end in self.support)
        return f"{low}..{high}" if self.is_bounded else ""

    def joined(self, other: Variable) -> Variable:
        """Return the variable of values of either: its observed range and support as wide as both, spikes of both."""
        for part in ("kind", "categories", "ordered", "step", "dtype", "gap_of"):
            mine, theirs = getattr(self, part), getattr(other, part)
            if mine != theirs:
                raise InputError(
                    f"{shown(self.name)} must be the same on both sides, but its {part} is {shown(mine)} and "
                    f"{shown(theirs)}."
                )
        ends = np.array([self.observed, other.observed])
        low, high = np.fmin(*ends[:, 0]), np.fmax(*ends[:, 1])  # NaN is not known
        return replace(
            self,
            spikes=tuple(sorted({*self.spikes, *other.spikes})),
            observed=(float(low), float(high)),
            support=(min(self.support[0], other.support[0]), max(self.support[1], other.support[1])),
        )

    def settle(self, numbers: FloatArray) -> FloatArray:
        """Return encoded numbers as values that the variable can take: rounded to its step and cut to its support.

        >>> Variable("price", "continuous", support=(0, float("inf")), step=0.05).settle(np.array([0.337, 0.01]))
        array([0.35, 0.  ])
        """
        if self.step:
            numbers = _at_spikes(_multiples(numbers, self.step), self.spikes, self.step)
        return np.clip(numbers, *self.support) if self.is_bounded else numbers

    def encode_value(self, value: object) -> float:
        """Return the number that encodes one native value; NaN for a missing one."""
        if is_missing(value):
            return nan
        if self.categories is not None:
            return self._encode_category(_plain(value))
        if is_temporal(self.dtype):
            return self._encode_time(value)
        if not isinstance(value, (Real, Decimal, np.bool_)):
            raise InputError(
                f"Variable {shown(self.name)} takes numbers; got {shown(value)} of type {type(value).__name__}."
            )
        return float(value)

    def _encode_category(self, value: object) -> float:
        assert self.categories is not None  # the caller checks
        if not isinstance(value, Hashable) or value not in self.categories:
            raise unknown_name(f"category of variable {shown(self.name)}:", value, self.categories)
        return float(self.categories.index(value))

    def _encode_time(self, value: object) -> float:
        try:
            return days_of_value(value, self._zone())
        except (TypeError, ValueError):
            raise InputError(
                f"Variable {shown(self.name)} takes dates, times or ISO text such as '2024-05-31'; got {shown(value)}."
            ) from None

    def decode_value(self, number: float) -> Any:
        """Return the native value of one encoded number; None for NaN."""
        if isnan(number):
            return None
        if self.categories is not None:
            code = int(number)
            if not 0 <= code < len(self.categories):
                last = len(self.categories) - 1
                raise InputError(f"Variable {shown(self.name)} has category codes 0 to {last}; got {number}.")
            return self.categories[code]
        if is_temporal(self.dtype):
            if not isfinite(number):
                return None
            return date_of_days(number) if self.dtype == "date" else time_of_days(number, self._zone())
        if self.kind is Kind.INTEGER and isfinite(number):
            return round(min(max(number, -LARGEST_WHOLE), LARGEST_WHOLE))
        return float(number)

    def _zone(self) -> dt.tzinfo | None:
        zone = zone_of(self.dtype)
        return None if zone is None else time_zone(zone)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that `json` can write."""
        return {
            "name": self.name,
            "kind": str(self.kind),
            "categories": None if self.categories is None else list(self.categories),
            "ordered": self.ordered,
            "spikes": list(self.spikes),
            "observed": [None if isnan(end) else end for end in self.observed],
            "dtype": self.dtype,
        } | self._set_to_dict()

    def _set_to_dict(self) -> dict[str, Any]:
        """Return support, step and `gap_of` if set; without them the form is as before these fields existed."""
        support = [None if isinf(end) else end for end in self.support]
        bounds = ({"support": support} if self.is_bounded else {}) | ({"step": self.step} if self.step else {})
        return bounds if self.gap_of is None else bounds | {"gap_of": self.gap_of}

    @classmethod
    @reading("a variable as written by `Variable.to_dict`")
    def from_dict(cls, fields: Mapping[str, Any]) -> Variable:
        """Return the object that `to_dict` wrote; raise FileFormatError for anything else."""
        low, high = (nan if end is None else float(end) for end in fields["observed"])
        least, most = fields.get("support", (None, None))
        categories = fields["categories"]
        return cls(
            name=fields["name"],
            kind=fields["kind"],
            categories=None if categories is None else tuple(categories),
            ordered=bool(fields["ordered"]),
            spikes=tuple(float(spike) for spike in fields["spikes"]),
            observed=(low, high),
            dtype=fields["dtype"],
            support=(-inf if least is None else float(least), inf if most is None else float(most)),
            step=float(fields.get("step", 0.0)),
            gap_of=fields.get("gap_of"),
        )


@dataclass(frozen=True)
class Schema:
    """The variables of a table in column order, and the frame type in which results are returned.

    Examples
    --------
    >>> schema = Schema((Variable("x", "continuous"), Variable("k", "integer", dtype="int64")))
    >>> schema.names, schema.index("k"), schema["x"].kind
    (('x', 'k'), 1, <Kind.CONTINUOUS: 'continuous'>)
    >>> schema.select(["k"]).names
    ('k',)
    """

    variables: tuple[Variable, ...]
    container: str = "numpy"

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        check_choice("container", self.container, CONTAINERS)
        doubled = duplicates(self.names)
        if doubled:
            raise InputError(f"Variables must differ in name; more than one is called {listed(doubled)}.")
        for variable in self.variables:
            _check_container(variable, self.container)
        doubled = duplicates(variable.gap_of for variable in self.variables if variable.gap_of is not None)
        if doubled:
            raise InputError(
                f"One variable at most may tell the gaps of a column; two tell those of {listed(doubled)}."
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(variable.name for variable in self.variables)

    @property
    def gaps(self) -> dict[str, str]:
        """Name of the variable that tells the gaps of a column, by the column's name; both are in the schema."""
        names = set(self.names)
        return {v.gap_of: v.name for v in self.variables if v.gap_of is not None and v.gap_of in names}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of such a table: all variables but those that tell gaps, unless there are no others."""
        return tuple(v.name for v in self.variables if v.gap_of is None) or self.names

    def index(self, name: str) -> int:
        """Return the position of a variable."""
        try:
            return self._positions[name]
        except (KeyError, TypeError):  # a name may be any object
            raise unknown_name("variable", name, self.names) from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.names)}

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of some variables, in the given order."""
        return Schema(tuple(self[name] for name in names), self.container)

    def joined(self, other: Schema) -> Schema:
        """Return the schema of rows of either: observed ranges and supports as wide as both, spikes of both."""
        if self.names != other.names:
            raise InputError(
                f"The variables must have the same names, in the same order; got {listed(self.names)} and "
                f"{listed(other.names)}."
            )
        return Schema(tuple(a.joined(b) for a, b in zip(self, other, strict=True)), self.container)

    def widened(self, rows: FloatArray) -> Schema:
        """Return the schema with observed ranges that hold encoded rows of shape (n, N) too, within the supports.

        >>> Schema((Variable("x", "continuous", observed=(0, 1)),)).widened(np.array([[2.5], [np.nan]]))["x"].observed
        (0.0, 2.5)
        """
        variables = list(self.variables)
        for n, variable in enumerate(variables):
            seen = rows[np.isfinite(rows[:, n]), n]
            if variable.categories is None and seen.size:
                ends = np.clip([seen.min(), seen.max()], *variable.support).tolist()
                variables[n] = variable.joined(replace(variable, observed=tuple(ends)))
        return Schema(tuple(variables), self.container)

    def settle(self, rows: FloatArray) -> FloatArray:
        """Return encoded rows of shape (n, N) with each cell settled by its variable; see `Variable.settle`."""
        settled = [variable.settle(rows[:, n]) for n, variable in enumerate(self)]
        return np.stack(settled, axis=1) if settled else rows

    def __getitem__(self, name: str) -> Variable:
        return self.variables[self.index(name)]

    def __len__(self) -> int:
        return len(self.variables)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that `json` can write."""
        return {"variables": [variable.to_dict() for variable in self], "container": self.container}

    @classmethod
    @reading("a schema as written by `Schema.to_dict`")
    def from_dict(cls, fields: Mapping[str, Any]) -> Schema:
        """Return the object that `to_dict` wrote; raise FileFormatError for anything else."""
        return cls(tuple(Variable.from_dict(each) for each in fields["variables"]), fields["container"])


def _check_container(variable: Variable, container: str) -> None:
    """Raise if a frame of this type has no column type for the variable; arrays, mappings and pandas hold any."""
    if container not in {"polars", "pyarrow"}:
        return
    labels = variable.categories or ()
    texts = [variable.name, *filter(is_text, labels)]
    alike = (is_text,) if container == "polars" else (is_text, is_boolean, is_number)
    zone = zone_of(variable.dtype)
    if variable.dtype == "categorical" and not any(all(map(kind, labels)) for kind in alike):
        lacks = "categories that are not text" if container == "polars" else "categories of different types"
    elif container == "polars" and zone is not None and OFFSET.fullmatch(zone):
        lacks = "a time zone that is an offset"
    elif not _is_unicode("".join(texts)):
        lacks = "text that is not valid Unicode"
    else:
        return
    raise InputError(f"Variable {shown(variable.name)} has {lacks}, which {container} cannot hold.")


def unused_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken: the one wanted, with as many underscores as it needs.

    >>> unused_name("class", ["class", "class_"])
    'class__'
    """
    names = set(taken)
    while wanted in names:
        wanted += "_"
    return wanted


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, each once.

    >>> duplicates(["a", "b", "a"])
    ['a']
    """
    seen: set[str] = set()
    return list(dict.fromkeys(name for name in names if name in seen or seen.add(name)))  # type: ignore[func-returns-value]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return True


def _multiples(numbers: FloatArray, step: float) -> FloatArray:
    """Return the nearest multiples of a step, each the float nearest to its decimals; zero has no sign."""
    per_unit = round(1 / step)
    if per_unit >= 1 and abs(per_unit * step - 1) < 1e-9:  # 7549 / 100 is 75.49 to the last bit, 7549 * 0.01 is not
        return np.asarray(np.rint(numbers * per_unit) / per_unit + 0.0)
    return np.asarray(np.round(np.rint(numbers / step) * step, 10) + 0.0)


def _at_spikes(numbers: FloatArray, spikes: tuple[float, ...], step: float) -> FloatArray:
    """Return the values, with those that equal a spike up to rounding replaced by that spike."""
    if not spikes:
        return numbers
    points = np.array(spikes)
    right = np.clip(np.searchsorted(points, numbers), 1, len(points) - 1) if len(points) > 1 else 0
    left = np.maximum(right - 1, 0)
    nearest = np.where(numbers - points[left] < points[right] - numbers, points[left], points[right])
    return np.where(np.abs(numbers - nearest) < 1e-6 * step, nearest, numbers)


def as_text(value: Any) -> str:
    """Return a category or cell as text, booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """Return a numpy scalar as a Python one."""
    return value.item() if isinstance(value, np.generic) else value
