"""States of trees as bins or as smooth atoms: held-out log-likelihood and processor time of both.

`TreeMixture` is fitted with bins as states of numbers, with atoms, and with what held-out rows choose ("auto"), each as
one tree and with the number of trees chosen.

- Real tables: three quarters of the rows are fitted, with the class as a category; `score` is the mean log-density of
  the others.
- The law: a random tree of 20 columns, each a sine of its parent with Gaussian noise; `truth` is its own score.
- `stack` is the stack of all experts, whose trees have bins, or what held-out rows choose.
- `s` is the processor time of fits. `chosen` has the number of trees and the largest number of states of a column.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import norm

from benchmarks.report import Row
from benchmarks.tables import FLOORS, Columns, Table, as_columns, kinds_for, real_table, split_table
from benchmarks.trees import fitted
from jointwise import JUPAD, GaussianBlocks, JointEstimator, TreeMixture
from jointwise.exceptions import MisfitWarning

SPLITS, SIZES = (0,), (2_000,)
N_TEST, N_COLUMNS = 5_000, 20
# Tables on which the stack is fitted too, and the law.
STACKED = ("seeds", "wine", "smooth tree")
STATES = ("bins", "atoms", "auto")

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
        with_stack = "smooth tree" in stacked
        return rows + [_mean_row([on_law(n, split, with_stack) for split in splits]) for n in sizes]


def on_table(name: str, split: int, with_stack: bool = False) -> Row:
    """Return how all score on a real table."""
    train, test = split_table(dithered(name), split)
    kinds = kinds_for(name, train[0].shape[1])
    found = compared(as_columns(train), as_columns(test), kinds, split, with_stack)
    return {"table": name, "n": len(train[0])} | found


def dithered(name: str) -> Table:
    """Return a real table, with noise of width one on the whole numbers of Wifi, which are fitted as floats.

    A density of floats may have a peak at each whole number. Narrow atoms would gain by such peaks alone.
    """
    X, y = real_table(name)
    return (X + np.random.default_rng(0).uniform(-0.5, 0.5, X.shape) if name == "wifi" else X), y


def on_law(n: int, seed: int, with_stack: bool = False) -> Row:
    """Return how all score on the law."""
    law = SmoothTree.draw(N_COLUMNS, seed)
    train, test = law.sample(n, 1_000 + seed), law.sample(N_TEST, 2_000 + seed)
    found = compared(train, test, None, seed, with_stack)
    return {"table": "smooth tree", "n": n} | found | {"truth": float(law.logpdf(test).mean())}


def compared(train: Columns, test: Columns, kinds: Kinds, seed: int, with_stack: bool) -> Row:
    """Return scores and seconds of one tree, of many, and of the stack, by what the states are."""
    found: Row = {}
    for states in STATES:
        for label, number in (("1 tree", 1), ("trees", "auto")):
            make = partial(TreeMixture, number, states=states, kinds=kinds, random_state=seed)
            model, seconds = fitted(make, train)
            key, choice = f"{label}, {states}", model.fit_.choice
            found |= {key: float(model.density_.logpdf(test).mean()), f"{key} s": seconds}
            found |= {f"{key} chosen": f"{choice.n_components} x {choice.n_atoms or choice.n_states}"}
        if with_stack and states != "atoms":
            model, seconds = fitted(partial(stack, states, kinds, seed), train)
            key = f"stack, {states}"
            found |= {key: float(model.density_.logpdf(test).mean()), f"{key} s": seconds}
    return found


def stack(states: str, kinds: Kinds, seed: int) -> JointEstimator:
    """Return the stack of all experts, with such states of trees."""
    blocks = [(f"blocks_{warp}", GaussianBlocks(warp)) for warp in ("none", "power", "scores")]
    experts = [("jupad", JUPAD()), *blocks, ("trees", TreeMixture(states=states))]
    return JointEstimator(experts, kinds=kinds, random_state=seed)


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


KEYS = tuple(f"{label}, {states}" for label in ("1 tree", "trees") for states in STATES)
STACKS = ("stack, bins", "stack, auto")
COLUMNS = (
    "table", "n", *KEYS, *STACKS, "truth", *(f"{key} s" for key in (*KEYS, *STACKS)),
    *(f"{key} chosen" for key in KEYS),
)  # fmt: skip


def _mean_row(rows: list[Row]) -> Row:
    """Return the means of what was measured in several splits; of choices, all of them."""
    found: Row = {}
    for key in COLUMNS:
        values = [row[key] for row in rows if key in row]
        if not values:
            found[key] = ""
        elif isinstance(values[0], float):
            found[key] = f"{np.mean(values):.2f}"
        else:
            found[key] = ", ".join(dict.fromkeys(map(str, values)))
    return found
