"""Cells and rows as users write them and get them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from jointwise._typing import AnyArray, FloatArray
from jointwise.tables import decode
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Schema, Variable


def one_row(x: Any, names: Sequence[str]) -> Any:
    """Turn one row, as a mapping, series or list of cells, into a mapping of names to columns; a table stays."""
    row = x.to_dict() if is_series(x) else x
    if isinstance(row, list | tuple) and len(row) == len(names):
        row = dict(zip(names, row, strict=True)) if all(np.ndim(cell) == 0 for cell in row) else row
    if isinstance(row, Mapping) and row and all(np.ndim(cell) == 0 for cell in row.values()):
        return {name: [cell] for name, cell in row.items()}
    return row


def plain(variable: Variable, value: float) -> Any:
    """One value as Python has it; an infinite date is None, and one beyond the calendar its end, as in samples."""
    return None if is_temporal(variable.dtype) and not isfinite(value) else variable.decode_value(value)


def native(variable: Variable, values: FloatArray) -> AnyArray:
    """Values of one variable as numpy brings them back; infinite integers are floats, infinite dates missing."""
    infinite = np.isinf(values)
    if infinite.any():
        if not is_temporal(variable.dtype):
            return values
        values = np.where(infinite, np.nan, values)
    return np.asarray(decode(values.reshape(-1, 1), Schema((variable,)))).reshape(values.shape)


def is_series(x: Any) -> bool:
    """Return whether this is a pandas series, which is a row; its package need not be there to tell."""
    return type(x).__name__ == "Series" and type(x).__module__.partition(".")[0] == "pandas"
