"""The command that compares two models or tables: compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer

from jointwise.cli import screen
from jointwise.cli.checks import drawn_rows
from jointwise.cli.commands import Format, Output, Seed, checked_format
from jointwise.cli.drift import Drift, aligned, drifts, sizes
from jointwise.cli.files import open_table
from jointwise.cli.models import fitted, note_fitting, open_model, plain_density
from jointwise.cli.outputs import plain, writing
from jointwise.cli.passes import check_columns
from jointwise.cli.reading import DEFAULT, Reading, reads_tables
from jointwise.cli.table_file import TableFile
from jointwise.joint import Check, JointDensity
from jointwise.joint.check import check_rows

# Lines on the screen; a file holds all.
SHOWN = 20
# Divergences below this are not shown on the screen.
SMALL = 0.001


@reads_tables
def compare(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A model file, or a table to fit first.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="A model file, or a table to fit first.")],
    data: Annotated[
        str | None, typer.Option(help="Rows of the new state, which tell drift from noise; by default NEW if a table.")
    ] = None,
    fail_above: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="NATS", help="Exit code 1 if a column or pair differs by more, beyond noise."),
    ] = None,
    reading: Reading = DEFAULT,
    output: Output = "-",
    form: Format = None,
    seed: Seed = 0,
) -> None:
    """Say what differs between two models or tables, by column and by pair of columns, worst first.

    The divergence (Jensen-Shannon) is 0 nats if nothing differs and 0.69 if no value is possible in both. That of a
    pair is what its columns alone do not explain: how they depend on each other has changed.
    With rows of the new state, it is also said whether the old model contradicts them beyond noise.

    Example: jointwise compare january.jw february.csv --fail-above 0.05

    Example: jointwise compare january.jw february.jw --data february.csv
    """
    form = checked_format(output, form, "table")
    if [old, new, data].count("-") > 1:
        raise typer.BadParameter("Only one of OLD, NEW and --data can come from standard input.", param_hint="NEW")
    before, after, table = _both(old, new, reading)
    file = open_table(data, reading) if data is not None else table
    rng = np.random.default_rng(seed)
    first, second, notes = aligned(before, after)
    for each in notes:
        screen.note(f"Note: {each}")
    check = None if file is None else _check(before.marginal(first.schema.names), file, rng)
    found = sizes(first, second, rng)
    rows = list(drifts(first, second, found, check))
    total = f"All columns together: {found.total.value:.3f} ± {found.total.error:.3f} nats of at most 0.693."
    if form == "table":
        screen.show(total, *_pictures(rows, known=check is not None))
    else:
        screen.note(total)
        with writing(output, form) as write:
            write(_columns(rows, brief=False))
    if fail_above is not None:
        _judge(rows, fail_above)


def _both(old: str, new: str, reading: Reading) -> tuple[JointDensity, JointDensity, TableFile | None]:
    """Both densities, and the table in the place of the new one; a table is read as the other one's columns are."""
    first, second = open_model(old, reading), open_model(new, reading)
    if isinstance(first, TableFile):
        before = fitted(first) if isinstance(second, TableFile) else _fitted_like(first, second)
    else:
        before = first
    if isinstance(second, TableFile):
        return before, _fitted_like(second, before), second
    return before, second, None


def _fitted_like(table: TableFile, other: JointDensity) -> JointDensity:
    """Density of the columns of a table that another one has, each of the kind that it has there."""
    note_fitting(table)
    common = [name for name in table.names if name in other.names]
    if not common:
        return fitted(table)
    kinds = {name: "ordinal" if (v := other.schema[name]).ordered else str(v.kind) for name in common}
    drop = [name for name in table.names if name not in common]
    from jointwise.cli.fits import fit_table  # loads scikit-learn

    missing = "informative" if other.gaps else "ignorable"
    return plain_density(fit_table(table, drop=drop, keep=common, kinds=kinds, missing=missing).density_)


def _check(density: JointDensity, file: TableFile, rng: np.random.Generator) -> Check:
    check_columns(file, density.schema)
    return check_rows(density.schema, density.mixture, drawn_rows(file, density.schema, rng), rng)


def _pictures(rows: Sequence[Drift], *, known: bool) -> list[Any]:
    """Lines for the screen: what is large enough to see and, if rows tell, beyond noise."""
    large = [row for row in rows if row.divergence >= SMALL and row.beyond_noise is not False]
    table = ["", screen.table(_columns(large[:SHOWN], brief=True))] if large else []
    lines = [f"{len(large) - SHOWN} more are in the file that -o FILE writes."] if len(large) > SHOWN else []
    if len(large) < len(rows):
        less = f"{'are within noise or ' * known}differ by less than {SMALL:g} nats"
        lines.append(f"{len(rows) - len(large)} {'other ' * bool(large)}columns and pairs {less}.")
    return [*table, *lines]


def _columns(rows: Sequence[Drift], *, brief: bool) -> dict[str, list[Any]]:
    """Columns of a result; for the screen, with changes as text."""
    columns: dict[str, list[Any]] = {
        "columns": [", ".join(row.columns) for row in rows],
        "divergence": [round(row.divergence, 4) if brief else plain(row.divergence) for row in rows],
    }
    if brief:
        return columns | {"change": [str(row.change) for row in rows]}
    known = bool(rows) and rows[0].beyond_noise is not None
    columns |= {
        "question": [row.change.question for row in rows],
        "old": [plain(row.change.old) for row in rows],
        "new": [plain(row.change.new) for row in rows],
    }
    return columns | ({"beyond_noise": [row.beyond_noise for row in rows]} if known else {})


def _judge(rows: Sequence[Drift], most: float) -> None:
    """Exit with code 1 if something differs by more than ``most``, unless rows show that it may be noise."""
    above = [row for row in rows if row.divergence > most and row.beyond_noise is not False]
    if above:
        worst = above[0]
        several = f"{len(above)} columns and pairs, " if len(above) > 1 else ""
        screen.note(f"Above {most:g} nats: {several}first {', '.join(worst.columns)} ({worst.change}).")
        raise typer.Exit(1)
    screen.note(
        f"Nothing above {most:g} nats{' and beyond noise' if rows and rows[0].beyond_noise is not None else ''}."
    )
