"""One-dimensional families: batches of atoms that dictionaries are made of.

Which to pick:

- a smooth bump: :class:`Gaussian`; a sharper one: :class:`Laplace`, :class:`Logistic`; any sharpness:
  :class:`GeneralizedGaussian`
- heavy tails: :class:`StudentT`, :class:`Cauchy`
- a half-line: :class:`Exponential` (either direction), :class:`Gamma`, :class:`LogNormal`
- an interval: :class:`Uniform` where the density jumps, :class:`Beta`
- a single value: :class:`PointMass`; a category: :class:`Category`
- integers: :class:`Lattice` of any continuous family; a part of the line: ``truncate``, which gives
  :class:`Truncated`
- a Gaussian seen through a smooth increasing map: :class:`Warped`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jointwise._checks import listed, shown
from jointwise.exceptions import InputError, UnknownNameError
from jointwise.families.base import Family
from jointwise.families.bounded import Beta, Uniform
from jointwise.families.derived import Lattice, Truncated
from jointwise.families.discrete import Category, PointMass
from jointwise.families.location_scale import Cauchy, Gaussian, GeneralizedGaussian, Laplace, Logistic, StudentT
from jointwise.families.positive import Exponential, Gamma, LogNormal
from jointwise.families.warped import Warped

__all__ = [
    "FAMILIES",
    "Beta",
    "Category",
    "Cauchy",
    "Exponential",
    "Family",
    "Gamma",
    "Gaussian",
    "GeneralizedGaussian",
    "Laplace",
    "Lattice",
    "LogNormal",
    "Logistic",
    "PointMass",
    "StudentT",
    "Truncated",
    "Uniform",
    "Warped",
    "family_from_dict",
]

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (Gaussian, Laplace, Uniform, Exponential, Cauchy, StudentT, GeneralizedGaussian, Logistic, Gamma,
                   LogNormal, Beta, PointMass, Category, Lattice, Truncated, Warped)
}  # fmt: skip


# Deepest nesting that a plain form may have; a lattice of a truncated family, three levels, is the deepest in use.
DEEPEST = 8


def family_from_dict(data: Mapping[str, Any]) -> Family:
    """Return the family that :meth:`Family.to_dict` wrote, with every parameter checked.

    Raises InputError for anything else, UnknownNameError for a name that no family has, and ImpossibleEventError for a
    truncation that leaves no mass.

    >>> family_from_dict({"family": "laplace", "loc": [0.0, 1.0], "scale": 2.0})
    Laplace(loc=array([0., 1.]), scale=array([2., 2.]))
    """
    return _family(data, 1)


def _family(data: Any, depth: int) -> Family:
    if depth > DEEPEST:
        raise InputError(f"Families must not be nested more than {DEEPEST} deep.")
    if not isinstance(data, Mapping):
        raise InputError(f"A family must be given as a mapping with the key 'family', got {shown(data)}.")
    name = data.get("family")
    if not isinstance(name, str) or name not in FAMILIES:
        raise UnknownNameError(f"Unknown family {shown(name)}. Known: {', '.join(FAMILIES)}.")
    family = FAMILIES[name]
    parameters = {key: value for key, value in data.items() if key != "family"}
    known = family.parameter_names()
    required = {key for key in known if not hasattr(family, key)}  # a default is an attribute of the class
    if not required <= set(parameters) <= set(known):
        given = listed(parameters) or "none"
        raise InputError(f"The family {name} takes the parameters {', '.join(known)}, got {given}.")
    if "base" in parameters:
        parameters["base"] = _family(parameters["base"], depth + 1)
    return family(**parameters)
