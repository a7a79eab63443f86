"""What every source of rows owes: to apply a function to its blocks and add what comes out, where the rows lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from jointwise.axes import Axis
from jointwise.marginals.coded import Rows
from jointwise.marginals.profile import Profile
from jointwise.variables import Schema


class Statistic(Protocol):
    """A small value that adds up over blocks of rows."""

    def __add__(self, other: Self, /) -> Self: ...


StatisticT = TypeVar("StatisticT", bound=Statistic)


class Source(ABC):
    """A table that is met in blocks, each an Arrow table or another that `read_table` takes.

    Attributes
    ----------
    container : str or None
        Frame type in which samples of a fitted density come back; None for that of the blocks.
    """

    container: str | None = None

    @abstractmethod
    def reduce(self, statistic: Callable[[Any], StatisticT]) -> StatisticT:
        """Return the sum of a statistic over all blocks, added in their order.

        Parameters
        ----------
        statistic : callable
            From a block to a small value with ``+``; it may be sent to other processes.
        """

    @abstractmethod
    def coded(self, schema: Schema, axes: Sequence[Axis], folder: Path | None) -> AbstractContextManager[Rows]:
        """Return the rows coded, for as long as the context lasts; what was written for them is then removed.

        Parameters
        ----------
        schema : Schema
        axes : sequence of Axis
        folder : Path, optional
            Where codes go that do not fit in memory; the system's folder for temporary files by default.
        """

    def profile(self) -> Profile:
        """Return the profile of the table."""
        profile = self.reduce(Profile.of)
        return profile if self.container is None else replace(profile, container=self.container)
