"""Rows as their bin numbers: all that is kept of a table for passes over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise._checks import check_weights
from jointwise._typing import CodeArray, FloatArray, IntArray
from jointwise.axes import Axis, encode_rows
from jointwise.engines import PosteriorEngine, posterior_engine
from jointwise.tables import encode, read_table
from jointwise.variables import Schema


@dataclass(frozen=True, eq=False)
class CodedRows:
    """A table of which only the bin of each cell is kept, in one or two bytes.

    Parameters
    ----------
    schema : Schema
    axes : tuple of Axis
    codes : array of shape (n, N), uint8 or uint16
        Bin of each cell; `n_bins` of its axis where it is missing.
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
        rows = encode(table, schema)
        return cls(schema, tuple(axes), encode_rows(rows, axes), weights)

    @property
    def n_bins(self) -> list[int]:
        """Number of bins of each column."""
        return [axis.n_bins for axis in self.axes]

    @property
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(len(self.codes) if self.weights is None else self.weights.sum())

    def marginal(self, n: int) -> FloatArray:
        """Counts of the bins of column ``n``; shape (n_bins,)."""
        bins = self.axes[n].n_bins
        return np.bincount(self.codes[:, n], self.weights, minlength=bins + 1)[:bins].astype(np.float64)

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

    def engine(self) -> PosteriorEngine:
        """Return the rows ready for posterior counts."""
        return posterior_engine(self.codes, self.n_bins, self.weights, self.device)
