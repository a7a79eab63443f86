"""Crosstabs of few columns, as questions see rows: each column cut into a few regions, and the rows counted.

Questions ask for ranges and groups, so what an expert says about the fine shape of a column does not help to answer
them. A crosstab keeps what does: the probability of each combination of regions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.joint.events import Interval, Region, Values
from jointwise.joint.expert import Expert
from jointwise.tables.variables import Schema

# Columns of a table, how many of them may hold numbers, and how many tables are drawn. Ranges of two numbers are exact
# in a Gaussian block; those of three are integrals that take 250 times as long.
N_COLUMNS, MOST_NUMBERS, N_TABLES = 3, 2, 128
# A column is cut at the values of this many rows, so into at most one region more.
N_CUTS = 2


@dataclass(frozen=True, eq=False)
class Crosstabs:
    """Crosstabs of the same rows.

    Parameters
    ----------
    regions : tuple of mappings of positions to sequences of Region
        Of each table, its columns and their regions.
    cells : array of shape (n, tables)
        Cell of each row in each table, numbered through all tables; -1 where a column has a gap.
    n_cells : int
        Cells of all tables.

    Examples
    --------
    >>> from jointwise.tables.variables import Variable
    >>> schema = Schema(tuple(Variable(name, "continuous") for name in "abc"))
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> tables = Crosstabs.draw(X, schema, np.random.default_rng(0))
    >>> len(tables.regions), [len(each) for each in tables.regions[0].values()]
    (128, [3, 3])
    >>> tables.cells.shape, tables.counts(np.ones(100)).sum() == 128 * 100
    ((100, 128), np.True_)
    """

    regions: tuple[Mapping[int, Sequence[Region]], ...]
    cells: IntArray
    n_cells: int

    @classmethod
    def draw(cls, X: FloatArray, schema: Schema, rng: np.random.Generator) -> Crosstabs:
        """Draw three columns at random, or two where all three hold numbers, and cut them at the values of random rows.

        Parameters
        ----------
        X : array of shape (n, N)
            Encoded rows, with NaN for gaps.
        schema : Schema
            Of N variables, at least three.
        rng : numpy.random.Generator
        """
        regions, cells, n_cells = [], [], 0
        for _ in range(N_TABLES):
            columns = np.sort(rng.choice(X.shape[1], N_COLUMNS, replace=False)).tolist()
            if all(schema.variables[n].categories is None for n in columns):
                columns = columns[:MOST_NUMBERS]
            cuts = {n: _cut(X[:, n], schema.variables[n].categories, rng) for n in columns}
            shape = [len(found) for found, _ in cuts.values()]
            codes = np.stack([code for _, code in cuts.values()])
            inside = (codes >= 0).all(axis=0)
            here = np.ravel_multi_index(tuple(np.where(inside, codes, 0)), shape)
            cells.append(np.where(inside, here + n_cells, -1))
            regions.append({n: found for n, (found, _) in cuts.items()})
            n_cells += int(np.prod(shape))
        return cls(tuple(regions), np.stack(cells, axis=1), n_cells)

    def counts(self, weights: FloatArray) -> FloatArray:
        """Rows in each cell; shape (cells,)."""
        weights = np.broadcast_to(weights[:, None], self.cells.shape)[self.cells >= 0]
        return np.bincount(self.cells[self.cells >= 0], weights, self.n_cells).astype(np.float64)

    def log_masses(self, expert: Expert) -> FloatArray:
        """Log-probability of each cell; shape (cells,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.concatenate([expert.crosstab(each).ravel() for each in self.regions])))

    def of_rows(self, values: FloatArray) -> FloatArray:
        """Return the mean over tables of a value of cells, for each row; zero where a row has gaps; shape (n,)."""
        return np.asarray(np.where(self.cells >= 0, values[self.cells], 0.0).mean(axis=1))


def _cut(x: FloatArray, categories: Sequence[object] | None, rng: np.random.Generator) -> tuple[list[Region], IntArray]:
    """Return the regions of a column, and that of each value, -1 for a gap."""
    known = x[~np.isnan(x)]
    if not len(known):
        return [Interval(-np.inf, np.inf)], np.full(len(x), -1)
    drawn = rng.choice(known, N_CUTS)
    return _ranges(x, known, drawn) if categories is None else _groups(x, len(categories), drawn)


def _groups(x: FloatArray, n_categories: int, drawn: FloatArray) -> tuple[list[Region], IntArray]:
    """Cut categories: each one drawn, and all others together."""
    alone = np.unique(drawn)
    rest = np.setdiff1d(np.arange(float(n_categories)), alone)
    regions: list[Region] = [Values((float(value),)) for value in alone]
    if len(rest):
        regions.append(Values(tuple(rest.tolist())))
    code = np.searchsorted(alone, x)
    is_alone = alone[np.minimum(code, len(alone) - 1)] == x
    return regions, np.where(np.isnan(x), -1, np.where(is_alone, code, len(alone)))


def _ranges(x: FloatArray, known: FloatArray, drawn: FloatArray) -> tuple[list[Region], IntArray]:
    """Cut numbers halfway between a value that was drawn and the next one, so that no value lies on a cut."""
    values = np.unique(known)
    at = np.unique(np.searchsorted(values, drawn))
    at = at[at < len(values) - 1]
    cuts = (values[at] + values[at + 1]) / 2
    ends = [-np.inf, *cuts.tolist(), np.inf]
    regions: list[Region] = [Interval(low, high) for low, high in pairwise(ends)]
    return regions, np.where(np.isnan(x), -1, np.searchsorted(cuts, x))
