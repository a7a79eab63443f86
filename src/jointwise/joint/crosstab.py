"""Cross tables: the probability of every combination of regions of a few variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from jointwise._typing import FloatArray
from jointwise.joint.events import Interval, Point, Region
from jointwise.joint.product import ProductMixture


def crosstab(mixture: ProductMixture, regions: Mapping[int, Sequence[Region]]) -> FloatArray:
    r"""Probability of each combination of regions, one dimension per variable.

    .. math:: p[i, j, \dots] = \sum_r \lambda_r M_1[i, r] M_2[j, r] \cdots

    M_n[i, r] is the mass of region i of variable n under component r. An interval does not count the points that are
    regions of their own.

    Parameters
    ----------
    mixture : ProductMixture
    regions : mapping of positions to sequences of regions
    """
    masses = [_masses(mixture, n, list(each)) for n, each in regions.items()]
    shape = [len(each) for each in masses]
    # split where the two factors, each with a column per component, are smallest
    half = min(range(len(shape) + 1), key=lambda k: prod(shape[:k]) + prod(shape[k:]))
    left, right = _combined(masses[:half]), _combined(masses[half:])
    return np.asarray((left * mixture.weights @ right.T).reshape(shape))


def has_density(mixture: ProductMixture, n: int) -> bool:
    """Whether variable ``n`` is continuous, apart from point masses."""
    return mixture.dictionaries[n].is_continuous


def point_masses(mixture: ProductMixture, n: int) -> FloatArray:
    """Sorted values of variable ``n`` that have point masses."""
    return mixture.dictionaries[n].spikes


def _masses(mixture: ProductMixture, n: int, regions: list[Region]) -> FloatArray:
    """Mass of each region under each component; shape (regions, F)."""
    intervals = [i for i, region in enumerate(regions) if isinstance(region, Interval)]
    masses = np.empty((len(regions), mixture.n_components))
    if intervals:
        points = np.unique([region.value for region in regions if isinstance(region, Point)])
        low, high = np.array([(r.low, r.high) for r in regions if isinstance(r, Interval)]).T
        holds = (low[:, None] <= points) & (points <= high[:, None])
        dictionary = mixture.dictionaries[n]
        # subtracted atom by atom, so that an interval with point masses alone is left with exactly zero
        rest = dictionary.closed_mass(low, high) - holds @ dictionary.point_mass(points)
        masses[intervals] = np.maximum(rest, 0.0) @ mixture.coefficients[n]
    for i in sorted(set(range(len(regions))) - set(intervals)):
        masses[i] = mixture.region_masses(n, regions[i])
    return masses


def _combined(masses: list[FloatArray]) -> FloatArray:
    """Mass of each combination of regions under each component; shape (combinations, F)."""
    out = np.ones((1, 1))
    for each in masses:
        out = (out[:, None, :] * each).reshape(-1, each.shape[1])
    return out
