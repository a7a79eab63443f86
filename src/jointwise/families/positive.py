"""Families on a half-line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from jointwise.families.base import LARGEST, LOG_SQRT_2PI, SMALLEST
from jointwise.families.parametric import ParametricFamily

if TYPE_CHECKING:
    from jointwise._typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Exponential(ParametricFamily):
    r"""Exponential atoms in either direction, :math:`f(x) = e^{-z}/b` with :math:`z = \pm(x - o)/b \ge 0`.

    Support: :math:`[o, \infty)` or :math:`(-\infty, o]`. Mean :math:`o \pm b`, variance :math:`b^2`.

    Parameters
    ----------
    origin : float or array of shape (L,)
        End :math:`o` of the support.
    scale : float or array of shape (L,)
        Scale :math:`b > 0`.
    direction : float or array of shape (L,), default 1
        +1: the tail goes to the right, -1: to the left.

    Examples
    --------
    >>> atoms = Exponential(origin=0.0, scale=2.0, direction=[1, -1])
    >>> atoms.mean()
    array([ 2., -2.])
    >>> atoms.pdf(0.0)
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "exponential"
    _positive: ClassVar[tuple[str, ...]] = ("scale",)
    origin: FloatArray
    scale: FloatArray
    direction: FloatArray = 1.0  # type: ignore[assignment]  # broadcast in construction

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(np.abs(self.direction) == 1, "direction", "1 (tail to the right) or -1 (to the left)")

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the half-line of each atom."""
        up = self.direction > 0
        return np.where(up, self.origin, -np.inf), np.where(up, np.inf, self.origin)

    def _distance(self, x: FloatArray) -> FloatArray:
        return self.direction * (x - self.origin) / self.scale

    def _logpdf(self, x: FloatArray) -> FloatArray:
        z = self._distance(x)
        return np.where(z >= 0, -z - np.log(self.scale), -np.inf)

    def _tails(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of the side of ``x`` towards the origin and of the side away from it."""
        z = np.maximum(self._distance(x), 0.0)
        return -np.expm1(-z), np.exp(-z)

    def _cdf(self, x: FloatArray) -> FloatArray:
        near, far = self._tails(x)
        return np.where(self.direction > 0, near, far)

    def _sf(self, x: FloatArray) -> FloatArray:
        near, far = self._tails(x)
        return np.where(self.direction > 0, far, near)

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self.origin + self.scale * np.where(self.direction > 0, -np.log1p(-q), np.log(q))

    def _isf(self, q: FloatArray) -> FloatArray:
        return self.origin + self.scale * np.where(self.direction > 0, -np.log(q), np.log1p(-q))

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        steps = self.scale[atoms] * rng.standard_exponential(len(atoms))
        return self.origin[atoms] + self.direction[atoms] * steps

    def _mean(self) -> FloatArray:
        return self.origin + self.direction * self.scale

    def _var(self) -> FloatArray:
        return self.scale**2

    def _mode(self) -> FloatArray:
        return self.origin.copy()


@dataclass(frozen=True, eq=False)
class Gamma(ParametricFamily):
    r"""Gamma atoms, :math:`f(x) = z^{k-1}e^{-z} / (\theta\Gamma(k))` with :math:`z = (x - o)/\theta`.

    Support: :math:`[o, \infty)`. Mean :math:`o + k\theta`, variance :math:`k\theta^2`. For :math:`k < 1` the
    density grows without bound towards the origin; at the origin itself it takes the finite value at the smallest
    positive :math:`z`, so that sums of densities stay finite.

    Parameters
    ----------
    shape : float or array of shape (L,)
        Shape :math:`k`, from 1e-6 to 1e9.
    scale : float or array of shape (L,)
        Scale :math:`\theta > 0`.
    origin : float or array of shape (L,), default 0
        Lower end :math:`o` of the support.

    Examples
    --------
    >>> atoms = Gamma(shape=[1.0, 3.0], scale=2.0)
    >>> atoms.mean(), atoms.mode()
    (array([2., 6.]), array([0., 4.]))
    """

    name: ClassVar[str] = "gamma"
    _positive: ClassVar[tuple[str, ...]] = ("shape", "scale")
    _bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"shape": (1e-6, 1e9)}
    shape: FloatArray
    scale: FloatArray
    origin: FloatArray = 0.0  # type: ignore[assignment]  # broadcast in construction

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the half-line of each atom."""
        return self.origin.copy(), np.full(self.n_atoms, np.inf)

    def _distance(self, x: FloatArray) -> FloatArray:
        return np.clip((x - self.origin) / self.scale, 0.0, LARGEST)

    def _logpdf(self, x: FloatArray) -> FloatArray:
        z = self._distance(x)
        z = np.where(self.shape < 1, np.maximum(z, SMALLEST), z)
        value = special.xlogy(self.shape - 1, z) - z - special.gammaln(self.shape) - np.log(self.scale)
        return np.where(x >= self.origin, value, -np.inf)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return np.asarray(special.gammainc(self.shape, self._distance(x)))

    def _sf(self, x: FloatArray) -> FloatArray:
        return np.asarray(special.gammaincc(self.shape, self._distance(x)))

    def _ppf(self, q: FloatArray) -> FloatArray:
        z: FloatArray = special.gammaincinv(self.shape, q)
        return self.origin + self.scale * z

    def _isf(self, q: FloatArray) -> FloatArray:
        z: FloatArray = special.gammainccinv(self.shape, q)
        return self.origin + self.scale * z

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return self.origin[atoms] + self.scale[atoms] * rng.standard_gamma(self.shape[atoms])

    def _mean(self) -> FloatArray:
        return self.origin + self.shape * self.scale

    def _var(self) -> FloatArray:
        return self.shape * self.scale**2

    def _mode(self) -> FloatArray:
        return self.origin + np.maximum(self.shape - 1, 0.0) * self.scale


@dataclass(frozen=True, eq=False)
class LogNormal(ParametricFamily):
    r"""Log-normal atoms, :math:`f(x) = e^{-y^2/2} / ((x - o)s\sqrt{2\pi})`.

    Here :math:`y = (\log(x - o) - m)/s`. Support: :math:`(o, \infty)`. Mean :math:`o + e^{m + s^2/2}`,
    variance :math:`(e^{s^2} - 1)e^{2m + s^2}`.

    Parameters
    ----------
    log_mean : float or array of shape (L,)
        Mean :math:`m` of the logarithm of the distance from the origin, from -1000 to 1000.
    log_std : float or array of shape (L,)
        Standard deviation :math:`s` of that logarithm, from 1e-12 to 1000.
    origin : float or array of shape (L,), default 0
        Lower end :math:`o` of the support.

    Examples
    --------
    >>> LogNormal(log_mean=0.0, log_std=[0.5, 1.0]).mean().round(3)
    array([1.133, 1.649])
    """

    name: ClassVar[str] = "log_normal"
    _positive: ClassVar[tuple[str, ...]] = ("log_std",)
    _bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"log_mean": (-1e3, 1e3), "log_std": (1e-12, 1e3)}
    log_mean: FloatArray
    log_std: FloatArray
    origin: FloatArray = 0.0  # type: ignore[assignment]  # broadcast in construction

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the half-line of each atom."""
        return self.origin.copy(), np.full(self.n_atoms, np.inf)

    def _standardize(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_distance = np.log(np.maximum(x - self.origin, 0.0))
        return log_distance, (log_distance - self.log_mean) / self.log_std

    def _logpdf(self, x: FloatArray) -> FloatArray:
        log_distance, y = self._standardize(x)
        value = -0.5 * y * y - log_distance - np.log(self.log_std) - LOG_SQRT_2PI
        return np.where(x > self.origin, value, -np.inf)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr(self._standardize(x)[1]))

    def _sf(self, x: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr(-self._standardize(x)[1]))

    def _ppf(self, q: FloatArray) -> FloatArray:
        y: FloatArray = special.ndtri(q)
        return self.origin + np.exp(self.log_mean + self.log_std * y)

    def _isf(self, q: FloatArray) -> FloatArray:
        y: FloatArray = special.ndtri(q)
        return self.origin + np.exp(self.log_mean - self.log_std * y)

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        normal = rng.standard_normal(len(atoms))
        return self.origin[atoms] + np.exp(self.log_mean[atoms] + self.log_std[atoms] * normal)

    def _mean(self) -> FloatArray:
        return self.origin + np.exp(self.log_mean + 0.5 * self.log_std**2)

    def _var(self) -> FloatArray:
        return np.expm1(self.log_std**2) * np.exp(2 * self.log_mean + self.log_std**2)

    def _mode(self) -> FloatArray:
        return self.origin + np.exp(self.log_mean - self.log_std**2)
