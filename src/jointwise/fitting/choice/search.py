"""Dictionaries, number of components and strength of the prior, by held-out likelihood of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as short
from typing import Any, Literal

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError
from jointwise.fitting.atoms import Learned, learn_atoms
from jointwise.fitting.choice.dictionaries import Models, dictionary_options, split_counts
from jointwise.fitting.rows import MANY_COMPONENTS, held_out_gain, likelihood_problem
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Factors, RowsEM, RowsProblem, Solution, solve, start_around

# What is tried: strengths of the prior, in rows, and numbers of components; the search begins in the middle.
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 8.0, 16.0, 30.0)
RANKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
FIRST_STRENGTH, FIRST_RANK = 3.0, 8
# A component needs more rows than this to be told from noise.
ROWS_PER_COMPONENT = 5
# Nats per row for which it is worth to go on.
LEAST_GAIN = 1e-4
# How thoroughly: on so many rows, a table under `SMALL_TABLE` rows three times over.
SEARCH_ROWS, SMALL_TABLE = 20_000, 4_000
SEARCH_TOL, SEARCH_STEPS = 1e-4, 20
# Learning atoms takes longer than all else, so it must gain more, in nats per row.
LEARNING_GAIN = 1e-3
# Smaller tables overfit learned atoms, and cannot tell families of atoms apart.
LARGE_TABLE = 2_000
# Larger tables bear more components: their number grows with this power of the rows.
GROWTH = 0.3


@dataclass(frozen=True)
class Choice:
    """What to fit.

    Parameters
    ----------
    models : tuple of tuples of Dictionary
        One dictionary per variable for each of the models to be averaged.
    n_components : int
        Number of components of each model at its start.
    beta : float
        Strength of the prior.
    learn_dictionary : bool
        Whether to learn locations and scales of the atoms too.
    held_out : float, optional
        Mean log-likelihood of the bins of held-out rows; None where nothing was left to choose.
    independence : float, optional
        The same if the columns were independent.
    """

    models: Models
    n_components: int
    beta: float
    learn_dictionary: bool = False
    held_out: float | None = None
    independence: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a plain form; a dictionary that several models share is written once."""
        distinct = list({id(d): d for model in self.models for d in model}.values())
        number = {id(d): i for i, d in enumerate(distinct)}
        return {
            "dictionaries": [d.to_dict() for d in distinct],
            "models": [[number[id(d)] for d in model] for model in self.models],
            "n_components": int(self.n_components),
            "beta": float(self.beta),
            "learn_dictionary": bool(self.learn_dictionary),
            "held_out": None if self.held_out is None else float(self.held_out),
            "independence": None if self.independence is None else float(self.independence),
        }

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        rows: Rows,
        n_models: int,
        *,
        ranks: Sequence[int],
        strengths: Sequence[float],
    ) -> Choice:
        """Read what `to_dict` wrote, and check that it is a choice that `choose_model` could have made."""
        distinct = [Dictionary.from_dict(d) for d in data["dictionaries"]]
        models = tuple(tuple(distinct[number] for number in model) for model in data["models"])
        if len(models) != n_models:
            raise FileFormatError(f"it must choose {n_models} models, not {len(models)}")
        for model in models:
            for dictionary, axis, counts in zip(model, rows.axes, rows.column_counts, strict=True):
                if not dictionary.masses(axis)[counts > 0].any(axis=1).all():
                    raise FileFormatError("it must choose atoms that reach every row")
        n_components, beta = data["n_components"], float(data["beta"])
        if type(n_components) is not int or not 1 <= n_components <= max(ranks) or beta not in strengths:
            raise FileFormatError(f"it cannot choose {short(n_components)} components and beta={short(beta)}")
        held_out, independence = (None if (v := data[k]) is None else float(v) for k in ("held_out", "independence"))
        return cls(models, n_components, beta, data["learn_dictionary"] is True, held_out, independence)


# Held-out scores by set of dictionaries, number of components, strength of the prior and whether atoms are learned.
Scores = dict[tuple[int, int, float, bool], float]


def scores_to_dict(scores: Scores) -> dict[str, Any]:
    """Return a plain form of scores."""
    return {"scores": [[*map(float, key), float(score)] for key, score in scores.items()]}


def scores_from_dict(data: Mapping[str, Any]) -> Scores:
    """Read what `scores_to_dict` wrote.

    >>> scores_from_dict(scores_to_dict({(0, 8, 3.0, False): -1.5}))
    {(0, 8, 3.0, False): -1.5}
    """
    return {
        (int(float(option)), int(float(rank)), float(strength), bool(learn)): float(score)
        for option, rank, strength, learn, score in data["scores"]
    }


def choose_model(
    rows: Rows,
    given: Mapping[str, Dictionary],
    rng: np.random.Generator,
    *,
    n_models: int,
    ranks: Sequence[int] = RANKS,
    strengths: Sequence[float] = STRENGTHS,
    learn_dictionary: bool | Literal["auto"] = "auto",
    scores: Scores | None = None,
    on_score: Callable[[Scores], None] | None = None,
) -> Choice:
    """Dictionaries, number of components and strength of the prior, by held-out likelihood of rows.

    Number and strength are found uphill from the middle of their ladders, on the dictionaries that fit the margins
    best: weak dependence wants few components and a strong prior, strong dependence the opposite. There the other sets
    of dictionaries are tried, and the best set goes on uphill. One component is independence.

    Parameters
    ----------
    rows : Rows
        In canonical order, for a choice that does not depend on the order of rows.
    given : mapping of names to Dictionary
        Dictionaries that are not to be chosen.
    rng : numpy.random.Generator
        Deals rows to folds and draws starts.
    n_models : int
        Number of models to be averaged.
    ranks, strengths : sequences of numbers
        The ladders, rising; a single rung where the value is given.
    learn_dictionary : bool or "auto"
        "auto" is where held-out rows gain, of tables with at least `LARGE_TABLE`.
    scores : dict, optional
        Scores that are known from an earlier search which began with the same generator.
    on_score : callable, optional
        Called with all scores after each that was computed.
    """
    is_large = len(rows) >= LARGE_TABLE
    options = dictionary_options(rows, given, rng, n_models, families=is_large)
    may_learn = is_large and learn_dictionary == "auto"
    if len(rows.axes) == 1 or (len(options) * len(ranks) * len(strengths) == 1 and not may_learn):
        return Choice(options[0], ranks[0], strengths[0], learn_dictionary is True)
    folds = _row_folds(rows, rng)
    if not folds:  # one row
        return Choice(options[0], ranks[0], strengths[-1])
    seed = int(rng.integers(2**32))
    scores = {} if scores is None else scores
    searches = [
        _Search(folds, option[0], ranks, strengths, seed, _Book(number, scores, on_score))
        for number, option in enumerate(options)
    ]
    score, rank, beta = searches[0].climb(FIRST_RANK, FIRST_STRENGTH)
    best = int(np.argmax([search.held_out(rank, beta) for search in searches]))
    if best > 0:
        score, rank, beta = searches[best].climb(rank, beta)
    learn = learn_dictionary is True
    if may_learn and rank > 1:
        learned = searches[best].held_out(rank, beta, learn=True)
        learn = learned > score + LEARNING_GAIN
        score = learned if learn else score
    if len(ranks) > 1 and rank > 1 and len(rows) > SEARCH_ROWS:
        rank = min(round(rank * (len(rows) / SEARCH_ROWS) ** GROWTH), max(ranks))
    return Choice(options[best], rank, beta, learn, score, searches[best].independence)


@dataclass(frozen=True)
class _Book:
    """The scores of one set of dictionaries, each computed at most once."""

    option: int
    scores: Scores
    on_score: Callable[[Scores], None] | None

    def score(self, rank: int, strength: float, learn: bool, compute: Callable[[], float]) -> float:
        key = self.option, rank, strength, learn
        if key not in self.scores:
            self.scores[key] = compute()
            if self.on_score is not None:
                self.on_score(self.scores)
        return self.scores[key]


class _Search:
    """Held-out log-likelihood over numbers of components and strengths of the prior, each computed at most once."""

    def __init__(
        self,
        folds: list[tuple[CodedRows, CodedRows]],
        dictionaries: Sequence[Dictionary],
        ranks: Sequence[int],
        strengths: Sequence[float],
        seed: int,
        book: _Book,
    ) -> None:
        self._dictionaries = tuple(dictionaries)
        self._folds = [(part, likelihood_problem(rest, dictionaries, 0.0)) for part, rest in folds]
        self._n_rows = sum(part.n_rows for part, _ in folds)
        most = max(min(rest.n_rows for _, rest in folds) / ROWS_PER_COMPONENT, 1)
        self._ranks = [rank for rank in ranks if rank <= most] or [min(ranks)]
        self._strengths = strengths
        self._seed = seed
        self._book = book
        self.independence = sum(_margins(part, problem) for part, problem in self._folds) / self._n_rows

    def climb(self, rank: int, strength: float) -> tuple[float, int, float]:
        """Return the highest score found uphill from a place, with its number of components and strength."""
        at = _position(self._ranks, rank), _position(self._strengths, strength)
        while True:
            best = max(((at[0], at[1] + 1), (at[0], at[1] - 1)), key=self._score)
            if not self._gains(best, at):
                best = max(((at[0] + 1, at[1]), (at[0] - 1, at[1])), key=self._score)
            if not self._gains(best, at):
                break
            at = best
        if self._ranks[0] == 1 and not self._gains(at, (0, at[1])):
            at = 0, at[1]
        return self._score(at), self._ranks[at[0]], self._strengths[at[1]]

    def _gains(self, new: tuple[int, int], old: tuple[int, int]) -> bool:
        return self._score(new) > self._score(old) + LEAST_GAIN

    def _score(self, at: tuple[int, int]) -> float:
        rank, strength = at
        if not (0 <= rank < len(self._ranks) and 0 <= strength < len(self._strengths)):
            return -np.inf
        return self.held_out(self._ranks[rank], self._strengths[strength])

    def held_out(self, rank: int, strength: float, *, learn: bool = False) -> float:
        """Mean log-likelihood of the bins of held-out rows, after short runs on the others."""
        if rank == 1:
            return self.independence
        return self._book.score(rank, strength, learn, lambda: self._run(rank, strength, learn=learn))

    def _run(self, rank: int, strength: float, *, learn: bool) -> float:
        total = 0.0
        for k, (part, rest) in enumerate(self._folds):
            problem = replace(rest, beta=strength)
            factors = short_run(problem, rank, np.random.default_rng(self._seed + k))
            fitted = Learned(self._dictionaries, problem, factors)
            if learn:
                fitted = learn_atoms(fitted, part.axes, tol=SEARCH_TOL)
            total += held_out_gain(fitted.problem, fitted.factors, part) + _margins(part, fitted.problem)
        return total / self._n_rows


def short_run(problem: RowsProblem, rank: int, rng: np.random.Generator, n_starts: int = 1) -> Factors:
    """Factors after a few steps, from the best of some starts: enough to compare choices by."""
    runs: list[Solution[Factors]] = [
        solve(RowsEM(start_around(problem.margins, rank, rng), tol=SEARCH_TOL), problem, max_steps=SEARCH_STEPS)
        for _ in range(n_starts)
    ]
    return min(runs, key=lambda run: float(run.history[-1])).value


def short_fit(rows: Rows, choice: Choice, rng: np.random.Generator, n_starts: int) -> Learned:
    """Fit the first of the models that were chosen in a few steps: enough to see what such a model is like."""
    dictionaries = choice.models[0]
    problem = likelihood_problem(rows, dictionaries, choice.beta)
    rank = 1 if len(dictionaries) == 1 else choice.n_components
    few = min(n_starts, int(np.ceil(MANY_COMPONENTS / rank)))
    fitted = Learned(tuple(dictionaries), problem, short_run(problem, rank, rng, 1 if rank == 1 else few))
    return learn_atoms(fitted, rows.axes, tol=SEARCH_TOL) if choice.learn_dictionary and rank > 1 else fitted


def _position(ladder: Sequence[float], value: float) -> int:
    """Position of the rung nearest to a value."""
    return int(np.argmin([abs(rung - value) for rung in ladder]))


def _row_folds(rows: Rows, rng: np.random.Generator) -> list[tuple[CodedRows, CodedRows]]:
    """Pairs of held-out and training rows: one of three parts each for small tables, one quarter for large ones."""
    n = len(rows)
    sample = rows.take(np.sort(rng.choice(n, SEARCH_ROWS, replace=False)) if n > SEARCH_ROWS else np.arange(n))
    weights = np.ones(len(sample)) if sample.weights is None else sample.weights
    folds = [(sample.with_weights(part), sample.with_weights(rest)) for part, rest in fold_weights(weights, n, rng)]
    return [(part, rest) for part, rest in folds if len(part) and len(rest)]


def fold_weights(weights: FloatArray, n_rows: int, rng: np.random.Generator) -> list[tuple[FloatArray, FloatArray]]:
    """Weights of held-out and of training rows, for each fold of a sample of so many rows."""
    small = n_rows < SMALL_TABLE
    parts = split_counts(weights, 3 if small else 4, rng).T
    return [(part, weights - part) for part in (parts if small else parts[:1])]


def _margins(part: CodedRows, problem: RowsProblem) -> float:
    """Log-likelihood of the bins of ``part`` if the columns were independent."""
    counts = np.concatenate([part.marginal(n) for n in range(len(part.axes))])
    return float(counts @ np.log(problem.bin_margins))
