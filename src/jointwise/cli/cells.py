"""Cells of a text file: which are missing, what type a column has, and how text becomes values.

A CSV file has no types. `CellCounts` looks at every cell of a column, block by block, and finds the narrowest type that
holds them all; `convert` then reads the cells as that type.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from jointwise._checks import shown
from jointwise._typing import AnyArray
from jointwise.exceptions import InputError
from jointwise.tables.texts import parse
from jointwise.tables.variables import as_text

# A column of text gets a note if at least this share of its cells are numbers.
NEARLY = 0.8

# Text that often marks a gap, though it may be a value.
SUSPECTS = frozenset({"?", "unknown", "missing", "-", "--", "n.a.", "#n/a", "not available"})

_CELL = re.compile(
    r"(?P<int64>[+-]?(?:0|[1-9]\d*))"  # 007 is a label, not a number
    r"|(?P<float64>[+-]?(?:(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?))"
    r"|(?P<comma>[+-]?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:\.\d{3})+),\d+)"  # a number with a decimal comma
    r"|(?P<bool>true|false)"
    r"|(?P<date>\d{4}-\d{2}-\d{2})"
    r"|(?P<time>\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)"
    r"|(?P<zoned>\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2}))",
    re.IGNORECASE,
)
_WITH_COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?(?:[eE][+-]?\d+)?")
_NUMBERS = ("int64", "float64")
# A boolean is an integer to Python, so it comes first.
_JSON_TYPES = ((bool, "bool"), (int, "int64"), (float, "float64"), (list, "list"), (dict, "object"))
# Narrowest type that holds cells of these types; any other mixture is text.
_JOINS = (
    ({"int64"}, "int64"),
    ({"int64", "float64"}, "float64"),
    ({"bool"}, "bool"),
    ({"date"}, "date"),
    ({"date", "time"}, "datetime[us]"),
    ({"zoned"}, "datetime[us,UTC]"),
)


def cell_type(cell: Any) -> str:
    """Type of one cell, from the look of its text or from its JSON type.

    >>> [cell_type(cell) for cell in ("12", "1e3", "007", "true", "2024-05-31", "red", 1.5, False)]
    ['int64', 'float64', 'string', 'bool', 'date', 'string', 'float64', 'bool']
    """
    if isinstance(cell, str):
        return _text_type(cell)
    for python, name in _JSON_TYPES:
        if isinstance(cell, python):
            return name
    raise InputError(f"A cell must be text, a number, true, false or null; got {shown(cell)}.")


@lru_cache(maxsize=1 << 16)
def _text_type(text: str) -> str:
    match = _CELL.fullmatch(text)
    return (match.lastgroup or "string") if match else "suspect" if text.lower() in SUSPECTS else "string"


def is_data(text: str) -> bool:
    """Whether text is a number, date or time, which is rarely the name of a column.

    >>> is_data("5.1"), is_data("width")
    (True, False)
    """
    return cell_type(text.strip()) not in {"string", "bool", "suspect"}


@lru_cache(maxsize=1 << 16)
def with_point(text: str) -> str:
    """Return a number with a decimal comma as one with a point; other text stays.

    >>> with_point("3,5"), with_point("1.234,5"), with_point("1.234"), with_point("a,b")
    ('3.5', '1234.5', '1234', 'a,b')
    """
    return text.replace(".", "").replace(",", ".") if _WITH_COMMA.fullmatch(text) else text


def json_type(cell: Any) -> str:
    """Type of one JSON cell; text in quotes is never a number."""
    found = cell_type(cell)
    return "string" if isinstance(cell, str) and found in {"int64", "float64", "bool"} else found


@dataclass
class CellCounts:
    """Number of cells of each type in a column, with the first example of each."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Any] = field(default_factory=dict)

    def add(self, cells: Iterable[Any], type_of: Callable[[Any], str]) -> None:
        """Count the cells of a block; None is a gap."""
        present = [cell for cell in cells if cell is not None]
        types = [type_of(cell) for cell in present]
        for found in set(types) - set(self.counts):
            self.examples[found] = present[types.index(found)]
        self.counts.update(types)

    def dtype(self, name: str) -> str:
        """Narrowest logical type that holds every cell counted."""
        for nested in ("list", "object"):
            if nested in self.counts:
                raise InputError(f"Column {shown(name)} holds a nested {nested}; flatten it, or drop the column.")
        types = set(self.counts)
        return next((joined for parts, joined in _JOINS if types and types <= parts), "string")

    def hint(self) -> str:
        """What may be wrong with a column of text, and the option that helps; empty for nothing."""
        total = self.counts.total()
        commas = self.counts["comma"]
        if commas and commas + sum(self.counts[found] for found in _NUMBERS) >= NEARLY * total:
            return f"is read as text because of decimal commas, as in {shown(self.examples['comma'])}; add --decimal ,"
        if (odd := self.odd_cell()) is not None:
            return (
                f"is read as text, though most of its cells are numbers, because of {shown(odd)}; if that marks a gap, "
                f"add --missing {shown(odd)}."
            )
        if suspects := self.counts["suspect"]:
            word = shown(self.examples["suspect"])
            return f"holds {word} or the like in {suspects:,} cells; if that marks a gap, add --missing {word}."
        return ""

    def odd_cell(self) -> Any | None:
        """First cell that is no number in a column of mostly numbers; None if there is none."""
        numbers, total = sum(self.counts[found] for found in _NUMBERS), self.counts.total()
        if numbers == total or numbers < NEARLY * total:
            return None
        return next(example for found, example in self.examples.items() if found not in _NUMBERS)


def convert(name: str, cells: Sequence[Any], dtype: str) -> AnyArray:
    """Cells of a column as an array that `read_table` takes; a gap stays None.

    >>> convert("a", ["1", None, "3"], "int64")
    array([1, None, 3], dtype=object)
    """
    if dtype in {"string", "categorical", "enum"}:
        values: list[Any] = [cell if cell is None or isinstance(cell, str) else as_text(cell) for cell in cells]
    else:
        values = [None if cell is None else parse(name, cell, dtype) for cell in cells]
    if dtype == "float64":
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    out: AnyArray = np.empty(len(values), dtype=object)
    out[:] = values
    return out
