"""Columns of numbers standardised within each class: centred, of unit variance and uncorrelated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from reprlib import repr as short
from typing import Any, Self

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import FileFormatError, InputError

# Correlations within classes up to this size are not worth removing.
LEAST_CORRELATION = 0.1
# Fewest complete rows per column: with fewer, correlations are noise.
ROWS_PER_COLUMN = 3
# Digits of means and covariances, in units of a column's spread, and of the results: the order of rows changes the last
# bits of sums, and must not change the results.
DIGITS = 9
# Smaller variances, in the same units, are rounding; so are spreads below this share of a column's largest value.
LEAST_VARIANCE, LEAST_SPREAD = 1e-8, 1e-8
# Most numbers in the maps of all classes: more would take more memory than the rows.
MOST_NUMBERS = 10_000_000


@dataclass(frozen=True, eq=False)
class ClassStandardisation:
    r"""A linear map of some columns for each class y, :math:`z = W_y^\top (x - \mu_y)`, which makes them uncorrelated.

    The columns of W are the eigenvectors of the covariance of the class, each divided by the root of its eigenvalue.
    Covariances are shrunk towards their mean over classes, as if each class had one more row of that covariance for
    every column.

    Parameters
    ----------
    columns : array of shape (d,)
        Positions of the columns that are mixed, in rising order.
    means : array of shape (K, d)
        Mean of each class.
    maps : array of shape (K, d, d)
        W of each class, invertible.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> rows = np.column_stack([x, x + 0.1 * rng.normal(size=500)])
    >>> y = np.zeros(500, dtype=int)
    >>> found = ClassStandardisation.of(rows, np.arange(2), y, np.ones(500), 1)
    >>> np.cov(found.apply(rows, y).T).round(2) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """

    columns: IntArray
    means: FloatArray
    maps: FloatArray

    def __post_init__(self) -> None:
        d, n_classes = len(self.columns), len(self.means)
        if d == 0 or self.columns[0] < 0 or (np.diff(self.columns) <= 0).any():
            raise InputError(
                f"`columns` must be positions of columns in rising order, at least one; got {self.columns}."
            )
        for name, array, shape in (("means", self.means, (n_classes, d)), ("maps", self.maps, (n_classes, d, d))):
            if array.shape != shape or not np.isfinite(array).all():
                raise InputError(f"`{name}` must hold finite numbers in the shape {shape}; its shape is {array.shape}.")
        if not np.isfinite(self.log_jacobians).all():
            raise InputError("Each of `maps` must have an inverse, with a finite determinant that is not zero.")

    @classmethod
    def of(
        cls, rows: FloatArray, columns: IntArray, classes: IntArray, weights: FloatArray, n_classes: int
    ) -> Self | None:
        """Return the maps of some columns; None if they are uncorrelated or rows are too few.

        Parameters
        ----------
        rows : array of shape (n, N)
        columns : array of shape (d,)
            Positions of columns of numbers. Columns that are constant within classes are left out.
        classes : array of shape (n,)
            Class of each row, as a code. A class without rows gets the mean covariance.
        weights : array of shape (n,)
        n_classes : int
        """
        used = np.isfinite(rows[:, columns]).all(axis=1) & (weights > 0)
        values, classes, weights = rows[used][:, columns], classes[used], weights[used]
        d = len(columns)
        if d < 2 or weights.sum() < ROWS_PER_COLUMN * d or n_classes * d**2 > MOST_NUMBERS:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # values near the largest float: their column is left out
            means = _means(values, classes, weights, n_classes)
            spread = np.sqrt(np.average((values - means[classes]) ** 2, 0, weights))
            usable = np.isfinite(spread) & (spread > LEAST_SPREAD * np.abs(values).max(axis=0))
        if usable.sum() < 2:
            return None
        columns = columns[usable]
        scale = np.exp2(np.round(np.log2(spread[usable])))  # division by powers of two is exact
        values, means = values[:, usable] / scale, np.round(means[:, usable] / scale, DIGITS)
        totals = np.asarray(np.bincount(classes, weights, n_classes), dtype=np.float64)
        covariances = _covariances(values - means[classes], classes, weights, totals)
        if _largest_correlation(covariances) <= LEAST_CORRELATION:
            return None
        maps = _whitening(covariances) / scale[:, None]
        if not np.isfinite(_log_determinants(maps)).all():  # units too small for a map of floats
            return None
        return cls(columns, means * scale, maps)

    def apply(self, rows: FloatArray, classes: IntArray) -> FloatArray:
        """Return encoded rows with the mixed columns first, then the others; a gap in a mixed column empties them all.

        Parameters
        ----------
        rows : array of shape (n, N)
        classes : array of shape (n,)
            The class whose map each row goes through.
        """
        mixed = np.empty((len(rows), len(self.columns)))
        with np.errstate(over="ignore", invalid="ignore"):  # beyond the largest float: infinite, then NaN
            for c in np.unique(classes):
                here = np.flatnonzero(classes == c)
                mixed[here] = (rows[np.ix_(here, self.columns)] - self.means[c]) @ self.maps[c]
            mixed = np.round(mixed, DIGITS)
        mixed[~np.isfinite(mixed).all(axis=1)] = np.nan
        return np.column_stack([mixed, np.delete(rows, self.columns, axis=1)])

    @cached_property
    def log_jacobians(self) -> FloatArray:
        """Logarithm of |det W| of each class, which turns log-densities of z into those of x; shape (K,)."""
        return _log_determinants(self.maps)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays, as a file holds them."""
        return {"columns": self.columns.tolist(), "means": self.means, "maps": list(self.maps)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        if not isinstance(data, Mapping) or set(data) != {"columns", "means", "maps"}:
            raise FileFormatError("the maps of classes must have the parts columns, maps, means")
        columns, means, maps = data["columns"], data["means"], data["maps"]
        if not isinstance(columns, list) or not all(type(n) is int and 0 <= n <= MOST_NUMBERS for n in columns):
            raise FileFormatError(f"`columns` must be a list of positions of columns, got {short(columns)}")
        matrices = isinstance(maps, list) and maps and all(isinstance(matrix, np.ndarray) for matrix in maps)
        if not isinstance(means, np.ndarray) or not matrices:
            raise FileFormatError("`means` must be an array and `maps` a list of arrays")
        return cls(np.array(columns, dtype=np.int64), means, np.stack(maps))


def _log_determinants(maps: FloatArray) -> FloatArray:
    """Return log |det W| of each matrix, infinite or NaN if it is singular; shape (K,)."""
    with np.errstate(all="ignore"):
        return np.asarray(np.linalg.slogdet(maps)[1])


def _means(values: FloatArray, classes: IntArray, weights: FloatArray, n_classes: int) -> FloatArray:
    """Mean of each class; shape (K, d)."""
    totals = np.bincount(classes, weights, n_classes)
    sums = np.stack([np.bincount(classes, weights * column, n_classes) for column in values.T], axis=1)
    return np.asarray(sums / np.where(totals > 0, totals, 1.0)[:, None])


def _covariances(around: FloatArray, classes: IntArray, weights: FloatArray, totals: FloatArray) -> FloatArray:
    """Covariance of each class, shrunk, from rows minus the means of their classes; shape (K, d, d)."""
    scatter = np.stack([
        (around[here] * weights[here, None]).T @ around[here] for here in (classes == c for c in range(len(totals)))
    ])  # fmt: skip
    pooled = scatter.sum(axis=0) / totals.sum()
    added = around.shape[1]
    return np.asarray(np.round((scatter + added * pooled) / (totals + added)[:, None, None], DIGITS))


def _largest_correlation(covariances: FloatArray) -> float:
    """Largest absolute correlation of two columns within a class."""
    size = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    correlations = covariances / (size[:, :, None] * size[:, None, :])
    return float(np.abs(correlations - np.eye(size.shape[1])).max())


def _whitening(covariances: FloatArray) -> FloatArray:
    """Eigenvectors divided by the roots of their eigenvalues, the largest variance first; shape (K, d, d)."""
    variances, vectors = np.linalg.eigh(covariances)
    vectors = vectors * np.where(vectors.sum(axis=1) < 0, -1.0, 1.0)[:, None, :]  # the same sign in all classes
    return np.asarray((vectors / np.sqrt(np.maximum(variances, LEAST_VARIANCE))[:, None, :])[:, :, ::-1])
