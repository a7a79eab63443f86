"""Dictionaries, number of components and strength of the prior, by held-out likelihood of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise.dictionary import Dictionary
from jointwise.fitting.atoms import Learned, learn_atoms
from jointwise.fitting.average import held_out_gain
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.dictionaries import dictionary_options
from jointwise.fitting.choice.folds import SEARCH_ROWS, SMALL_TABLE, row_folds
from jointwise.fitting.options import Options
from jointwise.fitting.possible import UNMET_ROWS
from jointwise.fitting.problem import rows_problem
from jointwise.fitting.result import Choice
from jointwise.fitting.starts import MANY_COMPONENTS
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Factors, RowsEM, RowsProblem, Solution, solve, start_around
from jointwise.solvers.accelerated import LEAST_MASS

# What is tried: strengths of the prior, in rows, and numbers of components; the search begins in the middle.
BETAS = (0.1, 0.3, 1.0, 3.0, 8.0, 16.0, 30.0)
NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256)
FIRST_BETA, FIRST_NUMBER = 3.0, 8
# Largest number of rows, and how many models are averaged up to it: the fewer rows, the more there is to gain.
MODELS = ((10_000, 5), (50_000, 3))
# A component needs more rows than this to be told from noise.
ROWS_PER_COMPONENT = 5
# Smallest gain, in nats per row, that keeps the search going.
LEAST_GAIN = 1e-4
# Runs that are only compared stop early.
SEARCH_TOL, SEARCH_STEPS = 1e-4, 20
# Learning atoms takes longer than all else, so it must gain more, in nats per row.
LEARNING_GAIN = 1e-3
# Smaller tables overfit learned atoms, and cannot tell families of atoms apart.
LARGE_TABLE = 2_000
# Larger tables bear more components: their number grows with this power of the rows, beyond `MANY` of them only while
# components times rows stay below `MOST_WORK`, which bounds the time of a pass.
GROWTH, MANY, MOST_WORK = 0.3, 64, 128_000_000
# More than `MANY` components are tried only while components times bins of all columns stay below this: tables that
# leave the processor's cache make passes many times slower.
MOST_ENTRIES = 200_000
# From `SMALL_TABLE` rows on, averages of at most this many models are compared too, also with more than `MANY`
# components, which one model seldom bears. Of such large models no more are fitted, and their atoms are not learned.
AVERAGED = 3

# Held-out scores by set of dictionaries, number of components, strength of the prior and whether atoms are learned.
# Those of averages have the number of the set plus that of all sets.
Scores = dict[tuple[int, int, float, bool], float]


def choose_model(
    rows: Rows, options: Options, rng: np.random.Generator, checkpoint: Checkpoint | None = None
) -> Choice:
    """Choose what to fit by the held-out likelihood of rows, or return what the checkpoint holds.

    The number of components and the strength of the prior are found uphill from the middle of their ladders, with the
    dictionaries that fit the margins best: weak dependence wants few components and a strong prior, strong dependence
    the opposite. There the other sets of dictionaries are tried, and the best set goes on uphill. If several models
    are to be averaged and rows are many, averages of models go on from there: they bear more components and a
    weaker prior than one model does, and answers gain by both. One component is independence.

    Parameters
    ----------
    rows : Rows
        In canonical order, for a choice that does not depend on the order of rows.
    options : Options
        What is "auto" is chosen, and what is given stays.
    rng : numpy.random.Generator
        Deals rows to folds and draws starts.
    checkpoint : Checkpoint, optional
        Keeps each score, and the choice.
    """
    checkpoint = checkpoint or Checkpoint()
    n_models = number_of_models(options, len(rows))
    numbers = _numbers(rows) if options.n_components == "auto" else (options.n_components,)
    betas = BETAS if options.beta == "auto" else (options.beta,)
    kept = checkpoint.find("choice", lambda data: Choice.from_dict(data, rows, n_models, numbers, betas))
    if kept is not None:
        return kept
    choice = _searched(rows, options, rng, n_models, numbers, betas, checkpoint)
    checkpoint.keep("choice", choice.to_dict())
    checkpoint.flush()
    return choice


def _numbers(rows: Rows) -> tuple[int, ...]:
    """Return the numbers of components that are tried: those whose tables of all bins are small enough for a cache."""
    most = max(MANY, MOST_ENTRIES // sum(rows.n_bins))
    return tuple(number for number in NUMBERS if number <= most)


def number_of_models(options: Options, n_rows: int) -> int:
    """Return how many models are averaged.

    >>> [number_of_models(Options(), n) for n in (500, 20_000, 10**6)], number_of_models(Options(n_components=3), 500)
    ([5, 3, 1], 1)
    """
    if options.n_models != "auto":
        return options.n_models
    if options.n_components != "auto":  # a user who asks for three components expects three
        return 1
    return next((n_models for most, n_models in MODELS if n_rows <= most), 1)


def _searched(
    rows: Rows,
    options: Options,
    rng: np.random.Generator,
    n_models: int,
    numbers: Sequence[int],
    betas: Sequence[float],
    checkpoint: Checkpoint,
) -> Choice:
    is_large = len(rows) >= LARGE_TABLE
    sets = dictionary_options(rows, options.given, rng, n_models, families=is_large)
    must_learn = options.learn_dictionary is True
    may_learn = is_large and options.learn_dictionary == "auto"
    if len(rows.axes) == 1 or (len(sets) * len(numbers) * len(betas) == 1 and not may_learn):
        return Choice(sets[0], numbers[0], betas[0], must_learn)
    folds = row_folds(rows, rng)
    if not folds:  # one row
        return Choice(sets[0], numbers[0], betas[-1])
    seed = int(rng.integers(2**32))
    scores = checkpoint.find("search", scores_from_dict) or {}
    averaged = min(n_models, AVERAGED) if len(rows) >= SMALL_TABLE else 1
    few = numbers if averaged == 1 else [n for n in numbers if n <= MANY] or numbers
    searches = [
        _Search(folds, models[0], few, betas, seed, _Book(number, scores, checkpoint))
        for number, models in enumerate(sets)
    ]
    score, n_components, beta = searches[0].climb(FIRST_NUMBER, FIRST_BETA)
    best = int(np.argmax([search.held_out(n_components, beta) for search in searches]))
    if best > 0:
        score, n_components, beta = searches[best].climb(n_components, beta)
    if averaged > 1 and n_components > 1:
        book = _Book(len(sets) + best, scores, checkpoint)
        averages = _Search(folds, sets[best][0], numbers, betas, seed, book, averaged)
        _, n_components, beta = averages.climb(n_components, beta)
        score = searches[best].held_out(n_components, beta)
    learn = must_learn
    if may_learn and 1 < n_components <= MANY:
        learned = searches[best].held_out(n_components, beta, learn=True)
        learn = learned > score + LEARNING_GAIN
        score = learned if learn else score
    if len(numbers) > 1 and n_components > 1:
        n_components = _grown(n_components, len(rows), max(numbers))
    models = sets[best] if n_components <= MANY else sets[best][:AVERAGED]
    return Choice(models, n_components, beta, learn, score, searches[best].independence)


def _grown(n_components: int, n_rows: int, most: int) -> int:
    """Return the number of components for all rows, where the search saw some of them.

    >>> [_grown(64, n, 512) for n in (20_000, 100_000, 1_000_000, 10_000_000)]
    [64, 104, 128, 64]
    """
    grown = n_components * max(n_rows / SEARCH_ROWS, 1.0) ** GROWTH
    return int(min(round(grown), most, max(MANY, MOST_WORK // n_rows)))


def scores_to_dict(scores: Scores) -> dict[str, Any]:
    """Return a plain form of scores."""
    return {"scores": [[*map(float, key), float(score)] for key, score in scores.items()]}


def scores_from_dict(data: Mapping[str, Any]) -> Scores:
    """Read what `scores_to_dict` wrote.

    >>> scores_from_dict(scores_to_dict({(0, 8, 3.0, False): -1.5}))
    {(0, 8, 3.0, False): -1.5}
    """
    return {
        (int(float(models)), int(float(n_components)), float(beta), bool(learn)): float(score)
        for models, n_components, beta, learn, score in data["scores"]
    }


@dataclass(frozen=True)
class _Book:
    """The scores of one set of dictionaries, each computed at most once and kept in the checkpoint."""

    number: int
    scores: Scores
    checkpoint: Checkpoint

    def score(self, n_components: int, beta: float, learn: bool, compute: Callable[[], float]) -> float:
        key = self.number, n_components, beta, learn
        if key not in self.scores:
            self.scores[key] = compute()
            self.checkpoint.keep("search", scores_to_dict(self.scores), draws_again=True)
        return self.scores[key]


class _Search:
    """Held-out log-likelihood over numbers of components and strengths of the prior, of one model or of averages."""

    def __init__(
        self,
        folds: list[tuple[CodedRows, CodedRows]],
        dictionaries: Sequence[Dictionary],
        numbers: Sequence[int],
        betas: Sequence[float],
        seed: int,
        book: _Book,
        n_models: int = 1,
    ) -> None:
        self._dictionaries = tuple(dictionaries)
        self._axes = folds[0][0].axes
        self._folds = [(part, rows_problem(rest, dictionaries, 0.0)) for part, rest in folds]
        self._n_rows = sum(part.n_rows for part, _ in folds)
        most = max(min(rest.n_rows for _, rest in folds) / ROWS_PER_COMPONENT, 1)
        self._numbers = [number for number in numbers if number <= most] or [min(numbers)]
        self._betas = betas
        self._seed = seed
        self._book = book
        self._n_models = n_models
        self.independence = sum(_independence(part, problem) for part, problem in self._folds) / self._n_rows

    def climb(self, n_components: int, beta: float) -> tuple[float, int, float]:
        """Return the highest score found uphill from a place, with its number of components and beta."""
        at = _position(self._numbers, n_components), _position(self._betas, beta)
        while True:
            best = max(((at[0], at[1] + 1), (at[0], at[1] - 1)), key=self._score)
            if not self._gains(best, at):
                best = max(((at[0] + 1, at[1]), (at[0] - 1, at[1])), key=self._score)
            if not self._gains(best, at):
                break
            at = best
        if self._numbers[0] == 1 and not self._gains(at, (0, at[1])):
            at = 0, at[1]
        return self._score(at), self._numbers[at[0]], self._betas[at[1]]

    def _gains(self, new: tuple[int, int], old: tuple[int, int]) -> bool:
        return self._score(new) > self._score(old) + LEAST_GAIN

    def _score(self, at: tuple[int, int]) -> float:
        number, beta = at
        if not (0 <= number < len(self._numbers) and 0 <= beta < len(self._betas)):
            return -np.inf
        return self.held_out(self._numbers[number], self._betas[beta])

    def held_out(self, n_components: int, beta: float, *, learn: bool = False) -> float:
        """Mean log-likelihood of the bins of held-out rows, after short runs on the others."""
        if n_components == 1:
            return self.independence
        return self._book.score(n_components, beta, learn, lambda: self._run(n_components, beta, learn=learn))

    def _run(self, n_components: int, beta: float, *, learn: bool) -> float:
        total = 0.0
        for k, (part, rest) in enumerate(self._folds):
            problem, rng = replace(rest, beta=beta), np.random.default_rng(self._seed + k)
            models = [self._fitted(problem, n_components, rng, learn=learn) for _ in range(self._n_models)]
            total += held_out_gain(models, part) + _independence(part, models[0].problem)
        return total / self._n_rows

    def _fitted(self, problem: RowsProblem, n_components: int, rng: np.random.Generator, *, learn: bool) -> Learned:
        fitted = Learned(self._dictionaries, problem, short_run(problem, n_components, rng))
        return learn_atoms(fitted, self._axes, tol=SEARCH_TOL) if learn else fitted


def short_run(problem: RowsProblem, n_components: int, rng: np.random.Generator, n_starts: int = 1) -> Factors:
    """Return factors after a few steps, from the best of some starts: enough to compare choices by."""
    runs: list[Solution[Factors]] = [
        solve(RowsEM(start_around(problem.margins, n_components, rng), tol=SEARCH_TOL), problem, max_steps=SEARCH_STEPS)
        for _ in range(n_starts)
    ]
    return min(runs, key=lambda run: float(run.history[-1])).value


def short_fit(rows: Rows, choice: Choice, rng: np.random.Generator, n_starts: int) -> Learned:
    """Fit the first of the chosen models in a few steps: enough to see what such a model is like."""
    dictionaries = choice.models[0]
    problem = rows_problem(rows, dictionaries, choice.beta or 0.0)
    n_components = 1 if len(dictionaries) == 1 else choice.n_components
    few = 1 if n_components == 1 else min(n_starts, int(np.ceil(MANY_COMPONENTS / n_components)))
    fitted = Learned(tuple(dictionaries), problem, short_run(problem, n_components, rng, few))
    return learn_atoms(fitted, rows.axes, tol=SEARCH_TOL) if choice.learn_dictionary and n_components > 1 else fitted


def _position(ladder: Sequence[float], value: float) -> int:
    """Position of the rung nearest to a value."""
    return int(np.argmin([abs(rung - value) for rung in ladder]))


def _independence(part: CodedRows, problem: RowsProblem) -> float:
    """Log-likelihood of the bins of ``part`` if the columns were independent."""
    counts = np.concatenate([part.marginal(n) for n in range(len(part.axes))])
    # a bin that only `part` has met: as likely as `made_possible` will make it
    unmet = UNMET_ROWS / (problem.n_rows + UNMET_ROWS)
    return float(counts @ np.log(np.where(problem.bin_margins > LEAST_MASS, problem.bin_margins, unmet)))
