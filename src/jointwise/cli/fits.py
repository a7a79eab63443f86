"""Models fitted to tables in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from jointwise._checks import listed, shown, unknown_name
from jointwise.cli.models import plain_density
from jointwise.cli.rare import Labels, merged
from jointwise.cli.screen import is_watched, note, read_blocks
from jointwise.cli.table_file import TableFile
from jointwise.estimators import JUPAD, JointClassifier, JointEstimator
from jointwise.exceptions import InputError
from jointwise.joint import ClassModel, JointDensity
from jointwise.rows.sources import LocalSource
from jointwise.tables import Table, read_table


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
    columns = _chosen(file.names, target, drop, parameters, weight)
    if next(file.blocks(), None) is None:
        raise InputError(f"{file.label} has no rows, so there is nothing to learn from.")
    passes = _Passes(file, columns, fold, _tasks(rare=bool(rare), has_classes=target is not None))
    if rare:
        passes.merge_rare(rare, skip=[name for name in (target, weight) if name is not None])
    model = _estimator(**parameters)
    if target is not None:
        labelled = _Labelled(file.label, target)
        return JointClassifier(model).fit_blocks(lambda: labelled.rows(passes.blocks()), target, weight)
    if weight is not None:
        return model.fit(LocalSource(passes.blocks).with_weights(weight))
    return model.fit_blocks(passes.blocks)


def _estimator(*, n_components: int | Literal["auto"] = "auto", **parameters: Any) -> JointEstimator | JUPAD:
    """The stack of experts, or a JUPAD alone where its number of components is given."""
    settings = {"random_state": 0, "verbose": is_watched()} | parameters
    return JointEstimator(**settings) if n_components == "auto" else JUPAD(n_components, **settings)


def _tasks(*, rare: bool, has_classes: bool) -> list[str]:
    """What each pass over the table is for, in order."""
    tasks = ["Looking at the columns", "Coding the rows"]
    if has_classes:
        tasks.insert(0, "Looking at the class")
    if rare:
        tasks.insert(0, "Counting categories")
    return tasks


@dataclass
class _Passes:
    """Passes over the blocks of a table, without the rows of a fold; each shows its task.

    `kept` are the categories of each column that are not rare, of those columns in which some are.
    """

    file: TableFile
    columns: Sequence[str]
    fold: tuple[int, int] | None
    tasks: list[str]
    kept: dict[str, frozenset[str]] = field(default_factory=dict)

    def blocks(self) -> Iterator[Table]:
        """Blocks of the chosen columns, in which rare categories are one."""
        return merged(self._as_read(), self.kept) if self.kept else self._as_read()

    def merge_rare(self, rare: float, skip: Sequence[str]) -> None:
        """Count categories, and from here on merge those with a smaller share of the rows."""
        labels = Labels(self.blocks(), skip=skip)
        self.kept |= labels.kept(rare)
        if self.kept:
            note(labels.note(self.kept))

    def _as_read(self) -> Iterator[Table]:
        types = self.file.dtypes()
        dtypes = {name: types[name] for name in self.columns}
        first = 0
        # the last task may take several passes
        for block in read_blocks(self.file, self.tasks.pop(0) if len(self.tasks) > 1 else self.tasks[0]):
            table = read_table(self.file.frame(block, dtypes))
            number = np.arange(first, first + table.n_rows)
            first += table.n_rows
            yield table if self.fold is None else table.rows(number % self.fold[1] != self.fold[0])


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


def plain_model(model: JointEstimator | JUPAD | JointClassifier) -> ClassModel | JointDensity:
    """What a model file holds of a fit."""
    density = plain_density(model.density_)
    if not isinstance(model, JointClassifier):
        return density
    return ClassModel(density, model.target_name_)


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
