"""Seconds of a fit of tables of many shapes, beside GaussianMixture(10, full) in the same run, and how they grow.

Each shape is fitted by every model and by the rival in turn, several times; the least time of each counts, since a busy
machine only makes them slower. The time of the processor, over all threads, depends less on what else runs. A first
fit, not counted, loads packages and compiled code. Rows are a cloud with a factor for every fifth column, every third
column exponentiated. Mixed tables have every second column cut into five categories, and stand beside StepMix where it
is installed. Growth exponents are slopes of the logarithm of seconds. With OMP_NUM_THREADS=1 the rival has one thread;
on a busy machine it is then many times faster than with several, so give the setting with the figures.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.measure import timed
from benchmarks.report import Row
from jointwise import JUPAD, JointEstimator
from jointwise.exceptions import MisfitWarning

SHAPES = (
    (200, 5), (500, 30), (1_000, 5), (1_000, 20), (1_000, 60), (1_000, 200), (10_000, 10), (100_000, 20),
    (1_000_000, 7),
)  # fmt: skip
MIXED = ((1_000, 10), (10_000, 10))
MODELS: dict[str, Callable[..., Any]] = {"JUPAD": JUPAD, "JointEstimator": JointEstimator}
# Repeats of a shape with fewer cells, and of larger ones.
FEW_CELLS, REPEATS = 100_000, (3, 1)
N_STATES, N_CLASSES, WARM_ROWS = 5, 10, 300

# What grows, from first to last, with what stays: tables of (rows, columns), categories, components.
ROWS, COLUMNS = (1_000, 4_000, 16_000), (20, 100, 500)
CATEGORIES, COMPONENTS = (500, 4_000, 32_000), (8, 32, 128)


def run(models: Sequence[str] = tuple(MODELS), shapes: Sequence[str] = ()) -> list[Row]:
    """Return the seconds of each model on each shape, and their ratio to the rival's, then growth exponents.

    Parameters
    ----------
    models : sequence of str
        Some of `MODELS`.
    shapes : sequence of str
        Such as "1000x200"; all of `SHAPES`, mixed tables and growth by default.
    """
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", MisfitWarning)
    for name in models:
        MODELS[name](random_state=0).fit(cloud(WARM_ROWS, 3))
    chosen = [tuple(map(int, shape.split("x"))) for shape in shapes] or SHAPES
    rows = [row for n, p in chosen for row in beside_rival(models, cloud(n, p), "GaussianMixture(10)", gaussian)]
    if shapes:
        return rows
    if find_spec("stepmix"):
        rows += [row for n, p in MIXED for row in beside_rival(models, mixed(n, p), "StepMix(10)", stepmix)]
    return rows + [
        growth(name, *what)
        for name, what in product(models, _growing())
        if what[0] != "components" or name == "JUPAD"  # a stack chooses its own
    ]


def cloud(n: int, p: int, seed: int = 0) -> np.ndarray:
    """Draw n rows of p columns that depend on each other, a third of them skewed."""
    rng = np.random.default_rng(seed)
    n_factors = max(2, p // 5)
    X = rng.normal(size=(n, n_factors)) @ rng.normal(size=(n_factors, p)) / np.sqrt(n_factors)
    X += 0.5 * rng.normal(size=(n, p))
    X[:, ::3] = np.exp(0.7 * X[:, ::3])
    return X


def mixed(n: int, p: int) -> dict[str, np.ndarray]:
    """Draw a table whose every second column holds categories."""
    X = cloud(n, p)
    cuts = np.quantile(X, np.arange(1, N_STATES) / N_STATES, axis=0)
    columns = {f"x{k}": X[:, k] for k in range(p)}
    return columns | {f"x{k}": np.searchsorted(cuts[:, k], X[:, k]).astype(str) for k in range(1, p, 2)}


def beside_rival(models: Sequence[str], table: Any, rival: str, fit_rival: Callable[[Any], Any]) -> list[Row]:
    """Fit a table by the rival and by each model in turn; return a row for each model."""
    n, p = table.shape if isinstance(table, np.ndarray) else (len(next(iter(table.values()))), len(table))
    shape = f"{n:,} x {p}" + " mixed" * isinstance(table, dict)
    fits = {rival: partial(fit_rival, table)}
    fits |= {name: partial(MODELS[name](random_state=0).fit, table) for name in models}
    runs = [{name: spent(fit) for name, fit in fits.items()} for _ in range(REPEATS[n * p > FEW_CELLS])]
    least = {name: np.min([seconds[name] for seconds in runs], axis=0) for name in fits}
    return [_row(name, shape, *least[name], *least[name] / least[rival], rival) for name in models]


def spent(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of work by the clock, and those of the processor over all threads."""
    start = time.process_time()
    seconds = timed(work)[1]
    return seconds, time.process_time() - start


def gaussian(table: np.ndarray) -> Any:
    """Fit the rival of tables of numbers."""
    return GaussianMixture(N_CLASSES, random_state=0).fit(table)


def stepmix(table: dict[str, np.ndarray]) -> Any:
    """Fit the rival of mixed tables."""
    import pandas as pd
    from stepmix.stepmix import StepMix
    from stepmix.utils import get_mixed_descriptor

    frame = pd.DataFrame({name: np.asarray(column, dtype=float) for name, column in table.items()})
    texts = [name for name, column in table.items() if column.dtype.kind == "U"]
    numbers = [name for name in table if name not in texts]
    data, descriptor = get_mixed_descriptor(frame, continuous=numbers, categorical=texts)
    return StepMix(N_CLASSES, measurement=descriptor, random_state=0, progress_bar=0, verbose=0).fit(data)


def growth(name: str, what: str, sizes: Sequence[int], fit: Callable[[str, int], Any]) -> Row:
    """Return the slopes of the logarithm of seconds over that of a size."""
    seconds = [spent(partial(fit, name, size)) for size in sizes]
    slopes = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    return _row(name, f"{what} {sizes[0]:,} to {sizes[-1]:,}", *seconds[-1], *slopes, "exponent of growth")


def _growing() -> list[tuple[str, Sequence[int], Callable[[str, int], Any]]]:
    def fitted(table: Any, name: str, **options: Any) -> Any:
        return MODELS[name](random_state=0, **options).fit(table)

    return [
        ("rows", ROWS, lambda name, size: fitted(cloud(size, 10), name)),
        ("columns", COLUMNS, lambda name, size: fitted(cloud(1_000, size), name)),
        ("categories", CATEGORIES, lambda name, size: fitted(_with_categories(size), name, keep=["kind"])),
        ("components", COMPONENTS, lambda name, size: fitted(cloud(10_000, 10), name, n_components=size)),
    ]


def _with_categories(n_categories: int) -> dict[str, np.ndarray]:
    """Draw 40,000 rows with a column of categories, all of them met, and two columns of numbers."""
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(n_categories), rng.integers(n_categories, size=40_000 - n_categories)])
    names = np.array([f"c{k:05d}" for k in range(n_categories)])
    return {"kind": names[codes], "x": rng.normal(codes % 7), "y": rng.normal(size=len(codes))}


def _row(model: str, shape: str, seconds: float, processor: float, ratio: float, of_processor: float, to: str) -> Row:
    return {
        "model": model,
        "shape": shape,
        "seconds": seconds,
        "of the processor": processor,
        "ratio or exponent": ratio,
        "that of the processor": of_processor,
        "ratio to": to,
    }
