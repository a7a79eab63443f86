r"""Which neighbouring bins are one state: those that tell the same of other columns.

Of many quantile bins of a column, two neighbours are merged again and again. With c[i, j] the rows in bin i and state j
of another column, merging bins i and i + 1 loses

.. math:: \sum_j \Big( h(c_{ij}) + h(c_{i+1,j}) - h(c_{ij} + c_{i+1,j}) \Big) - h(c_i) - h(c_{i+1}) + h(c_i + c_{i+1}),
          \qquad h(c) = c \log c,

nats of mutual information in all rows, summed over the few columns that tell most of this one. The merge that loses
least is made; large bins count as a loss too, so that bins stay even where they all tell the same. `moving` then finds
where exactly the edges lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.axes import Axis, BinnedAxis
from jointwise.engines import bin_starts
from jointwise.marginals.pairwise import PairwiseMarginals

# Bins of a column before any are merged, and of the columns that they are compared by.
FINE_BINS, PARTNER_BINS = 256, 8
# Columns that a column is compared by: those with the largest mutual information.
N_PARTNERS = 3
# What a bin with an eighth of the rows loses by its size, in nats: about what chance gains.
EVEN_LOSS = 10.0


class MergeOrder(NamedTuple):
    """The cuts of a column, the first to be given up first, and the columns it was compared by.

    Cut i is between intervals i and i + 1.
    """

    cuts: IntArray
    partners: tuple[int, ...]


def merge_orders(
    pairs: PairwiseMarginals, coarse: PairwiseMarginals, across: FloatArray, columns: Sequence[int]
) -> dict[int, MergeOrder]:
    """Return the order in which the bins of some columns are merged.

    Parameters
    ----------
    pairs : PairwiseMarginals
        On fine bins.
    coarse : PairwiseMarginals
        On the bins of partners.
    across : array of shape (fine bins of all columns, partner bins of all columns)
        Pair counts of the one with the other.
    columns : sequence of int
    """
    starts, ends = (bin_starts([axis.n_bins for axis in each.axes]) for each in (pairs, coarse))
    information = _information(np.asarray(coarse.counts, dtype=np.float64), ends)
    found = {}
    for n in columns:
        axis = pairs.axes[n]
        assert isinstance(axis, BinnedAxis)
        best = np.argsort(-information[n], kind="stable")[:N_PARTNERS]
        partners = tuple(best[np.isfinite(information[n, best])].tolist())
        rows = slice(int(starts[n]), int(starts[n]) + axis.n_intervals)
        tables = [across[rows, ends[k] : ends[k + 1]] for k in partners]
        counts = np.asarray(pairs.marginal(n), dtype=np.float64)[: axis.n_intervals]
        found[n] = MergeOrder(_order(tables, counts), partners)
    return found


def kept_cuts(axis: Axis, order: IntArray, n_bins: int) -> FloatArray:
    """Return the edges that are left when at most ``n_bins`` intervals are."""
    assert isinstance(axis, BinnedAxis)
    return axis.edges[np.sort(order[max(len(order) - (n_bins - 1), 0) :])]


def _information(counts: FloatArray, ends: IntArray) -> FloatArray:
    """Mutual information of all pairs of columns, in nats of all their rows; minus infinity of a column and itself."""
    joint = np.add.reduceat(np.add.reduceat(x_log_x(counts), ends[:-1], axis=0), ends[:-1], axis=1)
    own = np.add.reduceat(counts, ends[:-1], axis=1)  # rows of a state where the other column is there
    single = np.add.reduceat(x_log_x(own), ends[:-1], axis=0)
    total = x_log_x(np.add.reduceat(own, ends[:-1], axis=0))
    information = joint - single - single.T + total
    np.fill_diagonal(information, -np.inf)
    return information


def _order(tables: Sequence[FloatArray], counts: FloatArray) -> IntArray:
    """Return the cuts between bins in the order in which they are given up.

    Parameters
    ----------
    tables : sequence of arrays of shape (B, J_k)
        Rows of each bin and each state of another column.
    counts : array of shape (B,)
    """
    n = max(float(counts.sum()), 1e-300)
    # bins with their counts, side by side: joint tables, then totals of each table with the opposite sign
    cells = np.hstack([*tables, *(table.sum(axis=1, keepdims=True) for table in tables)]) if tables else counts[:, None]
    signs = np.concatenate([np.ones(sum(t.shape[1] for t in tables)), -np.ones(len(tables))]) if tables else np.zeros(1)
    bins = [(cells[i], counts[i]) for i in range(len(counts))]
    cuts = list(range(len(counts) - 1))

    def loss(left: tuple[FloatArray, float], right: tuple[FloatArray, float]) -> float:
        gained = x_log_x(left[0]) + x_log_x(right[0]) - x_log_x(left[0] + right[0])
        return float(signs @ gained) + EVEN_LOSS * (8 * (left[1] + right[1]) / n) ** 2

    losses = [loss(a, b) for a, b in pairwise(bins)]
    order = []
    while cuts:
        i = int(np.argmin(losses))
        order.append(cuts.pop(i))
        bins[i : i + 2] = [(bins[i][0] + bins[i + 1][0], bins[i][1] + bins[i + 1][1])]
        losses.pop(i)
        for k in (i - 1, i):
            if 0 <= k < len(losses):
                losses[k] = loss(bins[k], bins[k + 1])
    return np.array(order, dtype=np.int64)


def x_log_x(counts: FloatArray) -> FloatArray:
    """Return c log c of counts, zero where there are none."""
    return np.asarray(counts * np.log(np.maximum(counts, 1e-300)))
