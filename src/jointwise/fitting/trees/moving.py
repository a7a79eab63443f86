r"""Where the edges of bins lie: each moves between its neighbours to where the bins tell most of other columns.

With c[i, j] the rows in bin i and state j of another column, q[j] the share of that state in all rows, and s[i] the
share of the rows in bin i, the edges are to raise

.. math:: \sum_i \Big( \sum_j c_{ij} \log \frac{c_{ij} - 1 + P q_j}{c_i - 1 + P} - \epsilon (8 s_i)^2 \Big),

where the first term is summed over the few columns that tell most of this one. It is the log-likelihood of each row
given the others in its bin and P = `PRIOR_ROWS` rows of the whole table, so that edges of a small table do not follow
chance. The last term, with :math:`\epsilon` the `EVEN_LOSS` of merging, keeps bins even where they all tell the same.
An edge that lies a little beside a break of the law costs much: the rows between them get the density of the wrong
side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.fitting.trees.merging import EVEN_LOSS

# Bins of a column between which its edges may lie.
FINEST_BINS = 4096
# Most times that all edges of a column are moved, one after the other.
MOST_SWEEPS = 2
# Rows of the whole table that each bin counts as having seen: a few alike rows side by side tell little.
PRIOR_ROWS = 30.0


def moved_cuts(cuts: IntArray, tables: Sequence[FloatArray], counts: FloatArray) -> IntArray:
    """Return cuts moved one at a time, until none gains; cut i is between bins i and i + 1.

    Parameters
    ----------
    cuts : array of shape (K,)
        Increasing.
    tables : sequence of arrays of shape (B, J_k)
        Rows of each fine bin and each state of another column.
    counts : array of shape (B,)
        Rows of each fine bin.

    Examples
    --------
    >>> table = np.repeat([[90.0, 0.0], [0.0, 90.0]], [5, 3], axis=0)
    >>> moved_cuts(np.array([1]), [table], table.sum(axis=1))
    array([4])
    """
    # sums over all bins below each end of a bin: of cells, and of their totals and the shares of rows
    shares = counts / max(float(counts.sum()), 1e-300)
    cells = _below(np.hstack([np.empty((len(counts), 0)), *tables]))
    totals = _below(np.stack([*(table.sum(axis=1) for table in tables), shares], axis=1))
    prior = PRIOR_ROWS * _shares(tables)
    ends = np.concatenate([[0], cuts + 1, [len(counts)]])
    for _ in range(MOST_SWEEPS):
        before = ends.copy()
        for k in range(1, len(ends) - 1):
            low, high = ends[k - 1], ends[k + 1]
            at = slice(low + 1, high)
            left = _value(cells[at] - cells[low], totals[at] - totals[low], prior)
            value = left + _value(cells[high] - cells[at], totals[high] - totals[at], prior)
            best = int(np.argmax(value))
            if value[best] > value[ends[k] - low - 1]:
                ends[k] = low + 1 + best
        if (ends == before).all():
            break
    return np.asarray(ends[1:-1] - 1)


def _shares(tables: Sequence[FloatArray]) -> FloatArray:
    """Return the shares of the states of each table in all its rows, side by side."""
    return np.concatenate([np.empty(0), *(t.sum(axis=0) / max(float(t.sum()), 1e-300) for t in tables)])


def _below(values: FloatArray) -> FloatArray:
    return np.vstack([np.zeros(values.shape[1]), np.cumsum(values, axis=0)])


def _value(cells: FloatArray, totals: FloatArray, prior: FloatArray) -> FloatArray:
    """Return what some bins add to the sum that edges are to raise; shape (bins,)."""
    even = EVEN_LOSS * (8 * totals[:, -1]) ** 2
    own = np.asarray(PRIOR_ROWS)
    return np.asarray(_log_shares(cells, prior).sum(axis=1) - _log_shares(totals[:, :-1], own).sum(axis=1) - even)


def _log_shares(counts: FloatArray, prior: FloatArray) -> FloatArray:
    """Return c log(c - 1 + p) of counts."""
    return np.asarray(counts * np.log(np.maximum(np.maximum(counts - 1, 0) + prior, 1e-300)))
