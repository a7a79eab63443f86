"""Commands about a model: fit, info, query, sample; and the options that all commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Annotated, Any, TypeVar

import numpy as np
import typer

from jointwise._checks import listed, shown
from jointwise._files import is_stream
from jointwise.cli import screen
from jointwise.cli.files import open_table, open_tables, read_questions
from jointwise.cli.models import load_model, load_with_table, note_hints, save_model
from jointwise.cli.outputs import (
    FORMATS,
    check_place,
    format_of,
    is_named_as_table,
    native_cells,
    plain,
    writing,
)
from jointwise.cli.passes import encoded_blocks
from jointwise.cli.reading import DEFAULT, Reading, reads_tables
from jointwise.cli.survey import Survey
from jointwise.cli.table_file import TableFile
from jointwise.exceptions import InputError, QuestionError
from jointwise.joint import ClassModel, JointDensity
from jointwise.joint.answers import Answer, answer
from jointwise.joint.distribution import BLOCK_ROWS
from jointwise.joint.events import Alternatives, Point
from jointwise.joint.language import Question, parse_conditions, parse_question
from jointwise.tables.gaps import MISSING_KINDS, emptied
from jointwise.tables.variables import Kind, Schema, Variable, as_text, unused_name

ValueT = TypeVar("ValueT")

KINDS = (*map(str, Kind), "ordinal")
# Rows drawn at once, and the most in all: those take hours and tens of gigabytes.
SAMPLE_BLOCK, MOST_DRAWN = 100_000, 1_000_000_000

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file, or a table to fit first.")]
Data = Annotated[str, typer.Argument(metavar="DATA", help="CSV, JSON lines, Parquet or Arrow; - is standard input.")]
Output = Annotated[str, typer.Option("-o", "--output", help="File to write; - is standard output.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}; by default from the file's extension."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the random numbers.")]
SeedOrNone = Annotated[int | None, typer.Option("--seed", min=0, help="Seed; without one, other rows each time.")]


def checked_format(path: str, asked: str | None, *further: str) -> str:
    """Format of a result; a wrong one is refused as a wrong use of the command."""
    known = (*further, *FORMATS)
    if asked is not None and asked not in known:
        raise typer.BadParameter(f"{shown(asked)} is not one of {', '.join(known)}.", param_hint="--format")
    if asked in further and path != "-":
        raise typer.BadParameter(
            f"A {asked} is for the screen; a file takes {', '.join(FORMATS)}.", param_hint="--format"
        )
    if asked is None and path == "-" and further:
        return further[0]
    check_place(path)
    return format_of(path, asked)


def refuse_two_pipes(model: str, data: str | None) -> None:
    """Refuse a model and a table that both come from standard input."""
    if model == data == "-":
        raise typer.BadParameter("Model and data cannot both come from standard input.", param_hint="DATA")


@reads_tables
def fit(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", help="CSV, JSON lines, Parquet or Arrow; files or folders of one table."),
    ],
    output: Annotated[str, typer.Option("-o", "--output", metavar="MODEL", help="File for the model.")],
    target: Annotated[str | None, typer.Option(help="Column that holds the class.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=KIND", help="continuous, integer, categorical or ordinal; repeatable."),
    ] = None,
    support: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=LOW..HIGH", help="Bounds of a number, such as 0.. or 0..100; .. for none; repeatable."
        ),
    ] = None,
    step: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=STEP", help="What numbers are rounded to, such as 0.01; 0 for nothing; repeatable."
        ),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out; repeatable.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column to keep though it seems to name the rows; repeatable."),
    ] = None,
    gaps: Annotated[
        str,
        typer.Option(
            metavar="HOW", help="ignorable; informative: which cells are missing is part of the model; or auto."
        ),
    ] = "ignorable",
    n_components: Annotated[
        int | None, typer.Option(min=1, help="Fit one mixture of so many products; by default experts are stacked.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that holds how often each row counts.")
    ] = None,
    rare: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Merge categories with a smaller share of the rows, such as 0.5%."),
    ] = None,
    seed: Seed = 0,
    checkpoint: Annotated[str | None, typer.Option(help="File that lets a stopped fit go on.")] = None,
    reading: Reading = DEFAULT,
) -> None:
    """Learn the joint density of a table and write it to a file.

    With --target the file also holds what `classify` needs, and rows without a value of the target are left out.

    Example: jointwise fit people.csv -o people.jw --kind rooms=categorical --drop id

    Example: jointwise fit years/*.parquet -o years.jw

    Example: jointwise fit adult.data -o adult.jw --no-header --missing ? --weight "column 3" --rare 0.5%
    """
    check_place(output)
    if gaps not in MISSING_KINDS:
        raise typer.BadParameter(f"{shown(gaps)} is not one of {', '.join(MISSING_KINDS)}.", param_hint="--gaps")
    parameters: dict[str, Any] = {
        "kinds": _by_column("--kind", kind, _kind, f"COLUMN=KIND with one of {', '.join(KINDS)}"),
        "supports": _by_column("--support", support, _support, "COLUMN=LOW..HIGH, such as age=0.."),
        "steps": _by_column("--step", step, float, "COLUMN=STEP, such as price=0.01"),
        "keep": keep or [],
        "missing": gaps,
        "n_components": n_components or "auto",
        "random_state": seed,
        "checkpoint": checkpoint,
    }
    share = 0.0 if rare is None else share_of(rare, "--rare", "0.5% or 0.005")
    file = open_tables(data, reading)
    note_hints(file, drop or ())
    from jointwise.cli.fits import fit_table, plain_model  # loads scikit-learn

    model = fit_table(file, target, drop=drop or (), weight=weight, rare=share, **parameters)
    save_model(plain_model(model), output)
    screen.note(model.summary())


def _by_column(option: str, pairs: list[str] | None, parse: Callable[[str], ValueT], form: str) -> dict[str, ValueT]:
    """Values of an option given as COLUMN=VALUE, by the names of the columns."""
    found = {}
    for pair in pairs or []:
        name, _, value = pair.rpartition("=")
        try:
            found[name] = parse(value)
        except ValueError:
            name = ""
        if not name:
            raise typer.BadParameter(f"{shown(pair)} is not {form}.", param_hint=option)
    return found


def share_of(text: str, option: str, example: str) -> float:
    """A share between 0 and 1, written as a number or a percentage."""
    try:
        share = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        share = np.nan
    if not 0 < share < 1:
        raise typer.BadParameter(f"{shown(text)} is not a share such as {example}.", param_hint=option)
    return round(share, 12)


def _kind(text: str) -> str:
    if text not in KINDS:
        raise ValueError(text)
    return text


def _support(text: str) -> tuple[Any, Any]:
    low, dots, high = text.partition("..")
    if not dots:
        raise ValueError(text)
    return _end(low), _end(high)


def _end(text: str) -> Any:
    """One end of a range: open, a number, or a date."""
    try:
        return float(text) if text.strip() else None
    except ValueError:
        return text.strip()


@reads_tables
def info(
    model: Model,
    pairs: Annotated[bool, typer.Option("--pairs", help="Mutual information of each pair of columns.")] = False,
    data: Annotated[str | None, typer.Option(help="Table whose rows and gaps are counted; by default MODEL.")] = None,
    output: Output = "-",
    form: Format = None,
    reading: Reading = DEFAULT,
) -> None:
    """Show the columns of a model, or the mutual information of each pair.

    With --data, or a table as MODEL, also its rows, the gaps of each column, and how well the model fits the rows: the
    mean log-density of a row. The check that was made at the fit is shown if there was one; see also `check`.

    Example: jointwise info people.jw --pairs

    Example: jointwise info people.jw --data people.csv
    """
    form = checked_format(output, form, "table")
    refuse_two_pipes(model, data)
    stored, file = load_with_table(model, reading)
    density = stored.density if isinstance(stored, ClassModel) else stored
    file = open_table(data, reading) if data is not None else file
    rows = None if file is None else Survey.of(file, density, np.random.default_rng(0))
    columns = _pairs(density) if pairs else _columns(density, rows)
    lines = [
        f"{len(density.schema.columns)} columns, {density.n_components} components",
        *([_classes(stored)] if isinstance(stored, ClassModel) else []),
        *([f"gaps: part of the model for {listed(density.gaps)}"] if density.gaps else []),
        *([f"check at the fit: {density.verdict}"] if density.verdict else []),
        *(f"{name}: {words}" for name, words in (rows.facts() if rows is not None else {}).items() if words),
    ]
    _put(output, form, [columns], [*lines, screen.table(columns)])


def _classes(model: ClassModel) -> str:
    second = f"{model.share:.0%} by a second density, of columns standardised within classes"
    return f"classes of {shown(model.target)}: {second if model.second else 'by the joint density'}"


def _columns(density: JointDensity, rows: Survey | None) -> dict[str, list[Any]]:
    gaps = {} if rows is None else {"gaps": rows.gaps.tolist()}
    columns = [density.schema[name] for name in density.names]
    atoms = [density.mixture.dictionary(density.schema.index(name)).summary() for name in density.names]
    return {
        "column": list(density.names),
        "kind": ["ordinal" if variable.ordered else str(variable.kind) for variable in columns],
        "values": [column_values(variable) for variable in columns],
        "support": [variable.shown_support() for variable in columns],
        "step": [f"{variable.step:g}" if variable.step else "" for variable in columns],
        **gaps,
        "atoms": [" + ".join(each) for each in atoms],
    }


def column_values(variable: Variable) -> str:
    """Return the categories or the range of a variable, in short."""
    if variable.categories is not None:
        shown = ", ".join(str(category) for category in variable.categories[:6])
        return shown + (f", ... ({len(variable.categories)} in all)" if len(variable.categories) > 6 else "")
    low, high = variable.observed
    if np.isnan(low) or np.isnan(high):
        return "unknown"
    return f"{plain(variable.decode_value(low))} to {plain(variable.decode_value(high))}"


def _pairs(density: JointDensity) -> dict[str, list[Any]]:
    """Mutual information of each pair, the strongest first."""
    pairs = list(combinations(density.names, 2))
    found = []
    with screen.tasks("Pairs") as progress:
        for done, (a, b) in enumerate(pairs):
            progress(done, len(pairs), "")
            found.append((density.mutual_information(a, b).value, a, b))
    found.sort(key=lambda each: -each[0])
    return {
        "column": [a for _, a, _ in found],
        "with": [b for _, _, b in found],
        "mutual information (nats)": [round(max(value, 0.0), 4) for value, _, _ in found],
    }


@reads_tables
def query(
    model: Model,
    question: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION...", help="Such as 'P(income=high | age > 40)'; one or more."),
    ] = None,
    file: Annotated[
        str | None, typer.Option("-f", "--file", help="File of questions, one a line; - is standard input.")
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, help="Show only this many rows, the most probable.")] = None,
    output: Output = "-",
    form: Format = None,
    reading: Reading = DEFAULT,
) -> None:
    """Ask for probabilities, means and quantiles, or distributions of variables, given others.

    P(a=x | b>1) is a probability. mean, sd, variance, median, mode, q10 and quantile(a, 0.1) are measures.
    Names alone ask for their distribution. Conditions follow the bar, joined by commas or `and`: a=x, a!=x, a<1,
    1<a<=2, a in 1..2, a in {x, y}, a=x or y.

    Example: jointwise query people.jw "P(income=high | age > 40)" "mean(age | sex=F)"

    Example: jointwise query people.jw "income, age | sex=F, age in 30..40"

    Example: jointwise query people.jw --file questions.txt --format json
    """
    form = checked_format(output, form, "table")
    refuse_two_pipes(model, file)
    texts = [*(question or []), *(read_questions(file) if file is not None else [])]
    if not texts:
        raise typer.BadParameter("Ask at least one question, such as 'mean(age)'.", param_hint="QUESTION")
    density = load_model(model, reading)
    questions = [parse_question(text, density.schema) for text in texts]
    if form == "table":
        for n, each in enumerate(questions):
            found = answer(density, each)
            heading = [*([""] if n else []), found.question] if len(questions) > 1 else []
            screen.show(*heading, *_pictures(found, top))
            _say(found)
        return
    with writing(output, form) as write:
        for block in _blocks((answer(density, each) for each in questions), questions, top, form):
            write(block)


def _say(found: Answer) -> None:
    if found.note:
        screen.note(f"Note: {found.note}")


def _blocks(
    found: Iterable[Answer], questions: list[Question], top: int | None, form: str
) -> Iterator[dict[str, list[Any]]]:
    """Blocks of columns for a file: an object for each answer in JSON, else rows; several questions share columns."""
    asked = [name for question in questions if not question.measure for name in question.names]
    heads = list(dict.fromkeys([*asked, *(name for question in questions for name in _heads(question))]))
    for each in found:
        _say(each)
        if form == "json":
            yield {name: [cell] for name, cell in each.to_dict(top).items()}
            continue
        for columns in _columns_of(each, top):
            if len(questions) == 1:
                yield columns
                continue
            n_rows = len(next(iter(columns.values())))
            gaps = [None] * n_rows
            yield {"question": [each.question] * n_rows} | {name: columns.get(name, gaps) for name in heads}


def _heads(question: Question) -> list[str]:
    """Columns of the answer to a question."""
    if question.measure:
        return [_head(question.measure, name, question.level) for name in question.names]
    return [*question.names, "probability"]


def _head(measure: str, name: str, level: float) -> str:
    return f"{f'q{100 * level:.10g}' if measure == 'quantile' else measure}({name})"


def _columns_of(found: Answer, top: int | None) -> Iterator[dict[str, list[Any]]]:
    if found.distribution is not None:
        yield from found.distribution.blocks(top)
    elif found.kind == "probability":
        yield {"probability": [plain(found.value)]}
    else:
        yield {_head(found.kind, name, found.level): [plain(value)] for name, value in found.by_name.items()}


def _pictures(found: Answer, top: int | None) -> list[Any]:
    """Answer for the screen; of a long table, only the most probable rows, and a line that says so."""
    if found.distribution is None:
        several = len(found.by_name) > 1
        return [f"{name}: {_figure(value)}" if several else _figure(value) for name, value in found.by_name.items()]
    names, parts, table = found.distribution.names, found.distribution.parts, found.distribution.table
    crossed = len(parts) == 2 and not top
    if crossed and screen.fits([len(part.labels) for part in parts]):
        return [screen.crossed(names, parts, table), *found.summary_lines()]
    few = top or (screen.ROWS if table.size > screen.ROWS else None)
    (columns,) = found.distribution.blocks(min(few, BLOCK_ROWS) if few else None)
    picture = screen.bars(names[0], columns) if len(parts) == 1 else screen.table(columns)
    if top or few is None:
        return [picture, *found.summary_lines()]
    share = sum(columns["probability"])
    rows = f"These are the {few} most probable of {table.size:,} rows, together {share:.1%}."
    rows += " Write all of them with -o FILE, or show another number with --top N."
    return [picture, rows, *found.summary_lines()]


def _figure(value: Any) -> str:
    return f"{plain(value):.6g}" if isinstance(value, float) else as_text(value)


def _put(output: str, form: str, blocks: Iterable[dict[str, list[Any]]], pictures: list[Any]) -> None:
    """Show the pictures on the screen, or write the blocks in another format."""
    if form == "table":
        screen.show(*pictures)
        return
    with writing(output, form) as write:
        for block in blocks:
            write(block)


@reads_tables
def sample(
    model: Model,
    n: Annotated[
        int,
        typer.Option("-n", min=0, max=MOST_DRAWN, help=f"Number of rows, at most {MOST_DRAWN:,}; of each row given."),
    ] = 10,
    given: Annotated[
        str | None, typer.Option(help="Conditions, such as 'sex=F, age > 40', or a table of known cells.")
    ] = None,
    output: Output = "-",
    form: Format = None,
    seed: SeedOrNone = None,
    reading: Reading = DEFAULT,
) -> None:
    """Draw rows from a model.

    If --given is a table, N rows are drawn for each of its rows: its gaps, and the columns that it lacks, are drawn
    together given the cells that are known. The column `row` says for which row of the table.

    Example: jointwise sample people.jw -n 1000 --given "sex=F, age > 40" -o drawn.csv

    Example: jointwise sample people.jw -n 5 --given known.csv
    """
    form = checked_format(output, form)
    refuse_two_pipes(model, given)
    density = load_model(model, reading)
    rng = np.random.default_rng(seed)
    if given is not None and _is_file(given):
        blocks = _drawn_for_rows(density, open_table(given, reading), n, rng)
    else:
        blocks = _drawn(density, {} if given is None else _conditions(given, density.schema), n, rng)
    with writing(output, form) as write:
        for block in blocks:
            write(block)


def _is_file(text: str) -> bool:
    return text == "-" or os.path.isfile(text) or is_stream(text)  # noqa: PTH113  # false for what cannot be a path


def _conditions(text: str, schema: Schema) -> dict[str, Alternatives]:
    try:
        return parse_conditions(text, schema)
    except QuestionError:
        if is_named_as_table(text):
            raise InputError(f"There is no file {text}.") from None
        raise


def _drawn(
    density: JointDensity, regions: Mapping[str, Alternatives], n: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Blocks of ``n`` rows drawn given conditions."""
    rest = density.condition(regions)
    fixed = {
        name: density.schema[name].decode_value(region.value)
        for name, region in regions.items()
        if isinstance(region, Point)
    }
    with screen.tasks("Drawing") as progress:
        for start in range(0, max(n, 1), SAMPLE_BLOCK):
            progress(start, n, "")
            rows = rest.schema.settle(rest.mixture.sample(min(SAMPLE_BLOCK, n - start), rng))
            rows = emptied(rows, rest.schema)
            drawn = {v.name: native_cells(v, rows[:, i]) for i, v in enumerate(rest.schema)}
            drawn |= {name: [value] * len(rows) for name, value in fixed.items()}
            yield {name: drawn[name] for name in density.schema.columns}


def _drawn_for_rows(
    density: JointDensity, file: TableFile, n: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Blocks of rows, ``n`` for each row of a table: its gaps and absent columns drawn given its other cells."""
    schema = density.schema
    if not set(schema.columns) & set(file.names):
        raise InputError(f"{file.label} has none of the model's columns {listed(schema.columns)}.")
    number = unused_name("row", schema.names)
    for first, _, X in encoded_blocks(file, schema, "Drawing", unseen="missing", absent="missing"):
        for start in range(0, len(X) * n or 1, SAMPLE_BLOCK):
            rows = np.arange(start, min(start + SAMPLE_BLOCK, len(X) * n)) // max(n, 1)
            known = X[rows]
            drawn = np.where(np.isnan(known), schema.settle(density.mixture.complete(known, rng)), known)
            cells = {v.name: native_cells(v, drawn[:, i]) for i, v in enumerate(schema)}
            yield {number: (first + rows).tolist()} | {name: cells[name] for name in schema.columns}
