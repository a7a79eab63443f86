"""Quantiles: those of a column that rows are asked for, and which two of them are the ends of an interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from jointwise._typing import FloatArray
from jointwise.joint.events import rounded_inside, rounded_quantiles
from jointwise.joint.expert import Expert
from jointwise.joint.prediction import quantiles
from jointwise.tables.variables import Variable


@dataclass(frozen=True)
class Quantiles:
    """Quantiles that rows are asked for.

    Parameters
    ----------
    levels : tuple of float
        Between 0 and 1, increasing.
    ends : tuple of int
        Positions of those that are the two ends of an interval; empty if there is none.

    Examples
    --------
    >>> Quantiles.of(0.8, [0.5])
    Quantiles(levels=(0.1, 0.5, 0.9), ends=(0, 2))
    """

    levels: tuple[float, ...]
    ends: tuple[int, ...] = ()

    @classmethod
    def of(cls, share: float | None = None, others: Iterable[float] = ()) -> Self:
        """Return the ends of the middle interval of a share, and quantiles of other levels."""
        ends = () if share is None else (round((1 - share) / 2, 12), round((1 + share) / 2, 12))
        levels = tuple(sorted({*others, *ends}))
        return cls(levels, tuple(levels.index(end) for end in ends))

    def of_rows(self, mixture: Expert, n: int, variable: Variable, X: FloatArray) -> FloatArray:
        """Return the quantiles of variable ``n`` given the other cells of each encoded row; shape (rows, levels).

        They are values that the variable can have. A quantile is the nearest one; the ends of an interval lie inside
        it, so that it holds its share of the rows and no more.
        """
        if not self.levels:
            return np.empty((len(X), 0))
        exact = quantiles(mixture, n, self.levels, X)
        found = rounded_quantiles(variable, exact)
        if self.ends:
            found[:, self.ends] = rounded_inside(variable, exact[:, self.ends])
        return found
