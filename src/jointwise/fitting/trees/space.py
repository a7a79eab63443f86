"""StateSpace: the states of all columns, and what the whole table says of pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.engines.trees.gains import filled_tables, pair_information
from jointwise.fitting.possible import unmet_rows
from jointwise.fitting.trees.states import ColumnStates
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_tree import HIDDEN, ROOT, Tree
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.rows.base import Rows
from jointwise.solvers.trees_em import PairPrior, TreeFactors, TreesProblem
from jointwise.tables.variables import Schema

# Up to this many columns a tree may join any two; of more, each column has this many candidates, those with the largest
# mutual information in the whole table.
ALL_PAIRS, N_CANDIDATES = 256, 32


@dataclass(frozen=True, eq=False)
class StateSpace:
    """The states of all columns.

    Parameters
    ----------
    schema : Schema
    columns : tuple of ColumnStates
    """

    schema: Schema
    columns: tuple[ColumnStates, ...]

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The bins that are states."""
        return tuple(column.axis for column in self.columns)

    def log_density(self, counts: Sequence[FloatArray]) -> float:
        """Return what turns a log-likelihood of states into one of values, up to a constant of the rows.

        Within a bin a value has the density f(x) / F(bin) of the column's own 1-D fit; log f(x) is the constant.

        Parameters
        ----------
        counts : sequence of arrays of shape (n_bins,)
            Rows in each state of each column.
        """
        return -sum(float(c @ column.log_masses) for c, column in zip(counts, self.columns, strict=True))

    def problem(self, rows: Rows, alpha: float, gamma: float) -> TreesProblem:
        """Return the problem of fitting rows with `axes`."""
        return TreesProblem(rows.tree_engine(), rows.n_rows, pair_prior(rows.pairs()), alpha, gamma)

    def expert(self, factors: TreeFactors, margins: Sequence[FloatArray]) -> ForestMixture:
        """Return the mixture that factors are the parameters of; it leaves no row impossible.

        Parameters
        ----------
        factors : TreeFactors
        margins : sequence of arrays of shape (n_bins,)
            Law of each column's states where its parent says nothing.
        """
        trees = [self._tree(factors, r, margins) for r in range(factors.n_components)]
        return ForestMixture(factors.weights, tuple(column.atoms for column in self.columns), tuple(trees))

    def _tree(self, factors: TreeFactors, r: int, margins: Sequence[FloatArray]) -> Tree:
        forest = factors.forest
        variables: list[int] = []
        parents: list[int] = []
        tables: list[FloatArray] = []
        node: dict[int, int] = {ROOT: ROOT}
        for n in forest.order[r].tolist():
            column, above = self.columns[n], int(forest.parents[r, n])
            table = np.asarray(forest.table(factors.tables, r, n))
            n_more = 0 if above == ROOT else len(self.columns[above].shares)
            table = np.vstack([table, np.broadcast_to(margins[n], (n_more, len(margins[n])))])
            rest = np.broadcast_to(column.shares, (len(table), len(column.shares)))
            node[n] = len(variables)
            variables.append(n if column.groups is None else HIDDEN)
            parents.append(node[above])
            tables.append(np.hstack([(1 - column.shares.sum()) * table, rest]))
            if column.groups is not None:
                variables.append(n)
                parents.append(node[n])
                tables.append(column.groups)
        return Tree(np.array(variables), np.array(parents), tuple(tables))


def pair_prior(counted: PairwiseMarginals) -> PairPrior:
    """Return what the whole table says of pairs of columns.

    A missing cell counts as each state by its share in the column, so that all tables of a column have equal margins.

    Examples
    --------
    >>> from jointwise.marginals import Profile
    >>> data = {"a": ["x", "x", "y", None], "b": ["u", "u", "v", "v"]}
    >>> schema = Profile.of(data).schema()
    >>> prior = pair_prior(PairwiseMarginals.of(data, schema, Profile.of(data).axes(schema, 4)))
    >>> prior.tables.round(3), prior.means[0].round(3)
    (array([0.5  , 0.167, 0.   , 0.333]), array([0.667, 0.333]))
    """
    n_bins = tuple(axis.n_bins for axis in counted.axes)
    counts = [np.asarray(counted.marginal(n), dtype=np.float64) for n in range(len(n_bins))]
    margins = [_simplex(c + unmet_rows(c)) for c in counts]
    means = [_simplex(c) if c.any() else q for c, q in zip(counts, margins, strict=True)]
    flat, sizes = np.concatenate(means), np.array(n_bins)
    pairs = np.stack(np.triu_indices(len(n_bins), 1), axis=1)
    tables = filled_tables(counted.counts, sizes, pairs, np.concatenate(counts), flat, counted.n_rows)
    if len(n_bins) > ALL_PAIRS:
        chosen = _candidates(pair_information(tables, sizes, pairs, flat), pairs, len(n_bins))
        tables = tables[np.repeat(chosen, sizes[pairs].prod(axis=1))]
        pairs = pairs[chosen]
    return PairPrior(n_bins, pairs, tables, tuple(means), tuple(margins))


def _simplex(counts: FloatArray) -> FloatArray:
    return np.asarray(counts / counts.sum())


def _candidates(information: FloatArray, pairs: IntArray, n_columns: int) -> BoolArray:
    """Return which pairs (P, 2) are among the best of either column, by mutual information (P,)."""
    of_both = np.full((n_columns, n_columns), -np.inf)
    of_both[pairs[:, 0], pairs[:, 1]] = of_both[pairs[:, 1], pairs[:, 0]] = information
    best = np.argpartition(-of_both, N_CANDIDATES, axis=1)[:, :N_CANDIDATES]
    chosen = np.zeros(of_both.shape, dtype=bool)
    np.put_along_axis(chosen, best, True, axis=1)
    return np.asarray((chosen | chosen.T)[pairs[:, 0], pairs[:, 1]])
