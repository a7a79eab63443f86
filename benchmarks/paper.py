"""JUPAD as published and by default on experiments 1 and 3, beside independence and Gaussian mixtures."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.measure import train_and_test
from benchmarks.report import Row
from jointwise import JUPAD, JointDensity
from jointwise.datasets import laplacians, laplacians_gaussians
from jointwise.metrics import mean_absolute_log_ratio

LAWS = {"1 laplacians": laplacians, "3 laplacians, gaussians": laplacians_gaussians}
SIZES = (1_000, 5_000, 20_000)
SEEDS = (0, 1, 2)
CLUSTERS = (1, 2, 5, 10, 20, 40)


def run() -> list[Row]:
    """Return D, the mean |log fhat - log f| on fresh points, of each method for each law, size and seed."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # a mixture that stops early is still a rival
    return [
        {"experiment": name, "n": n, "seed": seed} | compare(law_of(seed), n, seed)
        for name, law_of in LAWS.items()
        for n in SIZES
        for seed in SEEDS
    ]


def compare(law: JointDensity, n: int, seed: int) -> Row:
    """Return D of every method on one training set."""
    X, Z = train_and_test(law, n, seed)

    def distance(model: JUPAD | GaussianMixture) -> float:
        return mean_absolute_log_ratio(model.fit(X).score_samples, law.logpdf, Z)

    mixtures = {k: distance(GaussianMixture(k, random_state=0)) for k in CLUSTERS}
    best = min(mixtures, key=mixtures.__getitem__)
    paper = distance(JUPAD(law.n_components, method="paper", random_state=seed))
    return {
        "independence": distance(JUPAD(1, method="pairs", random_state=seed)),
        "GMM full, best k": mixtures[best],
        "k": best,
        "JUPAD (paper)": paper,
        "JUPAD (pairs, kl)": distance(JUPAD(law.n_components, method="pairs", random_state=seed)),
        "JUPAD()": distance(JUPAD(random_state=seed)),
        "paper / GMM": paper / mixtures[best],
        "lower": "yes" if paper < mixtures[best] else "NO",
    }
