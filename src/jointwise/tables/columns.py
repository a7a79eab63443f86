"""Columns: one column of any library as float64 numbers with a logical type.

A column is read once into a `Column`; profiles and encoding see only that.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Complex, Integral, Real
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from jointwise._checks import listed, shown
from jointwise.exceptions import CellTypeError, InputError
from jointwise.tables.dtypes import category_order, datetime_dtype, is_missing
from jointwise.tables.times import days_of_times, time_unit
from jointwise.tables.variables import Kind, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jointwise._typing import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class Column:
    """One column as numbers.

    Parameters
    ----------
    name : str
    dtype : str
        Logical type as in `Variable.dtype`.
    values : array of shape (n,)
        Numbers, or days for dates, or positions in `labels`; NaN where missing.
    labels : tuple, optional
        What the positions stand for, where the column holds labels instead of numbers.
    declared : bool
        Whether the column's own type declares the labels and their order. Otherwise the labels are those that occur,
        sorted.
    ordered : bool
        Whether the declared order means something.
    """

    name: str
    dtype: str
    values: FloatArray
    labels: tuple[Any, ...] | None = None
    declared: bool = False
    ordered: bool = False


def read_array(name: str, values: AnyArray) -> Column:
    """Read a one-dimensional numpy array of any type.

    >>> column = read_array("size", np.array(["S", "L", None, "S"], dtype=object))
    >>> column.dtype, column.labels, column.values
    ('string', ('L', 'S'), array([ 1.,  0., nan,  1.]))
    """
    kind = values.dtype.kind
    if kind in "fiu":
        return Column(name, "float64" if kind == "f" else "int64", values.astype(np.float64))
    if kind == "b":
        return Column(name, "bool", values.astype(np.float64), (False, True))
    if kind == "U":
        return _text(name, values.tolist())
    if kind == "M":
        return _times(name, values)
    if kind in "OT":
        return _objects(name, values.astype(object))
    if kind == "c":
        raise CellTypeError(f"Complex data not supported: column {shown(name)} holds complex numbers.")
    raise _unsupported(name, str(values.dtype))


def read_series(name: str, series: nw.Series[Any]) -> Column:
    """Read a series of a pandas, Polars or PyArrow frame."""
    dtype = series.dtype
    if isinstance(dtype, nw.Boolean):
        return Column(name, "bool", series.cast(nw.Float64).to_numpy(), (False, True))
    if dtype.is_integer() and not isinstance(dtype, (nw.Int128, nw.UInt128)):
        # nulls are filled first: some libraries refuse to turn large integers with nulls into floats
        values = series.fill_null(0).to_numpy().astype(np.float64)
        values[series.is_null().to_numpy().astype(bool)] = np.nan
        return Column(name, "int64", values)
    if dtype.is_numeric():
        logical = "int64" if dtype.is_integer() else "float64"
        return Column(name, logical, series.cast(nw.Float64).to_numpy())
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        return _categorical(name, series)
    if isinstance(dtype, nw.String):
        if series.implementation.is_pyarrow():
            return _arrow_labels(name, "string", series.to_native())
        labels = _sorted_labels(name, series.drop_nulls().unique().to_list())
        return Column(name, "string", _positions(series, labels), labels)
    if isinstance(dtype, nw.Datetime):
        return _times(name, series.to_numpy(), zone=dtype.time_zone)
    if isinstance(dtype, (nw.Date, nw.Object)):
        return read_array(name, series.to_numpy())
    zone = getattr(getattr(series.to_native(), "dtype", None), "tz", None)
    if zone is not None:  # pandas' zones with an underscore, or of a fixed offset, have no narwhals type
        return _times(name, series.to_native().dt.tz_convert(None).to_numpy(), zone=str(zone))
    if series.null_count() == len(series):
        return Column(name, "float64", np.full(len(series), np.nan))
    raise _unsupported(name, str(getattr(series.to_native(), "dtype", dtype)))


def _categorical(name: str, series: nw.Series[Any]) -> Column:
    """Read a categorical or enum column.

    Polars categoricals and unordered Arrow dictionaries list labels in order of appearance, which depends on the order
    of the rows. Only types that declare an order keep theirs.
    """
    ordered = nw.is_ordered_categorical(series)
    pandas = series.implementation.is_pandas()
    enum = isinstance(series.dtype, nw.Enum) and not pandas
    if pandas:
        native = series.to_native().cat
        labels = _checked_labels(name, native.categories.tolist())
        values = native.codes.to_numpy().astype(np.float64)
        values[values < 0] = np.nan
        return Column(name, "categorical", values, labels, declared=True, ordered=ordered)
    if series.implementation.is_pyarrow() and not ordered:
        return _arrow_labels(name, "categorical", series.to_native())
    if enum or ordered:
        labels = _checked_labels(name, series.cat.get_categories().to_list())
    else:
        labels = _sorted_labels(name, series.drop_nulls().unique().to_list())
    values = _positions(series, labels)
    logical = "enum" if enum else "categorical"
    return Column(name, logical, values, labels, declared=enum or ordered, ordered=ordered)


def _arrow_labels(name: str, dtype: str, cells: Any) -> Column:
    """Read Arrow text, or labels without an order, through their dictionary, without a Python object per cell."""
    kind = str(cells.type)
    if not kind.startswith("dictionary"):
        cells = (cells.cast("string") if kind == "string_view" else cells).dictionary_encode()
    coded = cells.unify_dictionaries().combine_chunks()
    numbers = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    met = np.bincount(numbers + 1, minlength=len(coded.dictionary) + 1)[1:] > 0
    listed_labels = coded.dictionary.to_pylist()
    occurring = {label for label, here in zip(listed_labels, met.tolist(), strict=True) if here and label is not None}
    labels = _sorted_labels(name, list(occurring))
    place = {label: float(position) for position, label in enumerate(labels)}
    # the last entry serves missing cells, whose number is -1
    places = np.array([*(place.get(label, np.nan) for label in listed_labels), np.nan])
    return Column(name, dtype, places[numbers], labels)


def _positions(series: nw.Series[Any], labels: tuple[Any, ...]) -> FloatArray:
    if not labels:
        return np.full(len(series), np.nan)
    numbers = [float(position) for position in range(len(labels))]
    found = series.replace_strict(list(labels), numbers, return_dtype=nw.Float64)
    return np.asarray(found.to_numpy(), dtype=np.float64)


def _objects(name: str, cells: AnyArray) -> Column:
    """Read Python objects, which must be all numbers, all text, all booleans or all dates; any may be missing."""
    doubtful = {each for each in set(map(type, cells.tolist())) if not issubclass(each, (str, int))}
    present = np.array([type(cell) not in doubtful or not is_missing(cell) for cell in cells], dtype=bool)
    found = cells[present].tolist()
    values = np.full(len(cells), np.nan)
    if not found:
        return Column(name, "float64", values)
    column = _reader(name, set(map(type, found)))(name, found)
    values[present] = column.values
    return replace(column, values=values)


def _reader(name: str, types: set[type]) -> Callable[[str, list[Any]], Column]:
    for accepted, reader in _READERS:
        if all(issubclass(each, accepted) for each in types):
            return reader
    if any(issubclass(each, Complex) and not issubclass(each, Real) for each in types):
        raise CellTypeError(f"Complex data not supported: column {shown(name)} holds complex numbers.")
    known = tuple(each for accepted, _ in _READERS for each in accepted)
    strange = sorted(each.__name__ for each in types if not issubclass(each, known))
    if strange:
        raise CellTypeError(
            f"Column {shown(name)} holds values of type {listed(strange)}; each argument must be a string, "
            "a number, a boolean or a date."
        )
    mixture = listed(sorted(each.__name__ for each in types))
    raise InputError(f"Column {shown(name)} mixes values of type {mixture}; convert it to one type, such as text.")


def _numbers(name: str, cells: list[Any]) -> Column:
    try:
        values = np.array(cells, dtype=np.float64)
    except OverflowError as error:
        raise InputError(f"Column {shown(name)} holds a number that is too large: {error}.") from error
    return Column(name, "int64" if all(isinstance(cell, Integral) for cell in cells) else "float64", values)


def _text(name: str, cells: list[Any]) -> Column:
    labels = tuple(sorted(set(map(str, cells))))
    position = {label: number for number, label in enumerate(labels)}
    return Column(name, "string", np.array([position[cell] for cell in cells], dtype=np.float64), labels)


def _dates(name: str, cells: list[Any]) -> Column:
    times = [cell for cell in cells if isinstance(cell, dt.datetime)]
    zones = {str(cell.tzinfo) for cell in times if cell.tzinfo is not None}
    naive = any(getattr(cell, "tzinfo", None) is None for cell in cells)
    if len(zones) > 1 or (zones and naive):
        raise InputError(f"Column {shown(name)} mixes time zones: {listed(sorted(zones))}. Convert it to one.")
    fine = any(getattr(cell, "nanosecond", 0) for cell in times)  # pandas' timestamps
    if fine and zones:  # only Python's times can give back a zone, and they end at microseconds
        cells = [cell.replace(nanosecond=0) if hasattr(cell, "nanosecond") else cell for cell in cells]
    unit = "ns" if fine and not zones else "us"
    logical = datetime_dtype(unit, zones.pop() if zones else None) if times else "date"
    variable = Variable(name, Kind.CONTINUOUS, dtype=logical)
    return Column(name, logical, np.array([variable.encode_value(cell) for cell in cells]))


_READERS: tuple[tuple[tuple[type, ...], Callable[[str, list[Any]], Column]], ...] = (
    ((bool, np.bool_), lambda name, cells: read_array(name, np.array(cells))),  # a bool is a Real too, so these first
    ((Real, Decimal), _numbers),
    ((str,), _text),
    ((dt.date,), _dates),
    ((np.datetime64,), lambda name, cells: read_array(name, np.array(cells))),
)


def _times(name: str, values: AnyArray, zone: str | None = None) -> Column:
    """Read datetime64; zoned times must be given in UTC."""
    unit, days = time_unit(values.dtype), days_of_times(values)
    return Column(name, "date" if unit == "D" else datetime_dtype(unit, zone), days)


def _sorted_labels(name: str, labels: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(sorted(_checked_labels(name, labels), key=category_order))


def _checked_labels(name: str, labels: Sequence[Any]) -> tuple[Any, ...]:
    for label in labels:
        if not isinstance(label, (str, int, float)):
            raise CellTypeError(
                f"Column {shown(name)} has categories of type {type(label).__name__}, such as {shown(label)}; a "
                "category must be text, a boolean or a number. Convert the column to text first."
            )
    return tuple(labels)


def _unsupported(name: str, dtype: str) -> CellTypeError:
    return CellTypeError(
        f"Column {shown(name)} is of type {dtype}, which is not supported; convert it to numbers, text, booleans "
        "or dates, or drop it."
    )
