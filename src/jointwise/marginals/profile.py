"""Profile: the first pass over a table. It holds the type and distribution of each column and gives schema and axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._checks import (
    check_choice,
    check_integer,
    check_real,
    check_weights,
    listed,
    reading,
    shown,
    unknown_name,
)
from jointwise.axes import MAX_BINS, Axis, BinnedAxis, DiscreteAxis, half_integers, midpoints, snap
from jointwise.exceptions import FileFormatError, InputError
from jointwise.marginals.column import ColumnProfile
from jointwise.tables import read_table
from jointwise.tables.variables import CONTAINERS, EVERYWHERE, Kind, Schema, Variable

if TYPE_CHECKING:
    from jointwise._typing import FloatArray

FORMAT, VERSION = "jointwise.profile", 1
_TAIL = 0.005  # share of rows beyond the evenly spaced edges, on each side


@dataclass(frozen=True)
class Profile:
    """Types and distributions of the columns, from one pass over the rows; profiles of parts of a table add up.

    Parameters
    ----------
    columns : tuple of ColumnProfile
    n_rows : float
        Number of rows, or sum of their weights.
    container : str, optional
        Type of the table: "numpy", "dict", "pandas", "polars" or "pyarrow".

    Examples
    --------
    >>> first = Profile.of({"age": [31, 28], "job": ["cook", "nurse"]})
    >>> second = Profile.of({"age": [45, None], "job": ["cook", None]})
    >>> schema = (first + second).schema()
    >>> [(variable.name, str(variable.kind), variable.categories) for variable in schema]
    [('age', 'integer', None), ('job', 'categorical', ('cook', 'nurse'))]
    """

    columns: tuple[ColumnProfile, ...]
    n_rows: float
    container: str | None

    @classmethod
    def empty(cls) -> Profile:
        """Return the profile of no rows, the zero of `+`."""
        return cls((), 0.0, None)

    @classmethod
    def of(cls, data: Any, sample_weight: Any = None) -> Profile:
        """Return the profile of a table.

        Parameters
        ----------
        data : Table, or anything `read_table` takes, with n rows
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A whole number counts as that many equal rows; a row of weight 0 does not count.
        """
        table = read_table(data)
        weights = check_weights(sample_weight, table.n_rows)
        if weights is not None and not np.all(weights > 0):
            table, weights = table.rows(weights > 0), weights[weights > 0]
        columns = tuple(ColumnProfile.of(column, weights) for column in table)
        return cls(columns, float(table.n_rows if weights is None else weights.sum()), table.container)

    def __add__(self, other: object) -> Profile:
        if not isinstance(other, Profile):
            return NotImplemented
        if self.container is None or other.container is None:
            return other if self.container is None else self
        if self.container != other.container:
            raise InputError(
                f"Profiles of tables of different types do not add: {self.container} and {other.container}."
            )
        if self.names != other.names:
            raise InputError(
                "Profiles must have the same columns in the same order to add: "
                f"{listed(self.names)} and {listed(other.names)}."
            )
        columns = tuple(a + b for a, b in zip(self, other, strict=True))
        return Profile(columns, self.n_rows + other.n_rows, self.container)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that `json` can write, so that profiles made in different places can be added up.

        Up to 65,536 different numbers of a column are written as they are, each with its count, and all labels; what
        stood together in one row is not.
        """
        columns = [column.to_dict() for column in self]
        kind = {"format": FORMAT, "version": VERSION}
        return kind | {"columns": columns, "n_rows": self.n_rows, "container": self.container}

    @classmethod
    @reading("a profile as written by `Profile.to_dict`")
    def from_dict(cls, fields: Mapping[str, Any]) -> Profile:
        """Return the profile that `to_dict` wrote, checked; raise FileFormatError for anything else.

        >>> import json
        >>> sent = [json.dumps(Profile.of({"age": ages}).to_dict()) for ages in ([31, 28], [45, None])]
        >>> both = sum((Profile.from_dict(json.loads(text)) for text in sent), Profile.empty())
        >>> both.n_rows, both.schema()["age"].observed
        (4.0, (28.0, 45.0))
        """
        if not isinstance(fields, Mapping) or fields.get("format") != FORMAT:
            raise FileFormatError(f"A profile is a mapping with 'format': {FORMAT!r}.")
        if fields.get("version") != VERSION:
            raise FileFormatError(
                f"This profile is of version {shown(fields.get('version'))}; this package reads version {VERSION}."
            )
        columns = tuple(ColumnProfile.from_dict(column) for column in fields["columns"])
        n_rows, container = check_real("n_rows", fields["n_rows"]), fields["container"]
        if len({column.name for column in columns}) < len(columns):
            raise FileFormatError("The columns of a profile must differ in name.")
        if container is not None:
            check_choice("container", container, CONTAINERS)
        elif columns or n_rows:
            raise FileFormatError("A profile without a type of table is one of no rows.")
        if not 0 <= n_rows < inf or any(abs(c.n + c.n_missing - n_rows) > 1e-6 * n_rows for c in columns):
            raise FileFormatError("Each column of a profile must hold as many rows as the profile.")
        return cls(columns, n_rows, container)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def __iter__(self) -> Iterator[ColumnProfile]:
        return iter(self.columns)

    def identifiers(self) -> tuple[str, ...]:
        """Return the columns that only name the rows, see `ColumnProfile.names_rows`; none if all columns do."""
        named = tuple(column.name for column in self if column.names_rows())
        return named if len(named) < len(self.columns) else ()

    def with_gaps(self) -> tuple[str, ...]:
        """Return the columns that have missing cells and values.

        >>> Profile.of({"a": [1, None], "b": [1, 2]}).with_gaps()
        ('a',)
        """
        return tuple(column.name for column in self if column.n_missing > 0 and column.n > 0)

    def repeated(self, least: float) -> dict[str, dict[float, float]]:
        """Return, by column, the numbers that at least this share of the rows hold, each with its share."""
        found = {}
        for column in self.columns:
            values, counts = column.sketch.ends()
            shares = counts / max(column.sketch.n, 1e-300)
            found[column.name] = {float(values[i]): float(shares[i]) for i in np.flatnonzero(shares >= least)}
        return found

    def without(self, names: Collection[str]) -> Profile:
        """Return the profile of the other columns."""
        self._check_known("column", names)
        return replace(self, columns=tuple(column for column in self if column.name not in names))

    def schema(
        self,
        kinds: Mapping[str, str] | None = None,
        *,
        supports: Mapping[str, tuple[Any, Any] | None] | None = None,
        steps: Mapping[str, float] | None = None,
    ) -> Schema:
        """Return what each column is.

        Text, booleans and categoricals are categorical. Integers are integer, and so are columns of floats that are
        all whole and at most 2**52 in size, with or without missing values (results are floats again). Other numbers
        and dates are continuous. An integer variable gives a fraction probability zero: if fractions may occur, set
        the kind to "continuous".

        Parameters
        ----------
        kinds : mapping, optional
            Kinds by name that replace those found: "continuous", "integer", "categorical", or "ordinal" for a
            categorical variable whose order has a meaning.
        supports : mapping, optional
            Bounds by name that replace those found: (low, high) with None for an open end; None for no bounds.
        steps : mapping, optional
            Rounding steps of continuous variables by name that replace those found; zero for no rounding.
        """
        if self.container is None or not self.n_rows:
            raise InputError(
                f"Found a table with 0 sample(s) (shape=(0, {len(self.columns)})) while a minimum of 1 is required."
            )
        kinds = self._by_name("kinds", kinds, "kinds")
        for name, kind in kinds.items():
            check_choice(f"kinds[{shown(name)}]", kind, [*Kind, "ordinal"])
        variables = {column.name: column.variable(kinds.get(column.name)) for column in self}
        for name, support in self._by_name("supports", supports, "(low, high)").items():
            variables[name] = replace(variables[name], support=_support(variables[name], support))
        for name, step in self._by_name("steps", steps, "numbers").items():
            variables[name] = replace(variables[name], step=check_real(f"steps[{shown(name)}]", step))
        return Schema(tuple(variables.values()), self.container)

    def _by_name(self, argument: str, given: object, values: str) -> dict[str, Any]:
        if given is not None and not isinstance(given, Mapping):
            raise InputError(f"`{argument}` must be a mapping from column names to {values}; got {shown(given)}.")
        self._check_known(f"variable in `{argument}`:", given or {})
        return dict(given or {})

    def _check_known(self, what: str, names: Iterable[str]) -> None:
        known = set(self.names)
        for name in names:
            if name not in known:
                raise unknown_name(what, name, self.names)

    def axes(self, schema: Schema, n_bins: int, *, fine: Collection[str] = ()) -> tuple[Axis, ...]:
        """Return the axis of each variable of a schema, with a bin for each spike.

        Half of the edges are evenly spaced between the 0.5% and 99.5% quantiles, which shows the shape of a density.
        The other half have equal counts between them, which resolves skewed and heavy-tailed columns. All lie midway
        between observed values. Integers in a range of at most `n_bins` values have a bin each.

        Parameters
        ----------
        schema : Schema
            From `schema`; gives the kinds, categories and spikes.
        n_bins : int
            Largest number of intervals of a variable.
        fine : collection of str
            Numeric columns whose axis has a bin for each group of the column's sketch, so for each different value if
            they are at most some 65,000. The bin's centre is that value, or the middle of its group. Its edges include
            those of the axis that the column has otherwise, so `Rows.regrouped` gives that axis's codes too.

        Examples
        --------
        >>> profile = Profile.of({"a": [1.5, 2.0, 4.0, 5.0]})
        >>> coarse, fine = (profile.axes(profile.schema(), 2, fine=names)[0] for names in ((), ("a",)))
        >>> coarse.n_bins, fine.edges, fine.centres
        (2, array([1.75, 3.  , 4.5 ]), array([1.5, 2. , 4. , 5. ]))
        """
        n_bins = check_integer("n_bins", n_bins, 1)
        self._check_known("column", schema.columns)
        known, fine = set(schema.names), list(fine)
        for name in fine:
            if name not in known:
                raise unknown_name("column in `fine`:", name, schema.names)
        profile = dict(zip(self.names, self.columns, strict=True))
        axes = {variable.name: _axis(variable, profile.get(variable.name), n_bins) for variable in schema}
        variables = {variable.name: variable for variable in schema}
        for name in fine:
            axes[name] = _fine_axis(variables[name], profile[name], axes[name])
        return tuple(axes.values())


def _support(variable: Variable, given: Any) -> tuple[float, float]:
    if given is None:
        return EVERYWHERE
    if variable.categories is not None:
        raise InputError(
            f"supports[{shown(variable.name)}] is for a categorical variable; only a number can have a support."
        )
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise InputError(
            f"supports[{shown(variable.name)}] must be (low, high), with None for an open end, or None; got "
            f"{shown(given)}."
        )
    low, high = (variable.encode_value(end) if end is not None else nan for end in given)
    return -inf if isnan(low) else low, inf if isnan(high) else high


def _axis(variable: Variable, column: ColumnProfile | None, n_bins: int) -> Axis:
    """Return the axis of a variable; one that tells the gaps of a column has no column of its own."""
    if variable.categories is not None:
        return DiscreteAxis(np.arange(len(variable.categories), dtype=np.float64))
    assert column is not None  # only categorical variables have none
    if variable.kind is Kind.INTEGER:
        low, high = column.sketch.min, column.sketch.max
        if high - low < n_bins:  # spikes need no bins of their own here
            return BinnedAxis(np.arange(low, high) + 0.5)
    edges = _edges(column, n_bins, variable.spikes)
    return BinnedAxis(half_integers(edges) if variable.kind is Kind.INTEGER else edges, np.array(variable.spikes))


def _fine_axis(variable: Variable, column: ColumnProfile, coarse: Axis) -> BinnedAxis:
    """Return the axis with a bin for each group of a column's sketch and all edges of its coarse axis."""
    if not isinstance(coarse, BinnedAxis):
        raise InputError(f"`fine` takes columns of numbers only; {shown(variable.name)} is categorical.")
    low, high, _ = column.sketch.without(coarse.spikes.tolist())
    edges = midpoints(low, high)
    if variable.kind is Kind.INTEGER:
        around = np.concatenate([coarse.spikes - 0.5, coarse.spikes + 0.5])  # a spike is told from its neighbours
        edges = np.union1d(half_integers(edges), around)
    edges = _fewer(np.union1d(edges, coarse.edges), coarse.edges, low, high, MAX_BINS - len(coarse.spikes) - 1)
    axis = BinnedAxis(edges, coarse.spikes)
    return replace(axis, centres=_centres(axis, low, high))


def _fewer(edges: FloatArray, kept: FloatArray, low: FloatArray, high: FloatArray, most: int) -> FloatArray:
    """Return at most this many of the edges, without those between the closest groups; some must be kept."""
    if len(edges) <= most:
        return edges
    above = np.clip(np.searchsorted(high, edges, side="right"), 1, len(high) - 1)
    width = high[above] / 2 - low[above - 1] / 2  # of both groups together; the difference itself could overflow
    width[np.isin(edges, kept)] = np.inf
    return np.delete(edges, np.argsort(width, kind="stable")[: len(edges) - most])


def _centres(axis: BinnedAxis, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the middle of the values in each interval; of one without values, its middle or finite end."""
    first, last = axis.upper.copy(), axis.lower.copy()
    place = np.searchsorted(axis.edges, high)
    np.minimum.at(first, place, low)
    np.maximum.at(last, place, high)
    empty = np.bincount(place, minlength=axis.n_intervals) == 0
    first[empty], last[empty] = axis.lower[empty], axis.upper[empty]
    first, last = np.where(np.isinf(first), last, first), np.where(np.isinf(last), first, last)
    first, last = (np.where(np.isinf(end), 0.0, end) for end in (first, last))  # one interval without values
    middle = first / 2 + last / 2
    return np.clip(middle, np.nextafter(axis.lower, np.inf), axis.upper)


def _edges(column: ColumnProfile, n_bins: int, spikes: tuple[float, ...]) -> FloatArray:
    low, high, counts = column.sketch.without(spikes)
    if len(low) <= n_bins:
        return midpoints(low, high)
    rank = np.cumsum(counts)
    start = low[np.searchsorted(rank, _TAIL * rank[-1])]
    stop = high[np.searchsorted(rank, (1 - _TAIL) * rank[-1])]
    even = snap(BinnedAxis.equal_width(start, stop, n_bins // 2 + 1).edges, low, high)
    return np.union1d(even, BinnedAxis.quantiles(low, counts, n_bins - len(even), upper=high).edges)
