"""StateSpace: the states of all columns, and what the whole table says of pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise._typing import AnyArray, FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.engines import bin_starts
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
    starts = bin_starts(n_bins)
    N = len(n_bins)
    counts = [np.asarray(counted.marginal(n), dtype=np.float64) for n in range(N)]
    margins = [_simplex(c + unmet_rows(c)) for c in counts]
    means = [_simplex(c) if c.any() else q for c, q in zip(counts, margins, strict=True)]
    filled = _filled(counted, np.concatenate(counts), np.concatenate(means), starts)
    pairs = np.array([(i, j) for i in range(N) for j in range(i + 1, N)], dtype=np.int64).reshape(-1, 2)
    if N > ALL_PAIRS:
        pairs = _candidates(filled, means, starts, pairs)
    tables = [filled[starts[i] : starts[i + 1], starts[j] : starts[j + 1]].ravel() for i, j in pairs.tolist()]
    return PairPrior(n_bins, pairs, np.concatenate([np.empty(0), *tables]), tuple(means), tuple(margins))


def _simplex(counts: FloatArray) -> FloatArray:
    return np.asarray(counts / counts.sum())


def _filled(counted: PairwiseMarginals, counts: FloatArray, means: FloatArray, starts: IntArray) -> FloatArray:
    """Return shares of pairs of states in all rows, gaps filled by shares of the column; shape (I, I)."""
    n_rows, table = counted.n_rows, np.asarray(counted.counts, dtype=np.float64)
    both = np.add.reduceat(table, starts[:-1], axis=1)  # rows with a state and any of another column
    seen = np.add.reduceat(both, starts[:-1], axis=0)
    if (seen >= n_rows * (1 - 1e-12)).all():
        return table / n_rows
    column: AnyArray = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    gone = np.maximum(counts[:, None] - both, 0.0)[:, column] * means  # rows with a state, the other column missing
    own = np.diagonal(seen)
    neither = np.maximum(n_rows - own[:, None] - own + seen, 0.0)[np.ix_(column, column)] * np.outer(means, means)
    return np.asarray((table + gone + gone.T + neither) / n_rows)


def _candidates(filled: FloatArray, means: Sequence[FloatArray], starts: IntArray, pairs: IntArray) -> IntArray:
    """Return the pairs that are among the best of either column, by mutual information in the whole table."""
    with np.errstate(divide="ignore", invalid="ignore"):
        flat = np.concatenate(means)
        logs = np.where(filled > 0, np.log(filled / np.outer(flat, flat)), 0.0)
    information = np.add.reduceat(np.add.reduceat(filled * logs, starts[:-1], axis=0), starts[:-1], axis=1)
    np.fill_diagonal(information, -np.inf)
    best = np.argpartition(-information, N_CANDIDATES, axis=1)[:, :N_CANDIDATES]
    chosen = np.zeros(information.shape, dtype=bool)
    np.put_along_axis(chosen, best, True, axis=1)
    chosen |= chosen.T
    return pairs[chosen[pairs[:, 0], pairs[:, 1]]]
