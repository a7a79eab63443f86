"""Variables and schemas: what a column of a table is, and how its values become numbers.

Inside the package every cell is one float64, with NaN for a missing value: a number is itself, a date or time
is days since 1970-01-01 (UTC where it has a zone), a category is its position in `Variable.categories`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from math import inf, isfinite, isinf, isnan, nan
from numbers import Real
from typing import Any

import numpy as np

from jointwise._checks import check_choice, listed, reading, shown, unknown_name
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.tables.times import OFFSET, date_of_days, days_of_value, time_of_days, time_zone

CONTAINERS = ("numpy", "dict", "pandas", "polars", "pyarrow")
DTYPES = ("float64", "int64", "bool", "string", "categorical", "enum", "date")
UNITS = ("s", "ms", "us", "ns")
OUTSIDE = -1.0  # code of a category that the schema does not know
EVERYWHERE = (-inf, inf)  # the support of a variable without bounds
MAX_ENUMERATED = 32  # integers with at most so many values between their extremes have one atom per value
_DATETIME = re.compile(r"datetime\[(s|ms|us|ns)(?:,([^\]]+))?\]")
LARGEST_WHOLE = 2**53  # heavy tails may reach beyond the integers that float64 and int64 both hold


class Kind(StrEnum):
    """What a variable is: this settles its base measure."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    CATEGORICAL = "categorical"


def _is_text(category: object) -> bool:
    return isinstance(category, str)


def _is_boolean(category: object) -> bool:
    return isinstance(category, bool)


def _is_integer(category: object) -> bool:
    return isinstance(category, int) and not isinstance(category, bool) and -(2**63) <= category < 2**63


def _is_number(category: object) -> bool:
    return isinstance(category, float) or _is_integer(category)


# Logical types of numbers beside those of dates and times, which are numbers too.
NUMBER_TYPES = {Kind.CONTINUOUS: ("float64",), Kind.INTEGER: ("int64", "float64")}
# Logical types of categories, and what each can hold, in words and as a test.
CATEGORY_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "float64": ("numbers", _is_number),
    "int64": ("integers of 64 bits", _is_integer),
    "bool": ("booleans", _is_boolean),
    "string": ("text", _is_text),
    "enum": ("text", _is_text),
    "categorical": ("text, booleans or numbers", lambda _: True),
}


def parse_datetime(dtype: str) -> tuple[str, str | None] | None:
    """Split "datetime[us,Europe/Paris]" into unit and zone; None for any other logical type.

    >>> parse_datetime("datetime[ns]"), parse_datetime("date")
    (('ns', None), None)
    """
    match = _DATETIME.fullmatch(dtype)
    return (match[1], match[2]) if match else None


def is_temporal(dtype: str) -> bool:
    """Whether values of this logical type are dates or times."""
    return dtype == "date" or parse_datetime(dtype) is not None


def is_missing(value: object) -> bool:
    """Whether a scalar stands for "not observed": None, NaN, NaT, or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing(np.datetime64("NaT")), is_missing("")
    (True, True, True, False)
    """
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating)) and isnan(value)


def category_order(category: Any) -> tuple[str, Any]:
    """Sort key for categories: by type first, because text and numbers do not compare."""
    return ("text" if isinstance(category, str) else "number", category)


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
        Whether the order of the categories means something.
    spikes : tuple of float
        Values of a continuous or integer variable that have a probability of their own.
    observed : tuple of float
        Smallest and largest encoded value seen.
    support : tuple of float
        Smallest and largest value that the variable can take; infinite where there is no bound.
    step : float
        Values of a continuous variable are whole multiples of this; zero where they are not rounded.
    dtype : str
        Logical type of the values as they came: "float64", "int64", "bool", "string", "categorical", "enum",
        "date", "datetime[unit]" or "datetime[unit,zone]". Categories that are not numbers make of "float64" the type
        that holds them: "bool", "string" or "categorical".

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
        self._zone()  # refuses one that does not exist
        self._check_categories()
        object.__setattr__(self, "spikes", tuple(sorted(float(spike) for spike in self.spikes)))
        if self.spikes and self.kind is Kind.CATEGORICAL:
            raise InputError(f"Variable {shown(self.name)} is categorical: only a number can have spikes.")
        self._check_support_and_step()
        low, high = self.observed
        # One NaN object for "unknown", so that equal variables compare equal.
        ends = tuple(nan if isnan(end) else float(end) for end in (low, high))
        object.__setattr__(self, "observed", ends)
        self._check_type()

    def _check_type(self) -> None:
        """Refuse a logical type that cannot hold values of the kind, or the categories."""
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

    def _holds(self, dtype: str) -> bool:
        """Whether values of a logical type can be these categories."""
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
                f"Variable {self.name!r}: `support` must be (low, high) with low < high; got {(low, high)}."
            )
        if not 0 <= self.step < inf:
            raise InputError(f"Variable {self.name!r}: `step` must be zero or a positive number; got {self.step}.")
        if self.kind is Kind.CATEGORICAL and (self.is_bounded or self.step):
            raise InputError(f"Variable {self.name!r} is categorical: only a number can have a support or a step.")
        if self.kind is Kind.INTEGER and self.step:
            raise InputError(f"Variable {self.name!r} is integer: its step is one, so leave `step` out.")
        low_seen, high_seen = self.observed
        if low_seen < low or high_seen > high:  # unknown ends are NaN, which compares as no
            raise InputError(
                f"Variable {self.name!r}: `support` must hold the values seen, from {low_seen:g} to {high_seen:g}; got "
                f"{low:g} to {high:g}."
            )

    @property
    def is_bounded(self) -> bool:
        """Whether the support has an end."""
        return self.support != EVERYWHERE

    @property
    def is_enumerated(self) -> bool:
        """Whether this is an integer with so few values in its range that each gets an atom of its own."""
        low, high = self.observed
        return self.kind is Kind.INTEGER and high - low < MAX_ENUMERATED

    def shown_support(self) -> str:
        """Return the support as a question would name it, empty where there are no bounds.

        >>> Variable("share", "continuous", support=(0, 1)).shown_support()
        '0..1'
        """
        low, high = ("" if isinf(end) else _short(self.decode_value(end)) for end in self.support)
        return f"{low}..{high}" if self.is_bounded else ""

    def settle(self, numbers: FloatArray) -> FloatArray:
        """Return encoded numbers as values that the variable can take: rounded to its step, inside its support.

        >>> Variable("price", "continuous", support=(0, float("inf")), step=0.05).settle(np.array([0.337, 0.01]))
        array([0.35, 0.  ])
        """
        if self.step:
            numbers = _at_spikes(_multiples(numbers, self.step), self.spikes, self.step)
        return np.clip(numbers, *self.support) if self.is_bounded else numbers

    def encode_value(self, value: object) -> float:
        """Turn one native value into its number; a missing one into NaN."""
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
        assert self.categories is not None  # the caller asked
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
        """Turn one encoded number into a native value; NaN into None."""
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
        parsed = parse_datetime(self.dtype)
        return None if parsed is None or parsed[1] is None else time_zone(parsed[1])

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
        } | self._bounds_to_dict()

    def _bounds_to_dict(self) -> dict[str, Any]:
        """Return support and step, each where there is one: files without are as they were before these existed."""
        support = [None if isinf(end) else end for end in self.support]
        return ({"support": support} if self.is_bounded else {}) | ({"step": self.step} if self.step else {})

    @classmethod
    @reading("a variable as written by `Variable.to_dict`")
    def from_dict(cls, fields: Mapping[str, Any]) -> Variable:
        """Read what `to_dict` wrote; FileFormatError where it is something else."""
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
        )


@dataclass(frozen=True)
class Schema:
    """The variables of a table in column order, and the frame type results come back in.

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

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(variable.name for variable in self.variables)

    def index(self, name: str) -> int:
        """Return the position of a variable."""
        try:
            return self.names.index(name)
        except ValueError:
            raise unknown_name("variable", name, self.names) from None

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of some variables, in the order asked for."""
        return Schema(tuple(self[name] for name in names), self.container)

    def settle(self, rows: FloatArray) -> FloatArray:
        """Return encoded rows with each cell a value that its variable can take; shape (n, N)."""
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
        """Read what `to_dict` wrote; FileFormatError where it is something else."""
        return cls(tuple(Variable.from_dict(each) for each in fields["variables"]), fields["container"])


def _check_container(variable: Variable, container: str) -> None:
    """Refuse a variable that frames of this type have no column for; arrays, mappings and pandas have one for all."""
    if container not in {"polars", "pyarrow"}:
        return
    labels = variable.categories or ()
    texts = [variable.name, *filter(_is_text, labels)]
    alike = (_is_text,) if container == "polars" else (_is_text, _is_boolean, _is_number)
    zone = (parse_datetime(variable.dtype) or (None, None))[1]
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
    """Return the nearest multiples of a step, each the float that its decimals are read as; zero has no sign."""
    per_unit = round(1 / step)
    if per_unit >= 1 and abs(per_unit * step - 1) < 1e-9:  # 7549 / 100 is 75.49 to the last bit, 7549 * 0.01 is not
        return np.asarray(np.rint(numbers * per_unit) / per_unit + 0.0)
    return np.asarray(np.round(np.rint(numbers / step) * step, 10) + 0.0)


def _at_spikes(numbers: FloatArray, spikes: tuple[float, ...], step: float) -> FloatArray:
    """Return values that are spikes but for rounding as the spikes themselves, whose last bits may be others."""
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
    """Return a numpy scalar as the Python one it holds."""
    return value.item() if isinstance(value, np.generic) else value
