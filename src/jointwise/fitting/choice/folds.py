"""Rows dealt to folds: which are held out, and which are learned from."""

from __future__ import annotations

import numpy as np

from jointwise._typing import BoolArray, FloatArray
from jointwise.axes import BinnedAxis
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows

# At most this many rows are searched on; a table under `SMALL_TABLE` rows in three folds, a larger one in one.
SEARCH_ROWS, SMALL_TABLE = 20_000, 4_000
# More rows than this in a bin are split evenly: chance would change no digit that matters.
MOST_DEALT = 2.0**62
# A row that repeats is one row, with a weight, if fewer rows than this would be equal to it by chance.
BY_CHANCE = 0.1
# It is no such row if it has more than this share of all weight and this many times the median one: a spike not known.
SPIKE_SHARE, SPIKE_FACTOR = 0.02, 5.0
# Of fewer different rows each is one of a few values that a table can have.
LEAST_DIFFERENT = 100


def row_folds(rows: Rows, rng: np.random.Generator) -> list[tuple[CodedRows, CodedRows]]:
    """Return pairs of held-out and training rows: each third of a small table in turn, one quarter of a large one."""
    n = len(rows)
    sample = rows.take(np.sort(rng.choice(n, SEARCH_ROWS, replace=False)) if n > SEARCH_ROWS else np.arange(n))
    folds = [(sample.with_weights(part), sample.with_weights(rest)) for part, rest in fold_weights(sample, n, rng)]
    return [(part, rest) for part, rest in folds if len(part) and len(rest)]


def fold_weights(rows: CodedRows, n_rows: int, rng: np.random.Generator) -> list[tuple[FloatArray, FloatArray]]:
    """Return the weights of held-out and of training rows, for each fold of a sample of a table of ``n_rows``.

    Copies of a row that chance would not repeat, or its weight, go to one fold: rows that are held out would otherwise
    be known from their copies. Other equal rows, such as those of categories, are dealt one by one.
    """
    small = n_rows < SMALL_TABLE
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    parts = split_counts(weights, 3 if small else 4, rng, is_one_row(rows)).T
    return [(part, weights - part) for part in (parts if small else parts[:1])]


def is_one_row(rows: CodedRows) -> BoolArray:
    r"""Return, for each of some different rows, whether all of its weight comes from one row; shape (n,).

    Of independent columns, :math:`n \prod_k c_k / n` rows would have its numbers, where :math:`c_k` of the n rows share
    its interval of column k. Spikes, categories and gaps repeat too often to count, and few different rows are values
    that repeat. A row of exceptional weight is a spike that was not found.

    >>> from jointwise.marginals import Profile
    >>> data = {"a": np.arange(200) / 7, "b": np.arange(200) % 89 / 7, "c": np.repeat(["x", "y"], 100)}
    >>> def ones(names):
    ...     table = {name: np.append(data[name], data[name][:3]) for name in names}  # the first three rows twice
    ...     schema = Profile.of(table).schema()
    ...     rows = CodedRows.of(table, schema, Profile.of(table).axes(schema, 128)).canonical()
    ...     return is_one_row(rows).any().item()
    >>> ones(["a", "b", "c"]), ones(["a"]), ones(["c"])
    (True, False, False)
    """
    n = len(rows)
    if n < LEAST_DIFFERENT or rows.weights is None or np.all(rows.weights == 1.0):
        return np.zeros(n, dtype=np.bool_)
    by_chance = np.full(n, float(n))
    for k, axis in enumerate(rows.axes):
        if isinstance(axis, BinnedAxis):
            shares = np.append(np.bincount(rows.codes[:, k], minlength=axis.n_bins)[: axis.n_bins] / n, 1.0)
            shares[axis.n_intervals :] = 1.0
            by_chance *= shares[rows.codes[:, k]]
    heavy = rows.weights > max(SPIKE_SHARE * rows.n_rows, SPIKE_FACTOR * float(np.median(rows.weights)))
    return np.asarray((by_chance < BY_CHANCE) & ~heavy)


def split_counts(
    counts: FloatArray, n_folds: int, rng: np.random.Generator, together: BoolArray | None = None
) -> FloatArray:
    """Deal the rows of each bin to folds at random; shape (bins, folds).

    It depends on the counts alone, so rows in any order, or as weights, are dealt alike. What a weight has beyond a
    whole number goes to one fold, and so do all rows of the bins marked `together`.

    >>> split_counts(np.array([4.0, 6.5]), 2, np.random.default_rng(0)).sum(axis=1)
    array([4. , 6.5])
    """
    one = np.zeros(len(counts), dtype=np.bool_) if together is None else together & (counts > 0)
    whole = np.floor(counts)
    few = whole < MOST_DEALT
    dealt = np.where(one, 1.0, np.where(few, whole, 0.0)).astype(np.int64)
    folds = rng.multinomial(dealt, np.full(n_folds, 1 / n_folds)) * np.where(one, counts, 1.0)[:, None]
    folds[np.arange(len(counts)), rng.integers(n_folds, size=len(counts))] += np.where(few & ~one, counts - whole, 0.0)
    return np.asarray(folds + np.where(few | one, 0.0, counts / n_folds)[:, None])
