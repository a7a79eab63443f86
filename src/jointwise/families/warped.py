"""Families seen through a warp: laws of w^-1(Z) with Z Gaussian."""
# ruff: noqa: SLF001  (a family and its base keep the same contract, private part included)

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from jointwise._checks import shown
from jointwise.exceptions import InputError
from jointwise.families.base import Family
from jointwise.families.derived import Derived, Truncated
from jointwise.families.location_scale import Gaussian
from jointwise.warps import Warp

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from jointwise._typing import FloatArray, IntArray

# Moments are integrals between the knots of the warp and these quantiles, from either tail, by Gauss-Legendre.
_LEVELS = np.array([1e-18, 1e-12, 1e-8, 1e-5, 1e-3, 0.02, 0.1, 0.25, 0.5])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# A peak is looked for among the knots and this many quantiles, then on as many points between its neighbours.
_GRID = 65
_ZOOMS = 5


@dataclass(frozen=True, eq=False)
class Warped(Derived):
    r"""Atoms :math:`X = w^{-1}(Z)` with Z from a Gaussian family and w a :class:`~jointwise.warps.Warp`.

    .. math:: f(x) = w'(x) \, f_Z(w(x)), \qquad P(X \le x) = F_Z(w(x))

    Mean and variance are integrals by quadrature between the knots, to about 1e-8 of the standard deviation.

    Parameters
    ----------
    base : Gaussian, Truncated of one, or Warped
        The law of Z.
    x, w, slopes : arrays of shape (K,)
        The knots of the warp and its slopes there.

    Examples
    --------
    >>> bend = Warp([0.0, 1.0], [0.0, 1.0], [0.5, 2.0])
    >>> atoms = Warped.through(bend, Gaussian(loc=[0.0, 1.0], scale=0.5))
    >>> atoms.cdf([0.0, 1.0]).round(4)
    array([[0.5   , 0.0228],
           [0.9772, 0.5   ]])
    """

    name: ClassVar[str] = "warped"
    _warp: ClassVar[Warp]  # of each object, and no parameter
    base: Family
    x: FloatArray
    w: FloatArray
    slopes: FloatArray

    def __post_init__(self) -> None:
        self._set(self.base, Warp(self.x, self.w, self.slopes))

    @classmethod
    def through(cls, warp: Warp, base: Family) -> Self:
        """Return the atoms of ``base`` seen through ``warp``."""
        atoms = object.__new__(cls)
        atoms._set(base, warp)
        return atoms

    def _set(self, base: Family, warp: Warp) -> None:
        """Set all parts, from a warp whose knots are checked."""
        if not _is_gaussian(base):
            raise InputError(
                f"The base of {self.name} must be gaussian, truncated gaussian or warped, got {shown(base)}."
            )
        parts = {"base": base, "x": warp.x, "w": warp.w, "slopes": warp.slopes, "_warp": warp}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def take(self, index: ArrayLike) -> Self:
        """Return the family of some atoms, chosen by an integer array or a boolean mask of length L."""
        return self.through(self._warp, self.base.take(index))

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of each atom's support."""
        start, end = self.base.support()
        return self._warp.inverse(start), self._warp.inverse(end)

    def _logpdf(self, x: FloatArray) -> FloatArray:
        return self.base._logpdf(self._warp(x)) + self._warp.log_slope(x)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return self.base._cdf(self._warp(x))

    def _sf(self, x: FloatArray) -> FloatArray:
        return self.base._sf(self._warp(x))

    def _mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        return self.base._mass(self._warp(low), self._warp(high))

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self._warp.inverse(self.base._ppf(q))

    def _isf(self, q: FloatArray) -> FloatArray:
        return self._warp.inverse(self.base._isf(q))

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return self._warp.inverse(self.base._sample(atoms, rng))

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each atom."""
        if self._warp.is_straight:
            slope = self.slopes[0]
            return self._warp.inverse(self.base.mean()), self.base.var() / slope**2
        # from the nearer tail, so that a window far out has its own scale
        ends = np.concatenate([self.base.ppf(_LEVELS), self.base.isf(_LEVELS[-2::-1])])
        knots = np.clip(self.w[:, None], ends[0], ends[-1])
        breaks = np.sort(np.concatenate([ends, knots]), axis=0)
        half = 0.5 * np.diff(breaks, axis=0)  # (panels, L)
        z = breaks[:-1, None] + half[:, None] * (1 + _NODES[:, None])
        mass = half[:, None] * _WEIGHTS[:, None] * np.exp(self.base._logpdf(z))
        centre = self._warp.inverse(self.base.ppf(0.5))
        x = self._warp.inverse(z) - centre
        total = mass.sum(axis=(0, 1))
        first = (mass * x).sum(axis=(0, 1)) / total
        return centre + first, (mass * (x - first) ** 2).sum(axis=(0, 1)) / total

    def _mode(self) -> FloatArray:
        levels = np.linspace(0.0, 1.0, _GRID)[1:-1]
        start, end = self.support()
        quantiles = self.ppf(levels)
        found = [quantiles, np.broadcast_to(self.x[:, None], (len(self.x), self.n_atoms))]
        found += [np.where(np.isfinite(edge), edge, quantiles[0])[None] for edge in (start, end)]
        grid = np.sort(np.clip(np.concatenate(found), start, end), axis=0)
        atoms = np.arange(self.n_atoms)
        for _ in range(_ZOOMS):
            top = self._logpdf(grid).argmax(axis=0)
            best = grid[top, atoms]
            left, right = grid[np.maximum(top - 1, 0), atoms], grid[np.minimum(top + 1, len(grid) - 1), atoms]
            grid = np.sort(np.concatenate([np.linspace(left, right, _GRID), best[None]]), axis=0)
        return np.asarray(grid[self._logpdf(grid).argmax(axis=0), atoms])

    def _truncate(self, low: float, high: float, inside: FloatArray) -> Family:  # noqa: ARG002  # the base finds its own
        return self.through(self._warp, self.base.truncate(float(self._warp(low)), float(self._warp(high))))


def _is_gaussian(base: object) -> bool:
    inner = base.base if isinstance(base, Truncated) else base
    return isinstance(inner, Gaussian) or isinstance(base, Warped)
