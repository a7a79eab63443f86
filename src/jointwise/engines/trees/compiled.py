"""The pass over a mixture of trees compiled by numba, on all cores.

A cell and its parent look up one number of a padded table, in which "missing" is one more state that adds nothing. So
rows with and without gaps run together, a batch at a time, and only missing cells cost more: `gaps` passes messages
between them.

Edges are counted part by part (see `compiled_parts`). Tables of pairs are large, so no part has a table of its own:
posteriors of a window of rows come first, then each thread counts other pairs, or gaps of other components. Either way
the order of additions does not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray, IntArray
from jointwise.engines.base import bin_starts
from jointwise.engines.compiled_parts import FAST, count_parts, in_threads, locked, to_posteriors
from jointwise.engines.trees.base import (
    EdgeSums,
    Forest,
    PairSums,
    TreeComponents,
    TreeEngine,
    check_pairs,
    pair_starts,
)
from jointwise.engines.trees.gaps import (
    Gaps,
    Pairs,
    Rows,
    Trees,
    add_edges,
    add_pairs,
    begin_tree,
    downward,
    end_row,
    find_gaps,
    scratch,
    upward,
)

# Rows whose posteriors are computed together: their codes stay in the fastest cache.
BATCH = 128
# Bytes of the posteriors of a window of rows.
WINDOW_BYTES = 64 * 2**20
# Most tasks into which pairs are cut.
PAIR_TASKS = 64
# Up to this many lookups (rows x components x columns, or pairs) one thread is faster than several.
ONE_THREAD = 1_000_000


class CompiledTreeEngine(TreeEngine):
    """Sums of a pass by compiled loops; see the module.

    Parameters
    ----------
    codes, n_bins, weights
        As those of `ReferenceTreeEngine`; codes may be a mapped file.
    n_threads : int, optional
        Largest number of threads of a pass; all of numba's by default. Use one where passes run side by side.
    """

    def __init__(
        self, codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None = None, n_threads: int | None = None
    ) -> None:
        self._n_threads = n_threads or numba.get_num_threads()
        self._n_bins = tuple(n_bins)
        weights = np.ones(1) if weights is None else np.asarray(weights, dtype=np.float64)
        self._rows = Rows(locked(codes), locked(weights), np.array(n_bins, dtype=np.int64))

    def edge_sums(self, components: TreeComponents) -> EdgeSums:
        """Return the expected counts of all edges; see `TreeEngine`."""
        trees, n = self._trees(components), len(self._rows.codes)
        n_parts = count_parts(n, trees.logs.nbytes)
        edges, totals = np.zeros((n_parts, len(trees.logs))), np.zeros((n_parts, len(trees.parents)))

        def part(p: int) -> float:
            rows = p * n // n_parts, (p + 1) * n // n_parts
            likelihood: float = _edge_part(self._rows, trees, totals[p], edges[p], *rows)
            return likelihood

        likelihoods = in_threads(part, n_parts, self._threads(trees.parents.size))
        counts = edges.sum(axis=0)[components.forest.padded.places]
        return EdgeSums(totals.sum(axis=0), counts, float(np.sum(likelihoods)))

    def pair_sums(self, components: TreeComponents, pairs: IntArray) -> PairSums:
        """Return the expected counts of pairs of columns; see `TreeEngine`."""
        trees, F = self._trees(components), len(components.log_weights)
        asked = _pairs(self._n_bins, check_pairs(pairs, len(self._n_bins)))
        sums = PairSums(np.zeros(F), np.zeros((asked.starts[-1], F)), np.zeros((asked.node_starts[-1], F)), 0.0)
        window = max(BATCH, WINDOW_BYTES // (8 * F))
        for start in range(0, len(self._rows.codes), window):
            here = slice(start, start + window)
            weights = self._rows.weights
            rows = Rows(self._rows.codes[here], weights[here] if len(weights) > 1 else weights, self._rows.n_bins)
            sums = self._add_window(rows, trees, asked, sums)
        return sums

    def _add_window(self, rows: Rows, trees: Trees, asked: Pairs, sums: PairSums) -> PairSums:
        """Add a window of rows to the counts of pairs, in place; return them with its totals and log-likelihood."""
        n, F = len(rows.codes), len(trees.parents)
        posteriors, gapped = np.empty((n, F)), np.empty(n, dtype=np.bool_)
        n_parts, n_chunks = count_parts(n, 1), min(PAIR_TASKS, len(asked.columns))
        n_threads = self._threads(F * len(asked.columns))

        def part(p: int) -> float:
            own = p * n // n_parts, (p + 1) * n // n_parts
            likelihood: float = _posterior_part(rows, trees, *own, posteriors, gapped)
            return likelihood

        def chunk(c: int) -> None:
            if c == n_chunks:
                _count_nodes(rows, posteriors, asked, sums.nodes)
            else:
                P = len(asked.columns)
                _count_pairs(rows, posteriors, asked, c * P // n_chunks, (c + 1) * P // n_chunks, sums.pairs)

        def component(r: int) -> None:
            counts, nodes = np.zeros(len(sums.pairs)), np.zeros(len(sums.nodes))
            _count_gaps(rows, trees, r, np.ascontiguousarray(posteriors[:, r]), where, asked, counts, nodes)
            sums.pairs[:, r] += counts
            sums.nodes[:, r] += nodes

        likelihoods = in_threads(part, n_parts, n_threads)
        in_threads(chunk, n_chunks + 1, n_threads)
        where = np.flatnonzero(gapped)
        if len(where):
            in_threads(component, F, n_threads)
        likelihood = sums.log_likelihood + float(np.sum(likelihoods))
        return PairSums(sums.totals + posteriors.sum(axis=0), sums.pairs, sums.nodes, likelihood)

    def _threads(self, n_lookups: int) -> int:
        """Return the number of threads for this many lookups in each row."""
        return 1 if len(self._rows.codes) * n_lookups < ONE_THREAD else self._n_threads

    def _trees(self, components: TreeComponents) -> Trees:
        """Return the components as the compiled loops see them."""
        forest = components.forest
        forest.check(self._n_bins)
        logs = components.logs
        shape = forest.parents.shape
        child_starts, children = _children(forest)
        return Trees(
            np.array(components.log_weights),
            np.array(forest.parents),
            np.argsort(forest.order, axis=1),
            child_starts,
            children,
            forest.padded.starts[:-1].reshape(shape),
            forest.padded.fill(logs),
            forest.padded.fill(np.exp(logs)),
        )


def _children(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return where the children of each column begin, (F, N + 1), and the children, (F, N), roots last."""
    N = len(forest.n_bins)
    above = np.where(forest.parents < 0, N, forest.parents)
    counts = (above[:, :, None] == np.arange(N)).sum(axis=1)
    starts = np.concatenate([np.zeros((len(above), 1), dtype=np.int64), np.cumsum(counts, axis=1)], axis=1)
    return starts, np.argsort(above, axis=1, kind="stable")


def _pairs(n_bins: Sequence[int], pairs: IntArray) -> Pairs:
    """Return the asked pairs as the compiled loops see them."""
    positions = np.full((len(n_bins), len(n_bins)), -1)
    positions[pairs[:, 0], pairs[:, 1]] = positions[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    return Pairs(pairs, pair_starts(n_bins, pairs), bin_starts(n_bins), positions)


# ---- compiled: a part, its batches ---------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def _edge_part(rows: Rows, trees: Trees, totals: AnyArray, edges: AnyArray, begin: int, end: int) -> float:
    """Take the rows from `begin` to `end`; fill totals (F,) and padded edges, and return the log-likelihood."""
    F = len(trees.parents)
    posteriors, gapped, gaps = np.empty((BATCH, F)), np.empty(BATCH, dtype=np.bool_), scratch(rows.n_bins)
    kept, p = np.empty(BATCH, dtype=np.uint64), np.empty(BATCH)
    likelihood = 0.0
    for first in range(begin, end, BATCH):
        n_rows = min(BATCH, end - first)
        likelihood += _posteriors(rows, trees, first, n_rows, gaps, posteriors, gapped)
        for r in range(F):
            n_kept = 0
            for b in range(n_rows):
                if posteriors[b, r] > 0.0:
                    kept[n_kept], p[n_kept] = first + b, posteriors[b, r]
                    totals[r] += p[n_kept]
                    n_kept += 1
            _count_edges(rows, trees, r, kept[:n_kept], p, edges)
        for b in range(n_rows):
            if gapped[b]:
                m = find_gaps(rows, first + b, gaps)
                for r in range(F):
                    if posteriors[b, r] > 0.0:
                        begin_tree(rows, trees, r, m, gaps)
                        upward(rows, trees, first + b, r, m, gaps)
                        add_edges(rows, trees, first + b, r, m, posteriors[b, r], gaps, edges)
                end_row(m, gaps)
    return likelihood


@numba.njit(cache=True, nogil=True)
def _posterior_part(rows: Rows, trees: Trees, begin: int, end: int, posteriors: AnyArray, gapped: AnyArray) -> float:
    """Write the posteriors of the rows from `begin` to `end`, and which have gaps; return the log-likelihood."""
    gaps = scratch(rows.n_bins)
    likelihood = 0.0
    for first in range(begin, end, BATCH):
        n_rows = min(BATCH, end - first)
        batch = slice(first, first + n_rows)
        likelihood += _posteriors(rows, trees, first, n_rows, gaps, posteriors[batch], gapped[batch])
    return likelihood


@numba.njit(cache=True, nogil=True)
def _posteriors(
    rows: Rows, trees: Trees, first: int, n_rows: int, gaps: Gaps, posteriors: AnyArray, gapped: AnyArray
) -> float:
    """Write the weighted posteriors of a batch of rows, and which have gaps; return the log-likelihood."""
    F = len(trees.parents)
    logs = np.empty(BATCH)
    for r in range(F):
        _look_up(rows, trees, r, first, n_rows, logs)
        for b in range(n_rows):
            posteriors[b, r] = logs[b]
    each = 1 if len(rows.weights) > 1 else 0  # a single weight stands for all rows
    likelihood = 0.0
    for b in range(n_rows):
        m = find_gaps(rows, first + b, gaps)
        gapped[b] = m > 0
        if m:
            for r in range(F):
                begin_tree(rows, trees, r, m, gaps)
                posteriors[b, r] += upward(rows, trees, first + b, r, m, gaps)
            end_row(m, gaps)
        weight = rows.weights[(first + b) * each]
        likelihood += weight * to_posteriors(posteriors[b], weight)
    return likelihood


@numba.njit(cache=True, nogil=True)
def _look_up(rows: Rows, trees: Trees, r: int, first: int, n_rows: int, logs: AnyArray) -> None:
    """Write log lam[r] + log f(observed edges | r) of each row of a batch."""
    codes = rows.codes[first : first + n_rows]
    for b in range(n_rows):
        logs[b] = trees.log_weights[r]
    for n in range(codes.shape[1]):
        p, start, stride = trees.parents[r, n], np.uint64(trees.starts[r, n]), np.uint64(rows.n_bins[n] + 1)
        if p < 0:
            for b in range(n_rows):
                logs[b] += trees.logs[start + np.uint64(codes[b, n])]
        else:
            for b in range(n_rows):
                logs[b] += trees.logs[start + np.uint64(codes[b, p]) * stride + np.uint64(codes[b, n])]


@numba.njit(cache=True, nogil=True)
def _count_edges(rows: Rows, trees: Trees, r: int, kept: AnyArray, posteriors: AnyArray, edges: AnyArray) -> None:
    """Add the posteriors of some rows to the edges of their cells; gaps are counted where nobody looks."""
    for n in range(rows.codes.shape[1]):
        p, start, stride = trees.parents[r, n], np.uint64(trees.starts[r, n]), np.uint64(rows.n_bins[n] + 1)
        if p < 0:
            for b in range(len(kept)):
                edges[start + np.uint64(rows.codes[kept[b], n])] += posteriors[b]
        else:
            for b in range(len(kept)):
                i = kept[b]
                edges[start + np.uint64(rows.codes[i, p]) * stride + np.uint64(rows.codes[i, n])] += posteriors[b]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _count_pairs(rows: Rows, posteriors: AnyArray, asked: Pairs, begin: int, end: int, counts: AnyArray) -> None:
    """Add posteriors (n, F) to the counts of the pairs from `begin` to `end`, where both cells are observed."""
    n, F = posteriors.shape
    for first in range(0, n, BATCH):
        stop = min(first + BATCH, n)
        for pair in range(begin, end):
            i, j = asked.columns[pair]
            start, S_i, S_j = np.uint64(asked.starts[pair]), np.uint64(rows.n_bins[i]), np.uint64(rows.n_bins[j])
            for row in range(first, stop):
                a, b = np.uint64(rows.codes[row, i]), np.uint64(rows.codes[row, j])
                if a < S_i and b < S_j:
                    sums, own = counts[start + a * S_j + b], posteriors[row]
                    for r in range(F):
                        sums[r] += own[r]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _count_nodes(rows: Rows, posteriors: AnyArray, asked: Pairs, nodes: AnyArray) -> None:
    """Add posteriors (n, F) to the counts of the states of observed cells."""
    n, N = rows.codes.shape
    for row in range(n):
        own = posteriors[row]
        for column in range(N):
            code = np.int64(rows.codes[row, column])
            if code < rows.n_bins[column]:
                sums = nodes[asked.node_starts[column] + code]
                for r in range(len(own)):
                    sums[r] += own[r]


@numba.njit(cache=True, nogil=True)
def _count_gaps(
    rows: Rows, trees: Trees, r: int, posteriors: AnyArray, where: AnyArray, asked: Pairs, counts: AnyArray,
    nodes: AnyArray,
) -> None:  # fmt: skip
    """Add the posteriors (n,) of one component to the pairs and nodes with missing cells of the rows at `where`."""
    gaps, most = scratch(rows.n_bins), 0
    for i in where:
        n_states = 0
        for k in range(find_gaps(rows, i, gaps)):
            n_states += rows.n_bins[gaps.columns[k]]
        most = max(most, n_states)
    joint = np.empty((most, most))
    for i in where:
        if posteriors[i] > 0.0:
            m = find_gaps(rows, i, gaps)
            begin_tree(rows, trees, r, m, gaps)
            upward(rows, trees, i, r, m, gaps)
            downward(rows, trees, i, r, m, gaps, joint)
            add_pairs(rows, i, m, posteriors[i], gaps, joint, asked, counts, nodes)
            end_row(m, gaps)
