"""Families with all mass on one point: a number or a category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jointwise.families.parametric import ParametricFamily

if TYPE_CHECKING:
    from jointwise._typing import FloatArray, IntArray
    from jointwise.families.base import Family


class OnePoint(ParametricFamily):
    """Atoms that give probability one to one point each, their only parameter."""

    is_discrete: ClassVar[bool] = True

    @property
    def _point(self) -> FloatArray:
        return np.asarray(getattr(self, self.parameter_names()[0]))

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the point of each atom, as both ends."""
        return self._point.copy(), self._point.copy()

    def _logpdf(self, x: FloatArray) -> FloatArray:
        return np.where(x == self._point, 0.0, -np.inf)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return np.where(x >= self._point, 1.0, 0.0)

    def _sf(self, x: FloatArray) -> FloatArray:
        return np.where(x >= self._point, 0.0, 1.0)

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self._point + np.zeros_like(q)

    def _isf(self, q: FloatArray) -> FloatArray:
        return self._point + np.zeros_like(q)

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002  # nothing is random
        return self._point[atoms]

    def _mode(self) -> FloatArray:
        return self._point.copy()

    def _truncate(self, low: float, high: float, inside: FloatArray) -> Family:  # noqa: ARG002  # the point lies inside
        return self


@dataclass(frozen=True, eq=False)
class PointMass(OnePoint):
    r"""Point masses, :math:`P(X = c) = 1`.

    Support: :math:`c`. Mean :math:`c`, variance 0. The density is with respect to counting measure.

    Parameters
    ----------
    loc : float or array of shape (L,)
        The points :math:`c`.

    Examples
    --------
    >>> PointMass(loc=[0.0, 5.0]).pdf([0.0, 1.0])
    array([[1., 0.],
           [0., 0.]])
    """

    name: ClassVar[str] = "point_mass"
    loc: FloatArray

    def _mean(self) -> FloatArray:
        return self.loc.copy()

    def _var(self) -> FloatArray:
        return np.zeros(self.n_atoms)


@dataclass(frozen=True, eq=False)
class Category(OnePoint):
    r"""Categories, :math:`P(X = c) = 1` for a category with code :math:`c`.

    Support: :math:`c`. Codes are names, not numbers: mean and variance are NaN.

    Parameters
    ----------
    code : int or array of shape (L,)
        Codes :math:`c \in \{0, 1, \dots\}`.

    Examples
    --------
    >>> atoms = Category(code=[0, 1, 2])
    >>> atoms.pdf(1.0)
    array([0., 1., 0.])
    """

    name: ClassVar[str] = "category"
    code: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require((self.code >= 0) & (self.code == np.floor(self.code)), "code", "a whole number from 0 up")

    def _mean(self) -> FloatArray:
        return np.full(self.n_atoms, np.nan)

    def _var(self) -> FloatArray:
        return np.full(self.n_atoms, np.nan)
