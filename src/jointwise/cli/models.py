"""Models: read from a file, or fitted to a table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._checks import listed, shown, unknown_name
from jointwise.cli.files import open_table, rereadable
from jointwise.cli.outputs import check_place, write_bytes
from jointwise.cli.screen import is_watched, note, read_blocks
from jointwise.cli.table_file import TableFile
from jointwise.estimators import JUPAD, JointClassifier
from jointwise.exceptions import InputError
from jointwise.joint import ClassModel, JointDensity
from jointwise.joint.classes import read_model
from jointwise.joint.serialization import MAGIC
from jointwise.tables import Table, read_table
from jointwise.tables.variables import Schema


@dataclass(frozen=True)
class FitSettings:
    """How to fit a table.

    Parameters
    ----------
    target : str, optional
        Column that holds the class; it becomes categorical, and the last variable.
    kinds : mapping of names to kinds
    supports : mapping of names to (low, high)
    steps : mapping of names to float
    drop, keep : sequences of str
        Columns to leave out, and columns to keep though they seem to name the rows.
    n_components : int, optional
        Number of components; chosen by held-out likelihood if None.
    seed : int
    checkpoint : str, optional
        File that lets a stopped fit go on.
    """

    target: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    supports: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    n_components: int | None = None
    seed: int = 0
    checkpoint: str | None = None


def load_model(path: str, missing: Sequence[str] = ()) -> JointDensity:
    """Read the joint density of a model; a table in its place is fitted first."""
    return _density(load_stored(path, missing))


def load_stored(path: str, missing: Sequence[str] = ()) -> ClassModel | JointDensity:
    """Read all of a model; a table in its place is fitted first."""
    found = _open(path, missing)
    return fitted(found) if isinstance(found, TableFile) else found


def load_classes(path: str, missing: Sequence[str], target: str) -> ClassModel:
    """Read what a model knows of the classes of a column; a table in its place is fitted first.

    A model fitted without this target answers by its joint density.
    """
    found = _open(path, missing)
    if isinstance(found, TableFile):
        note_fitting(found)
        found = plain_model(fit_table(found, FitSettings(target=target)))
    if isinstance(found, ClassModel) and found.target == target:
        return found
    density = _density(found)
    variable = density.schema[target]
    if variable.categories is None:
        raise InputError(f"{shown(target)} is {variable.kind}, not categorical; fit the model with --target {target}.")
    note(
        f"Note: {path} was not fitted with --target {target}, which may classify better; only its joint density is "
        "used."
    )
    return ClassModel(density, target)


def open_model(path: str, missing: Sequence[str] = ()) -> JointDensity | TableFile:
    """Read the joint density of a model, or open the table that stands in its place."""
    found = _open(path, missing)
    return found if isinstance(found, TableFile) else _density(found)


def _open(path: str, missing: Sequence[str]) -> ClassModel | JointDensity | TableFile:
    place = rereadable(path)
    with place.open("rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    if is_model:
        return read_model(place)
    return open_table(path, missing)


def _density(model: ClassModel | JointDensity) -> JointDensity:
    return model.density if isinstance(model, ClassModel) else model


def fitted(table: TableFile) -> JointDensity:
    """Density of a table that stands in the place of a model."""
    note_fitting(table)
    return plain_density(fit_table(table, FitSettings()).density_)


def cross_fitted(table: TableFile, n_folds: int) -> list[JointDensity]:
    """Densities of a table; the k-th is fitted without every row n, counted from 0, with n % n_folds == k."""
    note_fitting(table)
    first = fit_table(table, FitSettings(), fold=(0, n_folds))
    same = FitSettings(drop=first.left_out_, keep=first.density_.names)  # the others get the same columns
    others = [fit_table(table, same, fold=(k, n_folds)) for k in range(1, n_folds)]
    return [plain_density(model.density_) for model in (first, *others)]


def note_fitting(table: TableFile) -> None:
    """Say that a table stands in the place of a model."""
    note(f"{table.label} is a table: fitting it first; `jointwise fit` would keep the model.")


def save_model(model: ClassModel | JointDensity, path: str) -> None:
    """Write a model in one step; ``-`` is standard output."""
    if path != "-":
        check_place(path)
        model.save(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        model.save(place)
        write_bytes("-", place.read_bytes())


def fit_table(file: TableFile, settings: FitSettings, fold: tuple[int, int] | None = None) -> JUPAD | JointClassifier:
    """Fit a table in blocks: one pass each for types, profile and codes; only the codes are kept.

    With a target, a classifier is fitted, which also keeps the cells of tables that are not too large as numbers. Rows
    without a class are left out.

    Parameters
    ----------
    file : TableFile
    settings : FitSettings
    fold : (k, n), optional
        Leave out every n-th row, beginning with the k-th; rows count from 0.
    """
    names = _chosen(file.names, settings)
    if next(file.blocks(), None) is None:
        raise InputError(f"{file.label} has no rows, so there is nothing to learn from.")
    types = file.dtypes()
    dtypes = {name: types[name] for name in names}
    passes = iter(["Looking at the columns", "Coding the rows"])
    if settings.target is not None:
        passes = iter(["Looking at the class", *passes, "Reading the numbers"])

    def blocks() -> Iterator[Table]:
        first = 0
        for block in read_blocks(file, next(passes)):
            table = read_table(file.frame(block, dtypes))
            number = np.arange(first, first + table.n_rows)
            first += table.n_rows
            yield table if fold is None else table.rows(number % fold[1] != fold[0])

    parameters: dict[str, Any] = {
        "n_components": settings.n_components or "auto",
        "kinds": settings.kinds,
        "supports": settings.supports,
        "steps": settings.steps,
        "keep": list(settings.keep),
        "random_state": settings.seed,
        "verbose": is_watched(),
        "checkpoint": settings.checkpoint,
    }
    if settings.target is None:
        return JUPAD(**parameters).fit_blocks(blocks)
    target, labelled = settings.target, _Labelled(file.label, settings.target)
    return JointClassifier(JUPAD(**parameters)).fit_blocks(lambda: labelled.rows(blocks()), target)


@dataclass
class _Labelled:
    """Rows that have a class; a note, given once, says how many do not."""

    label: str
    target: str
    said: bool = False

    def rows(self, blocks: Iterator[Table]) -> Iterator[Table]:
        """Blocks of a table, without the rows that have no class."""
        kept = left = 0
        for table in blocks:
            named = ~np.isnan(table.read(table.names.index(self.target)).values)
            kept, left = kept + int(named.sum()), left + int((~named).sum())
            if named.any():
                yield table if named.all() else table.rows(named)
        if not kept:
            raise InputError(
                f"No row of {self.label} has a value in {shown(self.target)}, so there is no class to learn."
            )
        if left and not self.said:
            self.said = True
            note(f"Note: left out {left:,} of {kept + left:,} rows, which have no value in {shown(self.target)}.")


def note_odd_cells(file: TableFile, drop: Sequence[str]) -> None:
    """Name the columns that are text because of a few cells."""
    for name, counts in file.cell_counts.items():
        if name in drop:
            continue
        odd = counts.odd_cell()
        if odd is not None:
            note(
                f"Note: {shown(name)} is read as text, though most of its cells are numbers, because of "
                f"{shown(odd)}; if that marks a gap, add --missing {shown(odd)}."
            )


def plain_model(model: JUPAD | JointClassifier) -> ClassModel | JointDensity:
    """What a model file holds of a fit."""
    density = plain_density(model.density_)
    if not isinstance(model, JointClassifier):
        return density
    second = model.class_model_.second
    if second is not None:
        second = replace(second, density=plain_density(second.density))
    return ClassModel(density, model.target_name_, second)


def plain_density(density: JointDensity) -> JointDensity:
    """The density with plain columns as samples, whatever package has read the file."""
    return replace(density, schema=Schema(density.schema.variables, "dict"))


def _chosen(names: tuple[str, ...], settings: FitSettings) -> list[str]:
    named = (settings.drop, settings.keep, settings.kinds, settings.supports, settings.steps)
    for name in (*chain.from_iterable(named), *([settings.target] if settings.target else [])):
        if name not in names:
            raise unknown_name("column", name, names)
    both = [name for name in settings.drop if name in settings.keep]
    if both:
        raise InputError(f"--drop and --keep must not share columns; both name {listed(both)}.")
    kept = [name for name in names if name not in settings.drop and name != settings.target]
    if settings.target is not None:
        kept.append(settings.target)
    if not kept:
        raise InputError("Every column is dropped, so there is nothing to learn from.")
    return kept
