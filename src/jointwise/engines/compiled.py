"""The posterior-count pass compiled by numba: each thread takes a run of rows and fills its own table of sums.

The product over columns uses the factors themselves, without logarithms. Where it becomes very small or large (hundreds
of columns) it is scaled to one and the scale is kept. Sums are added run by run, so every repeat gives the same
numbers. Other numbers of threads and the plain engine differ by rounding alone (about 1e-12 of the sums).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numba
import numpy as np

from jointwise._typing import AnyArray, BoolArray, CodeArray, FloatArray, IntArray
from jointwise.engines.base import LEAST_FACTOR, PosteriorCounts, PosteriorEngine, bin_starts
from jointwise.engines.compiled_bundles import Bundles
from jointwise.engines.compiled_parts import locked
from jointwise.engines.threads import in_threads

# The product is checked at least after this many columns, and scaled to one if it is not between these. A factor is at
# least `LEAST_FACTOR`, so it cannot underflow in between. Factors above one are large where a component holds few rows.
_GUARD = 8
_SMALL, _LARGE = 1e-60, 1e60
# Rows taken at a time: their posteriors and the tables of one column stay in the processor's nearest cache.
_BLOCK = 256
# Up to this many multiplications (rows x columns x components) one thread is faster than several.
ONE_THREAD = 4_000_000


def is_compiled() -> bool:
    """Return whether passes were compiled before on this machine, so that they load within a second."""
    return any(Path(_run.stats.cache_path or "").glob("compiled._run-*.nbi"))


class CompiledEngine(PosteriorEngine):
    """Posterior counts by compiled loops; see the module.

    Parameters
    ----------
    codes, n_bins, weights
        As those of `reference.pair_counts`.
    n_threads : int, optional
        Largest number of threads of a pass; as many as numba's by default. Use one where passes over several tables
        run side by side, and where sums must not depend on the machine.
    """

    def __init__(
        self, codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None = None, n_threads: int | None = None
    ) -> None:
        self._n_threads = n_threads
        bundles = Bundles.of(codes, n_bins)
        self._bundles = bundles if 2 * len(bundles) <= len(n_bins) else None
        sizes = np.ones(len(n_bins), dtype=np.int64)
        if self._bundles is not None:
            codes, n_bins, sizes = bundles.codes(codes), bundles.n_bins.tolist(), bundles.sizes
        self._checks = locked(_checks(sizes))
        self._codes = locked(codes)
        # without weights, a single one stands for all rows
        self._weights = locked(np.ones(1) if weights is None else np.asarray(weights, dtype=np.float64))
        # unsigned: numba tests whether a signed index is negative
        self._starts = locked(bin_starts(n_bins).astype(np.uint64))
        self._n_bins = locked(np.asarray(n_bins, dtype=np.uint64))

    def posterior_counts(self, tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
        """One pass over the rows; see `PosteriorEngine`."""
        if tables.min(initial=1.0) < LEAST_FACTOR:
            tables = np.maximum(tables, LEAST_FACTOR)
        n_bins = len(tables)
        tables = locked(tables if self._bundles is None else self._bundles.tables(tables))
        mixing = locked(mixing)
        n, n_parts = len(self._codes), 1
        if self._codes.size * len(mixing) > ONE_THREAD:
            n_parts = self._n_threads or numba.get_num_threads()
        counts = np.zeros((n_parts, *tables.shape))
        totals = np.zeros((n_parts, len(mixing)))

        def run(part: int) -> float:
            rows = slice(part * n // n_parts, (part + 1) * n // n_parts)
            weights = self._weights[rows] if len(self._weights) > 1 else self._weights
            log_likelihood: float = _run(
                self._codes[rows], self._n_bins, self._starts, self._checks, tables, mixing, weights, counts[part],
                totals[part],
            )  # fmt: skip
            return log_likelihood

        log_likelihoods = in_threads(run, n_parts, n_parts)
        found = counts[0] if n_parts == 1 else counts.sum(axis=0)
        if self._bundles is not None:
            found = self._bundles.counts(found, n_bins)
        return PosteriorCounts(found, totals.sum(axis=0), float(np.sum(log_likelihoods)))


def _checks(sizes: IntArray) -> BoolArray:
    """Return after which bundles, of these numbers of columns, the product is checked: before `_GUARD` more columns."""
    checked, since = np.zeros(len(sizes), dtype=bool), 0
    for bundle, following in enumerate([*sizes.tolist()[1:], _GUARD]):
        since += int(sizes[bundle])
        checked[bundle] = since + following > _GUARD
        since = 0 if checked[bundle] else since
    return checked


@numba.njit(fastmath=True, cache=True, nogil=True)
def _run(
    codes: AnyArray, n_bins: AnyArray, starts: AnyArray, checks: AnyArray, tables: AnyArray, mixing: AnyArray,
    weights: AnyArray, counts: AnyArray, totals: AnyArray,
) -> float:  # fmt: skip
    """Take one run of rows; add to counts (bins, F) and totals (F,), return the log-likelihood."""
    n, n_columns = codes.shape
    n_components = mixing.shape[0]
    each = 1 if len(weights) > 1 else 0  # a single weight stands for all rows
    n_block = max(min(_BLOCK, n), 1)
    posterior, scale = np.empty((n_block, n_components)), np.empty(n_block)
    own = np.empty((n_columns, n_block), dtype=codes.dtype)
    log_likelihood = 0.0
    for first in range(0, n, n_block):
        n_here = min(n_block, n - first)
        for i in range(n_here):
            scale[i] = 0.0
            for r in range(n_components):
                posterior[i, r] = mixing[r]
            for column in range(n_columns):
                own[column, i] = codes[first + i, column]
        column = 0
        while column < n_columns:
            # two columns at a time, unless the product is to be checked between them
            both = column + 1 < n_columns and not checks[column]
            last = column + 1 if both else column
            start, end, last_start, last_end = starts[column], n_bins[column], starts[last], n_bins[last]
            for i in range(n_here):
                code, last_code = np.uint64(own[column, i]), np.uint64(own[last, i])
                if both and code < end and last_code < last_end:
                    for r in range(n_components):  # no view of a row: counting references to it would take longer
                        posterior[i, r] *= tables[start + code, r] * tables[last_start + last_code, r]
                elif code < end:
                    for r in range(n_components):
                        posterior[i, r] *= tables[start + code, r]
                elif both and last_code < last_end:
                    for r in range(n_components):
                        posterior[i, r] *= tables[last_start + last_code, r]
            column = last + 1
            if checks[last]:
                for i in range(n_here):
                    largest = posterior[i, 0]
                    for r in range(1, n_components):
                        largest = max(largest, posterior[i, r])
                    if largest < _SMALL or largest > _LARGE:
                        scale[i] += np.log(largest)
                        for r in range(n_components):
                            posterior[i, r] /= largest
        for i in range(n_here):
            total = 0.0
            for r in range(n_components):
                total += posterior[i, r]
            weight = weights[(first + i) * each]
            log_likelihood += weight * (np.log(total) + scale[i])
            share = weight / total
            for r in range(n_components):
                posterior[i, r] *= share
                totals[r] += posterior[i, r]
        for column in range(n_columns):
            start, end = starts[column], n_bins[column]
            for i in range(n_here):
                code = np.uint64(own[column, i])
                if code < end:
                    for r in range(n_components):
                        counts[start + code, r] += posterior[i, r]
    return log_likelihood
