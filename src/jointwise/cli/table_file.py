"""The interface of every table in a file: its columns, and its rows in blocks, as often as needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jointwise._checks import listed
from jointwise.cli.cells import CellCounts
from jointwise.exceptions import InputError
from jointwise.tables.dtypes import is_missing
from jointwise.tables.variables import duplicates

# Cells held at once as Python objects: a few hundred megabytes at most.
BLOCK_CELLS = 1_000_000

Cells = dict[str, list[Any]]


class TableFile(ABC):
    """A table in a file.

    Attributes
    ----------
    path : Path
    label : str
        Name of the file in messages.
    names : tuple of str
        Its columns.
    share : float
        Share of the file that the current pass has read, from 0 to 1.
    rows_read : int
        Rows that the current pass has read.
    """

    names: tuple[str, ...]
    share: float = 0.0
    rows_read: int = 0

    def __init__(self, path: Path, label: str) -> None:
        self.path = path
        self.label = label

    @abstractmethod
    def blocks(self) -> Iterator[Any]:
        """Blocks of rows; each call starts again at the first row."""

    @abstractmethod
    def frame(self, block: Any, dtypes: Mapping[str, str]) -> Any:
        """Columns of a block that ``dtypes`` names, in a form that `read_table` takes."""

    @abstractmethod
    def cells(self, block: Any) -> Cells:
        """Every cell of a block as it came, None where there is a gap."""

    def typed_cells(self, block: Any, dtypes: Mapping[str, str]) -> Cells:
        """Every cell of a block as a number, text or date, None where there is a gap."""
        del dtypes  # the file has its own types
        return self.cells(block)

    @property
    @abstractmethod
    def cell_counts(self) -> Mapping[str, CellCounts]:
        """Types of the cells of each column; empty if the file has its own types."""

    def dtypes(self) -> dict[str, str]:
        """Logical type of each column; empty text if the file has its own types."""
        counts = self.cell_counts
        return {name: counts[name].dtype(name) if name in counts else "" for name in self.names}

    def _named(self, names: Sequence[str]) -> tuple[str, ...]:
        """Checked names of the columns; a column without a name is named by its position."""
        named = tuple(name.strip() or f"column {n}" for n, name in enumerate(names, 1))
        doubled = duplicates(named)
        if doubled:
            raise InputError(f"{self.label} has more than one column called {listed(doubled)}; rename them.")
        return named


def without_nan(cells: list[Any]) -> list[Any]:
    """Cells with None for every kind of gap."""
    return [None if is_missing(cell) else cell for cell in cells]
