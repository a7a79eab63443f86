r"""The compiled pass over a mixture of trees whose states overlap: a cell leaves a few states possible.

Messages go from the leaves to the root of each tree, over the states that a row's cells leave, a range of neighbours:

.. math:: u_n(s) = P(x_n \mid s) \prod_c m_c(s), \qquad m_n(s_p) = \sum_s p(s \mid s_p) \, u_n(s),

with c the children of n. From the root to the leaves, an edge has the expected count
:math:`b_p(s_p) \, p(s \mid s_p) \, u_n(s) / m_n(s_p)`, with b_p the belief in the parent's states; its sum over
:math:`s_p` is b_n. An edge takes time with the square of possible states.

The message of a column without children depends on its code alone, so it is looked up in a table made before the pass,
:math:`m_n(s_p) = \sum_s p(s \mid s_p) \, P(x_n \mid s)`. Likewise :math:`b_p(s_p) / m_n(s_p)` is added up for each code
of such a column and :math:`b_p(s_p) \, u_n(s) / m_n(s_p)` for each entry of other edges; what all rows share is
multiplied after the pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray, IntArray
from jointwise.engines.compiled_parts import FAST, count_parts, locked, to_posteriors
from jointwise.engines.threads import in_threads
from jointwise.engines.trees.base import EdgeSums, Forest, TreeComponents
from jointwise.engines.trees.emissions import Emissions, PossibleStates
from jointwise.engines.trees.reference import ReferenceTreeEngine
from jointwise.engines.trees.uncounted import uncounted

# Messages below this count as this, so that an impossible row has a finite log-density; and what is small enough to be
# scaled, or for its logarithm to be taken.
LEAST, SMALL = 1e-280, 1e-20
# Smaller posteriors count as zero: they change a count by less than EM leaves open.
LEAST_SHARE = 1e-9
# Most rows whose messages are computed together, and most places for the states of their cells.
BATCH, PLACES = 16, 1 << 17


class OverlappingTreeEngine(ReferenceTreeEngine):
    """Expected counts of edges by compiled loops; see the module. Pairs, which fits do not count, are summed plainly.

    Parameters
    ----------
    codes, n_bins, weights, emissions
        As those of `ReferenceTreeEngine`.
    n_threads : int, optional
        Largest number of threads of a pass; all of numba's by default.
    """

    def __init__(
        self,
        codes: CodeArray,
        n_bins: Sequence[int],
        weights: FloatArray | None,
        emissions: Emissions,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(codes, n_bins, weights, emissions)
        self._n_threads = n_threads or numba.get_num_threads()
        self._rows = locked(codes), locked(self._weights)
        self._possible = emissions.possible

    def edge_sums(self, components: TreeComponents) -> EdgeSums:
        """Return the expected counts of all edges; see `TreeEngine`."""
        components.forest.check(self._n_bins)
        trees, n = _trees(components, self._possible), len(self._codes)
        n_parts = count_parts(n, trees.tables.nbytes + trees.messages.nbytes)
        edges, codes = np.zeros((n_parts, len(trees.tables))), np.zeros((n_parts, len(trees.messages)))
        totals = np.zeros((n_parts, len(trees.parents)))

        def part(p: int) -> float:
            rows = p * n // n_parts, (p + 1) * n // n_parts
            likelihood: float = _edge_part(
                *self._rows, self._possible, trees, _batch(trees), totals[p], edges[p], codes[p], *rows
            )
            return likelihood

        likelihoods = in_threads(part, n_parts, self._n_threads)
        counts = edges.sum(axis=0)
        _count_leaves(trees, self._possible, codes.sum(axis=0), counts)
        return EdgeSums(totals.sum(axis=0), counts * trees.tables, float(np.sum(likelihoods)))


class _Trees(NamedTuple):
    """The components as the compiled loops see them."""

    log_weights: AnyArray  # (F,)
    parents: AnyArray  # (F, N)
    order: AnyArray  # (F, N): parents before children
    starts: AnyArray  # (F, N): where each table begins
    tables: AnyArray  # probabilities, end to end
    n_states: AnyArray  # (N,)
    leaves: AnyArray  # (F, N): where the messages of a column without children begin, or -1
    messages: AnyArray  # m_n of each code of each such column, (codes, states of the parent), end to end


class _Batch(NamedTuple):
    """What messages say of a few rows: S places for the possible states of each cell in each tree, all flat."""

    codes: AnyArray  # (rows N,): the cells' codes
    lows: AnyArray  # (rows N,): first possible state of each cell
    counts: AnyArray  # (rows N,): possible states of each cell, from the first to the last
    firsts: AnyArray  # (rows N,): where their probabilities of the cell's code begin
    posteriors: AnyArray  # (F, rows): first log-densities with log-weights, then weighted posteriors
    inside: AnyArray  # (F rows N S,): u_n
    up: AnyArray  # (F rows N S,): m_n, for the possible states of the parent
    beliefs: AnyArray  # (N S,): b_n of one row, times its posterior


def _trees(components: TreeComponents, possible: PossibleStates) -> _Trees:
    forest: Forest = components.forest
    leaves, n_messages = _leaf_starts(forest, possible)
    trees = _Trees(
        np.array(components.log_weights),
        np.array(forest.parents),
        np.array(forest.order),
        np.array(forest.starts[:-1]).reshape(forest.parents.shape),
        np.exp(components.logs),
        np.array(forest.n_bins),
        leaves,
        np.empty(n_messages),
    )
    _write_messages(trees, possible)
    return trees


def _leaf_starts(forest: Forest, possible: PossibleStates) -> tuple[IntArray, int]:
    """Return where the messages of each column without children begin, -1 for others, (F, N), and their number."""
    above = np.where(forest.parents < 0, 1, np.array(forest.n_bins)[forest.parents])
    sizes = np.where(forest.has_children, 0, above * np.diff(possible.firsts))
    ends = np.cumsum(sizes).reshape(sizes.shape)
    return np.where(forest.has_children, -1, ends - sizes), int(ends[-1, -1])


def _batch(trees: _Trees) -> _Batch:
    """Return the arrays of a batch; a part of the rows has its own."""
    F, N = trees.parents.shape
    places = N * int(trees.n_states.max())
    size = max(min(BATCH, PLACES // (F * places)), 1)
    codes, lows, counts, firsts = np.empty((4, size * N), dtype=np.int64)
    inside, up = np.empty((2, F * size * places))
    return _Batch(codes, lows, counts, firsts, np.empty((F, size)), inside, up, np.empty(places))


# ---- compiled loops, all in this module: numba's cache does not see when a function of another one changes -----------


@numba.njit(cache=True, nogil=True)
def _write_messages(trees: _Trees, possible: PossibleStates) -> None:
    """Write the messages of all codes of columns without children."""
    F, N = trees.parents.shape
    for r in range(F):
        for n in range(N):
            if trees.leaves[r, n] >= 0:
                p, S = trees.parents[r, n], trees.n_states[n]
                above, place = 1 if p < 0 else trees.n_states[p], trees.leaves[r, n]
                for code in range(possible.firsts[n], possible.firsts[n + 1]):
                    first, count = possible.starts[code], possible.starts[code + 1] - possible.starts[code]
                    for a in range(above):
                        row = trees.starts[r, n] + a * S + possible.lows[code]
                        trees.messages[place] = LEAST
                        for b in range(count):
                            trees.messages[place] += trees.tables[row + b] * possible.values[first + b]
                        place += 1


@numba.njit(cache=True, nogil=True)
def _count_leaves(trees: _Trees, possible: PossibleStates, codes: AnyArray, edges: AnyArray) -> None:
    """Write the sums over rows at the edges to columns without children, from those of their codes."""
    F, N = trees.parents.shape
    for r in range(F):
        for n in range(N):
            if trees.leaves[r, n] >= 0:
                p, S = trees.parents[r, n], trees.n_states[n]
                above, place = 1 if p < 0 else trees.n_states[p], trees.leaves[r, n]
                for code in range(possible.firsts[n], possible.firsts[n + 1]):
                    first, count = possible.starts[code], possible.starts[code + 1] - possible.starts[code]
                    for a in range(above):
                        row = trees.starts[r, n] + a * S + possible.lows[code]
                        for b in range(count):
                            edges[row + b] += codes[place] * possible.values[first + b]
                        place += 1


@numba.njit(cache=True, nogil=True)
def _edge_part(
    codes: AnyArray, weights: AnyArray, possible: PossibleStates, trees: _Trees, batch: _Batch, totals: AnyArray,
    edges: AnyArray, of_codes: AnyArray, begin: int, end: int,
) -> float:  # fmt: skip
    """Take the rows from `begin` to `end`; add to totals (F,), edges and codes of leaves; return the log-likelihood."""
    codes, weights, possible = uncounted(codes), uncounted(weights), uncounted(possible)
    trees, batch, totals = uncounted(trees), uncounted(batch), uncounted(totals)
    edges, of_codes = uncounted(edges), uncounted(of_codes)
    F, size = batch.posteriors.shape
    likelihood = 0.0
    for first in range(begin, end, size):
        n_rows = min(size, end - first)
        _begin_batch(codes[first : first + n_rows], possible, batch)
        for r in range(F):
            _upward(trees, possible, r, n_rows, batch)
        for k in range(n_rows):
            weight = weights[first + k]
            likelihood += weight * to_posteriors(batch.posteriors[:, k], weight)
        for r in range(F):
            for k in range(n_rows):
                posterior = batch.posteriors[r, k]
                batch.posteriors[r, k] = posterior if posterior > LEAST_SHARE * weights[first + k] else 0.0
                totals[r] += batch.posteriors[r, k]
            _downward(trees, r, n_rows, batch, edges, of_codes)
    return likelihood


@numba.njit(cache=True, nogil=True)
def _begin_batch(codes: AnyArray, possible: PossibleStates, batch: _Batch) -> None:
    """Write which states the cells of a few rows leave possible."""
    n_rows, N = codes.shape
    for k in range(n_rows):
        for n in range(N):
            code, at = possible.firsts[n] + np.int64(codes[k, n]), k * N + n
            batch.codes[at], batch.lows[at], batch.firsts[at] = codes[k, n], possible.lows[code], possible.starts[code]
            batch.counts[at] = possible.starts[code + 1] - possible.starts[code]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _upward(trees: _Trees, possible: PossibleStates, r: int, n_rows: int, batch: _Batch) -> None:
    """Write u_n of each cell of the rows, up to a factor, the messages, and the log-densities with the log-weight."""
    # names for all arrays, and no calls that take them: in a loop, counting references would take most of the time
    order, parents, starts, leaves = trees.order[r], trees.parents[r], trees.starts[r], trees.leaves[r]
    tables, messages, n_states, values = trees.tables, trees.messages, trees.n_states, possible.values
    codes, lows, counts, firsts = batch.codes, batch.lows, batch.counts, batch.firsts
    inside, up, logs = batch.inside, batch.up, batch.posteriors[r]
    N, S, size = len(order), len(batch.beliefs) // len(order), batch.posteriors.shape[1]
    for k in range(n_rows):
        cells = k * N
        begin = (r * size + k) * N * S
        for n in range(N):
            if leaves[n] < 0:
                first, own = firsts[cells + n], begin + n * S
                for b in range(counts[cells + n]):
                    inside[np.uint64(own + b)] = values[np.uint64(first + b)]
        log_density, factor = trees.log_weights[r], 1.0
        for place in range(N - 1, -1, -1):
            n = order[place]
            p, leaf, own, count = parents[n], leaves[n], begin + n * S, counts[cells + n]
            if p < 0:
                if leaf >= 0:
                    message = messages[leaf + codes[cells + n]]
                else:
                    message, row = LEAST, starts[n] + lows[cells + n]
                    for b in range(count):
                        message += tables[np.uint64(row + b)] * inside[np.uint64(own + b)]
                    up[own] = message
                factor *= message
            else:
                above, top, n_above = begin + p * S, 0.0, counts[cells + p]
                if leaf >= 0:
                    leaf += codes[cells + n] * n_states[p] + lows[cells + p]
                    for a in range(n_above):
                        product = inside[np.uint64(above + a)] * messages[np.uint64(leaf + a)]
                        inside[np.uint64(above + a)] = product
                        top = max(top, product)
                else:
                    row = starts[n] + lows[cells + p] * n_states[n] + lows[cells + n]
                    for a in range(n_above):
                        message = LEAST
                        for b in range(count):
                            message += tables[np.uint64(row + b)] * inside[np.uint64(own + b)]
                        row += n_states[n]
                        up[np.uint64(own + a)] = message
                        product = inside[np.uint64(above + a)] * message
                        inside[np.uint64(above + a)] = product
                        top = max(top, product)
                if top < SMALL:  # many children, or cells that agree with no state
                    top = max(top, LEAST)
                    for a in range(above, above + n_above):
                        inside[np.uint64(a)] /= top
                    factor *= top
            if factor < SMALL:  # logarithms are slow: take that of many factors at once
                log_density += np.log(factor)
                factor = 1.0
        logs[k] = log_density + np.log(factor)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _downward(trees: _Trees, r: int, n_rows: int, batch: _Batch, edges: AnyArray, of_codes: AnyArray) -> None:
    """Add the rows' posteriors to the edges of a tree, but for their tables, after `_upward`."""
    order, parents, starts, leaves = trees.order[r], trees.parents[r], trees.starts[r], trees.leaves[r]
    tables, messages, n_states = trees.tables, trees.messages, trees.n_states
    codes, lows, counts, posteriors = batch.codes, batch.lows, batch.counts, batch.posteriors[r]
    inside, up, beliefs = batch.inside, batch.up, batch.beliefs
    N, S, size = len(order), len(beliefs) // len(order), batch.posteriors.shape[1]
    for k in range(n_rows):
        if posteriors[k] == 0.0:
            continue
        cells = k * N
        for place in range(N):
            n = order[place]
            p, leaf, own = parents[n], leaves[n], ((r * size + k) * N + n) * S
            if leaf >= 0:
                if p < 0:
                    leaf += codes[cells + n]
                    of_codes[leaf] += posteriors[k] / messages[leaf]
                    continue
                leaf += codes[cells + n] * n_states[p] + lows[cells + p]
                for a in range(counts[cells + p]):
                    of_codes[np.uint64(leaf + a)] += beliefs[np.uint64(p * S + a)] / messages[np.uint64(leaf + a)]
                continue
            stride, row, n_above = n_states[n], starts[n] + lows[cells + n], 1
            if p < 0:
                up[own] = posteriors[k] / up[own]
            else:
                row, n_above = row + lows[cells + p] * stride, counts[cells + p]
                for a in range(n_above):
                    up[np.uint64(own + a)] = beliefs[np.uint64(p * S + a)] / up[np.uint64(own + a)]
            for b in range(counts[cells + n]):
                total, said = 0.0, inside[np.uint64(own + b)]
                for a in range(n_above):
                    share, entry = up[np.uint64(own + a)], np.uint64(row + a * stride + b)
                    total += share * tables[entry]
                    edges[entry] += share * said
                beliefs[np.uint64(n * S + b)] = total * said
