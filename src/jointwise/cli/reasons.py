"""Cells of a row that explain something: which make it odd, or which moved a prediction.

Each row has at most three. In JSON they are a list of objects, in the other formats columns such as ``value 1``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jointwise._typing import AnyArray, FloatArray
from jointwise.cli.outputs import GUESS_DIGITS, native_cells, plain
from jointwise.cli.table_file import Cells
from jointwise.joint import JointDensity
from jointwise.joint.explanation import EXPECTED_SHARE, contributions
from jointwise.joint.oddness import CellOddness
from jointwise.joint.prediction import best_values
from jointwise.joint.quantiles import Quantiles
from jointwise.tables.gaps import column_positions
from jointwise.tables.variables import Kind, Variable, as_text

# Most cells named for a row.
MOST = 3
# Surprisal, in nats above that of a usual cell, from which a cell is odd. About one cell in twelve of a Gaussian column
# has more: those over 1.7 standard deviations from what was expected.
ODD = 1.0

# What is told of the cells by name, each an array of shape (n, MOST) with None where a row has fewer cells.
Told = dict[str, AnyArray]


def odd_cells(density: JointDensity, oddness: CellOddness, X: FloatArray, cells: Cells) -> Told:
    """Tell which cells of encoded rows (n, N) are odd given the others, the oddest first, and what was expected.

    Parameters
    ----------
    density : JointDensity
    oddness : CellOddness
        Of the density.
    X : array of shape (n, N)
    cells : mapping of names to lists of n cells
        As the file has them, to show a category that the density does not know.
    """
    found = oddness.of(X)
    order, size = _first(np.where(found > ODD, found, np.nan))
    told = _told(density, order, size, X, cells, "surprisal")
    told |= {field: _empty(order.shape) for field in ("expected", "low", "high")}
    ends = Quantiles.of(EXPECTED_SHARE)
    for place, variable, rows, places in _by_column(density, order):
        n, rest = place[0], X[rows]
        rest[:, place] = np.nan
        guess = variable.settle(best_values(density.mixture, n, variable.kind, rest))
        told["expected"][rows, places] = _shown(variable, guess)
        if variable.kind is not Kind.CATEGORICAL or variable.ordered:
            between = ends.of_rows(density.mixture, n, variable, rest)
            told["low"][rows, places] = _shown(variable, between[:, 0])
            told["high"][rows, places] = _shown(variable, between[:, 1])
    return told


def moving_cells(density: JointDensity, target: str, X: FloatArray, cells: Cells) -> Told:
    """Tell which cells of encoded rows (n, N) moved the prediction of a column most; see `contributions`."""
    found = contributions(density.schema, density.mixture, density.schema.index(target), X)
    order, _ = _first(np.abs(found))
    size = np.where(order < 0, np.nan, np.take_along_axis(found, np.maximum(order, 0), axis=1))
    return _told(density, order, size, X, cells, "contribution")


def columns_of(told: Mapping[str, AnyArray], form: str, name: str) -> dict[str, list[Any]]:
    """Columns of a result in a format: in JSON one with a list for each row, else one for each field and place.

    Values of different columns share one, so outside JSON they are text.
    """
    if form in {"json", "jsonl"}:
        places = range(next(iter(told.values())).shape[1])
        rows = range(len(told["column"]))
        return {
            name: [[{f: a[i, k] for f, a in told.items()} for k in places if told["column"][i, k] is not None]
                   for i in rows]
        }  # fmt: skip
    return {
        f"{field} {k + 1}": [cell if _is_score(field) or cell is None else as_text(cell) for cell in array[:, k]]
        for k in range(MOST)
        for field, array in told.items()
    }


def joined(parts: Sequence[tuple[Any, Told]], n_rows: int) -> Told:
    """What is told of some rows each, put together in the order of all rows."""
    whole: Told = {}
    for rows, told in parts:
        for field, array in told.items():
            whole.setdefault(field, _empty((n_rows, MOST)))[rows] = array
    return whole


def _told(density: JointDensity, order: AnyArray, size: FloatArray, X: FloatArray, cells: Cells, measure: str) -> Told:
    """Names and values of the cells at ``order``, and a number of each."""
    told: Told = {field: _empty(order.shape) for field in ("column", "value", measure)}
    for (n, *_), variable, rows, places in _by_column(density, order):
        told["column"][rows, places] = variable.name
        unknown = X[rows, n] < 0 if variable.categories is not None else np.zeros(len(rows), dtype=bool)
        known = ~unknown & ~np.isnan(X[rows, n])  # a gap has no value
        told["value"][rows[known], places[known]] = _shown(variable, X[rows[known], n])
        for row, place in zip(rows[unknown], places[unknown], strict=True):
            told["value"][row, place] = cells[variable.name][row]
        told[measure][rows, places] = [plain(number, GUESS_DIGITS) for number in size[rows, places]]
    return told


def _first(size: FloatArray) -> tuple[AnyArray, FloatArray]:
    """Columns of the largest numbers of each row, -1 for NaN, and the numbers; shapes (n, MOST)."""
    filled = np.where(np.isnan(size), -np.inf, size)
    order = np.argsort(-filled, axis=1, kind="stable")[:, :MOST]
    largest = np.take_along_axis(size, order, axis=1)
    lacking = MOST - order.shape[1]
    order = np.pad(np.where(np.isnan(largest), -1, order), ((0, 0), (0, max(lacking, 0))), constant_values=-1)
    return order, np.pad(largest, ((0, 0), (0, max(lacking, 0))), constant_values=np.nan)


def _by_column(density: JointDensity, order: AnyArray) -> Any:
    """Yield the positions of each column that is named, its variable, and the rows and places where it is."""
    for k, place in enumerate(column_positions(density.schema)):
        rows, places = np.nonzero(order == k)
        if len(rows):
            yield place, density.schema.variables[place[0]], rows, places


def _shown(variable: Variable, numbers: FloatArray) -> list[Any]:
    return [plain(cell, GUESS_DIGITS) for cell in native_cells(variable, numbers)]


def _is_score(field: str) -> bool:
    return field in {"surprisal", "contribution"}


def _empty(shape: tuple[int, ...]) -> AnyArray:
    return np.full(shape, None, dtype=object)
