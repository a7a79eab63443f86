"""Frames: encoded columns written back in the frame type and the column types they came from."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from jointwise._checks import shown
from jointwise.exceptions import InputError, MissingDependencyError
from jointwise.tables.dtypes import is_temporal, parse_datetime, zone_of
from jointwise.tables.times import time_zone, times_of_days, zoned_times
from jointwise.tables.variables import LARGEST_WHOLE, Schema, Variable

if TYPE_CHECKING:
    from jointwise._typing import AnyArray, FloatArray
    from jointwise.tables.table import Table

_LABELLED = ("categorical", "enum")


def write_frame(matrix: FloatArray, schema: Schema) -> Any:
    """Return encoded rows of shape (n, N) in the form that `schema.container` names."""
    if schema.container == "numpy":
        return _stack([native_array(variable, matrix[:, n]) for n, variable in enumerate(schema)], len(matrix))
    write = {"dict": native_array, "pandas": _pandas, "polars": _polars, "pyarrow": _arrow}[schema.container]
    columns = {variable.name: write(variable, matrix[:, n]) for n, variable in enumerate(schema)}
    if schema.container == "dict":
        return columns
    library = _library(schema.container)
    return library.table(columns) if schema.container == "pyarrow" else library.DataFrame(columns)


def write_like(given: Any, matrix: FloatArray, schema: Schema) -> Any:
    """Return encoded rows in the type of a given frame, each row with the index of its own, several with the same.

    If it is no frame, or one of a type that cannot hold the variables, the type is that of the schema.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"n": [1, 2]}, index=["a", "b"])
    >>> write_like(frame, np.array([[3.0], [4.0]]), Schema((Variable("n", "continuous"),), "dict"))
         n
    a  3.0
    b  4.0
    """
    if not nw.dependencies.is_into_dataframe(given):
        return write_frame(matrix, schema)
    frame = nw.from_native(given, eager_only=True)
    try:
        schema = Schema(schema.variables, frame.implementation.value)
    except InputError:
        return write_frame(matrix, schema)
    written, index = write_frame(matrix, schema), nw.maybe_get_index(frame)
    if index is not None and len(index):
        written.index = index.repeat(len(matrix) // len(index))
    return written


def with_columns(frame: Any, container: str, table: Table, names: Collection[str]) -> Any:
    """Return a frame that `write_frame` wrote, with some columns of a table inserted at their places.

    Parameters
    ----------
    frame : frame, mapping or array
    container : str
        Type of the frame, as `Schema.container`.
    table : Table
        Holds the columns of the frame and those to insert; the result has its order.
    names : collection of str
        Columns to insert.
    """
    put_in = {n: column for n, column in zip(table.names, table.columns, strict=True) if n in names}
    if container == "numpy":
        rest = iter(frame.T)
        return _stack([np.asarray(put_in[n]) if n in put_in else next(rest) for n in table.names], table.n_rows)
    if container == "dict":
        return {n: put_in.get(n, frame.get(n)) for n in table.names}
    written = nw.from_native(frame)
    library = _library(container)
    series = [nw.new_series(n, list(column), backend=library) for n, column in put_in.items()]
    return written.with_columns(*series).select(*table.names).to_native()


def native_array(variable: Variable, numbers: FloatArray) -> AnyArray:
    """Return encoded numbers as a numpy array of native values, shape (n,).

    Integers with missing values become floats with NaN, dates become datetime64, times with a zone become Python
    datetimes (numpy has no zones), and other values with missing ones become objects with None.

    >>> sex = Variable("sex", "categorical", categories=("F", "M"), dtype="string")
    >>> native_array(sex, np.array([1.0, np.nan]))
    array(['M', None], dtype=object)
    """
    zone = zone_of(variable.dtype)
    return _utc_array(variable, numbers) if zone is None else zoned_times(numbers, time_zone(zone))


def _utc_array(variable: Variable, numbers: FloatArray) -> AnyArray:
    """Return encoded numbers as `native_array` does, except times with a zone, which are datetime64 in UTC."""
    missing = np.isnan(numbers)
    if variable.categories is not None:
        return _category_array(variable, numbers, missing)
    if is_temporal(variable.dtype):
        unit, zone = parse_datetime(variable.dtype) or ("D", None)
        seen, spikes = variable.observed, variable.spikes
        return times_of_days(numbers, unit, zoned=zone is not None, seen=seen, exact=spikes)
    if variable.dtype == "int64":
        whole = np.clip(np.rint(numbers), -LARGEST_WHOLE, LARGEST_WHOLE)
        return whole if missing.any() else whole.astype(np.int64)
    return np.array(numbers)


def _category_array(variable: Variable, numbers: FloatArray, missing: AnyArray) -> AnyArray:
    plain = np.dtype({"int64": "i8", "float64": "f8", "bool": "?"}.get(variable.dtype, "O"))
    categories: AnyArray = np.empty(len(variable.categories or ()), dtype=plain)
    categories[:] = variable.categories
    found = categories[_codes(variable, numbers)[~missing]]
    if not missing.any():
        return found
    values: AnyArray = np.full(len(numbers), *((np.nan,) if plain.kind in "if" else (None, object)))
    values[~missing] = found
    return values


def _stack(columns: list[AnyArray], n_rows: int) -> AnyArray:
    types = {column.dtype for column in columns}
    if len(types) > 1 and all(each.kind in "fi" for each in types):
        types = {np.dtype(np.float64)}  # integers with missing values beside integers without
    array = np.empty((n_rows, len(columns)), dtype=types.pop() if len(types) == 1 else np.object_)
    for position, column in enumerate(columns):
        array[:, position] = column.astype(array.dtype) if array.dtype != object else _objects(column)
    return array


def _objects(column: AnyArray) -> list[Any]:
    """Return cells as Python objects; nanoseconds stay numpy's times, because `tolist` would make them integers."""
    cells = column.tolist()
    return list(column) if column.dtype.kind == "M" and int in map(type, cells) else cells


def _codes(variable: Variable, numbers: FloatArray) -> AnyArray:
    """Return category codes as integers, -1 where missing."""
    codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int32)
    last = len(variable.categories or ()) - 1
    if np.any(numbers < 0) or np.any(codes > last):
        raise InputError(f"Variable {shown(variable.name)} has category codes 0 to {last}; others cannot be written.")
    return codes


def _pandas(variable: Variable, numbers: FloatArray) -> Any:
    pandas = _library("pandas")
    if variable.dtype in _LABELLED:
        return pandas.Categorical.from_codes(_codes(variable, numbers), variable.categories, ordered=variable.ordered)
    values = _utc_array(variable, numbers)
    if variable.dtype in {"int64", "bool"} and np.isnan(numbers).any():
        return pandas.array(values, dtype={"int64": "Int64", "bool": "boolean"}[variable.dtype])
    if variable.dtype == "date":
        return pandas.Series(values.astype(object), dtype=object)
    zone = zone_of(variable.dtype)
    return values if zone is None else pandas.Series(values).dt.tz_localize("UTC").dt.tz_convert(zone)


def _polars(variable: Variable, numbers: FloatArray) -> Any:
    polars = _library("polars")
    values = _utc_array(variable, numbers)
    if variable.dtype in {"int64", "float64"}:
        series = polars.Series(values, nan_to_null=True)
        return series.cast(polars.Int64) if variable.dtype == "int64" else series
    if is_temporal(variable.dtype):
        unit, zone = parse_datetime(variable.dtype) or ("D", None)
        series = polars.Series(values.astype("M8[ms]") if unit == "s" else values)
        return series if zone is None else series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    enum = polars.Enum(variable.categories) if variable.dtype == "enum" else None
    types = {"bool": polars.Boolean, "string": polars.String, "categorical": polars.Categorical}
    return polars.Series(values.tolist(), dtype=types.get(variable.dtype, enum))


def _arrow(variable: Variable, numbers: FloatArray) -> Any:
    arrow = _library("pyarrow")
    if variable.dtype in _LABELLED:
        codes = arrow.array(_codes(variable, numbers), mask=np.isnan(numbers))
        categories = arrow.array(variable.categories)
        return arrow.DictionaryArray.from_arrays(codes, categories, ordered=variable.ordered)
    values = _utc_array(variable, numbers)
    if is_temporal(variable.dtype):
        unit, zone = parse_datetime(variable.dtype) or ("D", None)
        return arrow.array(values, type=arrow.date32() if unit == "D" else arrow.timestamp(unit, tz=zone))
    types = {"int64": arrow.int64(), "bool": arrow.bool_(), "string": arrow.string()}
    return arrow.array(values, type=types.get(variable.dtype, arrow.float64()), from_pandas=True)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"The table was a {name} frame, so results are too, but {name} is not installed: pip install {name}"
        ) from error
