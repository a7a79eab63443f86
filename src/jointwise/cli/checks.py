"""The command that compares a model with a table: check."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from jointwise._typing import FloatArray
from jointwise.cli import screen
from jointwise.cli.commands import Data, Format, Model, Output, Seed, checked_format, refuse_two_pipes
from jointwise.cli.files import open_table
from jointwise.cli.models import load_model
from jointwise.cli.outputs import plain, writing
from jointwise.cli.passes import check_columns, encoded_blocks
from jointwise.cli.reading import DEFAULT, Reading, reads_tables
from jointwise.cli.survey import Sample
from jointwise.cli.table_file import TableFile
from jointwise.joint.check import check_rows
from jointwise.tables.variables import Schema

# Findings on the screen, and their columns; a file holds all of them.
SHOWN = 20
SHOWN_COLUMNS = ("question", "model", "rows", "n_rows", "noise", "error")


@reads_tables
def check(
    model: Model,
    data: Data,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if something is far beyond noise.")] = False,
    reading: Reading = DEFAULT,
    output: Output = "-",
    form: Format = None,
    seed: Seed = 0,
) -> None:
    """Compare a model with the rows of a table, and list its errors beyond noise, worst first.

    Shares of values and intervals, the range and means are compared, for each column alone and given another one.
    An error is what noise does not explain. Rows that the model was not fitted to show most.
    Of a larger table, 20,000 rows are drawn.

    Example: jointwise check people.jw others.csv
    """
    form = checked_format(output, form, "table")
    refuse_two_pipes(model, data)
    density = load_model(model, reading)
    file = open_table(data, reading)
    check_columns(file, density.schema)
    rng = np.random.default_rng(seed)
    found = check_rows(density.schema, density.mixture, drawn_rows(file, density.schema, rng), rng)
    columns = found.table()
    if form == "table":
        shown = {name: [plain(cell, 3) for cell in columns[name][:SHOWN]] for name in SHOWN_COLUMNS}
        screen.show(found.verdict, *([] if found.is_clean else ["", screen.table(shown)]))
    else:
        screen.note(found.verdict)
        with writing(output, form) as write:
            write({name: [plain(cell) for cell in cells] for name, cells in columns.items()})
    if strict and found.is_far:
        raise typer.Exit(1)


def drawn_rows(file: TableFile, schema: Schema, rng: np.random.Generator) -> FloatArray:
    """Encoded rows of a table, or a random sample of a large one; holds the sample and one block at a time."""
    sample = Sample(len(schema), rng)
    for _, _, X in encoded_blocks(file, schema, "Checking"):
        sample.add(X)
    return sample.rows
