"""One table of 2,000,000 rows x 10 columns in every place it may lie: rows per second of each pass of a fit.

Places whose package is not installed are left out. Dask has two workers of one thread, Spark two threads.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.report import Row
from jointwise.marginals import CodedRows, Profile, Rows
from jointwise.marginals.sources import find_source

N_ROWS, N_COLUMNS = int(os.environ.get("JOINTWISE_BENCH_ROWS", "2_000_000")), 10
N_FILES, RANK, N_PASSES = 8, 16, 5
N_BINS = 128


def run() -> list[Row]:
    """Return rows per second of the profile, of coding, and of one pass of EM, for each place."""
    with TemporaryDirectory() as folder:
        write_files(Path(folder))
        rows = []
        for name, (package, place) in PLACES.items():
            if find_spec(package) is None or (package == "pyspark" and which("java") is None):
                continue
            with place(Path(folder)) as data:
                if data is not None:
                    measured(data)  # loads packages and compiled code where the rows are
                    rows.append({"place": name} | measured(data))
    return rows


def measured(data: Any) -> Row:
    """Return rows per second of each pass over a table, wherever it lies."""
    source = find_source(data)
    start = time.perf_counter()
    profile = Profile.of(data) if source is None else source.profile()
    schema = profile.schema()
    axes = profile.axes(schema, N_BINS)
    profiled = time.perf_counter()
    with nullcontext(CodedRows.of(data, schema, axes)) if source is None else source.coded(schema, axes, None) as rows:
        n = len(rows)
        coded = time.perf_counter()
        seconds = pass_seconds(rows)
    return {
        "rows": n,
        "profile, rows/s": n / (profiled - start),
        "coding, rows/s": n / (coded - profiled),
        "EM pass, rows/s": n / seconds,
        "EM pass, s": seconds,
    }


def pass_seconds(rows: Rows) -> float:
    """Return the seconds of one pass of posterior counts, the median of some after a first."""
    rng = np.random.default_rng(0)
    tables, mixing = rng.uniform(0.5, 1.5, (sum(rows.n_bins), RANK)), np.full(RANK, 1 / RANK)
    engine = rows.engine()
    seconds = []
    for _ in range(1 + N_PASSES):
        start = time.perf_counter()
        engine.posterior_counts(tables, mixing)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds[1:]))


def write_files(folder: Path) -> None:
    """Write the table as Parquet files: eight columns of numbers, one of integers, one of text."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    for file in range(N_FILES):
        n = N_ROWS // N_FILES
        group = rng.integers(0, 4, n)
        columns: dict[str, Any] = {f"x{k}": rng.normal(group * (k % 3), 1.0) for k in range(N_COLUMNS - 2)}
        columns |= {"count": rng.poisson(3 + group), "text": np.array(["a", "b", "c", "d"])[group]}
        parquet.write_table(pa.table(columns), folder / f"part-{file}.parquet")


@contextmanager
def array(folder: Path) -> Iterator[Any]:
    """The numbers alone, as an array."""
    import pyarrow.dataset as ds

    table = ds.dataset(folder).to_table(columns=[f"x{k}" for k in range(N_COLUMNS - 2)])
    yield np.column_stack([column.to_numpy() for column in table.columns])


@contextmanager
def pandas_frame(folder: Path) -> Iterator[Any]:
    """A pandas frame in memory."""
    import pandas as pd

    yield pd.read_parquet(folder)


@contextmanager
def arrow_dataset(folder: Path) -> Iterator[Any]:
    """The files as a PyArrow dataset."""
    import pyarrow.dataset as ds

    yield known(ds.dataset(folder))


@contextmanager
def lazy_frame(folder: Path) -> Iterator[Any]:
    """The files as a Polars LazyFrame."""
    import polars as pl

    yield known(pl.scan_parquet(folder / "*.parquet"))


@contextmanager
def duckdb_relation(folder: Path) -> Iterator[Any]:
    """The files as a DuckDB relation."""
    import duckdb

    with duckdb.connect() as connection:
        yield known(connection.read_parquet(str(folder / "*.parquet")))


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


def known(data: Any) -> Any:
    """Return a table that is not in memory if there is a source for it, else None."""
    return None if find_source(data) is None else data


# By name: the package it needs, and what opens it.
PLACES: dict[str, tuple[str, Callable[[Path], AbstractContextManager[Any]]]] = {
    "array (8 numbers)": ("numpy", array),
    "pandas frame": ("pandas", pandas_frame),
    "PyArrow dataset": ("pyarrow", arrow_dataset),
    "Polars LazyFrame": ("polars", lazy_frame),
    "DuckDB relation": ("duckdb", duckdb_relation),
    "Dask DataFrame, 2 workers": ("dask", dask_frame),
    "Spark DataFrame, local[2]": ("pyspark", spark_frame),
}
