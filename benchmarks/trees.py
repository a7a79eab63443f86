"""Mixtures of trees: known trees found again, scikit-learn's digits, and the time of a wide binary table.

- A law has a random tree over columns of four states, categories or intervals of a standard Gaussian. `behind` is how
  far the mean log-density of fresh rows (`score`) is below that of the law, in nats, and `edges` the share of the law's
  edges in the largest tree.
- Digits are 1,797 images of 64 integers, with the class as one more column; three quarters are fitted, in each of three
  splits. `score` is the mean log-density of the others and `accuracy` the share whose class is found from the images,
  beside classifiers of scikit-learn, which see the integers as numbers.
- `s` is the processor time of a fit. That of a binary table of 100 columns is compared with JUPAD's.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.report import Row
from jointwise import JUPAD, Dictionary, GaussianBlocks, JointClassifier, JointDensity, JointEstimator, TreeMixture
from jointwise.exceptions import MisfitWarning
from jointwise.families import Gaussian, Truncated
from jointwise.fitting.blocks import WARPS
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_tree import Tree
from jointwise.tables.variables import Schema, Variable

N_ROWS, N_TEST, N_STATES = 20_000, 5_000, 4
# Columns of each law, and how many of them hold numbers.
LAWS = ((30, 0), (20, 10))
# Concentration of the rows of the tables: below one, neighbours tell much of each other.
CONCENTRATION = 0.5
# Splits of digits, and the rows of each that are fitted.
SPLITS, N_FITTED = 3, 1_347
# Rows and columns of the binary table.
BINARY = 15_000, 100

Models = dict[str, Callable[[], Any]]


def random_tree(n_columns: int, n_numbers: int, seed: int) -> JointDensity:
    """Return a law with a random tree; the columns of numbers have a standard Gaussian as margin."""
    rng = np.random.default_rng(seed)
    parents = np.array([-1, *(int(rng.integers(n)) for n in range(1, n_columns))])
    tables = [rng.dirichlet(np.ones(N_STATES), 1)]
    tables += [rng.dirichlet(np.full(N_STATES, CONCENTRATION), N_STATES) for _ in parents[1:]]
    tree = Tree(np.arange(n_columns), parents, tuple(tables))
    numbers = set(rng.permutation(n_columns)[:n_numbers].tolist())
    variables, dictionaries = [], []
    for n, margin in enumerate(tree.marginals):
        if n in numbers:
            ends = norm.ppf(np.concatenate([[0.0], np.cumsum(margin)[:-1], [1.0]]))
            law = Gaussian(loc=np.zeros(N_STATES), scale=np.ones(N_STATES))
            dictionaries.append(Dictionary((Truncated(law, ends[:-1], ends[1:]),)))
            variables.append(Variable(f"c{n}", "continuous"))
        else:
            dictionaries.append(Dictionary.categories(N_STATES))
            variables.append(Variable(f"c{n}", "categorical", categories=tuple("abcd")))
    return JointDensity(Schema(tuple(variables), "dict"), ForestMixture(np.ones(1), tuple(dictionaries), (tree,)))


def edges(density: JointDensity) -> set[tuple[str, str]]:
    """Return the pairs of columns that the largest tree joins."""
    mixture = density.mixture
    assert isinstance(mixture, ForestMixture)
    tree = mixture.trees[int(np.argmax(mixture.weights))]
    joined = [(tree.variables[n], tree.variables[m]) for n, m in enumerate(tree.parents) if m >= 0]
    return {tuple(sorted((density.names[a], density.names[b]))) for a, b in joined}


def stack_without_trees() -> JointEstimator:
    """Return the stack of the experts that are not trees."""
    blocks = [(f"blocks_{warp}", GaussianBlocks(warp)) for warp in WARPS]
    return JointEstimator([("products", JUPAD()), *blocks], random_state=0)


MODELS: Models = {
    "TreeMixture()": lambda: TreeMixture(random_state=0),
    "JUPAD()": lambda: JUPAD(random_state=0),
    "stack without trees": stack_without_trees,
    "JointEstimator()": lambda: JointEstimator(random_state=0),
}
RIVALS: Models = {
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "RandomForest": lambda: RandomForestClassifier(random_state=0),
    "GaussianNB": GaussianNB,
    "LogisticRegression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}


def run() -> list[Row]:
    """Fit all models to all laws, to digits and to a binary table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MisfitWarning)
        return [*(row for law in LAWS for row in recovered(*law)), *digits(), *binary()]


def fitted(make: Callable[[], Any], *data: Any) -> tuple[Any, float]:
    """Return a fitted model and the processor time of the fit, in seconds."""
    model = make()
    start = time.process_time()
    model.fit(*data)
    return model, time.process_time() - start


def row_of(data: str, model: str, seconds: float, **measured: Any) -> Row:
    """Return a row of the report; what was not measured is empty."""
    keys = ("score", "behind", "edges", "accuracy")
    return {"data": data, "model": model} | {key: measured.get(key, "") for key in keys} | {"s": seconds}


def recovered(n_columns: int, n_numbers: int, models: Models = MODELS, n_rows: int = N_ROWS) -> list[Row]:
    """Return how far each model is behind a law, and how much of its tree is found."""
    law = random_tree(n_columns, n_numbers, seed=1)
    train, test = (law.sample(n, rng=np.random.default_rng(seed)) for n, seed in ((n_rows, 2), (N_TEST, 3)))
    truth = float(np.mean(law.logpdf(test)))
    data = f"tree of {n_columns} columns, {n_numbers} of numbers"
    found = []
    for name, make in models.items():
        model, seconds = fitted(make, train)
        score, measured = model.score(test), {}
        if isinstance(model, TreeMixture):
            measured["edges"] = len(edges(law) & edges(model.density_)) / len(edges(law))
        found.append(row_of(data, name, seconds, score=score, behind=truth - score, **measured))
    return found


def digits() -> list[Row]:
    """Return held-out scores and accuracies on digits, as means over the splits."""
    models = {"GaussianBlocks()": lambda: GaussianBlocks(random_state=0)} | MODELS
    table = digits_table()
    found: dict[str, list[Row]] = {}
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(table["target"]))
        train, test = ({name: column[rows] for name, column in table.items()} for rows in np.split(order, [N_FITTED]))
        for name, make in models.items():
            found.setdefault(name, []).append(_as_density_and_classifier(name, make, train, test))
        for name, make in RIVALS.items():
            model, seconds = fitted(make, *_pixels_and_class(train))
            accuracy = model.score(*_pixels_and_class(test))
            found.setdefault(name, []).append(row_of("digits", name, seconds, accuracy=accuracy))
    return [_mean_row(rows) for rows in found.values()]


def digits_table() -> dict[str, np.ndarray]:
    """Return scikit-learn's digits as a table of 64 integers and the class."""
    data = load_digits()
    table = {f"p{n:02d}": column.astype(int) for n, column in enumerate(data.data.T)}
    return table | {"target": data.target.astype(str)}


def _as_density_and_classifier(
    name: str, make: Callable[[], Any], train: dict[str, np.ndarray], test: dict[str, np.ndarray]
) -> Row:
    """Return the score of a density of the whole table, and the accuracy of a classifier with the same estimator.

    They are fits of their own: a classifier weighs experts by how well they predict the class.
    """
    images, others = ({key: column for key, column in part.items() if key != "target"} for part in (train, test))
    density, seconds = fitted(make, train)
    classifier = JointClassifier(make()).fit(images, train["target"])
    accuracy = float(classifier.score(others, test["target"]))
    return row_of("digits", name, seconds, score=float(density.score(test)), accuracy=accuracy)


def _pixels_and_class(part: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.column_stack([column for name, column in part.items() if name != "target"]), part["target"]


def _mean_row(rows: list[Row]) -> Row:
    """Return the means of what was measured in several runs."""
    first = rows[0]
    return {key: np.mean([row[key] for row in rows]) if isinstance(first[key], float) else first[key] for key in first}


def binary() -> list[Row]:
    """Return the scores and times of a binary table whose columns depend on hidden groups and on neighbours."""
    n_rows, n_columns = BINARY
    rng = np.random.default_rng(0)
    groups = rng.integers(8, size=n_rows + N_TEST)
    drawn = rng.random((n_rows + N_TEST, n_columns)) < rng.beta(1, 2, (8, n_columns))[groups]
    copied = rng.random(drawn.shape) < 0.5
    for n in range(1, n_columns):
        drawn[:, n] = np.where(copied[:, n], drawn[:, n - 1], drawn[:, n])
    table = {f"c{n}": column.astype(int) for n, column in enumerate(drawn.T)}
    parts = slice(n_rows), slice(n_rows, None)
    train, test = ({name: column[rows] for name, column in table.items()} for rows in parts)
    found = []
    for name in ("JUPAD()", "TreeMixture()"):
        model, seconds = fitted(MODELS[name], train)
        found.append(row_of(f"binary, {n_rows} x {n_columns}", name, seconds, score=model.score(test)))
    return found
