"""Masses of atoms on the bins of all columns, and the products of an EM update with them, compiled by numba.

A wide table has hundreds of small products. Here one call takes all columns. Atoms that are single values (categories)
are kept as the bins they lie in, never as a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np

from jointwise._typing import AnyArray, FloatArray, IntArray
from jointwise.engines.base import LEAST_FACTOR, PosteriorCounts
from jointwise.engines.compiled_margins import (
    LEAST_BEND,
    LEAST_MASS,
    LEAST_METRIC,
    LEAST_SHRINK,
    LONGEST_STRIDE,
)
from jointwise.engines.compiled_parts import FAST, locked

# A product of masses below this may underflow with the next one.
SMALL_PRODUCT = 1e-15


@dataclass(frozen=True, eq=False)
class Places:
    """Masses of atoms that are single values: all of atom l is in bin ``bins[l]``.

    Parameters
    ----------
    bins : array of shape (L,)
    n_bins : int

    Examples
    --------
    >>> Places(np.array([0, 2]), 3) @ np.array([0.25, 0.75])
    array([0.25, 0.  , 0.75])
    """

    bins: IntArray
    n_bins: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of bins and of atoms, as of the matrix that it stands for."""
        return self.n_bins, len(self.bins)

    def __matmul__(self, weights: FloatArray) -> FloatArray:
        found = np.zeros((self.n_bins, *weights.shape[1:]))
        np.add.at(found, self.bins, weights)
        return found


Masses = FloatArray | Places


class StackedAtoms:
    """The masses of all columns, ready for the products of an EM update.

    Parameters
    ----------
    masses : sequence of Places or arrays of shape (I_n, L_n)
        Kept as the attribute `masses`.

    Examples
    --------
    >>> atoms = StackedAtoms([np.array([[0.5, 0.1], [0.5, 0.9]]), Places(np.arange(2), 2)])
    >>> atoms.conditionals(np.array([[1.0], [0.0], [0.3], [0.7]]))
    array([[0.5],
           [0.5],
           [0.3],
           [0.7]])
    """

    def __init__(self, masses: Sequence[Masses]) -> None:
        self.masses = masses
        is_dense = np.array([not isinstance(d, Places) for d in masses], dtype=bool)
        dense = [np.ravel(d) for d in masses if not isinstance(d, Places)]
        places = [d.bins for d in masses if isinstance(d, Places)]
        shapes = np.array([d.shape for d in masses], dtype=np.int64).reshape(-1, 2)
        sizes = np.where(is_dense, shapes.prod(axis=1), shapes[:, 1])
        at = np.where(is_dense, _before(np.where(is_dense, sizes, 0)), _before(np.where(is_dense, 0, sizes)))
        self.n_bins = int(shapes[:, 0].sum())
        self._layout = locked(np.column_stack([_before(shapes[:, 0]), _before(shapes[:, 1]), at, is_dense, shapes]))
        self._dense = locked(np.concatenate([np.empty(0), *dense]))
        self._places = locked(np.concatenate([np.empty(0, dtype=np.int64), *places]))

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Rows of each column in arrays that stack the atoms of all columns."""
        return tuple(slice(start, start + n) for start, n in self._layout[:, [1, 5]].tolist())

    @cached_property
    def bin_slices(self) -> tuple[slice, ...]:
        """Rows of each column in arrays that stack the bins of all columns."""
        return tuple(slice(start, start + n) for start, n in self._layout[:, [0, 4]].tolist())

    def conditionals(self, coefficients: FloatArray) -> FloatArray:
        """A_n = Dbar_n B_n of all columns, stacked, and not below `LEAST_MASS`; shape (sum I, F).

        Parameters
        ----------
        coefficients : array of shape (sum L, F)
        """
        return self._products(coefficients, np.ones(self.n_bins), 0.0)

    def tables(self, coefficients: FloatArray, margins: FloatArray) -> FloatArray:
        """A_n divided by the bin masses of the margins, and not below `LEAST_FACTOR`; shape (sum I, F).

        Parameters
        ----------
        coefficients : array of shape (sum L, F)
        margins : array of shape (sum I,)
        """
        return self._products(coefficients, margins, LEAST_FACTOR)

    def _products(self, coefficients: FloatArray, margins: FloatArray, least: float) -> FloatArray:
        found = np.empty((self.n_bins, coefficients.shape[1]))
        _products(self._dense, self._places, self._layout, locked(coefficients), locked(margins), least, found)
        return found

    def update(
        self, point: FloatArray, counts: PosteriorCounts, tables: FloatArray, margins: FloatArray, prior: FloatArray
    ) -> FloatArray:
        r"""Return the point after an EM update, normalised; what has neither rows nor prior stays as it is.

        .. math:: B_n \leftarrow B_n \circ \bar D_n^\top (S_n / A_n) + \pi_n 1^\top, \qquad
                  \lambda[r] \leftarrow \textstyle\sum_i P(r \mid x_i).

        Parameters
        ----------
        point : array of shape (1 + sum L, F)
            Weights in the first row, then all B_n, stacked.
        counts : PosteriorCounts
            S_n and the sums of posteriors.
        tables : array of shape (sum I, F)
            As `tables` returns at the point.
        margins : array of shape (sum I,)
        prior : array of shape (sum L,)
            Prior rows of each atom.
        """
        update = np.empty(point.shape)
        update[0] = counts.totals / counts.totals.sum() if counts.totals.any() else point[0]
        _update(
            self._dense, self._places, self._layout, locked(point[1:]), locked(counts.counts), locked(tables),
            locked(margins), locked(prior), update[1:],
        )  # fmt: skip
        return update


def _before(sizes: IntArray) -> IntArray:
    """Return the sum of all sizes before each."""
    return np.cumsum(sizes) - sizes


def leap(start: FloatArray, first: FloatArray, second: FloatArray, starts: IntArray) -> FloatArray:
    """Return the squared extrapolation of a point, with weights and columns normalised.

    Parameters
    ----------
    start, first, second : arrays of shape (1 + sum L, F)
        A point (weights in the first row, then all B_n), and the points after one and two EM updates.
    starts : array of shape (N + 1,)
        Where the rows of each B_n begin, counted from the second row, and the number of these rows.
    """
    found = np.empty(start.shape)
    _leap(locked(start), locked(first), locked(second), locked(starts), found)
    return found


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _products(
    masses: AnyArray, places: AnyArray, layout: AnyArray, coefficients: AnyArray, margins: AnyArray, least: float,
    found: AnyArray,
) -> None:  # fmt: skip
    n_components = found.shape[1]
    for n in range(len(layout)):
        bin_start, atom_start, at, is_dense, n_bins, n_atoms = layout[n]
        own = coefficients[atom_start : atom_start + n_atoms]
        here = found[bin_start : bin_start + n_bins]
        if is_dense:
            np.dot(masses[at : at + n_bins * n_atoms].reshape(n_bins, n_atoms), own, here)
        else:
            here[:] = 0.0
            for l in range(n_atoms):
                for r in range(n_components):
                    here[places[at + l], r] += own[l, r]
        for i in range(n_bins):
            scale = 1.0 / margins[bin_start + i]
            for r in range(n_components):
                here[i, r] = max(max(here[i, r], LEAST_MASS) * scale, least)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _update(
    masses: AnyArray, places: AnyArray, layout: AnyArray, coefficients: AnyArray, counts: AnyArray, tables: AnyArray,
    margins: AnyArray, prior: AnyArray, update: AnyArray,
) -> None:  # fmt: skip
    n_components = coefficients.shape[1]
    quotient = np.empty((layout[:, 4].max(), n_components))
    sums = np.empty(n_components)
    for n in range(len(layout)):
        bin_start, atom_start, at, is_dense, n_bins, n_atoms = layout[n]
        here = update[atom_start : atom_start + n_atoms]
        for i in range(n_bins):
            margin = margins[bin_start + i]
            for r in range(n_components):
                quotient[i, r] = counts[bin_start + i, r] / (tables[bin_start + i, r] * margin)
        if is_dense:
            np.dot(masses[at : at + n_bins * n_atoms].reshape(n_bins, n_atoms).T, quotient[:n_bins], here)
        else:
            for l in range(n_atoms):
                for r in range(n_components):
                    here[l, r] = quotient[places[at + l], r]
        sums[:] = 0.0
        for l in range(n_atoms):
            for r in range(n_components):
                here[l, r] = coefficients[atom_start + l, r] * here[l, r] + prior[atom_start + l]
                sums[r] += here[l, r]
        _normalise(here, sums, coefficients[atom_start : atom_start + n_atoms])


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _normalise(columns: AnyArray, sums: AnyArray, fallback: AnyArray) -> None:
    """Divide columns by their sums, in place; those without mass are taken from `fallback`."""
    for r in range(len(sums)):
        if not sums[r] > 0:
            columns[:, r] = fallback[:, r]
            sums[r] = 1.0
        sums[r] = 1.0 / sums[r]
    for l in range(columns.shape[0]):
        for r in range(len(sums)):
            columns[l, r] *= sums[r]


def weighted_log(point: FloatArray, weights: FloatArray) -> float:
    """Return the sum over l, r of weights[l] times the logarithm of point[l, r], not below `LEAST_MASS`.

    Parameters
    ----------
    point : array of shape (L, F)
    weights : array of shape (L,)
        Atoms of weight zero do not count.

    Examples
    --------
    >>> weighted_log(np.array([[1.0, np.e], [0.0, 1.0]]), np.array([2.0, 0.0]))
    2.0
    """
    return float(_weighted_log(locked(point), locked(weights)))


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _weighted_log(point: AnyArray, weights: AnyArray) -> float:
    total = 0.0
    for l in range(point.shape[0]):
        if weights[l] == 0:
            continue
        own, product = 0.0, 1.0
        for r in range(point.shape[1]):
            if product < SMALL_PRODUCT:  # logarithms take longer than all else: one for many factors
                own += np.log(product)
                product = 1.0
            product *= max(point[l, r], LEAST_MASS)
        total += weights[l] * (own + np.log(product))
    return total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _leap(start: AnyArray, first: AnyArray, second: AnyArray, starts: AnyArray, found: AnyArray) -> None:
    n_components = start.shape[1]
    length, bend_length = 0.0, 0.0
    for l in range(start.shape[0]):
        for r in range(n_components):
            change = first[l, r] - start[l, r]
            bend = second[l, r] - first[l, r] - change
            metric = 1.0 / max(second[l, r], LEAST_METRIC)
            length += metric * change * change
            bend_length += metric * bend * bend
    stride = np.sqrt(length) / max(np.sqrt(bend_length), LEAST_BEND)
    stride = min(max(stride, 1.0), LONGEST_STRIDE)
    for l in range(start.shape[0]):
        for r in range(n_components):
            change = first[l, r] - start[l, r]
            bend = second[l, r] - first[l, r] - change
            far = start[l, r] + 2 * stride * change + stride * stride * bend
            found[l, r] = max(far, LEAST_SHRINK * second[l, r])
    found[0] /= found[0].sum()  # at least a tenth of what the second update has
    sums = np.empty(n_components)
    for n in range(len(starts) - 1):
        own = found[1 + starts[n] : 1 + starts[n + 1]]
        sums[:] = 0.0
        for l in range(own.shape[0]):
            for r in range(n_components):
                sums[r] += own[l, r]
        _normalise(own, sums, second[1 + starts[n] : 1 + starts[n + 1]])
