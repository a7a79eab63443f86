"""Time of one EM step against the numbers of rows, atoms, components and columns."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import repeated
from benchmarks.report import Row
from jointwise import Dictionary, Profile
from jointwise.datasets import laplacians_gaussians
from jointwise.fitting.problem import rows_problem
from jointwise.rows.coded import CodedRows
from jointwise.solvers import start_around

N_ROWS = (125_000, 250_000, 500_000, 1_000_000)
N_ATOMS = (16, 128)
COMPONENTS, COPIES, FEW_ROWS = (8, 16, 32, 64), (1, 2, 4), 250_000
N_COMPONENTS, REPEATS = 16, 9


def run() -> list[Row]:
    """Return the least milliseconds of a step, as one number after another grows."""
    law = laplacians_gaussians(0)
    X = law.sample(N_ROWS[-1], rng=1)
    found = [step_time(X[:n], atoms) for n in N_ROWS for atoms in N_ATOMS]
    for few, many in zip(found[::2], found[1::2], strict=True):
        many["8 times the atoms cost"] = f"{100 * (many['milliseconds'] / few['milliseconds'] - 1):+.1f}%"
    found += [step_time(X[:FEW_ROWS], N_ATOMS[0], n_components) for n_components in COMPONENTS]
    found += [step_time(np.hstack([X[:FEW_ROWS]] * copies), N_ATOMS[0]) for copies in COPIES]
    return found


def step_time(X: np.ndarray, n_atoms: int, n_components: int = N_COMPONENTS) -> Row:
    """Return the time of a step on these rows."""
    profile = Profile.of(X)
    schema = profile.schema()
    rows = CodedRows.of(X, schema, profile.axes(schema, 128))
    grid = Dictionary.grid("gaussian", -10, 10, n=n_atoms, scale=1.5)
    problem = rows_problem(rows, [grid] * len(rows.axes), 8.0)
    point = start_around(problem.margins, n_components, np.random.default_rng(0)).point
    seconds = min(repeated(partial(problem.update, point), REPEATS))
    return {
        "rows": len(X), "columns": X.shape[1], "components": n_components, "atoms": n_atoms,
        "milliseconds": 1e3 * seconds, "ns per row": 1e9 * seconds / len(X), "8 times the atoms cost": "",
    }  # fmt: skip
