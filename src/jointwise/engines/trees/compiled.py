"""The pass over a mixture of trees compiled by numba, on all cores.

A cell and its parent look up one number of a padded table, in which "missing" is one more state. So rows with and
without gaps run together, a batch at a time. Only a missing cell with children costs more, because it needs their
messages; see `kernels` and `PaddedTables`.

Edges are counted part by part (see `compiled_parts`). Tables of pairs are large, so no part has a table of its own:
posteriors of a window of rows come first, then each thread counts other pairs, or gaps of other components. Either way
the order of additions does not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from jointwise._typing import CodeArray, FloatArray, IntArray
from jointwise.engines.base import bin_starts, padded_bins
from jointwise.engines.compiled_parts import PARTS_BYTES, count_parts, locked
from jointwise.engines.threads import in_threads
from jointwise.engines.trees.base import (
    EdgeSums,
    PairSums,
    TreeComponents,
    TreeEngine,
    check_pairs,
    pair_places,
    pair_starts,
)
from jointwise.engines.trees.kernels import (
    BATCH,
    Pairs,
    Rows,
    Trees,
    count_gaps,
    count_nodes,
    count_pairs,
    edge_part,
    has_gaps,
    missing_states,
    posterior_part,
    scratch,
)

# Bytes of the posteriors and codes of a window of rows.
WINDOW_BYTES = 16 * 2**20
# Fewest chunks of pairs, so that the tables of one stay small.
CHUNKS = 16
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
        self._gaps = has_gaps(self._rows)

    def edge_sums(self, components: TreeComponents) -> EdgeSums:
        """Return the expected counts of all edges; see `TreeEngine`."""
        trees, n = self._trees(components), len(self._rows.codes)
        n_parts = count_parts(n, trees.logs.nbytes)
        edges, totals = np.zeros((n_parts, len(trees.logs))), np.zeros((n_parts, len(trees.parents)))

        def part(p: int) -> float:
            rows = p * n // n_parts, (p + 1) * n // n_parts
            scratches = scratch(self._rows.n_bins), np.empty((BATCH, len(trees.parents)))
            likelihood: float = edge_part(self._rows, trees, *scratches, totals[p], edges[p], *rows)
            return likelihood

        likelihoods = in_threads(part, n_parts, self._threads(trees.parents.size))
        counts = components.forest.padded.counts(edges.sum(axis=0), components.logs, gaps=self._gaps)
        return EdgeSums(totals.sum(axis=0), counts, float(np.sum(likelihoods)))

    def pair_sums(self, components: TreeComponents, pairs: IntArray) -> PairSums:
        """Return the expected counts of pairs of columns; see `TreeEngine`."""
        trees, F = self._trees(components), len(components.log_weights)
        asked = _pairs(self._n_bins, check_pairs(pairs, len(self._n_bins)))
        sums = PairSums(np.zeros(F), np.zeros((asked.starts[-1], F)), np.zeros((asked.node_starts[-1], F)), 0.0)
        window = max(BATCH, WINDOW_BYTES // (8 * F + self._rows.codes.itemsize * len(self._n_bins)))
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
        n_parts, n_threads = count_parts(n, 1), self._threads(F * len(asked.columns))

        def part(p: int) -> float:
            own = p * n // n_parts, (p + 1) * n // n_parts
            likelihood: float = posterior_part(rows, trees, scratch(rows.n_bins), *own, posteriors, gapped)
            return likelihood

        likelihoods = in_threads(part, n_parts, n_threads)
        _add_observed(rows, posteriors, asked, sums, n_threads)
        where = np.flatnonzero(gapped)
        if len(where):
            _add_gaps(rows, trees, posteriors, where, asked, sums, n_threads)
        likelihood = sums.log_likelihood + float(np.sum(likelihoods))
        return PairSums(sums.totals + posteriors.sum(axis=0), sums.pairs, sums.nodes, likelihood)

    def _threads(self, n_lookups: int) -> int:
        """Return the number of threads for this many lookups in each row."""
        return 1 if len(self._rows.codes) * n_lookups < ONE_THREAD else self._n_threads

    def _trees(self, components: TreeComponents) -> Trees:
        """Return the components as the compiled loops see them."""
        forest = components.forest
        forest.check(self._n_bins)
        child_starts, children = forest.children
        # copies: numba would compile anew for arrays that were sent, which are read-only
        return Trees(
            np.array(components.log_weights),
            np.array(forest.parents),
            forest.ranks,
            child_starts,
            children,
            np.array(forest.padded.starts[:-1]).reshape(forest.parents.shape),
            *forest.padded.tables(components.logs, gaps=self._gaps),
        )


def _add_observed(rows: Rows, posteriors: FloatArray, asked: Pairs, sums: PairSums, n_threads: int) -> None:
    """Add posteriors (n, F) to the counts of observed cells; each task takes some of the pairs."""
    columns = np.array(rows.codes.T, order="C")
    P, F = len(asked.columns), posteriors.shape[1]
    n_chunks = min(P, max(CHUNKS, 2 * n_threads))

    def chunk(c: int) -> None:
        begin, end = c * P // n_chunks, (c + 1) * P // n_chunks
        first, last = asked.starts[begin], asked.starts[end]
        counts = np.zeros((1 + last - first, F))
        starts = asked.starts[begin:end] - first + 1
        count_pairs(columns, rows.n_bins, posteriors, asked.columns[begin:end], starts, counts)
        sums.pairs[first:last] += counts[1:]

    in_threads(chunk, n_chunks, n_threads)
    starts, present = padded_bins(rows.n_bins.tolist())
    nodes = np.zeros((starts[-1], F))
    count_nodes(columns, posteriors, starts, nodes)
    sums.nodes[:] += nodes[present]


def _add_gaps(
    rows: Rows, trees: Trees, posteriors: FloatArray, where: IntArray, asked: Pairs, sums: PairSums, n_threads: int
) -> None:
    """Add posteriors (n, F) to the counts of missing cells of the rows at `where`; each task takes a component."""
    n_missing, n_states = missing_states(rows, where), len(sums.nodes)
    places = pair_places(rows.n_bins.tolist(), asked.columns)

    def component(r: int) -> None:
        counts, nodes = np.zeros((n_states, n_states)), np.zeros(n_states)
        own, joint = np.ascontiguousarray(posteriors[:, r]), np.empty((n_missing, n_missing))
        count_gaps(rows, trees, scratch(rows.n_bins), r, own, where, joint, asked, counts, nodes)
        counts += counts.T.copy()
        sums.pairs[:, r] += counts.ravel()[places]
        sums.nodes[:, r] += nodes

    n_bytes = 8 * (n_missing**2 + 2 * n_states**2 + len(places))
    in_threads(component, posteriors.shape[1], min(n_threads, PARTS_BYTES // n_bytes))


def _pairs(n_bins: Sequence[int], pairs: IntArray) -> Pairs:
    """Return the asked pairs as the compiled loops see them."""
    positions = np.full((len(n_bins), len(n_bins)), -1)
    positions[pairs[:, 0], pairs[:, 1]] = positions[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    return Pairs(pairs, pair_starts(n_bins, pairs), bin_starts(n_bins), positions)
