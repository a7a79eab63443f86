"""Stages (i) to (iii) on 26 variables with 25 atoms and rank 20, beside one Gaussian mixture on the same rows."""

from __future__ import annotations

import time
import warnings
from itertools import pairwise

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.report import Row
from jointwise import Dictionary, PairwiseMarginals, Profile
from jointwise.fitting import pairwise_problem
from jointwise.solvers import AlternatingMirrorDescent, MirrorDescentPairs, solve, split_starts

N_ROWS, N_VARIABLES, N_ATOMS, RANK, N_BINS = 20_000, 26, 25, 20, 64


def data() -> np.ndarray:
    """Rows of a mixture of 12 Gaussian products, each variable scaled to about [0, 1]."""
    rng = np.random.default_rng(0)
    component = rng.integers(12, size=N_ROWS)
    centres = rng.uniform(0.1, 0.9, (12, N_VARIABLES))
    return centres[component] + rng.normal(0, 0.08, (N_ROWS, N_VARIABLES))


def run() -> list[Row]:
    """Return seconds of each stage, and as a multiple of the mixture's fit."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = data()
    profile = Profile.of(X)
    schema = profile.schema()
    axes = profile.axes(schema, N_BINS)
    atoms = Dictionary.grid("gaussian", 0, 1, n=N_ATOMS, scale=0.04)

    clock = [("", time.perf_counter())]

    def lap(label: str) -> None:
        clock.append((label, time.perf_counter()))

    marginals = PairwiseMarginals.of(X, schema, axes)
    lap("pair counts")
    problem = pairwise_problem(marginals, [atoms.masses(axis) for axis in axes])
    pairs = solve(MirrorDescentPairs(), problem, max_steps=500)
    lap(f"(i) pairs, {pairs.n_steps} steps")
    start = split_starts(problem, pairs.value, RANK, rng=np.random.default_rng(0))
    lap("(ii) projections, 8 splits")
    refined = solve(AlternatingMirrorDescent(start.value), problem, max_steps=500)
    lap(f"(iii) refinement, {refined.n_steps} sweeps")
    mixture = GaussianMixture(10, random_state=0).fit(X)
    lap(f"GaussianMixture(10, full), {mixture.n_iter_} steps")

    seconds = {b: t - s for (_, s), (b, t) in pairwise(clock)}
    rival = list(seconds.values())[-1]
    rows: list[Row] = [{"step": step, "seconds": s, "x GaussianMixture": s / rival} for step, s in seconds.items()]
    total = sum(list(seconds.values())[1:-1])
    rows.append({"step": "(i) + (ii) + (iii)", "seconds": total, "x GaussianMixture": total / rival})
    return rows
