"""Passes and whole fits on an NVIDIA GPU; codes of the large tables are made on the GPU itself."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import repeated, timed
from benchmarks.report import Row
from jointwise import JUPAD, Dictionary, Profile
from jointwise.axes import BinnedAxis
from jointwise.datasets import laplacians_gaussians
from jointwise.engines import PosteriorEngine, ReferenceEngine, cuda
from jointwise.engines.base import bin_starts
from jointwise.rows.coded import CodedRows
from jointwise.solvers import RowsProblem, simplex_weights, start_around

N_BINS, N_COLUMNS, N_COMPONENTS = 255, 10, 32
BLOCK = 1 << 25
PASS_ROWS, MOST_ROWS, CHECKED_ROWS, FITTED_ROWS = 50_000_000, 1_000_000_000, 1_000_000, 10_000_000
EM_STEPS, REPEATS = 100, 5


def run() -> list[Row]:
    """Return seconds, rows per second and GPU memory for each task."""
    import torch

    found = [_agreement()]
    for columns, n_components in (
        (5, N_COMPONENTS), (N_COLUMNS, 8), (N_COLUMNS, N_COMPONENTS), (N_COLUMNS, 64), (20, N_COMPONENTS),
    ):  # fmt: skip
        codes = made_on_gpu(PASS_ROWS, columns)
        seconds = _best_pass(cuda.CudaEngine(codes, [N_BINS] * columns), columns, n_components)
        found.append(_row(_pass_name(columns, n_components), PASS_ROWS, seconds, ""))
        del codes
    codes = made_on_gpu(PASS_ROWS, N_COLUMNS)
    seconds = min(repeated(partial(cuda.pair_counts, codes, [N_BINS] * N_COLUMNS), 1 + REPEATS)[1:])
    found.append(_row("pair counts, 45 pairs", PASS_ROWS, seconds, ""))
    del codes
    torch.cuda.empty_cache()
    found += _largest()
    return [*found, _whole_fit()]


def made_on_gpu(n: int, n_columns: int) -> list[Any]:
    """Return codes of n rows from a mixture of 8 components with rounded Gaussian columns, in blocks (columns, m)."""
    import torch

    random = torch.Generator(device="cuda").manual_seed(0)
    places = torch.rand((8, n_columns), generator=random, device="cuda") * N_BINS
    scales = 5 + 30 * torch.rand((8, n_columns), generator=random, device="cuda")
    blocks = []
    for start in range(0, n, BLOCK):
        rows = min(BLOCK, n - start)
        component = torch.randint(8, (rows,), generator=random, device="cuda")
        block = torch.empty((n_columns, rows), dtype=torch.uint8, device="cuda")
        for column in range(n_columns):
            values = torch.randn(rows, generator=random, device="cuda") * scales[component, column]
            block[column] = (values + places[component, column]).round().clamp(0, N_BINS - 1).to(torch.uint8)
        blocks.append(block)
    return blocks


def problem_of(codes: list[Any]) -> RowsProblem:
    """Return the problem of EM: atoms, margins and rows."""
    n_columns, n_rows = codes[0].shape[0], sum(block.shape[1] for block in codes)
    counts = cuda.pair_counts(codes, [N_BINS] * n_columns).diagonal()
    masses = Dictionary.grid("gaussian", 0, N_BINS, n=64, scale=4).masses(BinnedAxis(np.arange(1, N_BINS) - 0.5))
    margins = [simplex_weights(masses, c.astype(float), prior=1.0) for c in np.split(counts, n_columns)]
    engine = cuda.CudaEngine(codes, [N_BINS] * n_columns)
    return RowsProblem((masses,) * n_columns, tuple(margins), engine, float(n_rows), 3.0)


def _largest() -> list[Row]:
    """Measure a pass and EM on the most rows; the note shows whether the objective fell at every step."""
    import torch

    codes = made_on_gpu(MOST_ROWS, N_COLUMNS)
    torch.cuda.reset_peak_memory_stats()
    seconds = _best_pass(cuda.CudaEngine(codes, [N_BINS] * N_COLUMNS), N_COLUMNS, N_COMPONENTS)
    found = [_row(_pass_name(N_COLUMNS, N_COMPONENTS), MOST_ROWS, seconds, "")]
    problem = problem_of(codes)
    point = start_around(problem.margins, N_COMPONENTS, np.random.default_rng(0)).point
    objectives = []
    began = time.perf_counter()
    for _ in range(EM_STEPS):
        objective, point = problem.update(point)
        objectives.append(objective)
    seconds = time.perf_counter() - began
    rises = float(np.max(np.diff(objectives)))
    note = f"objective {objectives[0]:.4f} to {objectives[-1]:.4f}, largest change {rises:.1e}"
    task = f"EM, {EM_STEPS} steps, {N_COLUMNS} columns, {N_COMPONENTS} components"
    found.append(_row(task, MOST_ROWS, seconds, note))
    return found


def _whole_fit() -> Row:
    """Fit JUPAD with defaults on the device, and compare it with the truth on fresh rows."""
    import torch

    law = laplacians_gaussians(0)
    X, fresh = law.sample(FITTED_ROWS, rng=1), law.sample(100_000, rng=2)
    torch.cuda.reset_peak_memory_stats()
    JUPAD(device="cuda", random_state=0).fit(X[:100_000])  # compiles
    began = time.perf_counter()
    profile = Profile.of(X)
    schema = profile.schema()
    CodedRows.of(X, schema, profile.axes(schema, 128))
    to_code = time.perf_counter() - began
    model, seconds = timed(partial(JUPAD(device="cuda", random_state=0).fit, X))
    short = float(np.mean(law.logpdf(fresh)) - model.score(fresh))
    note = f"profile and codes {to_code:.1f} s; {short:.4f} nats below the truth on fresh rows"
    return _row("JUPAD().fit, 7 columns", FITTED_ROWS, seconds, note)


def _agreement() -> Row:
    """Compare one pass on the GPU with the plain one in float64."""
    blocks = made_on_gpu(CHECKED_ROWS, N_COLUMNS)
    codes = np.ascontiguousarray(np.hstack([block.cpu().numpy() for block in blocks]).T)
    tables, mixing = _tables(N_COLUMNS, N_COMPONENTS)
    began = time.perf_counter()
    found, plain = (
        engine.posterior_counts(tables, mixing)
        for engine in (
            cuda.CudaEngine(blocks, [N_BINS] * N_COLUMNS),
            ReferenceEngine(codes, [N_BINS] * N_COLUMNS),
        )
    )
    columns = bin_starts([N_BINS] * N_COLUMNS)[:-1]
    scale = np.maximum(plain.counts, 1e-6 * np.add.reduceat(plain.counts, columns).max())
    worst = float(np.max(np.abs(found.counts - plain.counts) / scale))
    mean = abs(found.log_likelihood - plain.log_likelihood) / CHECKED_ROWS
    note = f"S within {worst:.1e}, mean log-likelihood within {mean:.1e}"
    return _row("agreement with the plain pass", CHECKED_ROWS, time.perf_counter() - began, note)


def _tables(n_columns: int, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.gamma(1.0, size=(n_columns * N_BINS, n_components)) + 1e-3, rng.dirichlet(np.ones(n_components))


def _pass_name(n_columns: int, n_components: int) -> str:
    return f"posterior counts, {n_columns} columns, {n_components} components"


def _best_pass(engine: PosteriorEngine, n_columns: int, n_components: int) -> float:
    """Return the least seconds of a pass, without the first, which compiles."""
    work = partial(engine.posterior_counts, *_tables(n_columns, n_components))
    return min(repeated(work, 1 + REPEATS)[1:])  # a pass copies its sums to the CPU, and so waits for the GPU


def _row(task: str, n: int, seconds: float, note: str) -> Row:
    import torch

    memory = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return {
        "task": task, "rows": n, "seconds": seconds, "million rows/s": n / seconds / 1e6, "GiB on the GPU": memory,
        "note": note,
    }  # fmt: skip
