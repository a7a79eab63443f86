"""What every table in a file owes: its columns, and its rows in blocks, as often as wanted."""

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

# Cells held at once as Python objects: some hundred megabytes at most.
BLOCK_CELLS = 1_000_000

Cells = dict[str, list[Any]]


class TableFile(ABC):
    """A table in a file.

    Attributes
    ----------
    path : Path
    label : str
        What the file is called in sentences.
    names : tuple of str
        Its columns.
    share : float
        How much of the file the running pass has read, from 0 to 1.
    rows_read : int
        How many rows that pass has read.
    """

    names: tuple[str, ...]
    share: float = 0.0
    rows_read: int = 0

    def __init__(self, path: Path, label: str) -> None:
        self.path = path
        self.label = label

    @abstractmethod
    def blocks(self) -> Iterator[Any]:
        """Blocks of rows, from the first row on at each call."""

    @abstractmethod
    def frame(self, block: Any, dtypes: Mapping[str, str]) -> Any:
        """Columns of a block that are named in ``dtypes`` as something that `read_table` takes."""

    @abstractmethod
    def cells(self, block: Any) -> Cells:
        """Every cell of a block as it came, None where there is a gap."""

    def typed_cells(self, block: Any, dtypes: Mapping[str, str]) -> Cells:
        """Every cell of a block as a number, text or date, None where there is a gap."""
        del dtypes  # the file itself knows them
        return self.cells(block)

    @property
    @abstractmethod
    def cell_counts(self) -> Mapping[str, CellCounts]:
        """Types of cells that each column holds; nothing where the file itself knows its types."""

    def dtypes(self) -> dict[str, str]:
        """Logical type of each column; empty text where the file itself knows it."""
        counts = self.cell_counts
        return {name: counts[name].dtype(name) if name in counts else "" for name in self.names}

    def _named(self, names: Sequence[str]) -> tuple[str, ...]:
        """Check the names of columns; one without a name is called by its position."""
        named = tuple(name.strip() or f"column {n}" for n, name in enumerate(names, 1))
        doubled = duplicates(named)
        if doubled:
            raise InputError(f"{self.label} has more than one column called {listed(doubled)}; rename them.")
        return named


def without_nan(cells: list[Any]) -> list[Any]:
    """Cells with None for every kind of gap."""
    return [None if is_missing(cell) else cell for cell in cells]
