"""Families made from another: its atoms on the integers, or restricted to an interval."""
# ruff: noqa: SLF001  (a family and its base keep the same contract, private part included)

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from jointwise._checks import cause, read_only, shown
from jointwise._numerics import integrate
from jointwise.exceptions import ImpossibleEventError, InputError
from jointwise.families.base import Family

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from jointwise._typing import BoolArray, FloatArray, IntArray

# Lattice points on each side of the median whose masses enter the moments one by one.
_WINDOW = 512
# Cell masses below this have lost digits to underflow.
_UNDERFLOW = 1e-290


class Derived(Family):
    """Atoms made from those of a continuous base, one from each."""

    base: Family

    @property
    def n_atoms(self) -> int:
        """Number of atoms ``L``."""
        return self.base.n_atoms

    def take(self, index: ArrayLike) -> Self:
        """Return the family of some atoms, chosen by an integer array or a boolean mask of length L."""
        return replace(self, base=self.base.take(index))  # type: ignore[type-var]  # final classes are dataclasses

    @property
    @abstractmethod
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each atom."""

    def _mean(self) -> FloatArray:
        return self._moments[0].copy()

    def _var(self) -> FloatArray:
        return self._moments[1].copy()


@dataclass(frozen=True, eq=False)
class Truncated(Derived):
    r"""The atoms of a continuous family, conditional on an interval: :math:`f(x) / P(low < X \le high)`.

    Support: that of the base, cut to [low, high]. Mean and variance come from quadrature of the quantile function. They
    are infinite or NaN where an infinite tail is left in which the base has no moment.

    Parameters
    ----------
    base : Family
        Continuous atoms, each with mass in the interval (above 1e-300 for full accuracy). A truncated base is replaced
        by its own base, conditional on both intervals.
    low, high : float or array of shape (L,)
        Ends of the interval, which may be infinite; arrays give each atom its own.

    Examples
    --------
    >>> from jointwise.families import Gaussian
    >>> tail = Gaussian(loc=0.0, scale=1.0).truncate(30, np.inf)
    >>> tail.mean().round(4), tail.sf([30.0, 30.1]).T.round(4)
    (array([30.0333]), array([[1.    , 0.0494]]))
    >>> Truncated(Gaussian(loc=[0.0, 0.0], scale=1.0), [-np.inf, 0.0], [0.0, np.inf]).mean().round(4)
    array([-0.7979,  0.7979])
    """

    name: ClassVar[str] = "truncated"
    base: Family
    low: float | FloatArray
    high: float | FloatArray

    def __post_init__(self) -> None:
        _refuse_discrete(self.base, self.name)
        low, high = self._end("low"), self._end("high")
        if isinstance(self.base, Truncated):  # one level is enough, and each further one would double the work
            low, high = _outer(np.maximum, low, self.base.low), _outer(np.minimum, high, self.base.high)
            object.__setattr__(self, "base", self.base.base)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if not np.all(np.less(low, high)):
            raise InputError(f"The parameter low of truncated must be below high, got {shown(low)} and {shown(high)}.")
        if not (self._total > 0).all():
            raise ImpossibleEventError(
                f"An atom of the {self.base.name} base has no mass in ({shown(low)}, {shown(high)}]."
            )

    def _end(self, name: str) -> float | FloatArray:
        """Return an end as a float, or as a read-only array of one for each atom."""
        try:
            given = getattr(self, name)
            ends = read_only(given if np.ndim(given) else float(given), np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"The parameters low and high of truncated must be numbers: {cause(error)}.") from error
        if ends.shape not in {(), (self.base.n_atoms,)}:
            raise InputError(
                f"The parameters low and high of truncated must be numbers, or arrays of one for each of the "
                f"{self.base.n_atoms} atoms; got an array of shape {ends.shape}."
            )
        return ends if ends.ndim else float(ends)

    def take(self, index: ArrayLike) -> Truncated:
        """Return the family of some atoms, chosen by an integer array or a boolean mask of length L."""
        index = np.asarray(index)
        low, high = (end[index] if isinstance(end, np.ndarray) else end for end in (self.low, self.high))
        return self._of_checked(self.base.take(index), low, high, self._total[index])

    @classmethod
    def _of_checked(
        cls, base: Family, low: float | FloatArray, high: float | FloatArray, total: FloatArray
    ) -> Truncated:
        """Return the family of atoms that were checked before, whose mass inside is known."""
        family = object.__new__(cls)
        for name, value in {"base": base, "low": low, "high": high, "_total": total}.items():
            object.__setattr__(family, name, value)
        return family

    @cached_property
    def _total(self) -> FloatArray:
        if np.ndim(self.low) or np.ndim(self.high):
            with np.errstate(all="ignore"):  # as in `mass`
                ends = (np.full(self.base.n_atoms, end) for end in (self.low, self.high))
                return np.asarray(self.base._mass(*ends))
        return self.base.inside(float(self.low), float(self.high))

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of each atom's support, cut to the interval."""
        start, end = self.base.support()
        return np.maximum(start, self.low), np.minimum(end, self.high)

    def _logpdf(self, x: FloatArray) -> FloatArray:
        inside = (self.low <= x) & (x <= self.high)
        return np.where(inside, self.base._logpdf(x) - np.log(self._total), -np.inf)

    def _mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        low, high = np.clip(low, self.low, self.high), np.clip(high, self.low, self.high)
        return np.minimum(self.base._mass(low, high) / self._total, 1.0)

    def _partition(self, edges: FloatArray) -> FloatArray:
        if np.ndim(self.low) or np.ndim(self.high):  # each atom has its own interval
            return super()._partition(edges)
        is_cut = bool(np.isfinite(self.low))
        ends = [np.full((1, 1), end) for end in (self.low, self.high)]
        cut = [ends[0]] * is_cut + [np.clip(edges, *ends)] + [ends[1]] * bool(np.isfinite(self.high))
        masses = self.base._partition(np.concatenate(cut))
        return np.minimum(masses[is_cut : is_cut + len(edges) + 1] / self._total, 1.0)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return self._mass(self.low + np.zeros_like(x), x)

    def _sf(self, x: FloatArray) -> FloatArray:
        return self._mass(x, self.high + np.zeros_like(x))

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self._quantile(q, 1 - q)

    def _isf(self, q: FloatArray) -> FloatArray:
        return self._quantile(1 - q, q)

    def _quantile(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Return points with mass ``lower`` below and ``upper`` = 1 - ``lower`` above, from the nearer tail."""
        below = self._outside[0] + lower * self._total
        above = self._outside[1] + upper * self._total
        near_low = self.base._ppf(np.clip(below, 0.0, 1.0))
        near_high = self.base._isf(np.clip(above, 0.0, 1.0))
        start, end = self.support()
        inner = np.clip(np.where(below <= 0.5, near_low, near_high), start, end)
        return np.where(lower == 0, start, np.where(upper == 0, end, inner))

    @cached_property
    def _outside(self) -> tuple[FloatArray, FloatArray]:
        """Mass of each atom of the base below the interval, and above it."""
        low, high = (np.full(self.base.n_atoms, end) for end in (self.low, self.high))
        return self.base._at(self.base._cdf, low, 0.0, 1.0), self.base._at(self.base._sf, high, 1.0, 0.0)

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        u = np.maximum(rng.random(len(atoms)), 2.0**-54)  # never zero, whose quantile may be infinite
        return self.take(atoms)._quantile(u, 1 - u)

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each atom."""
        start, end = self.support()
        median = self._ppf(np.array([0.5]))
        zero = np.zeros(self.n_atoms)
        first, second = _partial_moments(self, median, self.base.mode(), zero, zero)
        mean, var = median + first, np.maximum(second - first**2, 0.0)
        base_mean, base_var = self.base.mean(), self.base.var()
        unbounded = np.isinf(start) | np.isinf(end)
        no_mean, no_var = unbounded & ~np.isfinite(base_mean), unbounded & ~np.isfinite(base_var)
        # the mean is at the end of the one infinite tail; with two, inf - inf is NaN
        tail = np.where(np.isinf(end), np.inf, 0.0) - np.where(np.isinf(start), np.inf, 0.0)
        return np.where(no_mean, tail, mean), np.where(no_mean, np.nan, np.where(no_var, np.inf, var))

    def _mode(self) -> FloatArray:
        start, end = self.support()
        return _best(self, np.stack([np.clip(self.base.mode(), start, end), start, end]))

    def _truncate(self, low: float, high: float, inside: FloatArray) -> Family:  # noqa: ARG002  # those of the base differ
        return Truncated(self.base, _outer(np.maximum, low, self.low), _outer(np.minimum, high, self.high))


@dataclass(frozen=True, eq=False)
class Lattice(Derived):
    r"""Integer atoms from a continuous family, :math:`P(X = k) = P(k - 1/2 < Y \le k + 1/2)`.

    Support: integers. Mean and variance: those of the base plus a correction summed over 1025 points around the
    median. Beyond these points the density is taken as smooth, so a jump of height h there, at a distance d, leaves an
    error of at most h/12 in the mean and hd/6 in the variance.

    If a cell's mass underflows, its logarithm comes from log-linear interpolation of the density: exact in
    exponential tails, within 0.01 in a Gaussian one, within 0.5 in a cell where the support ends.

    Parameters
    ----------
    base : Family
        Continuous atoms.

    Examples
    --------
    >>> from jointwise.families import Gaussian
    >>> atoms = Lattice(Gaussian(loc=0.25, scale=[0.1, 2.0]))
    >>> atoms.pdf([0.0, 0.5, 1.0]).round(3)
    array([[0.994, 0.196],
           [0.   , 0.   ],
           [0.006, 0.184]])
    >>> atoms.mean().round(3), atoms.var().round(3)
    (array([0.006, 0.25 ]), array([0.006, 4.083]))
    """

    name: ClassVar[str] = "lattice"
    is_discrete: ClassVar[bool] = True
    base: Family

    def __post_init__(self) -> None:
        _refuse_discrete(self.base, self.name)

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Return the first and last integer of each atom."""
        start, end = self.base.support()
        return np.floor(start - 0.5) + 1, np.ceil(end + 0.5) - 1

    def logpdf(self, x: ArrayLike) -> FloatArray:
        """Log-probability of ``x`` under each atom, -inf if it is not an integer; shape ``(*x.shape, L)``."""
        x = np.asarray(x, dtype=float)
        distinct, where = np.unique(x, return_inverse=True)  # integers repeat, and a cell is costly
        return super().logpdf(distinct)[where.reshape(x.shape)]

    def _logpdf(self, x: FloatArray) -> FloatArray:
        mass = self.base._mass(x - 0.5, x + 0.5)
        value = np.log(mass)
        lost = mass < _UNDERFLOW
        if lost.any():
            value = np.where(lost, self._log_cell(x), value)
        return np.where(x == np.floor(x), value, -np.inf)

    def _log_cell(self, x: FloatArray) -> FloatArray:
        """Log-mass of cells by log-linear interpolation of the density over their two halves."""
        start, end = self.base.support()
        low, high = np.maximum(x - 0.5, start), np.minimum(x + 0.5, end)
        # in this form the width is one if x is too large to hold a half
        width = 1 - np.maximum(start - (x - 0.5), 0.0) - np.maximum((x + 0.5) - end, 0.0)
        left, middle, right = (self.base._logpdf(p) for p in (low, 0.5 * (low + high), high))
        halves = np.logaddexp(_log_mean_of_line(left, middle), _log_mean_of_line(middle, right))
        return np.where(width > 0, halves + np.log(0.5 * width), -np.inf)

    def _mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        return self.base._mass(np.floor(low) + 0.5, np.floor(high) + 0.5)

    def _partition(self, edges: FloatArray) -> FloatArray:
        return self.base._partition(np.floor(edges) + 0.5)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return self.base._cdf(np.floor(x) + 0.5)

    def _sf(self, x: FloatArray) -> FloatArray:
        return self.base._sf(np.floor(x) + 0.5)

    def _ppf(self, q: FloatArray) -> FloatArray:
        k = np.ceil(self.base._ppf(q) - 0.5)
        # the base's quantile is rounded: step to the smallest k with cdf(k) >= q
        k = np.where(self._cdf(k - 1) >= q, k - 1, np.where(self._cdf(k) < q, k + 1, k))
        return np.clip(k, *self.support())

    def _isf(self, q: FloatArray) -> FloatArray:
        k = np.ceil(self.base._isf(q) - 0.5)
        k = np.where(self._sf(k - 1) <= q, k - 1, np.where(self._sf(k) > q, k + 1, k))
        return np.clip(k, *self.support())

    def _sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        return np.ceil(self.base.sample(atoms, rng) - 0.5)

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each atom.

        Sums over the window if it holds all the mass, else the base's moments plus a correction.
        """
        centre = np.round(self.base.ppf(0.5))
        step = np.arange(-_WINDOW, _WINDOW + 1)[:, None]
        mass = self.base._mass(centre + step - 0.5, centre + step + 0.5)
        first = (step * mass).sum(axis=0)
        spread = ((step - first) ** 2 * mass).sum(axis=0)
        left, right = centre - _WINDOW - 0.5, centre + _WINDOW + 0.5
        below, above = self.base._cdf(left), self.base._sf(right)
        # a tail without moments has none on the integers either, even a thin one
        inside = (below + above < 1e-17) & np.isfinite(self.base.mean()) & np.isfinite(self.base.var())
        if inside.all():
            return centre + first, spread
        second = (step**2 * mass).sum(axis=0)
        mean, var = self._corrected(centre, first, second, below, above)
        return np.where(inside, centre + first, mean), np.where(inside, spread, var)

    def _corrected(
        self, centre: FloatArray, first: FloatArray, second: FloatArray, below: FloatArray, above: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the base's moments plus the change by rounding to integers, inside and outside the window.

        Inside, the change is the difference of sums (``first``, ``second``, about ``centre``) and integrals. Outside,
        a cell around k changes the first moment by -f'(k)/12 and the second by -k f'(k)/6 - f(k)/12; these sum to
        terms at the window's ends.
        """
        reach = _WINDOW + 0.5
        kink = np.clip(self.base.mode(), centre - reach, centre + reach)
        base_first, base_second = _partial_moments(self.base, centre, kink, below, above)
        at_left, at_right = (np.exp(self.base._logpdf(end)) for end in (centre - reach, centre + reach))
        base_shift = self.base.mean() - centre
        shift = base_shift + first - base_first + (at_right - at_left) / 12
        base_var = self.base.var()
        square = base_var + base_shift**2 + second - base_second
        square = square + reach * (at_left + at_right) / 6 + (below + above) / 12
        var = np.maximum(square - shift**2, 0.0)
        return centre + shift, np.where(np.isinf(base_var), np.inf, var)

    def _mode(self) -> FloatArray:
        # the cell of the base's mode, or a neighbour if the mode is near its edge and the density is skew
        return _best(self, np.round(self.base.mode()) + np.array([[0.0], [-1.0], [1.0]]))

    def _truncate(self, low: float, high: float, inside: FloatArray) -> Family:  # noqa: ARG002  # the base finds its own
        return Lattice(self.base.truncate(np.floor(low) + 0.5, np.floor(high) + 0.5))


def _outer(which: np.ufunc, a: float | FloatArray, b: float | FloatArray) -> float | FloatArray:
    """Return the larger or smaller of ends, a float where both are."""
    found = which(a, b)
    return found if isinstance(found, np.ndarray) else float(found)


def _refuse_discrete(base: Family, name: str) -> None:
    if not isinstance(base, Family) or base.is_discrete:
        raise InputError(f"The base of {name} must be a continuous family, got {shown(base)}.")


def _partial_moments(
    family: Family, centre: FloatArray, kink: FloatArray, below: FloatArray, above: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the integrals of (x - centre)^p f(x), p = 1, 2, without mass ``below`` (left) and ``above`` (right).

    The quantile function is integrated over probabilities, so the scale need not be known. The two sides of ``kink``
    are integrated apart; u = u_kink * exp(-t) stretches the tail.
    """

    def one_side(
        quantile: Callable[[FloatArray], FloatArray], top: FloatArray, outside: FloatArray, power: int
    ) -> FloatArray:
        def integrand(t: FloatArray) -> FloatArray:
            u = top * np.exp(-t)
            return np.where(u > 1e-300, (quantile(u) - centre) ** power * u, 0.0)

        end = np.where(top > outside, np.log(top / outside), 0.0)
        return integrate(integrand, np.zeros_like(end), end)

    left, right = family._cdf(kink), family._sf(kink)
    first, second = (
        one_side(family._ppf, left, below, power) + one_side(family._isf, right, above, power) for power in (1, 2)
    )
    return first, second


def _best(family: Family, candidates: FloatArray) -> FloatArray:
    """Return each atom's candidate of highest density, the first of equals; candidates of shape (m, L)."""
    density = np.where(np.isfinite(candidates), family._logpdf(candidates), -np.inf)
    density[0] += 1e-9  # rounding must not decide between equals
    return np.asarray(candidates[density.argmax(axis=0), np.arange(family.n_atoms)])


def _log_mean_of_line(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the log of a density's mean over an interval on which its logarithm is a straight line."""
    top, fall = np.maximum(left, right), np.abs(left - right)
    mean: FloatArray = top + np.where(fall > 0, np.log(-np.expm1(-fall) / fall), 0.0)
    flat: BoolArray = np.isneginf(top) | np.isinf(fall)
    return np.where(flat, -np.inf, mean)
