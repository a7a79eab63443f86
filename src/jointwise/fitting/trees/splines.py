r"""Smooth atoms of a column: splines of its own 1-D fit, as laws of fine bins.

With F the cdf of the column's 1-D fit f, atom l has the density :math:`f(x) \, b_l(F(x))`, where the :math:`b_l` are
quadratic B-splines on [0, 1], each of area one. A fine bin c has the probability :math:`\int_c b_l(u) \, du`, and
within it the density keeps the shape of f. Mixed with the right weights the atoms are f itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline

from jointwise._typing import FloatArray, IntArray

DEGREE = 2
# Knots that are closer than this, in shares of the rows, are one.
LEAST_KNOT = 1e-6
# The area under a spline in a bin with less mass than this is that of its value in the middle: the difference of two
# areas would have lost its digits.
LEAST_MASS = 1e-7


class Splines(NamedTuple):
    """Atoms of a column as laws of its fine bins.

    Attributes
    ----------
    table : array of shape (L, C)
        Probability of each fine bin under each atom.
    weights : array of shape (L,)
        Of the mixture of atoms that is the 1-D fit.
    """

    table: FloatArray
    weights: FloatArray


def splines(masses: FloatArray, knots: IntArray) -> Splines:
    """Return the splines with knots between some of the fine bins.

    Parameters
    ----------
    masses : array of shape (C,)
        Mass of each fine bin under the 1-D fit, positive; they need not sum to one.
    knots : array
        Bins that begin at a knot.

    Examples
    --------
    >>> found = splines(np.full(4, 0.25), np.array([2]))
    >>> found.table.round(3)
    array([[0.875, 0.125, 0.   , 0.   ],
           [0.281, 0.469, 0.219, 0.031],
           [0.031, 0.219, 0.469, 0.281],
           [0.   , 0.   , 0.125, 0.875]])
    >>> found.weights @ found.table
    array([0.25, 0.25, 0.25, 0.25])
    """
    masses = masses / masses.sum()
    ends = np.append(0.0, np.cumsum(masses))
    inner = _apart(ends[knots])
    t = np.concatenate([np.zeros(DEGREE + 1), inner, np.ones(DEGREE + 1)])
    weights = (t[DEGREE + 1 :] - t[: -DEGREE - 1]) / (DEGREE + 1)
    basis = BSpline(t, np.eye(len(weights)), DEGREE)
    areas = np.diff(basis.antiderivative()(np.minimum(ends, 1.0)), axis=0)
    middle = masses[:, None] * basis(np.minimum(ends[:-1] / 2 + ends[1:] / 2, 1.0))
    table = np.where(masses[:, None] < LEAST_MASS, middle, np.where(areas > 1e-12, areas, 0.0)).T
    return Splines(np.asarray(table / table.sum(axis=1, keepdims=True)), weights)


def _apart(knots: FloatArray) -> FloatArray:
    """Return increasing knots within (0, 1), without those that are too close to others."""
    kept = [0.0]
    for knot in np.sort(knots).tolist():
        if kept[-1] + LEAST_KNOT < knot < 1 - LEAST_KNOT:
            kept.append(knot)
    return np.array(kept[1:])
