"""One table in many forms."""

import datetime as dt
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq

from jointwise.rows.sources import LocalSource, find_source

N_ROWS = 700
GUISES = ("pyarrow", "polars", "pandas", "blocks", "parquet", "feather", "lazy", "duckdb")


def columns(n=N_ROWS, seed=0):
    """Return floats, integers, text, booleans and dates, most of them with missing values."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    number = rng.normal(group, 0.5).tolist()
    count = rng.poisson(3 + group).tolist()
    day = dt.date(2024, 1, 1)
    return {
        "number": [None if gap else x for gap, x in zip(rng.random(n) < 0.1, number, strict=True)],
        "whole": (group * 10 + rng.integers(0, 4, n)).tolist(),
        "count": [None if gap else x for gap, x in zip(rng.random(n) < 0.2, count, strict=True)],
        "text": [None if gap else "abc"[g] for gap, g in zip(rng.random(n) < 0.05, group, strict=True)],
        "flag": [None if u < 0.1 else bool(u < 0.5) for u in rng.random(n)],
        "day": [day + dt.timedelta(days=int(d)) for d in rng.integers(0, 300, n)],
    }


def arrow(n=N_ROWS, seed=0):
    table = pa.table(columns(n, seed))
    assert [str(t) for t in table.schema.types] == ["double", "int64", "int64", "string", "bool", "date32[day]"]
    return table


def parts(table, cuts):
    ends = [0, *cuts, len(table)]
    return [table.slice(a, b - a) for a, b in pairwise(ends)]


def guise(kind, table, folder, cuts=(3, 3, 400)):
    """Return the table in one of `GUISES`, in parts if it can be split; one part is empty."""
    if kind == "pyarrow":
        return table
    if kind == "polars":
        return pl.from_arrow(table)
    if kind == "pandas":
        return pd.DataFrame({name: table[name].to_pandas(types_mapper=PANDAS.get) for name in table.column_names})
    if kind == "blocks":
        return LocalSource(lambda: iter(parts(table, cuts)), "pyarrow")
    if kind == "lazy":
        return pl.concat([pl.from_arrow(part).lazy() for part in parts(table, cuts)])
    if kind == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.register("rows", table)
        return connection.sql("select * from rows")
    for number, part in enumerate(parts(table, cuts)):
        if kind == "parquet":
            pq.write_table(part, folder / f"{number}.parquet", row_group_size=97)
        else:
            pa.feather.write_feather(part, folder / f"{number}.feather")
    return ds.dataset(folder, format=kind)


PANDAS = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}


def as_source(data):
    """Return the source of a table; one in memory is a single block."""
    return find_source(data) or LocalSource(lambda: iter([data]))
