"""Frames: encoded columns written back as the frame type, and with the column types, they came from."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._checks import shown
from jointwise.exceptions import InputError, MissingDependencyError
from jointwise.variables import FIRST_DAY, LAST_DAY, Schema, Variable, is_temporal, parse_datetime

if TYPE_CHECKING:
    from jointwise._typing import AnyArray, FloatArray

_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# Days around 1970 that nanoseconds in 64 bits reach.
_NS_DAYS = 106_751.0
_LABELLED = ("categorical", "enum")


def write_frame(matrix: FloatArray, schema: Schema) -> Any:
    """Write encoded rows of shape (n, N) as `schema.container`."""
    if schema.container == "numpy":
        return _stack([native_array(variable, matrix[:, n]) for n, variable in enumerate(schema)], len(matrix))
    write = {"dict": native_array, "pandas": _pandas, "polars": _polars, "pyarrow": _arrow}[schema.container]
    columns = {variable.name: write(variable, matrix[:, n]) for n, variable in enumerate(schema)}
    if schema.container == "dict":
        return columns
    library = _library(schema.container)
    return library.table(columns) if schema.container == "pyarrow" else library.DataFrame(columns)


def native_array(variable: Variable, numbers: FloatArray) -> AnyArray:
    """Return encoded numbers as a numpy array of native values, shape (n,).

    Integers with gaps become floats with NaN, dates datetime64 (UTC where they have a zone), other values
    with gaps objects with None.

    >>> sex = Variable("sex", "categorical", categories=("F", "M"), dtype="string")
    >>> native_array(sex, np.array([1.0, np.nan]))
    array(['M', None], dtype=object)
    """
    missing = np.isnan(numbers)
    if variable.categories is not None:
        return _category_array(variable, numbers, missing)
    if is_temporal(variable.dtype):
        unit, _ = parse_datetime(variable.dtype) or ("D", None)
        missing |= np.isinf(numbers)
        first, last = (-_NS_DAYS, _NS_DAYS) if unit == "ns" else (FIRST_DAY, LAST_DAY)
        # days in float64 hold a time to a third of a microsecond, so nanoseconds below that would be noise
        held = "us" if unit == "ns" else unit
        count = np.rint(np.clip(np.where(missing, 0.0, numbers), first, last) * _PER_DAY.get(held, 1))
        times: AnyArray = count.astype(np.int64).astype(f"M8[{held}]").astype(f"M8[{unit}]")
        times[missing] = np.datetime64("NaT")
        return times
    if variable.dtype == "int64":
        whole = np.rint(numbers)
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
        types = {np.dtype(np.float64)}  # integers with gaps beside integers without
    array = np.empty((n_rows, len(columns)), dtype=types.pop() if len(types) == 1 else np.object_)
    for position, column in enumerate(columns):
        # Objects one by one: a datetime64 column would otherwise become bare integers.
        array[:, position] = column.astype(array.dtype) if array.dtype != object else column.tolist()
    return array


def _codes(variable: Variable, numbers: FloatArray) -> AnyArray:
    """Category codes as integers, -1 where missing."""
    codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int32)
    last = len(variable.categories or ()) - 1
    if np.any(numbers < 0) or np.any(codes > last):
        raise InputError(f"Variable {shown(variable.name)} has category codes 0 to {last}; others cannot be written.")
    return codes


def _pandas(variable: Variable, numbers: FloatArray) -> Any:
    pandas = _library("pandas")
    if variable.dtype in _LABELLED:
        return pandas.Categorical.from_codes(_codes(variable, numbers), variable.categories, ordered=variable.ordered)
    values = native_array(variable, numbers)
    if variable.dtype in {"int64", "bool"} and np.isnan(numbers).any():
        return pandas.array(values, dtype={"int64": "Int64", "bool": "boolean"}[variable.dtype])
    if variable.dtype == "date":
        return pandas.Series(values.astype(object), dtype=object)
    zone = (parse_datetime(variable.dtype) or (None, None))[1]
    return values if zone is None else pandas.Series(values).dt.tz_localize("UTC").dt.tz_convert(zone)


def _polars(variable: Variable, numbers: FloatArray) -> Any:
    polars = _library("polars")
    values = native_array(variable, numbers)
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
    values = native_array(variable, numbers)
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
            f"The rows came from {name}, so results come back in its frames, but {name} is not installed: "
            f"pip install {name}"
        ) from error
