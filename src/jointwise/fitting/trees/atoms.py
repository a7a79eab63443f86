r"""AtomSpace: trees whose states are smooth atoms that overlap, beginning where trees of bins ended.

A state of a column of numbers is an atom, a law of fine bins (see `splines`); each spike, category or integer is still
a state of its own. Trees are found with bins. With G the law of bins given an atom, and H that of atoms given a bin,
the table p of an edge from column m to n becomes :math:`G_m \, p \, H_n`. This blurs it, and EM, which keeps the trees,
makes it as sharp as the rows say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.axes import BinnedAxis, regrouping
from jointwise.engines.trees import Emissions, Forest
from jointwise.fitting.trees.counts import RowPairs
from jointwise.fitting.trees.space import StateSpace
from jointwise.fitting.trees.splines import DEGREE, splines
from jointwise.fitting.trees.states import Column, ColumnStates
from jointwise.rows.coded import CodedRows
from jointwise.solvers.trees_em import PairPrior, TreeFactors, TreesProblem, sharpened

# Fine bins between two knots of splines.
BINS_PER_KNOT = 4
# A column with fewer fine bins keeps its bins as states.
LEAST_BINS = 8
# Steps of EM by which the law of two columns' atoms in the whole table is found.
PAIR_STEPS = 20


@dataclass(frozen=True, eq=False)
class AtomColumn:
    """The states of one column of numbers as atoms.

    Parameters
    ----------
    states : ColumnStates
        Its axis has the fine bins, and its `groups` the law of these in each state.
    weights : array of shape (S,)
        Law of the states that gives the column's own 1-D fit.
    """

    states: ColumnStates
    weights: FloatArray


def atom_column(column: Column, bins: ColumnStates, n_atoms: int) -> AtomColumn | None:
    """Return atoms of a column instead of its bins; None if it has none to speak of.

    Parameters
    ----------
    column : Column
    bins : ColumnStates
        Its bins, whose edges are among those of the fine ones.
    n_atoms : int
        Most splines.
    """
    if not column.has_bins or not isinstance(bins.axis, BinnedAxis):
        return None
    edges = column.bins(BINS_PER_KNOT * max(n_atoms - DEGREE, 1)).edges
    fine = column.states(0, edges=np.union1d(edges, bins.axis.edges))
    assert isinstance(fine.axis, BinnedAxis)
    smooth = ~column.spiked(fine.axis)
    if smooth.sum() < LEAST_BINS:
        return None
    masses = np.exp(fine.log_masses)
    knots = np.searchsorted(fine.axis.edges, edges[BINS_PER_KNOT - 1 :: BINS_PER_KNOT]) + 1
    own = splines(masses[smooth], np.append(0, np.cumsum(smooth))[knots])
    table = np.zeros((len(own.weights) + int((~smooth).sum()), len(smooth)))
    table[: len(own.weights), smooth] = own.table
    table[len(own.weights) :, ~smooth] = np.eye(int((~smooth).sum()))
    weights = np.concatenate([masses[smooth].sum() * own.weights, masses[~smooth]])
    states = ColumnStates(fine.axis, fine.atoms, fine.shares, fine.log_masses, table)
    return AtomColumn(states, weights / weights.sum())


@dataclass(frozen=True, eq=False)
class AtomSpace:
    """The states of all columns, of numbers as atoms, beside those as bins.

    Parameters
    ----------
    bins : StateSpace
    columns : tuple of AtomColumn or None
        None for a column whose states are those of `bins`.
    """

    bins: StateSpace
    columns: tuple[AtomColumn | None, ...]

    @cached_property
    def space(self) -> StateSpace:
        """The states; the axes of atoms have the fine bins, which rows are coded by."""
        columns = [
            own if atoms is None else atoms.states for own, atoms in zip(self.bins.columns, self.columns, strict=True)
        ]
        return StateSpace(self.bins.schema, tuple(columns))

    @cached_property
    def emissions(self) -> Emissions:
        """Law of the codes given the states."""
        return Emissions(tuple(self._table(n) for n in range(len(self.columns))))

    def _table(self, n: int) -> FloatArray:
        atoms = self.columns[n]
        if atoms is None:
            return np.eye(self.bins.axes[n].n_bins)
        assert atoms.states.groups is not None
        return atoms.states.groups

    @cached_property
    def _to_bins(self) -> tuple[FloatArray, ...]:
        """G: law of the bins of a column given each of its states, shape (S, bins)."""
        found = []
        for fine, coarse, table in zip(self.space.axes, self.bins.axes, self.emissions.tables, strict=True):
            where = regrouping(fine, coarse)[:-1] if fine is not coarse else np.arange(coarse.n_bins)
            found.append(table @ np.eye(coarse.n_bins)[where])
        return tuple(found)

    def _from_bins(self, margins: Sequence[FloatArray]) -> list[FloatArray]:
        """H: law of the states of a column given each of its bins, shape (bins, S)."""
        found = [q[:, None] * table for q, table in zip(margins, self._to_bins, strict=True)]
        return [(each / each.sum(axis=0)).T for each in found]

    def laws(self, laws: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
        """Return laws of the states, from those of bins: atoms have that of the 1-D fit."""
        return tuple(law if atoms is None else atoms.weights for law, atoms in zip(laws, self.columns, strict=True))

    def start(self, factors: TreeFactors, known: PairPrior) -> TreeFactors:
        """Return trees of these states, from trees of bins and what is known of pairs of these."""
        old, up, down = factors.forest, self._to_bins, self._from_bins(self.laws(known.margins))
        forest = Forest(self.emissions.n_states, old.parents)
        tables = []
        for r, tree in enumerate(old.parents.tolist()):
            for n, parent in enumerate(tree):
                table = np.asarray(old.table(factors.tables, r, n)) @ down[n]
                tables.append((table if parent < 0 else up[parent] @ table).ravel())
        return TreeFactors(forest, factors.weights, np.concatenate(tables))

    def problem(self, rows: CodedRows, bins: TreesProblem, parents: IntArray) -> TreesProblem:
        """Return the problem of fitting rows, with the axes of `space`, by trees that stay.

        Parameters
        ----------
        rows : CodedRows
        bins : TreesProblem
            That of bins, with the same prior.
        parents : array of shape (F, N)
            The trees.
        """
        return TreesProblem(
            rows.tree_engine(self.emissions),
            rows.n_rows,
            self._known(rows, bins.known, parents),
            bins.alpha,
            bins.gamma,
        )

    def _known(self, rows: CodedRows, bins: PairPrior, parents: IntArray) -> PairPrior:
        """Return what the whole table says of the pairs of columns that trees join."""
        r, n = np.nonzero(parents >= 0)
        pairs = np.unique(np.sort(np.column_stack([parents[r, n], n]), axis=1), axis=0).reshape(-1, 2).astype(np.int64)
        margins, counted = self.laws(bins.margins), RowPairs(rows)
        down = self._from_bins(margins)
        tables = [np.empty(0)]
        for i, j in pairs.tolist():
            k = int(bins.numbers[i, j])
            law = bins.tables[bins.starts[k] : bins.starts[k + 1]].reshape(bins.n_bins[i], -1)
            law = down[i].T @ law @ down[j]
            if self.columns[i] is not None or self.columns[j] is not None:
                counts = counted.table(i, j, rows.axes[i], rows.axes[j])
                law = sharpened(law, counts, self.emissions.tables[i], self.emissions.tables[j], PAIR_STEPS)
            tables.append(law.ravel())
        return PairPrior(self.emissions.n_states, pairs, np.concatenate(tables), self.laws(bins.means), margins)
