"""Drawing rows from the fitted joint density: how far they stand in for real ones."""

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
from jointwise.estimators import JointClassifier
from jointwise.experiments.base import Experiment, Result, Task
from jointwise.experiments.classification import standard_error
from jointwise.experiments.distances import DEFAULT
from jointwise.experiments.page import markdown_table
from jointwise.experiments.splits import SHOWN_TEXTURES, SPLITS, TEXTURES, Rows
from jointwise.experiments.textures import draw_patches, from_text, to_text
from jointwise.relatives import GaussianMixtureDensity, IndependenceDensity

DATASETS = ("Banknote", "Wifi", "Raisin", "Seeds")
N_SEEDS, QUICK_N_SEEDS = 5, 1
QUICK_DATASETS = ("Banknote", "Seeds")
# To raise when a method or the way of measuring changes here.
VERSION = 1
# The split whose rows are drawn, and the two features of Banknote that are.
SHOWN, SHOWN_DATASET, SHOWN_FEATURES = 0, "Banknote", (0, 1)
N_POINTS = 400
# Patches of each texture.
N_PATCHES = 48

REAL = "rows themselves"
MIXTURE = "GMM of each class (BIC)"
INDEPENDENT = "independence in each class"

INTRO = """\
As many rows as there are to learn from are drawn, features and class together. Two questions are asked of a random
forest: how well does it classify real test rows when it has learned from drawn rows alone, and how often can it tell
drawn rows from real ones (0.5 is a coin, the lower the better; five-fold cross-validation, drawn rows against the real
test rows and as many). Gaussian mixtures (full covariance, number of clusters by BIC) and independent columns are
fitted to each class and drawn from in the shares of the classes. The first line learns from the real rows: the mark to
reach."""


PATCHES = f"""\
Patches of 5 x 5 pixels, {N_PATCHES} of each texture: real ones of test images, and ones drawn from the density of 25
pixels and the texture, given the texture. Drawn ones are grainier: within a component pixels are independent."""


@dataclass(frozen=True)
class Drawn:
    """What a forest makes of rows drawn by one method.

    Parameters
    ----------
    dataset, method : str
    seed : int
        Of the split.
    accuracy : float
        On real test rows, learned from drawn rows.
    told_apart : float
        Share of rows known for real or drawn.
    seconds : float
        To fit and draw.
    """

    dataset: str
    method: str
    seed: int
    accuracy: float
    told_apart: float
    seconds: float


class Samples(Experiment):
    """Drawn rows in place of real ones, and drawn patches of textures beside real ones."""

    name = "samples"
    title = "Drawing samples"

    def tasks(self, *, quick: bool) -> list[Task]:
        """One for each data set, split and method, and one for textures."""
        datasets, n_seeds = (QUICK_DATASETS, QUICK_N_SEEDS) if quick else (DATASETS, N_SEEDS)
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
        """Introduction, tables and the two figures."""
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
                _table(found, "accuracy"),
                _table(found, "told_apart"),
                f"![Real rows of {SHOWN_DATASET} and rows drawn by each method](samples.png)",
                "![Patches of textures, real and drawn](samples-textures.png)",
                PATCHES,
            ]
        )


# ---- tasks ---------------------------------------------------------------------------------------------------------


def run_table(dataset: str, seed: int, method: str) -> Result:
    """Draw as many rows as there are to learn from, and ask a forest about them."""
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


def told_apart(real: Rows, drawn: Rows, seed: int) -> float:
    """Share of rows, class included, that a forest knows for real or drawn, as many of each."""
    n = min(len(real.y), len(drawn.y))
    rows = np.concatenate([np.column_stack(part)[:n] for part in (real, drawn)])
    label = np.repeat([0, 1], n)
    return float(cross_val_score(RandomForestClassifier(random_state=seed), rows, label, cv=5).mean())


def draw_real(train: Rows, seed: int) -> Rows:
    """Return the rows themselves, in random order."""
    order = np.random.default_rng(seed).permutation(len(train.y))
    return Rows(train.X[order], train.y[order])


def draw_jupad(train: Rows, seed: int) -> Rows:
    """Rows of the joint density of features and class."""
    density = JointClassifier(standardise=False, random_state=seed).fit(*train).density_
    rows = np.asarray(density.sample(len(train.y), rng=seed), dtype=float)
    return Rows(rows[:, :-1], rows[:, -1].astype(int))


def draw_by_class(make: Callable[[int], Any], train: Rows, seed: int) -> Rows:
    """Rows of a density for each class, as many as the class has, in random order."""
    features: list[AnyArray] = []
    classes, counts = np.unique(train.y, return_counts=True)
    for c, count in zip(classes, counts, strict=True):
        density = make(seed).fit(train.X[train.y == c])
        features.append(np.asarray(density.sample(count, random_state=seed), dtype=float))
    return draw_real(Rows(np.concatenate(features), np.repeat(classes, counts)), seed)


def run_textures(*, quick: bool) -> Result:
    """Draw patches of each texture."""
    split = SPLITS[TEXTURES](SHOWN_TEXTURES, quick=quick)
    model = JointClassifier(standardise=False, random_state=0).fit(*split.train)
    drawn = [
        np.asarray(model.density_.condition({model.target_name_: int(c)}).sample(N_PATCHES, rng=0), dtype=float)
        for c in model.classes_
    ]
    return {"patches": to_text(np.stack(drawn))}


def _real_patches() -> AnyArray:
    test = SPLITS[TEXTURES](SHOWN_TEXTURES, quick=True).test
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(test.X[test.y == c])[:N_PATCHES] for c in np.unique(test.y)])


DRAW: dict[str, Callable[[Rows, int], Rows]] = {
    REAL: draw_real,
    DEFAULT: draw_jupad,
    MIXTURE: partial(draw_by_class, lambda seed: GaussianMixtureDensity("bic", random_state=seed)),
    INDEPENDENT: partial(draw_by_class, lambda seed: IndependenceDensity(random_state=seed)),
}
KEYS = {REAL: "real", DEFAULT: "jupad", MIXTURE: "gmm", INDEPENDENT: "independence"}


# ---- telling -------------------------------------------------------------------------------------------------------


def _table(found: Sequence[Drawn], measure: str) -> str:
    heading = {"accuracy": "accuracy on real rows", "told_apart": "told apart from real rows"}[measure]
    rows = []
    for method in KEYS:
        cells = {}
        for dataset in dict.fromkeys(m.dataset for m in found):
            values = np.array([getattr(m, measure) for m in found if (m.dataset, m.method) == (dataset, method)])
            cells[dataset] = f"{values.mean():.3f}" + (f" ± {standard_error(values):.3f}" if len(values) > 1 else "")
        rows.append({heading: method} | cells)
    return markdown_table(rows)


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
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


EXPERIMENT = Samples()
