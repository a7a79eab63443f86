"""What a check compares, and how far noise explains a difference.

With k of n rows in a set, the exact interval of Clopper and Pearson holds the true probability. Its level allows for
the number of comparisons, so that all intervals hold together with probability 0.99. The distance of the model's
answer from its interval is then an error that noise does not explain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import betaincinv, ndtri

from jointwise._typing import FloatArray
from jointwise.joint.cells import Cells
from jointwise.joint.expert import Expert
from jointwise.tables.variables import Schema

# Fewest rows of a condition: with fewer, nearly any answer could be noise.
GIVEN_ROWS = 30
# Probability that a model without error is found wrong anywhere; columns and pairs of columns have half of it each.
FALSE_ALARM = 0.01
# Errors up to this size are not reported.
LEAST_ERROR = 0.005
# Shift of a probability near the middle of a bell curve when the curve shifts by one standard deviation: it turns the
# error of a mean into one of a probability.
PER_DEVIATION = 0.4


@dataclass(frozen=True, eq=False)
class Aside:
    """A set of values that is no union of cells, such as the values beyond all rows.

    Parameters
    ----------
    column : str
    text : str
        The set as a question writes it.
    kind : str
        As in `Finding`: "range" or "value".
    masses : array of shape (F,)
        Probability of the set under each component.
    share : float
        Share of the rows in the set.
    n_rows : float
        Number of rows with a value.
    """

    column: str
    text: str
    kind: str
    masses: FloatArray
    share: float
    n_rows: float


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a column, whose means are compared.

    Parameters
    ----------
    position : int
        Position of the column.
    values : array of shape (n,)
        NaN for gaps.
    means, squares : arrays of shape (F,)
        E[X | component] and E[X^2 | component].
    """

    position: int
    values: FloatArray
    means: FloatArray
    squares: FloatArray


@dataclass(frozen=True, eq=False)
class Comparison:
    """A model and rows, both in cells.

    Parameters
    ----------
    cells : tuple of Cells
        One for each column.
    model : Expert
        Asked for the probabilities of pairs of cells where its components do not tell them.
    weights : array of shape (n,), optional
        How often each row counts.
    repeats : float
        Sum of weights that carries the information of one row: more than one if weights do not stand for more rows.
    asides : tuple of Aside
    numbers : tuple of Numbers
    gaps : mapping of int to int
        Position of the variable that tells the gaps of a column, by the column's position; see `as_shown`.
    """

    cells: tuple[Cells, ...]
    model: Expert
    weights: FloatArray | None = None
    repeats: float = 1.0
    asides: tuple[Aside, ...] = ()
    numbers: tuple[Numbers, ...] = ()
    gaps: Mapping[int, int] = field(default_factory=dict)

    @property
    def mixing(self) -> FloatArray:
        """Weights of the components; shape (F,)."""
        return self.model.weights

    def counts(self, cells: Cells) -> FloatArray:
        """Return the number of rows in each cell of a column, or the sum of their weights; shape (K,)."""
        return np.bincount(cells.codes, self.weights, cells.n_cells + 1)[:-1].astype(np.float64)

    def shown(self, n: int) -> FloatArray:
        """Return P(cell of column n is there | component) / P(it is there); ones if gaps are no part of the model."""
        if n not in self.gaps:
            return np.ones(len(self.mixing))
        dictionary, coefficients = self.model.factor(self.gaps[n])
        there = dictionary.point_mass(np.zeros(1))[0] @ coefficients
        return np.asarray(there / max(float(there @ self.mixing), 1e-300))


def as_shown(comparison: Comparison, schema: Schema) -> Comparison:
    """Return a comparison of the values that rows show, where the gaps of a column are part of the model.

    Rows show a value only where it is not missing, so the model is asked for its probability given that. Means of such
    columns are not compared.
    """
    gaps = {schema.index(column): schema.index(gap) for column, gap in schema.gaps.items()}
    if not gaps:
        return comparison
    told = replace(comparison, gaps=gaps)
    ratios = {schema.names[n]: told.shown(n) for n in gaps}
    cells = (replace(c, masses=c.masses * ratios[c.name]) if c.name in ratios else c for c in told.cells)
    asides = (replace(a, masses=a.masses * ratios[a.column]) if a.column in ratios else a for a in told.asides)
    numbers = tuple(each for each in told.numbers if each.position not in gaps)
    return replace(told, cells=tuple(cells), asides=tuple(asides), numbers=numbers)


@dataclass(frozen=True)
class Noise:
    """Confidence intervals around the answers of the rows, at a level that allows for many comparisons."""

    n_comparisons: int

    @property
    def level(self) -> float:
        """Probability that the truth lies beyond a given end of one interval."""
        return FALSE_ALARM / 2 / 2 / max(self.n_comparisons, 1)

    @property
    def z(self) -> float:
        """Half the width of an interval in standard errors."""
        return float(-ndtri(self.level))

    def approximate(self, p: FloatArray, share: FloatArray, n: FloatArray) -> FloatArray:
        """Distance of ``p`` from Wilson's interval around a share of n rows; negative inside."""
        z2 = self.z**2 / n
        centre = (share + z2 / 2) / (1 + z2)
        half = np.sqrt(z2 * (share * (1 - share) + z2 / 4)) / (1 + z2)
        return np.asarray(np.abs(p - centre) - half)

    def exact(self, p: FloatArray, share: FloatArray, n: FloatArray) -> FloatArray:
        """Distance of ``p`` from the interval of Clopper and Pearson; zero inside."""
        k = share * n
        low = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), n - k + 1, self.level), 0.0)
        high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - self.level), 1.0)
        return np.maximum(np.maximum(low - p, p - high), 0.0)

    def of_means(self, difference: FloatArray, noise: FloatArray) -> FloatArray:
        """Error of a mean beyond noise, as one of a probability; the arguments are in units of the spread."""
        return np.maximum(np.abs(difference) - self.z * noise, 0.0) * PER_DEVIATION


def standard_error(p: FloatArray, n: FloatArray) -> FloatArray:
    """Standard error of a share of n rows if the probability is ``p``."""
    return np.sqrt(np.maximum(p * (1 - p), 0.0) / n)
