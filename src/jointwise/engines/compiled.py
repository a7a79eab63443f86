"""The posterior-count pass compiled by numba: rows in threads, tables of sums per thread.

The product over columns runs on the factors themselves, without logarithms; where it grows small (hundreds of
columns) it is scaled up and the scale kept. Sums are taken run by run, so they are the same on every repeat, and
differ from the plain engine's, or between numbers of threads, by rounding alone (about 1e-12 of their size).
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.base import PosteriorCounts, PosteriorEngine, bin_starts

# Columns multiplied before the size of the product is looked at; a factor is at least 1e-30 (see `LEAST_FACTOR`).
_GUARD = 8
_SMALL = 1e-60
LEAST_FACTOR = 1e-30
# Multiplications (rows x columns x components) up to which one thread is done before others would have begun.
ONE_THREAD = 4_000_000


class CompiledEngine(PosteriorEngine):
    """Rows as they are coded; see the module.

    Parameters
    ----------
    codes : array of shape (n, N), uint8 or uint16
        Column n holds 0 to n_bins[n] - 1, or n_bins[n] where a value is missing.
    n_bins : sequence of N ints
    weights : array of shape (n,), optional
    n_threads : int, optional
        The most threads of a pass; as many as numba has by default. One where passes over several tables run side by
        side, for which numba's threads are not made, and where sums should not depend on the machine.
    """

    def __init__(
        self,
        codes: CodeArray,
        n_bins: Sequence[int],
        weights: FloatArray | None = None,
        n_threads: int | None = None,
    ) -> None:
        self._n_threads = n_threads
        self._codes = np.ascontiguousarray(codes)
        # one weight stands for all where there are none
        self._weights = np.ones(1) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        # one more bin per column, for "missing"
        starts = bin_starts([bins + 1 for bins in n_bins])
        self._present = np.delete(np.arange(starts[-1]), starts[1:] - 1)
        self._n_padded = int(starts[-1])
        self._starts = starts[:-1].astype(np.uint64)  # unsigned: a signed index would be tested for being negative

    def posterior_counts(self, tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
        """One pass over the rows; see `PosteriorEngine`."""
        padded = np.ones((self._n_padded, len(mixing)))
        padded[self._present] = np.maximum(tables, LEAST_FACTOR)
        n_parts = 1
        if self._codes.size * len(mixing) > ONE_THREAD:
            n_parts = self._n_threads or numba.get_num_threads()
        counts = np.zeros((n_parts, *padded.shape))
        totals, log_likelihoods = np.zeros((n_parts, len(mixing))), np.zeros(n_parts)
        _pass = _threads if n_parts > 1 else _run
        _pass(self._codes, self._starts, padded, mixing, self._weights, counts, totals, log_likelihoods)
        return PosteriorCounts(counts.sum(axis=0)[self._present], totals.sum(axis=0), float(log_likelihoods.sum()))


@numba.njit(parallel=True, cache=True)
def _threads(
    codes: AnyArray,
    starts: AnyArray,
    tables: AnyArray,
    mixing: AnyArray,
    weights: AnyArray,
    counts: AnyArray,
    totals: AnyArray,
    log_likelihoods: AnyArray,
) -> None:
    """The pass in as many runs of rows as there are sums to fill, each in a thread."""
    n, n_parts = len(codes), len(totals)
    for part in numba.prange(n_parts):
        rows = slice(part * n // n_parts, (part + 1) * n // n_parts)
        own = slice(part, part + 1)
        own_weights = weights[rows] if len(weights) > 1 else weights
        _run(codes[rows], starts, tables, mixing, own_weights, counts[own], totals[own], log_likelihoods[own])


@numba.njit(fastmath=True, cache=True, nogil=True)
def _run(
    codes: AnyArray,
    starts: AnyArray,
    tables: AnyArray,
    mixing: AnyArray,
    weights: AnyArray,
    counts: AnyArray,
    totals: AnyArray,
    log_likelihoods: AnyArray,
) -> None:
    """One run of rows; fills counts (1, bins, F), totals (1, F) and log_likelihoods (1,)."""
    n, n_columns = codes.shape
    rank = mixing.shape[0]
    each = 1 if len(weights) > 1 else 0  # a single weight is that of all rows
    posterior = np.empty(rank)
    my_counts, my_totals, log_likelihood = counts[0], totals[0], 0.0
    for i in range(n):
        for r in range(rank):
            posterior[r] = mixing[r]
        scale = 0.0
        for column in range(n_columns):
            factors = tables[starts[column] + np.uint64(codes[i, column])]
            for r in range(rank):
                posterior[r] *= factors[r]
            if column % _GUARD == _GUARD - 1:
                largest = posterior.max()
                if largest < _SMALL:
                    scale += np.log(largest)
                    for r in range(rank):
                        posterior[r] /= largest
        total = 0.0
        for r in range(rank):
            total += posterior[r]
        weight = weights[i * each]
        log_likelihood += weight * (np.log(total) + scale)
        share = weight / total
        for r in range(rank):
            posterior[r] *= share
            my_totals[r] += posterior[r]
        for column in range(n_columns):
            sums = my_counts[starts[column] + np.uint64(codes[i, column])]
            for r in range(rank):
                sums[r] += posterior[r]
    log_likelihoods[0] = log_likelihood
