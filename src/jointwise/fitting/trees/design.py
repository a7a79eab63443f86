"""TreeDesign: what of a fit follows from the columns alone, before any tree is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise._typing import FloatArray
from jointwise.axes import Axis, DiscreteAxis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.fitting.choice.dictionaries import choose_dictionaries
from jointwise.fitting.counted import Counts, merged_counts
from jointwise.fitting.problem import bin_masses, margin_prior
from jointwise.fitting.starts import spread_positions
from jointwise.fitting.trees.atoms import AtomSpace, atom_column
from jointwise.fitting.trees.counts import PairCounts, RowPairs, merger, regrouped_pairs
from jointwise.fitting.trees.merging import FINE_BINS, PARTNER_BINS, MergeOrder, kept_cuts, merge_orders
from jointwise.fitting.trees.moving import FINEST_BINS, moved_cuts
from jointwise.fitting.trees.space import StateSpace
from jointwise.fitting.trees.states import MOST_STATES, Column
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import simplex_weights
from jointwise.tables.variables import Schema

# States of all columns together: pair counts grow with their square, and this many take 134 MB.
MOST_STATES_OF_ALL = 4096
# Most columns of a fit: with two states each they have all that `MOST_STATES_OF_ALL` allows.
MOST_COLUMNS = MOST_STATES_OF_ALL // 2
# Rows by which bins are merged.
PAIR_ROWS = 250_000


@dataclass(frozen=True, eq=False)
class TreeDesign:
    """The columns with their own 1-D fits.

    Parameters
    ----------
    schema : Schema
    columns : tuple of Column
    chosen : mapping of str to Dictionary
        The dictionaries of the columns' own fits, by name.
    counted : PairCounts
        What states are chosen by.
    """

    schema: Schema
    columns: tuple[Column, ...]
    chosen: Mapping[str, Dictionary]
    counted: PairCounts

    @classmethod
    def of(
        cls,
        rows: Rows,
        coarse: Sequence[Axis],
        rng: np.random.Generator,
        known: Mapping[str, Dictionary] | None = None,
    ) -> TreeDesign:
        """Return the design for rows with fine axes.

        Parameters
        ----------
        rows : Rows
        coarse : sequence of Axis
            The axes that dictionaries are chosen on.
        rng : numpy.random.Generator
            Deals counts to folds.
        known : mapping of str to Dictionary, optional
            Dictionaries of columns for which they are chosen already.
        """
        merged = tuple(merged_counts(rows, n, axis) for n, axis in enumerate(coarse))
        counts = Counts(rows.schema, tuple(coarse), merged)
        return cls.of_counts(counts, rows.axes, rows.column_counts, RowPairs(_sample(rows, rng)), rng, known)

    @classmethod
    def of_counts(
        cls,
        counts: Counts,
        axes: Sequence[Axis],
        fine: Sequence[FloatArray],
        pairs: PairCounts,
        rng: np.random.Generator,
        known: Mapping[str, Dictionary] | None = None,
    ) -> TreeDesign:
        """Return the design for the counts of columns on coarse axes, and on those that states are made from."""
        names = counts.schema.names
        if len(names) > MOST_COLUMNS:
            raise InputError(
                f"A mixture of trees counts pairs of columns, at most {MOST_COLUMNS} columns in all; the table has "
                f"{len(names)}. Leave some out with `drop`, or use JUPAD()."
            )
        known = {name: known[name] for name in names if name in known} if known else {}
        further = [n for n, name in enumerate(names) if name not in known]
        found = choose_dictionaries(counts.take(further), {}, rng, slack=0.0) if further else ()
        chosen = {**known, **dict(zip([names[n] for n in further], found, strict=True))}
        columns = []
        for n, (variable, axis) in enumerate(zip(counts.schema, counts.axes, strict=True)):
            dictionary, here = chosen[variable.name], counts.marginal(n)
            weights = simplex_weights(
                bin_masses(dictionary, axis), here, prior=margin_prior(dictionary, float(here.sum()))
            )
            columns.append(Column(variable, axes[n], np.asarray(fine[n], dtype=np.float64), dictionary, weights))
        return cls(counts.schema, tuple(columns), chosen, pairs)

    @property
    def has_bins(self) -> bool:
        """Whether some column has quantile bins as states, whose number is to be chosen."""
        return any(column.has_bins for column in self.columns)

    def atoms(self, n_states: int, n_atoms: int) -> AtomSpace:
        """Return the same with at most ``n_atoms`` smooth atoms of numbers as states, beside the bins."""
        if (n_states, n_atoms) not in self._atoms:
            bins, most = self.space(n_states), min(n_atoms, MOST_STATES_OF_ALL // len(self.columns))
            columns = (atom_column(*each, most) for each in zip(self.columns, bins.columns, strict=True))
            self._atoms[n_states, n_atoms] = AtomSpace(bins, tuple(columns))
        return self._atoms[n_states, n_atoms]

    @cached_property
    def _atoms(self) -> dict[tuple[int, int], AtomSpace]:
        return {}

    @cached_property
    def _spaces(self) -> dict[int, StateSpace]:
        return {}

    def space(self, n_states: int) -> StateSpace:
        """Return the states of all columns, with at most ``n_states`` quantile bins of numbers."""
        if n_states not in self._spaces:
            bins, most = self._most(n_states)
            self._spaces[n_states] = self._space(bins, most, self._edges(bins, most))
        return self._spaces[n_states]

    def even_space(self, n_states: int) -> StateSpace:
        """Return the same with quantile bins as they are, which takes a fraction of the time."""
        return self._space(*self._most(n_states), {})

    def sizes(self, n_states: int) -> list[int]:
        """Return the number of states of each column in `even_space`."""
        bins, most = self._most(n_states)
        return [column.coarse(bins, most).n_bins for column in self.columns]

    def n_grouped(self, n_states: int) -> int:
        """Return the entries of the tables of states and categories, of columns whose rare categories share states."""
        grouped = zip(self.columns, self.sizes(n_states), strict=True)
        return sum(n * c.axis.n_bins for c, n in grouped if isinstance(c.axis, DiscreteAxis) and n < c.axis.n_bins)

    def _space(self, n_bins: int, most: int, edges: Mapping[int, FloatArray]) -> StateSpace:
        """Return the states of all columns, some of them bins with given edges."""
        columns = tuple(column.states(n_bins, most, edges.get(n)) for n, column in enumerate(self.columns))
        return StateSpace(self.schema, columns)

    def _most(self, n_states: int) -> tuple[int, int]:
        """Return the most bins of a column of numbers, of which `n_states` are asked for, and most states of others."""
        share = MOST_STATES_OF_ALL // len(self.columns)
        return min(n_states, share), min(MOST_STATES, share)

    def _edges(self, n_bins: int, most: int) -> dict[int, FloatArray]:
        """Return the edges of the bins that tell most of other columns, of each column that has bins."""
        fine, orders = self._orders
        edges = {n: kept_cuts(fine[n], order.cuts, n_bins) for n, order in orders.items()}
        axes = [column.coarse(n_bins, most, edges.get(n)) for n, column in enumerate(self.columns)]
        for n, order in orders.items():
            edges[n] = self._moved(n, edges[n], {k: axes[k] for k in order.partners})
            axes[n] = self.columns[n].bins(n_bins, edges[n])
        return edges

    def _moved(self, n: int, edges: FloatArray, partners: Mapping[int, Axis]) -> FloatArray:
        """Return the edges of a column moved to where they tell most of its partners."""
        column = self.columns[n]
        axis = column.bins(FINEST_BINS, np.union1d(column.bins(FINEST_BINS).edges, edges))
        tables = [self.counted.table(n, k, axis, other)[: axis.n_intervals] for k, other in partners.items()]
        cuts = moved_cuts(np.searchsorted(axis.edges, edges), tables, column.on(axis)[: axis.n_intervals])
        return np.asarray(axis.edges[cuts])

    @cached_property
    def _orders(self) -> tuple[tuple[Axis, ...], dict[int, MergeOrder]]:
        """Fine axes, and the order in which their cuts are given up; see `merging`."""
        binned = [n for n, column in enumerate(self.columns) if column.has_bins]
        if not binned or len(self.columns) == 1:
            return (), {}
        share = MOST_STATES_OF_ALL // len(self.columns)
        few = min(PARTNER_BINS, share)
        many = min(FINE_BINS, share) // few * few  # so that quantiles of few are among those of many
        fine, partner = (
            tuple(column.coarse(bins, min(MOST_STATES, share)) for column in self.columns) for bins in (many, few)
        )
        pairs = self.counted.pairs(fine)
        coarse = regrouped_pairs(pairs, partner)
        across = np.asarray((merger(fine, partner) @ np.asarray(pairs.counts, dtype=np.float64)).T)
        return fine, merge_orders(pairs, coarse, across, binned)


def _sample(rows: Rows, rng: np.random.Generator) -> CodedRows:
    """Return the rows that states are chosen by, in memory; nothing is drawn if these are all."""
    if len(rows) > PAIR_ROWS:
        return rows.take(spread_positions(len(rows), PAIR_ROWS, rng))
    return rows if isinstance(rows, CodedRows) else rows.take(np.arange(len(rows)))
