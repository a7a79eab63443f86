"""The dictionary of each variable, by cross-validated likelihood of its 1-D counts.

The paper designs dictionaries by looking at histograms. Here candidates are written down (families, numbers of
locations, scales tied to their distance), each is fitted to the counts of a variable's bins, and the one that predicts
held-out counts best is taken, or the smallest that does as well up to noise. It runs on bins, so its cost does not
grow with rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jointwise._checks import unknown_name
from jointwise._typing import FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.dictionary import Dictionary, innermost
from jointwise.engines.compiled_margins import held_out_of
from jointwise.engines.compiled_parts import locked
from jointwise.engines.threads import in_threads, n_cores
from jointwise.families import Gaussian, Laplace
from jointwise.fitting.choice.candidates import FAMILIES, as_given, candidate_dictionaries, narrow_atoms
from jointwise.fitting.choice.folds import split_counts
from jointwise.fitting.choice.pool import Candidates
from jointwise.fitting.counted import Counted
from jointwise.fitting.problem import smoothing_rows
from jointwise.fitting.result import Models
from jointwise.tables.variables import Schema, Variable

N_FOLDS = 5
# Fits that are only compared stop early: their likelihoods are then off by less than folds differ by chance. The gain
# is that of all rows: candidates are told apart by some standard errors, which shrink with the rows.
SELECTION_TOL, SELECTION_GAIN, SELECTION_STEPS = 1e-3, 0.015, 20
# Share of every atom mixed in when held-out bins are scored: a bin that only the fold has met is unlikely, not
# impossible.
TRACE = 1e-6
# Candidates are as good as the best if their held-out likelihood is within this many standard errors of it.
GOOD_ERRORS = 2.0


def choose_dictionaries(
    counted: Counted, given: Mapping[str, Dictionary], rng: np.random.Generator, *, slack: float = 1.0
) -> tuple[Dictionary, ...]:
    """One dictionary per variable: the one given by name, else the best of the candidates.

    Parameters
    ----------
    counted : PairwiseMarginals or Rows
    given : mapping of names to Dictionary
        A density given for an integer variable is put on the lattice.
    rng : numpy.random.Generator
        Deals the counts to folds.
    slack : float
        The smallest candidate within this many standard errors of the best is taken. Small dictionaries keep noise out
        of a fit from pairs; a fit with a prior can take the best (zero).
    """
    return tuple(
        d if isinstance(d, Dictionary) else d.smallest_good(slack) for d in _given_or_scored(counted, given, rng)
    )


def dictionary_options(
    counted: Counted, given: Mapping[str, Dictionary], rng: np.random.Generator, n_models: int, *, families: bool
) -> list[Models]:
    """Sets of dictionaries for rows to choose from: one dictionary per variable for each of several models.

    In the first set, the first model has the candidates that fit the margins best, and the other models have candidates
    about as good: models with different atoms err differently, so their average errs less. Then come a set with narrow
    atoms added and sets of one family each, because a margin may hide what a component looks like: its tails, its
    cusps, and how narrow it is.

    Parameters
    ----------
    counted : PairwiseMarginals or Rows
    given : mapping of names to Dictionary
        The same in every model.
    rng : numpy.random.Generator
        Deals the counts to folds.
    n_models : int
    families : bool
        Whether to offer sets of one family.
    """
    scored = _given_or_scored(counted, given, rng)
    first = _models(scored, n_models)
    options = [_all_sharpened(counted, given, first)]
    if families:
        of_one = ([d if isinstance(d, Dictionary) else d.of(f) for d in scored] for f in FAMILIES.values())
        options += [_models(chosen, n_models) for chosen in of_one]
    same = [all(a is b for a, b in zip(option[0], first[0], strict=True)) for option in options]
    return [first] + [option for option, is_first in zip(options, same, strict=True) if not is_first]


def _models(scored: Sequence[Dictionary | _Scored], n_models: int) -> Models:
    ranked = [[d] if isinstance(d, Dictionary) else d.good() for d in scored]
    return tuple(tuple(good[model % len(good)] for good in ranked) for model in range(n_models))


def _given_or_scored(
    counted: Counted, given: Mapping[str, Dictionary], rng: np.random.Generator
) -> list[Dictionary | _Scored]:
    check_given(given, counted.schema)
    columns: list[Dictionary | _Column] = []
    for n, (variable, axis) in enumerate(zip(counted.schema, counted.axes, strict=True)):
        if variable.name in given:
            columns.append(as_given(variable, given[variable.name]))
        else:
            columns.append(_Column.of(variable, axis, counted.marginal(n), rng))

    def scored(n: int) -> Dictionary | _Scored:
        column = columns[n]
        return column if isinstance(column, Dictionary) else column.scored()

    return in_threads(scored, len(columns), n_cores())


def check_given(given: Mapping[str, Dictionary], schema: Schema) -> None:
    """Raise if a dictionary is given for a variable that does not exist."""
    for name in given:
        if name not in schema.names:
            raise unknown_name("variable in dictionaries:", name, schema.names)


def _all_sharpened(counted: Counted, given: Mapping[str, Dictionary], models: Models) -> Models:
    """Return models with narrow atoms added to the dictionaries that were chosen and are densities."""
    narrow = [
        None if variable.name in given or d.is_identity else narrow_atoms(variable, axis, counted.marginal(n))
        for n, (variable, axis, d) in enumerate(zip(counted.schema, counted.axes, models[0], strict=True))
    ]
    return tuple(
        tuple(d if more is None else d + more for d, more in zip(model, narrow, strict=True)) for model in models
    )


@dataclass(frozen=True)
class _Scored:
    """Candidates of a variable with their held-out likelihood on each fold; shape (candidates, folds)."""

    candidates: Sequence[Dictionary]
    scores: FloatArray

    def smallest_good(self, slack: float) -> Dictionary:
        """The smallest candidate within ``slack`` standard errors of the best."""
        good = as_good_as_best(self.scores, slack) or range(len(self.candidates))
        return min((self.candidates[i] for i in good), key=lambda candidate: candidate.n_atoms)

    def of(self, family: type[Gaussian | Laplace]) -> _Scored:
        """The candidates whose grid is of one family; all if there are none."""
        chosen = [i for i, c in enumerate(self.candidates) if isinstance(innermost(c.families[0]), family)]
        return _Scored([self.candidates[i] for i in chosen], self.scores[chosen]) if chosen else self

    def good(self) -> list[Dictionary]:
        """The candidates that are as good as the best, best first."""
        good = as_good_as_best(self.scores, GOOD_ERRORS)
        return [self.candidates[i] for i in good] or [self.smallest_good(0.0)]


@dataclass(frozen=True)
class _Column:
    """Candidates of a variable, and its counts dealt to folds, shape (bins, folds); None where there is no choice."""

    candidates: Candidates
    axis: Axis
    folds: FloatArray | None

    @classmethod
    def of(cls, variable: Variable, axis: Axis, counts: FloatArray, rng: np.random.Generator) -> _Column:
        candidates = candidate_dictionaries(variable, axis, counts)
        return cls(candidates, axis, split_counts(counts, N_FOLDS, rng) if len(candidates) > 1 else None)

    def scored(self) -> _Scored:
        if self.folds is None:
            return _Scored(self.candidates, np.zeros((1, N_FOLDS)))
        mixtures = [self.candidates.atoms(i) for i in range(len(self.candidates))]
        return _Scored(self.candidates, held_out(self.candidates.pool.masses(self.axis), mixtures, self.folds))


def as_good_as_best(scores: FloatArray, slack: float) -> list[int]:
    """Positions of the candidates within ``slack`` standard errors of the best, best first; none if none is finite.

    The error is that of the difference to the best over folds, which is far smaller than that of a score itself.

    Parameters
    ----------
    scores : array of shape (candidates, folds)
    slack : float

    Examples
    --------
    >>> as_good_as_best(np.array([[1.0, 1.2, 0.9], [1.1, 1.1, 1.0], [0.1, 0.1, 0.1]]), 1.0)
    [1, 0]
    """
    usable = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not usable.size:
        return []
    ranked = usable[np.argsort(-scores[usable].mean(axis=1), kind="stable")]
    behind = scores[ranked[0]] - scores[ranked]
    error = behind.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    return [int(i) for i in ranked[behind.mean(axis=1) <= slack * error]]


def held_out(masses: FloatArray, mixtures: Sequence[IntArray], folds: FloatArray) -> FloatArray:
    """Mean log-likelihood of each fold under the weights fitted to the others; shape (mixtures, folds).

    A trace of every atom is mixed in: a bin that only the fold has met is then unlikely, not impossible.

    Parameters
    ----------
    masses : array of shape (I, L)
        Probability of each bin under each atom of any mixture.
    mixtures : sequence of arrays
        Positions of the atoms of each mixture.
    folds : array of shape (I, folds)
        Counts of bins.
    """
    met = folds.any(axis=1)  # other bins move nothing
    held = folds[met].T
    training = held.sum(axis=0) - held
    n_held, n_training, n_rows = held.sum(axis=1), training.sum(axis=1), folds.sum()
    scores = np.empty((len(mixtures), len(held)))
    held_out_of(
        locked(masses[met]),
        locked(np.concatenate(mixtures)),
        locked(np.cumsum([len(atoms) for atoms in mixtures])),
        locked(training / np.where(n_training > 0, n_training, 1.0)[:, None]),
        locked(held / np.where(n_held > 0, n_held, 1.0)[:, None]),
        locked(smoothing_rows(n_rows) / np.where(n_training > 0, n_training, 1.0)),
        SELECTION_TOL,
        SELECTION_GAIN / max(n_rows, 1.0),
        SELECTION_STEPS,
        TRACE,
        scores,
    )
    return scores
