"""Models: read from a file, or fitted to a table in one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._checks import listed, unknown_name
from jointwise.cli.files import open_table, spooled
from jointwise.cli.outputs import check_place, write_bytes
from jointwise.cli.screen import is_watched, note, read_blocks
from jointwise.cli.table_file import TableFile
from jointwise.estimators import JUPAD
from jointwise.exceptions import InputError
from jointwise.joint import JointDensity
from jointwise.joint.serialization import MAGIC
from jointwise.tables import read_table
from jointwise.variables import Schema


@dataclass(frozen=True)
class FitSettings:
    """How to fit a table.

    Parameters
    ----------
    target : str, optional
        Column to classify by: categorical, and the last variable.
    kinds : mapping of names to kinds
    drop : sequence of str
        Columns to leave out.
    rank : int, optional
        Number of components; chosen by held-out likelihood if None.
    seed : int
    checkpoint : str, optional
        File from which a fit that was stopped goes on.
    """

    target: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    drop: Sequence[str] = ()
    rank: int | None = None
    seed: int = 0
    checkpoint: str | None = None


def load_model(path: str, missing: Sequence[str] = (), settings: FitSettings | None = None) -> JointDensity:
    """Read a model; a table in its place is fitted first."""
    found = open_model(path, missing)
    return fitted(found, settings) if isinstance(found, TableFile) else found


def open_model(path: str, missing: Sequence[str] = ()) -> JointDensity | TableFile:
    """Read a model, or open the table that stands in its place."""
    place = spooled() if path == "-" else Path(path)
    with place.open("rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    if is_model:
        return JointDensity.load(place)
    return open_table(str(place), missing, label="standard input" if path == "-" else path)


def fitted(table: TableFile, settings: FitSettings | None = None) -> JointDensity:
    """Return the density of a table that stands in the place of a model; columns that name the rows are left out."""
    return plain_density(fit_table(table, without_names(table, settings or FitSettings())))


def cross_fitted(table: TableFile, n_folds: int) -> list[JointDensity]:
    """Densities of a table, the k-th without the rows n with (n - 1) % n_folds == k; rows count from 1."""
    settings = without_names(table, FitSettings())
    return [plain_density(fit_table(table, settings, fold=(k, n_folds))) for k in range(n_folds)]


def without_names(table: TableFile, settings: FitSettings) -> FitSettings:
    """Return the settings, with columns to be dropped that name the rows; and say so."""
    note(f"{table.label} is a table: fitting it first; `jointwise fit` would keep the model.")
    named = [name for name, counts in table.cell_counts.items() if name != settings.target and counts.names_rows()]
    if named:
        note(f"Note: left out, for they differ in nearly every row: {listed(named)}.")
    return replace(settings, drop=[*settings.drop, *named])


def save_model(density: JointDensity, path: str) -> None:
    """Write a model in one step; ``-`` is standard output."""
    if path != "-":
        check_place(path)
        density.save(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        density.save(place)
        write_bytes("-", place.read_bytes())


def fit_table(file: TableFile, settings: FitSettings, fold: tuple[int, int] | None = None) -> JUPAD:
    """Fit a table in blocks: types, profile and codes in a pass each, and only the codes are kept.

    Parameters
    ----------
    file : TableFile
    settings : FitSettings
    fold : (k, n), optional
        Leave out every n-th row, from the k-th on; they count from 0.
    """
    names = _chosen(file.names, settings)
    if next(file.blocks(), None) is None:
        raise InputError(f"{file.label} has no rows, so there is nothing to learn from.")
    types = file.dtypes()
    dtypes = {name: types[name] for name in names}
    kinds = dict(settings.kinds)
    if settings.target is not None:
        kinds.setdefault(settings.target, "categorical")
    passes = iter(("Looking at the columns", "Coding the rows"))

    def blocks() -> Iterator[Any]:
        first = 0
        for block in read_blocks(file, next(passes)):
            table = read_table(file.frame(block, dtypes))
            number = np.arange(first, first + table.n_rows)
            first += table.n_rows
            yield table if fold is None else table.rows(number % fold[1] != fold[0])

    model = JUPAD(
        settings.rank or "auto",
        kinds=kinds,
        random_state=settings.seed,
        verbose=is_watched(),
        checkpoint=settings.checkpoint,
    )
    return model.fit_blocks(blocks)


def say_doubts(file: TableFile, drop: Sequence[str]) -> None:
    """Tell of columns that are text because of a few cells, and of those that differ in nearly every row."""
    for name, counts in file.cell_counts.items():
        if name in drop:
            continue
        stranger = counts.stranger()
        if stranger is not None:
            note(
                f"Note: {name!r} is read as text, though most of its cells are numbers, because of {stranger!r}; if "
                f"that marks a gap, add --missing {stranger!r}."
            )
        elif counts.names_rows():
            note(f"Note: {name!r} differs in nearly every row, so it tells nothing of others; --drop {name!r}?")


def plain_density(model: JUPAD) -> JointDensity:
    """Return a density whose samples are plain columns, whatever package has read the file."""
    fitted: JointDensity = model.density_
    return JointDensity(Schema(fitted.schema.variables, "dict"), fitted.mixture, fitted.verdict)


def _chosen(names: tuple[str, ...], settings: FitSettings) -> list[str]:
    for name in (*settings.drop, *settings.kinds, *([settings.target] if settings.target else [])):
        if name not in names:
            raise unknown_name("column", name, names)
    kept = [name for name in names if name not in settings.drop and name != settings.target]
    if settings.target is not None:
        kept.append(settings.target)
    if not kept:
        raise InputError("Every column is dropped, so there is nothing to learn from.")
    return kept
