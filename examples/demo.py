"""Fit a table with a stack of experts, ask it questions, draw one figure: what `make demo` runs.

The table is scikit-learn's wine data: 13 measurements and the cultivar of 178 wines.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

from jointwise import JUPAD, JointClassifier, JointDensity, JointEstimator
from jointwise.plots import plot_corner

FIGURE = Path("out/demo.png")
CLASS = "cultivar"
console = Console()


def wine() -> dict[str, np.ndarray]:
    """Return the columns of the table by name; the class is text."""
    data = load_wine()
    columns = dict(zip(data.feature_names, data.data.T, strict=True))
    return columns | {CLASS: data.target_names[data.target]}


def rows(columns: dict[str, np.ndarray], chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Return some rows of a table of columns."""
    return {name: column[chosen] for name, column in columns.items()}


def main() -> None:
    """Run the demonstration."""
    start = time.perf_counter()
    columns = wine()
    train, test = train_test_split(
        np.arange(len(columns[CLASS])), test_size=0.4, random_state=0, stratify=columns[CLASS]
    )
    table, held_out = rows(columns, train), rows(columns, test)

    began = time.perf_counter()
    model = JointEstimator(random_state=0).fit(table)
    seconds = time.perf_counter() - began
    density = model.density_
    console.print(f"\n[bold]1. Fitted[/] {len(train)} rows x {len(columns)} columns in {seconds:.1f} s\n")
    console.print(column_table(density, table))
    weights = ", ".join(f"{name} {weight:.2f}" for name, weight in model.expert_weights_.items())
    console.print(f"   The density is a weighted sum of experts: {weights}")

    console.print("\n[bold]2. How well does it describe wines it has not seen?[/]\n")
    console.print(likelihood_table(density, table, held_out))

    console.print("\n[bold]3. Questions[/]\n")
    ask(density)

    classifier = JointClassifier(random_state=0)
    features = {name: column for name, column in table.items() if name != CLASS}
    classifier.fit(features, table[CLASS])
    right = classifier.score({n: c for n, c in held_out.items() if n != CLASS}, held_out[CLASS])
    console.print(f"\n[bold]4. Classification[/]: {right:.1%} of {len(test)} held-out wines get the right cultivar")

    draw(density, columns)
    console.print(f"\n[bold]5. Figure[/]: {FIGURE}   ([dim]all in {time.perf_counter() - start:.1f} s[/])")


def column_table(density: JointDensity, columns: dict[str, np.ndarray]) -> Table:
    """Return what each column is: its kind, its range or categories, its number of different values, its gaps."""
    table = Table("column", "kind", "range or categories", "distinct", "gaps")
    for variable in density.schema:
        low, high = variable.observed
        values = ", ".join(variable.categories) if variable.categories else f"{low:g} to {high:g}"
        cells = columns[variable.name]
        present = cells[cells == cells]  # noqa: PLR0124  # NaN differs from itself
        distinct, gaps = len(np.unique(present)), len(cells) - len(present)
        table.add_row(variable.name, str(variable.kind), values, str(distinct), str(gaps))
    return table


def likelihood_table(density: JointDensity, train: dict[str, np.ndarray], test: dict[str, np.ndarray]) -> Table:
    """Return the held-out log-likelihood beside independence and Gaussian mixtures.

    A Gaussian mixture has no categories, so it is compared on the measurements alone. Its covariance and number of
    components are the best in hindsight, for the very rows it is judged on.
    """
    names = [name for name in density.names if name != CLASS]
    X, Z = (np.column_stack([rows[name] for name in names]) for rows in (train, test))
    independence = JUPAD(n_components=1, random_state=0).fit(train).density_
    mixtures = {
        f"GaussianMixture({k}, {shape!r})": GaussianMixture(k, covariance_type=shape, random_state=0).fit(X).score(Z)
        for shape in ("full", "diag")
        for k in (1, 2, 3, 5, 8)
    }
    best = max(mixtures, key=mixtures.__getitem__)
    table = Table("mean log-likelihood of a held-out wine", "measurements", "with the cultivar")
    for label, fitted in (("jointwise", density), ("independence", independence)):
        alone = fitted.marginal(names).logpdf(Z).mean()
        table.add_row(label, f"{alone:.2f}", f"{fitted.logpdf(test).mean():.2f}")
    table.add_row(f"{best}, best of {len(mixtures)} in hindsight", f"{mixtures[best]:.2f}", "no categories")
    return table


def ask(density: JointDensity) -> None:
    """Ask three conditional questions and print the answers."""
    strong = {"alcohol": (13.5, None), "flavanoids": (None, 1.5)}
    given = density.condition(strong)
    chances = {c: given.probability({CLASS: c}) for c in density.schema[CLASS].categories}
    console.print("   Which cultivar has alcohol of at least 13.5 and flavanoids of at most 1.5?")
    console.print("     " + ", ".join(f"{name}: {p:.1%}" for name, p in chances.items()))

    console.print("   Between which values lie the middle 80% of proline for class_0?")
    low, middle, high = density.condition({CLASS: "class_0"}).quantile("proline", [0.1, 0.5, 0.9])
    console.print(f"     {low:.0f} to {high:.0f}, median {middle:.0f}")

    console.print("   How likely is a hue below 0.8 if the color intensity is 8 or more? And in general?")
    event = {"hue": (None, 0.8)}
    dark = density.condition({"color_intensity": (8, None)}).probability(event)
    console.print(f"     {dark:.1%}, against {density.probability(event):.1%}")


def draw(density: JointDensity, columns: dict[str, np.ndarray]) -> None:
    """Draw three measurements and the cultivar in pairs, with the wines."""
    mpl.use("Agg")
    axes = plot_corner(density, ["flavanoids", "hue", "color_intensity", CLASS], data=columns)
    axes[0, 0].figure.suptitle("Wines: the fitted joint density (blue) and all 178 wines (grey, orange)")
    FIGURE.parent.mkdir(exist_ok=True)
    axes[0, 0].figure.savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    main()
