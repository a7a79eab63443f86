"""Time of one EM step: against rows, and against the size of the dictionaries."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.report import Row
from jointwise import Dictionary, Profile
from jointwise.datasets import laplacians_gaussians
from jointwise.likelihood import likelihood_problem
from jointwise.marginals import CodedRows
from jointwise.solvers import start_around

N_ROWS = (125_000, 250_000, 500_000, 1_000_000)
N_ATOMS = (16, 128)
RANK, REPEATS = 16, 9


def run() -> list[Row]:
    """Return milliseconds of a step, the best of some, for each number of rows and size of dictionaries."""
    law = laplacians_gaussians(0)
    X = law.sample(N_ROWS[-1], rng=1)
    profile = Profile.of(X)
    schema = profile.schema()
    rows = CodedRows.of(X, schema, profile.axes(schema, 128))
    found = []
    for n in N_ROWS:
        part = rows.take(np.arange(n))
        for atoms in N_ATOMS:
            grid = Dictionary.grid("gaussian", -10, 10, n=atoms, scale=1.5)
            problem = likelihood_problem(part, [grid] * len(part.axes), 8.0)
            start = start_around(problem.margins, RANK, np.random.default_rng(0))
            point = np.vstack([start.weights, *start.coefficients])
            seconds = min(_seconds(problem.update, point) for _ in range(REPEATS))
            found.append({"rows": n, "atoms": atoms, "milliseconds": 1e3 * seconds, "ns per row": 1e9 * seconds / n})
    for few, many in zip(found[::2], found[1::2], strict=True):
        many["8 times the atoms cost"] = f"{100 * (many['milliseconds'] / few['milliseconds'] - 1):+.1f}%"
        few["8 times the atoms cost"] = ""
    return found


def _seconds(update: object, point: np.ndarray) -> float:
    start = time.perf_counter()
    update(point)  # type: ignore[operator]
    return time.perf_counter() - start
