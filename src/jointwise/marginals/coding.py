"""Coding: the rows of a table as bin numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jointwise._typing import CodeArray
from jointwise.axes import Axis, BinnedAxis, code_dtype, encode_rows
from jointwise.engines import COMPILED_TABLE_CELLS
from jointwise.exceptions import InputError
from jointwise.tables import encode, encode_numbers, label_numbers, match_columns, read_table, with_gap_columns
from jointwise.tables.variables import Schema


def code_table(data: Any, schema: Schema, axes: Sequence[Axis]) -> CodeArray:
    """Return the bin of each cell of a table.

    A large table is coded column by column in compiled code, without a matrix of floats.

    Parameters
    ----------
    data : Table, or anything `read_table` takes, with n rows
    schema : Schema of N variables
    axes : sequence of N axes

    Returns
    -------
    codes : array of shape (n, N)
        uint8 if every axis has at most 255 bins, else uint16.
    """
    table = read_table(data)
    if table.n_rows * len(schema) < COMPILED_TABLE_CELLS:
        return encode_rows(encode(table, schema), axes)
    if len(axes) != len(schema):
        raise InputError(f"Expected {len(schema)} axes, one for each variable; got {len(axes)}.")
    from jointwise.engines.compiled_tables import interval_codes, label_codes  # loads numba

    table = with_gap_columns(table, schema)
    codes: CodeArray = np.empty((table.n_rows, len(schema)), dtype=code_dtype(axes))
    for target, position in match_columns(table, schema):
        variable, axis, column, own = schema.variables[target], axes[target], table.read(position), codes[:, target]
        if variable.categories is not None and column.labels is not None:
            label_codes(column.values, axis.index(label_numbers(column.labels, variable)), axis.n_bins, own)
        elif variable.categories is None and isinstance(axis, BinnedAxis):
            interval_codes(encode_numbers(column, variable), axis.edges, axis.spikes, axis.n_bins, own)
        else:
            own[:] = axis.index(encode(table.select([position]), schema.select([variable.name]))[:, 0])
    return codes
