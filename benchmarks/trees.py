"""Mixtures of trees: known trees found again, and scikit-learn's digits.

A law has a random tree over columns of four states, categories or intervals of a standard Gaussian. `behind` is how far
the mean log-density of fresh rows is below that of the law, in nats, and `edges` the share of the law's edges in the
largest tree.
Digits are 1,797 images of 64 integers, with the class as one more column; three quarters are fitted, and `score` is the
mean log-density of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_digits

from benchmarks.measure import timed
from benchmarks.report import Row
from jointwise import JUPAD, Dictionary, GaussianBlocks, JointDensity, JointEstimator, TreeMixture
from jointwise.families import Gaussian, Truncated
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_tree import Tree
from jointwise.tables.variables import Schema, Variable

N_ROWS, N_TEST, N_STATES = 20_000, 5_000, 4
# Columns of each law, and how many of them hold numbers.
LAWS = ((30, 0), (20, 10))
# Concentration of the rows of the tables: below one, neighbours tell much of each other.
CONCENTRATION = 0.5


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


def models() -> dict[str, Callable[[], Any]]:
    """Return the estimators that are compared."""
    without = [("jupad", JUPAD()), ("blocks", GaussianBlocks("scores"))]
    return {
        "TreeMixture()": lambda: TreeMixture(random_state=0),
        "JUPAD()": lambda: JUPAD(random_state=0),
        "stack without trees": lambda: JointEstimator(without, random_state=0),
        "JointEstimator()": lambda: JointEstimator(random_state=0),
    }


def run() -> list[Row]:
    """Fit all models to all laws and to digits."""
    return [*(row for law in LAWS for row in recovered(*law)), *digits()]


def recovered(n_columns: int, n_numbers: int) -> list[Row]:
    """Return how far each model is behind a law, and how much of its tree is found."""
    law = random_tree(n_columns, n_numbers, seed=1)
    train, test = (law.sample(n, rng=np.random.default_rng(seed)) for n, seed in ((N_ROWS, 2), (N_TEST, 3)))
    truth = float(np.mean(law.logpdf(test)))
    found = []
    for name, make in models().items():
        model, seconds = timed(lambda make=make: make().fit(train))
        same = len(edges(law) & edges(model.density_)) / len(edges(law)) if name == "TreeMixture()" else ""
        row = {"data": f"tree of {n_columns} columns, {n_numbers} of numbers", "model": name}
        found.append(
            row | {"score": model.score(test), "behind": truth - model.score(test), "edges": same, "s": seconds}
        )
    return found


def digits() -> list[Row]:
    """Return the held-out scores of each model on digits."""
    data = load_digits()
    table = {f"p{n:02d}": column.astype(int) for n, column in enumerate(data.data.T)}
    table["class"] = data.target.astype(str)
    order = np.random.default_rng(0).permutation(len(data.target))
    train, test = ({name: column[rows] for name, column in table.items()} for rows in (order[:1347], order[1347:]))
    found = []
    for name, make in models().items():
        model, seconds = timed(lambda make=make: make().fit(train))
        row = {"data": "digits", "model": name, "score": model.score(test), "behind": "", "edges": "", "s": seconds}
        found.append(row)
    return found
