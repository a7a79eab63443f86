"""Candidates for the dictionary of one column, as sets of atoms of one pool: all of them are evaluated together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, overload

import numpy as np

from jointwise._typing import BoolArray, IntArray
from jointwise.dictionary import Dictionary
from jointwise.families import Family
from jointwise.families.joining import truncated

# Atoms with less of their mass than this inside the support are left out: truncated, they would be mere slopes.
LEAST_INSIDE = 0.02


class Part(NamedTuple):
    """Neighbouring atoms of one family of a pool."""

    family: int
    start: int
    stop: int


def neighbouring_parts(family: int, sizes: Sequence[int]) -> list[Part]:
    """Return parts of these numbers of atoms, one after the other, of a family of a pool.

    >>> neighbouring_parts(0, [2, 3])
    [Part(family=0, start=0, stop=2), Part(family=0, start=2, stop=5)]
    """
    return [Part(family, end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]


class Candidates(Sequence[Dictionary]):
    """Dictionaries made of parts of the same families; each is built when it is asked for.

    Parameters
    ----------
    families : sequence of Family
        The pool of atoms.
    parts : sequence of sequences of Part
        The parts of each candidate.

    Examples
    --------
    >>> from jointwise.families import Gaussian, Laplace
    >>> pool = [Gaussian(loc=[0.0, 1.0, 2.0], scale=1.0), Laplace(loc=0.0, scale=1.0)]
    >>> found = Candidates(pool, [[Part(0, 0, 1)], [Part(0, 1, 3), Part(1, 0, 1)]])
    >>> found[1], found.atoms(1)
    (Dictionary(2 gaussian + 1 laplace), array([1, 2, 3]))
    """

    def __init__(self, families: Sequence[Family], parts: Sequence[Sequence[Part]]) -> None:
        self.pool = Dictionary(tuple(families))
        self._parts = parts
        self._starts = [0, *accumulate(family.n_atoms for family in families)]
        self._built: dict[int, Dictionary] = {}
        self._families: dict[Part, Family] = {}

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, number: int) -> Dictionary: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Dictionary]: ...
    def __getitem__(self, number: int | slice) -> Dictionary | Sequence[Dictionary]:
        if isinstance(number, slice):
            return [self[i] for i in range(len(self))[number]]
        if number not in self._built:
            self._built[number] = Dictionary(tuple(map(self._family, self._parts[number])))
        return self._built[number]

    def _family(self, part: Part) -> Family:
        """Return the atoms of a part; candidates that share it share the family."""
        if part not in self._families:
            whole = self.pool.families[part.family]
            is_whole = part.stop - part.start == whole.n_atoms
            self._families[part] = whole if is_whole else whole.take(np.arange(part.start, part.stop))
        return self._families[part]

    def atoms(self, number: int) -> IntArray:
        """Return the positions of a candidate's atoms in the pool; shape (L,)."""
        places = [(self._starts[part.family], part) for part in self._parts[number]]
        return np.concatenate([np.arange(before + part.start, before + part.stop) for before, part in places])

    def on_lattice(self) -> Candidates:
        """Return the candidates for an integer variable."""
        return Candidates(self.pool.on_lattice().families, self._parts)

    def within(self, low: float, high: float) -> Candidates:
        """Return the candidates cut to an interval, less the atoms that lie mostly outside."""
        families: list[Family] = []
        moved: list[list[Part]] = [[] for _ in self._parts]
        numbers, before = [], []
        for family in self.pool.families:
            inside, cut = _cut(family, low, high)
            numbers.append(len(families))
            before.append([0, *np.cumsum(inside).tolist()])
            families += cut
        for own, parts in zip(moved, self._parts, strict=True):
            for family_number, start, stop in parts:
                part = Part(numbers[family_number], before[family_number][start], before[family_number][stop])
                if part.stop > part.start:
                    own.append(part)
        return Candidates(families, moved)

    def plus(self, more: Dictionary) -> Candidates:
        """Return the candidates with the same further atoms."""
        n = len(self.pool.families)
        added = [Part(n + k, 0, family.n_atoms) for k, family in enumerate(more.families)]
        return Candidates(self.pool.families + more.families, [[*parts, *added] for parts in self._parts])


def _cut(family: Family, low: float, high: float) -> tuple[BoolArray, list[Family]]:
    """Return which atoms are kept, shape (L,), and the family of these, conditional on the interval; none if empty."""
    if family.is_discrete:
        low = float(np.nextafter(low, -np.inf))
    inside = family.inside(low, high)
    kept = inside > LEAST_INSIDE
    return kept, [truncated(family.take(kept), low, high, inside[kept])] if kept.any() else []
