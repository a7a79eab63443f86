"""Time of one EM step: against rows, size of the dictionaries, number of components and number of columns."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.report import Row
from jointwise import Dictionary, Profile
from jointwise.datasets import laplacians_gaussians
from jointwise.fitting.problem import rows_problem
from jointwise.rows.coded import CodedRows
from jointwise.solvers import start_around

N_ROWS = (125_000, 250_000, 500_000, 1_000_000)
N_ATOMS = (16, 128)
RANKS, COPIES, FEW_ROWS = (8, 16, 32, 64), (1, 2, 4), 250_000
RANK, REPEATS = 16, 9


def run() -> list[Row]:
    """Return milliseconds of a step, the best of some, as one thing after another grows."""
    law = laplacians_gaussians(0)
    X = law.sample(N_ROWS[-1], rng=1)
    found = [timed(X[:n], atoms) for n in N_ROWS for atoms in N_ATOMS]
    for few, many in zip(found[::2], found[1::2], strict=True):
        many["8 times the atoms cost"] = f"{100 * (many['milliseconds'] / few['milliseconds'] - 1):+.1f}%"
    found += [timed(X[:FEW_ROWS], N_ATOMS[0], rank) for rank in RANKS]
    found += [timed(np.hstack([X[:FEW_ROWS]] * copies), N_ATOMS[0]) for copies in COPIES]
    return found


def timed(X: np.ndarray, n_atoms: int, rank: int = RANK) -> Row:
    """Return the time of a step on these rows."""
    profile = Profile.of(X)
    schema = profile.schema()
    rows = CodedRows.of(X, schema, profile.axes(schema, 128))
    grid = Dictionary.grid("gaussian", -10, 10, n=n_atoms, scale=1.5)
    problem = rows_problem(rows, [grid] * len(rows.axes), 8.0)
    start = start_around(problem.margins, rank, np.random.default_rng(0))
    point = start.point
    seconds = min(_seconds(problem.update, point) for _ in range(REPEATS))
    return {
        "rows": len(X), "columns": X.shape[1], "components": rank, "atoms": n_atoms, "milliseconds": 1e3 * seconds,
        "ns per row": 1e9 * seconds / len(X), "8 times the atoms cost": "",
    }  # fmt: skip


def _seconds(update: object, point: np.ndarray) -> float:
    start = time.perf_counter()
    update(point)  # type: ignore[operator]
    return time.perf_counter() - start
