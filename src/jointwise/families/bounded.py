"""Families on a bounded interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from jointwise.families.base import SMALLEST
from jointwise.families.parametric import ParametricFamily

if TYPE_CHECKING:
    from jointwise._typing import FloatArray, IntArray
    from jointwise.families.base import Family


class Bounded(ParametricFamily):
    """Atoms on [low, high], whose length must be finite too."""

    low: FloatArray
    high: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.low < self.high, "low", "below high")
        with np.errstate(over="ignore"):  # an infinite width is what is tested
            self._require(np.isfinite(self._width), "high", "less than the largest number above low")

    @property
    def _width(self) -> FloatArray:
        return self.high - self.low

    def _from_low(self, x: FloatArray) -> FloatArray:
        return np.clip((x - self.low) / self._width, 0.0, 1.0)

    def _from_high(self, x: FloatArray) -> FloatArray:
        return np.clip((self.high - x) / self._width, 0.0, 1.0)

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of each atom."""
        return self.low.copy(), self.high.copy()


@dataclass(frozen=True, eq=False)
class Uniform(Bounded):
    r"""Uniform atoms, :math:`f(x) = 1/(b - a)` for :math:`a \le x \le b`.

    Support: :math:`[a, b]`. Mean :math:`(a + b)/2`, variance :math:`(b - a)^2/12`.

    Parameters
    ----------
    low, high : float or array of shape (L,)
        Ends :math:`a < b`, at a finite distance.

    Examples
    --------
    >>> atoms = Uniform(low=[0.0, 1.0], high=[1.0, 3.0])
    >>> atoms.mass(0.5, 2.0)
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "uniform"
    low: FloatArray
    high: FloatArray

    def _logpdf(self, x: FloatArray) -> FloatArray:
        inside = (self.low <= x) & (x <= self.high)
        return np.where(inside, -np.log(self._width), -np.inf)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return self._from_low(x)

    def _sf(self, x: FloatArray) -> FloatArray:
        return self._from_high(x)

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self.low + q * self._width

    def _isf(self, q: FloatArray) -> FloatArray:
        return self.high - q * self._width

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(self.low[atoms], self.high[atoms])

    def _mean(self) -> FloatArray:
        return 0.5 * self.low + 0.5 * self.high

    def _var(self) -> FloatArray:
        return self._width**2 / 12

    def _mode(self) -> FloatArray:
        return self._mean()  # every point of the support is one

    def _truncate(self, low: float, high: float, inside: FloatArray) -> Family:  # noqa: ARG002  # it has a simpler form
        return Uniform(np.maximum(self.low, low), np.minimum(self.high, high))


@dataclass(frozen=True, eq=False)
class Beta(Bounded):
    r"""Beta atoms, :math:`f(x) = u^{a-1}(1 - u)^{b-1} / (w B(a, b))`.

    Here :math:`w = high - low` and :math:`u = (x - low)/w`. Support: [low, high]. Mean
    :math:`low + wa/(a + b)`, variance :math:`w^2ab/((a + b)^2(a + b + 1))`. If a shape is below one, the density grows
    without bound towards that end; at the end itself it takes the finite value at the smallest positive distance, so
    that sums of densities stay finite.

    Parameters
    ----------
    a, b : float or array of shape (L,)
        Shapes, from 1e-6 to 1e9.
    low, high : float or array of shape (L,), default 0 and 1
        Ends of the support, at a finite distance.

    Examples
    --------
    >>> atoms = Beta(a=2.0, b=[1.0, 3.0])
    >>> atoms.mean().round(3), atoms.mode().round(3)
    (array([0.667, 0.4  ]), array([1.   , 0.333]))
    """

    name: ClassVar[str] = "beta"
    _positive: ClassVar[tuple[str, ...]] = ("a", "b")
    _bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"a": (1e-6, 1e9), "b": (1e-6, 1e9)}
    a: FloatArray
    b: FloatArray
    low: FloatArray = 0.0  # type: ignore[assignment]  # broadcast in construction
    high: FloatArray = 1.0  # type: ignore[assignment]  # broadcast in construction

    def _logpdf(self, x: FloatArray) -> FloatArray:
        kernel = _log_power(self._from_low(x), self.a - 1) + _log_power(self._from_high(x), self.b - 1)
        inside = (self.low <= x) & (x <= self.high)
        return np.where(inside, kernel - special.betaln(self.a, self.b) - np.log(self._width), -np.inf)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return np.asarray(special.betainc(self.a, self.b, self._from_low(x)))

    def _sf(self, x: FloatArray) -> FloatArray:
        return np.asarray(special.betainc(self.b, self.a, self._from_high(x)))

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self.low + self._width * _beta_quantile(self.a, self.b, q)

    def _isf(self, q: FloatArray) -> FloatArray:
        return self.high - self._width * _beta_quantile(self.b, self.a, q)

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return self.low[atoms] + self._width[atoms] * rng.beta(self.a[atoms], self.b[atoms])

    def _mean(self) -> FloatArray:
        return self.low + self._width * self.a / (self.a + self.b)

    def _var(self) -> FloatArray:
        total = self.a + self.b
        return self._width**2 * (self.a / total) * (self.b / total) / (total + 1)

    def _mode(self) -> FloatArray:
        inner = self.low + self._width * (self.a - 1) / (self.a + self.b - 2)
        at_end = np.where(self.a <= self.b, self.low, self.high)  # the smaller shape has the higher end
        return np.where((self.a > 1) & (self.b > 1), inner, at_end)


def _beta_quantile(a: FloatArray, b: FloatArray, q: FloatArray) -> FloatArray:
    """Return the inverse of the regularised incomplete beta function I_u(a, b) in u."""
    u: FloatArray = special.betaincinv(a, b, q)
    lost = np.isnan(u) & ~np.isnan(q)
    if lost.any():
        # SciPy's solver fails for some q below 1e-20, where I_u grows like u^a: iterate with that
        a, b, q = (np.broadcast_to(v, lost.shape)[lost] for v in (a, b, q))
        log_u = (np.log(q) + np.log(a) + special.betaln(a, b)) / a
        for _ in range(30):
            log_u = log_u + (np.log(q) - np.log(special.betainc(a, b, np.exp(log_u)))) / a
        u[lost] = np.exp(log_u)
    return u


def _log_power(u: FloatArray, exponent: FloatArray) -> FloatArray:
    """Return log(u^exponent), kept finite at a pole."""
    return np.asarray(special.xlogy(exponent, np.where(exponent < 0, np.maximum(u, SMALLEST), u)))
