"""Models: read from a file, or fitted to a table in one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._checks import listed, shown, unknown_name
from jointwise.cli.files import at_hand, open_table
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
        Column to classify by: categorical, and the last variable.
    kinds : mapping of names to kinds
    supports : mapping of names to (low, high)
    steps : mapping of names to float
    drop, keep : sequences of str
        Columns to leave out, and columns to have in though they seem to name the rows.
    rank : int, optional
        Number of components; chosen by held-out likelihood if None.
    seed : int
    checkpoint : str, optional
        File from which a fit that was stopped goes on.
    """

    target: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    supports: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    rank: int | None = None
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
    """Return what tells the classes of a column: as a model holds it, or a table in its place; else the density."""
    found = _open(path, missing)
    if isinstance(found, TableFile):
        say_fitting(found)
        found = plain_model(fit_table(found, FitSettings(target=target)))
    if isinstance(found, ClassModel) and found.target == target:
        return found
    density = _density(found)
    variable = density.schema[target]
    if variable.categories is None:
        raise InputError(f"{shown(target)} is {variable.kind}, not categorical; fit the model with --target {target}.")
    note(
        f"Note: {path} was not fitted with --target {target}, which may tell it better; its joint density alone is "
        "asked."
    )
    return ClassModel(density, target)


def open_model(path: str, missing: Sequence[str] = ()) -> JointDensity | TableFile:
    """Read the joint density of a model, or open the table that stands in its place."""
    found = _open(path, missing)
    return found if isinstance(found, TableFile) else _density(found)


def _open(path: str, missing: Sequence[str]) -> ClassModel | JointDensity | TableFile:
    place = at_hand(path)
    with place.open("rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    if is_model:
        return read_model(place)
    return open_table(path, missing)


def _density(model: ClassModel | JointDensity) -> JointDensity:
    return model.density if isinstance(model, ClassModel) else model


def fitted(table: TableFile) -> JointDensity:
    """Return the density of a table that stands in the place of a model."""
    say_fitting(table)
    return plain_density(fit_table(table, FitSettings()).density_)


def cross_fitted(table: TableFile, n_folds: int) -> list[JointDensity]:
    """Densities of a table, the k-th without the rows n with (n - 1) % n_folds == k; rows count from 1."""
    say_fitting(table)
    first = fit_table(table, FitSettings(), fold=(0, n_folds))
    same = FitSettings(drop=first.left_out_, keep=first.density_.names)  # the others are of the same columns
    others = [fit_table(table, same, fold=(k, n_folds)) for k in range(1, n_folds)]
    return [plain_density(model.density_) for model in (first, *others)]


def say_fitting(table: TableFile) -> None:
    """Tell that a table stands in the place of a model."""
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
    """Fit a table in blocks: types, profile and codes in a pass each, and only the codes are kept.

    With a target it is a classifier, which keeps the cells of tables that are not too large as numbers, too. Rows that
    do not name their class are then left out.

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
    passes = iter(
        ("Looking at the class",) * (settings.target is not None)
        + ("Looking at the columns", "Coding the rows", "Reading the numbers")
    )

    def blocks() -> Iterator[Table]:
        first = 0
        for block in read_blocks(file, next(passes)):
            table = read_table(file.frame(block, dtypes))
            number = np.arange(first, first + table.n_rows)
            first += table.n_rows
            yield table if fold is None else table.rows(number % fold[1] != fold[0])

    parameters: dict[str, Any] = {
        "n_components": settings.rank or "auto",
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
    target, told = settings.target, _Told(file.label, settings.target)
    return JointClassifier(JUPAD(**parameters)).fit_blocks(lambda: told.rows(blocks()), target)


@dataclass
class _Told:
    """Rows that name their class; how many do not is said once."""

    label: str
    target: str
    said: bool = False

    def rows(self, blocks: Iterator[Table]) -> Iterator[Table]:
        """Blocks of a table without the rows that do not name their class."""
        kept = left = 0
        for table in blocks:
            named = ~np.isnan(table.read(table.names.index(self.target)).values)
            kept, left = kept + int(named.sum()), left + int((~named).sum())
            if named.any():
                yield table if named.all() else table.rows(named)
        if not kept:
            raise InputError(f"No row of {self.label} names {shown(self.target)}, so there is no class to learn.")
        if left and not self.said:
            self.said = True
            note(f"Note: left out, for they do not name {shown(self.target)}: {left:,} of {kept + left:,} rows.")


def say_doubts(file: TableFile, drop: Sequence[str]) -> None:
    """Tell of columns that are text because of a few cells."""
    for name, counts in file.cell_counts.items():
        if name in drop:
            continue
        stranger = counts.stranger()
        if stranger is not None:
            note(
                f"Note: {shown(name)} is read as text, though most of its cells are numbers, because of "
                f"{shown(stranger)}; if that marks a gap, add --missing {shown(stranger)}."
            )


def plain_model(model: JUPAD | JointClassifier) -> ClassModel | JointDensity:
    """Return what a model file is to hold of a fit."""
    density = plain_density(model.density_)
    if not isinstance(model, JointClassifier):
        return density
    second = model.class_model_.second
    if second is not None:
        second = replace(second, density=plain_density(second.density))
    return ClassModel(density, model.target_name_, second)


def plain_density(density: JointDensity) -> JointDensity:
    """Return a density whose samples are plain columns, whatever package has read the file."""
    return replace(density, schema=Schema(density.schema.variables, "dict"))


def _chosen(names: tuple[str, ...], settings: FitSettings) -> list[str]:
    told_of = (settings.drop, settings.keep, settings.kinds, settings.supports, settings.steps)
    for name in (*chain.from_iterable(told_of), *([settings.target] if settings.target else [])):
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
