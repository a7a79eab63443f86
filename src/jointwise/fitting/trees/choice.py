"""Number of trees, number of states and strength of the prior, by held-out likelihood of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from jointwise.dictionary import Dictionary
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.folds import SEARCH_ROWS, row_folds
from jointwise.fitting.choice.uphill import ScoreBook, Verdict, blocks_of, climb, nearest
from jointwise.fitting.growing import FOLD_TOL
from jointwise.fitting.trees.design import StateSpace, TreeDesign
from jointwise.fitting.trees.options import TreeOptions
from jointwise.fitting.trees.start import start_factors
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import solve
from jointwise.solvers.trees_em import TreeFactors, TreesEM, TreesProblem

# What is tried: numbers of trees, most bins of a column of numbers, and strengths of the prior, in rows of independent
# columns and of the whole table.
NUMBERS = (1, 2, 4, 8, 16, 32, 64)
STATES = (4, 8, 16, 32)
PRIORS = ((1.0, 3.0), (3.0, 10.0), (10.0, 30.0), (30.0, 100.0), (100.0, 300.0), (300.0, 1000.0))
FIRST_NUMBER, FIRST_STATES, FIRST_PRIOR = 8, 16, 2
# A component needs more rows than this.
ROWS_PER_COMPONENT = 16
# Larger tables bear more components: their number grows with this power of the rows.
GROWTH = 0.3
# Most rows x components x columns that one pass takes, and most expected counts of pairs of states in all components:
# each step that looks for trees takes the logarithms of all of them.
MOST_WORK, MOST_COUNTS = 4e9, 1 << 24
# Smallest gain, in nats per row, that counts.
LEAST_GAIN = 5e-3
# Runs that are only compared stop early.
SEARCH_TOL, SEARCH_STEPS = 1e-3, 25
# Largest table whose starts are averaged, and their number.
AVERAGED_ROWS, N_MODELS = 100_000, 3
# Many trees: rows of each, their largest number, most rows x trees x columns of a pass, states, prior, starts that are
# averaged, and tolerance of runs that end early.
MANY_ROWS, MOST_MANY, MANY_WORK = 120, 256, 1e9
MANY_STATES, MANY_PRIOR, MANY_MODELS, MANY_TOL = 8, (0.1, 6.0), 2, 0.05


@dataclass(frozen=True)
class TreeChoice:
    """What is fitted.

    Parameters
    ----------
    n_components : int
        Number of trees of each model at its start.
    n_states : int
        Most bins of a column of numbers.
    alpha, gamma : float
        Strength of the prior, in rows of independent columns and of the whole table.
    n_models : int
        Number of starts whose fits are averaged.
    held_out : float, optional
        Mean log-likelihood of held-out rows beyond that of independent columns. None where there was nothing to choose.
    dictionaries : mapping of str to Dictionary
        Those of columns for which they are chosen already; others are chosen for the rows that are fitted.
    tol : float
        Tolerance of runs that are to end early; zero for that of the options.
    """

    n_components: int
    n_states: int
    alpha: float
    gamma: float
    n_models: int = 1
    held_out: float | None = None
    dictionaries: Mapping[str, Dictionary] = field(default_factory=dict)
    tol: float = 0.0

    def for_folds(self) -> TreeChoice:
        """Return the choice as it suits the fewer rows that folds learn from: many trees are fewer there."""
        if not self.tol:
            return replace(self, tol=FOLD_TOL)
        return replace(self, n_components=min(self.n_components, SEARCH_ROWS // MANY_ROWS))


def choose_trees(
    design: TreeDesign, rows: Rows, options: TreeOptions, rng: np.random.Generator, checkpoint: Checkpoint | None = None
) -> TreeChoice:
    """Choose numbers of trees and states and the strength of the prior, uphill in the held-out likelihood of rows.

    Parameters
    ----------
    design : TreeDesign
    rows : Rows
        With fine axes, in canonical order, for a choice that does not depend on the order of rows.
    options : TreeOptions
        What is "auto" is chosen, and what is given stays.
    rng : numpy.random.Generator
        Deals rows to folds and draws starts.
    checkpoint : Checkpoint, optional
        Keeps each score.
    """
    if options.n_components == "many":
        return _many(design, rows, options)
    n_models = number_of_models(options, len(rows))
    most = max(min(rows.n_rows / ROWS_PER_COMPONENT, _affordable(design, len(rows))), 1)
    numbers = _asked(options.n_components, [number for number in NUMBERS if number <= most])
    if len(design.columns) == 1 and options.n_components == "auto":
        numbers = [1]
    states = _asked(options.n_states, STATES if design.has_bins else (FIRST_STATES,))
    priors = _priors(options)
    first = nearest(states, FIRST_STATES), min(FIRST_PRIOR, len(priors) - 1)
    if len(numbers) * len(states) * len(priors) == 1:
        return TreeChoice(numbers[0], states[0], *priors[0], n_models)
    folds = row_folds(rows, rng)
    if not folds:  # one row
        return TreeChoice(numbers[0], states[0], *priors[-1], n_models)
    seed = int(rng.integers(2**32))
    search = _Search(design, folds, priors, seed, checkpoint or Checkpoint())
    n_components, n_states, prior = search.best(numbers, states, *first)
    score = search.held_out.mean(n_components, n_states, prior)
    if len(numbers) > 1 and len(rows) > SEARCH_ROWS and n_components > 1:
        n_components = min(round(n_components * (len(rows) / SEARCH_ROWS) ** GROWTH), max(int(most), 1))
    return TreeChoice(n_components, n_states, *priors[prior], n_models, score)


def _many(design: TreeDesign, rows: Rows, options: TreeOptions) -> TreeChoice:
    """Return what is fitted if many trees are asked for, without a search; what is given stays."""
    most = min(rows.n_rows / MANY_ROWS, MOST_MANY, _affordable(design, len(rows), MANY_WORK))
    return TreeChoice(
        max(int(most), 1),
        MANY_STATES if options.n_states == "auto" else options.n_states,
        MANY_PRIOR[0] if options.alpha == "auto" else float(options.alpha),
        MANY_PRIOR[1] if options.gamma == "auto" else float(options.gamma),
        number_of_models(options, len(rows)),
        tol=MANY_TOL,
    )


def _affordable(design: TreeDesign, n_rows: int, most_work: float = MOST_WORK) -> float:
    """Return the most components of a table of this many rows, for a fit that ends soon."""
    sizes = np.array([axis.n_bins for axis in design.space(FIRST_STATES).axes], dtype=np.float64)
    counts = (sizes.sum() ** 2 - (sizes**2).sum()) / 2
    return float(min(most_work / (n_rows * len(sizes)), MOST_COUNTS / max(counts, 1.0)))


def _asked(given: int | str, ladder: Sequence[int]) -> list[int]:
    return list(ladder) if isinstance(given, str) else [given]


def _priors(options: TreeOptions) -> list[tuple[float, float]]:
    """Return the strengths of the prior that are tried; what is given stays."""
    return list(
        dict.fromkeys(
            (
                alpha if options.alpha == "auto" else float(options.alpha),
                gamma if options.gamma == "auto" else float(options.gamma),
            )
            for alpha, gamma in PRIORS
        )
    )


def number_of_models(options: TreeOptions, n_rows: int) -> int:
    """Return how many models are averaged.

    >>> number_of_models(TreeOptions(), 500), number_of_models(TreeOptions(n_components=3), 500)
    (3, 1)
    """
    if options.n_models != "auto":
        return options.n_models
    if not isinstance(options.n_components, str) or n_rows > AVERAGED_ROWS:
        return 1
    return MANY_MODELS if options.n_components == "many" else N_MODELS


class _Search:
    """Held-out log-likelihood over numbers of trees, numbers of states and strengths of the prior."""

    def __init__(
        self,
        design: TreeDesign,
        folds: list[tuple[CodedRows, CodedRows]],
        priors: Sequence[tuple[float, float]],
        seed: int,
        checkpoint: Checkpoint,
    ) -> None:
        self._design = design
        self._rests = [rest for _, rest in folds]
        self._held = blocks_of([part for part, _ in folds])
        self._priors = priors
        self._seed = seed
        sizes = [np.array([block.n_rows for block in blocks]) for blocks in self._held]
        self.held_out = ScoreBook(checkpoint, self._run, sizes, LEAST_GAIN)

    def best(self, numbers: Sequence[int], states: Sequence[int], stage: int, prior: int) -> tuple[int, int, int]:
        """Return the number of components, of states and the prior of the highest score found."""
        ladders = numbers, range(len(self._priors)), states
        at = [nearest(numbers, FIRST_NUMBER), prior, stage]
        tried: set[tuple[int, ...]] = set()

        def key(which: int, rung: int) -> tuple[int, int, int]:
            n_components, k, n_states = (rung if which == i else ladders[i][at[i]] for i in range(3))
            return n_components, n_states, k

        def compare(which: int, rung: int, than: int) -> Verdict:
            return self.held_out.compare(key(which, rung), key(which, than))

        while tuple(at) not in tried:
            tried.add(tuple(at))
            for which, ladder in enumerate(ladders):
                at[which] = climb(ladder, at[which], partial(compare, which))
        return numbers[at[0]], states[at[2]], at[1]

    @cached_property
    def _problems(self) -> dict[tuple[int, int], tuple[StateSpace, list[CodedRows], CodedRows, TreesProblem]]:
        return {}

    def _problem(self, fold: int, n_states: int) -> tuple[StateSpace, list[CodedRows], CodedRows, TreesProblem]:
        if (fold, n_states) not in self._problems:
            space = self._design.space(n_states)
            rest = self._rests[fold].regrouped(space.axes)
            held = [block.regrouped(space.axes) for block in self._held[fold]]
            self._problems[fold, n_states] = space, held, rest, space.problem(rest, 1.0, 0.0)
        return self._problems[fold, n_states]

    def _run(self, n_components: int, n_states: int, prior: int, fold: int) -> list[float]:
        """Log-likelihood of the blocks of a fold's held-out rows beyond that of independent columns, after a short run.

        The run is on the rows that the fold does not hold out.
        """
        space, held, rest, problem = self._problem(fold, n_states)
        alpha, gamma = self._priors[prior]
        problem = replace(problem, alpha=alpha, gamma=gamma)
        factors = short_run(problem, rest, n_components, np.random.default_rng([self._seed, fold]))
        components = problem.components(factors)
        return [
            block.tree_engine().edge_sums(components).log_likelihood + space.log_density(block.column_counts)
            for block in held
        ]


def short_run(problem: TreesProblem, rows: CodedRows, n_components: int, rng: np.random.Generator) -> TreeFactors:
    """Return factors after a few steps: enough to compare choices by."""
    start = start_factors(rows, problem.known, n_components, rng)
    return solve(TreesEM(start, tol=SEARCH_TOL), problem, max_steps=SEARCH_STEPS).value
