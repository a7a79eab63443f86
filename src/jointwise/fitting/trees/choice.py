"""Number of trees, kind and number of states and strength of the prior, by held-out likelihood of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from jointwise.dictionary import Dictionary
from jointwise.engines.trees import Emissions, TreeComponents
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.folds import SEARCH_ROWS, row_folds
from jointwise.fitting.choice.uphill import PATIENCE, ScoreBook, Verdict, blocks_of, climb, nearest
from jointwise.fitting.growing import FOLD_TOL
from jointwise.fitting.models import n_side_by_side
from jointwise.fitting.trees.counts import RowPairs
from jointwise.fitting.trees.design import TreeDesign
from jointwise.fitting.trees.options import TreeOptions
from jointwise.fitting.trees.space import StateSpace
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
# Atoms of a column of numbers that are tried, once all else is chosen with bins; what they begin with at most; and most
# rows x components x columns of trees of atoms.
ATOMS, FIRST_ATOMS, MOST_ATOM_WORK = (8, 16, 32), 16, 4e6
# A component needs more rows than this.
ROWS_PER_COMPONENT = 16
# Larger tables bear more components: their number grows with this power of the rows.
GROWTH = 0.3
# Most rows x components x columns that one pass takes, and most expected counts of pairs of states in all components:
# each step that looks for trees takes the logarithms of all of them.
MOST_WORK, MOST_COUNTS = 4e9, 1 << 24
# Most entries of the tables that trees have of the states and categories of columns whose rare categories share states.
MOST_GROUPED = 1 << 24
# Smallest gain, in nats per row, that counts.
LEAST_GAIN = 5e-3
# Runs that are only compared stop early.
SEARCH_TOL, SEARCH_STEPS = 1e-3, 15
# A climb by the single fold of a large table goes on over this many numbers that gain nothing: it has more rows, and
# never finds that one clearly loses.
SINGLE_PATIENCE = 1
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
    n_atoms : int
        Most smooth atoms of a column of numbers, its states once trees are found with bins; zero for bins.
    """

    n_components: int
    n_states: int
    alpha: float
    gamma: float
    n_models: int = 1
    held_out: float | None = None
    dictionaries: Mapping[str, Dictionary] = field(default_factory=dict)
    tol: float = 0.0
    n_atoms: int = 0

    def for_folds(self) -> TreeChoice:
        """Return the choice as it suits the fewer rows that folds learn from: many trees are fewer there."""
        if not self.tol:
            return replace(self, tol=FOLD_TOL)
        return replace(self, n_components=min(self.n_components, SEARCH_ROWS // MANY_ROWS))


def choose_trees(
    design: TreeDesign, rows: Rows, options: TreeOptions, rng: np.random.Generator, checkpoint: Checkpoint | None = None
) -> TreeChoice:
    """Choose numbers of trees and states, their kind and the prior, uphill in the held-out likelihood of rows.

    The search is made with bins; atoms are then tried at the place found.

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
    atoms, priors = _atoms(design, options), _priors(options)
    first = nearest(states, FIRST_STATES), min(FIRST_PRIOR, len(priors) - 1)
    if len(numbers) * len(states) * len(priors) == 1 and (not atoms or (len(atoms) == 1 and options.states == "atoms")):
        return TreeChoice(numbers[0], states[0], *priors[0], n_models, n_atoms=sum(atoms))
    folds = row_folds(rows, rng)
    if not folds:  # one row
        return TreeChoice(numbers[0], states[0], *priors[-1], n_models)
    seed = int(rng.integers(2**32))
    checkpoint = checkpoint or Checkpoint()
    search = _Search(design, folds, priors, seed, checkpoint, n_side_by_side(rows, checkpoint))
    found = search.best(numbers, states, *first)
    always = options.states == "atoms"
    few = [number for number in numbers if always or number * len(rows) * len(design.columns) <= MOST_ATOM_WORK]
    if atoms and few:
        found = search.smoothed(found, min(found[0], few[-1]), atoms, always=always)
    n_components, n_states, prior, n_atoms = found
    score = search.held_out.mean(*found)
    if len(numbers) > 1 and len(rows) > SEARCH_ROWS and n_components > 1 and not n_atoms:
        n_components = min(round(n_components * (len(rows) / SEARCH_ROWS) ** GROWTH), max(int(most), 1))
    return TreeChoice(n_components, n_states, *priors[prior], n_models, score, n_atoms=n_atoms)


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
    sizes = np.array(design.sizes(FIRST_STATES), dtype=np.float64)
    counts = (sizes.sum() ** 2 - (sizes**2).sum()) / 2
    most = min(most_work / (n_rows * len(sizes)), MOST_COUNTS / max(counts, 1.0))
    return float(min(most, MOST_GROUPED / max(design.n_grouped(FIRST_STATES), 1)))


def _asked(given: int | str, ladder: Sequence[int]) -> list[int]:
    return list(ladder) if isinstance(given, str) else [given]


def _atoms(design: TreeDesign, options: TreeOptions) -> list[int]:
    """Return the numbers of atoms that are tried; none if states are to be bins, or have to be."""
    if options.states == "bins" or options.device == "cuda" or not design.has_bins:
        return []
    return _asked(options.n_states, ATOMS)


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


# Numbers of trees, of bins, of the prior, and of atoms, or what stands for these where bins are states.
Key = tuple[int, int, int, int]
# Bins are states, with edges that all rows have chosen; or those rows alone that a fold does not hold out. Edges that
# have seen the held-out rows flatter bins beside atoms, which have none.
BINS, OWN_BINS = 0, -1


class _Fold(NamedTuple):
    """What a fold is with some number of bins: its held-out rows in blocks, its other rows, and their problem."""

    design: TreeDesign
    space: StateSpace
    held: list[CodedRows]
    rest: CodedRows
    problem: TreesProblem


class _Search:
    """Held-out log-likelihood over numbers of trees, kinds and numbers of states and strengths of the prior."""

    def __init__(
        self,
        design: TreeDesign,
        folds: list[tuple[CodedRows, CodedRows]],
        priors: Sequence[tuple[float, float]],
        seed: int,
        checkpoint: Checkpoint,
        n_threads: int,
    ) -> None:
        self._design = design
        self._rests = [rest for _, rest in folds]
        # by the rows that a fold does not hold out
        self._designs = [replace(design, counted=RowPairs(rest)) for rest in self._rests]
        self._folds: dict[tuple[int, int, bool], _Fold] = {}
        self._held = blocks_of([part for part, _ in folds])
        self._priors = priors
        self._seed = seed
        self._last: dict[int, tuple[tuple[int | bool, ...], TreeFactors]] = {}  # of each fold
        sizes = [np.array([block.n_rows for block in blocks]) for blocks in self._held]
        self.held_out = ScoreBook(checkpoint, self._run, sizes, LEAST_GAIN, n_threads)

    def best(self, numbers: Sequence[int], states: Sequence[int], stage: int, prior: int) -> Key:
        """Return the key of the highest score found with bins; numbers of trees come last, as many trees take long."""
        ladders = numbers, states, range(len(self._priors)), (BINS,)
        return self._uphill(ladders, [nearest(numbers, FIRST_NUMBER), stage, prior, 0], order=(1, 2, 0))

    def smoothed(self, found: Key, n_components: int, atoms: Sequence[int], *, always: bool) -> Key:
        """Return the key with atoms instead of bins if these score higher, or if they are asked for.

        Atoms may want another prior than bins. The number of their trees is given.
        """
        _, n_states, prior, _ = found
        ladders = (n_components,), (n_states,), range(len(self._priors)), atoms
        at = [0, 0, prior, nearest(atoms, min(2 * n_states, FIRST_ATOMS))]
        first, bins = (n_components, n_states, prior, atoms[at[3]]), (*found[:3], OWN_BINS)
        if not always and self.held_out.compare(first, bins) is not Verdict.GAINS:
            return found
        return self._uphill(ladders, at, order=(3, 2))

    def _uphill(self, ladders: tuple[Sequence[int], ...], at: list[int], order: Sequence[int]) -> Key:
        """Climb one ladder after the other until nothing gains; return the rungs reached."""
        tried: set[tuple[int, ...]] = set()

        def key(which: int, rung: int) -> list[int]:
            return [rung if which == i else ladder[at[i]] for i, ladder in enumerate(ladders)]

        def compare(which: int, rung: int, than: int) -> Verdict:
            verdict = self.held_out.compare(key(which, rung), key(which, than))
            dearer = which == 0 and rung > than  # more trees that gain nothing are not worth trying yet more
            return Verdict.LOSES if dearer and verdict is Verdict.UNCLEAR else verdict

        while tuple(at) not in tried:
            tried.add(tuple(at))
            for which in order:
                at[which] = climb(ladders[which], at[which], partial(compare, which), self._patience)
        n_components, n_states, prior, n_atoms = (ladder[i] for ladder, i in zip(ladders, at, strict=True))
        return n_components, n_states, prior, n_atoms

    @property
    def _patience(self) -> int:
        """Over how many rungs that gain nothing a climb goes on."""
        return SINGLE_PATIENCE if len(self._rests) == 1 else PATIENCE

    def _fold(self, fold: int, n_states: int, *, own: bool) -> _Fold:
        """Return a fold, with edges of bins that its `own` rows have chosen, or all rows."""
        if (fold, n_states, own) not in self._folds:
            design = self._designs[fold] if own else self._design
            space = design.space(n_states)
            rest = self._rests[fold].regrouped(space.axes)
            held = [block.regrouped(space.axes) for block in self._held[fold]]
            self._folds[fold, n_states, own] = _Fold(design, space, held, rest, space.problem(rest, 1.0, 0.0))
        return self._folds[fold, n_states, own]

    def _run(self, n_components: int, n_states: int, prior: int, n_atoms: int, fold: int) -> list[float]:
        """Log-likelihood of the blocks of a fold's held-out rows beyond that of independent columns, after a short run.

        The run is on the rows that the fold does not hold out.
        """
        own = n_atoms != BINS
        here = self._fold(fold, n_states, own=own)
        alpha, gamma = self._priors[prior]
        problem = replace(here.problem, alpha=alpha, gamma=gamma)
        factors = self._bins_run((n_components, n_states, prior, own), fold, problem, here.rest)
        if n_atoms <= BINS:
            return _scores(here.space, here.held, problem.components(factors), None)
        atoms = here.design.atoms(n_states, n_atoms)
        problem = atoms.problem(self._rests[fold].regrouped(atoms.space.axes), problem, factors.forest.parents)
        solver = TreesEM(atoms.start(factors, here.problem.known), tol=SEARCH_TOL, fixed=True)
        components = problem.components(solve(solver, problem, max_steps=SEARCH_STEPS).value)
        fine = [block.regrouped(atoms.space.axes) for block in self._held[fold]]
        return _scores(atoms.space, fine, components, atoms.emissions)

    def _bins_run(
        self, place: tuple[int | bool, ...], fold: int, problem: TreesProblem, rest: CodedRows
    ) -> TreeFactors:
        """Return where a short run with bins ends; the last of each fold is kept, as one with atoms begins there."""
        last = self._last.get(fold)
        if last is not None and last[0] == place:
            return last[1]
        n_components, rng = int(place[0]), np.random.default_rng([self._seed, fold])
        factors = short_run(problem, rest, n_components, rng)
        self._last[fold] = place, factors
        return factors


def _scores(
    space: StateSpace, held: Sequence[CodedRows], components: TreeComponents, emissions: Emissions | None
) -> list[float]:
    """Return the log-likelihood of blocks of rows beyond that of independent columns."""
    return [
        block.tree_engine(emissions).edge_sums(components).log_likelihood + space.log_density(block.column_counts)
        for block in held
    ]


def short_run(problem: TreesProblem, rows: CodedRows, n_components: int, rng: np.random.Generator) -> TreeFactors:
    """Return factors after a few steps: enough to compare choices by."""
    start = start_factors(rows, problem.known, n_components, rng)
    return solve(TreesEM(start, tol=SEARCH_TOL), problem, max_steps=SEARCH_STEPS).value
