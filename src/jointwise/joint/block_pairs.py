r"""Tables of many pairs of columns of a Gaussian block without windows: the probability of each pair of their regions.

The ends of a column's regions cut its latent coordinate into strips, which are the same in all its pairs. Where strips
of two columns cross, the probability is a difference of :math:`P(X \le x, Y \le y)` at the corners, for many pairs and
all components at once. A region holds some strips, and some spikes, at which a column is independent of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.block_tables import cells_of, held
from jointwise.joint.events import Region
from jointwise.joint.quadrants import quadrants

# Rectangles that are computed at once (8 MB).
TOGETHER = 2**20


@dataclass(frozen=True, eq=False)
class Strips:
    """The strips of some columns, padded to E - 1 for each and R regions with empty ones.

    Parameters
    ----------
    place : mapping of columns to their positions here
    n_regions : mapping of columns to the number of their regions
    ends : array of shape (columns, F, E)
        Ends of the strips, in standard deviations from the mean of each component.
    shares : array of shape (columns, F, R, E - 1)
        Probability that a column is in a region, given that its latent coordinate is in a strip.
    """

    place: Mapping[int, int]
    n_regions: Mapping[int, int]
    ends: FloatArray
    shares: FloatArray

    @classmethod
    def of(cls, block: GaussianBlock, regions: Mapping[int, Sequence[Region]]) -> Strips:
        """Return the strips of columns of a block, cut at the ends of the regions of each."""
        cells = [cells_of(block, c, each) for c, each in regions.items()]
        cuts = [np.unique(each.windows) for each in cells]
        n_ends, n_regions = max(map(len, cuts)), max(map(len, regions.values()))
        ends = np.full((len(cells), block.n_components, n_ends), np.inf)
        shares = np.zeros((len(cells), block.n_components, n_regions, n_ends - 1))
        for k, (c, own, cut) in enumerate(zip(regions, cells, cuts, strict=True)):
            scale = np.sqrt(block.latent_covariances[:, c, c])
            with np.errstate(over="ignore"):  # as good as infinite
                ends[k, :, : len(cut)] = (cut - block.means[:, [c]]) / scale[:, None]
            shares[k, :, : len(own.parts), : len(cut) - 1] = own.parts.transpose(2, 0, 1) @ held(cut, own.windows)
        place = {c: k for k, c in enumerate(regions)}
        return cls(place, {c: len(each) for c, each in regions.items()}, ends, shares)


def pair_tables(
    block: GaussianBlock,
    weights: FloatArray,
    regions: Mapping[int, Sequence[Region]],
    pairs: Sequence[tuple[int, int]],
) -> list[FloatArray]:
    """Probability of each pair of regions of each pair of columns.

    Parameters
    ----------
    block : GaussianBlock
        Without windows.
    weights : array of shape (F,)
        Mixing weights of the components.
    regions : mapping of columns to their regions
    pairs : sequence of pairs of different columns

    Returns
    -------
    list of arrays, for columns a and b of shape (regions of a, regions of b)

    Examples
    --------
    >>> from jointwise.joint.events import Interval
    >>> from jointwise.warps import Warp
    >>> lines, covariance = (Warp.line(0.0, 1.0),) * 2, [[[1.0, 0.5], [0.5, 1.0]]]
    >>> block = GaussianBlock(lines, [[0.0, 0.0]], covariance, ([], []), (np.empty((0, 1)),) * 2, (False, False))
    >>> signs = [Interval(-np.inf, 0.0), Interval(0.0, np.inf)]
    >>> pair_tables(block, np.ones(1), {0: signs, 1: signs}, [(0, 1)])[0].round(4)
    array([[0.3333, 0.1667],
           [0.1667, 0.3333]])
    """
    if not pairs:
        return []
    strips = Strips.of(block, regions)
    tables = np.concatenate(list(_in_parts(block, weights, strips, np.array(pairs))))
    return [table[: strips.n_regions[a], : strips.n_regions[b]] for table, (a, b) in zip(tables, pairs, strict=True)]


def _in_parts(block: GaussianBlock, weights: FloatArray, strips: Strips, pairs: IntArray) -> Iterator[FloatArray]:
    """Yield the tables of pairs (P, 2), some at a time; shapes (some, R, R)."""
    n_components, n_ends = strips.ends.shape[1:]
    scale = np.sqrt(np.diagonal(block.latent_covariances, axis1=1, axis2=2))
    size = max(TOGETHER // (n_components * n_ends**2), 1)
    for start in range(0, len(pairs), size):
        i, j = pairs[start : start + size].T
        rho = np.clip((block.latent_covariances[:, i, j] / scale[:, i] / scale[:, j]).T, -1.0, 1.0)
        first, second = ([strips.place[c] for c in columns.tolist()] for columns in (i, j))
        x, y = (strips.ends[at].reshape(-1, n_ends) for at in (first, second))
        masses = np.maximum(np.diff(np.diff(quadrants(x, y, rho.ravel()), axis=1), axis=2), 0.0)
        masses = masses.reshape(*rho.shape, n_ends - 1, n_ends - 1) * weights[:, None, None]
        yield (strips.shares[first] @ masses @ strips.shares[second].swapaxes(2, 3)).sum(axis=1)
