"""The pass over a Gaussian block compiled by numba: rows with the same cells observed run together, on all cores.

Rows are sorted once by their pattern of observed cells, within windows, so that a mapped file is still read from start
to end. A run of rows with one pattern shares the Cholesky factors of all components, which the pass computes when it
meets the run. No posterior is written to memory beyond a batch of rows.

The rows are cut into parts by their number alone. Each part fills its own sums, which are added in order. So the result
is the same, bit for bit, on every repeat and for every number of threads.
"""

from __future__ import annotations

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.base import bin_starts
from jointwise.engines.blocks.base import LEAST_LOG, LOG_TAU, BlockComponents, BlockEngine, BlockLayout, BlockSums

# Rows sorted together: their codes stay in the cache of a processor.
WINDOW = 1 << 18
# Rows whose posteriors are computed together: a few vectors of them stay in the fastest cache.
BATCH = 64
# Fewest rows of a part, most parts, and most bytes of all their sums.
LEAST_PART, MOST_PARTS, PARTS_BYTES = 4096, 64, 512 * 2**20
# Smaller posteriors count as zero: they are less than the rounding of the others, and most are.
LEAST_POSTERIOR = 1e-16
# Up to this many multiplications (rows x components x columns squared) one thread is faster than several.
ONE_THREAD = 2_000_000

_FAST = {"reassoc", "contract", "arcp", "nsz"}  # infinite logarithms stay what they are


class CompiledBlockEngine(BlockEngine):
    """Sums of a pass by compiled loops; see the module.

    Parameters
    ----------
    codes, layout, weights
        As those of `ReferenceBlockEngine`; codes may be a mapped file.
    n_threads : int, optional
        Give one where passes over several tables run side by side, which numba's threads do not allow.
    """

    def __init__(
        self, codes: CodeArray, layout: BlockLayout, weights: FloatArray | None = None, n_threads: int | None = None
    ) -> None:
        self._layout = layout
        self._n_threads = n_threads
        self._codes = _read_only(codes)
        # without weights, a single one stands for all rows
        self._weights = _read_only(np.ones(1) if weights is None else np.asarray(weights, dtype=np.float64))
        self._window = WINDOW
        self._order = _read_only(_sorted(codes, layout))
        self._columns = np.array(layout.columns, dtype=np.int64)
        self._n_intervals = np.array([len(w) for w in layout.values], dtype=np.int64)
        self._n_bins = np.array([layout.n_bins[column] for column in layout.columns], dtype=np.int64)
        self._others = np.array(layout.others, dtype=np.int64)
        self._values = np.concatenate([*layout.values, np.empty(0)])
        self._value_starts = bin_starts([len(w) for w in layout.values])
        # the tables of product columns, each with one more bin for "missing", and then those of spikes, "missing" too
        sizes = [bins + 1 for bins in layout.table_bins] + [n + 2 for n in layout.n_spikes]
        self._table_starts = bin_starts(sizes)

    def sums(self, components: BlockComponents) -> BlockSums:
        """One pass over the rows; see `BlockEngine`."""
        components.check(self._layout)
        F, d = components.means.shape
        tables = np.zeros((self._table_starts[-1], F))
        for start, table in zip(self._table_starts[:-1], components.tables + components.spikes, strict=True):
            tables[start : start + len(table)] = np.maximum(table, LEAST_LOG)
        n_parts = self._n_parts(tables.nbytes + 8 * F * (1 + d + d * d))
        totals, likelihoods = np.zeros((n_parts, F)), np.zeros(n_parts)
        firsts, seconds = np.zeros((n_parts, F, d)), np.zeros((n_parts, F, d, d))
        counts = np.zeros((n_parts, *tables.shape))
        work = len(self._codes) * F * (d + 1) ** 2
        run = _one_by_one if self._n_threads == 1 or n_parts == 1 or work < ONE_THREAD else _side_by_side
        run(
            self._codes, self._order, self._window, self._weights, self._columns, self._n_intervals, self._n_bins, self._others,
            self._values, self._value_starts, self._table_starts, components.log_weights,
            np.ascontiguousarray(components.means.T), np.ascontiguousarray(components.covariances.transpose(1, 2, 0)),
            tables, totals, firsts, seconds, counts, likelihoods,
        )  # fmt: skip
        found = counts.sum(axis=0)
        each = [
            found[start : start + len(table)]
            for start, table in zip(self._table_starts[:-1], components.tables + components.spikes, strict=True)
        ]
        n_tables = len(components.tables)
        return BlockSums(
            totals.sum(axis=0),
            firsts.sum(axis=0),
            seconds.sum(axis=0),
            tuple(each[:n_tables]),
            tuple(each[n_tables:]),
            float(likelihoods.sum()),
        )

    def _n_parts(self, n_bytes: int) -> int:
        """Return the number of parts, each with sums of this many bytes; it does not depend on the machine."""
        most = min(MOST_PARTS, PARTS_BYTES // max(n_bytes, 1))
        return int(np.clip(len(self._codes) // LEAST_PART, 1, max(most, 1)))


def _read_only(array: AnyArray) -> AnyArray:
    """Return a contiguous read-only view, whatever the array; numba compiles anew for each kind of array."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _sorted(codes: CodeArray, layout: BlockLayout) -> AnyArray:
    """Return the rows of each window, counted from its start, sorted by pattern; empty if all rows are complete."""
    orders = [_sorted_window(codes[start : start + WINDOW], layout) for start in range(0, len(codes), WINDOW)]
    if all(order is None for order in orders):
        return np.empty(0, dtype=np.uint32)
    lengths = [min(WINDOW, len(codes) - start) for start in range(0, len(codes), WINDOW)]
    whole = [
        np.arange(n, dtype=np.uint32) if order is None else order for n, order in zip(lengths, orders, strict=True)
    ]
    return np.concatenate(whole)


def _sorted_window(codes: CodeArray, layout: BlockLayout) -> AnyArray | None:
    unseen = np.zeros((len(codes), layout.d), dtype=bool)
    for j, (column, w) in enumerate(zip(layout.columns, layout.values, strict=True)):
        np.greater_equal(codes[:, column], len(w), out=unseen[:, j])
    if not unseen.any():
        return None
    bits = np.packbits(unseen, axis=1)
    words = np.zeros((len(codes), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : bits.shape[1]] = bits
    return np.lexsort(words.view(np.uint64).T).astype(np.uint32)


@numba.njit(parallel=True, cache=True)
def _side_by_side(
    codes: AnyArray, order: AnyArray, window: int, weights: AnyArray, columns: AnyArray, n_intervals: AnyArray, n_bins: AnyArray,
    others: AnyArray, values: AnyArray, value_starts: AnyArray, table_starts: AnyArray, log_weights: AnyArray,
    means: AnyArray, covariances: AnyArray, tables: AnyArray, totals: AnyArray, firsts: AnyArray, seconds: AnyArray,
    counts: AnyArray, likelihoods: AnyArray,
) -> None:  # fmt: skip
    """Take each part in a thread."""
    n, n_parts = len(codes), len(totals)
    for part in numba.prange(n_parts):
        likelihoods[part] = _part(
            codes, order, window, weights, columns, n_intervals, n_bins, others, values, value_starts, table_starts,
            log_weights, means, covariances, tables, part * n // n_parts, (part + 1) * n // n_parts,
            totals[part], firsts[part], seconds[part], counts[part],
        )  # fmt: skip


@numba.njit(cache=True, nogil=True)
def _one_by_one(
    codes: AnyArray, order: AnyArray, window: int, weights: AnyArray, columns: AnyArray, n_intervals: AnyArray, n_bins: AnyArray,
    others: AnyArray, values: AnyArray, value_starts: AnyArray, table_starts: AnyArray, log_weights: AnyArray,
    means: AnyArray, covariances: AnyArray, tables: AnyArray, totals: AnyArray, firsts: AnyArray, seconds: AnyArray,
    counts: AnyArray, likelihoods: AnyArray,
) -> None:  # fmt: skip
    """Take the parts one after the other."""
    n, n_parts = len(codes), len(totals)
    for part in range(n_parts):
        likelihoods[part] = _part(
            codes, order, window, weights, columns, n_intervals, n_bins, others, values, value_starts, table_starts,
            log_weights, means, covariances, tables, part * n // n_parts, (part + 1) * n // n_parts,
            totals[part], firsts[part], seconds[part], counts[part],
        )  # fmt: skip


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _part(
    codes: AnyArray, order: AnyArray, window: int, weights: AnyArray, columns: AnyArray, n_intervals: AnyArray, n_bins: AnyArray,
    others: AnyArray, values: AnyArray, value_starts: AnyArray, table_starts: AnyArray, log_weights: AnyArray,
    means: AnyArray, covariances: AnyArray, tables: AnyArray, begin: int, end: int,
    totals: AnyArray, firsts: AnyArray, seconds: AnyArray, counts: AnyArray,
) -> float:  # fmt: skip
    """Take the rows from `begin` to `end` run by run; fill the part's sums and return its log-likelihood."""
    d, F = means.shape
    n_others = len(others)
    observed, unseen = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    factors, inverse_diagonal = np.empty((d, d, F)), np.empty((d, F))
    log_norms = np.empty(F)
    run_totals, run_firsts, run_seconds = np.empty(F), np.empty((F, d)), np.empty((F, d, d))
    rows = np.empty(BATCH, dtype=np.int64)
    x, centred, z = np.empty((d, BATCH)), np.empty((d, BATCH)), np.empty((d, BATCH))
    scaled, p = np.empty(BATCH), np.empty(BATCH)
    logs = np.empty((BATCH, F))
    places = np.empty((BATCH, n_others + d), dtype=np.int64)
    completing = np.empty((3, d, d))
    each = 1 if len(weights) > 1 else 0
    likelihood = 0.0
    i = begin
    while i < end:
        # the pattern of the run that begins at row i
        row = _row(order, window, i)
        n_seen = n_unseen = 0
        for j in range(d):
            if codes[row, columns[j]] < n_intervals[j]:
                observed[n_seen] = j
                n_seen += 1
            else:
                unseen[n_unseen] = j
                n_unseen += 1
        o, m = observed[:n_seen], unseen[:n_unseen]
        _factorise(covariances, o, factors, inverse_diagonal)
        for r in range(F):
            log_norms[r] = log_weights[r] - 0.5 * n_seen * LOG_TAU
        for jj in range(n_seen):
            spike = table_starts[n_others + o[jj]]
            for r in range(F):
                log_norms[r] += np.log(inverse_diagonal[jj, r]) + tables[spike, r]
        run_totals[:] = 0.0
        run_firsts[:] = 0.0
        run_seconds[:] = 0.0
        running = True
        while running:
            # a batch: rows of the same pattern
            n_rows = 0
            while n_rows < BATCH and i < end:
                row = _row(order, window, i)
                if not _has_pattern(codes, row, columns, n_intervals, o, m):
                    running = False
                    break
                rows[n_rows] = row
                n_rows += 1
                i += 1
            if i >= end:
                running = False
            if n_rows == 0:
                break
            # values, and places in the tables
            for jj in range(n_seen):
                column, start, own = columns[o[jj]], value_starts[o[jj]], x[jj]
                for b in range(n_rows):
                    own[b] = values[start + codes[rows[b], column]]
            n_places = 0
            for k in range(n_others):
                for b in range(n_rows):
                    places[b, n_places] = table_starts[k] + codes[rows[b], others[k]]
                n_places += 1
            for jj in range(n_unseen):
                j = m[jj]
                if n_bins[j] > n_intervals[j]:
                    start = table_starts[n_others + j] + 1 - n_intervals[j]
                    for b in range(n_rows):
                        places[b, n_places] = start + codes[rows[b], columns[j]]
                    n_places += 1
            # logarithms of the components' shares
            for b in range(n_rows):
                for r in range(F):
                    logs[b, r] = log_norms[r]
                for k in range(n_places):
                    table = tables[places[b, k]]
                    for r in range(F):
                        logs[b, r] += table[r]
            for r in range(F):
                _centre(x, means, o, r, n_rows, centred)
                _squares(factors, inverse_diagonal, n_seen, r, n_rows, centred, z, scaled)
                for b in range(n_rows):
                    logs[b, r] -= 0.5 * scaled[b]
            # posteriors, and the counts of bins
            for b in range(n_rows):
                weight = weights[rows[b] * each]
                likelihood += weight * _to_posteriors(logs[b], weight)
                for k in range(n_places):
                    sums = counts[places[b, k]]
                    for r in range(F):
                        sums[r] += logs[b, r]
            # moments, from the rows that matter to each component
            for r in range(F):
                n_kept = 0
                for b in range(n_rows):
                    if logs[b, r] > 0.0:
                        p[n_kept] = logs[b, r]
                        for jj in range(n_seen):
                            centred[jj, n_kept] = x[jj, b] - means[o[jj], r]
                        n_kept += 1
                if n_kept:
                    _add_moments(p, centred, n_seen, n_kept, z, run_totals, run_firsts, run_seconds, r)
        for r in range(F):
            if run_totals[r] > 0.0:
                for jj in range(n_seen):
                    counts[table_starts[n_others + o[jj]], r] += run_totals[r]
                _complete(
                    covariances, factors, inverse_diagonal, o, m, r, run_totals[r], run_firsts[r], run_seconds[r],
                    completing, totals, firsts, seconds,
                )  # fmt: skip
    return likelihood


@numba.njit(cache=True, nogil=True)
def _row(order: AnyArray, window: int, i: int) -> int:
    """Return the row at a position of the sorted rows."""
    return i - i % window + order[i] if len(order) else i


@numba.njit(cache=True, nogil=True)
def _has_pattern(codes: AnyArray, row: int, columns: AnyArray, n_intervals: AnyArray, o: AnyArray, m: AnyArray) -> bool:
    for j in o:
        if codes[row, columns[j]] >= n_intervals[j]:
            return False
    for j in m:  # noqa: SIM110  # numba knows no generators
        if codes[row, columns[j]] < n_intervals[j]:
            return False
    return True


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _factorise(covariances: AnyArray, o: AnyArray, factors: AnyArray, inverse_diagonal: AnyArray) -> None:
    """Write the Cholesky factors of the observed cells' covariances, all components side by side."""
    F = covariances.shape[2]
    for j in range(len(o)):
        for k in range(j + 1):
            own = factors[j, k]
            for r in range(F):
                own[r] = covariances[o[j], o[k], r]
            for l in range(k):
                a, b = factors[j, l], factors[k, l]
                for r in range(F):
                    own[r] -= a[r] * b[r]
            if k < j:
                for r in range(F):
                    own[r] *= inverse_diagonal[k, r]
            else:
                for r in range(F):
                    # rounding may take all of a variance that the other cells explain
                    own[r] = np.sqrt(max(own[r], 1e-16 * covariances[o[j], o[j], r]))
                    inverse_diagonal[j, r] = 1.0 / own[r]


@numba.njit(cache=True, nogil=True)
def _centre(x: AnyArray, means: AnyArray, o: AnyArray, r: int, n_rows: int, centred: AnyArray) -> None:
    for jj in range(len(o)):
        mean, own, source = means[o[jj], r], centred[jj], x[jj]
        for b in range(n_rows):
            own[b] = source[b] - mean


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _squares(
    factors: AnyArray, inverse_diagonal: AnyArray, n_seen: int, r: int, n_rows: int, centred: AnyArray, z: AnyArray,
    squares: AnyArray,
) -> None:  # fmt: skip
    """Write the squared Mahalanobis distance of each row of a batch: forward substitution, all rows side by side."""
    for b in range(n_rows):
        squares[b] = 0.0
    for j in range(n_seen):
        own, source = z[j], centred[j]
        for b in range(n_rows):
            own[b] = source[b]
        k = 0
        while k + 4 <= j:
            f0, f1, f2, f3 = factors[j, k, r], factors[j, k + 1, r], factors[j, k + 2, r], factors[j, k + 3, r]
            z0, z1, z2, z3 = z[k], z[k + 1], z[k + 2], z[k + 3]
            for b in range(n_rows):
                own[b] -= f0 * z0[b] + f1 * z1[b] + f2 * z2[b] + f3 * z3[b]
            k += 4
        while k < j:
            f0, z0 = factors[j, k, r], z[k]
            for b in range(n_rows):
                own[b] -= f0 * z0[b]
            k += 1
        scale = inverse_diagonal[j, r]
        for b in range(n_rows):
            own[b] *= scale
            squares[b] += own[b] * own[b]


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _to_posteriors(logs: AnyArray, weight: float) -> float:
    """Turn logarithms into posteriors times a weight, in place; return the log of their sum."""
    top = -np.inf
    for r in range(len(logs)):
        top = max(top, logs[r])
    total = 0.0
    for r in range(len(logs)):
        logs[r] = np.exp(logs[r] - top)
        total += logs[r]
    least, share = LEAST_POSTERIOR * total, weight / total
    for r in range(len(logs)):
        logs[r] = logs[r] * share if logs[r] > least else 0.0
    return top + np.log(total)


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _add_moments(
    p: AnyArray, centred: AnyArray, n_seen: int, n_rows: int, weighted: AnyArray,
    totals: AnyArray, firsts: AnyArray, seconds: AnyArray, r: int,
) -> None:  # fmt: skip
    """Add the sums of p, p c and the lower triangle of p c c' over a batch."""
    total = 0.0
    for b in range(n_rows):
        total += p[b]
    totals[r] += total
    for j in range(n_seen):
        own, source = weighted[j], centred[j]
        first = 0.0
        for b in range(n_rows):
            own[b] = p[b] * source[b]
            first += own[b]
        firsts[r, j] += first
        k = 0
        while k + 4 <= j + 1:
            c0, c1, c2, c3 = centred[k], centred[k + 1], centred[k + 2], centred[k + 3]
            s0 = s1 = s2 = s3 = 0.0
            for b in range(n_rows):
                s0 += own[b] * c0[b]
                s1 += own[b] * c1[b]
                s2 += own[b] * c2[b]
                s3 += own[b] * c3[b]
            seconds[r, j, k] += s0
            seconds[r, j, k + 1] += s1
            seconds[r, j, k + 2] += s2
            seconds[r, j, k + 3] += s3
            k += 4
        while k <= j:
            c0 = centred[k]
            s0 = 0.0
            for b in range(n_rows):
                s0 += own[b] * c0[b]
            seconds[r, j, k] += s0
            k += 1


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _complete(
    covariances: AnyArray, factors: AnyArray, inverse_diagonal: AnyArray, o: AnyArray, m: AnyArray, r: int,
    total: float, first: AnyArray, second: AnyArray, work: AnyArray,
    totals: AnyArray, firsts: AnyArray, seconds: AnyArray,
) -> None:  # fmt: skip
    """Add the sums of a run to those of the part, with those of its unseen cells from the regression on the others."""
    n_seen, n_unseen = len(o), len(m)
    half, regression, cross = work[0], work[1], work[2]
    totals[r] += total
    for j in range(n_seen):
        firsts[r, o[j]] += first[j]
        for k in range(j + 1):
            if k < j:
                second[k, j] = second[j, k]
                seconds[r, o[k], o[j]] += second[j, k]
            seconds[r, o[j], o[k]] += second[j, k]
    for a in range(n_unseen):
        # half: L^-1 S_oa; regression: S_oo^-1 S_oa
        for j in range(n_seen):
            value = covariances[o[j], m[a], r]
            for k in range(j):
                value -= factors[j, k, r] * half[a, k]
            half[a, j] = value * inverse_diagonal[j, r]
        for j in range(n_seen - 1, -1, -1):
            value = half[a, j]
            for k in range(j + 1, n_seen):
                value -= factors[k, j, r] * regression[a, k]
            regression[a, j] = value * inverse_diagonal[j, r]
        for j in range(n_seen):
            firsts[r, m[a]] += regression[a, j] * first[j]
            value = 0.0
            for k in range(n_seen):
                value += regression[a, k] * second[k, j]
            cross[a, j] = value
            seconds[r, m[a], o[j]] += value
            seconds[r, o[j], m[a]] += value
        for b in range(a + 1):
            value = total * covariances[m[a], m[b], r]
            for j in range(n_seen):
                value += cross[a, j] * regression[b, j] - total * half[a, j] * half[b, j]
            seconds[r, m[a], m[b]] += value
            if b < a:
                seconds[r, m[b], m[a]] += value
