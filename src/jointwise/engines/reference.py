"""Counts of coded rows in plain numpy and SciPy: pairs by bincount, posteriors by two sparse products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.base import PosteriorCounts, PosteriorEngine, bin_starts

# Rows are taken in blocks that stay in the cache. A block must also be long beside a table of a pair, or
# clearing and adding tables would cost more than counting.
SHORTEST_BLOCK, LONGEST_BLOCK = 2**14, 2**20


def pair_counts(codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None = None) -> AnyArray:
    r"""Count how often the codes of every pair of columns occur together.

    With H the one-hot matrix of the codes, of shape (n, I) and without columns for "missing", and w the
    weights, the result is H' diag(w) H:

    .. math:: C_{jk}[a, b] = \sum_i w_i \, [x_{ij} = a] \, [x_{ik} = b].

    Parameters
    ----------
    codes : array of shape (n, N), uint8 or uint16
        Column n holds 0 to n_bins[n] - 1, or n_bins[n] where a value is missing.
    n_bins : sequence of N ints
        Number of bins I_n of each column.
    weights : array of shape (n,), optional
        Weights of the rows; one each where left out.

    Returns
    -------
    counts : array of shape (I, I), I the sum of `n_bins`
        Block (j, k) is the table of columns j and k over the rows where neither is missing, block (n, n) the
        diagonal matrix of the counts of column n. int64, or float64 with weights.

    Examples
    --------
    >>> pair_counts(np.array([[0, 1], [1, 1], [0, 2]], dtype=np.uint8), [2, 2])
    array([[2, 0, 0, 1],
           [0, 1, 0, 1],
           [0, 0, 0, 0],
           [1, 1, 0, 2]])
    """
    starts = np.concatenate([[0], np.cumsum(n_bins, dtype=np.intp)])
    counts = np.zeros((starts[-1], starts[-1]), dtype=np.int64 if weights is None else np.float64)
    widest = sorted(n_bins)[-2:]
    n_block = int(np.clip(2 * np.prod(widest), SHORTEST_BLOCK, LONGEST_BLOCK))
    for start in range(0, len(codes), n_block):
        rows = slice(start, start + n_block)
        _add_block(counts, codes[rows], n_bins, starts, None if weights is None else weights[rows])
    _mirror(counts)
    return counts


def _add_block(
    counts: AnyArray, codes: CodeArray, n_bins: Sequence[int], starts: AnyArray, weights: FloatArray | None
) -> None:
    """Add the counts of one block of rows to the diagonal and the blocks above it."""
    columns = np.ascontiguousarray(codes.T)
    cell = np.empty(len(codes), dtype=np.intp)
    for j, n_first in enumerate(n_bins):
        first = slice(starts[j], starts[j + 1])
        once = np.bincount(columns[j], weights, minlength=n_first + 1)[:n_first]
        np.einsum("ii->i", counts[first, first])[:] += once
        for k in range(j + 1, len(n_bins)):
            # Bins and "missing" of both columns as one number; the missing row and column are then cut off.
            width = n_bins[k] + 1
            np.multiply(columns[j], width, out=cell, dtype=np.intp)
            np.add(cell, columns[k], out=cell)
            table = np.bincount(cell, weights, minlength=(n_first + 1) * width).reshape(n_first + 1, width)
            counts[first, starts[k] : starts[k + 1]] += table[:-1, :-1]


def _mirror(counts: AnyArray) -> None:
    """Copy what is above the diagonal below it."""
    for row in range(1, len(counts)):
        counts[row, :row] = counts[:row, row]


class ReferenceEngine(PosteriorEngine):
    r"""Posterior counts by two products with the sparse one-hot matrix H of the codes.

    .. math:: R = \mathrm{softmax}(H \log T + \log \lambda), \qquad S = H^\top \mathrm{diag}(w) R.

    Parameters
    ----------
    codes : array of shape (n, N), uint8 or uint16
        Column n holds 0 to n_bins[n] - 1, or n_bins[n] where a value is missing.
    n_bins : sequence of N ints
    weights : array of shape (n,), optional

    Examples
    --------
    >>> engine = ReferenceEngine(np.array([[0, 1], [1, 2]], dtype=np.uint8), [2, 2])
    >>> tables = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5], [0.5, 0.5]])
    >>> engine.posterior_counts(tables, np.array([0.5, 0.5])).counts.round(2)
    array([[0.9, 0.1],
           [0.1, 0.9],
           [0. , 0. ],
           [0.9, 0.1]])
    """

    def __init__(self, codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None = None) -> None:
        present = codes < np.asarray(n_bins)
        starts = bin_starts(list(n_bins))
        indices = (codes + starts[:-1])[present]
        rows = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        self._one_hot = csr_array((np.ones(len(indices)), indices, rows), shape=(len(codes), int(starts[-1])))
        self._transposed = csr_array(self._one_hot.T)
        self._weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)

    def posterior_counts(self, tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
        """One pass over the rows; see `PosteriorEngine`."""
        with np.errstate(divide="ignore"):  # a component of weight zero has no part in anything
            joint = self._one_hot @ np.log(tables) + np.log(mixing)
        largest = joint.max(axis=1, keepdims=True)
        posterior = np.exp(joint - largest)
        row = posterior.sum(axis=1, keepdims=True)
        posterior *= self._weights[:, None] / row
        log_likelihood = float(self._weights @ (np.log(row) + largest)[:, 0])
        return PosteriorCounts(np.asarray(self._transposed @ posterior), posterior.sum(axis=0), log_likelihood)
