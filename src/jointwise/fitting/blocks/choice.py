"""Number of components and strength of the prior, by held-out likelihood of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.special import logsumexp

from jointwise._typing import FloatArray, IntArray
from jointwise.dictionary import Dictionary
from jointwise.engines.threads import in_threads
from jointwise.fitting.blocks.design import Design
from jointwise.fitting.blocks.options import BlockOptions
from jointwise.fitting.blocks.start import settled_start, start_groups, weights_of
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.folds import SEARCH_ROWS, SMALL_TABLE, row_folds
from jointwise.fitting.choice.uphill import (
    ScoreBook,
    Verdict,
    blocks_of,
    climb,
    nearest,
    scores_from_dict,
    scores_to_dict,
)
from jointwise.fitting.growing import FOLD_TOL
from jointwise.fitting.models import n_side_by_side
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import solve
from jointwise.solvers.blocks_em import TAIL_SCALE, BlockFactors, BlocksEM, BlocksProblem, tailed_logs, widened

# What is tried: numbers of components, strengths of the covariances' prior in rows, and shares of heavier tails.
NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256)
NUS = (1000.0, 100.0, 20.0, 3.0, 0.5, 0.1, 0.02)
TAILS = (0.0, 0.05, 0.15, 0.3)
# A stack of experts goes on from what was best alone, in finer steps: it divides nu by this at a time.
WEAKER = 2.5
# The search begins with each of these numbers, the first with this nu; that of a large table, whose runs differ less by
# chance, with the last alone.
FIRST_NUMBERS, FIRST_NU = (3, 12), 20.0
# It begins with fewer if a component had fewer rows than this for each column of the block: one that many components
# climb away from may be best where columns are many.
START_ROWS = 2
# A component needs more rows than this.
ROWS_PER_COMPONENT = 8
# More rows bear more components: their number grows with this power of the rows from those that the search learned from
# to those it saw, and with this power beyond.
SEEN_GROWTH, GROWTH = 0.7, 0.3
# Most rows x components x numbers of a row and component that one pass takes, about two seconds on two cores.
MOST_WORK = 1e9
# Most components x bins of columns outside the block: a step goes through all of them, whatever the rows are.
MOST_ENTRIES = 1 << 18
# Smallest gain, in nats per row, that counts.
LEAST_GAIN = 5e-3
# Runs that are only compared stop early.
SEARCH_TOL, SEARCH_STEPS = 1e-3, 25
# Largest table whose starts are averaged, and their number; that of a small table, whose runs differ more by chance.
AVERAGED_ROWS, N_MODELS, SMALL_MODELS = 100_000, 3, 6


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
    in_folds : int, optional
        Number of components that was best for the fewer rows that folds learn from; None where it was not chosen.
    options : BlockOptions, optional
        What it was chosen for; None where it was given.
    tol : float
        Tolerance of runs that are to end early; zero for that of the options.
    tail : float
        Share of heavier tails; see `with_tails`.
    """

    n_components: int
    nu: float
    beta: float
    n_models: int = 1
    held_out: float | None = None
    dictionaries: Mapping[str, Dictionary] = field(default_factory=dict)
    in_folds: int | None = None
    options: BlockOptions | None = None
    tol: float = 0.0
    tail: float = 0.0

    def suits(self, options: BlockOptions) -> bool:
        """Return whether it was chosen for these options, up to the warp.

        Blocks of the same table that differ in their warp want about the same number of components and nu.
        """
        return self.options is not None and replace(self.options, warp=options.warp) == options

    def for_folds(self) -> BlockChoice:
        """Return it as it was compared: with the number of components that suits the rows that folds learn from."""
        n_components = self.in_folds or self.n_components
        return replace(self, n_components=n_components, n_models=min(self.n_models, N_MODELS), tol=FOLD_TOL)

    def weaker(self) -> BlockChoice | None:
        """Return it with a weaker prior; None if it has the weakest that is tried.

        >>> BlockChoice(8, 20.0, 0.03).weaker().nu, BlockChoice(8, NUS[-1], 0.03).weaker()
        (8.0, None)
        """
        return replace(self, nu=max(self.nu / WEAKER, NUS[-1])) if self.nu > NUS[-1] else None


def choose_blocks(
    design: Design, rows: Rows, options: BlockOptions, rng: np.random.Generator, checkpoint: Checkpoint | None = None
) -> BlockChoice:
    """Choose number of components and nu, uphill in the held-out likelihood of rows.

    If several models are to be averaged, their average goes on from where one model is best: it bears more components
    and a weaker prior, and intervals are then as narrow as they should be. So do heavier tails, which are therefore
    part of what is compared wherever the number of components is to be chosen.

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
    most = max(min(rows.n_rows / ROWS_PER_COMPONENT, _affordable(len(rows), design)), 1)
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
        return BlockChoice(numbers[0], nus[0], options.beta, n_models)
    seed = int(rng.integers(2**32))
    tails = TAILS if options.n_components == "auto" else TAILS[:1]
    checkpoint = checkpoint or Checkpoint()
    search = _Search(design, folds, options.beta, seed, tails, checkpoint, n_side_by_side(rows, checkpoint))
    firsts = FIRST_NUMBERS if len(rows) < SMALL_TABLE else FIRST_NUMBERS[-1:]
    bearable = folds[0][1].n_rows // (START_ROWS * max(len(design.columns), 1))
    starts = sorted({nearest(numbers, min(first, bearable)) for first in firsts})
    place = search.best(numbers, nus, starts, nearest(nus, FIRST_NU))
    averaged_over = min(n_models, N_MODELS)
    if averaged_over > 1 and bearable:  # else the rows hardly bear one component, which is its own average
        place = search.best(numbers, nus, [place[0]], place[1], averaged_over)
    n_components, nu = numbers[place[0]], nus[place[1]]
    score = search.held_out.mean(n_components, nu, averaged_over)
    in_folds = n_components
    if len(numbers) > 1:
        learned_from = sum(rest.n_rows for _, rest in folds) / sum(part.n_rows + rest.n_rows for part, rest in folds)
        n_components = max(min(_grown(n_components, len(rows), learned_from), int(most)), 1)
    tail = search.tail(in_folds, nu, averaged_over)
    return BlockChoice(n_components, nu, options.beta, n_models, score, in_folds=in_folds, options=options, tail=tail)


def _grown(n_components: int, n_rows: int, share: float) -> int:
    """Return the number of components for all rows, where the search learned from a share of some of them.

    >>> [_grown(number, 1000, 2 / 3) for number in (1, 3, 8, 64)], [_grown(12, n, 0.75) for n in (10**4, 10**6)]
    ([1, 4, 11, 85], [15, 47])
    """
    return round(n_components * float(share**-SEEN_GROWTH * max(n_rows / SEARCH_ROWS, 1.0) ** GROWTH))


def _affordable(n_rows: int, design: Design) -> float:
    """Return the most components of a table of this many rows, for a fit that ends soon."""
    d, n_bins = len(design.columns), design.atoms.n_bins
    return min(MOST_WORK / max(n_rows * (d * d / 2 + d + 10), 1), MOST_ENTRIES / max(n_bins, 1))


def number_of_models(options: BlockOptions, n_rows: int) -> int:
    """Return how many models are averaged.

    >>> [number_of_models(BlockOptions(), n) for n in (500, 5_000, 10**6)]
    [6, 3, 1]
    >>> number_of_models(BlockOptions(n_components=3), 500)
    1
    """
    if options.n_models != "auto":
        return options.n_models
    if options.n_components != "auto" or n_rows > AVERAGED_ROWS:
        return 1
    return SMALL_MODELS if n_rows < SMALL_TABLE else N_MODELS


class _Search:
    """Held-out log-likelihood over numbers of components and strengths of the prior, each computed once."""

    def __init__(
        self,
        design: Design,
        folds: list[tuple[CodedRows, CodedRows]],
        beta: float,
        seed: int,
        tails: Sequence[float],
        checkpoint: Checkpoint,
        n_threads: int,
    ) -> None:
        self._design = design
        self._tails = tails
        self._checkpoint = checkpoint
        self._n_threads = n_threads
        self._best_tails = checkpoint.find("tails", scores_from_dict) or {}
        self._rests = [rest for _, rest in folds]
        self._problems = [design.problem(rest, NUS[0], beta) for rest in self._rests]
        self._held = [(part.scoring_engine(design.layout), weights_of(part)) for part, _ in folds]
        self._seed = seed
        self._found_groups: dict[tuple[int, int, int], IntArray] = {}
        self._found_logs: dict[tuple[int, int, float, int], FloatArray] = {}
        sizes = [np.array([block.n_rows for block in blocks]) for blocks in blocks_of([part for part, _ in folds])]
        self._sizes = sizes
        self.held_out = ScoreBook(checkpoint, self._run, sizes, LEAST_GAIN, n_threads)

    def best(
        self, numbers: Sequence[int], nus: Sequence[float], starts: Sequence[int], stage: int, n_models: int = 1
    ) -> tuple[int, int]:
        """Return the positions of the number of components and the nu of the highest score found uphill from some.

        The nu of the best so far is where climbs from further numbers begin. They end at once where they clearly lose.

        Parameters
        ----------
        numbers, nus : sequences
        starts : sequence of int
            Positions of numbers to begin from.
        stage : int
            Position of the nu to begin from.
        n_models : int
        """
        best = self._climbed(numbers, nus, starts[0], stage, n_models)
        for at in starts[1:]:
            place = at, self._best_nu(numbers, nus, at, best[1], n_models)
            if self._compare(numbers, nus, n_models, place, best) is Verdict.LOSES:
                continue
            place = self._climbed(numbers, nus, *place, n_models)
            if self._compare(numbers, nus, n_models, place, best) is Verdict.GAINS:
                best = place
        return best

    def _climbed(
        self, numbers: Sequence[int], nus: Sequence[float], at: int, stage: int, n_models: int
    ) -> tuple[int, int]:
        """Return where a climb ends that goes uphill in nu, then in the number, and so on in turn.

        It begins with nu: few components are quickly compared, and one nu too strong would ask for many of them.
        """
        compare = partial(self._compare, numbers, nus, n_models)
        tried: set[tuple[int, int]] = set()
        while (at, stage) not in tried:
            tried.add((at, stage))
            stage = self._best_nu(numbers, nus, at, stage, n_models)
            here = [(k, stage) for k in range(len(numbers))]
            further = climb(here, at, compare)
            if further == at:
                break
            at = further
        return at, stage

    def _best_nu(self, numbers: Sequence[int], nus: Sequence[float], at: int, stage: int, n_models: int) -> int:
        """Return the position of the nu where a climb ends that goes uphill in nu alone."""
        places = [(at, k) for k in range(len(nus))]
        return climb(places, stage, partial(self._compare, numbers, nus, n_models), patience=1)

    def _compare(
        self,
        numbers: Sequence[int],
        nus: Sequence[float],
        n_models: int,
        place: tuple[int, int],
        than: tuple[int, int],
    ) -> Verdict:
        """Compare two places: positions of the number of components and of nu."""
        return self.held_out.compare(*((numbers[at], nus[stage], n_models) for at, stage in (place, than)))

    def tail(self, n_components: int, nu: float, n_models: int) -> float:
        """Return the share of tails that suits the held-out rows: the mean of what is best in each fold."""
        self.held_out.mean(n_components, nu, n_models)  # all folds
        return float(np.mean([self._best_tails[n_components, nu, n_models, fold] for fold in range(len(self._rests))]))

    def _run(self, n_components: int, nu: float, n_models: int, fold: int) -> list[float]:
        """Log-likelihood of the blocks of a fold's held-out rows, under the average of short runs on the others.

        The share of tails is the best for these rows; none if they do not gain by one.
        """
        count = 1 if n_components == 1 else n_models  # one component has one place to go
        logs = in_threads(lambda model: self._logs(fold, n_components, nu, model), count, self._n_threads)
        plain, wide = logsumexp([each[0] for each in logs], axis=0) - np.log(count), logs[0][1]
        found = [self._scores(fold, tailed_logs(plain, wide, tail)) for tail in self._tails]
        totals = np.array([sum(scores) for scores in found])
        totals[1:] -= LEAST_GAIN * float(self._sizes[fold].sum())
        best = int(np.argmax(totals))
        self._best_tails[n_components, nu, n_models, fold] = (self._tails[best],)
        if self._checkpoint.is_kept:
            self._checkpoint.keep("tails", scores_to_dict(self._best_tails), draws_again=True)
        return found[best]

    def _scores(self, fold: int, logs: FloatArray) -> list[float]:
        """Return the sums over each block of a fold's held-out rows, dealt in turn as by `blocks_of`."""
        weighted, n_blocks = self._held[fold][1] * logs, len(self._sizes[fold])
        return [float(weighted[block::n_blocks].sum()) for block in range(n_blocks)]

    def _logs(self, fold: int, n_components: int, nu: float, model: int) -> FloatArray:
        """Log-density of a fold's held-out rows under a short run on the others, and that of its tails; shape (2, n).

        They are kept: an average begins where one model was best. Only the first model has tails.
        """
        key = fold, n_components, nu, model
        if key not in self._found_logs:
            components = self._problems[fold].components(self._model(*key))
            scales = (1.0, TAIL_SCALE) if model == 0 else (1.0,)
            self._found_logs[key] = self._held[fold][0].log_densities(components, scales)
        return self._found_logs[key]

    def _model(self, fold: int, n_components: int, nu: float, model: int) -> BlockFactors:
        """Return a short run on the rows that a fold does not hold out."""
        problem, groups = replace(self._problems[fold], nu=nu), self._groups(fold, n_components, model)
        return short_run(self._design, problem, self._rests[fold], n_components, groups)

    def _groups(self, fold: int, n_components: int, model: int) -> IntArray:
        """Groups of the rows that a fold does not hold out, from which the runs of a model start, whatever nu is."""
        key = fold, n_components, model
        if key not in self._found_groups:
            rng = np.random.default_rng([self._seed, fold, model])
            self._found_groups[key] = start_groups(self._design, self._rests[fold], n_components, rng)
        return self._found_groups[key]


def short_run(
    design: Design, problem: BlocksProblem, rows: CodedRows, n_components: int, groups: IntArray
) -> BlockFactors:
    """Return factors after a few steps from groups of rows: enough to compare choices by."""
    problem, start = settled_start(design, problem, rows, n_components, groups, SEARCH_TOL)
    found = solve(BlocksEM(start, tol=SEARCH_TOL), problem, max_steps=SEARCH_STEPS).value
    return widened(found, problem.n_rows, problem.nu)
