"""States of trees as bins or as hidden atoms: held-out log-likelihood and processor time of both.

`TreeMixture` has bins of numbers as states. Its rival of `benchmarks.atom_trees` has overlapping atoms: smooth splines
of the column's own 1-D fit, or the atoms of its dictionary. Both choose states, trees and prior by the same kind of
held-out rows, and average three starts where there are several trees.

- Real tables: three quarters of the rows are fitted, with the class as a category; `score` is the mean log-density of
  the others.
- The law: a random tree of 20 columns, each a sine of its parent with Gaussian noise; `truth` is its own score.
- `gain` is what more trees add to the stack `JointEstimator()`, which has trees of bins already: the mean log-density
  of a convex mix of both, less that of the stack alone. A quarter of the training rows, which neither has seen, gives
  the weight. What trees of bins gain is owed to this second look at weights; what atoms gain beyond it is their own.
- `s` is the processor time of fits. `chosen` has the number of trees and the largest number of states of a column.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from benchmarks.atom_trees import NUMBERS, AtomTreeMixture
from benchmarks.report import Row
from benchmarks.tables import FLOORS, Columns, Table, as_columns, kinds_for, real_table, split_table
from benchmarks.trees import fitted
from jointwise import JointEstimator, TreeMixture
from jointwise.exceptions import MisfitWarning

SPLITS, SIZES = (0,), (2_000,)
N_TEST, N_COLUMNS = 5_000, 20
# Tables on which the stack is fitted too.
STACKED = ("seeds", "wine")

Kinds = dict[str, str] | None


def run(splits: Sequence[int] = SPLITS, sizes: Sequence[int] = SIZES, stacked: Sequence[str] = STACKED) -> list[Row]:
    """Return a row for each table, and for each size of the law; means over the splits.

    Parameters
    ----------
    splits : sequence of int
        Seeds of the splits of tables, of the laws and of the fits.
    sizes : sequence of int
        Rows that are drawn of the law.
    stacked : sequence of str
        Tables on which the stack is fitted too.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MisfitWarning)
        rows = [_mean_row([on_table(name, split, name in stacked) for split in splits]) for name in FLOORS]
        return rows + [_mean_row([on_law(n, split) for split in splits]) for n in sizes]


def on_table(name: str, split: int, with_stack: bool = False) -> Row:
    """Return how both score on a real table."""
    train, test = split_table(dithered(name), split)
    kinds = kinds_for(name, train[0].shape[1])
    found = compared(as_columns(train), as_columns(test), kinds, split)
    if with_stack:
        found |= in_stack(train, test, kinds, split)
    return {"table": name, "n": len(train[0])} | found


def dithered(name: str) -> Table:
    """Return a real table, with noise of width one on the whole numbers of Wifi, which are fitted as floats.

    A density of floats may have a peak at each whole number. Narrow atoms would gain by such peaks alone.
    """
    X, y = real_table(name)
    return (X + np.random.default_rng(0).uniform(-0.5, 0.5, X.shape) if name == "wifi" else X), y


def on_law(n: int, seed: int) -> Row:
    """Return how both score on the law."""
    law = SmoothTree.draw(N_COLUMNS, seed)
    train, test = law.sample(n, 1_000 + seed), law.sample(N_TEST, 2_000 + seed)
    return {"table": "smooth tree", "n": n} | compared(train, test, None, seed) | {"truth": law.logpdf(test).mean()}


def compared(train: Columns, test: Columns, kinds: Kinds, seed: int) -> Row:
    """Return scores and seconds of one tree and of many, with bins and with atoms."""
    found: Row = {}
    for label, bins, atoms in (("1 tree", 1, (1,)), ("auto", "auto", NUMBERS)):
        model, seconds = fitted(partial(TreeMixture, bins, kinds=kinds, random_state=seed), train)
        choice = model.fit_.choice
        found |= {f"bins, {label}": float(model.density_.logpdf(test).mean()), f"bins, {label} s": seconds}
        found |= {f"bins, {label} chosen": f"{choice.n_components} x {choice.n_states}"}
        rival, seconds = fitted(partial(AtomTreeMixture, atoms, kinds=kinds, random_state=seed), train)
        found |= {f"atoms, {label}": float(rival.logpdf(test).mean()), f"atoms, {label} s": seconds}
        found |= {f"atoms, {label} chosen": f"{rival.choice_.n_components} x {rival.choice_.n_atoms or 'own'}"}
    return found


def in_stack(train: Table, test: Table, kinds: Kinds, seed: int) -> Row:
    """Return the score of the stack, and what it gains by trees of bins or of atoms as one more expert."""

    def scores(learned: Table, fresh: Table) -> list[np.ndarray]:
        rows, others = as_columns(learned), as_columns(fresh)
        models = [estimator(kinds=kinds, random_state=seed).fit(rows) for estimator in (JointEstimator, TreeMixture)]
        atoms = AtomTreeMixture(kinds=kinds, random_state=seed).fit(rows)
        return [*(model.density_.logpdf(others) for model in models), atoms.logpdf(others)]

    seen, fresh = scores(*split_table(train, seed + 1_000)), scores(train, test)
    found: Row = {"stack": fresh[0].mean()}
    for label, before, after in zip(("bins", "atoms"), seen[1:], fresh[1:], strict=True):
        found[f"gain, {label}"] = (mixed(best_weight(seen[0], before), fresh[0], after) - fresh[0]).mean()
    return found


def mixed(weight: float, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the log-density of a convex mix of two log-densities, with the weight of the second."""
    return np.logaddexp(np.log1p(-weight) + first, np.log(weight) + second)


def best_weight(first: np.ndarray, second: np.ndarray) -> float:
    """Return the weight of the second log-density in the most likely mix, with half a row of prior for each.

    >>> round(best_weight(np.log([0.2, 0.8]), np.log([0.8, 0.2])), 2)
    0.5
    """

    def loss(weight: float) -> float:
        return -float(mixed(weight, first, second).sum() + (np.log(weight) + np.log1p(-weight)) / 2)

    return float(minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), method="bounded").x)


@dataclass(frozen=True, eq=False)
class SmoothTree:
    """A law in which each column is a sine of its parent plus Gaussian noise; the first one is a standard Gaussian.

    Parameters
    ----------
    parents : int array of shape (N,)
        Each before its children.
    waves : array of shape (3, N)
        Frequency, phase and noise of each column.
    """

    parents: np.ndarray
    waves: np.ndarray

    @classmethod
    def draw(cls, n_columns: int, seed: int) -> SmoothTree:
        """Return a random law."""
        rng = np.random.default_rng(seed)
        parents = np.array([-1, *(int(rng.integers(n)) for n in range(1, n_columns))])
        ends = ((1.0, 3.0), (0.0, 2 * np.pi), (0.15, 0.5))
        return cls(parents, np.array([rng.uniform(low, high, n_columns) for low, high in ends]))

    def sample(self, n: int, seed: int) -> Columns:
        """Return drawn rows as a table."""
        X = np.random.default_rng(seed).standard_normal((n, len(self.parents)))
        for k in range(1, X.shape[1]):
            X[:, k] = self._mean(X, k) + self.waves[2, k] * X[:, k]
        return {f"x{k}": column for k, column in enumerate(X.T)}

    def logpdf(self, table: Columns) -> np.ndarray:
        """Return the log-density of rows; shape (n,)."""
        X = np.column_stack(list(table.values()))
        logs = [norm.logpdf(X[:, k], self._mean(X, k), self.waves[2, k]) for k in range(1, X.shape[1])]
        return np.asarray(norm.logpdf(X[:, 0]) + np.sum(logs, axis=0))

    def _mean(self, X: np.ndarray, k: int) -> np.ndarray:
        return np.sin(self.waves[0, k] * X[:, self.parents[k]] + self.waves[1, k])


KEYS = ("bins, 1 tree", "atoms, 1 tree", "bins, auto", "atoms, auto")
GAINS = ("gain, bins", "gain, atoms")
COLUMNS = (
    "table", "n", *KEYS, *(f"{key} s" for key in KEYS), *(f"{key} chosen" for key in KEYS),
    "stack", *GAINS, "truth",
)  # fmt: skip


def _mean_row(rows: list[Row]) -> Row:
    """Return the means of what was measured in several splits; of choices, all of them."""
    found: Row = {}
    for key in COLUMNS:
        values = [row[key] for row in rows if key in row]
        if not values:
            found[key] = ""
        elif isinstance(values[0], float):
            found[key] = f"{np.mean(values):.{3 if key in GAINS else 2}f}"
        else:
            found[key] = ", ".join(dict.fromkeys(map(str, values)))
    return found
