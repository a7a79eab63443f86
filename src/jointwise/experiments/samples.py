"""Rows drawn from the fitted joint density: how well they replace real ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

from jointwise._typing import AnyArray
from jointwise.estimators import JUPAD, JointClassifier
from jointwise.experiments.base import Experiment, Result, Task
from jointwise.experiments.distances import DEFAULT, STACK
from jointwise.experiments.page import means_table, save_figure
from jointwise.experiments.splits import QUICK_TABLES, SHOWN_TEXTURES, SPLITS, TABLES, TEXTURES, Labelled
from jointwise.experiments.textures import draw_patches, from_text, to_text
from jointwise.relatives import GaussianMixtureDensity, IndependenceDensity

N_SEEDS, QUICK_N_SEEDS = 5, 1
# Raise this when a method or a measure changes here.
VERSION = 2
# Seed of the split whose rows are shown in a figure, its data set, and two of its features.
SHOWN, SHOWN_DATASET, SHOWN_FEATURES = 0, "Banknote", (0, 1)
N_POINTS = 400
# Patches of each texture.
N_PATCHES = 48

REAL = "rows themselves"
MIXTURE = "GMM of each class (BIC)"
INDEPENDENT = "independence in each class"

INTRO = """\
As many rows as the training rows are drawn, features and class together. A random forest answers two questions. How
well does it classify real test rows if it is trained on drawn rows alone? And how often can it tell drawn rows from
real ones (five-fold cross-validation on the real test rows and as many drawn ones; 0.5 is a coin toss, and lower is
better)? Gaussian mixtures (full covariance, number of clusters by BIC) and independent columns are fitted to each class
and sampled in the proportions of the classes. The first line is trained on the real rows: the mark to reach."""

PATCHES = f"""\
Patches of 5 x 5 pixels, {N_PATCHES} of each texture: real ones from test images, and ones drawn from the density of 25
pixels and the texture, given the texture."""


@dataclass(frozen=True)
class Drawn:
    """How a forest judges rows drawn by one method."""

    dataset: str
    method: str
    seed: int  # of the split
    accuracy: float  # on real test rows after training on drawn rows
    told_apart: float  # share of rows correctly identified as real or drawn
    seconds: float  # to fit and draw


class Samples(Experiment):
    """Drawn rows in place of real ones, and drawn patches of textures beside real ones."""

    name = "samples"
    title = "Drawing samples"

    def tasks(self, *, quick: bool) -> list[Task]:
        """Return one task for each data set, split and method, and one for textures."""
        datasets, n_seeds = (QUICK_TABLES, QUICK_N_SEEDS) if quick else (TABLES, N_SEEDS)
        tables = [
            Task(
                f"{dataset.lower()}-seed{seed}-{KEYS[method]}",
                partial(run_table, dataset, seed, method),
                {"dataset": dataset, "seed": seed, "method": method, "version": VERSION},
            )
            for dataset in datasets
            for seed in range(n_seeds)
            for method in KEYS
        ]
        settings = {"seed": SHOWN_TEXTURES, "quick": quick, "patches": N_PATCHES, "version": VERSION}
        return [*tables, Task("textures", partial(run_textures, quick=quick), settings)]

    def report(self, results: Mapping[str, Result], folder: Path) -> str:
        """Return introduction, tables and the two figures."""
        found = [Drawn(**result["drawn"]) for result in results.values() if "drawn" in result]
        points = {r["drawn"]["method"]: r["points"] for r in results.values() if "points" in r}
        draw_points(points, folder / "samples.png")
        drawn = from_text(results["textures"]["patches"]).reshape(-1, N_PATCHES, 25)
        draw_patches(_real_patches(), drawn, folder / "samples-textures.png")
        splits = len({m.seed for m in found})
        return "\n\n".join(
            [
                INTRO,
                f"Mean and standard error of {splits} split{'s' if splits > 1 else ''}.",
                means_table("accuracy on real rows", ((m.dataset, m.method, m.accuracy) for m in found)),
                means_table("told apart from real rows", ((m.dataset, m.method, m.told_apart) for m in found)),
                f"![Real rows of {SHOWN_DATASET} and rows drawn by each method](samples.png)",
                "![Patches of textures, real and drawn](samples-textures.png)",
                PATCHES,
            ]
        )


# ---- tasks ---------------------------------------------------------------------------------------------------------


def run_table(dataset: str, seed: int, method: str) -> Result:
    """Draw as many rows as the training rows, and judge them by a forest."""
    split = SPLITS[dataset](seed, quick=False)
    start = time.perf_counter()
    drawn = DRAW[method](split.train, seed)
    seconds = time.perf_counter() - start
    forest = RandomForestClassifier(random_state=seed).fit(*drawn)
    accuracy = float(np.mean(forest.predict(split.test.X) == split.test.y))
    apart = told_apart(split.test, drawn, seed)
    result: Result = {"drawn": vars(Drawn(dataset, method, seed, accuracy, apart, seconds))}
    if dataset == SHOWN_DATASET and seed == SHOWN:
        columns = [*(drawn.X[:N_POINTS, n] for n in SHOWN_FEATURES), drawn.y[:N_POINTS]]
        result["points"] = [np.round(column, 3).tolist() for column in columns]
    return result


def told_apart(real: Labelled, drawn: Labelled, seed: int) -> float:
    """Return the share of rows, class included, that a forest identifies as real or drawn, as many of each."""
    n = min(len(real.y), len(drawn.y))
    rows = np.concatenate([np.column_stack(part)[:n] for part in (real, drawn)])
    label = np.repeat([0, 1], n)
    return float(cross_val_score(RandomForestClassifier(random_state=seed), rows, label, cv=5).mean())


def draw_real(train: Labelled, seed: int) -> Labelled:
    """Return the rows themselves, in random order."""
    order = np.random.default_rng(seed).permutation(len(train.y))
    return Labelled(train.X[order], train.y[order])


def draw_joint(make: Callable[[], Any] | None, train: Labelled, seed: int) -> Labelled:
    """Draw rows from the joint density of features and class, by the default estimator if none is given."""
    density = JointClassifier(make() if make else None, random_state=seed).fit(*train).density_
    rows = np.asarray(density.sample(len(train.y), rng=seed), dtype=float)
    return Labelled(rows[:, :-1], rows[:, -1].astype(int))


def draw_by_class(make: Callable[[int], Any], train: Labelled, seed: int) -> Labelled:
    """Draw rows from a density for each class, as many as the class has, in random order."""
    features: list[AnyArray] = []
    classes, counts = np.unique(train.y, return_counts=True)
    for c, count in zip(classes, counts, strict=True):
        density = make(seed).fit(train.X[train.y == c])
        features.append(np.asarray(density.sample(count, random_state=seed), dtype=float))
    return draw_real(Labelled(np.concatenate(features), np.repeat(classes, counts)), seed)


def run_textures(*, quick: bool) -> Result:
    """Draw patches of each texture."""
    split = SPLITS[TEXTURES](SHOWN_TEXTURES, quick=quick)
    model = JointClassifier(random_state=0).fit(*split.train)
    drawn = [
        np.asarray(model.density_.condition({model.target_name_: int(c)}).sample(N_PATCHES, rng=0), dtype=float)
        for c in model.classes_
    ]
    return {"patches": to_text(np.stack(drawn))}


def _real_patches() -> AnyArray:
    test = SPLITS[TEXTURES](SHOWN_TEXTURES, quick=True).test
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(test.X[test.y == c])[:N_PATCHES] for c in np.unique(test.y)])


DRAW: dict[str, Callable[[Labelled, int], Labelled]] = {
    REAL: draw_real,
    STACK: partial(draw_joint, None),
    DEFAULT: partial(draw_joint, JUPAD),
    MIXTURE: partial(draw_by_class, lambda seed: GaussianMixtureDensity("bic", random_state=seed)),
    INDEPENDENT: partial(draw_by_class, lambda seed: IndependenceDensity(random_state=seed)),
}
KEYS = {REAL: "real", STACK: "joint", DEFAULT: "jupad", MIXTURE: "gmm", INDEPENDENT: "independence"}


# ---- report --------------------------------------------------------------------------------------------------------


def draw_points(points: Mapping[str, Sequence[Sequence[float]]], path: Path) -> None:
    """Write the figure: two features of the rows of each method, a colour for each class."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.7 * len(points), 3.0), layout="constrained")
    panels: Any = figure.subplots(1, len(points), sharex=True, sharey=True, squeeze=False)[0]
    for ax, (method, columns) in zip(panels, points.items(), strict=True):
        x, y, label = (np.array(column) for column in columns)
        for c, colour in enumerate(("#0072B2", "#E69F00")):
            ax.plot(x[label == c], y[label == c], ".", color=colour, markersize=3, label=f"class {c}")
        ax.set_title(method, fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlabel("variance")
    panels[0].set_ylabel("skewness")
    panels[0].legend(frameon=False, markerscale=3, fontsize=8)
    save_figure(figure, path)


EXPERIMENT = Samples()
