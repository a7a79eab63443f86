"""Columns of every type, and the containers that hold them."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa

from jointwise.marginals import Profile
from jointwise.tables.dtypes import is_missing

NOON = dt.datetime(2021, 7, 1, 12, 0, 0, 123456)  # noqa: DTZ001  # zones are tested apart
MIDNIGHT = dt.datetime(1969, 12, 31)  # noqa: DTZ001
# name -> values, encoded values, logical type
COLUMNS = {
    "real": ([0.5, -2.25, 1e300], [0.5, -2.25, 1e300], "float64"),
    "whole": ([3, -7, 2**52], [3, -7, 2**52], "int64"),
    "flag": ([True, False, True], [1, 0, 1], "bool"),
    "text": (["b", "a", "b"], [1, 0, 1], "string"),
    "day": ([dt.date(1970, 1, 3), dt.date(1969, 12, 31), dt.date(2024, 2, 29)], [2, -1, 19782], "date"),
    "time": ([NOON, MIDNIGHT, NOON], [18809 + 43200.123456 / 86400, -1, 18809 + 43200.123456 / 86400], "datetime[us]"),
}
CONTAINERS = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "pyarrow": pa.table,
}


def table_of(container, columns):
    return CONTAINERS[container](columns)


def cells(data, name):
    """Return the cells of a column as Python objects, None where missing."""
    column = data[name]
    values = column.to_pylist() if isinstance(column, pa.ChunkedArray) else list(column)
    return [None if is_missing(value) else value for value in values]


def profile_schema(data):
    return Profile.of(data).schema()
