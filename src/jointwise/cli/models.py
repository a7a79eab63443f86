"""Models: read from a file, or fitted to the table that stands in their place.

Fitting is imported where it is done: most commands only read a model, and start twice as fast without it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jointwise._checks import shown
from jointwise.cli.files import open_table, rereadable
from jointwise.cli.outputs import check_place, write_bytes
from jointwise.cli.reading import DEFAULT, Reading
from jointwise.cli.screen import note
from jointwise.cli.table_file import TableFile
from jointwise.cli.text_files import CsvFile
from jointwise.exceptions import InputError
from jointwise.joint import ClassModel, JointDensity
from jointwise.joint.classes import read_model
from jointwise.joint.serialization import MAGIC
from jointwise.tables.variables import Schema


def load_model(path: str, reading: Reading = DEFAULT) -> JointDensity:
    """Read the joint density of a model; a table in its place is fitted first."""
    return _density(load_stored(path, reading))


def load_stored(path: str, reading: Reading = DEFAULT) -> ClassModel | JointDensity:
    """Read all of a model; a table in its place is fitted first."""
    found = _open(path, reading)
    return fitted(found) if isinstance(found, TableFile) else found


def load_with_table(path: str, reading: Reading = DEFAULT) -> tuple[ClassModel | JointDensity, TableFile | None]:
    """Read all of a model; a table in its place is fitted first, and returned too."""
    found = _open(path, reading)
    return (fitted(found), found) if isinstance(found, TableFile) else (found, None)


def load_classes(path: str, reading: Reading, target: str) -> ClassModel:
    """Read what a model knows of the classes of a column; a table in its place is fitted first.

    A model fitted without this target answers by its joint density.
    """
    found = _open(path, reading)
    if isinstance(found, TableFile):
        from jointwise.cli.fits import fit_table, plain_model

        note_fitting(found)
        found = plain_model(fit_table(found, target))
    if isinstance(found, ClassModel) and found.target == target:
        return found
    density = _density(found)
    variable = density.schema[target]
    if variable.categories is None:
        raise InputError(f"{shown(target)} is {variable.kind}, not categorical; fit the model with --target {target}.")
    return ClassModel(density, target)


def open_model(path: str, reading: Reading = DEFAULT) -> JointDensity | TableFile:
    """Read the joint density of a model, or open the table that stands in its place."""
    found = _open(path, reading)
    return found if isinstance(found, TableFile) else _density(found)


def _open(path: str, reading: Reading) -> ClassModel | JointDensity | TableFile:
    place = rereadable(path)
    with place.open("rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    if is_model:
        return read_model(place)
    return open_table(path, reading)


def _density(model: ClassModel | JointDensity) -> JointDensity:
    return model.density if isinstance(model, ClassModel) else model


def fitted(table: TableFile) -> JointDensity:
    """Density of a table that stands in the place of a model."""
    from jointwise.cli.fits import fit_table

    note_fitting(table)
    return plain_density(fit_table(table).density_)


def cross_fitted(table: TableFile, n_folds: int) -> list[JointDensity]:
    """Densities of a table; the k-th is fitted without every row n, counted from 0, with n % n_folds == k."""
    from jointwise.cli.fits import fit_table

    note_fitting(table)
    first = fit_table(table, fold=(0, n_folds))
    drop, keep = first.left_out_, list(first.density_.schema.columns)  # the others get the same columns
    others = [fit_table(table, drop=drop, keep=keep, fold=(k, n_folds)) for k in range(1, n_folds)]
    return [plain_density(model.density_) for model in (first, *others)]


def note_fitting(table: TableFile) -> None:
    """Say that a table stands in the place of a model."""
    note(f"{table.label} is a table: fitting it first; `jointwise fit` would keep the model.")
    note_hints(table)


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


def note_hints(file: TableFile, drop: Sequence[str] = ()) -> None:
    """Say what looks as if the table were read in a wrong way, and which option would read it otherwise."""
    if isinstance(file, CsvFile) and (header := file.headed_by_data()):
        note(f"Note: the first line of {file.label} looks like data ({header}); if it is no header, add --no-header.")
    for name, counts in file.cell_counts.items():
        if name not in drop and (hint := counts.hint()):
            note(f"Note: {shown(name)} {hint}")


def plain_density(density: JointDensity) -> JointDensity:
    """The density with plain columns as samples, whatever package has read the file."""
    return replace(density, schema=Schema(density.schema.variables, "dict"))
