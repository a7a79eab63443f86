"""The contract of a family, a batch of one-dimensional distributions (atoms) that share one formula."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jointwise._checks import shown
from jointwise.exceptions import ImpossibleEventError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from jointwise._typing import FloatArray, IntArray

# Below this ratio of an interval's mass to the smaller tail it is taken from, a difference of cdf values has
# lost half its digits, while the density is constant over the interval to the same accuracy.
NARROW = 1e-8
LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
SMALLEST, LARGEST = np.finfo(float).tiny, np.finfo(float).max


class Family(ABC):
    """A batch of ``L`` atoms, distributions on the real line that share one formula.

    A final class is a frozen dataclass. It writes the private methods below, which receive points of shape
    (..., 1) or (..., L) and return shape (..., L); the public ones check, broadcast and take care of NaN and
    infinities.

    Examples
    --------
    >>> from jointwise.families import Laplace
    >>> atoms = Laplace(loc=[0.0, 1.0], scale=0.5)
    >>> atoms.n_atoms, atoms.mass(-1, 1).round(3)
    (2, array([0.865, 0.491]))
    """

    name: ClassVar[str]
    is_discrete: ClassVar[bool] = False
    """Whether densities are with respect to counting measure (else Lebesgue measure)."""

    # the constructor is written by dataclass; parameters are scalars or arrays of shape (L,)
    if TYPE_CHECKING:

        def __init__(self, *args: Any, **parameters: Any) -> None: ...

    # ---- what a final class provides ---------------------------------------------------------------------

    @property
    @abstractmethod
    def n_atoms(self) -> int:
        """Number of atoms ``L``."""

    @abstractmethod
    def take(self, index: ArrayLike) -> Family:
        """Return the family of some atoms, chosen by an integer array or a boolean mask of length L."""

    @abstractmethod
    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of each atom's support, each of shape (L,)."""

    @abstractmethod
    def _logpdf(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _cdf(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _sf(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _ppf(self, q: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _isf(self, q: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray: ...

    @abstractmethod
    def _mean(self) -> FloatArray: ...

    @abstractmethod
    def _var(self) -> FloatArray: ...

    @abstractmethod
    def _mode(self) -> FloatArray: ...

    @abstractmethod
    def _truncate(self, low: float, high: float, inside: FloatArray) -> Family:
        """Return the atoms conditional on an interval that holds these shares of their masses, shape (L,)."""

    def _mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """P(low < X <= high) from the tail in which both ends are small."""
        below, above = self._at(self._cdf, low, 0.0, 1.0), self._at(self._sf, low, 1.0, 0.0)
        from_below = self._at(self._cdf, high, 0.0, 1.0) - below
        from_above = above - self._at(self._sf, high, 1.0, 0.0)
        mass = np.maximum(np.where(below > 0.5, from_above, from_below), 0.0)
        width = np.maximum(high - low, 0.0)
        narrow = (mass < NARROW * np.minimum(below, above)) & (width < np.inf)
        if self.is_discrete or not narrow.any():
            return mass
        return np.where(narrow, times_density(width, self._logpdf(low + 0.5 * width)), mass)

    def _partition(self, edges: FloatArray) -> FloatArray:
        """Mass of each interval between neighbouring edges (K, 1) or (K, L), and beyond the ends; shape (K + 1, L)."""
        infinite = np.full((1, edges.shape[1]), np.inf)
        return self._mass(np.concatenate([-infinite, edges]), np.concatenate([edges, infinite]))

    # ---- densities and probabilities ---------------------------------------------------------------------

    def logpdf(self, x: ArrayLike) -> FloatArray:
        """Log-density at ``x`` under each atom, -inf outside the support; shape ``(*x.shape, L)``."""
        return self._at(self._logpdf, _points(x), -np.inf, -np.inf)

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at ``x`` (or probability of ``x``, if discrete) under each atom; shape ``(*x.shape, L)``."""
        with np.errstate(over="ignore", under="ignore"):  # infinity and zero are the right limits
            return np.exp(self.logpdf(x))

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(X <= x) under each atom; shape ``(*x.shape, L)``."""
        return self._at(self._cdf, _points(x), 0.0, 1.0)

    def sf(self, x: ArrayLike) -> FloatArray:
        """P(X > x) under each atom, accurate where it is small; shape ``(*x.shape, L)``."""
        return self._at(self._sf, _points(x), 1.0, 0.0)

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Smallest ``x`` with cdf(x) >= q under each atom; shape ``(*q.shape, L)``.

        At q = 0, the lower end of the support.
        """
        with np.errstate(all="ignore"):  # quantiles at 0 and 1 may be infinite
            return self._ppf(_probabilities(q))

    def isf(self, q: ArrayLike) -> FloatArray:
        """Quantile at ``1 - q`` under each atom, accurate where ``q`` is small; shape ``(*q.shape, L)``."""
        with np.errstate(all="ignore"):  # as ppf
            return self._isf(_probabilities(q))

    def mass(self, low: ArrayLike, high: ArrayLike) -> FloatArray:
        """P(low < X <= high) under each atom; of the shape of ``low`` and ``high`` broadcast, then L.

        Differences are taken in the tail where both terms are small, so both tails have relative accuracy. Where an
        interval is so narrow that digits cancel, the mass is its width times the density in its middle (relative
        error below about 1e-7). An empty interval has mass zero.
        """
        low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
        with np.errstate(all="ignore"):  # inf - inf at an end of the line is replaced or unused
            return self._mass(low[..., None], high[..., None])

    def partition(self, edges: ArrayLike) -> FloatArray:
        """Mass of each interval that rising edges cut the line into, under each atom; shape (K + 1, L).

        As :meth:`mass` of (-inf, e_1], (e_1, e_2], ..., (e_K, inf), with each edge evaluated once.
        """
        with np.errstate(all="ignore"):  # as in `mass`
            return self._partition(_points(edges))

    def inside(self, low: float, high: float) -> FloatArray:
        """P(low < X <= high) under each atom, as :meth:`mass` of one interval; shape (L,)."""
        if not low < high:
            return np.zeros(self.n_atoms)
        masses = self.partition([end for end in (low, high) if math.isfinite(end)])
        return np.asarray(masses[int(low > -math.inf)])

    # ---- draws and summaries -----------------------------------------------------------------------------

    def sample(self, atoms: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Draw once from each of the given ``atoms``, an integer array of shape (n,); shape (n,)."""
        atoms = np.asarray(atoms, dtype=np.int64)
        if atoms.ndim != 1 or (atoms.size and not (atoms.min() >= 0 and atoms.max() < self.n_atoms)):
            raise InputError(f"atoms must be a 1-D array of numbers from 0 to {self.n_atoms - 1}, got {shown(atoms)}.")
        if not atoms.size:
            return np.empty(0)
        with np.errstate(all="ignore"):  # a draw beyond the largest number becomes that number, which has a density
            return np.clip(self._sample(atoms, rng), -LARGEST, LARGEST)

    def mean(self) -> FloatArray:
        """Mean of each atom, NaN where it has none; shape (L,)."""
        with np.errstate(all="ignore"):  # a mean may be infinite or undefined
            return self._mean()

    def var(self) -> FloatArray:
        """Variance of each atom, infinite or NaN where it has none; shape (L,)."""
        with np.errstate(all="ignore"):  # as the mean
            return self._var()

    def mode(self) -> FloatArray:
        """Return a point of highest density of each atom; shape (L,)."""
        with np.errstate(all="ignore"):  # formulas for other shapes of the density are evaluated and dropped
            return self._mode()

    # ---- new from old ------------------------------------------------------------------------------------

    def truncate(self, low: float, high: float) -> Family:
        """Return the same atoms, each conditional on low < X <= high.

        Raises ImpossibleEventError if an atom has no mass there.
        """
        low, high = float(low), float(high)
        inside = self.inside(low, high)
        impossible = ~(inside > 0)
        if impossible.any():
            raise ImpossibleEventError(
                f"Atom {int(np.flatnonzero(impossible)[0])} of {self.n_atoms} {self.name} atoms has no mass "
                f"in ({low}, {high}]; drop such atoms first (take with mass(low, high) > 0)."
            )
        return self._truncate(low, high, inside)

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the fields, in the order of the constructor."""
        return _field_names(cls)

    def to_dict(self) -> dict[str, Any]:
        """Return a plain form, {"family": name, parameter: value, ...}, nested where there is a "base"."""
        values = {key: getattr(self, key) for key in self.parameter_names()}
        plain = {key: value.to_dict() if isinstance(value, Family) else value for key, value in values.items()}
        return {"family": self.name} | plain

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(np.array_equal(getattr(self, key), getattr(other, key)) for key in self.parameter_names())

    __hash__ = None  # type: ignore[assignment]  # holds arrays

    def _at(
        self, function: Callable[[FloatArray], FloatArray], x: FloatArray, at_minus_infinity: float, at_infinity: float
    ) -> FloatArray:
        """Values of a private method at points of shape (..., 1) or (..., L), with limits at both ends."""
        # far outside the bulk, overflow to infinity and underflow to zero are the right limits
        with np.errstate(all="ignore"):
            out = function(x)
        if not np.isfinite(x).all():
            out = np.where(x == -np.inf, at_minus_infinity, np.where(x == np.inf, at_infinity, out))
            out = np.where(np.isnan(x), np.nan, out)
        return out


@cache
def _field_names(family: type[Family]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(family))  # type: ignore[arg-type]  # final classes are dataclasses


def _points(x: ArrayLike) -> FloatArray:
    return np.asarray(x, dtype=float)[..., None]


def times_density(width: FloatArray, logpdf: FloatArray) -> FloatArray:
    """Return width * exp(logpdf), also where the density itself is beyond the largest number."""
    density = np.exp(logpdf)
    return np.where(np.isfinite(density), width * density, np.minimum(np.exp(np.log(width) + logpdf), 1.0))


def _probabilities(q: ArrayLike) -> FloatArray:
    q = _points(q)
    outside = (q < 0) | (q > 1)
    if outside.any():
        raise InputError(f"q must hold probabilities in [0, 1], got {float(q[outside][0])}.")
    return q
