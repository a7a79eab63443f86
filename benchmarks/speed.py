"""Time, memory and held-out likelihood at 10,000, 100,000 and 1,000,000 rows x 7 variables, beside Gaussian mixtures.

Each fit runs in its own process, so that its peak of memory is its own. A first fit of a few rows, not counted, loads
packages and compiled code (compiled once per installation, in some 10 s, and read from disk afterwards).
"""

from __future__ import annotations

import warnings
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.measure import in_fresh_process, peak_bytes, timed
from benchmarks.report import Row
from jointwise import JUPAD, JointEstimator
from jointwise.datasets import laplacians_gaussians

SIZES = (10_000, 100_000, 1_000_000)
N_TEST, WARM_ROWS = 20_000, 8_000
METHODS = {
    "JointEstimator()": lambda: JointEstimator(random_state=0),
    "JUPAD()": lambda: JUPAD(random_state=0),
    "GaussianMixture(10, full)": lambda: GaussianMixture(10, random_state=0),
}


def run() -> list[Row]:
    """Return seconds, peak memory relative to the input, and held-out log-likelihood of each method at each size."""
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
    """Fit in a fresh process; it reads the rows from a file, so that drawing them leaves no peak there."""
    with TemporaryDirectory() as folder:
        np.save(f"{folder}/rows.npy", laplacians_gaussians(0).sample(n, rng=1))
        return dict(in_fresh_process(_fit, name, f"{folder}/rows.npy"))


def _fit(name: str, file: str) -> Row:
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, model = np.load(file), METHODS[name]()
    model.fit(X[:WARM_ROWS])  # loads packages and compiled code
    before = peak_bytes()
    _, seconds = timed(partial(model.fit, X))
    peak = peak_bytes() - before
    law = laplacians_gaussians(0)
    Z = law.sample(N_TEST, rng=2)
    return {
        "seconds": seconds,
        "peak above start / input": peak / X.nbytes,
        "nats below the truth, held out": float(np.mean(law.logpdf(Z) - model.score_samples(Z))),
        "components": model.density_.n_components if hasattr(model, "density_") else model.n_components,
    }
