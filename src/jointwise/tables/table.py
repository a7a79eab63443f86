"""Tables: anything with rows and named columns, read without a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse

from jointwise._checks import check_choice, listed, shown
from jointwise.exceptions import CellTypeError, InputError
from jointwise.tables.columns import Column, read_array, read_series
from jointwise.tables.variables import duplicates

if TYPE_CHECKING:
    from jointwise._typing import AnyArray

# Methods that read a whole table into memory: those of lazy frames, of DuckDB relations and of Arrow datasets.
_READERS = ("collect", "to_arrow_table", "fetch_arrow_table", "to_table")


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length, from any container.

    Parameters
    ----------
    names : tuple of str
    n_rows : int
    container : str
        "numpy", "dict", "pandas", "polars" or "pyarrow".
    columns : tuple
        One-dimensional numpy arrays or narwhals series, one for each name.
    """

    names: tuple[str, ...]
    n_rows: int
    container: str
    columns: tuple[Any, ...]

    def __post_init__(self) -> None:
        _check_names(self.names)

    def read(self, position: int) -> Column:
        """Return a column as numbers."""
        column, name = self.columns[position], self.names[position]
        return read_array(name, column) if isinstance(column, np.ndarray) else read_series(name, column)

    def __iter__(self) -> Iterator[Column]:
        return (self.read(position) for position in range(len(self.names)))

    def select(self, positions: Sequence[int]) -> Table:
        """Return some of the columns."""
        names = tuple(self.names[n] for n in positions)
        return Table(names, self.n_rows, self.container, tuple(self.columns[n] for n in positions))

    def with_column(self, name: str, column: AnyArray) -> Table:
        """Return the table with one more column at its end."""
        return Table((*self.names, name), self.n_rows, self.container, (*self.columns, column))

    def rows(self, keep: AnyArray) -> Table:
        """Return the rows that a boolean mask or an array of row numbers picks."""
        chosen = np.flatnonzero(keep) if keep.dtype == bool else keep
        columns = tuple(column[chosen] for column in self.columns)
        return Table(self.names, len(chosen), self.container, columns)


def read_table(data: Any) -> Table:
    """Return any tabular data as a `Table`.

    Parameters
    ----------
    data : array-like of shape (n, N), mapping, or pandas, Polars or PyArrow frame
        Columns of an array are called x0, x1, ...; a mapping has names as keys and sequences of one length as values.
        Names of pandas columns that are not text become text: column 0 is called "0".

    Examples
    --------
    >>> table = read_table({"age": [31, 28], "job": ["cook", None]})
    >>> table.names, table.n_rows
    (('age', 'job'), 2)
    """
    if isinstance(data, Table):
        return data
    if issparse(data):
        raise CellTypeError("Sparse data was passed, but dense data is required; use `.toarray()` first.")
    if isinstance(data, Mapping):
        table = _read_mapping(data)
    elif nw.dependencies.is_into_dataframe(data):
        table = _read_frame(data)
    else:
        table = _read_array(data)
    if not table.names:
        raise InputError(
            f"Found a table with 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required."
        )
    return table


def _check_names(names: Sequence[str]) -> None:
    doubled = duplicates(names)
    if doubled:
        raise InputError(f"Column names must differ; more than one column is called {listed(doubled)}.")


def _read_mapping(data: Mapping[Any, Any]) -> Table:
    columns = []
    for name, values in data.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"Column {shown(name)} must be a sequence of values; got {shown(values)}.")
        column = values if isinstance(values, np.ndarray) else _to_array(list(values), f"Column {shown(name)}")
        if column.ndim != 1:
            raise InputError(f"Column {shown(name)} must have one dimension; got {column.ndim}.")
        columns.append(column)
    lengths = {str(name): len(column) for name, column in zip(data, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InputError(f"Columns must have one length; got {lengths}.")
    return Table(tuple(lengths), next(iter(lengths.values()), 0), "dict", tuple(columns))


def _read_frame(data: Any) -> Table:
    names = tuple(map(str, data.column_names if hasattr(data, "column_names") else data.columns))
    _check_names(names)  # narwhals has errors of its own for equal names
    frame = nw.from_native(data, eager_only=True)
    container = frame.implementation.value
    check_choice("the frame's library", container, ("pandas", "polars", "pyarrow"))
    return Table(names, len(frame), container, tuple(frame.iter_columns()))


def _read_array(data: Any) -> Table:
    reader = next((name for name in _READERS if hasattr(type(data), name)), None)
    array = np.empty(()) if reader else _to_array(data, "The table")
    if array.ndim == 0:
        lazy = f" Call `.{reader}()` on it first, or give its rows in blocks." if reader else ""
        raise InputError(f"Expected a 2D array, a mapping or a frame; got {type(data).__name__}.{lazy}")
    if array.ndim != 2:
        raise InputError(
            f"Expected a 2D array, a mapping or a frame; got a {array.ndim}D array. Reshape your data: "
            "`.reshape(-1, 1)` if it has one column, `.reshape(1, -1)` if it is one row."
        )
    names = tuple(f"x{column}" for column in range(array.shape[1]))
    return Table(names, len(array), "numpy", tuple(array.T))


def _to_array(data: Any, what: str) -> AnyArray:
    if isinstance(data, np.ma.MaskedArray):
        filled: AnyArray = np.array(data.data, dtype=object)
        filled[np.ma.getmaskarray(data)] = None
        return filled
    try:
        array = np.asarray(data)
        # a list that mixes text and numbers would become all text
        return np.asarray(data, dtype=object) if array.dtype.kind in "US" and isinstance(data, Sequence) else array
    except ValueError as error:
        raise InputError(f"{what} could not be read as an array: {error}") from error
