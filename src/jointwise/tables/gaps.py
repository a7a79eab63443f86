"""Gaps that are part of a model: for a column with gaps, one more variable that tells where they are.

The variable ``income missing`` of the column ``income`` is true where the cell is missing and false where it is there.
A table does not hold it: reading a table by a schema fills it from the column (`with_gap_columns`), and writing one
leaves it out. So a model learns gaps as it learns any category.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from jointwise.tables.table import Table
from jointwise.tables.variables import Kind, Schema, Variable, unused_name

if TYPE_CHECKING:
    from jointwise._typing import AnyArray, FloatArray

# What gaps may be: no part of the model, a part of it, or a part where held-out rows say so.
MISSING_KINDS = ("ignorable", "informative", "auto")


def with_gap_variables(schema: Schema, columns: Iterable[str]) -> Schema:
    """Return a schema in which a variable that tells its gaps follows each of some columns.

    >>> schema = Schema((Variable("age", "integer"), Variable("income", "continuous")))
    >>> with_gap_variables(schema, ["income"]).names
    ('age', 'income', 'income missing')
    """
    chosen, taken, variables = set(columns), set(schema.names), []
    for variable in schema:
        variables.append(variable)
        if variable.name in chosen:
            name = unused_name(f"{variable.name} missing", taken)
            taken.add(name)
            variables.append(gap_variable(name, variable.name))
    return Schema(tuple(variables), schema.container)


def gap_variable(name: str, column: str) -> Variable:
    """Return the variable that tells the gaps of a column."""
    return Variable(name, Kind.CATEGORICAL, categories=(False, True), observed=(0.0, 1.0), dtype="bool", gap_of=column)


def with_gap_columns(table: Table, schema: Schema) -> Table:
    """Return a table with the columns that tell gaps, as far as it holds the columns that they are about.

    The columns of an array are known by their order: the result has one for each variable of the schema.

    >>> from jointwise.tables.table import read_table
    >>> schema = with_gap_variables(Schema((Variable("income", "continuous"),)), ["income"])
    >>> [column.tolist() for column in with_gap_columns(read_table({"income": [9.5, None]}), schema).columns]
    [[9.5, None], [False, True]]
    """
    about = {variable.name: variable.gap_of for variable in schema if variable.gap_of is not None}
    if not about:
        return table
    columns = dict(zip(table.names, table.columns, strict=True))
    if table.container == "numpy" and len(table.names) == len(schema.columns):
        columns = dict(zip(schema.columns, table.columns, strict=True))
        table = Table(schema.columns, table.n_rows, table.container, table.columns)
        names = schema.names
    else:
        names = (*table.names, *(name for name in about if name not in columns))
    for name, column in about.items():
        if column in table.names:
            columns[name] = _is_missing(table, column)
    known = tuple(name for name in names if name in columns)
    return Table(known, table.n_rows, table.container, tuple(columns[name] for name in known))


def _is_missing(table: Table, column: str) -> AnyArray:
    return np.isnan(table.read(table.names.index(column)).values)


def emptied(matrix: FloatArray, schema: Schema) -> FloatArray:
    """Return encoded rows (n, N) without the values of cells that are told to be missing.

    >>> schema = with_gap_variables(Schema((Variable("income", "continuous"),)), ["income"])
    >>> emptied(np.array([[9.5, 0.0], [7.0, 1.0]]), schema)
    array([[9.5, 0. ],
           [nan, 1. ]])
    """
    out = matrix
    for column, name in schema.gaps.items():
        out = matrix.copy() if out is matrix else out
        out[matrix[:, schema.index(name)] == 1.0, schema.index(column)] = np.nan
    return out


def with_partners(positions: Iterable[int], schema: Schema) -> list[int]:
    """Return positions of variables together with those of the columns or gaps that belong to them, sorted.

    >>> schema = with_gap_variables(Schema((Variable("a", "continuous"), Variable("b", "continuous"))), ["b"])
    >>> with_partners([0], schema), with_partners([2], schema)
    ([0], [1, 2])
    """
    pairs = [(schema.index(column), schema.index(name)) for column, name in schema.gaps.items()]
    found = set(positions)
    for pair in pairs:
        if found & set(pair):
            found |= set(pair)
    return sorted(found)


def column_positions(schema: Schema) -> list[list[int]]:
    """Return the positions of the variables of each column: its own and, if there is one, that of its gaps.

    >>> schema = with_gap_variables(Schema((Variable("a", "continuous"), Variable("b", "continuous"))), ["b"])
    >>> column_positions(schema)
    [[0], [1, 2]]
    """
    gaps = schema.gaps
    return [[schema.index(name), *([schema.index(gaps[name])] if name in gaps else [])] for name in schema.columns]
