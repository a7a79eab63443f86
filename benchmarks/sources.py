"""Rows per second of each pass of a fit, for one table of 1,000,000 rows x 10 columns from every source.

For every source the counts of all pairs, and the log-densities of a fit, are compared with those of the array. With
more rows (`JOINTWISE_BENCH_ROWS`) a fit depends on their order, which Spark may change. Sources whose package is
missing are left out. Dask has two workers with one thread each, Spark two threads.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import repeated
from benchmarks.report import Row
from jointwise import JUPAD
from jointwise.axes import Axis
from jointwise.marginals import Profile
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.rows.sources import find_source
from jointwise.tables.variables import Schema

N_ROWS, N_COLUMNS = int(os.environ.get("JOINTWISE_BENCH_ROWS", "1_000_000")), 10
N_FILES, N_COMPONENTS, N_PASSES = 8, 16, 5
N_BINS = 128
KINDS = {f"x{N_COLUMNS - 2}": "integer", f"x{N_COLUMNS - 1}": "categorical"}
CATEGORIES = ("a", "b", "c", "d")


def run() -> list[Row]:
    """Return rows per second of the profile, of coding, and of one pass of EM, for each source."""
    with TemporaryDirectory() as folder:
        write_files(Path(folder))
        rows: list[Row] = []
        first: tuple[Any, Any] | None = None
        for name, (package, opened) in SOURCES.items():
            if find_spec(package) is None or (package == "pyspark" and which("java") is None):
                continue
            with opened(Path(folder)) as data:
                measured(data)  # loads packages and compiled code
                row = {"source": name} | measured(data)
                counts, densities = counts_and_densities(data)
            first = first or (counts, densities)
            row["counts"] = "equal" if np.array_equal(counts, first[0]) else "NOT EQUAL"
            row["log-density off by"] = f"{np.max(np.abs(densities - first[1])):.1e}"
            rows.append(row)
    return rows


def profiled(data: Any) -> tuple[Schema, tuple[Axis, ...]]:
    """Return schema and axes of a table, from any source."""
    source = find_source(data)
    profile = Profile.of(data) if source is None else source.profile()
    schema = profile.schema(KINDS)
    return schema, profile.axes(schema, N_BINS)


def coded(data: Any, schema: Schema, axes: tuple[Axis, ...]) -> AbstractContextManager[Any]:
    """Return the rows of a table as codes, from any source."""
    source = find_source(data)
    return nullcontext(CodedRows.of(data, schema, axes)) if source is None else source.coded(schema, axes, None)


def counts_and_densities(data: Any) -> tuple[Any, Any]:
    """Return the counts of all pairs, and log-densities of rows under a short fit."""
    with coded(data, *profiled(data)) as rows:
        counts = rows.pairs().counts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few steps are enough to compare
        model = JUPAD(4, beta=1.0, n_init=1, max_iter=5, learn_dictionary=False, kinds=KINDS, random_state=0).fit(data)
    return counts, model.density_.mixture.logpdf(drawn(1_000, np.random.default_rng(1)))


def measured(data: Any) -> Row:
    """Return rows per second of each pass over a table."""
    start = time.perf_counter()
    schema, axes = profiled(data)
    profile_end = time.perf_counter()
    with coded(data, schema, axes) as rows:
        n = len(rows)
        coding_end = time.perf_counter()
        seconds = pass_seconds(rows)
    return {
        "rows": n,
        "profile, rows/s": n / (profile_end - start),
        "coding, rows/s": n / (coding_end - profile_end),
        "EM pass, rows/s": n / seconds,
        "EM pass, s": seconds,
    }


def pass_seconds(rows: Rows) -> float:
    """Return the median seconds of a pass of posterior counts, without the first."""
    tables = np.random.default_rng(0).uniform(0.5, 1.5, (sum(rows.n_bins), N_COMPONENTS))
    mixing = np.full(N_COMPONENTS, 1 / N_COMPONENTS)
    seconds = repeated(partial(rows.engine().posterior_counts, tables, mixing), 1 + N_PASSES)
    return float(np.median(seconds[1:]))


def drawn(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows: eight columns of numbers, one of integers, one of categories; shape (n, 10)."""
    group = rng.integers(0, len(CATEGORIES), n)
    numbers = [rng.normal(group * (k % 3), 1.0) for k in range(N_COLUMNS - 2)]
    return np.column_stack([*numbers, rng.poisson(3 + group), group])


def write_files(folder: Path) -> None:
    """Write the table as Parquet files, its categories as text."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    for file in range(N_FILES):
        *columns, count, group = drawn(N_ROWS // N_FILES, rng).T
        columns += [count.astype(int), np.array(CATEGORIES)[group.astype(int)]]
        table = pa.table({f"x{k}": column for k, column in enumerate(columns)})
        parquet.write_table(table, folder / f"part-{file}.parquet")


@contextmanager
def array(folder: Path) -> Iterator[Any]:
    """The table as an array of numbers, drawn again with the same seed."""
    del folder
    rng = np.random.default_rng(0)
    yield np.vstack([drawn(N_ROWS // N_FILES, rng) for _ in range(N_FILES)])


@contextmanager
def pandas_frame(folder: Path) -> Iterator[Any]:
    """A pandas frame in memory."""
    import pandas as pd

    yield pd.read_parquet(folder)


@contextmanager
def arrow_dataset(folder: Path) -> Iterator[Any]:
    """The files as a PyArrow dataset."""
    import pyarrow.dataset as ds

    yield ds.dataset(folder)


@contextmanager
def lazy_frame(folder: Path) -> Iterator[Any]:
    """The files as a Polars LazyFrame."""
    import polars as pl

    yield pl.scan_parquet(folder / "*.parquet")


@contextmanager
def duckdb_relation(folder: Path) -> Iterator[Any]:
    """The files as a DuckDB relation."""
    import duckdb

    with duckdb.connect() as connection:
        yield connection.read_parquet(str(folder / "*.parquet"))


@contextmanager
def dask_frame(folder: Path) -> Iterator[Any]:
    """The files as a Dask DataFrame, on two workers."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        yield dd.read_parquet(folder, split_row_groups=False)


@contextmanager
def spark_frame(folder: Path) -> Iterator[Any]:
    """The files as a Spark DataFrame, on two threads of this machine."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session.read.parquet(str(folder))
    finally:
        session.stop()


# For each source: the package it needs, and a function that opens it.
SOURCES: dict[str, tuple[str, Callable[[Path], AbstractContextManager[Any]]]] = {
    "array": ("numpy", array),
    "pandas frame": ("pandas", pandas_frame),
    "PyArrow dataset": ("pyarrow", arrow_dataset),
    "Polars LazyFrame": ("polars", lazy_frame),
    "DuckDB relation": ("duckdb", duckdb_relation),
    "Dask DataFrame, 2 workers": ("dask", dask_frame),
    "Spark DataFrame, local[2]": ("pyspark", spark_frame),
}
