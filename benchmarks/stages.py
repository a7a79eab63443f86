"""Time of stages (i) to (iii) with 26 variables, 25 atoms and 20 components, beside a Gaussian mixture."""

from __future__ import annotations

import time
import warnings
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.ndimage import gaussian_filter
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.report import Row
from jointwise import Dictionary, PairwiseMarginals, Profile
from jointwise.fitting.problem import pairwise_problem
from jointwise.solvers import AlternatingMirrorDescent, MirrorDescentPairs, solve, split_starts

N_ROWS, N_ATOMS, N_COMPONENTS, N_BINS = 20_000, 25, 20, 64


def data() -> np.ndarray:
    """Draw 5x5 patches of three textures (noise blurred over three lengths) with labels, like the paper's KTH data."""
    rng = np.random.default_rng(0)
    rows = []
    for label, blur in enumerate((0.7, 1.2, 2.0)):
        image = gaussian_filter(rng.normal(size=(420, 420)), blur)
        image = (image - image.min()) / np.ptp(image)
        patches = sliding_window_view(image, (5, 5))[::5, ::5].reshape(-1, 25)[: N_ROWS // 3 + 1]
        rows.append(np.column_stack([patches, np.full(len(patches), label)]))
    return rng.permutation(np.vstack(rows))[:N_ROWS]


def run() -> list[Row]:
    """Return seconds of each stage, and as a multiple of the mixture's fit."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = data()
    profile = Profile.of(X)
    schema = profile.schema({"x25": "categorical"})
    axes = profile.axes(schema, N_BINS)
    atoms = [Dictionary.grid("gaussian", 0, 1, n=N_ATOMS, scale=0.04)] * 25 + [Dictionary.categories(3)]

    clock = [("", time.perf_counter())]

    def lap(label: str) -> None:
        clock.append((label, time.perf_counter()))

    marginals = PairwiseMarginals.of(X, schema, axes)
    lap("pair counts")
    problem = pairwise_problem(marginals, [d.masses(axis) for d, axis in zip(atoms, axes, strict=True)])
    pairs = solve(MirrorDescentPairs(), problem, max_steps=500)
    lap(f"(i) pairs, {pairs.n_steps} steps")
    start = split_starts(problem, pairs.value, N_COMPONENTS, rng=np.random.default_rng(0))
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
