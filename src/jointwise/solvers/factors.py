"""Factors of a low-rank joint, and their layout in one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Factors:
    """Weights and coefficients of a low-rank joint.

    Attributes
    ----------
    weights : array of shape (F,)
        Mixing weights lam, on the simplex.
    coefficients : tuple of arrays of shape (L_n, F)
        B_n, each column on the simplex.

    Examples
    --------
    >>> Factors([0.5, 0.5], ([[1.0, 0.0], [0.0, 1.0]],)).n_components
    2
    """

    weights: FloatArray
    coefficients: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(self.weights))
        object.__setattr__(self, "coefficients", FrozenArrays.of(self.coefficients))
        for n, coefficients in enumerate(self.coefficients):
            if coefficients.ndim != 2 or coefficients.shape[1:] != self.weights.shape:
                raise InputError(
                    f"coefficients[{n}] must have one column for each of the {self.weights.size} weights; "
                    f"got shape {coefficients.shape}."
                )

    @classmethod
    def at(cls, point: FloatArray, slices: Sequence[slice]) -> Factors:
        """Return the factors that a point holds.

        Parameters
        ----------
        point : array of shape (1 + sum L, F)
            Weights in the first row, then all B_n stacked.
        slices : sequence of slice
            Rows of each B_n, counted from the second row of the point.
        """
        return cls(point[0], FrozenArrays.cut(frozen(point)[1:], slices))

    def reordered(self, order: Sequence[int] | IntArray) -> Factors:
        """Return the factors of the same variables in another order."""
        return Factors(self.weights, tuple(self.coefficients[n] for n in order))

    @property
    def n_components(self) -> int:
        """Number of components F."""
        return self.weights.size

    @property
    def point(self) -> FloatArray:
        """Weights in the first row, then all B_n stacked; shape (1 + sum L, F)."""
        return np.vstack([self.weights, *self.coefficients])


def stacked_slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Return the rows of each part in an array that stacks parts of these sizes."""
    ends = np.cumsum(sizes)
    return tuple(slice(int(e) - size, int(e)) for e, size in zip(ends, sizes, strict=True))


def frozen(array: FloatArray) -> FloatArray:
    """Return a copy that cannot be written to; what cannot be written to already is returned as it is."""
    if isinstance(array, np.ndarray) and array.dtype == np.float64 and not array.flags.writeable:
        whole = array if array.base is None else array.base
        if isinstance(whole, np.ndarray) and whole.base is None and not whole.flags.writeable:
            return array
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy


class FrozenArrays(tuple[FloatArray, ...]):
    """Arrays that cannot be written to: a wide table has thousands, and they need not be looked through again."""

    __slots__ = ()

    @classmethod
    def of(cls, arrays: Sequence[FloatArray]) -> FrozenArrays:
        """Return copies that cannot be written to; see `frozen`."""
        return arrays if isinstance(arrays, FrozenArrays) else cls(frozen(array) for array in arrays)

    @classmethod
    def cut(cls, whole: FloatArray, slices: Sequence[slice]) -> FrozenArrays:
        """Return parts of an array that cannot be written to."""
        return cls(whole[rows] for rows in slices)
