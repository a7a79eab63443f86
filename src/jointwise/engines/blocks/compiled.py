"""The pass over a Gaussian block compiled by numba: rows with the same cells observed run together, on all cores.

Rows are sorted once by their pattern of observed cells, within windows, so that a mapped file is still read from start
to end. A run of rows with one pattern shares the Cholesky factors of all components, which the pass computes when it
meets the run. The rows of a run are taken in batches; no posterior is kept beyond its batch.

Parts of the rows run in threads; see `compiled_parts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.base import bin_starts
from jointwise.engines.blocks.base import LOG_TAU, BlockComponents, BlockLayout, BlockSums, ScoringBlockEngine
from jointwise.engines.compiled_parts import FAST, LEAST_POSTERIOR, count_parts, locked
from jointwise.engines.threads import in_threads

# Rows sorted together: their codes stay in the cache of a processor, and their order takes two bytes a row.
WINDOW = 1 << 16
# Rows whose posteriors are computed together: a few vectors of them stay in the fastest cache.
BATCH = 64
# Components that are this far below the likeliest of a row have none of it: their exponentials need not be taken.
LEAST_AWAY = float(np.log(LEAST_POSTERIOR))
# Covariances of up to this many columns are factorised side by side.
MOST_TOGETHER = 24
# Parts have at least a row for this many places in the tables: to clear and add up their sums takes as long otherwise.
PLACES_PER_ROW = 4
# Up to this many multiplications (rows x components x columns squared) one thread is faster than several.
ONE_THREAD = 2_000_000


class _Rows(NamedTuple):
    """The rows as the compiled loops see them."""

    codes: AnyArray  # (n, N)
    order: AnyArray  # (n,): rows of each window, sorted by pattern; empty if all rows are complete
    window: int
    weights: AnyArray  # (n,), or a single one for all rows
    columns: AnyArray  # (d,): block columns
    n_intervals: AnyArray  # (d,)
    n_spikes: AnyArray  # (d,)
    others: AnyArray  # product columns
    values: AnyArray  # values of the intervals of all block columns, end to end
    value_starts: AnyArray  # (d + 1,)
    table_starts: AnyArray  # where the tables of product columns begin, then those of spikes


class _Mixture(NamedTuple):
    """The components, the last dimension of each array."""

    log_weights: AnyArray  # (F,)
    means: AnyArray  # (d, F)
    covariances: AnyArray  # (d, d, F)
    tables: AnyArray  # (places, F): all tables below each other


class _Sums(NamedTuple):
    """Sums of one part, or of all parts with one more dimension at the front."""

    totals: AnyArray  # (F,)
    firsts: AnyArray  # (F, d)
    seconds: AnyArray  # (F, d, d)
    counts: AnyArray  # (places, F)


class _Run(NamedTuple):
    """Arrays for a run, whose rows have one pattern: factors, and sums over the observed cells."""

    factors: AnyArray  # (d, d, F): Cholesky factors
    inverse_diagonal: AnyArray  # (d, F): one over their diagonals
    log_norms: AnyArray  # (F,)
    totals: AnyArray  # (F,)
    firsts: AnyArray  # (F, d)
    seconds: AnyArray  # (F, d, d)
    regression: AnyArray  # (3, d, d): see `_complete`


class _Batch(NamedTuple):
    """Arrays for a batch of rows."""

    rows: AnyArray  # (BATCH,)
    x: AnyArray  # (d, BATCH)
    centred: AnyArray  # (d, BATCH)
    z: AnyArray  # (d, BATCH)
    squares: AnyArray  # (BATCH,)
    logs: AnyArray  # (BATCH, F): logarithms, then posteriors
    places: AnyArray  # (BATCH, columns): places in the tables


class CompiledBlockEngine(ScoringBlockEngine):
    """Sums of a pass by compiled loops; see the module.

    Parameters
    ----------
    codes, layout, weights
        As those of `ReferenceBlockEngine`; codes may be a mapped file.
    n_threads : int, optional
        Largest number of threads of a pass; all of numba's by default. Use one where passes run side by side.
    """

    def __init__(
        self, codes: CodeArray, layout: BlockLayout, weights: FloatArray | None = None, n_threads: int | None = None
    ) -> None:
        self._layout = layout
        self._n_threads = n_threads or numba.get_num_threads()
        n_intervals = [len(w) for w in layout.values]
        self._rows = _Rows(
            locked(codes),
            locked(_sorted(codes, layout)),
            WINDOW,
            locked(np.ones(1) if weights is None else np.asarray(weights, dtype=np.float64)),
            np.array(layout.columns, dtype=np.int64),
            np.array(n_intervals, dtype=np.int64),
            np.array(layout.n_spikes, dtype=np.int64),
            np.array(layout.others, dtype=np.int64),
            np.concatenate([*layout.values, np.empty(0)]),
            bin_starts(n_intervals),
            np.array(layout.table_starts),
        )

    def sums(self, components: BlockComponents) -> BlockSums:
        """One pass over the rows; see `BlockEngine`."""
        n, (F, d), mixture = len(self._rows.codes), components.means.shape, self._mixture(components)
        least = len(mixture.tables) // PLACES_PER_ROW
        n_parts = count_parts(n, mixture.tables.nbytes + 8 * F * (1 + d + d * d), least)
        shapes = ((F,), (F, d), (F, d, d), mixture.tables.shape)
        sums = _Sums(*(np.zeros((n_parts, *shape)) for shape in shapes))

        def part(p: int) -> float:
            own = _Sums(*(each[p] for each in sums))
            likelihood: float = _part(self._rows, mixture, own, p * n // n_parts, (p + 1) * n // n_parts)
            return likelihood

        likelihoods = in_threads(part, n_parts, self._threads(F))
        totals, firsts, seconds, counts = (each.sum(axis=0) if n_parts > 1 else each[0] for each in sums)
        return BlockSums(totals, firsts, seconds, *self._layout.unstacked(counts), float(np.sum(likelihoods)))

    def log_densities(self, components: BlockComponents, scales: Sequence[float] = (1.0,)) -> FloatArray:
        """Log-density of each row; see `ScoringBlockEngine`."""
        n, mixture, wide = len(self._rows.codes), self._mixture(components), np.array(scales, dtype=np.float64)
        out, n_parts = np.empty((len(wide), n)), count_parts(n, 0)

        def part(p: int) -> None:
            _score_part(self._rows, mixture, wide, out, p * n // n_parts, (p + 1) * n // n_parts)

        in_threads(part, n_parts, self._threads(len(mixture.log_weights)))
        return out

    def _mixture(self, components: BlockComponents) -> _Mixture:
        """Return checked components as the compiled loops see them."""
        components.check(self._layout)
        # copies: numba would compile anew for arrays that were sent, which are read-only
        return _Mixture(
            np.array(components.log_weights),
            np.array(components.means.T, order="C"),
            np.array(components.covariances.transpose(1, 2, 0), order="C"),
            self._layout.stacked(components),
        )

    def _threads(self, n_components: int) -> int:
        """Return how many threads a pass may use."""
        work = len(self._rows.codes) * n_components * (self._layout.d + 1) ** 2
        return 1 if work < ONE_THREAD else self._n_threads


def _sorted(codes: CodeArray, layout: BlockLayout) -> AnyArray:
    """Return the rows of each window, counted from its start, sorted by pattern; empty if all rows are complete."""
    order = np.empty(len(codes), dtype=np.uint16)
    complete = True
    for start in range(0, len(codes), WINDOW):
        words = _patterns(codes[start : start + WINDOW], layout)
        order[start : start + WINDOW] = np.lexsort(words.T)
        complete = complete and not words.any()
    return order[:0].copy() if complete else order


def _patterns(codes: CodeArray, layout: BlockLayout) -> AnyArray:
    """Return a bit for each block cell that is missing or at a spike; shape (n, words) of 64 bits."""
    words = np.zeros((len(codes), layout.d // 64 + 1), dtype=np.uint64)
    for j, (column, w) in enumerate(zip(layout.columns, layout.values, strict=True)):
        words[:, j // 64] |= (codes[:, column] >= len(w)).astype(np.uint64) << np.uint64(j % 64)
    return words


# ---- compiled: one part, then its runs, then their batches ---------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def _part(rows: _Rows, mixture: _Mixture, sums: _Sums, begin: int, end: int) -> float:
    """Take the rows at the places from `begin` to `end`, run by run; fill the sums and return the log-likelihood."""
    d = len(mixture.means)
    run, batch = _new_arrays(rows, mixture)
    seen, unseen = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    likelihood = 0.0
    i = begin
    while i < end:
        n_seen = _split_cells(rows, i, seen, unseen)
        o, m = seen[:n_seen], unseen[: d - n_seen]
        _begin_run(rows, mixture, o, run)
        n_rows = BATCH
        while n_rows == BATCH:
            n_rows = _same_pattern(rows, o, m, i, end, batch.rows)
            n_places = _look_up(rows, o, m, n_rows, batch)
            _log_shares(mixture, run, o, n_rows, n_places, batch)
            likelihood += _posteriors(rows, sums, n_rows, n_places, batch)
            _add_batch(mixture, run, o, n_rows, batch)
            i += n_rows
        _end_run(rows, mixture, run, o, m, sums)
    return likelihood


@numba.njit(cache=True, nogil=True)
def _score_part(rows: _Rows, mixture: _Mixture, scales: AnyArray, out: AnyArray, begin: int, end: int) -> None:
    """Write the log-densities of the rows at the places from `begin` to `end`, for each scale of the covariances."""
    d, F = mixture.means.shape
    run, batch = _new_arrays(rows, mixture)
    squares = np.empty((BATCH, F))
    seen, unseen = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    i = begin
    while i < end:
        n_seen = _split_cells(rows, i, seen, unseen)
        o, m = seen[:n_seen], unseen[: d - n_seen]
        _begin_run(rows, mixture, o, run)
        n_rows = BATCH
        while n_rows == BATCH:
            n_rows = _same_pattern(rows, o, m, i, end, batch.rows)
            n_places = _look_up(rows, o, m, n_rows, batch)
            _log_norms(mixture, run, n_rows, n_places, batch)
            _all_squares(mixture, run, o, n_rows, batch, squares)
            for s in range(len(scales)):
                shift = -0.5 * n_seen * np.log(scales[s])
                for b in range(n_rows):
                    out[s, batch.rows[b]] = shift + _log_of_sum(batch.logs[b], squares[b], -0.5 / scales[s])
            i += n_rows


@numba.njit(cache=True, nogil=True)
def _new_arrays(rows: _Rows, mixture: _Mixture) -> tuple[_Run, _Batch]:
    """Return arrays for runs and batches."""
    d, F = mixture.means.shape
    run = _Run(
        np.empty((d, d, F)), np.empty((d, F)), np.empty(F), np.empty(F), np.empty((F, d)), np.empty((F, d, d)),
        np.empty((3, d, d)),
    )  # fmt: skip
    batch = _Batch(
        np.empty(BATCH, dtype=np.int64), np.empty((d, BATCH)), np.empty((d, BATCH)), np.empty((d, BATCH)),
        np.empty(BATCH), np.empty((BATCH, F)), np.empty((BATCH, len(rows.others) + d), dtype=np.int64),
    )  # fmt: skip
    return run, batch


@numba.njit(cache=True, nogil=True)
def _row(rows: _Rows, i: int) -> int:
    """Return the row at a place of the sorted rows."""
    return i - i % rows.window + rows.order[i] if len(rows.order) else i


@numba.njit(cache=True, nogil=True)
def _split_cells(rows: _Rows, i: int, seen: AnyArray, unseen: AnyArray) -> int:
    """Write which block cells of a row are observed and which are not; return how many are."""
    row = _row(rows, i)
    n_seen = n_unseen = 0
    for j in range(len(rows.columns)):
        if rows.codes[row, rows.columns[j]] < rows.n_intervals[j]:
            seen[n_seen] = j
            n_seen += 1
        else:
            unseen[n_unseen] = j
            n_unseen += 1
    return n_seen


@numba.njit(cache=True, nogil=True)
def _same_pattern(rows: _Rows, o: AnyArray, m: AnyArray, begin: int, end: int, found: AnyArray) -> int:
    """Write the rows from `begin` on that have the pattern, at most a batch; return how many."""
    n_rows = min(BATCH, end - begin)
    for b in range(n_rows):
        row = _row(rows, begin + b)
        for j in o:
            if rows.codes[row, rows.columns[j]] >= rows.n_intervals[j]:
                return b
        for j in m:
            if rows.codes[row, rows.columns[j]] < rows.n_intervals[j]:
                return b
        found[b] = row
    return n_rows


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _begin_run(rows: _Rows, mixture: _Mixture, o: AnyArray, run: _Run) -> None:
    """Factorise the covariances of the observed cells, and clear the sums."""
    F, n_others = len(mixture.log_weights), len(rows.others)
    if len(o) > MOST_TOGETHER:
        _factorise_each(mixture.covariances, o, run)
    else:
        _factorise(mixture.covariances, o, run.factors, run.inverse_diagonal)
    for r in range(F):
        run.log_norms[r] = mixture.log_weights[r] - 0.5 * LOG_TAU * len(o)
    for j in range(len(o)):
        no_spike = mixture.tables[rows.table_starts[n_others + o[j]]]
        for r in range(F):
            run.log_norms[r] += np.log(run.inverse_diagonal[j, r]) + no_spike[r]
    run.totals[:] = 0.0
    run.firsts[:] = 0.0
    run.seconds[:] = 0.0


@numba.njit(cache=True, nogil=True, fastmath=FAST)
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


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _factorise_each(covariances: AnyArray, o: AnyArray, run: _Run) -> None:
    """Write the same factors one component after the other: of many columns, rows of a factor are long vectors."""
    own = run.regression[0]
    for r in range(covariances.shape[2]):
        for j in range(len(o)):
            for k in range(j + 1):
                a, b, value = own[j], own[k], covariances[o[j], o[k], r]
                for l in range(k):
                    value -= a[l] * b[l]
                if k < j:
                    a[k] = value * run.inverse_diagonal[k, r]
                else:
                    a[k] = np.sqrt(max(value, 1e-16 * covariances[o[j], o[j], r]))
                    run.inverse_diagonal[j, r] = 1.0 / a[k]
                run.factors[j, k, r] = a[k]


@numba.njit(cache=True, nogil=True)
def _look_up(rows: _Rows, o: AnyArray, m: AnyArray, n_rows: int, batch: _Batch) -> int:
    """Write the values of observed cells and the places in the tables; return how many tables matter to these rows."""
    for j in range(len(o)):
        column, start, x = rows.columns[o[j]], rows.value_starts[o[j]], batch.x[j]
        for b in range(n_rows):
            x[b] = rows.values[start + rows.codes[batch.rows[b], column]]
    n_others = n_places = len(rows.others)
    for k in range(n_others):
        for b in range(n_rows):
            batch.places[b, k] = rows.table_starts[k] + rows.codes[batch.rows[b], rows.others[k]]
    for j in m:
        if rows.n_spikes[j]:
            start = rows.table_starts[n_others + j] + 1 - rows.n_intervals[j]
            for b in range(n_rows):
                batch.places[b, n_places] = start + rows.codes[batch.rows[b], rows.columns[j]]
            n_places += 1
    return n_places


@numba.njit(cache=True, nogil=True)
def _log_shares(mixture: _Mixture, run: _Run, o: AnyArray, n_rows: int, n_places: int, batch: _Batch) -> None:
    """Write log lam[r] + log f(x | r) of each row of a batch."""
    _log_norms(mixture, run, n_rows, n_places, batch)
    for r in range(len(mixture.log_weights)):
        _centre(mixture, o, r, n_rows, batch)
        _squares(run.factors, run.inverse_diagonal, len(o), r, n_rows, batch.centred, batch.z, batch.squares)
        for b in range(n_rows):
            batch.logs[b, r] -= 0.5 * batch.squares[b]


@numba.njit(cache=True, nogil=True)
def _all_squares(mixture: _Mixture, run: _Run, o: AnyArray, n_rows: int, batch: _Batch, squares: AnyArray) -> None:
    """Write the squared Mahalanobis distances of each row of a batch; shape (BATCH, F)."""
    for r in range(len(mixture.log_weights)):
        _centre(mixture, o, r, n_rows, batch)
        _squares(run.factors, run.inverse_diagonal, len(o), r, n_rows, batch.centred, batch.z, batch.squares)
        for b in range(n_rows):
            squares[b, r] = batch.squares[b]


@numba.njit(cache=True, nogil=True)
def _centre(mixture: _Mixture, o: AnyArray, r: int, n_rows: int, batch: _Batch) -> None:
    """Write the observed values of a batch less the mean of a component."""
    for j in range(len(o)):
        mean, x, centred = mixture.means[o[j], r], batch.x[j], batch.centred[j]
        for b in range(n_rows):
            centred[b] = x[b] - mean


@numba.njit(cache=True, nogil=True)
def _log_norms(mixture: _Mixture, run: _Run, n_rows: int, n_places: int, batch: _Batch) -> None:
    """Write log lam[r] + log f(x | r) of each row of a batch, but for the squares of the Gaussian."""
    logs, places, tables, log_norms = batch.logs, batch.places, mixture.tables, run.log_norms
    for b in range(n_rows):  # no views of rows: counting references to them would take longer
        for r in range(len(log_norms)):
            logs[b, r] = log_norms[r]
        for k in range(n_places):
            place = places[b, k]
            for r in range(len(log_norms)):
                logs[b, r] += tables[place, r]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _log_of_sum(logs: AnyArray, squares: AnyArray, factor: float) -> float:
    """Return the logarithm of the sum of exp(logs + factor squares)."""
    top = -np.inf
    for r in range(len(logs)):
        top = max(top, logs[r] + factor * squares[r])
    total = 0.0
    for r in range(len(logs)):
        away = logs[r] + factor * squares[r] - top
        if away > LEAST_AWAY:
            total += np.exp(away)
    log_sum: float = top + np.log(total)
    return log_sum


@numba.njit(cache=True, nogil=True, fastmath=FAST)
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


@numba.njit(cache=True, nogil=True)
def _posteriors(rows: _Rows, sums: _Sums, n_rows: int, n_places: int, batch: _Batch) -> float:
    """Turn logarithms into weighted posteriors, add them to the counts, and return the log-likelihood."""
    each = 1 if len(rows.weights) > 1 else 0  # a single weight stands for all rows
    logs, places, counts = batch.logs, batch.places, sums.counts
    likelihood = 0.0
    for b in range(n_rows):
        weight = rows.weights[batch.rows[b] * each]
        likelihood += weight * _to_posteriors(logs, b, weight)
        for k in range(n_places):
            place = places[b, k]
            for r in range(logs.shape[1]):
                counts[place, r] += logs[b, r]
    return likelihood


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _to_posteriors(logs: AnyArray, b: int, weight: float) -> float:
    """Turn the logarithms of a row into posteriors times a weight, in place; return the log of their sum."""
    n_components = logs.shape[1]
    top = -np.inf
    for r in range(n_components):
        top = max(top, logs[b, r])
    total = 0.0
    for r in range(n_components):
        away = logs[b, r] - top
        logs[b, r] = np.exp(away) if away > LEAST_AWAY else 0.0
        total += logs[b, r]
    share = weight / total
    for r in range(n_components):
        logs[b, r] *= share
    log_sum: float = top + np.log(total)
    return log_sum


@numba.njit(cache=True, nogil=True)
def _add_batch(mixture: _Mixture, run: _Run, o: AnyArray, n_rows: int, batch: _Batch) -> None:
    """Add a batch to the sums of its run: to each component, the rows that matter to it."""
    p = batch.squares
    for r in range(len(mixture.log_weights)):
        n_kept = 0
        for b in range(n_rows):
            if batch.logs[b, r] > 0.0:
                p[n_kept] = batch.logs[b, r]
                for j in range(len(o)):
                    batch.centred[j, n_kept] = batch.x[j, b] - mixture.means[o[j], r]
                n_kept += 1
        if n_kept:
            run.totals[r] += _add_moments(p, batch.centred, len(o), n_kept, batch.z, run.firsts[r], run.seconds[r])


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _add_moments(
    p: AnyArray, centred: AnyArray, n_seen: int, n_rows: int, weighted: AnyArray, firsts: AnyArray, seconds: AnyArray
) -> float:
    """Add the sums of p c and the lower triangle of p c c' over the rows of a batch; return the sum of p."""
    total = 0.0
    for b in range(n_rows):
        total += p[b]
    for j in range(n_seen):
        own, source = weighted[j], centred[j]
        first = 0.0
        for b in range(n_rows):
            own[b] = p[b] * source[b]
            first += own[b]
        firsts[j] += first
        k = 0
        while k + 4 <= j + 1:
            c0, c1, c2, c3 = centred[k], centred[k + 1], centred[k + 2], centred[k + 3]
            s0 = s1 = s2 = s3 = 0.0
            for b in range(n_rows):
                s0 += own[b] * c0[b]
                s1 += own[b] * c1[b]
                s2 += own[b] * c2[b]
                s3 += own[b] * c3[b]
            seconds[j, k] += s0
            seconds[j, k + 1] += s1
            seconds[j, k + 2] += s2
            seconds[j, k + 3] += s3
            k += 4
        while k <= j:
            c0 = centred[k]
            s0 = 0.0
            for b in range(n_rows):
                s0 += own[b] * c0[b]
            seconds[j, k] += s0
            k += 1
    return total


@numba.njit(cache=True, nogil=True)
def _end_run(rows: _Rows, mixture: _Mixture, run: _Run, o: AnyArray, m: AnyArray, sums: _Sums) -> None:
    """Add the sums of a run to those of the part."""
    n_others = len(rows.others)
    for r in range(len(run.totals)):
        if run.totals[r] > 0.0:
            sums.totals[r] += run.totals[r]
            for j in o:
                sums.counts[rows.table_starts[n_others + j], r] += run.totals[r]
            _add_observed(o, run.firsts[r], run.seconds[r], sums.firsts[r], sums.seconds[r])
            _complete(mixture.covariances, run, o, m, r, sums.firsts[r], sums.seconds[r])


@numba.njit(cache=True, nogil=True)
def _add_observed(o: AnyArray, first: AnyArray, second: AnyArray, firsts: AnyArray, seconds: AnyArray) -> None:
    """Add the sums over the observed cells; fill the upper triangle of the second ones too."""
    for j in range(len(o)):
        firsts[o[j]] += first[j]
        for k in range(j + 1):
            second[k, j] = second[j, k]
            seconds[o[j], o[k]] += second[j, k]
            if k < j:
                seconds[o[k], o[j]] += second[j, k]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _complete(
    covariances: AnyArray, run: _Run, o: AnyArray, m: AnyArray, r: int, firsts: AnyArray, seconds: AnyArray
) -> None:
    """Add the sums of cells that are not observed, from their regression on the observed ones.

    With L the factor of S_oo: half = S_mo L'^-1, regression A = S_mo S_oo^-1, cross = A Q_oo. The residual covariance
    is S_mm - half half'.
    """
    factors, inverse_diagonal = run.factors, run.inverse_diagonal
    total, first, second = run.totals[r], run.firsts[r], run.seconds[r]
    half, regression, cross = run.regression[0], run.regression[1], run.regression[2]
    n_seen = len(o)
    for a in range(len(m)):
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
            firsts[m[a]] += regression[a, j] * first[j]
            value = 0.0
            for k in range(n_seen):
                value += regression[a, k] * second[k, j]
            cross[a, j] = value
            seconds[m[a], o[j]] += value
            seconds[o[j], m[a]] += value
        for b in range(a + 1):
            value = total * covariances[m[a], m[b], r]
            for j in range(n_seen):
                value += cross[a, j] * regression[b, j] - total * half[a, j] * half[b, j]
            seconds[m[a], m[b]] += value
            if b < a:
                seconds[m[b], m[a]] += value
