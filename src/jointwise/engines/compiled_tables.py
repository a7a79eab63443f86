"""Coding and counting of large tables, compiled by numba: one pass over a column or a block, without temporary arrays.

Results equal those of `Axis.index` and `reference.pair_counts`, bit for bit. Every function runs in one thread and
releases the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.base import bin_starts
from jointwise.engines.compiled_parts import locked

# Cells of the grid laid over the edges of an axis: enough that most cells hold at most one edge.
GRID = 2048
# Rows counted at a time: their codes stay in the cache while all pairs of columns are counted.
CACHED_ROWS = 65_536

_Array = numba.types.Array
_values, _places = (_Array(kind, 1, "C", readonly=True) for kind in (numba.float64, numba.int64))
_CODES = (numba.uint8, numba.uint16)


def interval_codes(values: FloatArray, edges: FloatArray, spikes: FloatArray, missing: int, codes: CodeArray) -> None:
    """Write the interval (e_i, e_i+1] of each value, or its spike, into a column of codes.

    A grid over the edges gives the number of edges in the cells before the value's own; the few edges in its own cell
    are searched. Values and edges are rounded to cells alike and in order, so rounding does no harm.

    Parameters
    ----------
    values : array of shape (n,)
    edges : array of shape (K,)
        Increasing.
    spikes : array of shape (S,)
        Values with codes of their own, K + 1 onwards.
    missing : int
        Code of NaN.
    codes : array of shape (n,), any stride
        Filled.
    """
    first, scale = _grid(edges)
    _interval_codes(np.ascontiguousarray(values), edges, first, scale, spikes, missing, codes)


def _grid(edges: FloatArray) -> tuple[AnyArray, float]:
    """Return the number of edges before each cell, shape (GRID + 1,), and cells per unit (0: a single cell)."""
    with np.errstate(all="ignore"):
        scale = float(np.float64(GRID - 1) / (edges[-1] - edges[0])) if len(edges) > 1 else 0.0
    scale = scale if np.isfinite(scale) else 0.0
    cells = np.minimum(((edges - edges[0]) * scale).astype(np.int64), GRID - 1) if scale else np.zeros(len(edges), int)
    return np.searchsorted(cells, np.arange(GRID + 1)).astype(np.int64), scale


@numba.njit(
    [(_values, _values, _places, numba.float64, _values, numba.int64, _Array(kind, 1, "A")) for kind in _CODES],
    cache=True,
    nogil=True,
)
def _interval_codes(
    values: AnyArray, edges: AnyArray, first: AnyArray, scale: float, spikes: AnyArray, missing: int, codes: AnyArray
) -> None:
    n_edges = len(edges)
    for i in range(len(values)):
        value = values[i]
        if value != value:  # noqa: PLR0124  # NaN
            codes[i] = missing
            continue
        if n_edges == 0 or value <= edges[0]:
            code = 0
        elif value > edges[n_edges - 1]:
            code = n_edges
        else:
            cell = int((value - edges[0]) * scale) if scale > 0 else 0
            cell = min(cell, GRID - 1)
            code, end = first[cell], first[cell + 1]
            while code < end:
                middle = (code + end) // 2
                if edges[middle] < value:
                    code = middle + 1
                else:
                    end = middle
        for s in range(len(spikes)):
            if value == spikes[s]:
                code = n_edges + 1 + s
        codes[i] = code


def label_codes(positions: FloatArray, code_of: AnyArray, missing: int, codes: CodeArray) -> None:
    """Write the code of each cell's label into a column of codes.

    Parameters
    ----------
    positions : array of shape (n,)
        Position of each cell's label, NaN where it is missing.
    code_of : array of shape (L,)
    missing : int
    codes : array of shape (n,), any stride
        Filled.
    """
    _label_codes(np.ascontiguousarray(positions), np.asarray(code_of, dtype=np.int64), missing, codes)


@numba.njit([(_values, _places, numba.int64, _Array(kind, 1, "A")) for kind in _CODES], cache=True, nogil=True)
def _label_codes(positions: AnyArray, code_of: AnyArray, missing: int, codes: AnyArray) -> None:
    for i in range(len(positions)):
        position = positions[i]
        codes[i] = code_of[np.uint64(position)] if position == position else missing  # noqa: PLR0124  # not NaN


def pair_counts(codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None = None) -> AnyArray:
    """Count how often the codes of every pair of columns occur together; see `reference.pair_counts`.

    With weights the result is that of the reference, bit for bit, up to `reference.SHORTEST_BLOCK` rows.
    """
    starts = bin_starts(n_bins)
    # without weights, a single one stands for all rows
    each = np.ones(1, dtype=np.int64) if weights is None else np.asarray(weights, dtype=np.float64)
    counts = np.zeros((starts[-1], starts[-1]), dtype=each.dtype)
    for start in range(0, len(codes), CACHED_ROWS):
        rows = slice(start, start + CACHED_ROWS)
        here = each if weights is None else each[rows]
        _add_pairs(counts, np.ascontiguousarray(codes[rows].T), locked(starts), locked(here))
    return counts


_weights = [_Array(kind, 1, "C", readonly=True) for kind in (numba.int64, numba.float64)]


@numba.njit(
    [
        (each.dtype[:, ::1], _Array(kind, 2, "C", readonly=True), _places, each)
        for kind, each in product(_CODES, _weights)
    ],
    cache=True,
    nogil=True,
)
def _add_pairs(counts: AnyArray, columns: AnyArray, starts: AnyArray, weights: AnyArray) -> None:
    """Add pairs of codes to the counts of both orders of two columns; columns (N, n), weights (n,) or a single one."""
    n_columns, n = columns.shape
    step = 1 if len(weights) > 1 else 0
    for j in range(n_columns):
        own, n_own = np.uint64(starts[j]), np.uint64(starts[j + 1] - starts[j])
        for k in range(j, n_columns):
            other, n_other = np.uint64(starts[k]), np.uint64(starts[k + 1] - starts[k])
            for i in range(n):
                a, b = np.uint64(columns[j, i]), np.uint64(columns[k, i])
                if a < n_own and b < n_other:
                    counts[own + a, other + b] += weights[i * step]
            for row in range(starts[j], starts[j + 1]):
                for column in range(starts[k], starts[k + 1]):
                    counts[column, row] = counts[row, column]
