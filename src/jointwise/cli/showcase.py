"""Commands for pictures, the paper's experiments, a demonstration and benchmarks."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import numpy as np
import typer

from jointwise._checks import shown
from jointwise._files import is_stream
from jointwise.cli import commands, rows, screen
from jointwise.cli.commands import Model
from jointwise.cli.files import open_table
from jointwise.cli.models import load_model
from jointwise.cli.outputs import check_place, write_bytes, writing
from jointwise.cli.passes import check_columns, encoded_blocks
from jointwise.cli.reading import DEFAULT, Reading, reads_tables
from jointwise.cli.table_file import TableFile
from jointwise.exceptions import InputError, MissingDependencyError
from jointwise.joint import JointDensity
from jointwise.joint.events import Alternatives, AnyOf, Interval, Point
from jointwise.joint.language import parse_question
from jointwise.joint.questions import event_text
from jointwise.plots.texts import visible
from jointwise.tables import read_table

PICTURES = ("png", "svg", "pdf")
DPI = 150
# Letters of a figure's heading: those that fit into an inch, and the most of all.
LETTERS_PER_INCH, MOST_LETTERS = 12, 300


@reads_tables
def plot(
    model: Model,
    question: Annotated[
        str | None, typer.Argument(metavar="NAMES", help="Variables, and conditions after a bar, as in query.")
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", help="File to write: png, svg or pdf; - is a png on standard output.")
    ] = "-",
    data: Annotated[str | None, typer.Option(help="Table whose rows are drawn too.")] = None,
    components: Annotated[bool, typer.Option("--components", help="Draw one variable in each component.")] = False,
    reading: Reading = DEFAULT,
) -> None:
    """Draw one variable, a pair, or several in pairs; without names, the mutual information of all pairs.

    Example: jointwise plot people.jw "age, income | sex=F" --data people.csv -o pair.png
    """
    check_place(output)
    form = "png" if output == "-" or is_stream(output) else Path(output).suffix.lower().removeprefix(".")
    if form not in PICTURES:
        raise typer.BadParameter(
            f"{shown(output)} does not end in one of {', '.join(PICTURES)}.", param_hint="--output"
        )
    if output == "-" and sys.stdout.isatty():
        raise typer.BadParameter("A picture cannot be shown in a terminal; name a file.", param_hint="--output")
    density = load_model(model, reading)
    names: tuple[str, ...] = ()
    given: Mapping[str, Alternatives] = {}
    if question is not None:
        asked = parse_question(question, density.schema)
        names, given = asked.names, asked.given
        if not names or asked.measure:
            raise typer.BadParameter("Name variables to draw, such as 'age, income | sex=F'.", param_hint="NAMES")
    if components and len(names) != 1:
        raise typer.BadParameter("--components draws one variable; name it.", param_hint="--components")
    table = None if data is None else _rows_given(density, given, open_table(data, reading))
    figure = _figure(density.condition(given), names, table, components=components)
    if given:
        _write_conditions(figure, event_text(given, density.schema))
    picture = io.BytesIO()
    figure.savefig(picture, format=form, dpi=DPI)
    write_bytes(output, picture.getvalue())


def _write_conditions(figure: Any, conditions: str) -> None:
    """Write above a figure what is given in it, in lines as long as the figure is wide."""
    from matplotlib.text import Text

    width = int(figure.get_size_inches()[0] * LETTERS_PER_INCH)
    words = "\n".join(wrap(visible(f"given {conditions}", MOST_LETTERS), width))
    title: Text = figure.suptitle(words, x=0.01, ha="left", fontsize="medium")
    title.set_parse_math(False)


def without_screen() -> None:
    """Let matplotlib draw into files only; without it, say how to get it."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingDependencyError(
            "Pictures need matplotlib, which is not installed: pip install 'jointwise[plot]'"
        ) from None
    mpl.use("Agg")


def _figure(density: JointDensity, names: tuple[str, ...], table: Any, *, components: bool) -> Any:
    without_screen()
    from jointwise import plots

    if components:
        return plots.plot_components(density, names[0]).figure
    if len(names) == 1:
        return plots.plot_marginal(density, names[0], data=table).figure
    if len(names) == 2:
        return plots.plot_pair(density, names[0], names[1], data=table).figure
    if names:
        return plots.plot_corner(density, names, data=table).flat[0].figure
    return plots.plot_mutual_information(density).figure


def _rows_given(density: JointDensity, given: Mapping[str, Alternatives], file: TableFile) -> Any:
    """Rows of the first block of a table that meet the conditions; one block is enough for a picture."""
    check_columns(file, density.schema)
    for _, block, X in encoded_blocks(file, density.schema, "Reading"):
        keep = np.ones(len(X), dtype=bool)
        for name, region in given.items():
            keep &= _meets(X[:, density.schema.index(name)], region)
        return read_table(file.frame(block, {v.name: v.dtype for v in density.schema})).rows(keep)
    raise InputError(f"{file.label} has no rows to draw.")


def _meets(values: Any, region: Alternatives) -> Any:
    if isinstance(region, AnyOf):
        return np.any([_meets(values, part) for part in region.parts], axis=0)
    if isinstance(region, Interval):
        return (values >= region.low) & (values <= region.high)
    return np.isin(values, (region.value,) if isinstance(region, Point) else region.values)


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Experiments by name, or all.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller tasks: minutes, rough numbers.")] = False,
    folder: Annotated[str | None, typer.Option(help="Folder for the page, figures and results.")] = None,
) -> None:
    """Run the paper's experiments and write the page of results; a run that was killed goes on where it ended.

    Example: jointwise reproduce all --quick
    """
    from jointwise import experiments

    with screen.tasks("Experiments") as progress:
        page = experiments.reproduce(names, quick=quick, folder=folder, progress=progress)
    typer.echo(page)


def demo(
    folder: Annotated[Path, typer.Option(help="Folder for its table and model.")] = Path("jointwise-demo"),
) -> None:
    """Show the commands at work on a small made-up table of people, with text, numbers and gaps.

    Example: jointwise demo
    """
    folder.mkdir(parents=True, exist_ok=True)
    table, model = str(folder / "people.csv"), str(folder / "people.jw")
    with writing(table, "csv") as write:
        write(_people())
    _echo("fit", table, "-o", model)
    commands.fit([table], model)
    for question in ("P(job=engineer | income > 60)", "median(income | job=nurse or teacher)", "income | job=nurse"):
        _echo("query", model, question)
        commands.query(model, [question])
    _echo("sample", model, "-n", "3", "--seed", "0")
    commands.sample(model, n=3, seed=0)
    _echo("score", model, table, "--lowest", "3")
    rows.score(model, table, lowest=3)
    filled = str(folder / "filled.csv")
    _echo("impute", model, table, "-o", filled)
    rows.impute(model, table, output=filled)
    typer.echo(f"\n{filled} has no gaps. All commands: jointwise --help")


def _echo(*words: str) -> None:
    sys.stdout.flush()
    typer.echo(f"\n$ jointwise {shlex.join(words)}")


def _people(n: int = 500) -> dict[str, list[Any]]:
    """A made-up table: job depends on sex, income on job and age, and one cook earns too much."""
    rng = np.random.default_rng(0)
    jobs = np.array(["cook", "engineer", "nurse", "teacher"])
    woman = rng.random(n) < 0.5
    job = np.where(woman, rng.choice(4, n, p=[0.2, 0.15, 0.4, 0.25]), rng.choice(4, n, p=[0.3, 0.4, 0.1, 0.2]))
    age = rng.integers(18, 70, n)
    income = np.array([28.0, 62.0, 38.0, 44.0])[job] + 0.3 * (age - 40) + rng.normal(0, 5, n)
    income[0], job[0], age[0] = 95.0, 0, 21
    columns: dict[str, list[Any]] = {
        "sex": np.where(woman, "F", "M").tolist(),
        "age": age.tolist(),
        "job": jobs[job].tolist(),
        "income": income.round(1).tolist(),
    }
    for cells in columns.values():
        for i in np.flatnonzero(rng.random(n) < 0.06):
            cells[i] = None if i else cells[i]
    return columns


def bench(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Benchmarks by name, such as accuracy.")],
) -> None:
    """Run benchmarks, in the folder of a checkout of the source.

    Example: jointwise bench accuracy
    """
    if not Path("benchmarks/__main__.py").is_file():
        raise InputError("There is no folder `benchmarks` here; run this in a checkout of the source.")
    done = subprocess.run([sys.executable, "-m", "benchmarks", *names], check=False)  # noqa: S603  # our own program
    if done.returncode:
        raise typer.Exit(done.returncode)
