"""Families given by a symmetric standard form, shifted and scaled."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from scipy import special

from jointwise.families.base import LOG_SQRT_2PI
from jointwise.families.parametric import ParametricFamily

if TYPE_CHECKING:
    from jointwise._typing import FloatArray, IntArray


class LocationScale(ParametricFamily):
    """X = loc + scale * Z, where Z has a density that is symmetric about zero and highest there.

    A subclass gives the standard form: log-density, cdf and quantiles of Z, its variance and draws. Symmetry
    gives the rest, with full accuracy in the upper tail.
    """

    loc: FloatArray
    scale: FloatArray
    _positive: ClassVar[tuple[str, ...]] = ("scale",)

    @abstractmethod
    def _standard_logpdf(self, z: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _standard_cdf(self, z: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _standard_ppf(self, q: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _standard_sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray: ...

    @abstractmethod
    def _standard_var(self) -> FloatArray: ...

    def at(self, loc: FloatArray, scale: FloatArray) -> Self:
        """Return the same atoms with other locations and scales."""
        others = {name: getattr(self, name) for name in self.parameter_names()}
        return type(self)(**others | {"loc": loc, "scale": scale})

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the whole line for each atom."""
        return np.full(self.n_atoms, -np.inf), np.full(self.n_atoms, np.inf)

    def _logpdf(self, x: FloatArray) -> FloatArray:
        return self._standard_logpdf((x - self.loc) / self.scale) - np.log(self.scale)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return self._standard_cdf((x - self.loc) / self.scale)

    def _sf(self, x: FloatArray) -> FloatArray:
        return self._standard_cdf((self.loc - x) / self.scale)

    def _both_sides(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = (x - self.loc) / self.scale
        tail = self._standard_cdf(-np.abs(z))  # by symmetry, the smaller one gives both
        rest = 1 - tail
        is_below = z < 0
        return np.where(is_below, tail, rest), np.where(is_below, rest, tail)

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self.loc + self.scale * self._standard_ppf(q)

    def _isf(self, q: FloatArray) -> FloatArray:
        return self.loc - self.scale * self._standard_ppf(q)

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return self.loc[atoms] + self.scale[atoms] * self._standard_sample(atoms, rng)

    def _mean(self) -> FloatArray:
        return self.loc.copy()

    def _var(self) -> FloatArray:
        return self.scale**2 * self._standard_var()

    def _mode(self) -> FloatArray:
        return self.loc.copy()


@dataclass(frozen=True, eq=False)
class Gaussian(LocationScale):
    r"""Gaussian atoms, :math:`f(x) = e^{-z^2/2} / (\sigma\sqrt{2\pi})` with :math:`z = (x - \mu)/\sigma`.

    Support: the line. Mean :math:`\mu`, variance :math:`\sigma^2`.

    Parameters
    ----------
    loc, scale : float or array of shape (L,)
        Location :math:`\mu` and scale :math:`\sigma > 0`.

    Examples
    --------
    >>> atoms = Gaussian(loc=[0.0, 1.0], scale=1.0)
    >>> atoms.cdf([0.0, 1.0]).round(3)
    array([[0.5  , 0.159],
           [0.841, 0.5  ]])
    """

    name: ClassVar[str] = "gaussian"
    loc: FloatArray
    scale: FloatArray

    def _standard_logpdf(self, z: FloatArray) -> FloatArray:
        return -0.5 * z * z - LOG_SQRT_2PI

    def _standard_cdf(self, z: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr(z))

    def _standard_ppf(self, q: FloatArray) -> FloatArray:
        return np.asarray(special.ndtri(q))

    def _standard_sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return rng.standard_normal(len(atoms))

    def _standard_var(self) -> FloatArray:
        return np.ones(self.n_atoms)


@dataclass(frozen=True, eq=False)
class Laplace(LocationScale):
    r"""Laplace atoms, :math:`f(x) = e^{-|z|} / (2b)` with :math:`z = (x - \mu)/b`.

    Support: the line. Mean :math:`\mu`, variance :math:`2b^2`.

    Parameters
    ----------
    loc, scale : float or array of shape (L,)
        Location :math:`\mu` and scale :math:`b > 0`.

    Examples
    --------
    >>> Laplace(loc=0.0, scale=[1.0, 2.0]).pdf(0.0)
    array([0.5 , 0.25])
    """

    name: ClassVar[str] = "laplace"
    loc: FloatArray
    scale: FloatArray

    def _standard_logpdf(self, z: FloatArray) -> FloatArray:
        return -np.abs(z) - math.log(2)

    def _standard_cdf(self, z: FloatArray) -> FloatArray:
        tail = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0, tail, 1 - tail)

    def _standard_ppf(self, q: FloatArray) -> FloatArray:
        return np.where(q < 0.5, np.log(2 * q), -np.log(2 * (1 - q)))

    def _standard_sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return rng.laplace(size=len(atoms))

    def _standard_var(self) -> FloatArray:
        return np.full(self.n_atoms, 2.0)


@dataclass(frozen=True, eq=False)
class Cauchy(LocationScale):
    r"""Cauchy atoms, :math:`f(x) = 1 / (\pi\gamma(1 + z^2))` with :math:`z = (x - x_0)/\gamma`.

    Support: the line. Mean and variance: none (NaN).

    Parameters
    ----------
    loc : float or array of shape (L,)
        Location :math:`x_0`, the median.
    scale : float or array of shape (L,)
        Scale :math:`\gamma > 0`, half the distance between the quartiles.

    Examples
    --------
    >>> Cauchy(loc=0.0, scale=1.0).cdf([-1.0, 0.0, 1.0]).T
    array([[0.25, 0.5 , 0.75]])
    """

    name: ClassVar[str] = "cauchy"
    loc: FloatArray
    scale: FloatArray

    def _standard_logpdf(self, z: FloatArray) -> FloatArray:
        return -math.log(math.pi) - _log1p_square(z)

    def _standard_cdf(self, z: FloatArray) -> FloatArray:
        return np.arctan2(1.0, -z) / np.pi  # not 1/2 + arctan(z)/pi, whose lower tail cancels

    def _standard_ppf(self, q: FloatArray) -> FloatArray:
        tail = np.minimum(q, 1 - q)
        # tan near zero at both ends: 1/tan(pi q) loses digits near q = 1/2
        size = np.where(tail < 0.25, 1 / np.tan(np.pi * tail), np.tan(np.pi * (0.5 - tail)))
        return np.copysign(size, q - 0.5)

    def _standard_sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return rng.standard_cauchy(len(atoms))

    def _mean(self) -> FloatArray:
        return np.full(self.n_atoms, np.nan)

    def _standard_var(self) -> FloatArray:
        return np.full(self.n_atoms, np.nan)


@dataclass(frozen=True, eq=False)
class StudentT(LocationScale):
    r"""Student-t atoms, :math:`f(x) = (1 + z^2/\nu)^{-(\nu+1)/2} / (\sigma\sqrt\nu B(\nu/2, 1/2))`.

    Here :math:`z = (x - \mu)/\sigma`. Support: the line. Mean :math:`\mu` for :math:`\nu > 1`, else none
    (NaN). Variance :math:`\sigma^2\nu/(\nu - 2)` for :math:`\nu > 2`, infinite for :math:`1 < \nu \le 2`,
    else none (NaN).

    Parameters
    ----------
    df : float or array of shape (L,)
        Degrees of freedom :math:`\nu`, from 0.1 (below that, most draws overflow) to 1e12.
    loc, scale : float or array of shape (L,)
        Location :math:`\mu` and scale :math:`\sigma > 0`.

    Examples
    --------
    >>> StudentT(df=[1.0, 1.5, 4.0], loc=0.0, scale=1.0).var()
    array([nan, inf,  2.])
    """

    name: ClassVar[str] = "student_t"
    _positive: ClassVar[tuple[str, ...]] = ("df", "scale")
    _bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"df": (0.1, 1e12)}
    df: FloatArray
    loc: FloatArray
    scale: FloatArray

    def _standard_logpdf(self, z: FloatArray) -> FloatArray:
        root = np.sqrt(self.df)
        log_normalizer: FloatArray = np.log(root) + special.betaln(self.df / 2, 0.5)
        return -0.5 * (self.df + 1) * _log1p_square(z / root) - log_normalizer

    def _standard_cdf(self, z: FloatArray) -> FloatArray:
        far = z < -1e9 * np.sqrt(self.df)
        log_tail = -self.df * np.log(np.abs(z) / np.sqrt(self.df)) - self._log_tail_constant()
        return np.where(far, np.exp(log_tail), special.stdtr(self.df, z))

    def _standard_ppf(self, q: FloatArray) -> FloatArray:
        tail = np.minimum(q, 1 - q)
        log_size = -(np.log(tail) + self._log_tail_constant()) / self.df
        far = log_size > np.log(1e9)
        size = np.where(far, np.sqrt(self.df) * np.exp(log_size), -special.stdtrit(self.df, tail))
        return np.copysign(size, q - 0.5)

    def _log_tail_constant(self) -> FloatArray:
        """Return log c of the leading term of the tail, P(Z < -t) = (t/sqrt(df))^-df / c, for t^2 >> df."""
        return np.asarray(np.log(self.df) + special.betaln(self.df / 2, 0.5))

    def _standard_sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return rng.standard_t(self.df[atoms])

    def _mean(self) -> FloatArray:
        return np.where(self.df > 1, self.loc, np.nan)

    def _standard_var(self) -> FloatArray:
        finite = np.where(self.df > 2, self.df / (self.df - 2), np.inf)
        return np.where(self.df > 1, finite, np.nan)


@dataclass(frozen=True, eq=False)
class GeneralizedGaussian(LocationScale):
    r"""Generalised Gaussian atoms, :math:`f(x) = \beta e^{-|z|^\beta} / (2\alpha\Gamma(1/\beta))`.

    Here :math:`z = (x - \mu)/\alpha`. Laplace for :math:`\beta = 1`, Gaussian for :math:`\beta = 2`, near
    uniform for large :math:`\beta`.
    Support: the line. Mean :math:`\mu`, variance :math:`\alpha^2\Gamma(3/\beta)/\Gamma(1/\beta)`.

    Parameters
    ----------
    shape : float or array of shape (L,)
        Exponent :math:`\beta`, from 0.05 to 1e6.
    loc, scale : float or array of shape (L,)
        Location :math:`\mu` and scale :math:`\alpha > 0`.

    Examples
    --------
    >>> GeneralizedGaussian(shape=[1.0, 2.0], loc=0.0, scale=1.0).var().round(6)
    array([2. , 0.5])
    """

    name: ClassVar[str] = "generalized_gaussian"
    _positive: ClassVar[tuple[str, ...]] = ("shape", "scale")
    _bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"shape": (0.05, 1e6)}
    shape: FloatArray
    loc: FloatArray
    scale: FloatArray

    def _standard_logpdf(self, z: FloatArray) -> FloatArray:
        log_normalizer: FloatArray = special.gammaln(1 / self.shape) - np.log(self.shape / 2)
        return -(np.abs(z) ** self.shape) - log_normalizer

    def _standard_cdf(self, z: FloatArray) -> FloatArray:
        tail: FloatArray = 0.5 * special.gammaincc(1 / self.shape, np.abs(z) ** self.shape)
        return np.where(z < 0, tail, 1 - tail)

    def _standard_ppf(self, q: FloatArray) -> FloatArray:
        tail = np.minimum(q, 1 - q)
        size: FloatArray = special.gammainccinv(1 / self.shape, 2 * tail) ** (1 / self.shape)
        return np.copysign(size, q - 0.5)

    def _standard_sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        sign = rng.choice([-1.0, 1.0], size=len(atoms))
        return sign * rng.standard_gamma(1 / self.shape[atoms]) ** (1 / self.shape[atoms])

    def _standard_var(self) -> FloatArray:
        log_var: FloatArray = special.gammaln(3 / self.shape) - special.gammaln(1 / self.shape)
        return np.exp(log_var)


@dataclass(frozen=True, eq=False)
class Logistic(LocationScale):
    r"""Logistic atoms, :math:`f(x) = e^{-z} / (s(1 + e^{-z})^2)` with :math:`z = (x - \mu)/s`.

    Support: the line. Mean :math:`\mu`, variance :math:`\pi^2 s^2/3`.

    Parameters
    ----------
    loc, scale : float or array of shape (L,)
        Location :math:`\mu` and scale :math:`s > 0`.

    Examples
    --------
    >>> Logistic(loc=0.0, scale=1.0).ppf([0.25, 0.5]).round(3).T
    array([[-1.099,  0.   ]])
    """

    name: ClassVar[str] = "logistic"
    loc: FloatArray
    scale: FloatArray

    def _standard_logpdf(self, z: FloatArray) -> FloatArray:
        size: FloatArray = np.abs(z)
        return -size - 2.0 * np.log1p(np.exp(-size))

    def _standard_cdf(self, z: FloatArray) -> FloatArray:
        return np.asarray(special.expit(z))

    def _standard_ppf(self, q: FloatArray) -> FloatArray:
        return np.asarray(special.logit(q))

    def _standard_sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return rng.logistic(size=len(atoms))

    def _standard_var(self) -> FloatArray:
        return np.full(self.n_atoms, np.pi**2 / 3)


def _log1p_square(z: FloatArray) -> FloatArray:
    """Return log(1 + z^2), also where z^2 overflows."""
    size = np.abs(z)
    return np.where(size > 1e9, 2 * np.log(size), np.log1p(z * z))
