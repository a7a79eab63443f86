"""Shares of sets of a column given sets of another, compared with a model's answers, compiled by numba.

A check of a wide table compares millions of shares, nearly all of which noise explains. One call takes a column with
all others that it is compared with, and marks the few that are worth a closer look.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from jointwise._typing import AnyArray, BoolArray, FloatArray, IntArray
from jointwise.engines.compiled_parts import FAST, locked


@dataclass(frozen=True, eq=False)
class SetsOfColumns:
    """Rows in cells, and the sets of cells of each of N columns whose shares are compared, E in all.

    Parameters
    ----------
    codes : array of shape (N, n)
        Cell of each row; for a gap, the number of the column's cells.
    n_cells : array of shape (N,)
    weights : array of shape (n,)
    first : array of shape (N + 1,)
        Where the sets of each column begin, and the number of all.
    members : array
        Cells of each set, one set after another.
    ends : array of shape (E,)
        Where the cells of each set end.

    Examples
    --------
    Three rows; both columns have two cells and one set, the first cell.

    >>> codes = np.array([[0, 0, 1], [0, 1, 2]])
    >>> sets = SetsOfColumns(codes, np.array([2, 2]), np.ones(3), np.arange(3), np.zeros(2, int), np.array([1, 2]))
    >>> hits, totals, _ = sets.compared(0, np.array([1]), np.eye(2), np.array([[0.5, 0.5]]), 4.0, 1.0)
    >>> hits, totals
    (array([[1., 0.]]), array([[2., 0.]]))
    """

    codes: IntArray
    n_cells: IntArray
    weights: FloatArray
    first: IntArray
    members: IntArray
    ends: IntArray

    def compared(
        self, column: int, others: IntArray, given: FloatArray, answers: FloatArray, z2: float, least: float
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Count the rows of each set of the other columns given each set of a column, and mark where answers are off.

        Parameters
        ----------
        column : int
        others : array of shape (O,)
        given : array of shape (G, K)
            Indicators of the cells of each set of the column.
        answers : array of shape (E', G)
            Probability of each of the other columns' sets given each set of the column.
        z2 : float
            Squared half width of a confidence interval, in squared standard errors of one row.
        least : float
            Fewest rows of a condition.

        Returns
        -------
        hits : array of shape (E', G)
        totals : array of shape (O, G)
            Rows of each set of the column that have no gap in the other one.
        beyond : array of shape (E', G)
            Whether an answer is outside Wilson's interval around the share, and the condition has enough rows.
        """
        padded = np.hstack([given, np.zeros((len(given), 1))])  # gaps are in no set
        hits, totals = np.empty(answers.shape), np.empty((len(others), len(given)))
        beyond = np.empty(answers.shape, dtype=np.bool_)
        _compare(
            self.codes[column], locked(self.codes), locked(self.n_cells), locked(self.weights), locked(self.first),
            locked(self.members), locked(self.ends), locked(others), locked(padded.T), locked(answers), z2, least, hits,
            totals, beyond,
        )  # fmt: skip
        return hits, totals, beyond


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _compare(
    own: AnyArray, codes: AnyArray, n_cells: AnyArray, weights: AnyArray, first: AnyArray, members: AnyArray,
    ends: AnyArray, others: AnyArray, given: AnyArray, answers: AnyArray, z2: float, least: float, hits: AnyArray,
    totals: AnyArray, beyond: AnyArray,
) -> None:  # fmt: skip
    n_own, n_given = given.shape
    counts = np.empty((n_cells.max() + 1, n_own))
    held = np.empty((len(counts), n_given))
    e = 0
    for o in range(len(others)):
        other = others[o]
        n_here = n_cells[other]
        counts[: n_here + 1] = 0.0
        for i in range(len(own)):
            counts[codes[other, i], own[i]] += weights[i]
        np.dot(counts[: n_here + 1], given, held[: n_here + 1])
        for g in range(n_given):
            totals[o, g] = 0.0
        for cell in range(n_here):
            for g in range(n_given):
                totals[o, g] += held[cell, g]
        for event in range(first[other], first[other + 1]):
            for g in range(n_given):
                hits[e, g] = 0.0
            for place in range(ends[event - 1] if event else 0, ends[event]):
                for g in range(n_given):
                    hits[e, g] += held[members[place], g]
            for g in range(n_given):  # the score test of a share, without divisions
                p = min(max(answers[e, g], 0.0), 1.0)
                expected = p * totals[o, g]
                distance = hits[e, g] - expected
                beyond[e, g] = (distance * distance > expected * (1.0 - p) * z2) & (totals[o, g] >= least)
            e += 1
