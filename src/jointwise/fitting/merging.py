"""Bins that tell nearly the same about atoms, merged for EM.

EM sees a bin only through the shares that atoms have of it. Where neighbouring bins have the same shares, their rows
have the same posteriors, whatever the coefficients: such bins are as good as one. Bins are made before the dictionary
is known, and most are far narrower than its atoms, so EM on merged bins costs a third and ends in the same place. What
is compared or reported is computed on the bins themselves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jointwise._typing import IntArray
from jointwise.axes import Axis, BinnedAxis
from jointwise.engines.atoms import Masses, Places
from jointwise.rows.base import Rows
from jointwise.solvers import RowsProblem

# Neighbouring bins are merged while the shares of atoms differ by less than this in total variation.
SAME_SHARES = 0.1
# With more rows, bins stay as they are: passes over rows then take the time, and a second copy of the codes memory.
MERGED_ROWS = 50_000


def merged_bins(rows: Rows, problem: RowsProblem, most_apart: float = SAME_SHARES) -> tuple[Rows, RowsProblem]:
    """Return rows and their problem with neighbouring bins merged; as they are if rows are many.

    Parameters
    ----------
    rows : Rows
    problem : RowsProblem
        Of these rows.
    most_apart : float
        Largest total variation between the shares of atoms of bins that are merged.
    """
    if len(rows) > MERGED_ROWS:
        return rows, problem
    firsts = [first_bins(axis, masses, most_apart) for axis, masses in zip(rows.axes, problem.masses, strict=True)]
    merged = rows.regrouped([_merged_axis(axis, first) for axis, first in zip(rows.axes, firsts, strict=True)])
    masses = tuple(_merged_masses(d, first) for d, first in zip(problem.masses, firsts, strict=True))
    return merged, replace(problem, masses=masses, rows=merged.engine())


def first_bins(axis: Axis, masses: Masses, most_apart: float) -> IntArray:
    """Return the first bin of each group of bins that are merged, rising; spikes and single values stay alone.

    Distances of neighbours add up within a group, so no two bins of a group are further apart than `most_apart`.

    Examples
    --------
    >>> first_bins(BinnedAxis([0.0, 1.0, 2.0]), np.array([[0.1, 0.0], [0.4, 0.0], [0.2, 0.2], [0.3, 0.8]]), 0.2)
    array([0, 2, 3])
    """
    if isinstance(masses, Places) or not isinstance(axis, BinnedAxis):
        return np.arange(axis.n_bins)
    intervals = masses[: axis.n_intervals]
    totals = intervals.sum(axis=1, keepdims=True)
    shares = np.divide(intervals, totals, out=np.zeros(intervals.shape), where=totals > 0)
    apart = np.abs(np.diff(shares, axis=0)).sum(axis=1) / 2
    group = np.floor(np.concatenate([[0.0], np.cumsum(apart)]) / most_apart)
    return np.concatenate([[0], 1 + np.flatnonzero(np.diff(group)), np.arange(axis.n_intervals, axis.n_bins)])


def _merged_axis(axis: Axis, first: IntArray) -> Axis:
    if len(first) == axis.n_bins:
        return axis
    assert isinstance(axis, BinnedAxis)  # others have no bins to merge
    cuts = first[(first > 0) & (first < axis.n_intervals)]
    return BinnedAxis(axis.edges[cuts - 1], axis.spikes)


def _merged_masses(masses: Masses, first: IntArray) -> Masses:
    if isinstance(masses, Places) or len(first) == len(masses):
        return masses
    return np.add.reduceat(masses, first, axis=0)
