"""Planted oddities: how often the planted cell is the oddest of its row, and its row among the oddest of the table.

Some cells of a table are spoiled before the fit: a value swapped with another row's, a number in a wrong unit (times
ten), or a wrong category. The stack is fitted to the spoiled table, as a user would, or to three parts of it that judge
the rows they have not seen. A row is as odd as its oddest
cell, as its density is low, or as it is odd for a row with its gaps. IsolationForest, which sees categories as
indicator columns and gaps as medians, scores whole rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from benchmarks.generated import generated
from benchmarks.report import Row
from jointwise import JointEstimator
from jointwise.datasets import fetch_penguins

Table = Mapping[str, np.ndarray]
N_PLANTED, SEEDS = 12, (0, 1, 2)
N_FOLDS = 3
KINDS = ("swap", "unit", "category")


def _wine() -> Table:
    wine = load_wine()
    columns = dict(zip(wine.feature_names, wine.data.T, strict=True))
    return columns | {"class": np.array(["a", "b", "c"], dtype=object)[wine.target]}


TABLES: dict[str, Callable[[], Table]] = {
    "wine": _wine,
    "penguins": lambda: fetch_penguins().table,
    "generated": partial(generated, 0, 2_000),
}


def run() -> list[Row]:
    """Return, by table and kind of oddity, how often the planted cell comes first, and the AUC of planted rows."""
    return [row for table, make in TABLES.items() for row in _measured(table, make())]


def _measured(name: str, table: Table) -> list[Row]:
    first: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    ours, densities, rows, others, theirs = [], [], [], [], []
    for seed in SEEDS:
        spoiled, planted = plant(table, np.random.default_rng(seed))
        density = JointEstimator(random_state=0).fit(spoiled).density_
        odd = np.nan_to_num(density.surprisal(spoiled), nan=-np.inf)
        names = list(density.names)
        for row, column, kind in planted:
            first[kind].append(bool(names[int(np.argmax(odd[row]))] == column))
        is_planted = np.zeros(len(odd), dtype=bool)
        is_planted[[row for row, _, _ in planted]] = True
        ours.append(roc_auc_score(is_planted, odd.max(axis=1)))
        densities.append(roc_auc_score(is_planted, -density.logpdf(spoiled)))
        rows.append(roc_auc_score(is_planted, density.oddness(spoiled)))
        others.append(roc_auc_score(is_planted, judged_by_others(spoiled)))
        forest = IsolationForest(random_state=seed).fit(numbers(spoiled))
        theirs.append(roc_auc_score(is_planted, -forest.score_samples(numbers(spoiled))))
    return [
        {
            "table": name,
            "planted": kind,
            "cells": len(first[kind]),
            "cell comes first": f"{np.mean(first[kind]):.2f}",
            "by chance": f"{1 / len(table):.2f}",
            "AUC of rows by oddest cell": f"{np.mean(ours):.3f}",
            "by density": f"{np.mean(densities):.3f}",
            "by oddness": f"{np.mean(rows):.3f}",
            "by cell, models of other rows": f"{np.mean(others):.3f}",
            "IsolationForest": f"{np.mean(theirs):.3f}",
        }
        for kind in KINDS
    ]


def judged_by_others(table: Table) -> np.ndarray:
    """Return the surprisal of the oddest cell of each row under a model of other rows, as `jointwise score TABLE`."""
    n = len(next(iter(table.values())))
    fold, out = np.arange(n) % N_FOLDS, np.empty(n)
    for k in range(N_FOLDS):
        fitted = JointEstimator(random_state=0).fit({name: column[fold != k] for name, column in table.items()})
        odd = fitted.density_.surprisal({name: column[fold == k] for name, column in table.items()})
        out[fold == k] = np.nan_to_num(odd, nan=-np.inf, posinf=1e6).max(axis=1)
    return out


def plant(table: Table, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], list[tuple[int, str, str]]]:
    """Spoil some cells: return the table, and the row, column and kind of each planted cell."""
    spoiled = {name: np.array(column, copy=True) for name, column in table.items()}
    n = len(next(iter(spoiled.values())))
    numeric = [name for name, column in spoiled.items() if column.dtype.kind in "fi"]
    planted = []
    for position, row in enumerate(rng.choice(n, N_PLANTED, replace=False).tolist()):
        kind = KINDS[position % len(KINDS)]
        name = str(rng.choice([each for each in spoiled if (each in numeric) == (kind != "category")]))
        column = spoiled[name]
        others = [value for value in np.unique(_known(column)).tolist() if value != column[row]]
        if column[row] is None or column[row] != column[row]:
            continue
        if kind == "unit":
            column[row] *= 10
        elif kind == "swap":  # with a row whose value is far from it
            far = np.argsort(np.abs(_known(column).astype(float) - float(column[row])))[-n // 4 :]
            column[row] = _known(column)[rng.choice(far)]
        else:
            column[row] = others[int(rng.integers(len(others)))]
        planted.append((row, name, kind))
    return spoiled, planted


def numbers(table: Table) -> np.ndarray:
    """Return a table as numbers: gaps as medians, an indicator column for each category."""
    columns = []
    for column in table.values():
        if column.dtype.kind in "fi":
            filled = column.astype(float)
            filled[np.isnan(filled)] = np.nanmedian(filled)
            columns.append(filled)
        else:
            columns += [(column == value).astype(float) for value in sorted(set(_known(column).tolist()))]
    return np.column_stack(columns)


def _known(column: np.ndarray) -> np.ndarray:
    """Return the values of a column without gaps."""
    return np.array([value for value in column.tolist() if value is not None and value == value], dtype=column.dtype)  # noqa: PLR0124
