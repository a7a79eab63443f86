"""PartedRows: rows whose codes are kept in parts by a cluster. Functions are sent to them, small values return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.engines import PosteriorCounts, PosteriorEngine, posterior_engine
from jointwise.engines.blocks import BlockComponents, BlockEngine, BlockLayout, BlockSums, block_engine
from jointwise.engines.trees import EdgeSums, PairSums, TreeComponents, TreeEngine, check_pairs, tree_engine
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.rows.base import Rows, StatisticT, looked_up
from jointwise.rows.coded import CodedRows
from jointwise.tables.variables import Schema


@dataclass(frozen=True, eq=False)
class Part:
    """Codes of some rows, of shape (n, N), and their weights, of shape (n,), if they have any."""

    codes: CodeArray
    weights: FloatArray | None = None

    @classmethod
    def of(cls, block: Any, schema: Schema, axes: Sequence[Axis], weights: str | None) -> Part:
        """Return the codes of a block of a table, whose column `weights`, if given, holds the weights of its rows."""
        rows = CodedRows.of_block(block, schema, axes, weights)
        return cls(rows.codes, rows.weights)


class Parts(ABC):
    """The parts of a coded table, in the order of its rows: what a cluster provides.

    Functions given to its methods may be sent to other processes, and several may run at the same time in one process.
    """

    @abstractmethod
    def total(self, statistic: Callable[[Part], StatisticT]) -> StatisticT:
        """Return the sum of a statistic over all parts, added in the cluster.

        The parts alone fix the order of additions, so the result is the same, bit for bit, on every repeat.
        """

    @abstractmethod
    def each(self, function: Callable[[Part, Any], Any], arguments: Sequence[Any]) -> list[Any]:
        """Return a function's result for every part with the part's own argument, in the order of the parts."""

    @property
    @abstractmethod
    def lengths(self) -> Sequence[int]:
        """Number of rows of every part."""


class PartedRows(Rows):
    """Coded rows that a cluster keeps in parts.

    Parameters
    ----------
    schema : Schema of N variables
    axes : sequence of N axes
    parts : Parts
        Their codes are uint8 or uint16, as `encode_rows` makes them; a part may have no rows.
    weighted : bool
        Whether the parts have weights; either all have or none.
    """

    def __init__(self, schema: Schema, axes: Sequence[Axis], parts: Parts, *, weighted: bool = False) -> None:
        self.schema = schema
        self.axes = tuple(axes)
        self._parts = parts
        self._weighted = weighted

    @cached_property
    def _starts(self) -> IntArray:
        """Position of the first row of every part, and the number of rows at the end."""
        return np.concatenate([[0], np.cumsum(self._parts.lengths, dtype=np.int64)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @cached_property
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""
        return self._parts.total(_sum_of_weights) if self._weighted else float(len(self))

    @cached_property
    def column_counts(self) -> tuple[FloatArray, ...]:
        """Counts of the bins of each column, each of shape (n_bins,), all from one pass."""
        stacked: FloatArray = self._parts.total(partial(_stacked_counts, schema=self.schema, axes=self.axes))
        return tuple(np.split(stacked, np.cumsum(self.n_bins)[:-1]))

    def take(self, chosen: IntArray) -> CodedRows:
        """Return the rows at these increasing positions, in memory; no other row is transferred."""
        cuts = np.searchsorted(chosen, self._starts[1:-1])
        own = [
            positions - start if len(positions) < n else slice(None)
            for positions, start, n in zip(np.split(chosen, cuts), self._starts, self._parts.lengths, strict=False)
        ]
        found = self._parts.each(_chosen, own)
        weights = np.concatenate([part.weights for part in found]) if self._weighted else None
        return CodedRows(self.schema, self.axes, np.concatenate([part.codes for part in found]), weights)

    def pairs(self) -> PairwiseMarginals:
        """Return the counts of all pairs of columns."""
        return self._parts.total(partial(_pair_counts, schema=self.schema, axes=self.axes))

    def engine(self) -> PosteriorEngine:
        """Return an engine for posterior counts of the rows."""
        return _PartedEngine(self._parts, self.n_bins)

    def regrouped(self, axes: Sequence[Axis], folder: Path | None = None) -> PartedRows:  # noqa: ARG002
        """Return the same rows on coarser axes; see `Rows.regrouped`. The cluster looks codes up in each pass."""
        parts = _RegroupedParts(self._parts, self._lookups(axes))
        return PartedRows(self.schema, axes, parts, weighted=self._weighted)

    def block_engine(self, layout: BlockLayout) -> BlockEngine:
        """Return an engine for passes over a Gaussian block of the rows."""
        layout.check(self.n_bins)
        return _PartedBlockEngine(self._parts, layout)

    def tree_engine(self) -> TreeEngine:
        """Return an engine for passes over mixtures of trees; see `Rows.tree_engine`."""
        return _PartedTreeEngine(self._parts, self.n_bins)


class _RegroupedParts(Parts):
    """Parts whose codes are looked up in tables before a function sees them."""

    def __init__(self, parts: Parts, lookups: tuple[CodeArray, ...]) -> None:
        self._fine = parts
        self._lookups = lookups

    def total(self, statistic: Callable[[Part], StatisticT]) -> StatisticT:
        total: StatisticT = self._fine.total(partial(_of_regrouped, statistic=statistic, lookups=self._lookups))
        return total

    def each(self, function: Callable[[Part, Any], Any], arguments: Sequence[Any]) -> list[Any]:
        return self._fine.each(partial(_each_regrouped, function=function, lookups=self._lookups), arguments)

    @property
    def lengths(self) -> Sequence[int]:
        return self._fine.lengths


class _PartedEngine(PosteriorEngine):
    """Posterior counts of every part in the cluster, then their sum."""

    def __init__(self, parts: Parts, n_bins: Sequence[int]) -> None:
        self._parts = parts
        self._n_bins = list(n_bins)

    def posterior_counts(self, tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
        """One pass over the rows; see `PosteriorEngine`."""
        return self._parts.total(partial(_posterior_counts, n_bins=self._n_bins, tables=tables, mixing=mixing))


class _PartedBlockEngine(BlockEngine):
    """Sums of every part in the cluster, then their sum."""

    def __init__(self, parts: Parts, layout: BlockLayout) -> None:
        self._parts = parts
        self._layout = layout

    def sums(self, components: BlockComponents) -> BlockSums:
        """One pass over the rows; see `BlockEngine`."""
        components.check(self._layout)
        return self._parts.total(partial(_block_sums, layout=self._layout, components=components))


class _PartedTreeEngine(TreeEngine):
    """Expected counts of every part in the cluster, then their sum."""

    def __init__(self, parts: Parts, n_bins: Sequence[int]) -> None:
        self._parts = parts
        self._n_bins = tuple(n_bins)

    def edge_sums(self, components: TreeComponents) -> EdgeSums:
        """Return the expected counts of all edges; see `TreeEngine`."""
        components.forest.check(self._n_bins)
        return self._parts.total(partial(_tree_edge_sums, components=components))

    def pair_sums(self, components: TreeComponents, pairs: IntArray) -> PairSums:
        """Return the expected counts of pairs of columns; see `TreeEngine`."""
        components.forest.check(self._n_bins)
        pairs = check_pairs(pairs, len(self._n_bins))
        return self._parts.total(partial(_tree_pair_sums, components=components, pairs=pairs))


def _chosen(part: Part, rows: IntArray | slice) -> Part:
    return Part(part.codes[rows], None if part.weights is None else part.weights[rows])


def _of_regrouped(part: Part, statistic: Callable[[Part], Any], lookups: Sequence[CodeArray]) -> Any:
    return statistic(Part(looked_up(part.codes, lookups), part.weights))


def _each_regrouped(
    part: Part, argument: Any, function: Callable[[Part, Any], Any], lookups: Sequence[CodeArray]
) -> Any:
    return function(Part(looked_up(part.codes, lookups), part.weights), argument)


def _sum_of_weights(part: Part) -> float:
    return 0.0 if part.weights is None else float(part.weights.sum())


def _stacked_counts(part: Part, schema: Schema, axes: tuple[Axis, ...]) -> AnyArray:
    return np.concatenate(CodedRows(schema, axes, part.codes, part.weights).column_counts)


def _pair_counts(part: Part, schema: Schema, axes: tuple[Axis, ...]) -> PairwiseMarginals:
    return PairwiseMarginals.from_codes(part.codes, schema, axes, part.weights)


def _posterior_counts(part: Part, n_bins: Sequence[int], tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
    """Return the posterior counts of one part, in one thread, because parts run side by side.

    Arrays that were sent are read-only, for which numba would compile the pass again; so they are made writable.
    """
    codes: CodeArray = np.require(part.codes, requirements=["C", "W"])
    weights = None if part.weights is None else np.require(part.weights, requirements=["C", "W"])
    return posterior_engine(codes, n_bins, weights, n_threads=1).posterior_counts(tables, np.array(mixing))


def _block_sums(part: Part, layout: BlockLayout, components: BlockComponents) -> BlockSums:
    """Return the sums of one part, in one thread, because parts run side by side."""
    return block_engine(part.codes, layout, part.weights, n_threads=1).sums(components)


def _part_tree_engine(part: Part, components: TreeComponents) -> TreeEngine:
    """Return an engine over one part, in one thread, because parts run side by side."""
    return tree_engine(part.codes, components.forest.n_bins, part.weights, n_threads=1)


def _tree_edge_sums(part: Part, components: TreeComponents) -> EdgeSums:
    return _part_tree_engine(part, components).edge_sums(components)


def _tree_pair_sums(part: Part, components: TreeComponents, pairs: IntArray) -> PairSums:
    return _part_tree_engine(part, components).pair_sums(components, pairs)
