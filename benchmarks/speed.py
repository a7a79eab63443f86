"""Time, memory and held-out likelihood at 10,000, 100,000 and 1,000,000 rows x 7 variables, beside Gaussian mixtures.

Each fit runs in a process of its own, so that its peak of memory is its own. A first fit of a few rows that is not
counted loads packages and compiled code (compiled once per installation, some 10 s, and read from disk afterwards).
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.report import Row
from jointwise import JUPAD
from jointwise.datasets import laplacians_gaussians

SIZES = (10_000, 100_000, 1_000_000)
N_TEST, WARM_ROWS = 20_000, 8_000
METHODS = {
    "JUPAD()": lambda: JUPAD(random_state=0),
    "GaussianMixture(10, full)": lambda: GaussianMixture(10, random_state=0),
}


def run() -> list[Row]:
    """Return seconds, peak memory over the input's, and held-out log-likelihood of each method at each size."""
    rows = []
    for n in SIZES:
        found = {name: measured(name, n) for name in METHODS}
        rival = found["GaussianMixture(10, full)"]["seconds"]
        rows += [
            {"rows": n, "method": name} | values | {"times the rival's": values["seconds"] / rival}
            for name, values in found.items()
        ]
    return rows


def measured(name: str, n: int) -> dict[str, Any]:
    """Fit in a fresh process and wait for it; the rows come from a file, so that drawing them leaves no peak there."""
    with TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(1) as pool:
        np.save(f"{folder}/rows.npy", laplacians_gaussians(0).sample(n, rng=1))
        return dict(pool.apply(_fit, (name, f"{folder}/rows.npy")))


def _fit(name: str, file: str) -> Row:
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, model = np.load(file), METHODS[name]()
    model.fit(X[:WARM_ROWS])  # packages and compiled code are in memory then, and do not count as the fit's
    before = _peak()
    start = time.perf_counter()
    model.fit(X)
    seconds, peak = time.perf_counter() - start, _peak() - before
    law = laplacians_gaussians(0)
    Z = law.sample(N_TEST, rng=2)
    return {
        "seconds": seconds,
        "peak above start / input": peak / X.nbytes,
        "nats below the truth, held out": float(np.mean(law.logpdf(Z) - model.score_samples(Z))),
        "components": model.density_.n_components if hasattr(model, "density_") else model.n_components,
    }


def _peak() -> int:
    """Largest resident size of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
