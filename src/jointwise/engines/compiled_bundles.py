"""Columns of few bins taken together in a pass: a bundle is one column whose bins are the combinations of theirs.

The factor of a combination is the product of its columns' factors, and the counts of a column are sums over
combinations. Both are found once per pass, so a pass over rows takes one step for each bundle instead of each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray, IntArray
from jointwise.engines.base import bin_starts
from jointwise.engines.compiled_parts import FAST, locked

# Most combinations of a bundle, fewest rows for each of them, and most columns, whose product of factors must not
# underflow.
MOST_COMBINATIONS, LEAST_ROWS, MOST_COLUMNS = 256, 8, 8


@dataclass(frozen=True, eq=False)
class Bundles:
    """Which columns are taken together, and how their bins are combined.

    Attributes
    ----------
    sizes : array of shape (bundles,)
        Columns of each bundle; neighbours are bundled.
    layout : array of shape (N, 4)
        Of each column: its first bin among those of all columns, its number of bins, that number with "missing" if some
        row lacks it, and the number of combinations of the columns before it in its bundle.
    n_bins : array of shape (bundles,)
        Combinations of each bundle.

    Examples
    --------
    >>> codes = np.array([[0, 1, 0], [1, 2, 1]] * 100, dtype=np.uint8)
    >>> bundles = Bundles.of(codes, [2, 2, 2])
    >>> bundles.sizes, bundles.n_bins, bundles.codes(codes)[:2].tolist()
    (array([3]), array([12]), [[2], [11]])
    """

    sizes: IntArray
    layout: IntArray
    n_bins: IntArray

    @classmethod
    def of(cls, codes: CodeArray, n_bins: Sequence[int]) -> Bundles:
        """Return bundles of the columns of codes (n, N), each as large as the number of rows bears."""
        most = min(MOST_COMBINATIONS, len(codes) // LEAST_ROWS)
        bins = np.asarray(n_bins, dtype=np.int64)
        states = bins + (codes >= bins).any(axis=0)
        sizes, combinations, before = [0], [1], []
        for own in states.tolist():
            if sizes[-1] == MOST_COLUMNS or (sizes[-1] > 0 and combinations[-1] * own > most):
                sizes.append(0)
                combinations.append(1)
            before.append(combinations[-1])
            combinations[-1] *= own
            sizes[-1] += 1
        layout = np.column_stack([bin_starts(n_bins)[:-1], bins, states, before])
        return cls(np.array(sizes), layout, np.array(combinations))

    def __len__(self) -> int:
        return len(self.sizes)

    def codes(self, codes: CodeArray) -> CodeArray:
        """Return the combination of each row in each bundle; shape (n, bundles)."""
        ends = np.cumsum(self.sizes)
        found: CodeArray = np.empty((len(codes), len(self)), dtype=np.uint16)
        for bundle, columns in enumerate(map(slice, ends - self.sizes, ends)):
            known = np.minimum(codes[:, columns], self.layout[columns, 1])
            found[:, bundle] = known.astype(np.int64) @ self.layout[columns, 3]
        return found

    def tables(self, tables: FloatArray) -> FloatArray:
        """Return the factors of all combinations, stacked, from those of all bins (I, F)."""
        found = np.empty((int(self.n_bins.sum()), tables.shape[1]))
        _fill_tables(locked(self.sizes), locked(self.layout), locked(tables), found)
        return found

    def counts(self, counts: FloatArray, n_all: int) -> FloatArray:
        """Return the counts of all `n_all` bins from those of all combinations."""
        found = np.zeros((n_all, counts.shape[1]))
        _add_counts(locked(self.sizes), locked(self.layout), locked(self.n_bins), locked(counts), found)
        return found


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _fill_tables(sizes: AnyArray, layout: AnyArray, tables: AnyArray, found: AnyArray) -> None:
    n_components = tables.shape[1]
    column, first = 0, 0
    for size in sizes:
        found[first] = 1.0
        filled = 1
        for n in range(column, column + size):
            start, n_bins, n_states = layout[n, 0], layout[n, 1], layout[n, 2]
            for state in range(n_states - 1, -1, -1):  # the first state last: all others are multiples of what it holds
                for i in range(filled):
                    for r in range(n_components):
                        factor = tables[start + state, r] if state < n_bins else 1.0
                        found[first + state * filled + i, r] = found[first + i, r] * factor
            filled *= n_states
        column += size
        first += filled


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _add_counts(sizes: AnyArray, layout: AnyArray, n_bins: AnyArray, counts: AnyArray, found: AnyArray) -> None:
    n_components = counts.shape[1]
    column, first = 0, 0
    for bundle in range(len(sizes)):
        for n in range(column, column + sizes[bundle]):
            start, own_bins, n_states, before = layout[n]
            for i in range(n_bins[bundle]):
                state = (i // before) % n_states
                if state < own_bins:
                    for r in range(n_components):
                        found[start + state, r] += counts[first + i, r]
        column += sizes[bundle]
        first += n_bins[bundle]
