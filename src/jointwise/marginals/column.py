"""ColumnProfile: type and distribution of one column, from one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._checks import check_real, listed, reading, shown
from jointwise.axes import MAX_BINS
from jointwise.exceptions import FileFormatError, InputError
from jointwise.marginals.sketch import ValueSketch
from jointwise.marginals.support import evident_support
from jointwise.tables.dtypes import UNITS, category_order, datetime_dtype, is_temporal, parse_datetime
from jointwise.tables.variables import MAX_ENUMERATED, Kind, Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jointwise._typing import FloatArray
    from jointwise.tables import Column

NO_VALUE = "null"  # logical type of a column without a single value; it is compatible with any other
LARGEST_INTEGER = 2.0**52  # beyond it float64 has no half-integers
# A text column names the rows if it has at least this many different texts, and more than this share of the rows.
LEAST_NAMES, NAMES_SHARE = 50, 0.5


@dataclass(frozen=True)
class ColumnProfile:
    """Type, missing values and distribution of one column; a commutative monoid under `+`.

    Parameters
    ----------
    name : str
    dtype : str
        Logical type as in `Variable.dtype`, or "null" if no row has a value.
    n_missing : float
        Number of rows without a value, or sum of their weights.
    sketch : ValueSketch
        Distribution of numbers and dates.
    counts : mapping
        Number of rows with each label, for columns of labels; empty if there are more than `MAX_BINS` labels.
    declared : tuple, optional
        Labels in the order that the column's type declares, if it does.
    ordered : bool
        Whether that order has a meaning.
    n_crowded : float
        Number of rows with a value, or sum of their weights, if there are more than `MAX_BINS` labels; else zero.
    """

    name: str
    dtype: str
    n_missing: float
    sketch: ValueSketch = field(default_factory=ValueSketch.empty)
    counts: Mapping[Any, float] = field(default_factory=dict)
    declared: tuple[Any, ...] | None = None
    ordered: bool = False
    n_crowded: float = 0.0

    def __post_init__(self) -> None:
        # a column that names the rows must not fill the memory
        if self.n_crowded or len(self.counts) > MAX_BINS:
            object.__setattr__(self, "n_crowded", self.n_crowded + float(sum(self.counts.values())))
            object.__setattr__(self, "counts", {})
            object.__setattr__(self, "declared", None)

    @classmethod
    def of(cls, column: Column, weights: FloatArray | None = None) -> ColumnProfile:
        """Return the profile of a column, with positive weights if any."""
        missing = np.isnan(column.values)
        n_missing = float(missing.sum() if weights is None else weights[missing].sum())
        values = column.values[~missing]
        weights = None if weights is None else weights[~missing]
        if not len(values) and not column.declared:
            return cls(column.name, NO_VALUE, n_missing)
        if column.labels is None:
            if not np.all(np.isfinite(values)):
                raise InputError(f"Input X contains infinity: column {shown(column.name)} must hold finite numbers.")
            return cls(column.name, column.dtype, n_missing, sketch=ValueSketch.of(values, weights))
        found = np.bincount(values.astype(np.intp), weights, minlength=len(column.labels))
        counts = {label: n for label, n in zip(column.labels, found.tolist(), strict=True) if n}
        return cls(
            column.name,
            column.dtype,
            n_missing,
            counts=counts,
            declared=column.labels if column.declared else None,
            ordered=column.ordered,
        )

    def __add__(self, other: object) -> ColumnProfile:
        if not isinstance(other, ColumnProfile):
            return NotImplemented
        counts = dict(self.counts)
        for label, n in other.counts.items():
            counts[label] = counts.get(label, 0) + n
        declared, ordered = self._common_order(other)
        return ColumnProfile(
            self.name,
            _common_type(self, other),
            self.n_missing + other.n_missing,
            self.sketch + other.sketch,
            counts,
            declared,
            ordered,
            self.n_crowded + other.n_crowded,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that `json` can write."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "n_missing": self.n_missing,
            "sketch": self.sketch.to_dict(),
            "labels": list(self.counts),
            "counts": list(self.counts.values()),
            "declared": None if self.declared is None else list(self.declared),
            "ordered": self.ordered,
            "n_crowded": self.n_crowded,
        }

    @classmethod
    @reading("the profile of a column as written by `ColumnProfile.to_dict`")
    def from_dict(cls, fields: Mapping[str, Any]) -> ColumnProfile:
        """Return the profile that `to_dict` wrote, checked; raise FileFormatError for anything else."""
        name, dtype, ordered = fields["name"], fields["dtype"], fields["ordered"]
        if not isinstance(name, str) or not isinstance(dtype, str) or not isinstance(ordered, bool):
            raise FileFormatError("The name and type of a column are text, and `ordered` is true or false.")
        labels, declared = fields["labels"], fields["declared"]
        known = list(dict.fromkeys([*labels, *(declared or ())]))
        if len(known) > 2 * MAX_BINS or len(set(labels)) < len(labels):
            raise FileFormatError(f"A column has at most {MAX_BINS:,} labels, each once.")
        counts = [check_real("counts", n) for n in fields["counts"]]
        missing, crowded = (check_real(part, fields[part]) for part in ("n_missing", "n_crowded"))
        if not all(0 <= n < inf for n in (*counts, missing, crowded)) or not all(counts):
            raise FileFormatError("Counts must be finite; those of labels positive, the others not negative.")
        sketch = ValueSketch.from_dict(fields["sketch"])
        if sum([bool(known), bool(len(sketch.keys)), bool(crowded)]) != (dtype != NO_VALUE):
            raise FileFormatError("A column holds numbers, labels, too many labels, or nothing.")
        if dtype != NO_VALUE:  # refuses labels and types that cannot be
            kind = Kind.INTEGER if dtype == "int64" else Kind.CONTINUOUS if len(sketch.keys) else Kind.CATEGORICAL
            Variable(name, kind, categories=None if len(sketch.keys) else tuple(known) or ("a",), dtype=dtype)
        by_label = dict(zip(labels, counts, strict=True))
        order = None if declared is None else tuple(declared)
        return cls(name, dtype, missing, sketch, by_label, order, ordered, crowded)

    def _common_order(self, other: ColumnProfile) -> tuple[tuple[Any, ...] | None, bool]:
        """Return the declared labels of both; if they differ, all of them sorted."""
        if NO_VALUE in {self.dtype, other.dtype}:
            known = other if self.dtype == NO_VALUE else self
            return known.declared, known.ordered
        if self.declared == other.declared and self.ordered == other.ordered:
            return self.declared, self.ordered
        if self.ordered or other.ordered:
            raise InputError(
                f"Column {shown(self.name)} has ordered categories that differ between parts of the table: "
                f"{listed(self.declared or ())} and {listed(other.declared or ())}. Declare the same in all."
            )
        if self.declared is None or other.declared is None:
            return None, False
        both = {*self.declared, *other.declared}
        return tuple(sorted(both, key=category_order)), False

    @property
    def n(self) -> float:
        """Number of rows with a value, or sum of their weights."""
        return self.sketch.n + float(sum(self.counts.values())) + self.n_crowded

    def names_rows(self) -> bool:
        """Return whether the column only names the rows: a name, an address, a number 1, 2, 3, ...

        Text names the rows if there are at least 50 different texts, and more than half as many as rows. Whole numbers
        do if none repeats and they fill the range from about zero to their number; with weights this is not found.

        >>> from jointwise.marginals import Profile
        >>> names = [f"row {i}" for i in range(100)]
        >>> Profile.of({"id": range(100), "name": names, "x": [0.5, 1.5] * 50}).identifiers()
        ('id', 'name')
        """
        if self.n_crowded:
            return True
        if self.counts and self.dtype == "string":
            counts = np.fromiter(self.counts.values(), dtype=np.float64)
            # fractional counts come from weights; the smallest is taken as the weight of one row
            n_rows = counts.sum() / (1.0 if np.all(counts == np.rint(counts)) else counts.min())
            return bool(len(counts) >= LEAST_NAMES and len(counts) > NAMES_SHARE * n_rows)
        return self.dtype in {"int64", "float64"} and self.sketch.is_numbering(LEAST_NAMES)

    def variable(self, kind: str | None = None) -> Variable:
        """Return the column's variable, of the given kind or else of the kind found."""
        if not self.n:
            raise InputError(f"Column {shown(self.name)} has no observed value; drop it, or give it values.")
        if self.n_crowded:
            raise _too_many(self.name, f"more than {MAX_BINS}")
        if self.counts:
            return self._labelled(kind)
        if kind is None:
            # floats that are all whole are integers, as those with missing values often are
            whole = self.dtype == "float64" and self.sketch.is_integral and self._largest() <= LARGEST_INTEGER
            kind = Kind.INTEGER if self.dtype == "int64" or whole else Kind.CONTINUOUS
        if kind in {Kind.CATEGORICAL, "ordinal"}:
            return self._numbers_as_categories(ordered=kind == "ordinal")
        return self._integer() if kind == Kind.INTEGER else self._continuous()

    def _integer(self) -> Variable:
        self._check_integer()
        observed = (self.sketch.min, self.sketch.max)
        variable = Variable(self.name, Kind.INTEGER, observed=observed, dtype=self.dtype)
        if variable.is_enumerated:
            # counts are not negative; above, a value that no row has met may still come
            return replace(variable, support=(evident_support(self.sketch, ())[0], inf))
        spikes = self.sketch.spikes(MAX_ENUMERATED)
        return replace(variable, spikes=spikes, support=evident_support(self.sketch, spikes))

    def _continuous(self) -> Variable:
        spikes = self.sketch.spikes()
        is_time = is_temporal(self.dtype)
        # integers declared continuous: results may be fractions
        dtype = "float64" if self.dtype == "int64" else self.dtype
        return Variable(
            self.name,
            Kind.CONTINUOUS,
            spikes=spikes,
            observed=(self.sketch.min, self.sketch.max),
            dtype=dtype,
            support=evident_support(self.sketch, spikes, natural=not is_time),
            step=float(dtype == "date") if is_time else 0.0 if self.sketch.is_integral else self.sketch.step,
        )

    def _labelled(self, kind: str | None) -> Variable:
        if kind in {Kind.CONTINUOUS, Kind.INTEGER}:
            raise InputError(
                f"Column {shown(self.name)} holds {self.dtype} values and cannot be {kind}; convert it to numbers "
                "first."
            )
        labels = (False, True) if self.dtype == "bool" else tuple(sorted(self.counts, key=category_order))
        categories = self.declared or labels
        ordered = self.ordered if kind is None else kind == "ordinal"
        return self._categorical(categories, ordered=ordered)

    def _numbers_as_categories(self, *, ordered: bool) -> Variable:
        if is_temporal(self.dtype):
            raise InputError(
                f"Column {shown(self.name)} holds dates and cannot be categorical; convert it to text first."
            )
        if not self.sketch.exact or len(self.sketch.values) > MAX_BINS:
            raise InputError(
                f"Column {shown(self.name)} has too many different numbers to be categorical (over {MAX_BINS})."
            )
        if self.dtype == "int64":
            self._check_integer()  # integers that float64 cannot tell apart would become one category
        convert = int if self.dtype == "int64" else float
        return self._categorical(tuple(convert(value) for value in self.sketch.values), ordered=ordered)

    def _categorical(self, categories: tuple[Any, ...], *, ordered: bool) -> Variable:
        if len(categories) > MAX_BINS:
            raise _too_many(self.name, len(categories))
        return Variable(
            self.name,
            Kind.CATEGORICAL,
            categories=categories,
            ordered=ordered,
            observed=(0.0, len(categories) - 1.0),
            dtype=self.dtype,
        )

    def _largest(self) -> float:
        return max(-self.sketch.min, self.sketch.max)

    def _check_integer(self) -> None:
        if not self.sketch.is_integral:
            raise InputError(f"Column {shown(self.name)} holds fractions and cannot be integer; round it first.")
        if self._largest() > LARGEST_INTEGER:
            raise InputError(
                f"Column {shown(self.name)} holds integers beyond 2**52, too large to tell apart; drop it if it "
                f"is an identifier, or pass kinds={{{shown(self.name)}: 'continuous'}}."
            )


def _too_many(name: str, n_categories: object) -> InputError:
    return InputError(
        f"Column {shown(name)} has {n_categories} different values; a categorical variable can have at most {MAX_BINS}."
        f" Drop it if it is an identifier, merge rare values, or convert it to numbers and pass kinds={{{shown(name)}: "
        "'continuous'}."
    )


def _common_type(a: ColumnProfile, b: ColumnProfile) -> str:
    """Return the logical type that holds the values of both columns."""
    types = {a.dtype, b.dtype} - {NO_VALUE}
    if len(types) < 2:
        return next(iter(types), NO_VALUE)
    if types == {"int64", "float64"}:
        return "float64"
    if types <= {"string", "categorical", "enum"}:
        return "categorical"
    times = [parse_datetime(dtype) for dtype in sorted(types)]
    if all(is_temporal(dtype) for dtype in types):
        zones = {time[1] if time else None for time in times}
        if len(zones) == 1:
            unit = max((time[0] for time in times if time), key=UNITS.index)
            return datetime_dtype(unit, zones.pop())
    raise InputError(
        f"Column {shown(a.name)} holds {a.dtype} values in one part of the table and {b.dtype} in another; "
        "convert them to one type."
    )
