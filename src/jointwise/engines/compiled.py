"""The posterior-count pass compiled by numba: each thread takes a run of rows and fills its own table of sums.

The product over columns uses the factors themselves, without logarithms. Where it becomes small (hundreds of columns)
it is scaled up and the scale is kept. Sums are added run by run, so every repeat gives the same numbers. Other numbers
of threads and the plain engine differ by rounding alone (about 1e-12 of the sums).
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.base import PosteriorCounts, PosteriorEngine, padded_bins

# The product is checked after this many columns, and scaled up if it is smaller than `_SMALL`. A factor is at least
# `LEAST_FACTOR`, so it cannot underflow in between.
_GUARD = 8
_SMALL = 1e-60
LEAST_FACTOR = 1e-30
# Up to this many multiplications (rows x columns x components) one thread is faster than several.
ONE_THREAD = 4_000_000


class CompiledEngine(PosteriorEngine):
    """Posterior counts by compiled loops; see the module.

    Parameters
    ----------
    codes, n_bins, weights
        As those of `reference.pair_counts`.
    n_threads : int, optional
        Largest number of threads of a pass; all of numba's by default. Use one where passes over several tables run
        side by side, which numba's threads do not allow, and where sums must not depend on the machine.
    """

    def __init__(
        self, codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None = None, n_threads: int | None = None
    ) -> None:
        self._n_threads = n_threads
        self._codes = np.ascontiguousarray(codes)
        # without weights, a single one stands for all rows
        self._weights = np.ones(1) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        starts, self._present = padded_bins(n_bins)
        self._n_padded = int(starts[-1])
        self._starts = starts[:-1].astype(np.uint64)  # unsigned: numba tests whether a signed index is negative

    def posterior_counts(self, tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
        """One pass over the rows; see `PosteriorEngine`."""
        padded = np.ones((self._n_padded, len(mixing)))
        padded[self._present] = np.maximum(tables, LEAST_FACTOR)
        n_parts = 1
        if self._codes.size * len(mixing) > ONE_THREAD:
            n_parts = self._n_threads or numba.get_num_threads()
        counts = np.zeros((n_parts, *padded.shape))
        totals, log_likelihoods = np.zeros((n_parts, len(mixing))), np.zeros(n_parts)
        run = _threads if n_parts > 1 else _run
        run(self._codes, self._starts, padded, mixing, self._weights, counts, totals, log_likelihoods)
        return PosteriorCounts(counts.sum(axis=0)[self._present], totals.sum(axis=0), float(log_likelihoods.sum()))


@numba.njit(parallel=True, cache=True)
def _threads(
    codes: AnyArray, starts: AnyArray, tables: AnyArray, mixing: AnyArray, weights: AnyArray,
    counts: AnyArray, totals: AnyArray, log_likelihoods: AnyArray,
) -> None:  # fmt: skip
    """Split the rows into as many runs as there are tables of sums, and take each run in a thread."""
    n, n_parts = len(codes), len(totals)
    for part in numba.prange(n_parts):
        rows = slice(part * n // n_parts, (part + 1) * n // n_parts)
        own = slice(part, part + 1)
        own_weights = weights[rows] if len(weights) > 1 else weights
        _run(codes[rows], starts, tables, mixing, own_weights, counts[own], totals[own], log_likelihoods[own])


@numba.njit(fastmath=True, cache=True, nogil=True)
def _run(
    codes: AnyArray, starts: AnyArray, tables: AnyArray, mixing: AnyArray, weights: AnyArray,
    counts: AnyArray, totals: AnyArray, log_likelihoods: AnyArray,
) -> None:  # fmt: skip
    """Take one run of rows; fill counts (1, bins, F), totals (1, F) and log_likelihoods (1,)."""
    n, n_columns = codes.shape
    n_components = mixing.shape[0]
    each = 1 if len(weights) > 1 else 0  # a single weight stands for all rows
    posterior = np.empty(n_components)
    my_counts, my_totals, log_likelihood = counts[0], totals[0], 0.0
    for i in range(n):
        for r in range(n_components):
            posterior[r] = mixing[r]
        scale = 0.0
        for column in range(n_columns):
            factors = tables[starts[column] + np.uint64(codes[i, column])]
            for r in range(n_components):
                posterior[r] *= factors[r]
            if column % _GUARD == _GUARD - 1:
                largest = posterior.max()
                if largest < _SMALL:
                    scale += np.log(largest)
                    for r in range(n_components):
                        posterior[r] /= largest
        total = 0.0
        for r in range(n_components):
            total += posterior[r]
        weight = weights[i * each]
        log_likelihood += weight * (np.log(total) + scale)
        share = weight / total
        for r in range(n_components):
            posterior[r] *= share
            my_totals[r] += posterior[r]
        for column in range(n_columns):
            sums = my_counts[starts[column] + np.uint64(codes[i, column])]
            for r in range(n_components):
                sums[r] += posterior[r]
    log_likelihoods[0] = log_likelihood
