"""Models: read from a file, or fitted to a table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._checks import listed, shown, unknown_name
from jointwise.cli.files import open_table, rereadable
from jointwise.cli.outputs import check_place, write_bytes
from jointwise.cli.rare import Labels, merged
from jointwise.cli.reading import DEFAULT, Reading
from jointwise.cli.screen import is_watched, note, read_blocks
from jointwise.cli.table_file import TableFile
from jointwise.cli.text_files import CsvFile
from jointwise.estimators import JUPAD, JointClassifier, JointEstimator
from jointwise.exceptions import InputError
from jointwise.joint import ClassModel, JointDensity
from jointwise.joint.classes import read_model
from jointwise.joint.serialization import MAGIC
from jointwise.rows.sources import LocalSource
from jointwise.tables import Table, read_table
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
    note_fitting(table)
    return plain_density(fit_table(table).density_)


def cross_fitted(table: TableFile, n_folds: int) -> list[JointDensity]:
    """Densities of a table; the k-th is fitted without every row n, counted from 0, with n % n_folds == k."""
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


def fit_table(
    file: TableFile,
    target: str | None = None,
    *,
    drop: Sequence[str] = (),
    fold: tuple[int, int] | None = None,
    weight: str | None = None,
    rare: float = 0.0,
    **parameters: Any,
) -> JointEstimator | JUPAD | JointClassifier:
    """Fit a table in blocks: one pass each for types, profile and codes; only the codes are kept.

    With a target, a classifier is fitted, and rows without a class are left out.

    Parameters
    ----------
    file : TableFile
    target : str, optional
        Column that holds the class; it becomes categorical, and the last variable.
    drop : sequence of str
        Columns to leave out.
    fold : (k, n), optional
        Leave out every n-th row, beginning with the k-th; rows count from 0.
    weight : str, optional
        Column that holds how often each row counts.
    rare : float
        Categories of text with a smaller share of the rows become one.
    **parameters
        Of JointEstimator; `random_state` is 0 by default. With `n_components`, a JUPAD of so many is fitted alone.
    """
    names = _chosen(file.names, target, drop, parameters, weight)
    if next(file.blocks(), None) is None:
        raise InputError(f"{file.label} has no rows, so there is nothing to learn from.")
    types = file.dtypes()
    dtypes = {name: types[name] for name in names}
    passes = iter([
        *(["Counting categories"] if rare else []),
        *(["Looking at the class"] if target is not None else []),
        *("Looking at the columns", "Coding the rows"),
    ])  # fmt: skip
    kept: dict[str, frozenset[str]] = {}

    def blocks() -> Iterator[Table]:
        return merged(as_read(), kept) if kept else as_read()

    def as_read() -> Iterator[Table]:
        first = 0
        for block in read_blocks(file, next(passes, "Coding the rows")):
            table = read_table(file.frame(block, dtypes))
            number = np.arange(first, first + table.n_rows)
            first += table.n_rows
            yield table if fold is None else table.rows(number % fold[1] != fold[0])

    if rare:
        labels = Labels(blocks(), skip=[name for name in (target, weight) if name is not None])
        kept |= labels.kept(rare)
        if kept:
            note(labels.note(kept))
    n_components = parameters.pop("n_components", "auto")
    settings = {"random_state": 0, "verbose": is_watched()} | parameters
    model = JointEstimator(**settings) if n_components == "auto" else JUPAD(n_components, **settings)
    if target is None:
        return model.fit_blocks(blocks) if weight is None else model.fit(LocalSource(blocks).with_weights(weight))
    labelled = _Labelled(file.label, target)
    return JointClassifier(model).fit_blocks(lambda: labelled.rows(blocks()), target, weight)


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


def note_hints(file: TableFile, drop: Sequence[str] = ()) -> None:
    """Say what looks as if the table were read in a wrong way, and which option would read it otherwise."""
    if isinstance(file, CsvFile) and (header := file.headed_by_data()):
        note(f"Note: the first line of {file.label} looks like data ({header}); if it is no header, add --no-header.")
    for name, counts in file.cell_counts.items():
        if name not in drop and (hint := counts.hint()):
            note(f"Note: {shown(name)} {hint}")


def plain_model(model: JointEstimator | JUPAD | JointClassifier) -> ClassModel | JointDensity:
    """What a model file holds of a fit."""
    density = plain_density(model.density_)
    if not isinstance(model, JointClassifier):
        return density
    return ClassModel(density, model.target_name_)


def plain_density(density: JointDensity) -> JointDensity:
    """The density with plain columns as samples, whatever package has read the file."""
    return replace(density, schema=Schema(density.schema.variables, "dict"))


def _chosen(
    names: tuple[str, ...],
    target: str | None,
    drop: Sequence[str],
    parameters: Mapping[str, Any],
    weight: str | None,
) -> list[str]:
    """Names of the columns to read, the target last, after checking every name."""
    asked = [*drop, *(name for key in ("keep", "kinds", "supports", "steps") for name in parameters.get(key, ()))]
    for name in (*asked, *(name for name in (target, weight) if name is not None)):
        if name not in names:
            raise unknown_name("column", name, names)
    both = [name for name in drop if name in parameters.get("keep", ())]
    if both:
        raise InputError(f"--drop and --keep must not share columns; both name {listed(both)}.")
    if weight is not None and weight in (target, *asked):
        raise InputError(f"--weight {weight}: the column of weights is not fitted, so no other option can name it.")
    kept = [name for name in names if name not in drop and name != target]
    if target is not None:
        kept.append(target)
    if not kept or kept == [weight]:
        raise InputError("Every column is dropped, so there is nothing to learn from.")
    return kept
