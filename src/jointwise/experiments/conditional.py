"""Conditional inference: the unknown cells of a row given the known ones, in tables and in images."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import KNNImputer

from jointwise._typing import AnyArray, BoolArray, FloatArray
from jointwise.datasets.textures import CLASS_NAMES
from jointwise.estimators import JUPAD, JointEstimator
from jointwise.exceptions import ImpossibleEventError, RareEventWarning
from jointwise.experiments.base import Experiment, Result, Task
from jointwise.experiments.distances import DEFAULT, STACK
from jointwise.experiments.page import markdown_table, means_table
from jointwise.experiments.splits import QUICK_TABLES, SHOWN_TEXTURES, SIDE, SPLITS, TABLES, TEXTURES
from jointwise.experiments.textures import draw_reconstruction, from_text, to_text

N_SEEDS, QUICK_N_SEEDS = 5, 1
# Raise this when a method or a measure changes here.
VERSION = 2
# Share of the test cells to hide, and probabilities of the intervals to check.
HIDDEN = 0.3
SHARES = (0.5, 0.8, 0.95)
# Most hidden cells of a split whose intervals are checked.
MOST_CELLS = 200
# Patches along the side of the part of an image to show, and the pixels of a patch to hide.
N_SHOWN = 16
CENTRE = np.pad(np.ones((3, 3), dtype=bool), 1).ravel()

GAUSSIAN, NEIGHBOURS, MEAN = "one Gaussian (linear)", "5 neighbours (KNNImputer)", "column mean"

INTRO = f"""\
The density is fitted to complete rows. {HIDDEN:.0%} of the test cells are hidden at random, and each is filled with its
conditional mean given the other cells of its row; the same fit serves any pattern of gaps. The error is the root mean
square in units of the column's standard deviation (the column mean has an error of 1)."""

CALIBRATION = f"""\
A conditional is a distribution, not only a mean: the share of hidden cells between two quantiles of their conditional
distribution should be the probability between them, here by {STACK}.
If the share is larger, the conditionals are too wide."""

TEXTURE = """\
Image reconstruction: the density of 5 x 5 patches of all three textures is fitted to training images. The inner 3 x 3
pixels of every patch of a test image are hidden, and each is filled with its conditional mean given the 16 around. The
texture is not given. Root mean square error of the hidden pixels, grey levels from 0 to 1:"""


@dataclass(frozen=True)
class Filled:
    """How well one method fills hidden cells of one split."""

    dataset: str
    method: str
    seed: int  # of the split
    error: float  # root mean square, columns in units of their standard deviation


class Conditional(Experiment):
    """Hidden cells of tables, and hidden pixels of textures."""

    name = "conditional"
    title = "Conditional inference and image reconstruction"

    def tasks(self, *, quick: bool) -> list[Task]:
        """Return one task for each data set and split, and one for textures."""
        datasets, n_seeds = (QUICK_TABLES, QUICK_N_SEEDS) if quick else (TABLES, N_SEEDS)
        settings = {"hidden": HIDDEN, "shares": list(SHARES), "cells": MOST_CELLS, "version": VERSION}
        tables = [
            Task(
                f"{dataset.lower()}-seed{seed}",
                partial(run_table, dataset, seed),
                settings | {"dataset": dataset, "seed": seed},
            )
            for dataset in datasets
            for seed in range(n_seeds)
        ]
        texture_settings = {"seed": SHOWN_TEXTURES, "quick": quick, "shown": N_SHOWN, "version": VERSION}
        return [*tables, Task("textures", partial(run_textures, quick=quick), texture_settings)]

    def report(self, results: Mapping[str, Result], folder: Path) -> str:
        """Return tables of errors and of calibration, and the images before and after."""
        found = [Filled(**row) for result in results.values() for row in result.get("filled", [])]
        inside = {key: result["inside"] for key, result in results.items() if "inside" in result}
        textures = results["textures"]
        images = {name: from_text(text).reshape(3, N_SHOWN, N_SHOWN, 25) for name, text in textures["images"].items()}
        draw_reconstruction(_shown_patches(), CENTRE, images, folder / "conditional-textures.png")
        splits = len({m.seed for m in found})
        return "\n\n".join(
            [
                INTRO,
                f"Mean and standard error of {splits} split{'s' if splits > 1 else ''}.",
                means_table("error", ((m.dataset, m.method, m.error) for m in found)),
                CALIBRATION,
                _calibration(inside),
                TEXTURE,
                markdown_table([{"error": name} | texture for name, texture in textures["errors"].items()]),
                "![Textures before, with hidden pixels, and after](conditional-textures.png)",
            ]
        )


# ---- tasks ---------------------------------------------------------------------------------------------------------


def run_table(dataset: str, seed: int) -> Result:
    """Hide cells of the test rows, fill them by every method, and check the intervals of the conditionals."""
    split = SPLITS[dataset](seed, quick=False)
    test = split.test.X.astype(float)
    rng = np.random.default_rng(seed)
    hidden = rng.random(test.shape) < HIDDEN
    gappy = np.where(hidden, np.nan, test)
    scale = test.std(axis=0)
    densities = fitted(split.train.X, seed)
    answers = {name: np.asarray(density.impute(gappy), dtype=float) for name, density in densities.items()}
    answers |= {name: fill(split.train.X.astype(float), gappy) for name, fill in RIVALS.items()}
    filled = [
        vars(Filled(dataset, name, seed, root_mean_square(((answer - test) / scale)[hidden])))
        for name, answer in answers.items()
    ]
    shares = inside(densities[STACK], test, hidden, rng)
    return {"filled": filled, "inside": {"dataset": dataset, "shares": shares}}


def fitted(X: AnyArray, seed: int) -> dict[str, Any]:
    """Return the densities whose answers are compared, by name."""
    made: dict[str, Any] = {STACK: JointEstimator(random_state=seed), DEFAULT: JUPAD(random_state=seed)}
    return {name: estimator.fit(X).density_ for name, estimator in made.items()}


def inside(density: Any, rows: FloatArray, hidden: BoolArray, rng: np.random.Generator) -> list[float]:
    """Return the share of hidden cells between quantiles of their conditionals, for each probability of `SHARES`."""
    cells = rng.permutation(np.argwhere(hidden))[:MOST_CELLS]
    hits = np.zeros(len(SHARES))
    tails = [tail for share in SHARES for tail in ((1 - share) / 2, (1 + share) / 2)]
    for i, n in cells:
        known = {density.names[k]: rows[i, k] for k in np.flatnonzero(~hidden[i])}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RareEventWarning)  # unusual rows are part of the test
            conditional = given(density, known)
        low, high = np.reshape(conditional.quantile(density.names[n], tails), (-1, 2)).T
        hits += (low <= rows[i, n]) & (rows[i, n] <= high)
    return [float(share) for share in hits / len(cells)]


def given(density: Any, known: Mapping[str, float]) -> Any:
    """Return the density given known values, ignoring impossible ones such as an integer beyond all seen."""
    try:
        return density.condition(known) if known else density
    except ImpossibleEventError:
        if len(known) == 1:
            return density
    possible = {name: value for name, value in known.items() if given(density, {name: value}) is not density}
    return density.condition(possible) if possible else density


def run_textures(*, quick: bool) -> Result:
    """Fill the inner part of every patch of a test image of each texture."""
    split = SPLITS[TEXTURES](SHOWN_TEXTURES, quick=quick)
    shown = _shown_patches()
    gappy = np.where(CENTRE, np.nan, shown.reshape(-1, SIDE**2))
    densities = fitted(split.train.X, 0)
    answers = {name: np.asarray(density.impute(gappy), dtype=float) for name, density in densities.items()}
    answers |= {name: RIVALS[name](split.train.X, gappy) for name in (GAUSSIAN, NEIGHBOURS)}
    answers["mean of the 16 around"] = np.where(CENTRE, np.nanmean(gappy, axis=1)[:, None], gappy)
    errors = {
        method: {
            name: f"{root_mean_square(part[:, CENTRE]):.3f}"
            for name, part in zip(
                CLASS_NAMES, (answer - shown.reshape(-1, SIDE**2)).reshape(3, -1, SIDE**2), strict=True
            )
        }
        for method, answer in answers.items()
    }
    return {"errors": errors, "images": {name: to_text(answers[name]) for name in (STACK, GAUSSIAN)}}


def _shown_patches() -> FloatArray:
    """Return a corner of a test image of each texture; shape (3, N_SHOWN, N_SHOWN, 25)."""
    images = SPLITS[TEXTURES](SHOWN_TEXTURES, quick=True).images
    return np.stack([image[:N_SHOWN, :N_SHOWN] for image in images])


def root_mean_square(values: FloatArray) -> float:
    """Return the square root of the mean square."""
    return float(np.sqrt(np.mean(values**2)))


def gaussian_fill(train: FloatArray, gappy: FloatArray) -> FloatArray:
    r"""Fill gaps with :math:`\mu_h + \Sigma_{hk} \Sigma_{kk}^{-1} (x_k - \mu_k)`, the best linear estimate."""
    mean, covariance = train.mean(axis=0), np.cov(train.T)
    filled = gappy.copy()
    gaps = np.isnan(gappy)
    for pattern in np.unique(gaps, axis=0):
        rows = np.flatnonzero((gaps == pattern).all(axis=1))
        slopes = np.linalg.pinv(covariance[np.ix_(~pattern, ~pattern)]) @ covariance[np.ix_(~pattern, pattern)]
        filled[np.ix_(rows, pattern)] = mean[pattern] + (gappy[np.ix_(rows, ~pattern)] - mean[~pattern]) @ slopes
    return filled


def neighbour_fill(train: FloatArray, gappy: FloatArray) -> FloatArray:
    """Fill gaps with the mean of the five rows closest in the known cells, columns scaled to equal variance."""
    scale = train.std(axis=0)
    return np.asarray(KNNImputer().fit(train / scale).transform(gappy / scale) * scale)


def mean_fill(train: FloatArray, gappy: FloatArray) -> FloatArray:
    """Fill gaps with the means of the columns."""
    return np.where(np.isnan(gappy), train.mean(axis=0), gappy)


RIVALS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    GAUSSIAN: gaussian_fill,
    NEIGHBOURS: neighbour_fill,
    MEAN: mean_fill,
}


# ---- report --------------------------------------------------------------------------------------------------------


def _calibration(found: Mapping[str, Result]) -> str:
    datasets = list(dict.fromkeys(result["dataset"] for result in found.values()))
    rows = []
    for position, share in enumerate(SHARES):
        cells = {
            dataset: f"{np.mean([r['shares'][position] for r in found.values() if r['dataset'] == dataset]):.3f}"
            for dataset in datasets
        }
        rows.append({"probability": f"{share:g}"} | cells)
    return markdown_table(rows)


EXPERIMENT = Conditional()
