"""Models: read from a file, or fitted to a table in one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jointwise._checks import unknown_name
from jointwise.cli.files import open_table, spooled
from jointwise.cli.outputs import check_place, write_bytes
from jointwise.cli.screen import is_watched, note, read_blocks
from jointwise.cli.table_file import TableFile
from jointwise.estimators import JUPAD
from jointwise.exceptions import InputError
from jointwise.joint import JointDensity
from jointwise.joint.serialization import MAGIC
from jointwise.variables import Schema, Variable

# A text column with more different values than this share of its rows, and this number, names the rows.
NAMES_SHARE, NAMES_LEAST = 0.5, 50


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
    """

    target: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    drop: Sequence[str] = ()
    rank: int | None = None
    seed: int = 0


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
    """Return the density of a table that stands in the place of a model."""
    note(f"{table.label} is a table: fitting it first; `jointwise fit` would keep the model.")
    return plain_density(fit_table(table, settings or FitSettings()))


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


def fit_table(file: TableFile, settings: FitSettings) -> JUPAD:
    """Fit a table in blocks: types, profile and codes in a pass each, and only the codes are kept."""
    names = _chosen(file.names, settings)
    if next(file.blocks(), None) is None:
        raise InputError(f"{file.label} has no rows, so there is nothing to learn from.")
    types = file.dtypes()
    dtypes = {name: types[name] for name in names}
    strangers = _say_strangers(file, names)
    kinds = dict(settings.kinds)
    if settings.target is not None:
        kinds.setdefault(settings.target, "categorical")

    passes = iter(("Looking at the columns", "Coding the rows"))

    def blocks() -> Iterator[Any]:
        return (file.frame(block, dtypes) for block in read_blocks(file, next(passes)))

    model = JUPAD(settings.rank or "auto", kinds=kinds, random_state=settings.seed, verbose=is_watched())
    model.fit_blocks(blocks)
    _say_names([v for v in model.density_.schema if v.name not in strangers], file.rows_read)
    return model


def plain_density(model: JUPAD) -> JointDensity:
    """Return a density whose samples are plain columns, whatever package has read the file."""
    fitted: JointDensity = model.density_
    return JointDensity(Schema(fitted.schema.variables, "dict"), fitted.mixture)


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


def _say_strangers(file: TableFile, names: Sequence[str]) -> set[str]:
    """Tell of columns that are text because of a few cells, and return them."""
    told = set()
    for name in names:
        stranger = file.cell_counts[name].stranger() if name in file.cell_counts else None
        if stranger is not None:
            note(
                f"Note: {name!r} is read as text, though most of its cells are numbers, because of {stranger!r}; if "
                f"that marks a gap, add --missing {stranger!r}."
            )
            told.add(name)
    return told


def _say_names(variables: Sequence[Variable], n_rows: int) -> None:
    """Tell of text columns that have nearly as many values as rows."""
    for variable in variables:
        n = len(variable.categories or ()) if variable.dtype == "string" else 0
        if n > NAMES_LEAST and n > NAMES_SHARE * n_rows:
            note(f"Note: {variable.name!r} has {n} different values and tells little; --drop {variable.name!r}?")
