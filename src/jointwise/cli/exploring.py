"""The command that writes a page on which one conditions with the mouse: explore."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from jointwise.cli import screen
from jointwise.cli.commands import Model, Seed, refuse_two_pipes
from jointwise.cli.files import open_table
from jointwise.cli.models import load_model
from jointwise.cli.outputs import check_place, encoded, write_bytes
from jointwise.cli.reading import DEFAULT, Reading, reads_tables
from jointwise.cli.survey import Survey
from jointwise.explore import page, sampled


@reads_tables
def explore(
    model: Model,
    output: Annotated[str, typer.Option("-o", "--output", help="File to write, HTML; - is standard output.")] = "-",
    title: Annotated[str | None, typer.Option(help="Heading of the page; by default the name of the model.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    data: Annotated[
        str | None, typer.Option(help="Table of which 300 rows are drawn as dots: the page then holds these rows.")
    ] = None,
    seed: Seed = 0,
    reading: Reading = DEFAULT,
) -> None:
    """Write a page on which one conditions with the mouse and sees all other columns move.

    It is one HTML file that holds the model and no rows, and works without server or network: it can be sent to anyone.

    Example: jointwise explore people.jw -o people.html --open
    """
    check_place(output)
    refuse_two_pipes(model, data)
    if output == "-" and (show or sys.stdout.isatty()):
        raise typer.BadParameter("A page cannot be shown in a terminal; name a file.", param_hint="--output")
    density = load_model(model, reading)
    rows = None
    if data is not None:
        rng = np.random.default_rng(seed)
        rows = sampled(Survey.of(open_table(data, reading), density, rng).X, density.schema, rng)
        screen.note(f"Warning: the page holds {len(rows)} rows of {data}; whoever has the page can read them.")
    name = "Standard input" if model == "-" else Path(model).stem
    write_bytes(output, encoded(page(density, name if title is None else title, rows)))
    if show:
        webbrowser.open(Path(output).resolve().as_uri())
