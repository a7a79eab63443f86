"""Dictionaries, number of components and strength of the prior, by held-out likelihood of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.engines import PosteriorEngine
from jointwise.engines.atoms import Masses
from jointwise.engines.threads import in_threads, n_cores
from jointwise.fitting.atoms import Learned, learn_atoms
from jointwise.fitting.average import held_out_gains
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.dictionaries import dictionary_options
from jointwise.fitting.choice.folds import SEARCH_ROWS, SMALL_TABLE, row_folds
from jointwise.fitting.choice.uphill import BLOCKS, clear_gain, of_folds
from jointwise.fitting.merging import merged_bins
from jointwise.fitting.options import Options
from jointwise.fitting.possible import UNMET_ROWS
from jointwise.fitting.problem import all_masses, problem_of_masses, rows_problem
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
# Runs that are only compared stop early: on fewer rows than this, after fewer steps.
SEARCH_TOL, SEARCH_STEPS, FEW_STEPS, FEW_ROWS = 1e-4, 15, 6, 1_000
# Runs whose factors have at most so many entries are kept for the averages they are part of.
MOST_KEPT = 100_000
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

# Held-out log-likelihoods of the blocks of a fold by set of dictionaries, number of components, strength of the prior,
# whether atoms are learned, and fold. Those of averages have the number of the set plus that of all sets.
Scores = dict[tuple[int, int, float, bool, int], tuple[float, ...]]


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
    blocks = [min(BLOCKS, len(part)) for part, _ in folds]
    scores = checkpoint.find("search", lambda data: of_folds(scores_from_dict(data), blocks)) or {}
    averaged = min(n_models, AVERAGED) if len(rows) >= SMALL_TABLE else 1
    few = numbers if averaged == 1 else [n for n in numbers if n <= MANY] or numbers
    searches = [
        _Search(_Fold.all_of(folds, models[0]), models[0], few, betas, seed, _Book(number, scores, checkpoint))
        for number, models in enumerate(sets)
    ]
    n_components, beta = searches[0].climb(FIRST_NUMBER, FIRST_BETA)
    here = Tried(n_components, beta)
    best = 0
    for number in range(1, len(searches)):
        if difference(searches[number], here, searches[best], here) > 0:
            best = number
    if best > 0:
        n_components, beta = searches[best].climb(n_components, beta)
    if averaged > 1 and n_components > 1:
        book = _Book(len(sets) + best, scores, checkpoint)
        averages = _Search(searches[best].folds, sets[best][0], numbers, betas, seed, book, averaged)
        averages.fits = searches[best].fits
        n_components, beta = averages.climb(n_components, beta)
    chosen, learn = Tried(n_components, beta), must_learn
    if may_learn and 1 < n_components <= MANY:
        learned = replace(chosen, learn=True)
        if difference(searches[best], learned, searches[best], chosen) > LEARNING_GAIN:
            chosen, learn = learned, True
    score, independence = searches[best].report(chosen)
    if len(numbers) > 1 and n_components > 1:
        n_components = _grown(n_components, len(rows), max(numbers))
    models = sets[best] if n_components <= MANY else sets[best][:AVERAGED]
    return Choice(models, n_components, beta, learn, score, independence)


def _grown(n_components: int, n_rows: int, most: int) -> int:
    """Return the number of components for all rows, where the search saw some of them.

    >>> [_grown(64, n, 512) for n in (20_000, 100_000, 1_000_000, 10_000_000)]
    [64, 104, 128, 64]
    """
    grown = n_components * max(n_rows / SEARCH_ROWS, 1.0) ** GROWTH
    return int(min(round(grown), most, max(MANY, MOST_WORK // n_rows)))


def scores_to_dict(scores: Scores) -> dict[str, Any]:
    """Return a plain form of scores."""
    return {"scores": [[*map(float, key), *map(float, blocks)] for key, blocks in scores.items()]}


def scores_from_dict(data: Mapping[str, Any]) -> Scores:
    """Read what `scores_to_dict` wrote.

    >>> scores_from_dict(scores_to_dict({(0, 8, 3.0, False, 2): (-1.5, -2.0)}))
    {(0, 8, 3.0, False, 2): (-1.5, -2.0)}
    """
    return {
        (int(float(models)), int(float(n_components)), float(beta), bool(learn), int(float(fold))): tuple(
            map(float, blocks)
        )
        for models, n_components, beta, learn, fold, *blocks in data["scores"]
    }


@dataclass(frozen=True)
class _Book:
    """The scores of one set of dictionaries, each computed at most once and kept in the checkpoint."""

    number: int
    scores: Scores
    checkpoint: Checkpoint

    def has(self, tried: Tried, fold: int) -> bool:
        return self._key(tried, fold) in self.scores

    def _key(self, tried: Tried, fold: int) -> tuple[int, int, float, bool, int]:
        return self.number, tried.n_components, tried.beta, tried.learn, fold

    def score(self, tried: Tried, fold: int, compute: Callable[[], tuple[float, ...]]) -> tuple[float, ...]:
        if not self.has(tried, fold):
            self.keep(tried, fold, compute())
        return self.scores[self._key(tried, fold)]

    def keep(self, tried: Tried, fold: int, scores: tuple[float, ...]) -> None:
        self.scores[self._key(tried, fold)] = scores
        self.checkpoint.keep("search", scores_to_dict(self.scores), draws_again=True)


@dataclass(frozen=True)
class Tried:
    """A number of components, a strength of the prior, and whether atoms are learned."""

    n_components: int
    beta: float
    learn: bool = False


class _Fold:
    """Rows that are held out, in blocks, and the problem of the others; both made when they are first needed."""

    def __init__(self, part: CodedRows, rest: CodedRows, masses: tuple[Masses, ...]) -> None:
        self.n_rows = part.n_rows
        self._part, self.rest, self._masses = part, rest, masses

    @classmethod
    def all_of(cls, folds: Sequence[tuple[CodedRows, CodedRows]], dictionaries: Sequence[Dictionary]) -> list[_Fold]:
        """Return all folds, with the masses of the same atoms."""
        masses = all_masses(dictionaries, folds[0][0].axes)
        return [cls(part, rest, masses) for part, rest in folds]

    @cached_property
    def blocks(self) -> list[CodedRows]:
        n = len(self._part)
        return [self._part.take(np.arange(start, n, BLOCKS)) for start in range(min(BLOCKS, n))]

    @cached_property
    def engines(self) -> list[PosteriorEngine]:
        """The blocks, ready for passes."""
        return [block.engine() for block in self.blocks]

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows of each block."""
        return np.array([block.n_rows for block in self.blocks])

    def prepare(self) -> None:
        """Make all that is made once, before threads ask for it."""
        _ = self.engines, self.problem, self.merged

    @cached_property
    def problem(self) -> RowsProblem:
        return problem_of_masses(self.rest, self._masses, 0.0)

    @cached_property
    def merged(self) -> RowsProblem:
        """The problem on merged bins."""
        return merged_bins(self.rest, self.problem)[1]

    def independence(self, problem: RowsProblem) -> FloatArray:
        """Log-likelihood of the bins of each block if the columns were independent."""
        return np.array([_independence(block, problem) for block in self.blocks])


class _Search:
    """Held-out log-likelihood over numbers of components and strengths of the prior, of one model or of averages."""

    def __init__(
        self,
        folds: list[_Fold],
        dictionaries: Sequence[Dictionary],
        numbers: Sequence[int],
        betas: Sequence[float],
        seed: int,
        book: _Book,
        n_models: int = 1,
    ) -> None:
        self._dictionaries = tuple(dictionaries)
        self._axes = folds[0].rest.axes
        self.folds = folds
        most = max(min(min(fold.rest.n_rows / ROWS_PER_COMPONENT, len(fold.rest)) for fold in folds), 1)
        self._numbers = [number for number in numbers if number <= most] or [min(numbers)]
        self._betas = betas
        self._seed = seed
        self.book = book
        self._n_models = n_models
        # by fold, number of components, strength of the prior and model
        self.fits: dict[tuple[int, int, float, int], Factors] = {}

    def climb(self, n_components: int, beta: float) -> tuple[int, float]:
        """Return the number of components and beta with the highest score found uphill from a place.

        A place that was left is not taken again: differences of which some are of one fold could lead in a circle.
        """
        at = _position(self._numbers, n_components), _position(self._betas, beta)
        left: set[tuple[int, int]] = set()
        while at not in left:
            left.add(at)
            there = self._moved(at, (0, -1), left)
            at = there if there != at else self._moved(at, (1, 0), left)
        if self._numbers[0] == 1 and at[0] > 0 and not self._difference(at, (0, at[1])) > LEAST_GAIN:
            at = 0, at[1]
        return self._numbers[at[0]], self._betas[at[1]]

    def _moved(self, at: tuple[int, int], rung: tuple[int, int], left: set[tuple[int, int]]) -> tuple[int, int]:
        """Return the next place in a direction if it gains, else the one behind if that does, else the place."""
        for sign in (1, -1):
            there = at[0] + sign * rung[0], at[1] + sign * rung[1]
            exists = 0 <= there[0] < len(self._numbers) and 0 <= there[1] < len(self._betas)
            if exists and there not in left and self._difference(there, at) > LEAST_GAIN:
                return there
        return at

    def _tried(self, at: tuple[int, int]) -> Tried:
        return Tried(self._numbers[at[0]], self._betas[at[1]])

    def _difference(self, one: tuple[int, int], other: tuple[int, int]) -> float:
        return difference(self, self._tried(one), self, self._tried(other))

    def held_out(self, tried: Tried, n_folds: int | None = None) -> float:
        """Mean log-likelihood of the bins of held-out rows, of all folds or the first ones, after short runs."""
        folds = self.folds[:n_folds]
        total = sum(sum(self.block_scores(tried, k)) for k in range(len(folds)))
        return float(total / sum(fold.n_rows for fold in folds))

    def report(self, tried: Tried) -> tuple[float, float]:
        """Return `held_out`, and the same if the columns were independent; of one fold where that told enough."""
        n_folds = len(self.folds) if self.book.has(tried, len(self.folds) - 1) else 1
        return self.held_out(tried, n_folds), self.held_out(replace(tried, n_components=1), n_folds)

    def block_scores(self, tried: Tried, k: int) -> tuple[float, ...]:
        """Log-likelihood of the bins of each block of a fold, after short runs on the other folds."""
        if tried.n_components == 1:
            return tuple(self.folds[k].independence(self.folds[k].problem).tolist())
        return self.book.score(tried, k, lambda: self.run(tried, k))

    def run(self, tried: Tried, k: int) -> tuple[float, ...]:
        """Return the scores of a fold, computed anew."""
        fold = self.folds[k]
        models = [self._fitted(k, tried, model) for model in range(self._n_models)]
        return tuple((held_out_gains(models, fold.engines) + fold.independence(models[0].problem)).tolist())

    def _fitted(self, k: int, tried: Tried, model: int) -> Learned:
        """Return one of the models that a fold is learned with; a search of averages has found the first before."""
        fold, key = self.folds[k], (k, tried.n_components, tried.beta, model)
        factors = self.fits.get(key)
        if factors is None:
            rng = np.random.default_rng((self._seed + k, model))
            n_steps = FEW_STEPS if fold.rest.n_rows < FEW_ROWS else SEARCH_STEPS
            factors = short_run(replace(fold.merged, beta=tried.beta), tried.n_components, rng, max_steps=n_steps)
            if factors.point.size <= MOST_KEPT:
                self.fits[key] = factors
        fitted = Learned(self._dictionaries, replace(fold.problem, beta=tried.beta), factors)
        return learn_atoms(fitted, self._axes, tol=SEARCH_TOL) if tried.learn else fitted


def difference(search: _Search, tried: Tried, other: _Search, by: Tried) -> float:
    """Return how much more likely held-out rows are under one choice than under another, in nats per row.

    Folds that would not change the order are left out: if the choices are far apart on the first fold, that is enough.
    """
    clear = first_difference(search, tried, other, by)
    if clear:
        return clear
    _prepare([(one, what, k) for k in range(len(search.folds)) for one, what in ((search, tried), (other, by))])
    ours, theirs = search.held_out(tried), other.held_out(by)
    return ours - theirs if ours != theirs else 0.0  # both may hold a row impossible


def first_difference(search: _Search, tried: Tried, other: _Search, by: Tried) -> float:
    """Return the difference on the first fold, or zero if it is not far beyond noise and there are more folds."""
    fold = search.folds[0]
    _prepare([(search, tried, 0), (other, by, 0)])
    ours, theirs = (np.array(one.block_scores(what, 0)) for one, what in ((search, tried), (other, by)))
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):  # some rows are impossible
        return 0.0 if len(search.folds) > 1 or ours.sum() == theirs.sum() else float(ours.sum() - theirs.sum())
    gains = ours - theirs
    if len(search.folds) == 1:
        return float(gains.sum() / fold.n_rows)
    return clear_gain(gains, fold.sizes, LEAST_GAIN)


def _prepare(wanted: Sequence[tuple[_Search, Tried, int]]) -> None:
    """Compute scores side by side, as far as there are cores, before they are asked for one by one."""
    missing = [(one, tried, k) for one, tried, k in wanted if tried.n_components > 1 and not one.book.has(tried, k)]
    for one, _, k in missing:
        one.folds[k].prepare()
    found = in_threads(lambda i: missing[i][0].run(*missing[i][1:]), len(missing), n_cores())
    for (one, tried, k), scores in zip(missing, found, strict=True):
        one.book.keep(tried, k, scores)


def short_run(
    problem: RowsProblem,
    n_components: int,
    rng: np.random.Generator,
    *,
    n_starts: int = 1,
    max_steps: int = SEARCH_STEPS,
) -> Factors:
    """Return factors after a few steps, from the best of some starts: enough to compare choices by."""
    runs: list[Solution[Factors]] = [
        solve(RowsEM(start_around(problem.margins, n_components, rng), tol=SEARCH_TOL), problem, max_steps=max_steps)
        for _ in range(n_starts)
    ]
    return min(runs, key=lambda run: float(run.history[-1])).value


def short_fit(rows: Rows, choice: Choice, rng: np.random.Generator, n_starts: int) -> Learned:
    """Fit the first of the chosen models in a few steps: enough to see what such a model is like."""
    dictionaries = choice.models[0]
    problem = rows_problem(rows, dictionaries, choice.beta or 0.0)
    n_components = 1 if len(dictionaries) == 1 else choice.n_components
    few = 1 if n_components == 1 else min(n_starts, int(np.ceil(MANY_COMPONENTS / n_components)))
    factors = short_run(merged_bins(rows, problem)[1], n_components, rng, n_starts=few)
    fitted = Learned(tuple(dictionaries), problem, factors)
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
