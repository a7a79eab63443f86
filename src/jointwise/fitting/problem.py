"""From counts and dictionaries to the problems that solvers take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._checks import listed
from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.dictionary import Dictionary
from jointwise.engines.atoms import Masses, Places
from jointwise.exceptions import InputError
from jointwise.fitting.possible import UNMET_ROWS
from jointwise.fitting.result import Models
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.rows.base import Rows
from jointwise.solvers import PairwiseProblem, RowsProblem, simplex_weights

# Rows spread evenly over the atoms of a margin, in units of the counts' noise, the root of n.
SMOOTHING = 0.15


def smoothing_rows(n_rows: float) -> float:
    """Rows spread evenly over the atoms of a margin, so that it does not follow the noise of its counts."""
    return SMOOTHING * float(np.sqrt(n_rows))


def margin_prior(dictionary: Dictionary, n_rows: float) -> float:
    """Return the rows spread evenly over the atoms of a margin."""
    return UNMET_ROWS * dictionary.n_atoms if dictionary.is_identity else smoothing_rows(n_rows)


def rows_problem(rows: Rows, dictionaries: Sequence[Dictionary], beta: float) -> RowsProblem:
    """Return the atoms' masses on the axes, the margin of every column, and the rows."""
    return problem_of_masses(rows, all_masses(dictionaries, rows.axes), beta)


def all_masses(dictionaries: Sequence[Dictionary], axes: Sequence[Axis]) -> tuple[Masses, ...]:
    """Return the masses of each column's atoms on the bins of its axis."""
    return tuple(bin_masses(dictionary, axis) for dictionary, axis in zip(dictionaries, axes, strict=True))


def masses_of_models(models: Models, axes: Sequence[Axis]) -> list[tuple[Masses, ...]]:
    """Return the masses of the atoms of each model; those of all models of a column are computed in one call."""
    columns = [_masses_of_several(own, axis) for own, axis in zip(zip(*models, strict=True), axes, strict=True)]
    return list(zip(*columns, strict=True))


def _masses_of_several(dictionaries: Sequence[Dictionary], axis: Axis) -> list[Masses]:
    distinct = {id(d): d for d in dictionaries}
    if all(d.bins(axis) is None for d in distinct.values()):
        together = Dictionary(tuple(family for d in distinct.values() for family in d.families))
        ends = np.cumsum([d.n_atoms for d in distinct.values()])
        found: Sequence[Masses] = np.split(together.masses(axis), ends[:-1], axis=1)
    else:
        found = [bin_masses(d, axis) for d in distinct.values()]
    by_id = dict(zip(distinct, found, strict=True))
    return [by_id[id(d)] for d in dictionaries]


def problem_of_masses(rows: Rows, masses: tuple[Masses, ...], beta: float) -> RowsProblem:
    """Return the problem of rows with the masses of atoms on their axes."""
    margins = tuple(
        simplex_weights(d, rows.marginal(n), prior=0.0 if isinstance(d, Places) else smoothing_rows(rows.n_rows))
        for n, d in enumerate(masses)
    )
    return RowsProblem(masses, margins, rows.engine(), rows.n_rows, beta)


def bin_masses(dictionary: Dictionary, axis: Axis) -> Masses:
    """Return the masses of atoms on the bins of an axis; as the bins they lie in, where all are single values."""
    bins = dictionary.bins(axis)
    return dictionary.masses(axis) if bins is None else Places(bins, axis.n_bins)


def pairwise_problem(marginals: PairwiseMarginals, masses: Sequence[FloatArray]) -> PairwiseProblem:
    """Return the masses of all pairs, each divided by its number of rows and weighed by that number.

    Parameters
    ----------
    marginals : PairwiseMarginals
    masses : sequence of arrays of shape (n_bins, n_atoms)
        Of each column's atoms on its bins.
    """
    counts = {(j, k): marginals.pair(j, k) for j in range(len(masses)) for k in range(j + 1, len(masses))}
    rows = {pair: float(c.sum()) for pair, c in counts.items()}
    unseen = [tuple(marginals.schema.names[n] for n in pair) for pair, n_rows in rows.items() if n_rows == 0]
    if unseen:
        raise InputError(
            f"No row holds both values of {listed(unseen, 3)}, so pairs cannot tell how they depend on each other. "
            "Drop one column of each such pair, or add rows that hold both."
        )
    most = max(rows.values())
    return PairwiseProblem(
        tuple(masses),
        {pair: c / rows[pair] for pair, c in counts.items()},
        shares={pair: n / most for pair, n in rows.items()},
        margins=tuple(m / m.sum() for m in map(marginals.marginal, range(len(masses)))),
    )
