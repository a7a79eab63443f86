"""From bin masses to a density: published bin edges, and the sinc series of a distribution function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import InputError
from jointwise.joint.product import draw_atoms

# Grid points in each bin, for integrals and samples; kinks cost about 1e-6 of the mass.
POINTS_PER_BIN = 200
# Values of x evaluated at once, so that the table of terms takes only a few megabytes.
BLOCK = 2_048
# Below this |z|, cos(z)/z - sin(z)/z^2 cancels and its power series is used, with an error of about 1e-13.
SMALL = 1e-2


def round_edges(low: float, high: float, n_bins: int) -> FloatArray:
    """Edges of equal-width bins on round numbers around [low, high], the rule of MATLAB's `discretize`.

    The left edge is a multiple of a provisional width with one significant digit. The width is then the smallest
    round number with which `n_bins` bins reach `high`.

    Parameters
    ----------
    low, high : float
        Smallest and largest value; they must differ.
    n_bins : int
        Two or more.

    Returns
    -------
    array of shape (n_bins + 1,)

    Examples
    --------
    >>> round_edges(-3.14, 6.28, 5)
    array([-4. , -1.9,  0.2,  2.3,  4.4,  6.5])
    """
    raw = (high - low) / n_bins
    power = _power_of_ten(raw)
    provisional = power * np.floor(raw / power)
    left = min(provisional * np.floor(low / provisional), low)
    least, most = (high - left) / n_bins, (high - left) / (n_bins - 1)
    power = _power_of_ten(most - least)
    width = power * np.ceil(least / power)
    return np.linspace(left, max(left + n_bins * width, high), n_bins + 1)


def checked_edges(name: str, values: FloatArray, n_bins: int) -> FloatArray:
    """Return `round_edges` of the known values (n,) of a column, or raise if it cannot be binned."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if low == high:
        raise InputError(
            f"Column {name!r} holds fewer than two different values (n_samples = {len(values)} known), so it cannot "
            'be binned; drop it, or make it categorical (kinds={...: "categorical"}).'
        )
    edges = round_edges(low, high, n_bins)
    if not np.all(np.isfinite(edges)) or np.any(np.diff(edges) <= 0):
        raise InputError(
            f"Column {name!r} reaches from {low:g} to {high:g}, too narrow or too wide for {n_bins} bins in floating "
            "point; shift and scale it first."
        )
    return edges


def bin_codes(values: FloatArray, edges: FloatArray) -> IntArray:
    """Return the bin of each value, closed on the left (the last on both sides), `n_bins` for NaN; shape (n,).

    >>> bin_codes(np.array([0.0, 1.0, 2.0, np.nan]), np.array([0.0, 1.0, 2.0])).tolist()
    [0, 1, 1, 2]
    """
    codes = np.searchsorted(edges[1:-1], values, side="right").astype(np.int64)
    codes[np.isnan(values)] = len(edges) - 1
    return codes


class Conditionals(ABC):
    """Densities of one variable given each of F components."""

    @abstractmethod
    def values(self, x: FloatArray) -> FloatArray:
        """Return density, or mass, at encoded values (n,) without NaN; shape (n, F)."""

    @abstractmethod
    def sample(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw one value for each given component (n,); shape (n,)."""

    def log(self, x: FloatArray) -> FloatArray:
        """Return the logarithm of `values`, zero where x is NaN; shape (n, F)."""
        missing = np.isnan(x)
        with np.errstate(divide="ignore"):  # a value that is no state has mass zero
            logs = np.log(self.values(np.where(missing, 0.0, x)))
        logs[missing] = 0.0
        return logs


@dataclass(frozen=True, eq=False)
class StateConditionals(Conditionals):
    """Masses of the states of a discrete variable, no smaller than a floor."""

    states: FloatArray  # encoded values, increasing, (I,)
    masses: FloatArray  # columns on the simplex, (I, F)
    floor: float  # smaller masses are raised to this; it is also the mass of values that are no state
    normalize: bool  # whether the raised masses are scaled to sum one; values that are no state then have no mass

    @cached_property
    def _table(self) -> FloatArray:
        """Masses of the states, and in the last row of other values; shape (I + 1, F)."""
        raised = np.maximum(self.masses, self.floor)
        if self.normalize:
            return np.vstack([raised / raised.sum(axis=0), np.zeros((1, raised.shape[1]))])
        return np.vstack([raised, np.full((1, raised.shape[1]), self.floor)])

    def values(self, x: FloatArray) -> FloatArray:
        """Return the mass at each value."""
        position = np.minimum(np.searchsorted(self.states, x), len(self.states) - 1)
        return self._table[np.where(self.states[position] == x, position, len(self.states))]

    def sample(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw states."""
        return self.states[draw_atoms(self._table[:-1], component, rng)]


@dataclass(frozen=True, eq=False)
class SincConditionals(Conditionals):
    r"""Densities from bin masses: the derivative of the sinc series of the distribution function, raised to a floor.

    With edges :math:`t_k = t_0 + kT` and :math:`c_k` the distribution function there,

    .. math:: f(x) = \frac{\pi}{T} \sum_{k=0}^{K-1} c_k \, g\Bigl(\frac{\pi (x - t_k)}{T}\Bigr), \qquad
              g(z) = \frac{\cos z}{z} - \frac{\sin z}{z^2}, \quad g(0) = 0,

    with :math:`c_k = 1` beyond the last edge, up to K terms. The density is :math:`\max(f, \mathrm{floor})`.

    With `normalize`, each density is divided by its integral. A constant floor has no finite integral, so at a distance
    d outside the edges the density is then :math:`\mathrm{floor} / (1 + (d / T)^2)` before division. All values stay
    possible, and the two tails together hold :math:`\pi T \, \mathrm{floor}`.
    """

    edges: FloatArray  # equally spaced, (I + 1,)
    masses: FloatArray  # bin masses, columns on the simplex, (I, F)
    n_terms: int  # K, more than I
    floor: float  # the smallest density
    normalize: bool

    @cached_property
    def width(self) -> float:
        """T, the mean width of a bin."""
        return float((self.edges[-1] - self.edges[0]) / (len(self.edges) - 1))

    @cached_property
    def _cumulative(self) -> FloatArray:
        """c_k at the edges; shape (I + 1, F)."""
        inner = np.cumsum(self.masses, axis=0)
        return np.vstack([np.zeros((1, inner.shape[1])), inner[:-1], np.ones((1, inner.shape[1]))])

    def series(self, x: FloatArray) -> FloatArray:
        """Return the sum itself, which may be negative, at values (n,); shape (n, F)."""
        blocks = [self._series(x[start : start + BLOCK]) for start in range(0, max(len(x), 1), BLOCK)]
        return np.concatenate(blocks)

    def _series(self, x: FloatArray) -> FloatArray:
        steps = (x - self.edges[0]) / self.width
        k = np.arange(self.n_terms)
        z = np.pi * (steps[:, None] - k)
        # cos and sin of z_k are those of z_0 with alternating signs, so they are computed once
        sign = 1.0 - 2.0 * (k % 2)
        small = np.abs(z) < SMALL
        inverse = 1.0 / np.where(small, 1.0, z)
        cos, sin = np.cos(np.pi * steps)[:, None], np.sin(np.pi * steps)[:, None]
        terms = sign * (cos - sin * inverse) * inverse
        near = z[small]
        terms[small] = near * (near**2 / 30 - 1 / 3)
        n_edges = len(self.edges)
        ones = terms[:, n_edges:].sum(axis=1, keepdims=True)
        return np.asarray(np.pi / self.width * (terms[:, :n_edges] @ self._cumulative + ones))

    def values(self, x: FloatArray) -> FloatArray:
        """Return the density at each value."""
        raised = np.maximum(self.series(x), self.floor)
        if not self.normalize:
            return raised
        outside = np.maximum(self.edges[0] - x, x - self.edges[-1])
        beyond = np.maximum(outside, 0.0)[:, None] / self.width
        tails = self.floor / (1.0 + np.minimum(beyond, 1e150) ** 2)
        return np.asarray(np.where(outside[:, None] > 0, tails, raised) / self.integrals)

    @cached_property
    def _grid(self) -> FloatArray:
        return np.linspace(self.edges[0], self.edges[-1], POINTS_PER_BIN * (len(self.edges) - 1) + 1)

    @cached_property
    def _areas(self) -> FloatArray:
        """Integral of max(f, floor) from the first edge to each point of the grid, by trapezoids; (points, F)."""
        raised = np.maximum(self.series(self._grid), self.floor)
        steps = np.diff(self._grid)[:, None] * (raised[1:] + raised[:-1]) / 2
        return np.vstack([np.zeros((1, raised.shape[1])), np.cumsum(steps, axis=0)])

    @cached_property
    def _tail(self) -> float:
        """Integral of one tail."""
        return self.floor * self.width * np.pi / 2

    @cached_property
    def integrals(self) -> FloatArray:
        """Integral of each density over its range and tails; shape (F,)."""
        return np.asarray(self._areas[-1] + 2 * self._tail)

    def sample(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw by the inverse of the normalised distribution function, linear between points of the grid."""
        out = np.empty(len(component))
        for r in np.unique(component):
            here = np.flatnonzero(component == r)
            area = rng.uniform(0.0, self.integrals[r], len(here)) - self._tail
            out[here] = np.interp(area, self._areas[:, r], self._grid)
            for end, lack in ((self.edges[0], -area), (self.edges[-1], area - self._areas[-1, r])):
                far = lack > 0
                distance = self.width * np.tan(np.minimum(lack[far] / self._tail, 1.0) * np.pi / 2)
                out[here[far]] = end + np.where(end == self.edges[0], -distance, distance)
        return out


def _power_of_ten(x: float) -> float:
    return float(10.0 ** np.floor(np.log10(x)))
