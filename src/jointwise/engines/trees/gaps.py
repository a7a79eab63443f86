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

    columns: AnyArray  # (N,): the missing columns; in a tree, parents first
    where: AnyArray  # (N,): position of each column among them, or -1
    offsets: AnyArray  # (N + 1,): where the states of each begin
    clusters: AnyArray  # (N,): position of the topmost cell that is connected through missing cells
    inside: AnyArray  # (states,): u_n
    beliefs: AnyArray  # (states,): probability of each state given the observed cells
    scaled: AnyArray  # (largest number of states,): exp(u_n) of one cell, the largest being 1
    conditional: AnyArray  # (largest, largest): probability of a state (second) given the parent's (first)


@numba.njit(cache=True, nogil=True)
def scratch(n_bins: AnyArray) -> Gaps:
    """Return the arrays for rows with these numbers of states."""
    N, states, largest = len(n_bins), n_bins.sum(), n_bins.max()
    return Gaps(
        np.empty(N, dtype=np.int64), np.full(N, -1, dtype=np.int64), np.empty(N + 1, dtype=np.int64),
        np.empty(N, dtype=np.int64), np.empty(states), np.empty(states), np.empty(largest),
        np.empty((largest, largest)),
    )  # fmt: skip


@numba.njit(cache=True, nogil=True)
def find_gaps(rows: Rows, i: int, gaps: Gaps) -> int:
    """Write the missing columns of a row and return their number, m."""
    m = 0
    for n in range(rows.codes.shape[1]):
        if rows.codes[i, n] >= rows.n_bins[n]:
            gaps.columns[m] = n
            m += 1
    return m


@numba.njit(cache=True, nogil=True)
def begin_tree(rows: Rows, trees: Trees, r: int, m: int, gaps: Gaps) -> None:
    """Sort the missing columns of a row, parents before children, and place their states."""
    columns, ranks = gaps.columns, trees.ranks[r]
    for k in range(1, m):
        column, place = columns[k], k
        while place > 0 and ranks[columns[place - 1]] > ranks[column]:
            columns[place] = columns[place - 1]
            place -= 1
        columns[place] = column
    gaps.offsets[0] = 0
    for k in range(m):
        gaps.where[columns[k]] = k
        gaps.offsets[k + 1] = gaps.offsets[k] + rows.n_bins[columns[k]]


@numba.njit(cache=True, nogil=True)
def end_row(m: int, gaps: Gaps) -> None:
    """Forget the missing columns of a row."""
    for k in range(m):
        gaps.where[gaps.columns[k]] = -1


@numba.njit(cache=True, nogil=True)
def upward(rows: Rows, trees: Trees, i: int, r: int, m: int, gaps: Gaps) -> float:
    """Write u_n of each missing cell; return the logarithm of what all missing cells give to the row's density."""
    gaps.inside[: gaps.offsets[m]] = 0.0
    log_density = 0.0
    for k in range(m - 1, -1, -1):
        n, own = gaps.columns[k], gaps.inside[gaps.offsets[k] : gaps.offsets[k + 1]]
        for child in trees.children[r, trees.child_starts[r, n] : trees.child_starts[r, n + 1]]:
            if gaps.where[child] < 0:
                code = np.int64(rows.codes[i, child])
                for s in range(len(own)):
                    own[s] += trees.logs[_table_row(rows, trees, r, child, s) + code]
        top = _scale(own, gaps.scaled)
        p = trees.parents[r, n]
        if p >= 0 and gaps.where[p] >= 0:
            above = gaps.inside[gaps.offsets[gaps.where[p]] : gaps.offsets[gaps.where[p] + 1]]
            for s in range(len(above)):
                above[s] += _log_sum(trees, _table_row(rows, trees, r, n, s), own, gaps.scaled, top)
        else:
            log_density += _log_sum(trees, _observed_row(rows, trees, i, r, n), own, gaps.scaled, top)
    return log_density


@numba.njit(cache=True, nogil=True)
def _table_row(rows: Rows, trees: Trees, r: int, n: int, state: int) -> int:
    """Return where the row of a parent's state begins in the table of column n."""
    start: int = trees.starts[r, n] + np.int64(state) * (rows.n_bins[n] + 1)
    return start


@numba.njit(cache=True, nogil=True)
def _observed_row(rows: Rows, trees: Trees, i: int, r: int, n: int) -> int:
    """Return where the row of the parent's observed state begins; a root's table has one row."""
    p = trees.parents[r, n]
    return _table_row(rows, trees, r, n, rows.codes[i, p] if p >= 0 else 0)


@numba.njit(cache=True, nogil=True)
def _scale(own: AnyArray, scaled: AnyArray) -> float:
    """Write exp(u), divided by the largest of them, and return the largest u."""
    top: float = own.max()
    for s in range(len(own)):
        scaled[s] = np.exp(own[s] - top)
    return top


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _log_sum(trees: Trees, start: int, own: AnyArray, scaled: AnyArray, top: float) -> float:
    """Return log sum_s p(s) exp(u(s)), p(s) being the row of a table that begins at `start`."""
    total = 0.0
    for s in range(len(own)):
        total += trees.probabilities[start + s] * scaled[s]
    if total <= LEAST_SUM:
        top, total = -np.inf, 0.0
        for s in range(len(own)):
            top = max(top, trees.logs[start + s] + own[s])
        for s in range(len(own)):
            total += np.exp(trees.logs[start + s] + own[s] - top)
    log_sum: float = top + np.log(total)
    return log_sum


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _normalise(trees: Trees, start: int, own: AnyArray, scaled: AnyArray, out: AnyArray) -> None:
    """Write p(s) exp(u(s)), divided by their sum, p(s) being the row of a table that begins at `start`."""
    total = 0.0
    for s in range(len(own)):
        out[s] = trees.probabilities[start + s] * scaled[s]
        total += out[s]
    if total > LEAST_SUM:
        for s in range(len(own)):
            out[s] /= total
    else:
        log_total = _log_sum(trees, start, own, scaled, own.max())
        for s in range(len(own)):
            out[s] = np.exp(trees.logs[start + s] + own[s] - log_total)


@numba.njit(cache=True, nogil=True)
def _believe(rows: Rows, trees: Trees, i: int, r: int, k: int, gaps: Gaps) -> int:
    """Write the beliefs of the missing cell at position k, and its probabilities given each state of its parent.

    Return the position of the parent among the missing cells; if it is not among them, -1, and the first row of the
    probabilities holds the beliefs. States of the parent that are nearly impossible have rows of zeros.
    """
    n, states = gaps.columns[k], slice(gaps.offsets[k], gaps.offsets[k + 1])
    own, beliefs = gaps.inside[states], gaps.beliefs[states]
    _scale(own, gaps.scaled)
    p = trees.parents[r, n]
    if p < 0 or gaps.where[p] < 0:
        _normalise(trees, _observed_row(rows, trees, i, r, n), own, gaps.scaled, gaps.conditional[0])
        beliefs[:] = gaps.conditional[0, : len(beliefs)]
        return -1
    above = gaps.beliefs[gaps.offsets[gaps.where[p]] : gaps.offsets[gaps.where[p] + 1]]
    beliefs[:] = 0.0
    for state in range(len(above)):
        row = gaps.conditional[state, : len(beliefs)]
        if above[state] > LEAST_POSTERIOR:
            _normalise(trees, _table_row(rows, trees, r, n, state), own, gaps.scaled, row)
            for s in range(len(beliefs)):
                beliefs[s] += above[state] * row[s]
        else:
            row[:] = 0.0
    position: int = gaps.where[p]
    return position


@numba.njit(cache=True, nogil=True)
def add_edges(rows: Rows, trees: Trees, i: int, r: int, m: int, weight: float, gaps: Gaps, edges: AnyArray) -> None:
    """Add a row's posterior to the padded edges above and below its missing cells, after `upward`."""
    for k in range(m):
        n = gaps.columns[k]
        parent = _believe(rows, trees, i, r, k, gaps)
        beliefs = gaps.beliefs[gaps.offsets[k] : gaps.offsets[k + 1]]
        if parent < 0:
            start = _observed_row(rows, trees, i, r, n)
            for s in range(len(beliefs)):
                edges[start + s] += weight * beliefs[s]
        else:
            above = gaps.beliefs[gaps.offsets[parent] : gaps.offsets[parent + 1]]
            for state in range(len(above)):
                start, share = _table_row(rows, trees, r, n, state), weight * above[state]
                for s in range(len(beliefs)):
                    edges[start + s] += share * gaps.conditional[state, s]
        for child in trees.children[r, trees.child_starts[r, n] : trees.child_starts[r, n + 1]]:
            if gaps.where[child] < 0:
                code = np.int64(rows.codes[i, child])
                for s in range(len(beliefs)):
                    edges[_table_row(rows, trees, r, child, s) + code] += weight * beliefs[s]


@numba.njit(cache=True, nogil=True)
def downward(rows: Rows, trees: Trees, i: int, r: int, m: int, gaps: Gaps, joint: AnyArray) -> None:
    """Write the beliefs of all missing cells, and the joint probabilities of those that are connected.

    The path from an earlier cell a to a later one n passes through the parent p of the later one, so that
    J[a, n] = J[a, p] C_n, the probabilities of n given p.
    """
    for k in range(m):
        parent = _believe(rows, trees, i, r, k, gaps)
        if parent < 0:
            gaps.clusters[k] = k
            continue
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
