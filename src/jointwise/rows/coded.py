"""Rows as their bin numbers: all that is kept of a table for passes over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jointwise._checks import check_weights
from jointwise._typing import CodeArray, FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.engines import PosteriorEngine, posterior_engine
from jointwise.marginals.coding import code_table
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.rows.base import Rows
from jointwise.tables import read_table
from jointwise.tables.variables import Schema

# Rows whose bins are counted at once, so that counting takes no memory to speak of.
COUNTED_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class CodedRows(Rows):
    """A table of which only the bin of each cell is kept, in one or two bytes.

    Parameters
    ----------
    schema : Schema
    axes : tuple of Axis
    codes : array of shape (n, N), uint8 or uint16
        Bin of each cell; `n_bins` of its axis where it is missing. It may lie in a memory-mapped file.
    weights : array of shape (n,), optional
        How often each row counts.
    device : "cpu" or "cuda"
        Where passes over the rows run.

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

    @classmethod
    def of(cls, data: Any, schema: Schema, axes: Sequence[Axis], sample_weight: Any = None) -> CodedRows:
        """Code the rows of a table."""
        table = read_table(data)
        weights = check_weights(sample_weight, table.n_rows)
        return cls(schema, tuple(axes), code_table(table, schema, axes), weights)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(len(self.codes) if self.weights is None else self.weights.sum())

    @cached_property
    def margins(self) -> tuple[FloatArray, ...]:
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
        return replace(self, codes=self.codes[chosen], weights=weights)

    def with_weights(self, weights: FloatArray) -> CodedRows:
        """Return the same rows with other weights, those of weight zero left out."""
        here = weights > 0
        return replace(self, codes=self.codes[here], weights=weights[here])

    def canonical(self) -> CodedRows:
        """Return equal rows as one with their weights added, in the order of their codes; empty rows are left out.

        Whatever is computed from it depends neither on the order of the rows nor on whether one is repeated or weighs
        more.
        """
        weights = np.ones(len(self.codes)) if self.weights is None else self.weights
        useful = np.flatnonzero((self.codes < np.asarray(self.n_bins)).any(axis=1) & (weights > 0))
        codes = np.ascontiguousarray(self.codes[useful])
        whole = codes.view(np.dtype((np.void, codes.dtype.itemsize * codes.shape[1])))[:, 0]
        _, first, where = np.unique(whole, return_index=True, return_inverse=True)
        added: FloatArray = np.bincount(where, weights[useful]).astype(np.float64)
        return replace(self.take(useful[first]), weights=added)

    def on(self, device: str) -> CodedRows:
        """Return the rows with their passes run on a device: "cpu" or "cuda"."""
        return replace(self, device=device)

    def pairs(self) -> PairwiseMarginals:
        """Return the counts of all pairs of columns."""
        return PairwiseMarginals.from_codes(self.codes, self.schema, self.axes, self.weights, self.device)

    def engine(self) -> PosteriorEngine:
        """Return the rows ready for posterior counts."""
        return posterior_engine(self.codes, self.n_bins, self.weights, self.device)
