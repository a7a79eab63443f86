r"""The compiled loops over rows of a mixture of trees; `compiled` says which rows, pairs and components they take.

All are in this module, because numba's cache does not see when a function of another one changes.

The missing cells of a row in a tree, parents first, have the positions 0 to m - 1. From the last to the first, with o
its observed children and c its missing ones,

.. math:: u_n(s) = \sum_o \log p(x_o \mid s) + \sum_c m_c(s), \qquad m_n(s_p) = \log \sum_s p(s \mid s_p) e^{u_n(s)}.

A cell whose parent is observed, or that has none, adds its message to the log-density; others send it to the parent.
Sums are over probabilities, scaled by the largest :math:`e^{u_n}`, without a logarithm for each term; only where all
terms are nearly zero are they added as logarithms.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from jointwise._typing import AnyArray
from jointwise.engines.compiled_parts import FAST, LEAST_POSTERIOR, to_posteriors
from jointwise.engines.trees.uncounted import uncounted

# Rows whose posteriors are computed together: their codes stay in the fastest cache.
BATCH = 128
# Smaller sums are added as logarithms: terms that were rounded to zero, each less than 1e-308, might matter.
LEAST_SUM = 1e-280


class Rows(NamedTuple):
    """The rows as the compiled loops see them."""

    codes: AnyArray  # (n, N)
    weights: AnyArray  # (n,), or a single one for all rows
    n_bins: AnyArray  # (N,)


class Trees(NamedTuple):
    """The components as the compiled loops see them."""

    log_weights: AnyArray  # (F,)
    parents: AnyArray  # (F, N)
    ranks: AnyArray  # (F, N): position of each column, parents before children
    child_starts: AnyArray  # (F, N + 1): where the children of each column begin
    children: AnyArray  # (F, N)
    starts: AnyArray  # (F, N): where each padded table begins
    logs: AnyArray  # padded tables of logarithms, end to end
    probabilities: AnyArray  # the same of probabilities


class Pairs(NamedTuple):
    """The asked pairs of columns."""

    columns: AnyArray  # (P, 2)
    starts: AnyArray  # (P + 1,): where each pair begins among the stacked states of all pairs
    node_starts: AnyArray  # (N + 1,): the same of the columns
    positions: AnyArray  # (N, N): position of each pair, or -1


class Gaps(NamedTuple):
    """Arrays for the missing cells of one row; those of states have one place for each state of each missing cell."""

    missing: AnyArray  # (N,): the missing columns of the row
    columns: AnyArray  # (N,): those that matter in a tree, parents first
    where: AnyArray  # (N,): position of each column among them, or -1
    offsets: AnyArray  # (N + 1,): where the states of each begin
    clusters: AnyArray  # (N,): position of the topmost cell that is connected through missing cells
    inside: AnyArray  # (states,): u_n
    beliefs: AnyArray  # (states,): probability of each state given the observed cells
    scaled: AnyArray  # (states,): exp(u_n), divided by the largest of a cell
    conditional: AnyArray  # (largest, largest): probability of a state (second) given the parent's (first)


def scratch(n_bins: AnyArray) -> Gaps:
    """Return the arrays for rows with these numbers of states; a part of the rows has its own."""
    N, states, largest = len(n_bins), n_bins.sum(), n_bins.max()
    missing, columns, clusters = np.empty((3, N), dtype=np.int64)
    where, offsets = np.full(N, -1, dtype=np.int64), np.empty(N + 1, dtype=np.int64)
    inside, beliefs, scaled = np.empty((3, states))
    return Gaps(missing, columns, where, offsets, clusters, inside, beliefs, scaled, np.empty((largest, largest)))


# ---- batches of rows ------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def edge_part(
    rows: Rows, trees: Trees, gaps: Gaps, posteriors: AnyArray, totals: AnyArray, edges: AnyArray, begin: int, end: int
) -> float:
    """Take the rows from `begin` to `end`; fill totals (F,) and padded edges, and return the log-likelihood.

    Posteriors (BATCH, F) are those of a batch.
    """
    rows, trees, gaps, posteriors = uncounted(rows), uncounted(trees), uncounted(gaps), uncounted(posteriors)
    totals, edges = uncounted(totals), uncounted(edges)
    F = len(trees.parents)
    gapped = np.empty(BATCH, dtype=np.bool_)
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
                n_missing = _find_gaps(rows, first + b, gaps)
                for r in range(F):
                    if posteriors[b, r] > 0.0:
                        m = _begin_tree(rows, trees, r, n_missing, False, gaps)
                        _upward(rows, trees, first + b, r, m, gaps)
                        _add_edges(rows, trees, first + b, r, m, posteriors[b, r], gaps, edges)
                        _end_tree(m, gaps)
    return likelihood


@numba.njit(cache=True, nogil=True)
def posterior_part(
    rows: Rows, trees: Trees, gaps: Gaps, begin: int, end: int, posteriors: AnyArray, gapped: AnyArray
) -> float:
    """Write the posteriors of the rows from `begin` to `end`, and which have gaps; return the log-likelihood."""
    rows, trees, gaps, posteriors = uncounted(rows), uncounted(trees), uncounted(gaps), uncounted(posteriors)
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
        n_missing = _find_gaps(rows, first + b, gaps)
        gapped[b] = n_missing > 0
        if n_missing:
            for r in range(F):
                m = _begin_tree(rows, trees, r, n_missing, False, gaps)
                posteriors[b, r] += _upward(rows, trees, first + b, r, m, gaps)
                _end_tree(m, gaps)
        weight = rows.weights[(first + b) * each]
        likelihood += weight * to_posteriors(posteriors[b], weight)
    return likelihood


@numba.njit(cache=True, nogil=True)
def _look_up(rows: Rows, trees: Trees, r: int, first: int, n_rows: int, logs: AnyArray) -> None:
    """Write log lam[r] plus the logarithms of all edges of each row of a batch, as the padded tables have them."""
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
    """Add the posteriors of some rows to the padded edges of their cells."""
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
def count_pairs(
    columns: AnyArray, n_bins: AnyArray, posteriors: AnyArray, pairs: AnyArray, starts: AnyArray, counts: AnyArray
) -> None:
    """Add posteriors (n, F) to the counts of some pairs of columns (N, n); with a missing cell, to those of place 0.

    Each pair takes a batch of rows in turn, whose posteriors stay in the fastest cache.
    """
    n, F = posteriors.shape
    places = np.empty(BATCH, dtype=np.int64)
    for first in range(0, n, BATCH):
        n_rows = min(BATCH, n - first)
        for pair in range(len(pairs)):
            i, j = pairs[pair]
            one, other = columns[i, first : first + n_rows], columns[j, first : first + n_rows]
            start, S_i, S_j = starts[pair], np.int64(n_bins[i]), np.int64(n_bins[j])
            for b in range(n_rows):
                s, t = np.int64(one[b]), np.int64(other[b])
                places[b] = start + s * S_j + t if s < S_i and t < S_j else 0
            for b in range(n_rows):
                sums, own = counts[np.uint64(places[b])], posteriors[first + b]
                for r in range(F):
                    sums[r] += own[r]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def count_nodes(columns: AnyArray, posteriors: AnyArray, starts: AnyArray, nodes: AnyArray) -> None:
    """Add posteriors (n, F) to the counts of the states of columns (N, n), each with a place for "missing"."""
    n, F = posteriors.shape
    for first in range(0, n, BATCH):
        for column in range(len(columns)):
            for row in range(first, min(first + BATCH, n)):
                sums, own = nodes[np.uint64(starts[column] + columns[column, row])], posteriors[row]
                for r in range(F):
                    sums[r] += own[r]


@numba.njit(cache=True, nogil=True)
def has_gaps(rows: Rows) -> bool:
    """Return whether any cell is missing."""
    for i in range(len(rows.codes)):
        for n in range(rows.codes.shape[1]):
            if rows.codes[i, n] >= rows.n_bins[n]:
                return True
    return False


@numba.njit(cache=True, nogil=True)
def missing_states(rows: Rows, where: AnyArray) -> int:
    """Return the largest number of states that the missing cells of one of the rows at `where` have together."""
    most = 0
    for i in where:
        n_states = 0
        for n in range(rows.codes.shape[1]):
            if rows.codes[i, n] >= rows.n_bins[n]:
                n_states += rows.n_bins[n]
        most = max(most, n_states)
    return most


@numba.njit(cache=True, nogil=True)
def count_gaps(
    rows: Rows, trees: Trees, gaps: Gaps, r: int, posteriors: AnyArray, where: AnyArray, joint: AnyArray,
    asked: Pairs, counts: AnyArray, nodes: AnyArray,
) -> None:  # fmt: skip
    """Add the posteriors (n,) of one component to the pairs and nodes with missing cells of the rows at `where`.

    Counts (states, states) are of all states of all columns; those of a pair are in one of two places, or in both.
    """
    rows, trees, gaps, asked = uncounted(rows), uncounted(trees), uncounted(gaps), uncounted(asked)
    joint, counts, nodes = uncounted(joint), uncounted(counts), uncounted(nodes)
    for i in where:
        if posteriors[i] > 0.0:
            m = _begin_tree(rows, trees, r, _find_gaps(rows, i, gaps), True, gaps)
            _upward(rows, trees, i, r, m, gaps)
            _downward(rows, trees, i, r, m, gaps, joint)
            _add_pairs(rows, i, m, posteriors[i], gaps, joint, asked, counts, nodes)
            _end_tree(m, gaps)


# ---- the missing cells of one row in one tree -----------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, inline="always")
def _find_gaps(rows: Rows, i: int, gaps: Gaps) -> int:
    """Write the missing columns of a row and return their number."""
    n_missing = 0
    for n in range(rows.codes.shape[1]):
        if rows.codes[i, n] >= rows.n_bins[n]:
            gaps.missing[n_missing] = n
            n_missing += 1
    return n_missing


@numba.njit(cache=True, nogil=True, inline="always")
def _begin_tree(rows: Rows, trees: Trees, r: int, n_missing: int, leaves: bool, gaps: Gaps) -> int:
    """Sort the missing columns of a row, parents before children, and place their states; return their number, m.

    Without `leaves`, columns that have no children count as observed in the state "missing".
    """
    columns, m = gaps.columns, 0
    for k in range(n_missing):
        column = gaps.missing[k]
        if leaves or trees.child_starts[r, column] < trees.child_starts[r, column + 1]:
            place = m
            while place > 0 and trees.ranks[r, columns[place - 1]] > trees.ranks[r, column]:
                columns[place] = columns[place - 1]
                place -= 1
            columns[place] = column
            m += 1
    gaps.offsets[0] = 0
    for k in range(m):
        gaps.where[columns[k]] = k
        gaps.offsets[k + 1] = gaps.offsets[k] + rows.n_bins[columns[k]]
    return m


@numba.njit(cache=True, nogil=True, inline="always")
def _end_tree(m: int, gaps: Gaps) -> None:
    """Forget the missing columns of a row."""
    for k in range(m):
        gaps.where[gaps.columns[k]] = -1


@numba.njit(cache=True, nogil=True, inline="always")
def _upward(rows: Rows, trees: Trees, i: int, r: int, m: int, gaps: Gaps) -> float:
    """Write u_n of each missing cell; return the logarithm of what all missing cells give to the row's density."""
    where, offsets, inside = gaps.where, gaps.offsets, gaps.inside
    for place in range(offsets[m]):
        inside[place] = 0.0
    log_density = 0.0
    for k in range(m - 1, -1, -1):
        n, own, scaled = gaps.columns[k], inside[offsets[k] : offsets[k + 1]], gaps.scaled[offsets[k] : offsets[k + 1]]
        for place in range(trees.child_starts[r, n], trees.child_starts[r, n + 1]):
            child = trees.children[r, place]
            if where[child] < 0:
                start = trees.starts[r, child] + np.int64(rows.codes[i, child])
                _add_column(trees.logs, start, rows.n_bins[child] + 1, own)
        top = _scale(own, scaled)
        p, start, stride = trees.parents[r, n], trees.starts[r, n], rows.n_bins[n] + 1
        if p < 0:
            log_density += _log_sum(trees.probabilities, trees.logs, start, own, scaled, top)
        elif where[p] < 0:
            start += stride * np.int64(rows.codes[i, p])
            log_density += _log_sum(trees.probabilities, trees.logs, start, own, scaled, top)
        else:
            above = inside[offsets[where[p]] : offsets[where[p] + 1]]
            for s in range(len(above)):
                above[s] += _log_sum(trees.probabilities, trees.logs, start + s * stride, own, scaled, top)
    return log_density


@numba.njit(cache=True, nogil=True)
def _add_column(table: AnyArray, start: int, stride: int, own: AnyArray) -> None:
    """Add a column of a table, whose rows are `stride` apart."""
    for s in range(len(own)):
        own[s] += table[np.uint64(start + s * stride)]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _scale(own: AnyArray, scaled: AnyArray) -> float:
    """Write exp(u), divided by the largest of them, and return the largest u."""
    top: float = own[0]
    for s in range(1, len(own)):
        top = max(top, own[s])
    for s in range(len(own)):
        scaled[s] = np.exp(own[s] - top)
    return top


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _log_sum(probabilities: AnyArray, logs: AnyArray, start: int, own: AnyArray, scaled: AnyArray, top: float) -> float:
    """Return log sum_s p(s) exp(u(s)), p(s) being the row of a table that begins at `start`."""
    total = 0.0
    for s in range(len(own)):
        total += probabilities[np.uint64(start + s)] * scaled[s]
    if total <= LEAST_SUM:
        top, total = -np.inf, 0.0
        for s in range(len(own)):
            top = max(top, logs[start + s] + own[s])
        for s in range(len(own)):
            total += np.exp(logs[start + s] + own[s] - top)
    log_sum: float = top + np.log(total)
    return log_sum


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _normalise(
    probabilities: AnyArray, logs: AnyArray, start: int, own: AnyArray, scaled: AnyArray, out: AnyArray
) -> None:
    """Write p(s) exp(u(s)), divided by their sum, p(s) being the row of a table that begins at `start`."""
    total = 0.0
    for s in range(len(own)):
        out[s] = probabilities[np.uint64(start + s)] * scaled[s]
        total += out[s]
    if total > LEAST_SUM:
        for s in range(len(own)):
            out[s] /= total
    else:
        log_total = _log_sum(probabilities, logs, start, own, scaled, own.max())
        for s in range(len(own)):
            out[s] = np.exp(logs[start + s] + own[s] - log_total)


@numba.njit(cache=True, nogil=True, inline="always")
def _believe(rows: Rows, trees: Trees, i: int, r: int, k: int, gaps: Gaps) -> int:
    """Write the beliefs of the missing cell at position k, and its probabilities given each state of its parent.

    Return where the row of the parent's state begins in the table of the column; if the parent is missing, -1. Only
    then are probabilities given its states written; those given a state that is nearly impossible are zero.
    """
    where, offsets = gaps.where, gaps.offsets
    n, states = gaps.columns[k], slice(offsets[k], offsets[k + 1])
    own, scaled, beliefs = gaps.inside[states], gaps.scaled[states], gaps.beliefs[states]
    p, stride = trees.parents[r, n], rows.n_bins[n] + 1
    start: int = trees.starts[r, n]
    if p < 0 or where[p] < 0:
        if p >= 0:
            start += stride * np.int64(rows.codes[i, p])
        _normalise(trees.probabilities, trees.logs, start, own, scaled, beliefs)
        return start
    above = gaps.beliefs[offsets[where[p]] : offsets[where[p] + 1]]
    for s in range(len(beliefs)):
        beliefs[s] = 0.0
    for state in range(len(above)):
        row = gaps.conditional[state]
        if above[state] > LEAST_POSTERIOR:
            _normalise(trees.probabilities, trees.logs, start + state * stride, own, scaled, row)
            _add_at(above[state], row, 0, beliefs, 0, len(beliefs))
        else:
            row[: len(beliefs)] = 0.0
    return -1


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _add_at(factor: float, terms: AnyArray, begin: int, sums: AnyArray, place: int, length: int) -> None:
    """Add terms from `begin` on, times a factor, to the sums from `place` on; views of them would take longer."""
    for s in range(length):
        sums[np.uint64(place + s)] += factor * terms[np.uint64(begin + s)]


@numba.njit(cache=True, nogil=True, inline="always")
def _add_edges(rows: Rows, trees: Trees, i: int, r: int, m: int, weight: float, gaps: Gaps, edges: AnyArray) -> None:
    """Add a row's posterior to the padded edges above and below its missing cells, after `_upward`."""
    offsets = gaps.offsets
    for k in range(m):
        n, S = gaps.columns[k], offsets[k + 1] - offsets[k]
        start = _believe(rows, trees, i, r, k, gaps)
        beliefs = gaps.beliefs[offsets[k] : offsets[k + 1]]
        if start >= 0:
            _add_at(weight, beliefs, 0, edges, start, S)
        else:
            parent = gaps.where[trees.parents[r, n]]
            above = gaps.beliefs[offsets[parent] : offsets[parent + 1]]
            for state in range(len(above)):
                start = trees.starts[r, n] + state * (S + 1)
                _add_at(weight * above[state], gaps.conditional[state], 0, edges, start, S)
        for place in range(trees.child_starts[r, n], trees.child_starts[r, n + 1]):
            child = trees.children[r, place]
            if gaps.where[child] < 0:
                start, stride = trees.starts[r, child] + np.int64(rows.codes[i, child]), rows.n_bins[child] + 1
                for s in range(S):
                    edges[np.uint64(start + s * stride)] += weight * beliefs[s]


@numba.njit(cache=True, nogil=True)
def _downward(rows: Rows, trees: Trees, i: int, r: int, m: int, gaps: Gaps, joint: AnyArray) -> None:
    """Write the beliefs of all missing cells, and the joint probabilities of those that are connected.

    The path from an earlier cell a to a later one n passes through the parent p of the later one, so that
    J[a, n] = J[a, p] C_n, with C_n the probabilities of n given p.
    """
    offsets, clusters = gaps.offsets, gaps.clusters
    for k in range(m):
        clusters[k] = k
        if _believe(rows, trees, i, r, k, gaps) >= 0:
            continue
        parent = gaps.where[trees.parents[r, gaps.columns[k]]]
        clusters[k] = clusters[parent]
        for a in range(k):
            if clusters[a] != clusters[k]:
                continue
            for s in range(offsets[a], offsets[a + 1]):
                if a == parent:
                    for t in range(offsets[k], offsets[k + 1]):
                        joint[s, t] = gaps.beliefs[s] * gaps.conditional[s - offsets[a], t - offsets[k]]
                else:
                    _chain(joint[s], offsets[parent], offsets[parent + 1], gaps.conditional, offsets[k], offsets[k + 1])
                for t in range(offsets[k], offsets[k + 1]):
                    joint[t, s] = joint[s, t]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _chain(joint: AnyArray, first: int, last: int, conditional: AnyArray, begin: int, end: int) -> None:
    """Write a row of J[a, n] = J[a, p] C_n, from the states of p, first to last, to those of n, begin to end."""
    for t in range(begin, end):
        joint[t] = 0.0
    for s in range(first, last):
        share, row = joint[s], conditional[s - first]
        for t in range(begin, end):
            joint[t] += share * row[t - begin]


@numba.njit(cache=True, nogil=True)
def _add_pairs(
    rows: Rows, i: int, m: int, weight: float, gaps: Gaps, joint: AnyArray, asked: Pairs, counts: AnyArray,
    nodes: AnyArray,
) -> None:  # fmt: skip
    """Add a row's posterior to the pairs with missing cells and to their nodes, after `_downward`.

    The states of a missing cell are columns of the counts, so that they are added side by side.
    """
    codes, starts, positions = rows.codes, asked.node_starts, asked.positions
    where, offsets, clusters, beliefs = gaps.where, gaps.offsets, gaps.clusters, gaps.beliefs
    flat, flat_joint, width = counts.reshape(-1), joint.reshape(-1), len(nodes)
    for k in range(m):
        n, own, S = gaps.columns[k], offsets[k], offsets[k + 1] - offsets[k]
        _add_at(weight, beliefs, own, nodes, starts[n], S)
        for other in range(codes.shape[1]):
            a = where[other]
            if positions[n, other] < 0 or a >= k:  # two missing cells are added once
                continue
            place = starts[other] * width + starts[n]
            if a < 0:
                _add_at(weight, beliefs, own, flat, place + width * np.int64(codes[i, other]), S)
                continue
            for s in range(offsets[a], offsets[a + 1]):
                if clusters[a] == clusters[k]:
                    _add_at(weight, flat_joint, s * len(joint) + own, flat, place, S)
                else:
                    _add_at(weight * beliefs[s], beliefs, own, flat, place, S)
                place += width
