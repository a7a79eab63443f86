"""Atoms that were checked before, joined or cut without another check.

Atoms of several families are evaluated at once, as one family: a call costs more than the atoms of a small family.
"""
# ruff: noqa: SLF001  (atoms that were checked are taken as they are)

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from jointwise._typing import FloatArray
from jointwise.families.base import Family
from jointwise.families.derived import Lattice, Truncated
from jointwise.families.parametric import ParametricFamily


def kind_of(family: Family) -> Hashable:
    """Return what families must share to be joined: class, class of the base, and the interval of truncated atoms.

    >>> from jointwise.families import Gaussian
    >>> kind_of(Gaussian(loc=0.0, scale=1.0)) == kind_of(Gaussian(loc=[1.0, 2.0], scale=3.0))
    True
    """
    if isinstance(family, Truncated) and not np.ndim(family.low) and not np.ndim(family.high):
        return Truncated, family.low, family.high, kind_of(family.base)
    if isinstance(family, Lattice):
        return Lattice, kind_of(family.base)
    return type(family) if isinstance(family, ParametricFamily) else id(family)


def joined(families: Sequence[Family]) -> Family:
    """Return the atoms of families of one kind as one family, in order.

    >>> from jointwise.families import Gaussian
    >>> joined([Gaussian(loc=0.0, scale=1.0), Gaussian(loc=[1.0, 2.0], scale=3.0)]).scale
    array([1., 3., 3.])
    """
    first = families[0]
    if len(families) == 1:
        return first
    if isinstance(first, Truncated):
        cut = [f for f in families if isinstance(f, Truncated)]
        base, total = joined([f.base for f in cut]), np.concatenate([f._total for f in cut])
        return Truncated._of_checked(base, first.low, first.high, total)
    if isinstance(first, Lattice):
        return Lattice(joined([f.base for f in families if isinstance(f, Lattice)]))
    assert isinstance(first, ParametricFamily)  # no others are of one kind
    values = {name: np.concatenate([getattr(f, name) for f in families]) for name in first.parameter_names()}
    return first._of_checked(values)


def truncated(family: Family, low: float, high: float, inside: FloatArray) -> Family:
    """Return the atoms conditional on low < X <= high, as `Family.truncate`, whose masses there are known.

    >>> from jointwise.families import Gaussian
    >>> atoms = Gaussian(loc=[0.0, 1.0], scale=1.0)
    >>> truncated(atoms, 0.0, np.inf, atoms.inside(0.0, np.inf)) == atoms.truncate(0.0, np.inf)
    True
    """
    return family._truncate(low, high, inside)
