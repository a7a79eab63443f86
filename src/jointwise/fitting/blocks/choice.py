"""Number of components and strength of the prior, by held-out likelihood of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jointwise.dictionary import Dictionary
from jointwise.fitting.blocks.design import Design
from jointwise.fitting.blocks.options import BlockOptions
from jointwise.fitting.blocks.start import settled_start
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.folds import SEARCH_ROWS, SMALL_TABLE, row_folds
from jointwise.fitting.choice.uphill import ScoreBook, climb, nearest
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import solve
from jointwise.solvers.blocks_em import BlockFactors, BlocksEM, BlocksProblem

# What is tried: numbers of components, and strengths of the covariances' prior in rows.
NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256)
NUS = (0.5, 3.0, 20.0, 100.0)
FIRST_NUMBER, FIRST_NU = 6, 20.0
# A component needs more rows than this.
ROWS_PER_COMPONENT = 8
# Larger tables bear more components: their number grows with this power of the rows.
GROWTH = 0.3
# Most rows x components x numbers of a row and component that one pass takes, about two seconds on two cores.
MOST_WORK = 1e9
# Smallest gain, in nats per row, that counts.
LEAST_GAIN = 5e-3
# Runs that are only compared stop early.
SEARCH_TOL, SEARCH_STEPS = 1e-3, 25
# Largest table whose starts are averaged, and their number.
AVERAGED_ROWS, N_MODELS = 100_000, 3


@dataclass(frozen=True)
class BlockChoice:
    """What is fitted.

    Parameters
    ----------
    n_components : int
        Number of components of each model at its start.
    nu : float
        Strength of the covariances' prior, in rows.
    beta : float
        Strength of the prior of other columns and spikes, in rows.
    n_models : int
        Number of starts whose fits are averaged.
    held_out : float, optional
        Mean log-likelihood of held-out rows: density of the block's columns, bins of the others. None where there was
        nothing to choose.
    dictionaries : mapping of str to Dictionary
        Those of columns for which they are chosen already; others are chosen for the rows that are fitted.
    """

    n_components: int
    nu: float
    beta: float
    n_models: int = 1
    held_out: float | None = None
    dictionaries: Mapping[str, Dictionary] = field(default_factory=dict)


def choose_blocks(
    design: Design, rows: Rows, options: BlockOptions, rng: np.random.Generator, checkpoint: Checkpoint | None = None
) -> BlockChoice:
    """Choose number of components and nu, uphill in the held-out likelihood of rows.

    Parameters
    ----------
    design : Design
    rows : Rows
        With the design's axes, in canonical order, for a choice that does not depend on the order of rows.
    options : BlockOptions
        What is "auto" is chosen, and what is given stays.
    rng : numpy.random.Generator
        Deals rows to folds and draws starts.
    checkpoint : Checkpoint, optional
        Keeps each score.
    """
    n_models = number_of_models(options, len(rows))
    most = max(min(rows.n_rows / ROWS_PER_COMPONENT, _affordable(len(rows), len(design.columns))), 1)
    if options.n_components == "auto":
        numbers = [number for number in NUMBERS if number <= most]
    else:
        numbers = [options.n_components]
    nus = list(NUS) if options.nu == "auto" else [float(options.nu)]
    nus = nus if design.columns else nus[:1]
    if len(numbers) * len(nus) == 1:
        return BlockChoice(numbers[0], nus[0], options.beta, n_models)
    folds = row_folds(rows, rng)
    if not folds:  # one row
        return BlockChoice(numbers[0], nus[-1], options.beta, n_models)
    seed = int(rng.integers(2**32))
    search = _Search(design, folds, options.beta, seed, checkpoint or Checkpoint())
    n_components, nu = search.best(numbers, nus) if len(rows) >= SMALL_TABLE else search.best_of_each(numbers, nus)
    score = search.held_out(n_components, nu)
    if len(numbers) > 1 and len(rows) > SEARCH_ROWS:
        n_components = min(round(n_components * (len(rows) / SEARCH_ROWS) ** GROWTH), max(int(most), 1))
    return BlockChoice(n_components, nu, options.beta, n_models, score)


def _affordable(n_rows: int, d: int) -> float:
    """Return the most components of a table of this many rows, for a fit that ends soon."""
    return MOST_WORK / max(n_rows * (d * d / 2 + d + 10), 1)


def number_of_models(options: BlockOptions, n_rows: int) -> int:
    """Return how many models are averaged.

    >>> number_of_models(BlockOptions(), 500), number_of_models(BlockOptions(n_components=3), 500)
    (3, 1)
    """
    if options.n_models != "auto":
        return options.n_models
    return 1 if options.n_components != "auto" or n_rows > AVERAGED_ROWS else N_MODELS


class _Search:
    """Held-out log-likelihood over numbers of components and strengths of the prior, each computed once."""

    def __init__(
        self,
        design: Design,
        folds: list[tuple[CodedRows, CodedRows]],
        beta: float,
        seed: int,
        checkpoint: Checkpoint,
    ) -> None:
        self._design = design
        self._folds = [
            (replace(design.problem(rest, NUS[0], beta), rows=part.block_engine(design.layout)), part.n_rows, rest)
            for part, rest in folds
        ]
        self._seed = seed
        self.held_out = ScoreBook(checkpoint, self._mean)

    def best(self, numbers: Sequence[int], nus: Sequence[float]) -> tuple[int, float]:
        """Return the number of components and nu of the highest score found."""
        at, stage = nearest(numbers, FIRST_NUMBER), nearest(nus, FIRST_NU)
        while True:
            at = self._climb(numbers, at, nus[stage])
            near = [k for k in (stage - 1, stage + 1) if 0 <= k < len(nus)]
            better = max(near, key=lambda k: self.held_out(numbers[at], nus[k]), default=stage)
            if not self.held_out(numbers[at], nus[better]) > self.held_out(numbers[at], nus[stage]) + LEAST_GAIN:
                return numbers[at], nus[stage]
            stage = better

    def best_of_each(self, numbers: Sequence[int], nus: Sequence[float]) -> tuple[int, float]:
        """Return the best place uphill over all nu: few components want a weak prior, many a strong one."""
        first = nearest(numbers, FIRST_NUMBER)
        places = [(numbers[self._climb(numbers, first, nu)], nu) for nu in nus]
        return max(places, key=lambda place: self.held_out(*place))

    def _climb(self, numbers: Sequence[int], at: int, nu: float) -> int:
        """Return the position of the best number found uphill from one."""
        return climb(numbers, at, lambda number: self.held_out(number, nu), LEAST_GAIN)

    def _mean(self, n_components: int, nu: float) -> float:
        """Mean log-likelihood of held-out rows under the average of short runs on the others."""
        runs = [self._run(fold, n_components, nu) for fold in range(len(self._folds))]
        return sum(runs) / sum(n_rows for _, n_rows, _ in self._folds)

    def _run(self, fold: int, n_components: int, nu: float) -> float:
        held, _, rest = self._folds[fold]
        problem = replace(held, rows=rest.block_engine(self._design.layout), nu=nu)
        rng = np.random.default_rng([self._seed, fold])
        return held.sums(short_run(self._design, problem, rest, n_components, rng)).log_likelihood


def short_run(
    design: Design, problem: BlocksProblem, rows: CodedRows, n_components: int, rng: np.random.Generator
) -> BlockFactors:
    """Return factors after a few steps: enough to compare choices by."""
    problem, start = settled_start(design, problem, rows, n_components, rng)
    return solve(BlocksEM(start, tol=SEARCH_TOL), problem, max_steps=SEARCH_STEPS).value
