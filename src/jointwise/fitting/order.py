"""An order of columns that follows from what they hold, so that a fit does not depend on the order they come in.

A fit draws random numbers column by column, and adds and multiplies in the order of columns. Columns are therefore put
in the order of a digest of their bins and counts. Equal digests are told apart by the rows: a column's signature adds
up, over rows, a hash of its own code with the codes of all columns. Columns with equal signatures too can be exchanged
without a change of the table, as far as the hash shows, and are put in the order of their names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise._typing import IntArray
from jointwise.axes import Axis
from jointwise.joint.serialization import digest
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows

Words = NDArray[np.uint64]

# Up to here rows and columns are put in order first (a second for a million rows), so that a fit does not depend on
# the order they come in.
CANONICAL_ROWS = 1_000_000
# Weights are counted in these parts of a row: sums of whole numbers do not depend on the order of rows.
PARTS_OF_ROW = 2.0**20
# Longer lists of an axis are digested as arrays.
LONG = 4096


def in_order(rows: Rows) -> Rows:
    """Return the rows in canonical order, unless they are too many to sort."""
    return rows.canonical() if len(rows) <= CANONICAL_ROWS else rows


def in_canonical_order(rows: Rows) -> tuple[Rows, IntArray]:
    """Return the rows with columns and rows in canonical order, and that order of columns; as they came if too many."""
    if len(rows) > CANONICAL_ROWS:
        return rows, np.arange(len(rows.axes))
    coded = rows if isinstance(rows, CodedRows) else rows.take(np.arange(len(rows)))
    if coded.is_ordered:
        return coded, np.arange(len(coded.axes))
    columns = column_order(coded)
    return replace(with_columns(coded, columns).canonical(), is_ordered=True), columns


def column_order(rows: CodedRows) -> IntArray:
    """Return the positions of the columns in an order that depends neither on the order of rows nor on that of columns.

    Parameters
    ----------
    rows : CodedRows

    Examples
    --------
    >>> from jointwise.marginals import Profile
    >>> data = {"a": [1.0, 2.0, 4.0], "b": ["x", "y", "y"], "c": ["u", "u", "v"]}
    >>> def names_in_order(data):
    ...     schema = Profile.of(data).schema()
    ...     rows = CodedRows.of(data, schema, Profile.of(data).axes(schema, 4))
    ...     return [schema.names[n] for n in column_order(rows)]
    >>> names_in_order(data) == names_in_order({name: data[name] for name in ("c", "a", "b")})
    True
    """
    columns = zip(rows.axes, rows.column_counts, strict=True)
    keys = np.array([digest({"axis": _fields(axis), "counts": counts}) for axis, counts in columns])
    classes: IntArray = np.unique(keys, return_inverse=True)[1]
    while len(set(classes)) < len(classes):
        signatures = _signatures(rows, classes)
        finer: IntArray = np.unique(np.array([classes, signatures]), axis=1, return_inverse=True)[1].ravel()
        if len(set(finer)) == len(set(classes)):
            break
        classes = finer
    names = np.array(rows.schema.names, dtype=object)
    return np.array(sorted(range(len(names)), key=lambda n: (classes[n], names[n])), dtype=np.int64)


def _fields(axis: Axis) -> dict[str, Any]:
    """Return what an axis is, with long lists as arrays: their digest takes a hundredth of the time."""
    fields = axis.to_dict()
    return {
        name: np.array(value) if isinstance(value, list) and len(value) > LONG else value
        for name, value in fields.items()
    }


def with_columns(rows: CodedRows, order: IntArray) -> CodedRows:
    """Return the rows with their columns in another order."""
    names = [rows.schema.names[n] for n in order]
    axes = tuple(rows.axes[n] for n in order)
    codes = rows.codes[:, order]
    return replace(rows, schema=rows.schema.select(names), axes=axes, codes=codes, is_ordered=False)


def _signatures(rows: CodedRows, classes: IntArray) -> Words:
    """Return a hash of each column with the rows it stands in; columns of one class that can be exchanged share it."""
    hashes = [
        np.random.default_rng(int(k)).integers(0, 2**64, bins + 1, dtype=np.uint64)
        for k, bins in zip(classes, rows.n_bins, strict=True)
    ]
    whole: Words = np.zeros(len(rows), dtype=np.uint64)
    for n, table in enumerate(hashes):
        whole += table[rows.codes[:, n]]
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    parts = np.rint(np.minimum(weights, 2.0**40) * PARTS_OF_ROW).astype(np.uint64)
    cells = (_mixed(whole + _mixed(table[rows.codes[:, n]])) * parts for n, table in enumerate(hashes))
    return np.array([cell.sum(dtype=np.uint64) for cell in cells])


def _mixed(words: Words) -> Words:
    """Return a hash of each word (the finaliser of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))
