"""D, seconds and total mass of every relative and JUPAD on experiments 1 to 4 of the paper.

D is the mean of |log fhat - log f| over the points, of 1000 fresh ones, where the estimate has a density; "zero" is the
share of the other points, for which D would be infinite. The mass is the integral over a box that holds all but 1e-5 of
each variable at each end, by importance sampling, with its standard error. Methods that need a rank get the true one,
as in the paper. Each number is the mean over two random truths.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import N_TEST, kinds_of, timed, train_and_test
from benchmarks.report import Row
from jointwise import JUPAD, JointDensity
from jointwise.datasets import gaussians, hybrid, laplacians, laplacians_gaussians
from jointwise.metrics import covering_proposal, mean_absolute_log_ratio, total_mass
from jointwise.relatives import (
    CPD3,
    CharacteristicDensity,
    GaussianMixtureDensity,
    IndependenceDensity,
    KernelDensityEstimate,
)

LAWS = {"1 laplacians": laplacians, "2 gaussians": gaussians, "3 both": laplacians_gaussians, "4 hybrid": hybrid}
SIZES = (1_000, 5_000)
SEEDS = (0, 1)
N_MASS = 10_000

# Takes the true rank, the kinds of the columns and a seed; returns an estimator.
Recipe = Callable[[int, Mapping[str, str], int], Any]
METHODS: dict[str, Recipe] = {
    "IndependenceDensity": lambda _, kinds, seed: IndependenceDensity(kinds=kinds, random_state=seed),
    "GaussianMixtureDensity, bic": lambda _f, _k, seed: GaussianMixtureDensity("bic", random_state=seed),
    "GaussianMixtureDensity, hindsight": lambda _f, _k, seed: GaussianMixtureDensity("hindsight", random_state=seed),
    "GaussianMixtureDensity, diag, hindsight": lambda _f, _k, seed: GaussianMixtureDensity(
        "hindsight", covariance_type="diag", random_state=seed
    ),
    "KernelDensityEstimate, cv": lambda _f, _k, seed: KernelDensityEstimate(random_state=seed),
    "CPD3, published": lambda rank, kinds, seed: CPD3(rank, kinds=kinds, random_state=seed),
    "CPD3, normalize": lambda rank, kinds, seed: CPD3(rank, kinds=kinds, normalize=True, random_state=seed),
    "CharacteristicDensity, published": lambda _f, _k, seed: CharacteristicDensity(
        10, n_frequencies=10, normalize=False, padding=0.0, n_init=1, max_iter=35, random_state=seed
    ),
    "CharacteristicDensity, default": lambda _f, _k, seed: CharacteristicDensity(random_state=seed),
    "JUPAD, paper": lambda rank, kinds, seed: JUPAD(rank, method="paper", kinds=kinds, random_state=seed),
    "JUPAD()": lambda _, kinds, seed: JUPAD(kinds=kinds, random_state=seed),
}

LEFT_OUT = (
    "CoupledPMF, PairwisePMF and ProjectionPMF are left out: they take discrete columns, and binned columns give "
    "masses of bins, not a density to compare with the truth (CPD3 is CoupledPMF on bins with an interpolation). "
    "`python -m benchmarks recovery` compares them. In experiment 4 Gaussian mixtures, kernels and the characteristic "
    "tensor take the ten states as real numbers."
)


def run() -> list[Row]:
    """Return one row for each experiment, size and method."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that stops early is still a rival
    Console(width=160).print(LEFT_OUT)
    rows = []
    for experiment, law_of in LAWS.items():
        laws = [law_of(seed) for seed in SEEDS]
        for n in SIZES:
            for name, recipe in METHODS.items():
                found = np.mean([measure(law, n, recipe, seed) for seed, law in enumerate(laws)], axis=0)
                distance, zero, seconds, mass, variance = found.tolist()
                error = np.sqrt(variance / len(SEEDS))
                rows.append(
                    {
                        "experiment": experiment,
                        "n": n,
                        "method": name,
                        "D": distance,
                        "zero": zero,
                        "seconds": seconds,
                        "mass": f"{mass:.3f} +- {error:.3f}",
                    }
                )
    return rows


def measure(law: JointDensity, n: int, recipe: Recipe, seed: int) -> tuple[float, float, float, float, float]:
    """Return D, share of points without density, seconds of the fit, mass, and its squared standard error."""
    X, Z = train_and_test(law, n, seed)
    model = recipe(law.n_components, kinds_of(law), seed)
    hindsight = {"truth": law} if getattr(model, "n_components", None) == "hindsight" else {}
    _, seconds = timed(lambda: model.fit(X, **hindsight))
    here = Z[np.isfinite(model.score_samples(Z))]
    distance = mean_absolute_log_ratio(model.score_samples, law.logpdf, here)
    mass = total_mass(model.score_samples, covering_proposal(law), N_MASS, rng=seed)
    return distance, 1 - len(here) / N_TEST, seconds, mass.value, mass.error**2
