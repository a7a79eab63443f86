"""Rows dealt to folds: which are held out, and which are learned from."""

from __future__ import annotations

import numpy as np

from jointwise._typing import FloatArray
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows

# At most this many rows are searched on; a table under `SMALL_TABLE` rows in three folds, a larger one in one.
SEARCH_ROWS, SMALL_TABLE = 20_000, 4_000
# More rows than this in a bin are split evenly: chance would change no digit that matters.
MOST_DEALT = 2.0**62


def row_folds(rows: Rows, rng: np.random.Generator) -> list[tuple[CodedRows, CodedRows]]:
    """Return pairs of held-out and training rows: each third of a small table in turn, one quarter of a large one."""
    n = len(rows)
    sample = rows.take(np.sort(rng.choice(n, SEARCH_ROWS, replace=False)) if n > SEARCH_ROWS else np.arange(n))
    weights = np.ones(len(sample)) if sample.weights is None else sample.weights
    folds = [(sample.with_weights(part), sample.with_weights(rest)) for part, rest in fold_weights(weights, n, rng)]
    return [(part, rest) for part, rest in folds if len(part) and len(rest)]


def fold_weights(weights: FloatArray, n_rows: int, rng: np.random.Generator) -> list[tuple[FloatArray, FloatArray]]:
    """Return the weights of held-out and of training rows, for each fold of a sample of a table of ``n_rows``."""
    small = n_rows < SMALL_TABLE
    parts = split_counts(weights, 3 if small else 4, rng).T
    return [(part, weights - part) for part in (parts if small else parts[:1])]


def split_counts(counts: FloatArray, n_folds: int, rng: np.random.Generator) -> FloatArray:
    """Deal the rows of each bin to folds at random; shape (bins, folds).

    It depends on the counts alone, so rows in any order, or as weights, are dealt alike. What a weight has beyond a
    whole number goes to one fold.

    >>> split_counts(np.array([4.0, 6.5]), 2, np.random.default_rng(0)).sum(axis=1)
    array([4. , 6.5])
    """
    whole = np.floor(counts)
    few = whole < MOST_DEALT
    dealt = np.where(few, whole, 0.0).astype(np.int64)
    folds = rng.multinomial(dealt, np.full(n_folds, 1 / n_folds)).astype(np.float64)
    folds[np.arange(len(counts)), rng.integers(n_folds, size=len(counts))] += np.where(few, counts - whole, 0.0)
    return folds + np.where(few, 0.0, counts / n_folds)[:, None]
