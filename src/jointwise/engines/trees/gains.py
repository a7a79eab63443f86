r"""Passes over the tables of all pairs of columns, compiled by numba: gaps filled, and what a tree gains by a pair.

The tables of pairs lie one after the other, each row-major; see `base.pair_starts`.
"""

from __future__ import annotations

import numba
import numpy as np

from jointwise._typing import AnyArray, FloatArray, IntArray
from jointwise.engines.base import bin_starts
from jointwise.engines.compiled_parts import locked
from jointwise.engines.trees.base import pair_starts

# Shares of rows below this are rounding.
ROUNDING = 1e-12


def filled_tables(
    counts: AnyArray, n_bins: IntArray, pairs: IntArray, single: FloatArray, means: FloatArray, n_rows: float
) -> FloatArray:
    """Return shares of pairs of states in all rows, where a missing cell counts as each state by its share; (E,).

    Parameters
    ----------
    counts : array of shape (I, I)
        Rows that have both of two states, the states of all columns stacked.
    n_bins : array of shape (N,)
    pairs : array of shape (P, 2)
    single : array of shape (I,)
        Rows with each state.
    means : array of shape (I,)
        Shares of the states of each column.
    n_rows : float
        Rows in all.

    Examples
    --------
    Two of three rows have both cells; in the third the second is missing.

    >>> counts = np.array([[2, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    >>> halves = np.array([2 / 3, 1 / 3, 0.5, 0.5])
    >>> filled_tables(counts, np.array([2, 2]), np.array([[0, 1]]), np.array([2.0, 1, 1, 1]), halves, 3.0).round(3)
    array([0.5  , 0.167, 0.   , 0.333])
    """
    tables = np.empty(int(pair_starts(n_bins.tolist(), pairs)[-1]))
    starts = bin_starts(n_bins.tolist())
    _fill(locked(counts), locked(starts), locked(pairs), locked(single), locked(means), n_rows, tables)
    return tables


@numba.njit(cache=True, nogil=True)
def _fill(
    counts: AnyArray, starts: AnyArray, pairs: AnyArray, single: AnyArray, means: AnyArray, n_rows: float,
    tables: AnyArray,
) -> None:  # fmt: skip
    largest = np.diff(starts).max()
    gone_own, gone_other = np.empty(largest), np.empty(largest)  # rows with a state, the other column missing
    e = 0
    for p in range(len(pairs)):
        own, own_end = starts[pairs[p, 0]], starts[pairs[p, 0] + 1]
        other, other_end = starts[pairs[p, 1]], starts[pairs[p, 1] + 1]
        seen, own_rows, other_rows = 0.0, 0.0, 0.0
        gone_other[:] = 0.0
        for a in range(own, own_end):
            held = 0.0
            for b in range(other, other_end):
                held += counts[a, b]
                gone_other[b - other] += counts[a, b]
                tables[e + b - other] = counts[a, b] / n_rows
            e += other_end - other
            gone_own[a - own] = max(single[a] - held, 0.0)
            seen += held
            own_rows += single[a]
        if seen >= n_rows * (1.0 - ROUNDING):
            continue
        for b in range(other, other_end):
            gone_other[b - other] = max(single[b] - gone_other[b - other], 0.0)
            other_rows += single[b]
        neither = max(n_rows - own_rows - other_rows + seen, 0.0)
        e -= (own_end - own) * (other_end - other)
        for a in range(own, own_end):
            for b in range(other, other_end):
                added = gone_own[a - own] * means[b] + gone_other[b - other] * means[a] + neither * means[a] * means[b]
                tables[e] += added / n_rows
                e += 1


def pair_information(tables: FloatArray, n_bins: IntArray, pairs: IntArray, means: FloatArray) -> FloatArray:
    """Return the mutual information in the table of each pair, whose margins are ``means`` (I,); shape (P,).

    Examples
    --------
    >>> halves = np.full(4, 0.5)
    >>> pair_information(np.array([0.5, 0.0, 0.0, 0.5]), np.array([2, 2]), np.array([[0, 1]]), halves).round(3)
    array([0.693])
    """
    found = np.zeros(len(pairs))
    _inform(locked(tables), locked(bin_starts(n_bins.tolist())), locked(pairs), locked(means), found)
    return found


@numba.njit(cache=True, nogil=True)
def _inform(tables: AnyArray, starts: AnyArray, pairs: AnyArray, means: AnyArray, found: AnyArray) -> None:
    e = 0
    for p in range(len(pairs)):
        for a in range(starts[pairs[p, 0]], starts[pairs[p, 0] + 1]):
            for b in range(starts[pairs[p, 1]], starts[pairs[p, 1] + 1]):
                if tables[e] > 0.0:
                    found[p] += tables[e] * np.log(tables[e] / (means[a] * means[b]))
                e += 1


def joint_sums(
    counts: FloatArray, tables: FloatArray, n_bins: IntArray, pairs: IntArray, margins: FloatArray, prior: AnyArray
) -> FloatArray:
    r"""Return :math:`\sum_{ab} x_{ab} \log x_{ab}` of each pair and component; shape (P, F).

    .. math:: x_{ab} = N_{ab} + \gamma Q_{ab} + \alpha q_a q_b

    Parameters
    ----------
    counts : array of shape (E, F)
        Expected counts N of each component.
    tables : array of shape (E,)
        Tables Q of the pairs in the whole table of rows.
    n_bins : array of shape (N,)
    pairs : array of shape (P, 2)
    margins : array of shape (I,)
        q, positive.
    prior : array of shape (2,)
        gamma, which may be zero, and alpha, which is positive.

    Examples
    --------
    >>> two, one = np.array([1, 1]), np.ones(2)
    >>> joint_sums(np.ones((1, 2)), np.ones(1), two, np.array([[0, 1]]), one, np.array([0.0, 1.0])).round(3)
    array([[1.386, 1.386]])
    """
    sums = np.zeros((len(pairs), counts.shape[1]))
    starts = bin_starts(n_bins.tolist())
    _sum(locked(counts), locked(tables), locked(starts), locked(pairs), locked(margins), locked(prior), sums)
    return sums


@numba.njit(cache=True, nogil=True)
def _sum(
    counts: AnyArray, tables: AnyArray, starts: AnyArray, pairs: AnyArray, margins: AnyArray, prior: AnyArray,
    sums: AnyArray,
) -> None:  # fmt: skip
    e = 0
    for p in range(len(pairs)):
        for a in range(starts[pairs[p, 0]], starts[pairs[p, 0] + 1]):
            for b in range(starts[pairs[p, 1]], starts[pairs[p, 1] + 1]):
                known = prior[0] * tables[e] + prior[1] * margins[a] * margins[b]
                for r in range(counts.shape[1]):
                    x = counts[e, r] + known
                    sums[p, r] += x * np.log(x)
                e += 1
