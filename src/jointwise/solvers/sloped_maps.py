"""SlopedMaps: increasing maps of columns, given by their slopes at knots; values at coordinates, and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise._typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SlopedMaps:
    r"""Maps of some columns at their coordinates, each zero at its first knot, with straight lines between the slopes.

    A coordinate u lies a share t of the way, of length h, from knot j to the next, whose slopes are s_j and s_{j+1}:

    .. math:: g(u) = \sum_{i < j} h \frac{s_i + s_{i+1}}{2} + h \Big( t - \frac{t^2}{2} \Big) s_j
              + h \frac{t^2}{2} s_{j+1}, \qquad g'(u) = (1 - t) s_j + t s_{j+1} .

    Beyond the knots the map is straight.

    Parameters
    ----------
    knots : array of shape (d, K)
        Evenly spaced.
    left : array of int, shape (I,)
        Position of knot j of each coordinate, among the knots of all columns.
    t : array of shape (I,)
    h : array of shape (I,)
        The h of each coordinate.
    beyond : array of shape (I,)
        How far each coordinate lies beyond the last knot, or, negative, before the first.
    """

    knots: FloatArray
    left: IntArray
    t: FloatArray
    h: FloatArray
    beyond: FloatArray

    @classmethod
    def of(cls, coordinates: Sequence[FloatArray], knots: FloatArray) -> SlopedMaps:
        """Return the maps at coordinates, one array for each column, with evenly spaced knots of shape (d, K)."""
        column = np.repeat(np.arange(len(knots)), [len(u) for u in coordinates])
        u, first, steps = np.concatenate(list(coordinates)), knots[:, 0], knots[:, 1] - knots[:, 0]
        inner = np.clip(u, first[column], knots[column, -1])
        place = (inner - first[column]) / steps[column]
        left = np.clip(place.astype(np.int64), 0, knots.shape[1] - 2) + knots.shape[1] * column
        t = np.clip((inner - knots.ravel()[left]) / steps[column], 0.0, 1.0)
        return cls(knots, left, t, steps[column], u - inner)

    def values(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the maps and their slopes at the coordinates, from the slopes (d, K) at the knots; each of shape (I,).

        >>> bend = SlopedMaps.of([np.array([0.5, 3.0])], np.array([[0.0, 1.0, 2.0]]))
        >>> [each.tolist() for each in bend.values(np.array([[1.0, 2.0, 3.0]]))]
        [[0.625, 7.0], [1.5, 3.0]]
        """
        areas = self._halves * (slopes[:, :-1] + slopes[:, 1:])
        whole = np.cumsum(np.column_stack([np.zeros(len(slopes)), areas]), axis=1)
        flat, first, last = slopes.ravel(), *self._shares
        one, other = flat[self.left], flat[self.left + 1]
        here = (1 - self.t) * one + self.t * other
        return whole.ravel()[self.left] + first * one + last * other + self.beyond * here, here

    def pulled(self, by_map: FloatArray, by_slope: FloatArray) -> FloatArray:
        """Return the gradient by the slopes at knots (d, K), from those by the maps and by their slopes (I,)."""
        shape, size = self.knots.shape, self.knots.size
        here, (first, last) = by_slope + self.beyond * by_map, self._shares
        at_left = np.bincount(self.left, first * by_map + (1 - self.t) * here, size)
        at_right = np.bincount(self.left + 1, last * by_map + self.t * here, size)
        # the area of a piece raises all that lies right of it
        by_knot = np.bincount(self.left, by_map, size).reshape(shape)
        by_area = np.cumsum(by_knot[:, ::-1], axis=1)[:, ::-1][:, 1:] * self._halves
        pulled = (at_left + at_right).reshape(shape).astype(np.float64)
        pulled[:, :-1] += by_area
        pulled[:, 1:] += by_area
        return pulled

    @property
    def _halves(self) -> FloatArray:
        """Half the distance of the knots of each column; shape (d, 1)."""
        return np.asarray((self.knots[:, 1:2] - self.knots[:, :1]) / 2)

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray]:
        """How far a map rises from knot j to a coordinate for the slopes at either end of its piece."""
        return self.h * (self.t - self.t**2 / 2), self.h * self.t**2 / 2
