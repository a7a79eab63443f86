"""Counts of coded rows in plain numpy and SciPy: subsets of columns by bincount, posteriors by two sparse products."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from math import prod

import numpy as np
from scipy.sparse import csr_array

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.base import PosteriorCounts, PosteriorEngine, bin_starts

Subset = tuple[int, ...]
# Rows are taken in blocks that stay in the cache. A block must also be long compared with the largest table, or
# clearing and adding tables costs more than counting.
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
        Weights of the rows; one each by default.

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
    starts = bin_starts(n_bins)
    counts = np.zeros((starts[-1], starts[-1]), dtype=np.int64 if weights is None else np.float64)
    blocks = [slice(a, b) for a, b in pairwise(starts.tolist())]
    tables: dict[Subset, AnyArray] = {(n,): np.einsum("ii->i", counts[b, b]) for n, b in enumerate(blocks)}
    tables |= {(j, k): counts[blocks[j], blocks[k]] for j, k in combinations(range(len(blocks)), 2)}
    _add_rows(tables, codes, n_bins, weights)
    mirror(counts)
    return counts


def subset_counts(
    codes: CodeArray, n_bins: Sequence[int], subsets: Iterable[Subset], weights: FloatArray | None = None
) -> dict[Subset, AnyArray]:
    r"""Count how often the codes of each given subset of columns occur together.

    .. math:: C_S[a, b, \dots] = \sum_i w_i \, [x_{ij} = a] \, [x_{ik} = b] \cdots, \qquad S = (j, k, \dots).

    Parameters
    ----------
    codes, n_bins, weights
        As those of `pair_counts`.
    subsets : iterable of tuples of ints
        Columns of each table, such as (0, 3, 4) for a triple.

    Returns
    -------
    counts : dict from each subset to an array of shape (I_j, I_k, ...)
        Counts over the rows in which none of the subset's columns is missing. int64, or float64 with weights.

    Examples
    --------
    >>> codes = np.array([[0, 1, 0], [1, 1, 0], [0, 2, 0]], dtype=np.uint8)
    >>> subset_counts(codes, [2, 2, 1], [(0,), (0, 1, 2)])
    {(0,): array([2, 1]), (0, 1, 2): array([[[0],
            [1]],
           [[0],
            [1]]])}
    """
    dtype = np.int64 if weights is None else np.float64
    tables: dict[Subset, AnyArray] = {s: np.zeros([n_bins[n] for n in s], dtype) for s in subsets}
    _add_rows(tables, codes, n_bins, weights)
    return tables


def _add_rows(
    tables: Mapping[Subset, AnyArray], codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None
) -> None:
    """Add the counts of rows to the tables of subsets, block by block: the one place where rows are counted."""
    largest = max((table.size for table in tables.values()), default=0)
    n_block = int(np.clip(2 * largest, SHORTEST_BLOCK, LONGEST_BLOCK))
    for start in range(0, len(codes), n_block):
        rows = slice(start, start + n_block)
        _add_block(tables, codes[rows], n_bins, None if weights is None else weights[rows])


def _add_block(
    tables: Mapping[Subset, AnyArray], codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None
) -> None:
    columns = np.ascontiguousarray(codes.T)
    buffer = np.empty(len(codes), dtype=np.intp)
    for subset in tables:
        # the bins of all columns, with one more for "missing", as one number; "missing" is cut off afterwards
        cell: AnyArray = columns[subset[0]]
        widths = [n_bins[n] + 1 for n in subset]
        for n, width in zip(subset[1:], widths[1:], strict=True):
            np.multiply(cell, width, out=buffer, dtype=np.intp)
            cell = np.add(buffer, columns[n], out=buffer)
        counted = np.bincount(cell, weights, minlength=prod(widths)).reshape(widths)
        tables[subset][...] += counted[(slice(-1),) * len(subset)]


def mirror(counts: AnyArray) -> None:
    """Copy the part above the diagonal below it."""
    for row in range(1, len(counts)):
        counts[row, :row] = counts[:row, row]


class ReferenceEngine(PosteriorEngine):
    r"""Posterior counts by two products with the sparse one-hot matrix H of the codes.

    .. math:: R = \mathrm{softmax}(H \log T + \log \lambda), \qquad S = H^\top \mathrm{diag}(w) R.

    Parameters
    ----------
    codes, n_bins, weights
        As those of `pair_counts`.

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
        starts = bin_starts(n_bins)
        indices = (codes + starts[:-1])[present]
        rows = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        self._one_hot = csr_array((np.ones(len(indices)), indices, rows), shape=(len(codes), int(starts[-1])))
        self._transposed = csr_array(self._one_hot.T)
        self._weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)

    def posterior_counts(self, tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
        """One pass over the rows; see `PosteriorEngine`."""
        with np.errstate(divide="ignore"):  # a component of weight zero has posterior zero
            joint = self._one_hot @ np.log(tables) + np.log(mixing)
        largest = joint.max(axis=1, keepdims=True)
        posterior = np.exp(joint - largest)
        row = posterior.sum(axis=1, keepdims=True)
        posterior *= self._weights[:, None] / row
        log_likelihood = float(self._weights @ (np.log(row) + largest)[:, 0])
        return PosteriorCounts(np.asarray(self._transposed @ posterior), posterior.sum(axis=0), log_likelihood)
