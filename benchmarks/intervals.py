"""How many held-out values lie in the intervals that the rest of their row predicts: 80 and 95% should hold as many.

Ten splits of each table as in `tables`: rows permuted by `default_rng(split)`, the first three quarters to learn from,
the class as a category. Every numeric cell of the other rows is predicted from the rest of its row.

The ends of an interval are values that the column can have: of a rounded column the first and the last inside the
interval, so that it holds its share on average, and of an integer those outside, so that it holds at least its share.
"Given" is the share that the density itself expects in it, over the first rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from benchmarks.report import Row
from benchmarks.tables import as_columns, kinds_for, real_table, split_table
from jointwise import JointDensity, JointEstimator
from jointwise.exceptions import RareEventWarning

TABLES = ("seeds", "raisin", "wifi", "banknote", "wine")
SPLITS = tuple(range(10))
SHARES = (0.8, 0.95)
# Rows of each split whose intervals the density itself is asked about.
ASKED_ROWS = 40


def run(names: Sequence[str] = TABLES, splits: Sequence[int] = SPLITS) -> list[Row]:
    """Return the share of values within their intervals, mean and standard error of the splits, for each table."""
    warnings.simplefilter("ignore", RareEventWarning)  # odd rows are among the others
    return [_on_table(name, splits) for name in names]


def _on_table(name: str, splits: Sequence[int]) -> Row:
    found = np.array([_on_split(name, split) for split in splits])
    means, errors = found.mean(axis=0), found.std(axis=0) / np.sqrt(max(len(splits) - 1, 1))
    row: Row = {"table": name, "splits": len(splits)}
    for k, share in enumerate(SHARES):
        row[f"inside {share:.0%}"] = f"{means[k, 0]:.3f} ± {errors[k, 0]:.3f}"
        row[f"given {share:.0%}"] = f"{means[k, 1]:.3f}"
    return row


def _on_split(name: str, split: int) -> np.ndarray:
    """Return the share of values within their intervals, and the share that the density gives; shape (shares, 2)."""
    train, test = (as_columns(part) for part in split_table(real_table(name), split))
    density = JointEstimator(kinds=kinds_for(name, len(train) - 1), random_state=split).fit(train).density_
    numbers = [variable.name for variable in density.schema if variable.categories is None]
    each = [[_inside(density, column, test, share) for column in numbers] for share in SHARES]
    return np.mean(each, axis=1)


def _inside(density: JointDensity, column: str, rows: dict[str, np.ndarray], share: float) -> tuple[float, float]:
    _, low, high = density.predict(column, rows, interval=share).values()
    given = [
        density.condition({name: cells[i].item() for name, cells in rows.items() if name != column}).probability(
            {column: (low[i].item(), high[i].item())}
        )
        for i in range(min(ASKED_ROWS, len(low)))
    ]
    return float(np.mean((low <= rows[column]) & (rows[column] <= high))), float(np.mean(given))
