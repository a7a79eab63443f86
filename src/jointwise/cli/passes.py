"""A pass over a table for a model: check its columns, encode its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from jointwise._checks import listed
from jointwise._typing import FloatArray
from jointwise.cli import screen
from jointwise.cli.table_file import TableFile
from jointwise.exceptions import InputError
from jointwise.tables import encode
from jointwise.tables.variables import Schema


def encoded_blocks(
    file: TableFile,
    schema: Schema,
    doing: str,
    *,
    unseen: Literal["outside", "missing"] = "outside",
    absent: Literal["error", "missing"] = "error",
) -> Iterator[tuple[int, Any, FloatArray]]:
    """Blocks of a table: number of the first row, from 1, the block, and its encoded rows of shape (n, N)."""
    dtypes = {variable.name: variable.dtype for variable in schema}
    first = 1
    for block in screen.read_blocks(file, doing):
        X = encode(file.frame(block, dtypes), schema, unseen=unseen, absent=absent)
        yield first, block, X
        first += len(X)


def check_columns(file: TableFile, schema: Schema) -> None:
    """Refuse a table that lacks columns of the model, before anything is read."""
    lacking = [name for name in schema.columns if name not in file.names]
    if lacking:
        raise InputError(
            f"{file.label} lacks the model's columns {listed(lacking)}; it has {listed(file.names)}. Add them, with "
            "empty cells for unknown values."
        )
