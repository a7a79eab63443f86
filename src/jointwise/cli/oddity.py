"""Which rows of a table are odd, and what makes them so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.cli import screen
from jointwise.cli.outputs import GUESS_DIGITS, plain
from jointwise.cli.reasons import columns_of, joined, odd_cells
from jointwise.cli.table_file import Cells, TableFile
from jointwise.joint import JointDensity
from jointwise.joint.oddness import CellOddness, RowOddness
from jointwise.joint.prediction import fill
from jointwise.tables import encode, read_table
from jointwise.tables.gaps import column_positions


class Judged(NamedTuple):
    """Rows of a block with their log-density under one of the densities."""

    judge: int  # number of the density
    rows: IntArray  # their positions in the block, (m,)
    X: FloatArray  # their encoded values, (m, N)
    log_density: FloatArray  # (m,)


class OddRow(NamedTuple):
    """One row: score and number, which order the rows, and what is shown of it."""

    score: float
    number: int
    log_density: float
    judge: int
    x: FloatArray
    cells: list[Any]


def judged_blocks(densities: Sequence[JointDensity], file: TableFile) -> Iterator[tuple[int, Any, list[Judged]]]:
    """Blocks of a table with the number of their first row, from 1; the densities judge the rows in turn."""
    first = 1
    for block in screen.read_blocks(file, "Scoring"):
        parts = []
        for k, density in enumerate(densities):
            table = read_table(file.frame(block, {v.name: v.dtype for v in density.schema}))
            rows = np.flatnonzero((np.arange(table.n_rows) + first - 1) % len(densities) == k)
            X = encode(table.rows(rows), density.schema)
            parts.append(Judged(k, rows, X, density.mixture.logpdf(X)))
        yield first, block, parts
        first += sum(len(part.rows) for part in parts)


def odd_columns(
    densities: Sequence[JointDensity],
    oddness: Sequence[CellOddness],
    cells: Cells,
    parts: Sequence[Judged],
    form: str,
) -> dict[str, list[Any]]:
    """Columns that tell the odd cells of each row of a block; see `odd_cells`."""
    told = []
    for part in parts:
        own = {name: [column[row] for row in part.rows] for name, column in cells.items()} if len(parts) > 1 else cells
        told.append((part.rows, odd_cells(densities[part.judge], oddness[part.judge], part.X, own)))
    return columns_of(joined(told, sum(len(part.rows) for part in parts)), form, "odd_cells")


def lowest_rows(
    densities: Sequence[JointDensity], file: TableFile, n: int, explained: str | None = None
) -> dict[str, list[Any]]:
    """Columns of the ``n`` rows with the lowest score, lowest first, with what makes each odd.

    The score of a row is its log-density minus that of a usual row with the same gaps; see `JointDensity.oddness`. With
    a format in ``explained``, the odd cells of each row are told in that format.
    """
    judges = [RowOddness(density.schema, density.mixture) for density in densities]
    kept: list[OddRow] = []
    for first, block, parts in judged_blocks(densities, file):
        cells = list(file.cells(block).values())
        for part in parts:
            scores = -judges[part.judge].of(part.X)
            for i in np.argsort(scores, kind="stable")[:n]:
                row = int(part.rows[i])
                own = [column[row] for column in cells]
                kept.append(OddRow(scores[i], first + row, part.log_density[i], part.judge, part.X[i], own))
        kept = sorted(kept, key=lambda row: (row.score, row.number))[:n]
    columns: dict[str, list[Any]] = {
        "row": [row.number for row in kept],
        "score": [plain(row.score, GUESS_DIGITS) for row in kept],
        "log_density": [plain(row.log_density) for row in kept],
    }
    if explained is None:
        reasons = [_reason(densities[row.judge], row.x) for row in kept]
        columns |= {"oddest": [name for name, _ in reasons], "expected": [guess for _, guess in reasons]}
    elif kept:
        columns |= _odd_cells_of(densities, file, kept, explained)
    for i, name in enumerate(file.names):
        columns[name if name not in columns else f"{name} (data)"] = [row.cells[i] for row in kept]
    return columns


def _odd_cells_of(
    densities: Sequence[JointDensity], file: TableFile, rows: Sequence[OddRow], form: str
) -> dict[str, list[Any]]:
    oddness = [CellOddness(density.schema, density.mixture) for density in densities]
    judges = np.array([row.judge for row in rows])
    parts = []
    for judge in range(len(densities)):
        own = np.flatnonzero(judges == judge)
        X = np.stack([rows[i].x for i in own.tolist()]) if len(own) else np.empty((0, len(densities[judge].schema)))
        parts.append(Judged(judge, own, X, np.empty(len(own))))
    cells = {name: [row.cells[i] for row in rows] for i, name in enumerate(file.names)}
    return odd_columns(densities, oddness, cells, parts, form)


def _reason(density: JointDensity, x: FloatArray) -> tuple[str, Any]:
    """Column whose best guess would raise the density of the row most, and that guess."""
    names, places = density.names, [place[0] for place in column_positions(density.schema)]
    forgotten = np.zeros((len(names), len(x)), dtype=bool)
    for k, place in enumerate(column_positions(density.schema)):
        forgotten[k, place] = True
    guesses = fill(density.mixture, density.schema, np.where(forgotten, np.nan, x))
    gain = np.where(np.isnan(x[places]), -np.inf, density.mixture.logpdf(np.where(forgotten, guesses, x)))
    best = int(np.argmax(gain))
    guess = density.schema[names[best]].decode_value(guesses[best, places[best]])
    return names[best], plain(guess, GUESS_DIGITS)
