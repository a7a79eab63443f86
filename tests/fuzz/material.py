"""Good things to begin from: densities of every kind and family, their files, small tables, checkpoints."""

import csv
import datetime as dt
import io
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np

from jointwise import JUPAD, Dictionary, JointDensity
from jointwise.families import (
    Beta,
    Cauchy,
    Exponential,
    Gamma,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    Lattice,
    Logistic,
    LogNormal,
    PointMass,
    StudentT,
    Uniform,
)
from jointwise.fitting import checkpoint
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_tree import Tree
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Schema, Variable

# A fit that goes through every stage, in a moment.
CHECKPOINTED = {"n_components": 2, "n_models": 2, "n_init": 1, "n_bins": 8, "random_state": 0, "max_iter": 8}


@cache
def densities() -> tuple[JointDensity, ...]:
    """Return densities that together hold every kind of variable and every family of atoms."""
    return (_people(), _dates(), _families(), _conditioned(), trees())


def _density(named: list[tuple[Variable, Dictionary]], n_components: int, seed: int, container: str) -> JointDensity:
    rng = np.random.default_rng(seed)
    coefficients = [rng.dirichlet(np.full(d.n_atoms, 0.5), n_components).T for _, d in named]
    weights = rng.dirichlet(np.ones(n_components))
    mixture = ProductMixture(weights, coefficients, tuple(d for _, d in named))
    return JointDensity(Schema(tuple(v for v, _ in named), container), mixture)


def _people() -> JointDensity:
    named = [
        (Variable("sex", "categorical", categories=("F", "M"), dtype="string"), Dictionary.categories(2)),
        (
            Variable("size", "categorical", categories=("S", "M", "L"), ordered=True, dtype="string"),
            Dictionary.categories(3),
        ),
        (Variable("children", "integer", dtype="int64"), Dictionary.points([0, 1, 2, 3])),
        (Variable("age", "integer", dtype="int64"), Dictionary.grid("gaussian", 30, 50, n=3, scale=8).on_lattice()),
        (
            Variable("gain", "continuous", spikes=(0.0, 5.0)),
            Dictionary.grid("gaussian", 1, 9, n=3, scale=2) + Dictionary.points([0.0, 5.0]),
        ),
        (Variable("smoker", "categorical", categories=(False, True), dtype="bool"), Dictionary.categories(2)),
    ]
    return _density(named, 3, 0, "dict")


def _dates() -> JointDensity:
    named = [
        (
            Variable("day", "continuous", dtype="date"),
            Dictionary.grid("gaussian", 19_000, 20_000, n=2, scale=90),
        ),
        (
            Variable("moment", "continuous", dtype="datetime[us,Europe/Paris]"),
            Dictionary((Gaussian([18_000.0, 18_300.0], 60.0),)),
        ),
        (Variable("x y", "continuous"), Dictionary.grid("laplace", -1, 1, n=3, scale=1)),
    ]
    return _density(named, 2, 1, "pandas")


def _families() -> JointDensity:
    batches = [
        (Gaussian([0.0, 1.0], [1.0, 0.5]), Laplace(0.0, 1.0), Uniform(-1.0, 2.0)),
        (Exponential(0.0, [1.0, 3.0]), Gamma(2.0, 1.0), LogNormal(0.0, 1.0)),
        (Cauchy(0.0, 1.0), StudentT(4.0, 0.0, 1.0), GeneralizedGaussian(1.5, 0.0, 1.0), Logistic(0.0, 1.0)),
        (Beta(2.0, 3.0, 0.0, 1.0),),
    ]
    named = [(Variable(f"v{n}", "continuous"), Dictionary(batch)) for n, batch in enumerate(batches)]
    lattice = Dictionary((Lattice(Gaussian([2.0, 8.0], [1.0, 3.0])), PointMass(0.0)))
    named.append((Variable("k", "integer", dtype="int64"), lattice))
    return _density(named, 3, 2, "numpy")


def _conditioned() -> JointDensity:
    """Atoms that are truncated, as conditioning leaves them."""
    return _families().condition({"v0": (-1.0, None), "v1": (0.5, 4.0), "k": (1, 20)})


@cache
def trees() -> JointDensity:
    """Return a density of two trees, one with a hidden node, over bins with a spike, categories and integers."""
    rng = np.random.default_rng(3)
    pieces = tuple(Gaussian(0.0, 2.0).truncate(low, high) for low, high in ((-np.inf, 0.3), (0.3, np.inf)))
    named = [
        (Variable("x", "continuous", spikes=(1.0,)), Dictionary((*pieces, PointMass(1.0)))),
        (Variable("sex", "categorical", categories=("F", "M"), dtype="string"), Dictionary.categories(2)),
        (Variable("k", "integer", dtype="int64"), Dictionary.points([0, 1, 2])),
        (Variable("y", "continuous"), Dictionary((Gaussian([0.0, 1.0], 1.0),))),
    ]
    made = []
    for variables, parents in (((0, 1, 2, 3), (-1, 0, 0, 1)), ((3, -1, 2, 1, 0), (-1, 0, 1, 1, -1))):
        sizes = [2 if v < 0 else named[v][1].n_atoms for v in variables]
        laws = [rng.dirichlet(np.ones(s), 1 if p < 0 else sizes[p]) for s, p in zip(sizes, parents, strict=True)]
        made.append(Tree(variables, parents, laws))
    mixture = ForestMixture([0.4, 0.6], tuple(d for _, d in named), made)
    return JointDensity(Schema(tuple(v for v, _ in named), "dict"), mixture)


@cache
def model_files() -> tuple[bytes, ...]:
    """Return the densities as files."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        found = []
        for density in densities():
            density.save(place)
            found.append(place.read_bytes())
    return tuple(found)


# ---- tables --------------------------------------------------------------------------------------------------


def people(n: int = 60, seed: int = 0) -> dict[str, list[Any]]:
    """Return a table with text, numbers, dates, a spike, and gaps (None)."""
    rng = np.random.default_rng(seed)
    woman = rng.random(n) < 0.5
    job = np.where(rng.random(n) < np.where(woman, 0.8, 0.2), "nurse", "cook")
    pay = np.where(rng.random(n) < 0.3, 0.0, (np.where(job == "nurse", 40.0, 25.0) + rng.normal(0, 2, n)).round(1))
    columns: dict[str, list[Any]] = {
        "sex": np.where(woman, "F", "M").tolist(),
        "age": rng.integers(20, 60, n).tolist(),
        "job": job.tolist(),
        "monthly pay": pay.tolist(),
        "since": [str(dt.date(2020, 1, 1) + dt.timedelta(days=int(d))) for d in rng.integers(0, 900, n)],
    }
    for cells in columns.values():
        for i in np.flatnonzero(rng.random(n) < 0.08):
            cells[i] = None
    return columns


def as_csv(columns: dict[str, list[Any]]) -> bytes:
    """Return a table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue().encode(errors="surrogatepass")


def as_json_lines(columns: dict[str, list[Any]]) -> bytes:
    """Return a table as JSON lines."""
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def as_arrow(columns: dict[str, list[Any]], form: str) -> bytes:
    """Return a table as Parquet or Arrow."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    out = io.BytesIO()
    table = pa.table(columns)
    if form == "parquet":
        parquet.write_table(table, out)
    else:
        feather.write_feather(table, out, compression="uncompressed")
    return out.getvalue()


@cache
def table_files() -> dict[str, bytes]:
    """Return one table in every form that the command reads, by extension."""
    columns = people()
    return {
        "csv": as_csv(columns),
        "jsonl": as_json_lines(columns),
        "json": json.dumps([dict(zip(columns, r, strict=True)) for r in zip(*columns.values(), strict=True)]).encode(),
        "parquet": as_arrow(columns, "parquet"),
        "arrow": as_arrow(columns, "arrow"),
    }


@cache
def people_model() -> bytes:
    """Return the file of a model of `people`."""
    columns = {name: np.array(cells, dtype=object) for name, cells in people().items()}
    with TemporaryDirectory() as folder:
        JUPAD(2, n_init=1, random_state=0).fit(columns).density_.save(Path(folder) / "m")
        return (Path(folder) / "m").read_bytes()


# ---- checkpoints ---------------------------------------------------------------------------------------------


def checkpointed_rows() -> dict[str, Any]:
    """Return the table of the fit whose checkpoints are at hand."""
    rng = np.random.default_rng(0)
    hidden = rng.random(60) < 0.5
    return {"x": rng.normal(size=60) + 3 * hidden, "c": np.where(hidden, "u", "v")}


@cache
def checkpoints() -> tuple[tuple[bytes, ...], np.ndarray]:
    """Return every checkpoint that one fit writes, first to last, and the log-densities at its end."""
    found: list[bytes] = []
    write = checkpoint.write

    def kept(path, *arguments):
        write(path, *arguments)
        found.append(path.read_bytes())

    with (
        TemporaryDirectory() as folder,
        mock.patch.object(checkpoint, "write", kept),
        mock.patch.object(checkpoint, "INTERVAL", 0.0),
    ):
        model = JUPAD(**CHECKPOINTED, checkpoint=Path(folder) / "c").fit(checkpointed_rows())
    return tuple(found), model.score_samples(checkpointed_rows())
