r"""Missing cells of one row in one tree, compiled by numba: messages among them, and their joint probabilities.

The missing cells of a row, parents first, have the positions 0 to m - 1. From the last to the first, with o its
observed children and c its missing ones,

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
from jointwise.engines.compiled_parts import FAST, LEAST_POSTERIOR

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
    logs: AnyArray  # padded tables, end to end; zero for "missing"
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


@numba.njit(cache=True, nogil=True)
def scratch(n_bins: AnyArray) -> Gaps:
    """Return the arrays for rows with these numbers of states."""
    N, states, largest = len(n_bins), n_bins.sum(), n_bins.max()
    ints = np.empty((3, N), dtype=np.int64)
    return Gaps(
        ints[0], ints[1], np.full(N, -1, dtype=np.int64), np.empty(N + 1, dtype=np.int64), ints[2], np.empty(states),
        np.empty(states), np.empty(states), np.empty((largest, largest)),
    )  # fmt: skip


@numba.njit(cache=True, nogil=True, inline="always")
def find_gaps(rows: Rows, i: int, gaps: Gaps) -> int:
    """Write the missing columns of a row and return their number."""
    n_missing = 0
    for n in range(rows.codes.shape[1]):
        if rows.codes[i, n] >= rows.n_bins[n]:
            gaps.missing[n_missing] = n
            n_missing += 1
    return n_missing


@numba.njit(cache=True, nogil=True, inline="always")
def begin_tree(rows: Rows, trees: Trees, r: int, n_missing: int, leaves: bool, gaps: Gaps) -> int:
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
def end_tree(m: int, gaps: Gaps) -> None:
    """Forget the missing columns of a row."""
    for k in range(m):
        gaps.where[gaps.columns[k]] = -1


@numba.njit(cache=True, nogil=True, inline="always")
def upward(rows: Rows, trees: Trees, i: int, r: int, m: int, gaps: Gaps) -> float:
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
            _add_scaled(above[state], row, beliefs)
        else:
            row[: len(beliefs)] = 0.0
    return -1


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _add_scaled(factor: float, terms: AnyArray, sums: AnyArray) -> None:
    """Add some terms times a factor."""
    for s in range(len(sums)):
        sums[s] += factor * terms[s]


@numba.njit(cache=True, nogil=True, inline="always")
def add_edges(rows: Rows, trees: Trees, i: int, r: int, m: int, weight: float, gaps: Gaps, edges: AnyArray) -> None:
    """Add a row's posterior to the padded edges above and below its missing cells, after `upward`."""
    offsets = gaps.offsets
    for k in range(m):
        n, S = gaps.columns[k], offsets[k + 1] - offsets[k]
        start = _believe(rows, trees, i, r, k, gaps)
        beliefs = gaps.beliefs[offsets[k] : offsets[k + 1]]
        if start >= 0:
            _add_scaled(weight, beliefs, edges[start : start + S])
        else:
            parent = gaps.where[trees.parents[r, n]]
            above = gaps.beliefs[offsets[parent] : offsets[parent + 1]]
            for state in range(len(above)):
                start = trees.starts[r, n] + state * (S + 1)
                _add_scaled(weight * above[state], gaps.conditional[state], edges[start : start + S])
        for place in range(trees.child_starts[r, n], trees.child_starts[r, n + 1]):
            child = trees.children[r, place]
            if gaps.where[child] < 0:
                start, stride = trees.starts[r, child] + np.int64(rows.codes[i, child]), rows.n_bins[child] + 1
                for s in range(S):
                    edges[np.uint64(start + s * stride)] += weight * beliefs[s]


@numba.njit(cache=True, nogil=True)
def downward(rows: Rows, trees: Trees, i: int, r: int, m: int, gaps: Gaps, joint: AnyArray) -> None:
    """Write the beliefs of all missing cells, and the joint probabilities of those that are connected.

    The path from an earlier cell a to a later one n passes through the parent p of the later one, so that
    J[a, n] = J[a, p] C_n, the probabilities of n given p.
    """
    for k in range(m):
        if _believe(rows, trees, i, r, k, gaps) >= 0:
            gaps.clusters[k] = k
            continue
        parent = gaps.where[trees.parents[r, gaps.columns[k]]]
        gaps.clusters[k] = gaps.clusters[parent]
        own = slice(gaps.offsets[k], gaps.offsets[k + 1])
        n_above = gaps.offsets[parent + 1] - gaps.offsets[parent]
        for a in range(k):
            if gaps.clusters[a] != gaps.clusters[k]:
                continue
            for s in range(gaps.offsets[a], gaps.offsets[a + 1]):
                if a == parent:
                    joint[s, own] = gaps.beliefs[s] * gaps.conditional[s - gaps.offsets[a], : own.stop - own.start]
                else:
                    _chain(joint[s], gaps.offsets[parent], n_above, gaps.conditional, own.start, own.stop)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _chain(joint: AnyArray, above: int, n_above: int, conditional: AnyArray, begin: int, end: int) -> None:
    """Write a row of J[a, n] = J[a, p] C_n: from the states of p, which begin at `above`, to those of n."""
    for s in range(begin, end):
        joint[s] = 0.0
    for state in range(n_above):
        share, row = joint[above + state], conditional[state]
        for s in range(begin, end):
            joint[s] += share * row[s - begin]


@numba.njit(cache=True, nogil=True)
def add_pairs(
    rows: Rows, i: int, m: int, weight: float, gaps: Gaps, joint: AnyArray, asked: Pairs, counts: AnyArray,
    nodes: AnyArray,
) -> None:  # fmt: skip
    """Add a row's posterior to the pairs with missing cells and to their nodes, after `downward`."""
    for k in range(m):
        n, beliefs = gaps.columns[k], gaps.beliefs[gaps.offsets[k] : gaps.offsets[k + 1]]
        S, start = rows.n_bins[n], asked.node_starts[n]
        for s in range(S):
            nodes[start + s] += weight * beliefs[s]
        for other in range(rows.codes.shape[1]):
            a, pair = gaps.where[other], asked.positions[n, other]
            if pair < 0 or a >= k:  # pairs of two missing cells are added once
                continue
            T, start = rows.n_bins[other], asked.starts[pair]
            # steps of the place from one state to the next, of this column and of the other
            step, other_step = (1, S) if other < n else (T, 1)
            if a < 0:
                start += other_step * np.int64(rows.codes[i, other])
                for s in range(S):
                    counts[start + step * s] += weight * beliefs[s]
                continue
            connected = gaps.clusters[a] == gaps.clusters[k]
            for t in range(T):
                place, below = start + other_step * t, gaps.offsets[a] + t
                if connected:
                    for s in range(S):
                        counts[place + step * s] += weight * joint[below, gaps.offsets[k] + s]
                else:
                    share = weight * gaps.beliefs[below]
                    for s in range(S):
                        counts[place + step * s] += share * beliefs[s]
