"""Commands that go through a table row by row, in blocks: score, impute, classify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer

from jointwise._checks import listed, shown
from jointwise._typing import FloatArray
from jointwise.cli import oddity, screen
from jointwise.cli.commands import Data, Format, Model, Output, SeedOrNone, checked_format, refuse_two_pipes
from jointwise.cli.files import open_table
from jointwise.cli.models import cross_fitted, fitted, load_classes, open_model
from jointwise.cli.outputs import GUESS_DIGITS, plain, writing
from jointwise.cli.passes import check_columns, encoded_blocks
from jointwise.cli.reading import DEFAULT, Reading, reads_tables
from jointwise.cli.table_file import Cells, TableFile
from jointwise.exceptions import InputError
from jointwise.joint import JointDensity
from jointwise.joint.oddness import CellOddness
from jointwise.joint.prediction import fill
from jointwise.tables import encode
from jointwise.tables.variables import Schema, Variable, as_text, unused_name

# Parts of a table, each judged by a model of the others.
FOLDS = 3

OptionalData = Annotated[
    str | None, typer.Argument(metavar="DATA", help="Table to go through; by default the one given as MODEL.")
]


@reads_tables
def score(
    model: Model,
    data: OptionalData = None,
    lowest: Annotated[int | None, typer.Option(min=1, help="Show only this many rows, the oddest first.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the cells that make each row odd, and what was expected there.")
    ] = False,
    reading: Reading = DEFAULT,
    output: Output = "-",
    form: Format = None,
) -> None:
    """Log-density of each row; the lowest are the anomalies.

    With --lowest each row is shown whole, with the column that makes it odd and the value expected there.
    Its score is the log-density minus that of a usual row with the same gaps, so that all rows compare.
    A model finds its own training rows less odd. Without DATA, each row of the table is judged by a model
    of other rows: three models are fitted, each to two thirds of the rows.
    With --explain each row has up to three odd cells, the oddest first: column, value, surprisal in nats above that
    of a usual cell, the value expected given the other cells, and the ends of the middle 80% of what was expected.

    Example: jointwise score people.jw people.csv --lowest 5

    Example: jointwise score people.jw people.csv --explain --format jsonl

    Example: jointwise score people.csv --lowest 5
    """
    form = checked_format(output, form)
    densities, file = _judges_and_table(model, data, reading)
    with writing(output, form) as write:
        if lowest is not None:
            write(oddity.lowest_rows(densities, file, lowest, form if explain else None))
            return
        oddness = [CellOddness(density.schema, density.mixture) for density in densities] if explain else []
        for first, block, parts in oddity.judged_blocks(densities, file):
            scores = np.empty(sum(len(part.rows) for part in parts))
            for part in parts:
                scores[part.rows] = part.log_density
            columns = {"row": range(first, first + len(scores)), "log_density": [plain(s) for s in scores]}
            write(columns | (oddity.odd_columns(densities, oddness, file.cells(block), parts, form) if explain else {}))


def _judges_and_table(model: str, data: str | None, reading: Reading) -> tuple[list[JointDensity], TableFile]:
    """The densities, which judge the rows in turn, and the table."""
    if data is None and isinstance(found := open_model(model, reading), TableFile):
        return cross_fitted(found, FOLDS), found
    density, file = _model_and_table(model, data, reading)
    check_columns(file, density.schema)
    return [density], file


@reads_tables
def impute(
    model: Model,
    data: OptionalData = None,
    random: Annotated[
        bool, typer.Option("--draw", help="Draw the value of each gap instead of its best guess.")
    ] = False,
    reading: Reading = DEFAULT,
    output: Output = "-",
    form: Format = None,
    seed: SeedOrNone = None,
) -> None:
    """Fill the gaps of a table; every other cell stays as it is.

    A gap gets its most probable category or its mean, given the rest of its row.
    Columns that are not in the model are copied.

    Example: jointwise impute people.jw people.csv -o filled.csv

    Example: jointwise impute people.csv -o filled.csv
    """
    form = checked_format(output, form)
    density, file = _model_and_table(model, data, reading)
    check_columns(file, density.schema)
    rng = np.random.default_rng(seed)
    typed = form not in {"csv", "tsv"}  # CSV keeps each cell's own text
    types = file.dtypes() if typed else {}
    with writing(output, form) as write:
        for _, block, X in encoded_blocks(file, density.schema, "Filling"):
            gaps = np.isnan(X)
            schema, mixture = density.schema, density.mixture
            filled = schema.settle(mixture.complete(X, rng)) if random else fill(mixture, schema, X)
            cells = file.typed_cells(block, types) if typed else file.cells(block)
            write(_with_gaps_filled(density.schema, cells, gaps, filled))


def _with_gaps_filled(schema: Schema, cells: Cells, gaps: Any, filled: FloatArray) -> Cells:
    out = dict(cells)
    for n, variable in enumerate(schema):
        if variable.name not in schema.columns:
            continue  # tells the gaps of another
        rows = np.flatnonzero(gaps[:, n])
        column = out[variable.name] = list(out[variable.name])
        for i in rows:
            column[i] = plain(variable.decode_value(filled[i, n]), GUESS_DIGITS)
    return out


@reads_tables
def classify(
    model: Model,
    data: Data,
    target: Annotated[str, typer.Option(help="Column that holds the class.")],
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    reading: Reading = DEFAULT,
    output: Output = "-",
    form: Format = None,
) -> None:
    """Find the most probable class of each row, and its probability.

    Fit MODEL with the same --target for the best answers; MODEL may also be the table to learn from.
    If DATA holds the target, standard error shows the share of right answers.

    Example: jointwise classify train.csv test.csv --target species -o classes.csv
    """
    form = checked_format(output, form)
    refuse_two_pipes(model, data)
    classes = load_classes(model, reading, target)
    file = open_table(data, reading)
    features = classes.features
    check_features(file, features.columns)
    right, known = 0, 0
    with writing(output, form) as write:
        for first, block, X in encoded_blocks(file, features, "Classifying", unseen="missing", absent="missing"):
            truth = true_values(file, block, classes.density.schema[target], len(X))
            p = classes.probabilities(X)
            best = np.argmax(p, axis=1)
            right += int(np.sum(best == truth))
            known += int(np.sum(~np.isnan(truth)))
            numbers = range(first, first + len(X))
            columns = {unused_name("row", [target]): numbers} | class_columns(target, classes.classes, p, proba=proba)
            write(columns)
    if known:
        screen.note(f"Right: {right} of {known} rows with a value in {shown(target)} ({right / known:.1%}).")


def class_columns(target: str, classes: Sequence[Any], p: FloatArray, *, proba: bool) -> dict[str, Any]:
    """Columns of the most probable class and its probability, and of the probability of each class if asked for."""
    columns: dict[str, Any] = {
        target: [classes[i] for i in np.argmax(p, axis=1)],
        unused_name("probability", [target]): [plain(row) for row in p.max(axis=1)],
    }
    if proba:
        columns |= {f"P({as_text(c)})": [plain(x) for x in p[:, i]] for i, c in enumerate(classes)}
    return columns


def true_values(file: TableFile, block: Any, target: Variable, n_rows: int) -> FloatArray:
    """Encoded values of a column in a block: -1 for a category that is not in the model, NaN for a gap; (n_rows,)."""
    if target.name not in file.names:
        return np.full(n_rows, np.nan)
    return encode(file.frame(block, {target.name: target.dtype}), Schema((target,)))[:, 0]


def check_features(file: TableFile, features: Sequence[str]) -> None:
    """Refuse a table without any of the columns that tell something, and say which it lacks."""
    lacking = [name for name in features if name not in file.names]
    if lacking and len(lacking) == len(features):
        raise InputError(f"{file.label} has none of the model's columns {listed(features)}.")
    if lacking:
        screen.note(f"Note: {file.label} lacks {listed(lacking)}; all their possible values are averaged over.")


def _model_and_table(model: str, data: str | None, reading: Reading) -> tuple[JointDensity, TableFile]:
    """The model and the table; one table may stand for both."""
    refuse_two_pipes(model, data)
    found = open_model(model, reading)
    if data is not None:
        table = open_table(data, reading)
        return (fitted(found) if isinstance(found, TableFile) else found), table
    if isinstance(found, TableFile):
        return fitted(found), found
    raise typer.BadParameter(f"{model} is a model; give the table to go through as well.", param_hint="DATA")
