"""Warps of all columns of a block together: those after which the columns are closest to one Gaussian.

Other warps suit each column by itself. These suit the columns to each other: a column that is a function of others, up
to a map of each, lies on a plane with them, which one covariance holds; see `jointwise.solvers.straightening`. They
begin from the logarithm of a column, or from its power if it is not positive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jointwise._typing import BoolArray, FloatArray
from jointwise.fitting.blocks.columns import interval_values, of_block
from jointwise.fitting.blocks.warps import N_KNOTS, Counted, warp_through
from jointwise.fitting.starts import spread_positions
from jointwise.rows.base import Rows
from jointwise.solvers.sloped_maps import SlopedMaps
from jointwise.solvers.straightening import StraighteningProblem, straightened
from jointwise.warps import Warp

# Rows that the warps are found from, at most and at least.
MOST_ROWS, LEAST_ROWS = 4_000, 30
# A column takes part if at least this share of the rows has a value of it that is no spike, and if it varies among the
# rows that have all of these.
LEAST_SHARE = 0.5


def joint_warps(rows: Rows, columns: Sequence[int], bases: Sequence[Warp], bent: BoolArray) -> list[Warp]:
    """Return the warp of each column of a block, all found together.

    Parameters
    ----------
    rows : Rows
        With fine axes for columns of numbers.
    columns : sequence of int
        Positions of the block's columns.
    bases : sequence of Warp
        Where the warp of each column begins.
    bent : array of bool, shape (d,)
        Which columns may have another warp than that.
    """
    n = len(rows)
    chosen = np.arange(n) if n <= MOST_ROWS else spread_positions(n, MOST_ROWS, np.random.default_rng(0))
    sample = rows.take(chosen)
    sizes = np.array([len(interval_values(rows.axes[c])) for c in columns])
    codes = sample.codes[:, list(columns)]
    seen = codes < sizes
    weights = np.ones(len(sample)) if sample.weights is None else sample.weights
    part = np.flatnonzero(weights @ seen >= LEAST_SHARE * weights.sum())
    complete = seen[:, part].all(axis=1)
    if complete.sum() < LEAST_ROWS:
        return list(bases)
    part = part[(codes[complete][:, part] != codes[complete][0, part]).any(axis=0)]
    if len(part) < 2 or not bent[part].any():
        return list(bases)
    each = [np.unique(codes[complete, k], return_inverse=True) for k in part]
    problem = StraighteningProblem(
        np.column_stack([positions for _, positions in each]),
        weights[complete],
        [bases[k](interval_values(rows.axes[columns[k]])[found]) for k, (found, _) in zip(part, each, strict=True)],
        bent[part],
    )
    warps, slopes = list(bases), straightened(problem)
    turned = [i for i, k in enumerate(part) if bent[k]]
    composed = _composed(
        [bases[part[i]] for i in turned],
        [of_block(rows, columns[part[i]]) for i in turned],
        problem.knots[turned],
        slopes[turned],
    )
    for i, warp in zip(turned, composed, strict=True):
        warps[part[i]] = warp
    return warps


def _composed(
    bases: Sequence[Warp], columns: Sequence[Counted], knots: FloatArray, slopes: FloatArray
) -> Iterator[Warp]:
    """Yield the map of each warp's values that has these slopes at these knots, to mean 0 and standard deviation 1."""
    found = _mapped([base(column.values) for base, column in zip(bases, columns, strict=True)], knots, slopes)
    grids = [np.union1d(base.w, np.linspace(k[0], k[-1], N_KNOTS)) for base, k in zip(bases, knots, strict=True)]
    maps = _mapped(grids, knots, slopes)
    for base, column, (own, _), u, (rises, here) in zip(bases, columns, found, grids, maps, strict=True):
        centre = column.mean_of(own)
        spread = float(np.sqrt(column.mean_of((own - centre) ** 2)))
        x = base.inverse(u)
        with np.errstate(over="ignore", under="ignore"):
            yield warp_through(x, (rises - centre) / spread, here * np.exp(base.log_slope(x)) / spread)


def _mapped(
    coordinates: Sequence[FloatArray], knots: FloatArray, slopes: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the map of each column at its coordinates, and its slope there; all columns are taken together."""
    own, here = SlopedMaps.of(coordinates, knots).values(slopes)
    ends = np.cumsum([len(u) for u in coordinates])[:-1]
    return zip(np.split(own, ends), np.split(here, ends), strict=True)
