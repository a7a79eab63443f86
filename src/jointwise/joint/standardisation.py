"""Columns of numbers standardised within each class: centred, of unit variance and uncorrelated.

Older model files hold such maps beside a second density for classes; none are made any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from reprlib import repr as short
from typing import Any, Self

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import FileFormatError, InputError

# Digits of the results: the number of rows changes the last bits of products of matrices, and must not change results.
DIGITS = 9
# Largest position of a column in a file.
MOST_COLUMNS = 10_000_000


@dataclass(frozen=True, eq=False)
class ClassStandardisation:
    r"""A linear map of some columns for each class y, :math:`z = W_y^\top (x - \mu_y)`, which makes them uncorrelated.

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
    >>> maps = ClassStandardisation(np.array([0, 1]), np.array([[1.0, 1.0]]), np.array([[[1.0, -1.0], [0.0, 2.0]]]))
    >>> maps.apply(np.array([[3.0, 2.0, 7.0]]), np.array([0]))
    array([[2., 0., 7.]])
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
        if not isinstance(columns, list) or not all(type(n) is int and 0 <= n <= MOST_COLUMNS for n in columns):
            raise FileFormatError(f"`columns` must be a list of positions of columns, got {short(columns)}")
        matrices = isinstance(maps, list) and maps and all(isinstance(matrix, np.ndarray) for matrix in maps)
        if not isinstance(means, np.ndarray) or not matrices:
            raise FileFormatError("`means` must be an array and `maps` a list of arrays")
        return cls(np.array(columns, dtype=np.int64), means, np.stack(maps))


def _log_determinants(maps: FloatArray) -> FloatArray:
    """Return log |det W| of each matrix, infinite or NaN if it is singular; shape (K,)."""
    with np.errstate(all="ignore"):
        return np.asarray(np.linalg.slogdet(maps)[1])
