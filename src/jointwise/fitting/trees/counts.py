"""PairCounts: pairs of columns counted on axes of any coarseness, from rows or from pair counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from jointwise._typing import FloatArray
from jointwise.axes import Axis, regrouping
from jointwise.engines import bin_starts
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.rows.coded import CodedRows


class PairCounts(ABC):
    """Counts of pairs of columns, on axes coarser than those of what they are counted from."""

    @abstractmethod
    def pairs(self, axes: Sequence[Axis]) -> PairwiseMarginals:
        """Return the counts of all pairs."""

    @abstractmethod
    def table(self, n: int, k: int, own: Axis, other: Axis) -> FloatArray:
        """Return the counts of columns ``n`` and ``k``; shape (own.n_bins, other.n_bins)."""


# Rows counted at a time, so that counting needs little memory.
COUNTED_ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class RowPairs(PairCounts):
    """Pairs counted from rows."""

    rows: CodedRows

    def pairs(self, axes: Sequence[Axis]) -> PairwiseMarginals:
        """Return the counts of all pairs."""
        return self.rows.regrouped(axes).pairs()

    def table(self, n: int, k: int, own: Axis, other: Axis) -> FloatArray:
        """Return the counts of two columns."""
        rows, width = self.rows, other.n_bins + 1  # missing cells are counted beside the others, and left out
        first, second = (regrouping(rows.axes[c], axis).astype(np.int64) for c, axis in ((n, own), (k, other)))
        counts = np.zeros((own.n_bins + 1) * width)
        for start in range(0, len(rows), COUNTED_ROWS):
            here = slice(start, start + COUNTED_ROWS)
            cells = first[rows.codes[here, n]] * width + second[rows.codes[here, k]]
            weights = None if rows.weights is None else rows.weights[here]
            counts += np.bincount(cells, weights, minlength=len(counts))
        return np.asarray(counts.reshape(-1, width)[:-1, :-1])


@dataclass(frozen=True, eq=False)
class MergedPairs(PairCounts):
    """Pair counts that are merged."""

    counted: PairwiseMarginals

    def pairs(self, axes: Sequence[Axis]) -> PairwiseMarginals:
        """Return the counts of all pairs."""
        return regrouped_pairs(self.counted, axes)

    def table(self, n: int, k: int, own: Axis, other: Axis) -> FloatArray:
        """Return the counts of two columns."""
        fine = self.counted.axes
        starts = bin_starts([axis.n_bins for axis in fine])
        table = np.asarray(self.counted.counts, dtype=np.float64)[starts[n] : starts[n + 1], starts[k] : starts[k + 1]]
        merged = merger([fine[n]], [own]) @ table
        return np.asarray((merger([fine[k]], [other]) @ merged.T).T)


def regrouped_pairs(counted: PairwiseMarginals, axes: Sequence[Axis]) -> PairwiseMarginals:
    """Return the pair counts of the same rows on coarser axes; see `Rows.regrouped`."""
    merge = merger(counted.axes, axes)
    merged = merge @ np.asarray(counted.counts, dtype=np.float64)
    return PairwiseMarginals(counted.schema, tuple(axes), (merge @ merged.T).T, counted.n_rows)


def merger(fine: Sequence[Axis], axes: Sequence[Axis]) -> csr_array:
    """Return the matrix that adds up the bins of fine axes to those of coarser ones; shape (bins, fine bins)."""
    starts = bin_starts([axis.n_bins for axis in axes])
    lookups = [regrouping(a, b)[:-1].astype(np.int64) for a, b in zip(fine, axes, strict=True)]
    where = np.concatenate([start + lookup for start, lookup in zip(starts, lookups, strict=False)])
    return csr_array((np.ones(len(where)), (where, np.arange(len(where)))), shape=(int(starts[-1]), len(where)))
