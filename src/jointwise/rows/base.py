"""What a fit asks of rows, wherever they lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.engines import PosteriorEngine
from jointwise.exceptions import InputError
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.tables.variables import Schema

if TYPE_CHECKING:
    from jointwise.rows.coded import CodedRows


class Rows(ABC):
    """Coded rows, wherever they lie: what a fit asks of them.

    Attributes
    ----------
    schema : Schema
    axes : tuple of Axis
    """

    schema: Schema
    axes: tuple[Axis, ...]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows, whatever they weigh."""

    @property
    @abstractmethod
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""

    @property
    @abstractmethod
    def margins(self) -> tuple[FloatArray, ...]:
        """Counts of the bins of each column, each of shape (n_bins,)."""

    @abstractmethod
    def take(self, chosen: IntArray) -> CodedRows:
        """Return the rows at these positions, which rise, in memory."""

    @abstractmethod
    def engine(self) -> PosteriorEngine:
        """Return the rows ready for posterior counts."""

    @abstractmethod
    def pairs(self) -> PairwiseMarginals:
        """Return the counts of all pairs of columns."""

    def canonical(self) -> CodedRows:
        """Return equal rows as one, in the order of their codes, in memory; see `CodedRows.canonical`."""
        return self.take(np.arange(len(self))).canonical()

    def on(self, device: str) -> Rows:
        """Return the rows with their passes run on a device: "cpu" or "cuda"."""
        if device != "cpu":
            raise InputError(
                f'device="{device}" needs the rows on this machine; {type(self).__name__} lie elsewhere. Use '
                'device="cpu", or read the table here, for instance as Parquet files.'
            )
        return self

    def marginal(self, n: int) -> FloatArray:
        """Counts of the bins of column ``n``; shape (n_bins,)."""
        return self.margins[n]

    @property
    def n_bins(self) -> list[int]:
        """Number of bins of each column."""
        return [axis.n_bins for axis in self.axes]
