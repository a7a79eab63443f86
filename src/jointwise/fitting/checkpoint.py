"""Checkpoints: the state of a fit in a file, from which the same fit goes on after a stop.

A fit is a sequence of stages. Each stage writes its state to the checkpoint, and looks there first when it begins. The
state of the random generator is kept too, so that a resumed fit draws the same numbers. The file has the format of
`jointwise.joint.serialization` with another first line: nothing in it is executed, and a stop at any moment leaves the
old file or the new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from os import fspath
from pathlib import Path
from reprlib import repr as short
from tempfile import TemporaryFile
from typing import Any, TypeVar

import numpy as np

from jointwise._checks import MALFORMED, cause
from jointwise._files import target
from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, InputError, StorageError
from jointwise.fitting.atoms import Learned, with_atoms
from jointwise.joint.serialization import Form, digest, read, write
from jointwise.rows.base import Rows
from jointwise.solvers import Factors, Reached, RowsProblem
from jointwise.solvers.accelerated import EMState

# Seconds between two writes while a stage runs. A write takes milliseconds.
INTERVAL = 5.0
# The version rises with any change of the layout below, or of a fit that would make it go on differently.
FORM = Form("checkpoint", b"JW-RESUME\n", 4)
ADVICE = "Delete the file, or give `checkpoint` another path."
# Rows whose codes identify a table, besides the counts of its bins.
SAMPLED_ROWS = 4096
# Largest rounding error of numbers that should sum to one.
SUM_TOLERANCE = 1e-6
# Options that identify a fit from coded rows: its result depends on them.
IDENTIFYING = (
    "n_components", "beta", "n_models", "dictionaries", "learn_dictionary", "n_init", "max_iter", "tol", "device",
    "random_state",
)  # fmt: skip

T = TypeVar("T")


class Checkpoint:
    """The state of a fit, kept in a file.

    Parameters
    ----------
    path : Path, optional
        The file; if it exists, the fit goes on from there. Without a path nothing is kept.
    fit : mapping
        Identifies the fit: plain values under "parameters" and "table"; see `open_checkpoint`.
    rng : numpy.random.Generator
        The fit's own generator; its state is restored from the file.

    Examples
    --------
    A fit stops after its first stage, and goes on:

    >>> import tempfile
    >>> fit = {"parameters": {"n_components": 2}, "table": {"columns": "a, b"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fit.checkpoint"
    ...     first = Checkpoint(path, fit, np.random.default_rng(0))
    ...     first.keep("choice", {"beta": 3.0})
    ...     first.flush()
    ...     again = Checkpoint(path, fit, np.random.default_rng(1))
    ...     again.find("choice", lambda stage: stage["beta"])
    3.0
    """

    def __init__(
        self,
        path: Path | None = None,
        fit: Mapping[str, Mapping[str, Any]] | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        self._path = path
        self._rng = rng or np.random.default_rng()
        self._content: dict[str, Any] = {"fit": fit or {}, "stages": {}}
        self._written, self._pending = time.monotonic(), False
        if path is None:
            return
        if path.exists():
            self._content, differences = _read(path, lambda content: self._restored(content, fit or {}))
            if differences:
                raise InputError(
                    f"{path} is the checkpoint of another fit: {'; '.join(differences)}. Fit as before to go on from "
                    "it, delete it, or give `checkpoint` another path."
                )
        else:
            self._keep_generator()
            self.flush()

    @property
    def is_kept(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def find(self, stage: str, build: Callable[[Any], T]) -> T | None:
        """Return the state of a stage, converted by ``build``; None if there is none."""
        if self._path is None or stage not in self._content["stages"]:
            return None
        try:
            return build(self._content["stages"][stage])
        except MALFORMED as error:
            raise FileFormatError(
                f"{self._path} is not a valid jointwise {FORM.name}: {cause(error)}. {ADVICE}"
            ) from error

    def keep(self, stage: str, content: Mapping[str, Any], *, draws_again: bool = False) -> None:
        """Keep the state of a stage, and write the file if the last write was long ago.

        Parameters
        ----------
        stage : str
        content : mapping
            A tree of dicts, lists, plain values and float arrays, which must not change afterwards.
        draws_again : bool
            Whether the stage repeats its random draws when it goes on. The state of the generator is then not updated.
        """
        if self._path is None:
            return
        self._content["stages"][stage] = content
        if not draws_again:
            self._keep_generator()
        self._pending = True
        if time.monotonic() - self._written >= INTERVAL:
            self.flush()

    def flush(self) -> None:
        """Write the file, if anything has changed since the last write."""
        if self._path is None or not self._pending:
            return
        try:
            write(self._path, self._content, FORM)
        except OSError as error:
            raise StorageError(
                f"The checkpoint {self._path} could not be written: {error}. Give `checkpoint` a path in a folder that "
                "can be written and has room."
            ) from error
        self._written, self._pending = time.monotonic(), False

    def remove(self) -> None:
        """Delete the file, at the end of the fit."""
        if self._path is not None:
            target(self._path).unlink(missing_ok=True)

    def section(self, name: str, rng: np.random.Generator) -> Checkpoint:
        """Return the part of this checkpoint that belongs to one of several fits, with a generator of its own.

        Parameters
        ----------
        name : str
        rng : numpy.random.Generator
            Of that fit; its state is restored from the file.
        """
        return _Section(self, name, rng)

    def _keep_generator(self) -> None:
        self._content["rng"] = self._rng.bit_generator.state
        self._pending = True

    def _restored(self, content: dict[str, Any], fit: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Restore the generator; return the content of a file and how its fit differs from this one."""
        if set(content) != {"fit", "stages", "rng"} or not isinstance(content["stages"], dict):
            raise FileFormatError("it must hold a fit, its stages and the generator")
        differences = _differences(content["fit"], fit)
        self._rng.bit_generator.state = content["rng"]
        return content, differences


class _Section(Checkpoint):
    """The stages of one of several fits, which stay in the file until all of them are done."""

    def __init__(self, whole: Checkpoint, name: str, rng: np.random.Generator) -> None:
        self._whole, self._name, self._rng = whole, name, rng
        state = whole.find(f"{name}/generator", dict)
        if state is not None:
            rng.bit_generator.state = state

    @property
    def is_kept(self) -> bool:
        """Whether there is a file."""
        return self._whole.is_kept

    def find(self, stage: str, build: Callable[[Any], T]) -> T | None:
        """Return the state of a stage, converted by ``build``; None if there is none."""
        return self._whole.find(f"{self._name}/{stage}", build)

    def keep(self, stage: str, content: Mapping[str, Any], *, draws_again: bool = False) -> None:
        """Keep the state of a stage; see `Checkpoint.keep`."""
        if not draws_again:
            self._whole.keep(f"{self._name}/generator", self._rng.bit_generator.state, draws_again=True)
        self._whole.keep(f"{self._name}/{stage}", content, draws_again=True)

    def flush(self) -> None:
        """Write the file, if anything has changed since the last write."""
        self._whole.flush()

    def remove(self) -> None:
        """Leave the file to the other fits."""

    def section(self, name: str, rng: np.random.Generator) -> Checkpoint:
        """Return a part of this part."""
        return _Section(self._whole, f"{self._name}/{name}", rng)


class ModelRecord:
    """The state of one model of a fit: that of EM, then that of the atoms being learned.

    Parameters
    ----------
    checkpoint : Checkpoint
    stage : str
        Name of the model's stage.
    """

    def __init__(self, checkpoint: Checkpoint, stage: str) -> None:
        self._checkpoint = checkpoint
        self._stage = stage
        self._content: dict[str, Any] = checkpoint.find(stage, dict) or {}

    def of_part(self, n_rows: int) -> ModelRecord:
        """Return the record of the same model on a part of ``n_rows`` rows."""
        return ModelRecord(self._checkpoint, f"{self._stage} on {n_rows} rows")

    def begun(self, problem: RowsProblem, n_components: int) -> Factors | None:
        """Return the start of the model; None if it has not begun."""
        if "start" not in self._content:
            return None
        return self._checkpoint.find(
            self._stage,
            lambda content: Factors.at(_checked_point(content["start"], problem.slices, n_components), problem.slices),
        )

    def begin(self, start: Factors) -> None:
        """Keep the start of the model."""
        self._content = {"start": start.point}
        self._keep()

    def reached(self, problem: RowsProblem, n_components: int) -> Reached[EMState] | None:
        """Return the last state of EM; None if it has not begun."""
        if set(self._content) == {"start"}:
            return None
        return self._checkpoint.find(
            self._stage, lambda content: _reached_from_dict(content["em"], problem.slices, n_components)
        )

    def learned(self, start: Learned, axes: Sequence[Axis]) -> Learned:
        """Return the last state of learning atoms; ``start`` if that has not begun."""
        if "learned" not in self._content:
            return start
        found = self._checkpoint.find(self._stage, lambda content: _learned_from_dict(content["learned"], start, axes))
        return found or start

    def on_state(self, reached: Reached[EMState]) -> None:
        """Keep the state of EM."""
        self._keep(em=_reached_to_dict(reached))

    def on_round(self, learned: Learned) -> None:
        """Keep the state of learning atoms."""
        self._keep(learned=_learned_to_dict(learned))

    def flush(self) -> None:
        """Write the file, if anything has changed since the last write."""
        self._checkpoint.flush()

    def _keep(self, **content: Any) -> None:
        self._content = {**self._content, **content}
        # seeds of models are drawn again, so the generator stays at its first state
        self._checkpoint.keep(self._stage, self._content, draws_again=True)


def check_checkpoint(path: Any) -> Path:
    """Return the path of a checkpoint; raise at once if it cannot be written or read."""
    try:
        place = Path(fspath(path))
    except TypeError as error:
        raise InputError(f"`checkpoint` must be the path of a file, or None; got {path!r}.") from error
    if place.exists() and not place.is_file():
        raise InputError(f"`checkpoint` must be the path of a file; {place} is something else.")
    try:
        with TemporaryFile(dir=target(place).parent):
            pass
    except OSError as error:
        raise StorageError(
            f"No checkpoint could be written in {place.parent}: {error}. Give `checkpoint` a path in a folder that "
            "exists and can be written."
        ) from error
    if place.exists():
        _read(place, dict)
    return place


def open_checkpoint(
    rows: Rows, options: Any, rng: np.random.Generator, identifying: Sequence[str] = IDENTIFYING
) -> Checkpoint:
    """Return the checkpoint of a fit; without a path, one that keeps nothing.

    Parameters
    ----------
    rows : Rows
    options : Options, or those of another kind of fit
    rng : numpy.random.Generator
    identifying : sequence of str
        Names of the options that the result depends on.
    """
    if options.checkpoint is None:
        return Checkpoint()
    parameters = {name: _plain(getattr(options, name)) for name in identifying}
    return Checkpoint(Path(options.checkpoint), {"parameters": parameters, "table": _table_identity(rows)}, rng)


def _plain(value: Any) -> Any:
    """Return an option as a plain value: dictionaries by their digest, a generator as None."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Mapping):
        return {str(name): digest(given.to_dict()) for name, given in value.items()}
    return None


def _table_identity(rows: Rows) -> dict[str, Any]:
    """Return what identifies a table: its columns, their bins, the number of rows and their cells."""
    some = rows.take(np.unique(np.linspace(0, len(rows) - 1, min(len(rows), SAMPLED_ROWS)).astype(np.int64)))
    weights = np.ones(len(some)) if some.weights is None else some.weights
    by_name = np.argsort(rows.schema.names)  # rows that differ may put the columns in another order
    return {
        "columns": digest({"variables": [rows.schema.variables[n].to_dict() for n in by_name]}),
        "bins": digest({"axes": [rows.axes[n].to_dict() for n in by_name]}),
        "rows": len(rows),
        "cells": digest(
            {"margins": list(rows.column_counts), "some": np.asarray(some.codes, np.float64), "weights": weights}
        ),
    }


def _differences(before: Any, now: Mapping[str, Any]) -> list[str]:
    """Return the differences between two fits in words, parameters first."""
    old, new = before["parameters"], now["parameters"]
    found = [_difference(key, old[key], new[key]) for key in new if old[key] != new[key]]
    sentences = {
        "columns": "the table has other columns, or columns of other kinds, categories or ranges",
        "bins": "its columns have other bins",
        "rows": "it has another number of distinct rows",
        "cells": "its rows hold other values",
    }
    other = [sentences[key] for key in now["table"] if before["table"][key] != now["table"][key]]
    return found + other[:1]  # the others follow from the first


def _difference(name: str, old: Any, new: Any) -> str:
    if isinstance(old, Mapping) or isinstance(new, Mapping):
        return f"`{name}` has changed"
    return f"`{name}` was {short(old)} and is {short(new)}"


def _reached_to_dict(reached: Reached[EMState]) -> dict[str, Any]:
    state = reached.state
    return {
        "point": state.point,
        "update": state.update,
        "objective": state.objective,
        "decreases": list(state.decreases),
        "history": np.array(reached.history),
    }


def _reached_from_dict(data: Mapping[str, Any], slices: Sequence[slice], n_components: int) -> Reached[EMState]:
    point, update = (_checked_point(data[key], slices, n_components) for key in ("point", "update"))
    last, before = (float(number) for number in data["decreases"])
    state = EMState(point, float(data["objective"]), update, (last, before))
    return Reached(state, _history(data["history"]))


def _learned_to_dict(learned: Learned) -> dict[str, Any]:
    return {
        "dictionaries": [d.to_dict() for d in learned.dictionaries],
        "point": learned.factors.point,
        "history": np.array(learned.history),
    }


def _learned_from_dict(data: Mapping[str, Any], start: Learned, axes: Sequence[Axis]) -> Learned:
    atoms = tuple(Dictionary.from_dict(d) for d in data["dictionaries"])
    if [d.n_atoms for d in atoms] != [d.n_atoms for d in start.dictionaries]:
        raise FileFormatError("its learned dictionaries must have as many atoms as the ones they started from")
    # atoms that are single values are not learned, and models share them
    atoms = tuple(old if old.is_identity else new for old, new in zip(start.dictionaries, atoms, strict=True))
    problem = with_atoms(start.problem, atoms, axes)
    point = _checked_point(data["point"], problem.slices, start.factors.n_components)
    return Learned(atoms, problem, Factors.at(point, problem.slices), _history(data["history"]))


def _checked_point(point: Any, slices: Sequence[slice], n_components: int) -> FloatArray:
    """Return a point if its first row, the weights, and the columns of each stacked B_n are on the simplex."""
    shape = 1 + slices[-1].stop, n_components
    if not isinstance(point, np.ndarray) or point.shape != shape:
        raise FileFormatError(f"a point must have the shape {shape}, not {short(np.shape(point))}")
    sums = [point[0].sum(), *np.add.reduceat(point[1:], [rows.start for rows in slices], axis=0).ravel()]
    if not (np.all(point >= 0) and np.allclose(sums, 1.0, rtol=0, atol=SUM_TOLERANCE)):
        raise FileFormatError("a point must hold weights and coefficients that sum to one")
    return point


def _history(history: Any) -> tuple[float, ...]:
    if not isinstance(history, np.ndarray) or history.ndim != 1:
        raise FileFormatError("a history must be an array of numbers")
    return tuple(history.tolist())


def _read(path: Path, build: Callable[[dict[str, Any]], T]) -> T:
    try:
        return read(path, build, FORM)
    except FileFormatError as error:
        raise FileFormatError(f"{error} {ADVICE}") from error
    except OSError as error:
        raise StorageError(f"The checkpoint {path} could not be read: {error}. {ADVICE}") from error
