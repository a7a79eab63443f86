"""Choice and Fit: what a fit has chosen, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as short
from typing import Any

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError
from jointwise.fitting.options import Options
from jointwise.joint.check import Check
from jointwise.joint.density import JointDensity
from jointwise.rows.base import Rows
from jointwise.solvers import Solution, Status
from jointwise.tables.variables import Schema

# One dictionary per variable, for each of the models that are averaged.
Models = tuple[tuple[Dictionary, ...], ...]


@dataclass(frozen=True)
class Choice:
    """What is fitted.

    Parameters
    ----------
    models : tuple of tuples of Dictionary
        One dictionary per variable for each of the models to be averaged.
    n_components : int
        Number of components of each model at its start.
    beta : float, optional
        Strength of the prior; None from pairs, which have none.
    learn_dictionary : bool
        Whether to learn locations and scales of the atoms too.
    held_out : float, optional
        Mean log-likelihood of the bins of held-out rows; None where there was nothing to choose.
    independence : float, optional
        The same if the columns were independent.
    """

    models: Models
    n_components: int
    beta: float | None = None
    learn_dictionary: bool = False
    held_out: float | None = None
    independence: float | None = None

    def reordered(self, order: Sequence[int] | IntArray) -> Choice:
        """Return the choice for the same columns in another order."""
        return replace(self, models=tuple(tuple(model[n] for n in order) for model in self.models))

    def to_dict(self) -> dict[str, Any]:
        """Return a plain form; a dictionary that several models share is written once."""
        distinct = list({id(d): d for model in self.models for d in model}.values())
        number = {id(d): i for i, d in enumerate(distinct)}
        return {
            "dictionaries": [d.to_dict() for d in distinct],
            "models": [[number[id(d)] for d in model] for model in self.models],
            "n_components": int(self.n_components),
            "beta": None if self.beta is None else float(self.beta),
            "learn_dictionary": bool(self.learn_dictionary),
            "held_out": None if self.held_out is None else float(self.held_out),
            "independence": None if self.independence is None else float(self.independence),
        }

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], rows: Rows, n_models: int, numbers: Sequence[int], betas: Sequence[float]
    ) -> Choice:
        """Read what `to_dict` wrote, and check that it could have been chosen for these rows.

        Parameters
        ----------
        data : mapping
        rows : Rows
        n_models : int
        numbers, betas : sequences of numbers
            Numbers of components and strengths of the prior that the choice was made from.
        """
        distinct = [Dictionary.from_dict(d) for d in data["dictionaries"]]
        models = tuple(tuple(distinct[number] for number in model) for model in data["models"])
        if not 1 <= len(models) <= n_models:
            raise FileFormatError(f"it must choose up to {n_models} models, not {len(models)}")
        for model in models:
            for dictionary, axis, counts in zip(model, rows.axes, rows.column_counts, strict=True):
                if not dictionary.mixed_masses(axis, np.ones((dictionary.n_atoms, 1)))[counts > 0].all():
                    raise FileFormatError("it must choose atoms that reach every row")
        n_components, beta = data["n_components"], float(data["beta"])
        if type(n_components) is not int or not 1 <= n_components <= max(numbers) or beta not in betas:
            raise FileFormatError(f"it cannot choose {short(n_components)} components and beta={short(beta)}")
        held_out, independence = (None if (v := data[k]) is None else float(v) for k in ("held_out", "independence"))
        return cls(models, n_components, beta, data["learn_dictionary"] is True, held_out, independence)


class Ended:
    """How the last runs of a fit ended.

    Attributes
    ----------
    final : tuple of Solution
        Those whose answer the density is, or is the average of.
    """

    final: tuple[Solution[Any], ...]

    @property
    def unfinished(self) -> Solution[Any] | None:
        """The last run that stopped before it met its tolerance; None where all met it."""
        return next((stage for stage in reversed(self.final) if not stage.converged), None)

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C ended the fit early."""
        return any(stage.status is Status.INTERRUPTED for stage in self.final)


@dataclass(frozen=True)
class Fit(Ended):
    """A fitted density, what was chosen for it, and how each stage of the fit went.

    Parameters
    ----------
    density : JointDensity
    options : Options
        What was asked for.
    choice : Choice
        What was chosen.
    axes : tuple of Axis
        The bins on which it was fitted.
    n_rows : float
        Number of rows, or the sum of their weights.
    stages : mapping of str to Solution
        In the order they ran.
    final : tuple of Solution
        Those whose answer the density is, or is the average of; empty where there was nothing to solve.
    gain : float, optional
        Log-likelihood of a training row beyond that of independence, in nats; None from pairs.
    check : Check, optional
        How a model like this one answers questions about rows it has not seen.
    counts : tuple of arrays of shape (n_bins,)
        Rows in each bin of each column.
    """

    density: JointDensity
    options: Options
    choice: Choice
    axes: tuple[Axis, ...]
    n_rows: float
    stages: Mapping[str, Solution[Any]]
    final: tuple[Solution[Any], ...] = ()
    gain: float | None = None
    check: Check | None = None
    counts: tuple[FloatArray, ...] = ()

    @property
    def level_counts(self) -> dict[str, FloatArray]:
        """Rows at each level of each categorical column, by name."""
        return level_counts(self.density.schema, self.counts)


def level_counts(schema: Schema, counts: Sequence[FloatArray]) -> dict[str, FloatArray]:
    """Return the rows at each level of each categorical column, by name.

    Parameters
    ----------
    schema : Schema
    counts : sequence of arrays of shape (n_bins,)
        Rows in each bin of each column.
    """
    return {v.name: c for v, c in zip(schema, counts, strict=True) if v.categories is not None}
