"""Counted: what knows the counts of its columns' bins."""

from __future__ import annotations

from typing import Protocol

from jointwise._typing import FloatArray
from jointwise.axes import Axis
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
