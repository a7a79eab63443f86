"""The dictionary of one variable: its atoms, their bin masses on an axis, and recipes to build one.

A dictionary is a tuple of families, each a batch of atoms; ``+`` puts dictionaries side by side. The three
dictionaries printed in the paper take one line each:

>>> seeds = Dictionary.grid("gaussian", 10, 22, step=2, scale=1) + Dictionary.uniforms([10, 16, 22])
>>> wifi = Dictionary.grid("gaussian", -90, -36, step=4, scale=2)
>>> kth = Dictionary.grid("gaussian", 0, 1, step=0.04, scale=0.02)
>>> seeds.n_atoms, wifi.n_atoms, kth.n_atoms
(9, 14, 26)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointwise._checks import check_integer, reading, shown
from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.axes import Axis, BinnedAxis, DiscreteAxis
from jointwise.exceptions import InputError, UnknownNameError
from jointwise.families import (
    FAMILIES,
    Category,
    Family,
    Lattice,
    PointMass,
    StudentT,
    Truncated,
    Uniform,
    family_from_dict,
)
from jointwise.families.joining import joined, kind_of
from jointwise.families.location_scale import LocationScale


@dataclass(frozen=True)
class Dictionary:
    """Atoms ``d_l`` of one variable, from which its conditionals are mixed.

    If a continuous variable has point masses (spikes), the base measure has a unit mass at each. At such a point only
    the point masses have a density; every other atom counts as zero.

    Parameters
    ----------
    families : tuple of Family
        Batches of atoms; atom ``l`` of the dictionary is the ``l``-th in their order.

    Examples
    --------
    >>> d = Dictionary.grid("laplace", -1, 1, n=3, scale=0.5) + Dictionary.points([0.0])
    >>> d.n_atoms
    4
    >>> d.pdf([0.0]).round(2)
    array([[0., 0., 0., 1.]])
    """

    families: tuple[Family, ...]

    def __post_init__(self) -> None:
        families = (self.families,) if isinstance(self.families, Family) else tuple(self.families)
        if not families or not all(isinstance(f, Family) for f in families):
            raise InputError("A dictionary needs at least one family of atoms, such as Gaussian(loc=0, scale=1).")
        object.__setattr__(self, "families", families)

    # ---- recipes -----------------------------------------------------------------------------------------

    @classmethod
    def grid(
        cls,
        family: str | Sequence[str],
        low: float,
        high: float,
        *,
        step: float | None = None,
        n: int | None = None,
        scale: float | Sequence[float],
        **shape: float,
    ) -> Dictionary:
        """Location-scale atoms at evenly spaced locations of ``[low, high]``, once per family and scale.

        Parameters
        ----------
        family : str or sequence of str
            "gaussian", "laplace", "cauchy", "logistic", "student_t" (with ``df=``) or "generalized_gaussian"
            (with ``shape=``).
        low, high : float
            First location, and the bound that no location exceeds.
        step, n : float, int
            Distance between locations, or their number: give one of the two.
        scale : float or sequence of float
            The scales; each is used at every location.
        **shape : float
            Further parameters of the family, the same for all atoms.
        """
        loc = _locations(low, high, step, n)
        names = [family] if isinstance(family, str) else list(family)
        scales = np.atleast_1d(np.asarray(scale, dtype=float))
        made = [_location_scale(name)(loc=loc, scale=s, **shape) for name, s in itertools.product(names, scales)]
        return cls(tuple(made))

    @classmethod
    def uniforms(cls, breaks: ArrayLike) -> Dictionary:
        """Uniform atoms between neighbouring ``breaks``, for densities that jump."""
        points = np.asarray(breaks, dtype=float)
        if points.ndim != 1 or points.size < 2:
            raise InputError(f"breaks must hold at least two increasing numbers, got {shown(breaks)}.")
        return cls((Uniform(low=points[:-1], high=points[1:]),))

    @classmethod
    def points(cls, values: ArrayLike) -> Dictionary:
        """One point mass per value: the identity dictionary of integers, or the spikes of a density."""
        return cls((PointMass(loc=np.asarray(values, dtype=float)),))

    @classmethod
    def categories(cls, n: int) -> Dictionary:
        """Return the identity dictionary of a variable with ``n`` categories: atom ``l`` is the ``l``-th one."""
        return cls((Category(code=np.arange(check_integer("n", n, 1), dtype=float)),))

    def __add__(self, other: Dictionary) -> Dictionary:
        return Dictionary(self.families + other.families) if isinstance(other, Dictionary) else NotImplemented

    # ---- the atoms ---------------------------------------------------------------------------------------

    @cached_property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return sum(f.n_atoms for f in self.families)

    @cached_property
    def spikes(self) -> FloatArray:
        """Sorted locations of the point masses, where the base measure has a unit mass."""
        found = [f.loc for f in self.families if isinstance(f, PointMass)]
        return np.unique(np.concatenate(found)) if found else np.empty(0)

    @cached_property
    def is_continuous(self) -> bool:
        """Whether some atom has a density with respect to Lebesgue measure."""
        return any(not f.is_discrete for f in self.families)

    @cached_property
    def is_identity(self) -> bool:
        """Whether every atom is a single value: a category or a point mass."""
        return all(isinstance(f, PointMass | Category) for f in self.families)

    @cached_property
    def lists_values(self) -> bool:
        """Whether it lists values as point masses, with no other atom than one wide Student-t for all the rest.

        >>> (Dictionary.points([0, 1, 2]) + Dictionary.grid("student_t", 1, 1, n=1, scale=1, df=3)).lists_values
        True
        """
        others = [f for f in self.families if not isinstance(f, PointMass)]
        wide = [f for f in others if f.n_atoms == 1 and isinstance(innermost(f), StudentT)]
        return len(others) == len(wide) <= 1 and self.spikes.size > 0

    def logpdf(self, x: ArrayLike) -> FloatArray:
        """Log-density of each atom at ``x`` of shape (n,), with respect to the base measure; shape (n, L)."""
        x = np.asarray(x, dtype=float)
        out = self._gather(lambda f: f.logpdf(x))
        if self.spikes.size and self.is_continuous:
            out[np.isin(x, self.spikes)[:, None] & self._lebesgue] = -np.inf
        return out

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density of each atom at ``x`` of shape (n,); shape (n, L)."""
        with np.errstate(over="ignore"):  # a density may grow beyond the largest number
            return np.exp(self.logpdf(x))

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(X <= x) under each atom; shape (n, L)."""
        return self._gather(lambda f: f.cdf(x))

    def sf(self, x: ArrayLike) -> FloatArray:
        """P(X > x) under each atom, accurate where it is small; shape (n, L)."""
        return self._gather(lambda f: f.sf(x))

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles of each atom; shape (n, L)."""
        return self._gather(lambda f: f.ppf(q))

    def mass(self, low: ArrayLike, high: ArrayLike) -> FloatArray:
        """P(low < X <= high) under each atom; shape (n, L), or (L,) for two numbers."""
        return self._gather(lambda f: f.mass(low, high))

    def partition(self, edges: ArrayLike) -> FloatArray:
        """Mass of each interval that rising edges cut the line into, under each atom; shape (K + 1, L).

        The intervals are (-inf, e_1], (e_1, e_2], ..., (e_K, inf).
        """
        return self._gather(lambda f: f.partition(edges))

    def closed_mass(self, low: ArrayLike, high: ArrayLike) -> FloatArray:
        """P(low <= X <= high) under each atom; shape (n, L), or (L,) for two numbers."""
        low = np.asarray(low, dtype=float)
        if low.ndim or np.ndim(high):
            return self._gather(lambda f: f.mass(_just_below(f, low), high))
        return self._gather(lambda f: f.inside(float(_just_below(f, low)), float(np.asarray(high))))

    def point_mass(self, x: ArrayLike) -> FloatArray:
        """P(X = x) under each atom, zero for atoms with a density; shape (n, L)."""
        x = np.asarray(x, dtype=float)
        return np.asarray(self.mass(np.nextafter(x, -np.inf), x) * ~self._lebesgue)

    def sample(self, atoms: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw once from each of the given ``atoms``; shape (n,)."""
        out = np.empty(len(atoms))
        start = 0
        for family in self.families:
            here = np.flatnonzero((atoms >= start) & (atoms < start + family.n_atoms))
            if here.size:
                out[here] = family.sample(atoms[here] - start, rng)
            start += family.n_atoms
        return out

    def mean(self) -> FloatArray:
        """Mean of each atom, NaN where it has none; shape (L,)."""
        return np.concatenate([f.mean() for f in self.families])

    def var(self) -> FloatArray:
        """Variance of each atom, NaN or infinite where it has none; shape (L,)."""
        return np.concatenate([f.var() for f in self.families])

    def mode(self) -> FloatArray:
        """Mode of each atom; shape (L,)."""
        return np.concatenate([f.mode() for f in self.families])

    def corners(self) -> FloatArray:
        """Modes and finite ends of the atoms, sorted: where a density may peak, jump or have a kink."""
        found = np.concatenate([self.mode(), self.ppf([0.0, 1.0]).ravel()])
        return np.unique(found[np.isfinite(found)])

    # ---- on an axis --------------------------------------------------------------------------------------

    def masses(self, axis: Axis) -> FloatArray:
        """Bin masses Dbar[i, l] = P(bin i | atom l); shape (n_bins, n_atoms), each column sums to one.

        On a :class:`~jointwise.axes.DiscreteAxis` columns sum to one if the axis has every value the atoms can take.

        >>> from jointwise.axes import BinnedAxis
        >>> d = Dictionary.grid("gaussian", 0, 1, n=2, scale=1)
        >>> d.masses(BinnedAxis(edges=[0.0])).round(3)
        array([[0.5  , 0.159],
               [0.5  , 0.841]])
        """
        if isinstance(axis, DiscreteAxis):
            return self.pdf(axis.values)
        assert isinstance(axis, BinnedAxis)  # the only other kind
        intervals = self.partition(axis.edges)
        if not len(axis.spikes):
            return intervals
        at_spikes = self.point_mass(axis.spikes)
        np.subtract.at(intervals, np.searchsorted(axis.edges, axis.spikes), at_spikes)
        return np.vstack([intervals, at_spikes])

    def mixed_masses(self, axis: Axis, coefficients: FloatArray) -> FloatArray:
        """Bin masses of mixtures of the atoms: `masses` times coefficients (L, F); shape (n_bins, F).

        Where every atom is a single value, no matrix of masses is made.

        >>> from jointwise.axes import DiscreteAxis
        >>> Dictionary.categories(2).mixed_masses(DiscreteAxis([0.0, 1.0, 2.0]), np.array([[0.2], [0.8]])).ravel()
        array([0.2, 0.8, 0. ])
        """
        bins = self.bins(axis)
        if bins is None:
            return np.asarray(self.masses(axis) @ coefficients)
        found = np.zeros((axis.n_bins, coefficients.shape[1]))
        np.add.at(found, bins, coefficients)
        return found

    def bins(self, axis: Axis) -> IntArray | None:
        """Return the bin that holds each atom, shape (L,); None unless every atom is a single value of the axis.

        >>> from jointwise.axes import DiscreteAxis
        >>> Dictionary.categories(3).bins(DiscreteAxis([0.0, 1.0, 2.0]))
        array([0, 1, 2])
        """
        if not self.is_identity:
            return None
        found = axis.index(self.mode()).astype(np.int64)
        return found if (found < axis.n_bins).all() else None

    def on_lattice(self) -> Dictionary:
        """Return the dictionary for an integer variable: each density becomes P(X=k) = cdf(k+1/2) - cdf(k-1/2)."""
        return Dictionary(tuple(f if f.is_discrete else Lattice(f) for f in self.families))

    # ---- new from old ------------------------------------------------------------------------------------

    def take(self, keep: BoolArray) -> Dictionary:
        """Return the dictionary of the atoms marked in ``keep``, a boolean array of shape (L,)."""
        parts = np.split(keep, np.cumsum([f.n_atoms for f in self.families])[:-1])
        return Dictionary(tuple(f.take(k) for f, k in zip(self.families, parts, strict=True) if k.any()))

    def truncate(self, low: float, high: float) -> Dictionary:
        """Return the same atoms, each conditional on low <= X <= high."""
        return Dictionary(tuple(f.truncate(float(_just_below(f, low)), high) for f in self.families))

    def to_dict(self) -> dict[str, Any]:
        """Return a plain form: names of families and their parameter arrays."""
        return {"families": [f.to_dict() for f in self.families]}

    @classmethod
    @reading("a dictionary as written by `Dictionary.to_dict`")
    def from_dict(cls, data: Mapping[str, Any]) -> Dictionary:
        """Return the dictionary that :meth:`to_dict` wrote, with every parameter checked.

        Raises FileFormatError for anything else.
        """
        return cls(tuple(family_from_dict(f) for f in data["families"]))

    def __repr__(self) -> str:
        return f"Dictionary({' + '.join(self.summary())})"

    def summary(self) -> list[str]:
        """Return the number of atoms of each family, in order of first appearance.

        >>> Dictionary.grid("gaussian", 0, 1, n=5, scale=[0.1, 0.2]).summary()
        ['10 gaussian']
        """
        sizes: dict[str, int] = {}
        for family in self.families:
            sizes[family.name] = sizes.get(family.name, 0) + family.n_atoms
        return [f"{size} {name}" for name, size in sizes.items()]

    # ---- helpers -----------------------------------------------------------------------------------------

    @cached_property
    def _lebesgue(self) -> BoolArray:
        """Which atoms have a density with respect to Lebesgue measure; shape (L,)."""
        return np.repeat([not f.is_discrete for f in self.families], [f.n_atoms for f in self.families])

    def _gather(self, values: Callable[[Family], FloatArray]) -> FloatArray:
        """Return the values (..., L) of all families side by side, always in C order."""
        parts = [values(f) for f, _ in self._by_kind]
        if len(parts) == len(self.families):
            return np.concatenate(parts, axis=-1, out=np.empty((*parts[0].shape[:-1], self.n_atoms)))
        found = np.empty((*parts[0].shape[:-1], self.n_atoms))
        for part, (_, columns) in zip(parts, self._by_kind, strict=True):
            found[..., columns] = part
        return found

    @cached_property
    def _by_kind(self) -> list[tuple[Family, IntArray]]:
        """The families, those of one kind joined, and the positions of their atoms: a call costs more than an atom."""
        kinds: dict[Hashable, list[int]] = {}
        for position, family in enumerate(self.families):
            kinds.setdefault(kind_of(family), []).append(position)
        ends = np.cumsum([family.n_atoms for family in self.families])
        columns = [np.arange(end - f.n_atoms, end) for f, end in zip(self.families, ends, strict=True)]
        return [
            (joined([self.families[i] for i in same]), np.concatenate([columns[i] for i in same]))
            for same in kinds.values()
        ]


def innermost(family: Family) -> Family:
    """Return the family that truncated and lattice atoms are made from."""
    while isinstance(family, Lattice | Truncated):
        family = family.base
    return family


def _just_below(family: Family, low: Any) -> Any:
    """Return the lower end of the half-open interval equal to a closed one; it differs only for discrete atoms."""
    return np.nextafter(low, -np.inf) if family.is_discrete else low


def _locations(low: float, high: float, step: float | None, n: int | None) -> FloatArray:
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise InputError(f"low and high must be finite with low <= high, got {low!r} and {high!r}.")
    if (step is None) == (n is None):
        raise InputError("Give either step, the distance between locations, or n, their number.")
    if n is not None:
        return np.linspace(low, high, check_integer("n", n, 1))
    assert step is not None
    if not 0 < step < np.inf:
        raise InputError(f"step must be positive and finite, got {step!r}.")
    # a little slack, so that 0.04 * 25 reaches 1
    return np.asarray(low + step * np.arange(int(np.floor((high - low) / step + 1e-9)) + 1))


LOCATION_SCALE = {key: family for key, family in FAMILIES.items() if issubclass(family, LocationScale)}


def _location_scale(name: str) -> type[LocationScale]:
    known = LOCATION_SCALE
    if name not in known:
        raise UnknownNameError(f"Unknown location-scale family {shown(name)}. Known: {', '.join(known)}.")
    return known[name]
