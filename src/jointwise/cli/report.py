"""The command that gathers all about a model on one page: report."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import numpy as np
import typer

from jointwise.cli import oddity, screen
from jointwise.cli.commands import Model, Seed, column_values, refuse_two_pipes
from jointwise.cli.files import label_of, open_table
from jointwise.cli.models import fitted, open_model
from jointwise.cli.outputs import check_place, encoded, plain, write_bytes
from jointwise.cli.page import Markup, beside, card, facts, figure, grid, listing, page, sentence, table
from jointwise.cli.reading import DEFAULT, Reading, reads_tables
from jointwise.cli.showcase import without_screen
from jointwise.cli.survey import Survey
from jointwise.cli.table_file import TableFile
from jointwise.joint import Check, JointDensity
from jointwise.joint.check import check_rows
from jointwise.joint.forest import ForestMixture
from jointwise.joint.sum import parts_of
from jointwise.tables import decode
from jointwise.tables.variables import Variable, as_text

# Most columns with a figure, most columns whose pairs are compared, most pairs listed, and most of them drawn.
MOST_FIGURES, MOST_PAIRED, MOST_PAIRS, MOST_DRAWN = 60, 25, 12, 6
# Findings and odd rows on the page, and the most columns of a table that are shown with an odd row.
MOST_FINDINGS, ODD_ROWS, MOST_CELLS = 20, 10, 20
# Figures side by side are drawn so much smaller, which makes their texts larger.
SMALL = 0.75
# Pairs that share less information than this, in nats, are next to independent.
LEAST_INFORMATION = 0.005


@reads_tables
def report(
    model: Model,
    data: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Rows to compare the model with; by default MODEL if a table.")
    ] = None,
    output: Annotated[str, typer.Option("-o", "--output", help="File to write, HTML; - is standard output.")] = "-",
    seed: Seed = 0,
    reading: Reading = DEFAULT,
) -> None:
    """Write one page about a model: its columns, how they depend on each other, a check, and the oddest rows.

    The page is one HTML file without scripts, with all figures in it. It needs matplotlib.

    Example: jointwise report people.jw people.csv -o report.html
    """
    check_place(output)
    refuse_two_pipes(model, data)
    if output == "-" and sys.stdout.isatty():
        raise typer.BadParameter("A page cannot be shown in a terminal; name a file.", param_hint="--output")
    without_screen()
    found = open_model(model, reading)
    density = fitted(found) if isinstance(found, TableFile) else found
    file = open_table(data, reading) if data is not None else found if isinstance(found, TableFile) else None
    rows = None
    if file is not None:
        rows = Survey.of(file, density, np.random.default_rng(seed))
    write_bytes(output, encoded(_page(label_of(model), density, rows, file, seed)))


def _drawn(rows: Survey | None, density: JointDensity) -> Any:
    """Rows for figures; categories that the model does not know are gaps."""
    if rows is None:
        return None
    is_unknown = np.array([v.categories is not None for v in density.schema]) & (rows.X < 0)
    return decode(np.where(is_unknown, np.nan, rows.X), density.schema)


def _as_shown(density: JointDensity, *names: str) -> JointDensity:
    """The density of rows that show some columns, which is what rows can be compared with."""
    told = {density.gaps[name]: False for name in names if name in density.gaps}
    return density.condition(told) if told else density


def _page(label: str, density: JointDensity, rows: Survey | None, file: TableFile | None, seed: int) -> str:
    parts = [("columns", "Columns", _columns(density, rows))]
    if len(density.names) > 1:
        parts.append(("dependences", "Dependences", _dependences(density, rows)))
    check = None
    if rows is not None and file is not None and rows.n_rows:
        check = check_rows(density.schema, density.mixture, rows.X, np.random.default_rng(seed))
        parts += [("check", "Check against the rows", _check(check, rows))]
        parts += [("odd", "Oddest rows", _odd_rows(density, file))]
    return page(f"Joint density of {label}", parts, _head(density, rows, check))


def _head(density: JointDensity, rows: Survey | None, check: Check | None) -> Markup:
    known: dict[str, object] = {
        "columns": len(density.names),
        "components": f"{density.n_components:,}",
        "made of": _experts(density),
        "gaps in the model": ", ".join(density.gaps),
        "check at the fit": density.verdict,
    }
    if rows is not None:
        known |= rows.facts() | {"check of these rows": check.verdict if check is not None else ""}
    return facts(known)


def _experts(density: JointDensity) -> str:
    names = {"product": "products", "block": "Gaussian blocks", "forest": "trees"}
    shares: dict[str, float] = {}
    for part, share in parts_of(density.mixture):
        kind = names.get(part.KIND, part.KIND)
        shares[kind] = shares.get(kind, 0.0) + share
    return ", ".join(f"{share:.0%} {kind}" for kind, share in sorted(shares.items(), key=lambda each: -each[1]))


# ---- columns ---------------------------------------------------------------------------------------------------------


def _columns(density: JointDensity, rows: Survey | None) -> Markup:
    from jointwise.plots import plot_marginal

    data, columns = _drawn(rows, density), [density.schema[name] for name in density.names]
    cards = []
    with screen.tasks("Columns") as progress:
        for n, variable in enumerate(columns[:MOST_FIGURES]):
            progress(n, len(density.names), "")
            drawn = plot_marginal(_as_shown(density, variable.name), variable.name, data=data, atoms=False).figure
            picture = figure(drawn, f"Distribution of {variable.name}", scale=SMALL)
            cards.append(card(variable.name, _about(variable, rows, n), picture))
    rest = columns[MOST_FIGURES:]
    left = table({
        "column": [v.name for v in rest],
        "about": [_about(v, rows, n) for n, v in enumerate(rest, MOST_FIGURES)],
    }) if rest else ""  # fmt: skip
    legend = "The line or dots are the model" + ("; grey bars are the rows." if rows is not None else ".")
    return Markup(f"{sentence(legend)}{grid(cards)}{left}")


def _about(variable: Variable, rows: Survey | None, n: int) -> str:
    parts = ["ordinal" if variable.ordered else str(variable.kind), column_values(variable)]
    if variable.is_bounded:
        parts.append(f"bounds {variable.shown_support()}")
    if variable.step:
        parts.append(f"step {variable.step:g}")
    if rows is not None and rows.gaps[n]:
        parts.append(f"{rows.gaps[n] / rows.n_rows:.1%} gaps")
    return "; ".join(parts)


# ---- dependences -----------------------------------------------------------------------------------------------------


def _dependences(density: JointDensity, rows: Survey | None) -> Markup:
    from jointwise.plots import plot_pair, plot_tree
    from jointwise.plots.mutual_information import draw_information, information_of_pairs

    names = density.names[:MOST_PAIRED]
    few = density.marginal(names) if len(names) < len(density.names) else density
    information = np.maximum(information_of_pairs(few), 0.0)
    below = np.argwhere(np.tri(len(names), k=-1, dtype=bool))
    pairs = [(names[k], names[j], float(information[j, k])) for j, k in below]
    pairs = [pair for pair in sorted(pairs, key=lambda each: -each[2]) if pair[2] >= LEAST_INFORMATION][:MOST_PAIRS]
    words = "Mutual information says how much one column tells about another, in nats: 0 if they are independent."
    if few is not density:
        words += f" The first {len(names)} of {len(density.names)} columns are compared."
    drawn = [figure(draw_information(names, information).figure, "Mutual information of pairs of columns", wide=True)]
    if any(isinstance(part, ForestMixture) for part, _ in parts_of(density.mixture)):
        drawn.append(figure(plot_tree(density).figure, "Which column depends on which", wide=True))
    data = _drawn(rows, density)
    cards = [
        card(
            f"{a}, {b}",
            f"{size:.3f} nats",
            figure(plot_pair(_as_shown(density, a, b), a, b, data=data).figure, f"{a} and {b}", scale=SMALL),
        )
        for a, b, size in pairs[:MOST_DRAWN]
    ]
    strongest = table({
        "column": [a for a, _, _ in pairs],
        "with": [b for _, b, _ in pairs],
        "nats": [f"{size:.3f}" for _, _, size in pairs],
    }) if pairs else sentence("The columns are next to independent.")  # fmt: skip
    return Markup(f"{sentence(words)}{beside([*drawn, strongest])}{grid(cards)}")


# ---- rows ------------------------------------------------------------------------------------------------------------


def _check(check: Check, rows: Survey) -> Markup:
    words = "Shares of values and intervals, ranges and means, of each column alone and given another, are compared "
    words += f"with {check.n_rows:,} rows of {rows.label}. An error is what noise does not explain."
    if check.is_clean:
        return Markup(f"{sentence(words)}{sentence(check.verdict)}")
    found = check.findings[:MOST_FINDINGS]
    columns = {
        "question": [f.question for f in found],
        "model": [f"{f.model:.3g}" for f in found],
        "rows": [f"{f.rows:.3g}" for f in found],
        "of": [f"{f.n_rows:,.0f}" for f in found],
        "error": [f"{f.error:.2g}" for f in found],
    }
    return Markup(f"{sentence(words)}{sentence(check.verdict)}{table(columns)}")


def _odd_rows(density: JointDensity, file: TableFile) -> Markup:
    words = (
        "The score of a row is its log-density minus that of a usual row with the same gaps. Beside it stand the "
        "cells that are odd given the others, what was expected there with the middle 80%, and how odd they are in "
        "nats. A model finds rows that it was fitted to less odd."
    )
    found = oddity.lowest_rows([density], file, ODD_ROWS, "json")
    columns: dict[str, list[Any]] = {
        "row": [f"{number:,}" for number in found["row"]],
        "score": [f"{score:.2f}" for score in found["score"]],
        "odd cells": [listing([_reason(cell) for cell in cells]) for cells in found["odd_cells"]],
    }
    names = list(found)[4:]
    columns |= {name: found[name] for name in names[:MOST_CELLS] if name not in columns}
    if len(names) > MOST_CELLS:
        words += f" The first {MOST_CELLS} of {len(names)} columns are shown."
    return Markup(f"{sentence(words)}{table(columns)}")


def _reason(cell: dict[str, Any]) -> str:
    value = "is missing" if cell["value"] is None else f"= {_short(cell['value'])}"
    text = f"{cell['column']} {value}; expected {_short(cell['expected'])}"
    if cell["low"] is not None:
        text += f" ({_short(cell['low'])} to {_short(cell['high'])})"
    return f"{text}; {cell['surprisal']:+.1f} nats"


def _short(value: Any) -> str:
    return f"{plain(value, 4):g}" if isinstance(value, float) else as_text(value)
