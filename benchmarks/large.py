"""Pair counts beside DuckDB's, and time and memory of a fit, for a table in Parquet files that may exceed memory.

`python -m benchmarks large` uses 2,000,000 rows; `python -m benchmarks.large --rows 100000000 --folder DIR` uses more
and keeps the files. Rows are drawn from a known mixture of products, with 6 continuous and 4 categorical columns.
DuckDB makes a table of codes with the same edges once, then groups by the 45 pairs of its columns; all counts are
compared. Each measurement runs in its own process, so that its peak of memory is its own.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import in_fresh_process, peak_bytes
from benchmarks.report import Row, publish
from jointwise import JUPAD, PairwiseMarginals
from jointwise.axes import Axis
from jointwise.engines.compiled import CompiledEngine
from jointwise.rows.sources import LocalSource, find_source
from jointwise.rows.sources.arrow_datasets import dataset_blocks
from jointwise.tables.variables import Schema

N_ROWS, N_TEST, FILE_ROWS, N_BINS = 2_000_000, 100_000, 1_000_000, 128
N_CONTINUOUS, CATEGORIES, N_COMPONENTS = 6, (2, 5, 12, 30), 8
# Cells of the grid with which DuckDB finds bins.
GRID = 1024
# Most rows for which DuckDB also groups from a view, which reads the files again for each pair.
VIEW_ROWS = 2_000_000


class Law:
    """A mixture of products: alternating Gaussian and Laplace columns, then categories."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.weights = rng.dirichlet(np.full(N_COMPONENTS, 5.0))
        self.loc = rng.normal(0.0, 3.0, (N_CONTINUOUS, N_COMPONENTS))
        self.scale = rng.uniform(0.3, 1.5, (N_CONTINUOUS, N_COMPONENTS))
        self.shares = [rng.dirichlet(np.ones(k), N_COMPONENTS) for k in CATEGORIES]

    def sample(self, n: int, rng: np.random.Generator) -> pa.Table:
        """Draw rows."""
        group = rng.choice(N_COMPONENTS, n, p=self.weights)
        columns: dict[str, Any] = {}
        for j in range(N_CONTINUOUS):
            noise = rng.laplace(size=n) if j % 2 else rng.normal(size=n)
            columns[f"x{j}"] = self.loc[j, group] + self.scale[j, group] * noise
        for j, shares in enumerate(self.shares):
            upto = shares.cumsum(axis=1)[:, :-1]
            drawn = (rng.random(n)[:, None] > upto[group]).sum(axis=1)
            names = [f"value {k}" for k in range(shares.shape[1])]
            columns[f"c{j}"] = pa.DictionaryArray.from_arrays(drawn.astype(np.int32), names).dictionary_decode()
        return pa.table(columns)

    def logpdf(self, table: pa.Table) -> np.ndarray:
        """Return the log-density of rows."""
        joint = np.log(self.weights) + np.zeros((len(table), 1))
        for j in range(N_CONTINUOUS):
            z = np.abs(table[f"x{j}"].to_numpy()[:, None] - self.loc[j]) / self.scale[j]
            joint += (-z - np.log(2.0) if j % 2 else -(z**2) / 2 - np.log(2 * np.pi) / 2) - np.log(self.scale[j])
        for j, shares in enumerate(self.shares):
            codes = [int(text.split()[1]) for text in table[f"c{j}"].to_pylist()]
            joint += np.log(shares.T[codes])
        return np.logaddexp.reduce(joint, axis=1)


def make(folder: Path, n_rows: int) -> None:
    """Write the table in files of at most a million rows, unless it exists."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("*.parquet")) and ds.dataset(folder).count_rows() == n_rows:
        return
    law = Law()
    for number, start in enumerate(range(0, n_rows, FILE_ROWS)):
        table = law.sample(min(FILE_ROWS, n_rows - start), np.random.default_rng([1, number]))
        pq.write_table(table, folder / f"part-{number:05d}.parquet")


@contextmanager
def clock(rows: list[Row], step: str) -> Iterator[Row]:
    """Record the elapsed seconds of a step, and the core seconds of all threads."""
    row: Row = {"step": step, "seconds": 0.0, "core seconds": 0.0, "of": "", "peak GB": ""}
    start, used = time.perf_counter(), time.process_time()
    yield row
    row["seconds"], row["core seconds"] = time.perf_counter() - start, time.process_time() - used
    rows.append(row)


def run(n_rows: int = N_ROWS, folder: Path | None = None) -> list[Row]:
    """Return seconds of the counts and of the fit, and the fit's peak of memory."""
    with TemporaryDirectory() as temporary:
        place = folder or Path(temporary) / "table"
        make(place, n_rows)
        return [*in_fresh_process(_counts, place), *in_fresh_process(_fit, place)]


def _counts(place: Path) -> list[Row]:
    """Count pairs by jointwise and by DuckDB; the counts must be equal."""
    rows: list[Row] = []
    dataset = ds.dataset(place)
    source = find_source(dataset)
    assert source is not None
    source.reduce(len_of)  # brings the files into the system's memory, for both
    with clock(rows, "profile"):
        profile = source.profile()
    schema = profile.schema()
    axes = profile.axes(schema, N_BINS)
    count = partial(PairwiseMarginals.of, schema=schema, axes=axes)
    count(dataset.head(100_000))  # loads compiled code
    with clock(rows, "pair counts, jointwise"):
        ours = source.reduce(count)
    n_rows = int(ours.n_rows)
    for way, code in (("grid", _grid_code), ("CASE tree", _tree_code)):
        _duckdb_counts(rows, place, schema, axes, code, way, ours)
    if n_rows <= VIEW_ROWS:
        _duckdb_counts(rows, place, schema, axes, _grid_code, "grid", ours, "view")
    return [row | {"of": f"{n_rows:,} rows"} for row in rows]


def len_of(block: Any) -> int:
    """Return the number of rows of a block."""
    return int(block.n_rows)


def _duckdb_counts(
    rows: list[Row],
    place: Path,
    schema: Schema,
    axes: Sequence[Axis],
    code: Callable[[str, Any], str],
    way: str,
    ours: PairwiseMarginals,
    kind: str = "table",
) -> None:
    try:
        import duckdb
    except ImportError:
        return
    with duckdb.connect(config={"threads": os.cpu_count() or 1}) as connection:
        files = f"read_parquet('{place}/*.parquet')"
        columns = [
            f"{_enum_code(v.name, v.categories) if v.categories else code(v.name, axis)} AS {v.name}"
            for v, axis in zip(schema, axes, strict=True)
        ]
        with clock(rows, f"pair counts, DuckDB: {kind} of codes by {way}, then 45 GROUP BYs"):
            connection.execute(f"CREATE {kind} coded AS SELECT {', '.join(columns)} FROM {files}")
            found = {
                pair: connection.execute(
                    f"SELECT {', '.join(pair)}, count(*) AS n FROM coded GROUP BY ALL"
                ).fetchnumpy()
                for pair in combinations(schema.names, 2)
            }
    for (a, b), cells in found.items():
        table = np.zeros(ours.pair(a, b).shape, dtype=np.int64)
        table[cells[a].astype(int), cells[b].astype(int)] = cells["n"]
        assert np.array_equal(table, ours.pair(a, b)), (a, b)


def _enum_code(name: str, categories: Sequence[Any]) -> str:
    return f"enum_code({name}::ENUM({', '.join(map(repr, categories))}))::UTINYINT"


def _tree_code(name: str, axis: Any) -> str:
    """Return SQL for the bin of a value, by a tree of comparisons."""
    edges = axis.edges.tolist()

    def tree(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        return (
            f"CASE WHEN {name} > {edges[middle]!r}::DOUBLE THEN {tree(middle + 1, high)} ELSE {tree(low, middle)} END"
        )

    return f"({tree(0, len(edges))})::UTINYINT"


def _grid_code(name: str, axis: Any) -> str:
    """Return SQL for the bin of a value, by a grid: the edges before its cell, plus comparisons with those in it."""
    edges = axis.edges
    scale = float((GRID - 1) / (edges[-1] - edges[0]))
    first = np.searchsorted(((edges - edges[0]) * scale).astype(int), np.arange(GRID + 1))
    shift = f"({name} - {float(edges[0])!r}::DOUBLE) * {scale!r}::DOUBLE"
    cell = f"(1 + least(greatest(floor({shift}), 0), {GRID - 1}))::INT"
    before = f"list_extract({first[:-1].tolist()}::UTINYINT[], {cell})"
    most = int(np.diff(first).max())
    padded = [*edges.tolist(), *[1e308] * most]
    beyond = (f"({name} > list_extract({padded}::DOUBLE[], {before} + {k + 1}))::UTINYINT" for k in range(most))
    return f"({' + '.join([before, *beyond])})::UTINYINT"


class TimedSource(LocalSource):
    """A dataset that records the time of its passes."""

    def __init__(self, dataset: Any, rows: list[Row]) -> None:
        super().__init__(partial(dataset_blocks, dataset), "pyarrow")
        self._timings = rows

    def profile(self) -> Any:
        """Return the profile."""
        with clock(self._timings, "fit: profile"):
            return super().profile()

    @contextmanager
    def coded(self, schema: Any, axes: Any, folder: Any) -> Iterator[Any]:
        """Return the codes."""
        with super().coded(schema, axes, folder) as coded:
            self._timings[-1]["end"] = time.perf_counter()
            yield coded


def _fit(place: Path) -> list[Row]:
    """Fit the files; return the seconds of each stage, and the peak of memory."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    law, test = Law(), Law().sample(N_TEST, np.random.default_rng(2))
    JUPAD(2, random_state=0, max_iter=2).fit(test.slice(0, 10_000))  # loads packages and compiled code
    before = peak_bytes() / 1e9
    rows: list[Row] = []
    passes: list[tuple[int, float]] = []
    plain = CompiledEngine.posterior_counts

    def timed(engine: CompiledEngine, *arguments: Any) -> Any:
        start = time.perf_counter()
        found = plain(engine, *arguments)
        passes.append((len(engine._codes), time.perf_counter() - start))  # noqa: SLF001
        return found

    CompiledEngine.posterior_counts = timed  # type: ignore[method-assign]
    dataset = ds.dataset(place)
    n_rows = dataset.count_rows()
    with clock(rows, "fit: all") as total:
        start = time.perf_counter()
        model = JUPAD(random_state=0).fit(TimedSource(dataset, rows))
    profile = rows[0]
    coding = profile.pop("end") - start - profile["seconds"]
    whole = [seconds for n, seconds in passes if n == n_rows]
    rest = total["seconds"] - profile["seconds"] - coding - sum(whole)
    gap = float(np.mean(law.logpdf(test)) - model.score(test))
    of = f"{n_rows:,} rows"
    steps = {
        "fit: coding": coding,
        "fit: choice and starts, on samples": rest,
        f"fit: {len(whole)} passes of EM, {model.density_.n_components} components": sum(whole),
        "fit: one pass of EM": float(np.mean(whole)) if whole else 0.0,
    }
    empty = {"core seconds": "", "of": of, "peak GB": ""}
    total |= {"of": f"{of}, {gap:.4f} nats below the law", "peak GB": f"{peak_bytes() / 1e9:.2f} ({before:.2f} before)"}
    return [profile | {"of": of}, *({"step": step, "seconds": s} | empty for step, s in steps.items()), total]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--folder", type=Path, help="folder in which the files are made and kept")
    given = parser.parse_args()
    publish("large", run(given.rows, given.folder))
