"""What a fit needs of rows, wherever they are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

from jointwise._typing import CodeArray, FloatArray, IntArray
from jointwise.axes import Axis, code_dtype, regrouping
from jointwise.engines import PosteriorEngine
from jointwise.engines.blocks import BlockEngine, BlockLayout
from jointwise.engines.trees import TreeEngine
from jointwise.exceptions import InputError
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.tables.variables import Schema

if TYPE_CHECKING:
    from jointwise.rows.coded import CodedRows


class Statistic(Protocol):
    """A small value that adds up over parts of a table."""

    def __add__(self, other: Self, /) -> Self: ...


StatisticT = TypeVar("StatisticT", bound=Statistic)


class Rows(ABC):
    """Coded rows, wherever they are kept.

    Attributes
    ----------
    schema : Schema
    axes : tuple of Axis
    """

    schema: Schema
    axes: tuple[Axis, ...]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows, without regard to weights."""

    @property
    @abstractmethod
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""

    @property
    @abstractmethod
    def column_counts(self) -> tuple[FloatArray, ...]:
        """Counts of the bins of each column, each of shape (n_bins,)."""

    @abstractmethod
    def take(self, chosen: IntArray) -> CodedRows:
        """Return the rows at these increasing positions, in memory."""

    @abstractmethod
    def engine(self) -> PosteriorEngine:
        """Return an engine for posterior counts of the rows."""

    @abstractmethod
    def block_engine(self, layout: BlockLayout) -> BlockEngine:
        """Return an engine for passes over a Gaussian block of the rows."""

    @abstractmethod
    def tree_engine(self) -> TreeEngine:
        """Return an engine for passes over mixtures of trees, whose states are the bins of the rows' axes."""

    @abstractmethod
    def pairs(self) -> PairwiseMarginals:
        """Return the counts of all pairs of columns."""

    @abstractmethod
    def regrouped(self, axes: Sequence[Axis], folder: Path | None = None) -> Rows:
        """Return the same rows on coarser axes, whose edges, spikes and values are among those of the rows' own.

        The codes are those of the table coded on these axes. Codes that do not fit in memory are written to `folder`,
        by default the system's folder for temporary files.
        """

    def canonical(self) -> CodedRows:
        """Return the rows in memory, with equal rows merged and sorted by their codes; see `CodedRows.canonical`."""
        return self.take(np.arange(len(self))).canonical()

    def on(self, device: str) -> Rows:
        """Return the same rows, whose passes run on a device: "cpu" or "cuda"."""
        if device != "cpu":
            raise InputError(
                f'device="{device}" needs the rows on this machine, but they are in a cluster. Use device="cpu", or '
                "read the table here, for instance as Parquet files."
            )
        return self

    def _lookups(self, axes: Sequence[Axis]) -> tuple[CodeArray, ...]:
        """Coarse code of each fine code, for each column; see `regrouping`."""
        if len(axes) != len(self.axes):
            raise InputError(f"Expected {len(self.axes)} axes, one for each variable; got {len(axes)}.")
        dtype = code_dtype(axes)
        return tuple(regrouping(a, b).astype(dtype, copy=False) for a, b in zip(self.axes, axes, strict=True))

    def marginal(self, n: int) -> FloatArray:
        """Return the counts of the bins of column ``n``; shape (n_bins,)."""
        return self.column_counts[n]

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What is known of the columns, once asked for; see `jointwise.fitting.blocks.columns`."""
        return {}

    @property
    def n_bins(self) -> list[int]:
        """Number of bins of each column."""
        return [axis.n_bins for axis in self.axes]


def looked_up(codes: CodeArray, lookups: Sequence[CodeArray]) -> CodeArray:
    """Return codes (n, N) replaced column by column, each with its own lookup table."""
    found: CodeArray = np.empty(codes.shape, dtype=lookups[0].dtype)
    for n, lookup in enumerate(lookups):
        found[:, n] = lookup[codes[:, n]]
    return found
