"""Cross tables: the probability of every combination of regions of a few variables, independent given a component."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from scipy.sparse import csr_array

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.joint.events import Interval, Point, Region, Values

# Tables of values and atoms that are single values are sparse if they would have more entries than this.
MOST_DENSE = 1 << 16


def crosstab(masses: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    r"""Probability of each combination of regions, one dimension per variable.

    .. math:: p[i, j, \dots] = \sum_r \lambda_r M_1[i, r] M_2[j, r] \cdots

    Parameters
    ----------
    masses : sequence of arrays of shape (regions, F)
        M_n[i, r], the mass of region i of variable n under component r.
    weights : array of shape (F,)
        Mixing weights of the components.

    Examples
    --------
    >>> crosstab([np.eye(2), np.array([[0.5, 1.0], [0.5, 0.0]])], np.array([0.5, 0.5]))
    array([[0.25, 0.25],
           [0.5 , 0.  ]])
    """
    if len(masses) == 1:
        return np.asarray(masses[0] @ weights)
    shape = [len(each) for each in masses]
    # split where the two factors, each with a column per component, are smallest
    half = min(range(len(shape) + 1), key=lambda k: prod(shape[:k]) + prod(shape[k:]))
    left, right = combined(masses[:half]), combined(masses[half:])
    return np.asarray((left * weights @ right.T).reshape(shape))


def partition_masses(dictionary: Dictionary, coefficients: FloatArray, regions: Sequence[Region]) -> FloatArray:
    """Mass of each region under each component; shape (regions, F).

    An interval does not count the points that are regions of their own.

    Parameters
    ----------
    dictionary : Dictionary of L atoms
    coefficients : array of shape (L, F)
        Weights of the atoms in each component.
    regions : sequence of regions of one variable
    """
    return np.asarray(partition_atom_masses(dictionary, regions) @ coefficients)


def partition_atom_masses(dictionary: Dictionary, regions: Sequence[Region]) -> FloatArray:
    """Mass of each region under each atom, an interval without the points that are regions; shape (regions, L)."""
    intervals = [i for i, region in enumerate(regions) if isinstance(region, Interval)]
    masses = np.empty((len(regions), dictionary.n_atoms))
    if intervals:
        points = np.unique([region.value for region in regions if isinstance(region, Point)])
        low, high = np.array([(r.low, r.high) for r in regions if isinstance(r, Interval)]).T
        holds = (low[:, None] <= points) & (points <= high[:, None])
        # subtracted atom by atom, so that an interval with point masses alone is left with exactly zero
        rest = dictionary.closed_mass(low, high) - holds @ dictionary.point_mass(points)
        masses[intervals] = np.maximum(rest, 0.0)
    sets = {i: region for i, region in enumerate(regions) if not isinstance(region, Interval)}
    for half in {region.half for region in sets.values()}:  # the values of all sets in one call
        here = [i for i, region in sets.items() if region.half == half]
        values = [_values(sets[i]) for i in here]
        ends = np.cumsum([0, *map(len, values)])
        members = csr_array((np.ones(ends[-1]), np.arange(ends[-1]), ends))
        found = members @ value_masses(dictionary, np.concatenate(values), half)
        masses[here] = found.toarray() if isinstance(found, csr_array) else found
    return masses


def region_masses(dictionary: Dictionary, coefficients: FloatArray, region: Region) -> FloatArray:
    """P(X in region | component); shape (F,)."""
    return np.asarray(atom_masses(dictionary, region) @ coefficients)


def atom_masses(dictionary: Dictionary, region: Region) -> FloatArray:
    """P(X in region) under each atom; shape (L,)."""
    if isinstance(region, Interval):
        return dictionary.closed_mass(region.low, region.high)
    return np.asarray(value_masses(dictionary, _values(region), region.half).sum(axis=0))


def _values(region: Point | Values) -> FloatArray:
    return np.array([region.value] if isinstance(region, Point) else region.values)


def value_masses(dictionary: Dictionary, values: FloatArray, half: float) -> FloatArray | csr_array:
    """P(X = value) under each atom; of a rounded variable, P(value - half < X <= value + half); shape (values, L).

    It is sparse where many values meet many atoms that are single values, such as categories.
    """
    if dictionary.is_identity and len(values) * dictionary.n_atoms > MOST_DENSE:
        return _single_masses(dictionary.mode(), values, half)
    return dictionary.mass(values - half, values + half) if half else dictionary.point_mass(values)


def _single_masses(points: FloatArray, values: FloatArray, half: float) -> csr_array:
    """Return `value_masses` of atoms that are single points."""
    order = np.argsort(points, kind="stable")
    first = np.searchsorted(points[order], values - half, "right" if half else "left")
    counts = np.searchsorted(points[order], values + half, "right") - first
    ends = np.concatenate([[0], np.cumsum(counts)])
    places = np.arange(ends[-1]) + np.repeat(first - ends[:-1], counts)
    return csr_array((np.ones(ends[-1]), order[places], ends), shape=(len(values), len(points)))


def combined(masses: Sequence[FloatArray]) -> FloatArray:
    """Mass of each combination of regions under each component; shape (combinations, F)."""
    if not masses:
        return np.ones((1, 1))
    out = masses[0]
    for each in masses[1:]:
        out = (out[:, None, :] * each).reshape(-1, each.shape[1])
    return out
