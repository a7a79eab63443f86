"""The command that predicts a column, or the probability of an event, for each row of a table: predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import typer

from jointwise._checks import shown
from jointwise._typing import FloatArray, IntArray
from jointwise.cli import screen
from jointwise.cli.commands import Data, Format, Model, Output, checked_format, refuse_two_pipes, share_of
from jointwise.cli.files import open_table
from jointwise.cli.models import load_stored
from jointwise.cli.outputs import GUESS_DIGITS, native_cells, plain, writing
from jointwise.cli.passes import encoded_blocks
from jointwise.cli.reading import DEFAULT, Reading, reads_tables
from jointwise.cli.reasons import columns_of, moving_cells
from jointwise.cli.rows import check_features, class_columns, true_values
from jointwise.exceptions import InputError
from jointwise.joint import ClassModel, JointDensity
from jointwise.joint.events import Alternatives, boxes
from jointwise.joint.language import parse_conditions
from jointwise.joint.prediction import best_values, event_probabilities
from jointwise.joint.quantiles import Quantiles
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.gaps import with_partners
from jointwise.tables.variables import Kind, Schema, unused_name


@reads_tables
def predict(
    model: Model,
    data: Data,
    target: Annotated[str | None, typer.Option(help="Column to predict from the others.")] = None,
    interval: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Add the ends of the middle interval of this share, such as 80%."),
    ] = None,
    levels: Annotated[
        str | None, typer.Option("--quantiles", metavar="LEVELS", help="Add quantiles, such as 10%,50%,90%.")
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITIONS", help="Add the probability of conditions, such as 'price > 100'; repeatable."
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each category.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the cells that moved the prediction most, and by how much.")
    ] = False,
    reading: Reading = DEFAULT,
    output: Output = "-",
    form: Format = None,
) -> None:
    """Predict a column of each row from its other columns, or the probability of an event given the row.

    A number gets its mean given the row, a category the most probable one with its probability. What DATA holds in
    the predicted column, or in a column of the event, is not used; if it is there, standard error shows how good the
    predictions are. Gaps and columns that DATA lacks are averaged over.

    Example: jointwise predict houses.jw new.csv --target price --interval 80%

    Example: jointwise predict houses.jw new.csv --event "price > 100, sold=yes"

    Example: jointwise predict houses.jw new.csv --target price --explain --format jsonl
    """
    form = checked_format(output, form)
    refuse_two_pipes(model, data)
    _check_options(
        target, event, {"--interval": interval, "--quantiles": levels, "--proba": proba, "--explain": explain}
    )
    asked = _asked(interval, levels)
    stored = load_stored(model, reading)
    density = stored.density if isinstance(stored, ClassModel) else stored
    events = {text.strip(): parse_conditions(text, density.schema) for text in event or ()}
    file = open_table(data, reading)
    predictor = None if target is None else _predictor(stored, density, target, asked, proba=proba)
    ignored = {target} if target is not None else set.intersection(*map(set, events.values()))
    check_features(file, [name for name in density.names if name not in ignored])
    # what the target holds is not used, so that a category unknown to the model is none of its business
    features, hidden = _features(density.schema, target)
    number = unused_name("row", [target or ""])
    with writing(output, form) as write:
        for first, block, known in encoded_blocks(file, features, "Predicting", unseen="missing", absent="missing"):
            columns: dict[str, Any] = {number: range(first, first + len(known))}
            X = np.insert(known, hidden - np.arange(len(hidden)), np.nan, axis=1)
            if predictor is not None:
                truth = true_values(file, block, density.schema.variables[predictor.n], len(X))
                columns |= predictor.columns(X, truth)
            columns |= {f"P({text})": _event_cells(density, each, X) for text, each in events.items()}
            if explain and target is not None:
                columns |= columns_of(moving_cells(density, target, X, file.cells(block)), form, "moved_by")
            write(columns)
    if predictor is not None and (quality := predictor.quality()):
        screen.note(quality)


def _features(schema: Schema, target: str | None) -> tuple[Schema, IntArray]:
    """The variables that a row tells when a column is predicted, and the positions of the others."""
    hidden = with_partners([] if target is None else [schema.index(target)], schema)
    names = [name for n, name in enumerate(schema.names) if n not in hidden]
    return schema.select(names), np.array(hidden, dtype=np.intp)


def _check_options(target: str | None, event: list[str] | None, of_target: Mapping[str, object]) -> None:
    if target is None and not event:
        raise typer.BadParameter("Name a column with --target, or conditions with --event.", param_hint="--target")
    useless = [option for option, value in of_target.items() if value]
    if target is None and useless:
        raise typer.BadParameter("This is for a predicted column; name it with --target.", param_hint=useless[0])


def _asked(interval: str | None, levels: str | None) -> Quantiles:
    """Return the quantiles asked for."""
    others = [share_of(text, "--quantiles", "10% or 0.1") for text in levels.split(",")] if levels is not None else []
    return Quantiles.of(None if interval is None else share_of(interval, "--interval", "80% or 0.8"), others)


def _event_cells(density: JointDensity, event: Mapping[str, Alternatives], X: FloatArray) -> list[Any]:
    """P(event | row) of encoded rows."""
    parts = boxes({density.schema.index(name): region for name, region in event.items()})
    about = with_partners([density.schema.index(name) for name in event], density.schema)
    X = X.copy()
    X[:, about] = np.nan
    found = np.minimum(sum(event_probabilities(density.mixture, box, X) for box in parts), 1.0)
    return [plain(p) for p in found]


def _predictor(
    stored: ClassModel | JointDensity, density: JointDensity, target: str, quantiles: Quantiles, *, proba: bool
) -> _Classes | _Numbers:
    variable = density.schema[target]
    n = density.schema.index(target)
    if quantiles.levels and variable.kind is Kind.CATEGORICAL and not variable.ordered:
        raise InputError(f"{shown(target)} has categories without an order, so it has no quantiles; use --proba.")
    if variable.categories is not None:
        by_class = stored if isinstance(stored, ClassModel) and stored.target == target else ClassModel(density, target)
        return _Classes(n, by_class, quantiles, proba)
    if proba:
        raise InputError(f"{shown(target)} is {variable.kind}: --proba is for categories; use --event or --quantiles.")
    return _Numbers(n, density, target, quantiles)


@dataclass
class _Classes:
    """The most probable category of each row, as `classify` gives it, and how many were right."""

    n: int
    model: ClassModel
    quantiles: Quantiles
    proba: bool
    right: int = 0
    known: int = 0

    def columns(self, X: FloatArray, truth: FloatArray) -> dict[str, Any]:
        p = self.model.probabilities(np.delete(X, self.n, axis=1))  # in the order of its features
        self.right += int(np.sum(np.argmax(p, axis=1) == truth))
        self.known += int(np.sum(~np.isnan(truth)))
        target = self.model.target
        density = self.model.density
        found = _named(density, self.n, self.quantiles, _quantiles(density, self.n, self.quantiles, X))
        return class_columns(target, self.model.classes, p, proba=self.proba) | found

    def quality(self) -> str:
        if not self.known:
            return ""
        share = f"{self.right / self.known:.1%}"
        return f"Right: {self.right} of {self.known} rows with a value in {shown(self.model.target)} ({share})."


@dataclass
class _Numbers:
    """The mean of a number given each row, with quantiles, and how far from the truth it was."""

    n: int
    density: JointDensity
    target: str
    quantiles: Quantiles
    errors: list[FloatArray] = field(default_factory=list)
    inside: int = 0

    def columns(self, X: FloatArray, truth: FloatArray) -> dict[str, Any]:
        variable = self.density.schema.variables[self.n]
        guess = variable.settle(best_values(self.density.mixture, self.n, variable.kind, X))
        self.errors.append(np.abs(guess - truth)[~np.isnan(truth)])
        cells = [plain(cell, GUESS_DIGITS) for cell in native_cells(variable, guess)]
        found = _quantiles(self.density, self.n, self.quantiles, X)
        if len(self.quantiles.levels) > 1:
            self.inside += int(np.sum((found[:, 0] <= truth) & (truth <= found[:, -1])))
        return {self.target: cells} | _named(self.density, self.n, self.quantiles, found)

    def quality(self) -> str:
        errors = np.concatenate(self.errors) if self.errors else np.empty(0)
        if not len(errors):
            return ""
        rows = f"{len(errors):,} row{'s' * (len(errors) != 1)} with a value in {shown(self.target)}"
        unit = " days" * is_temporal(self.density.schema[self.target].dtype)
        text = f"Mean absolute error: {errors.mean():.4g}{unit} in {rows}."
        if len(self.quantiles.levels) > 1:
            low, high = (f"{100 * level:.10g}%" for level in (self.quantiles.levels[0], self.quantiles.levels[-1]))
            text += f" {self.inside / len(errors):.1%} of them are from {low} to {high}."
        return text


def _quantiles(density: JointDensity, n: int, quantiles: Quantiles, X: FloatArray) -> FloatArray:
    return quantiles.of_rows(density.mixture, n, density.schema.variables[n], X)


def _named(density: JointDensity, n: int, quantiles: Quantiles, found: FloatArray) -> dict[str, list[Any]]:
    """Columns such as ``price 10%`` with the quantiles of variable ``n`` given each row."""
    variable = density.schema.variables[n]
    return {
        f"{variable.name} {100 * level:.10g}%": [plain(c, GUESS_DIGITS) for c in native_cells(variable, found[:, k])]
        for k, level in enumerate(quantiles.levels)
    }
