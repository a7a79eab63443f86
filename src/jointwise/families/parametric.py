"""Families whose fields are parameter arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from jointwise._checks import cause
from jointwise.exceptions import InputError
from jointwise.families.base import NARROW, Family, times_density
from jointwise.families.derived import Truncated

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from jointwise._typing import BoolArray, FloatArray


class ParametricFamily(Family):
    """A family whose fields are parameter arrays, broadcast to one length and read-only."""

    _positive: ClassVar[tuple[str, ...]] = ()
    """Parameters that must be above zero."""
    _bounds: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Smallest and largest values of parameters; beyond them the formulas fail in float64."""

    def __post_init__(self) -> None:
        names = self.parameter_names()
        expected = f"The parameters ({', '.join(names)}) of {self.name} must be numbers or 1-D arrays of one length"
        try:
            given = [np.asarray(getattr(self, name), dtype=float) for name in names]
            shape = np.broadcast(*given, np.zeros(1)).shape
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{expected}: {cause(error)}.") from error
        if len(shape) != 1 or shape[0] == 0:
            raise InputError(f"{expected}, at least one; got shape {shape}.")
        for name, array in zip(names, given, strict=True):
            value = np.empty(shape)
            value[:] = array
            value.setflags(write=False)
            object.__setattr__(self, name, value)
            self._require(np.isfinite(value), name, "finite")
        for name in self._positive:
            self._require(getattr(self, name) > 0, name, "positive")
        for name, (low, high) in self._bounds.items():
            value = getattr(self, name)
            self._require((low <= value) & (value <= high), name, f"from {low:g} to {high:g}")

    def _require(self, valid: BoolArray, name: str, expected: str) -> None:
        if not valid.all():
            atom = int(np.flatnonzero(~valid)[0])
            value = float(getattr(self, name)[atom])
            raise InputError(f"The parameter {name} of {self.name} must be {expected}, got {value} for atom {atom}.")

    @property
    def n_atoms(self) -> int:
        """Number of atoms ``L``."""
        return int(getattr(self, self.parameter_names()[0]).size)

    def take(self, index: ArrayLike) -> Family:
        """Return the family of some atoms, chosen by an integer array or a boolean mask of length L."""
        index = np.asarray(index)
        chosen = {name: getattr(self, name)[index] for name in self.parameter_names()}
        if any(value.ndim != 1 or not value.size for value in chosen.values()):
            return type(self)(**chosen)  # which says what is wrong
        return self._of_checked(chosen)

    @classmethod
    def _of_checked(cls, values: Mapping[str, FloatArray]) -> Self:
        """Return the family with these parameters, arrays of one length whose values were checked before."""
        family = object.__new__(cls)
        for name, value in values.items():
            value.setflags(write=False)
            object.__setattr__(family, name, value)
        return family

    def _both_sides(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mass below each point and above it, both with relative accuracy."""
        return self._at(self._cdf, x, 0.0, 1.0), self._at(self._sf, x, 1.0, 0.0)

    def _partition(self, edges: FloatArray) -> FloatArray:
        if not len(edges):
            return np.ones((1, self.n_atoms))
        below, above = self._both_sides(edges)
        masses = np.empty((len(edges) + 1, self.n_atoms))
        masses[0], masses[-1], inner = below[0], above[-1], masses[1:-1]
        np.maximum(np.where(below[:-1] > 0.5, above[:-1] - above[1:], below[1:] - below[:-1]), 0.0, out=inner)
        narrow = inner < NARROW * np.minimum(below, above)[:-1]
        if not self.is_discrete and narrow.any():
            width = edges[1:] - edges[:-1]
            np.copyto(inner, times_density(width, self._logpdf(edges[:-1] + 0.5 * width)), where=narrow)
        return masses

    def _truncate(self, low: float, high: float, inside: FloatArray) -> Family:
        start, end = self.support()
        covered = bool((low <= start).all() and (end <= high).all())
        return self if covered else Truncated._of_checked(self, low, high, inside)  # noqa: SLF001  # checked just now
