"""Encoding: tables into float64 matrices by a schema, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jointwise._checks import check_choice, listed, shown, warn_caller
from jointwise.exceptions import InputError, UnknownNameError, UnseenCategoryWarning
from jointwise.tables.dtypes import is_temporal, zone_of
from jointwise.tables.frames import write_like
from jointwise.tables.gaps import with_gap_columns
from jointwise.tables.table import Table, read_table
from jointwise.tables.variables import OTHER, OUTSIDE, Schema, Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jointwise._typing import AnyArray, FloatArray
    from jointwise.tables.columns import Column

_UNSEEN = {
    "impossible": "Rows with categories not seen in fitting have density zero (a log-density of -inf)",
    "missing": "Categories not seen in fitting are treated as missing",
}


def encode(
    data: Any,
    schema: Schema,
    *,
    unseen: Literal["outside", "impossible", "missing"] = "outside",
    absent: Literal["error", "missing"] = "error",
) -> FloatArray:
    """Return rows as numbers, in the column order of a schema.

    Parameters
    ----------
    data : Table, or anything `read_table` takes
        Columns are found by name, and further columns are ignored. The columns of an array are found by position, or
        as x0, x1, ... if it has more than the schema.
    schema : Schema of N variables
        A variable that tells the gaps of a column is filled from that column; if the table has no such column, it is a
        column like others, absent without an error.
    unseen : {"outside", "impossible", "missing"}
        What becomes of a category that the schema does not know. "outside": -1. "impossible": -1, with an
        `UnseenCategoryWarning` that the row has density zero. "missing": NaN, with an `UnseenCategoryWarning` that
        the cell is treated as missing.
    absent : {"error", "missing"}
        Whether an absent column is an error or all NaN.

    Returns
    -------
    matrix : array of shape (n, N)

    Examples
    --------
    >>> from jointwise.tables.variables import Variable
    >>> schema = Schema((Variable("x", "continuous"), Variable("s", "categorical", categories=("F", "M"))))
    >>> encode({"s": ["M", "F"], "x": [0.5, None]}, schema)
    array([[0.5, 1. ],
           [nan, 0. ]])
    """
    check_choice("unseen", unseen, ("outside", "impossible", "missing"))
    check_choice("absent", absent, ("error", "missing"))
    table = with_gap_columns(read_table(data), schema)
    matrix = np.full((table.n_rows, len(schema)), np.nan)
    strangers: dict[str, list[Any]] = {}
    for target, position in match_columns(table, schema, absent):
        variable = schema.variables[target]
        column = table.read(position)
        if variable.categories is None:
            matrix[:, target] = encode_numbers(column, variable)
            continue
        codes, unknown = _encode_categories(column, variable)
        if unknown:
            strangers[variable.name] = unknown
        if unseen == "missing":
            codes[codes == OUTSIDE] = np.nan
        matrix[:, target] = codes
    if strangers and unseen != "outside":
        found = "; ".join(f"{shown(name)}: {listed(labels)}" for name, labels in strangers.items())
        warn_caller(f"{_UNSEEN[unseen]}: {found}.", UnseenCategoryWarning)
    return matrix


def decode(matrix: FloatArray, schema: Schema, like: Any = None) -> Any:
    """Return encoded rows in the frame type and the column types of the schema's table.

    Parameters
    ----------
    matrix : array of shape (n, N)
        Encoded values; NaN becomes a missing value.
    schema : Schema of N variables
    like : frame, optional
        The result is a frame of the same type, with its index.

    Returns
    -------
    data : frame, mapping or array
        An array has the number type that all columns share, or else holds objects. Variables that tell the gaps of
        another are left out.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != len(schema):
        raise InputError(f"`matrix` must have one column for each of {len(schema)} variables; got {matrix.shape}.")
    if len(schema.columns) < len(schema):
        matrix, schema = matrix[:, [schema.index(name) for name in schema.columns]], schema.select(schema.columns)
    return write_like(like, matrix, schema)


def match_columns(table: Table, schema: Schema, absent: str = "error") -> list[tuple[int, int]]:
    """Return positions (variable, column) that match by name, or by position in an array with one column each."""
    if table.container == "numpy" and len(table.names) == len(schema):
        return [(position, position) for position in range(len(schema))]
    if table.container == "numpy" and not set(schema.names) <= set(table.names):
        n_features = len(set(table.names) - (set(schema.names) - set(schema.columns)))
        raise InputError(f"X has {n_features} features, but {len(schema.columns)} features are expected as input.")
    place = {name: position for position, name in enumerate(table.names)}
    missing = [name for name in schema.columns if name not in place]
    if missing and absent == "error":
        raise UnknownNameError(
            f"The table lacks columns {listed(missing)}; it has {listed(table.names)}. "
            "Add them, with missing values where nothing is known."
        )
    return [(target, place[name]) for target, name in enumerate(schema.names) if name in place]


def _encode_categories(column: Column, variable: Variable) -> tuple[FloatArray, list[Any]]:
    """Return the codes of a categorical variable, and the labels in the column that it does not know."""
    labels: Sequence[Any]
    positions: AnyArray
    if column.labels is None:
        numbers, positions = np.unique(column.values, return_inverse=True)
        labels = numbers.tolist()
    else:
        labels, positions = column.labels, column.values
    codes = label_numbers(labels, variable)
    present = ~np.isnan(column.values)
    met = positions[present].astype(np.intp)
    encoded = np.full(len(column.values), np.nan)
    encoded[present] = codes[met] if len(met) else 0.0
    unknown = [labels[position] for position in np.unique(met[encoded[present] == OUTSIDE])]
    return encoded, unknown


def label_numbers(labels: Sequence[Any], variable: Variable) -> FloatArray:
    """Return the positions of labels among the categories of a variable, -1 for unknown ones; shape (L,).

    If one of the categories is "(other)", it stands for the unknown ones.

    >>> label_numbers(["a", "z"], Variable("x", "categorical", categories=("(other)", "a")))
    array([1., 0.])
    """
    number = {category: float(number) for number, category in enumerate(variable.categories or ())}
    unknown = number.get(OTHER, OUTSIDE)
    return np.array([number.get(label, unknown) for label in labels], dtype=np.float64)


def encode_numbers(column: Column, variable: Variable) -> FloatArray:
    """Return the numbers of a continuous or integer variable, shape (n,).

    Labels, such as booleans or ISO dates, are encoded one by one.
    """
    if column.labels is not None:
        present = ~np.isnan(column.values)
        encoded = np.full(len(column.values), np.nan)
        met, positions = np.unique(column.values[present].astype(np.intp), return_inverse=True)
        encoded[present] = np.array([variable.encode_value(column.labels[label]) for label in met])[positions]
        return encoded
    if np.all(np.isnan(column.values)):
        return column.values
    if is_temporal(column.dtype) != is_temporal(variable.dtype):
        raise InputError(f"Column {shown(column.name)} must hold {variable.dtype} values; it holds {column.dtype}.")
    if (zone_of(column.dtype) is None) != (zone_of(variable.dtype) is None):
        raise InputError(
            f"Column {shown(column.name)} must hold {variable.dtype} values; it holds {column.dtype}. "
            "Times with and without a zone cannot be compared."
        )
    return column.values
