r"""The common part of the experiments of section IV-A: random truths, estimates of them, and their distance D.

Each truth is drawn anew, N_s rows are drawn from it, every method is fitted to the same rows, and the paper's

.. math:: D = \frac{1}{M} \sum_{k=1}^{M} |\log \hat f(z_k) - \log f(z_k)|

is taken over M fresh points of the truth.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from jointwise.datasets.synthetic import gaussians, hybrid, laplacians, laplacians_gaussians
from jointwise.dictionary import Dictionary
from jointwise.estimators import JUPAD
from jointwise.experiments.base import Experiment, Result, Task
from jointwise.experiments.distances import CONTROL, CPD, DEFAULT, INDEPENDENCE, MIXTURES, PAPER, Distances, Measurement
from jointwise.experiments.verdicts import Claim, verdicts
from jointwise.joint.density import JointDensity
from jointwise.metrics import mean_absolute_log_ratio
from jointwise.relatives import CPD3, GaussianMixtureDensity, IndependenceDensity
from jointwise.exceptions import CovarianceError
from jointwise.tables.variables import Kind

SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
N_TRUTHS = 5
QUICK_SIZES = (500, 1_000, 5_000)
QUICK_N_TRUTHS = 2
# M of the paper.
N_POINTS = 1_000
# Numbers of Gaussians grow by so many from so many on.
STEP = 5
# So many numbers of Gaussians in a row without a gain in D end the search for the best.
PATIENCE = 3
# To raise when a method or the way of measuring changes here.
VERSION = 1

LAWS: dict[str, Callable[[int], JointDensity]] = {
    "laplacians": laplacians,
    "gaussians": gaussians,
    "laplacians-gaussians": laplacians_gaussians,
    "hybrid": hybrid,
}


def _kinds(law: JointDensity) -> dict[str, str]:
    return {variable.name: str(variable.kind) for variable in law.schema}


def _true_atoms(law: JointDensity) -> dict[str, Dictionary]:
    """Dictionaries that hold the atoms of the truth itself; states have theirs anyway."""
    return {
        variable.name: dictionary
        for variable, dictionary in zip(law.schema, law.mixture.dictionaries, strict=True)
        if variable.kind is Kind.CONTINUOUS
    }


def _as_in_the_paper(law: JointDensity, seed: int, **options: Any) -> JUPAD:
    return JUPAD(law.n_components, loss="frobenius", polish=None, kinds=_kinds(law), random_state=seed, **options)


# From the truth, for its kinds of variables and its rank, and a seed to an estimator.
ESTIMATORS: dict[str, Callable[[JointDensity, int], Any]] = {
    INDEPENDENCE: lambda law, seed: IndependenceDensity(kinds=_kinds(law), random_state=seed),
    PAPER: _as_in_the_paper,
    CONTROL: lambda law, seed: _as_in_the_paper(law, seed, dictionaries=_true_atoms(law)),
    DEFAULT: lambda law, seed: JUPAD(kinds=_kinds(law), random_state=seed),
    CPD: lambda law, seed: CPD3(law.n_components, kinds=_kinds(law), random_state=seed),
}


@dataclass(frozen=True)
class SyntheticExperiment(Experiment):
    """D against N_s on one kind of truth.

    Parameters
    ----------
    name : str
        Of a law in `LAWS`.
    title : str
    intro : str
        What the truths are, and what is particular about the methods here.
    claims : sequence of Claim
        What is expected, to be judged by the numbers.
    """

    name: str
    title: str
    intro: str
    claims: Sequence[Claim]

    def tasks(self, *, quick: bool) -> list[Task]:
        """One task for each size, truth and method; all numbers of Gaussians are one."""
        sizes, n_truths = (QUICK_SIZES, QUICK_N_TRUTHS) if quick else (SIZES, N_TRUTHS)
        return [_task(self.name, n, seed, method) for n in sizes for seed in range(n_truths) for method in _METHODS]

    def report(self, results: Mapping[str, Result], folder: Path) -> str:
        """Introduction, verdicts, figure and tables."""
        found = Distances([Measurement(**row) for result in results.values() for row in result["rows"]])
        figure = f"{self.name}.png"
        found.draw(folder / figure)
        return "\n\n".join(
            [
                self.intro,
                _how(len(found.seeds)),
                verdicts(self.claims, found),
                f"![D against the number of rows]({figure})",
                found.table(),
                found.mixture_table(),
            ]
        )


def _task(law: str, n: int, seed: int, method: str) -> Task:
    settings = {"law": law, "n": n, "seed": seed, "method": method, "points": N_POINTS, "version": VERSION}
    if method == MIXTURES:
        settings |= {"step": STEP, "patience": PATIENCE}
    return Task(f"n{n}-seed{seed}-{_KEYS[method]}", partial(_METHODS[method], law, n, seed), settings)


def _how(n_truths: int) -> str:
    return (
        f"Mean and standard error of {n_truths} random truths, each with its own rows and M = {N_POINTS:,} points. "
        "JUPAD as in the paper and CPD-3 (all triples, published settings) are told the true rank, JUPAD() is told "
        "nothing. Dictionaries are the automatic ones; the last row of the table is a control, with the atoms of the "
        "truth itself. Gaussian mixtures have full covariances without regularisation and "
        f"{STEP}, {2 * STEP}, {3 * STEP}, ... clusters until a covariance fails or {PATIENCE} numbers in a row bring D "
        "no lower; the best of them is picked by D itself, which nobody could do without the truth and which "
        "flatters it."
    )


@dataclass(frozen=True)
class Trial:
    """Rows to fit and points to compare on, of one truth."""

    law: JointDensity
    n: int
    seed: int

    def measure(self, model: Any, method: str) -> Measurement:
        """Fit an estimator and take its distance."""
        rows = self.law.sample(self.n, rng=1_000 + self.seed)
        points = self.law.sample(N_POINTS, rng=2_000 + self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what stops at its limit of steps is still a rival
            start = time.perf_counter()
            model.fit(rows)
            seconds = time.perf_counter() - start
        distance = mean_absolute_log_ratio(model.score_samples, self.law.logpdf, points)
        return Measurement(method, self.n, self.seed, distance, seconds)


def run_estimator(method: str, law: str, n: int, seed: int) -> Result:
    """Distance of one estimator."""
    truth = LAWS[law](seed)
    model = ESTIMATORS[method](truth, seed)
    return {"rows": [vars(Trial(truth, n, seed).measure(model, method))]}


def run_mixtures(law: str, n: int, seed: int) -> Result:
    """Distances of Gaussian mixtures of growing numbers of clusters, and the number at which a covariance failed."""
    trial = Trial(LAWS[law](seed), n, seed)
    found: list[Measurement] = []
    failed = None
    while failed is None and not _out_of_patience(found):
        k = STEP * (len(found) + 1)
        try:
            model = GaussianMixtureDensity(k, reg_covar=0.0, random_state=seed)
            found.append(trial.measure(model, f"GMM-{k}"))
        except CovarianceError:
            failed = k
    return {"rows": [vars(m) for m in found], "failed": failed}


def _out_of_patience(found: Sequence[Measurement]) -> bool:
    distances = [m.D for m in found]
    return len(distances) > PATIENCE and min(distances[-PATIENCE:]) >= min(distances[:-PATIENCE])


_METHODS: dict[str, Callable[[str, int, int], Result]] = {
    **{method: partial(run_estimator, method) for method in ESTIMATORS},
    MIXTURES: run_mixtures,
}
_KEYS = {
    INDEPENDENCE: "independence",
    PAPER: "jupad-paper",
    CONTROL: "jupad-paper-true-atoms",
    DEFAULT: "jupad",
    CPD: "cpd3",
    MIXTURES: "gmm",
}
