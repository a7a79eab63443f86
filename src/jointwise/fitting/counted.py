"""Counted: what knows the counts of its columns' bins, and Counts: the counts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jointwise._typing import FloatArray
from jointwise.axes import Axis, regrouping
from jointwise.rows.base import Rows
from jointwise.tables.variables import Schema


class Counted(Protocol):
    """What knows the counts of its columns' bins: rows, the counts of their pairs, or counts alone."""

    @property
    def schema(self) -> Schema:
        """The columns."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Their bins."""

    def marginal(self, n: int) -> FloatArray:
        """Return the counts of the bins of column ``n``."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of the bins of some columns: what the choice of dictionaries needs."""

    schema: Schema
    axes: tuple[Axis, ...]
    counts: tuple[FloatArray, ...]

    def marginal(self, n: int) -> FloatArray:
        """Return the counts of the bins of column ``n``."""
        return self.counts[n]

    def take(self, chosen: Sequence[int]) -> Counts:
        """Return some of the columns."""
        variables = tuple(self.schema.variables[n] for n in chosen)
        return Counts(
            Schema(variables, self.schema.container),
            tuple(self.axes[n] for n in chosen),
            tuple(self.counts[n] for n in chosen),
        )


def merged_counts(rows: Rows, n: int, axis: Axis) -> FloatArray:
    """Return the counts of a column on a coarser axis."""
    lookup = regrouping(rows.axes[n], axis)[:-1]
    merged: FloatArray = np.bincount(lookup, rows.marginal(n), minlength=axis.n_bins).astype(np.float64)
    return merged
