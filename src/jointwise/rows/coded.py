"""CodedRows: the rows of a table as bin numbers, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._checks import check_weights, shown, unknown_name
from jointwise._typing import CodeArray, FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.engines import PosteriorEngine, posterior_engine
from jointwise.engines.blocks import BlockEngine, BlockLayout, ScoringBlockEngine, block_engine, scoring_engine
from jointwise.engines.trees import Emissions, TreeEngine, tree_engine
from jointwise.exceptions import InputError
from jointwise.marginals.coding import code_table
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.rows.base import Rows, looked_up
from jointwise.rows.store import Store
from jointwise.tables import Table, read_table
from jointwise.tables.variables import Schema

# Rows whose bins are counted at a time, so that counting needs little memory.
COUNTED_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class CodedRows(Rows):
    """A table reduced to the bin of each cell, in one or two bytes.

    Parameters
    ----------
    schema : Schema
    axes : tuple of Axis
    codes : array of shape (n, N), uint8 or uint16
        Bin of each cell; `n_bins` of its axis if the cell is missing. The array may be a memory-mapped file.
    weights : array of shape (n,), optional
        Weights of the rows.
    device : "cpu" or "cuda"
        Where passes over the rows run.
    is_ordered : bool
        Whether columns and rows are in an order that follows from what they hold; see `fitting.order`.

    Examples
    --------
    >>> from jointwise.marginals import Profile
    >>> data = {"a": [1.0, 2.0, None], "b": ["x", "y", "y"]}
    >>> profile = Profile.of(data)
    >>> schema = profile.schema()
    >>> rows = CodedRows.of(data, schema, profile.axes(schema, 4))
    >>> rows.codes.tolist(), rows.marginal(1).tolist()
    ([[0, 0], [1, 1], [2, 1]], [1.0, 2.0])
    """

    schema: Schema
    axes: tuple[Axis, ...]
    codes: CodeArray
    weights: FloatArray | None = None
    device: str = "cpu"
    is_ordered: bool = False

    @classmethod
    def of(cls, data: Any, schema: Schema, axes: Sequence[Axis], sample_weight: Any = None) -> CodedRows:
        """Return the coded rows of a table."""
        table = read_table(data)
        weights = check_weights(sample_weight, table.n_rows)
        return cls(schema, tuple(axes), code_table(table, schema, axes), weights)

    @classmethod
    def of_block(cls, block: Any, schema: Schema, axes: Sequence[Axis], weights: str | None) -> CodedRows:
        """Return the coded rows of a block of a table, whose column `weights`, if given, holds their weights."""
        table, row_weights = split_weights(block, weights)
        return cls.of(table, schema, axes, row_weights)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(len(self.codes) if self.weights is None else self.weights.sum())

    @cached_property
    def column_counts(self) -> tuple[FloatArray, ...]:
        """Counts of the bins of each column, each of shape (n_bins,)."""
        counts = [np.zeros(bins + 1) for bins in self.n_bins]
        for start in range(0, len(self.codes), COUNTED_ROWS):
            rows = slice(start, start + COUNTED_ROWS)
            weights = None if self.weights is None else self.weights[rows]
            for n, bins in enumerate(self.n_bins):
                counts[n] += np.bincount(self.codes[rows, n], weights, minlength=bins + 1)
        return tuple(column[:-1] for column in counts)

    def take(self, chosen: IntArray) -> CodedRows:
        """Return the rows at these positions."""
        weights = None if self.weights is None else self.weights[chosen]
        return replace(self, codes=self.codes[chosen], weights=weights, is_ordered=False)

    def with_weights(self, weights: FloatArray) -> CodedRows:
        """Return the same rows with other weights, without rows of weight zero."""
        here = weights > 0
        return replace(self, codes=self.codes[here], weights=weights[here])

    def regrouped(self, axes: Sequence[Axis], folder: Path | None = None) -> CodedRows:
        """Return the same rows on coarser axes; see `Rows.regrouped`. Codes of a mapped file stay in a file.

        >>> from jointwise.marginals import Profile
        >>> data = {"a": [0.5, 1.5, 2.5, 3.5]}
        >>> profile = Profile.of(data)
        >>> schema = profile.schema()
        >>> rows = CodedRows.of(data, schema, profile.axes(schema, 2, fine=["a"]))
        >>> rows.codes.tolist(), rows.regrouped(profile.axes(schema, 2)).codes.tolist()
        ([[0], [1], [2], [3]], [[0], [0], [1], [1]])
        """
        lookups = self._lookups(axes)
        if not isinstance(self.codes, np.memmap):
            codes = looked_up(self.codes, lookups)
            return replace(self, axes=tuple(axes), codes=codes, is_ordered=False)
        with Store(folder) as store:
            for start in range(0, max(len(self.codes), 1), COUNTED_ROWS):
                store.append(looked_up(self.codes[start : start + COUNTED_ROWS], lookups))
            return replace(self, axes=tuple(axes), codes=store.array(), is_ordered=False)

    def values(self, columns: Sequence[int] | None = None) -> FloatArray:
        """Return the value that each code stands for, NaN for a missing cell, in all or some columns; shape (n, N).

        It is the centre of an interval, a spike, or the position of a category; see `Axis.representatives`, which
        refuses a numeric column whose axis is not fine.
        """
        columns = range(len(self.axes)) if columns is None else columns
        values = np.empty((len(self.codes), len(columns)))
        for place, n in enumerate(columns):
            values[:, place] = np.append(self.axes[n].representatives, np.nan)[self.codes[:, n]]
        return values

    def canonical(self) -> CodedRows:
        """Return equal rows merged, with their weights added, sorted by their codes; empty rows are left out.

        Results computed from it depend neither on the order of the rows nor on whether a row is repeated or weighs
        more.
        """
        codes, weights = self._useful()
        whole = codes.view(np.dtype((np.void, codes.dtype.itemsize * codes.shape[1])))[:, 0]
        order = np.argsort(whole)
        codes = codes[order]
        is_first = np.ones(len(codes), dtype=bool)
        np.any(codes[1:] != codes[:-1], axis=1, out=is_first[1:])
        if weights is None and is_first.all():
            return replace(self, codes=codes, weights=np.ones(len(codes)))
        first = np.flatnonzero(is_first)
        weights = np.ones(len(codes)) if weights is None else weights[order]
        added = np.add.reduceat(weights, first) if len(first) else weights
        return replace(self, codes=codes[first], weights=added)

    def _useful(self) -> tuple[CodeArray, FloatArray | None]:
        """Return the rows that have a cell and a weight, and their weights; the arrays themselves if all have."""
        useful = (self.codes < np.asarray(self.n_bins)).any(axis=1)
        if self.weights is not None:
            useful &= self.weights > 0
        if useful.all():
            return np.require(self.codes, requirements="C"), self.weights
        return self.codes[useful], None if self.weights is None else self.weights[useful]

    def on(self, device: str) -> CodedRows:
        """Return the same rows, whose passes run on a device: "cpu" or "cuda"."""
        return replace(self, device=device)

    def pairs(self) -> PairwiseMarginals:
        """Return the counts of all pairs of columns."""
        return PairwiseMarginals.from_codes(self.codes, self.schema, self.axes, self.weights, self.device)

    def engine(self) -> PosteriorEngine:
        """Return an engine for posterior counts of the rows."""
        return posterior_engine(self.codes, self.n_bins, self.weights, self.device)

    def block_engine(self, layout: BlockLayout) -> BlockEngine:
        """Return an engine for passes over a Gaussian block of the rows."""
        layout.check(self.n_bins)
        return block_engine(self.codes, layout, self.weights, self.device)

    def scoring_engine(self, layout: BlockLayout) -> ScoringBlockEngine:
        """Return an engine that scores each row under a Gaussian block, here whatever the device is."""
        layout.check(self.n_bins)
        return scoring_engine(self.codes, layout, self.weights)

    def tree_engine(self, emissions: Emissions | None = None) -> TreeEngine:
        """Return an engine for passes over mixtures of trees; see `Rows.tree_engine`.

        With `emissions`, states are hidden and the bins of the axes are what they emit.
        """
        return tree_engine(self.codes, self.n_bins, self.weights, self.device, emissions=emissions)


def split_weights(block: Any, column: str | None) -> tuple[Table, FloatArray | None]:
    """Return a block without its column of weights, and the weights; without a `column`, the whole block and None.

    >>> table, weights = split_weights({"a": [1, 2], "w": [0.5, 2.0]}, "w")
    >>> table.names, weights
    (('a',), array([0.5, 2. ]))
    """
    table = read_table(block)
    if column is None:
        return table, None
    if column not in table.names:
        raise unknown_name("column in `sample_weight`:", column, table.names)
    where = table.names.index(column)
    found = table.read(where)
    if found.labels is not None or found.dtype not in {"float64", "int64"}:
        raise InputError(f"`sample_weight` must name a column of numbers; {shown(column)} holds {found.dtype} values.")
    rest = [n for n in range(len(table.names)) if n != where]
    if not rest:
        raise InputError(f"The table has no column besides {shown(column)}, which `sample_weight` names.")
    return table.select(rest), check_weights(found.values, table.n_rows)
