"""Learners: how an expert of a stack is learned, and what the experts of a table have learned so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.engines.threads import in_threads
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.folds import SMALL_TABLE
from jointwise.fitting.crosstabs import Crosstabs
from jointwise.fitting.fits import AnyFit
from jointwise.joint.density import JointDensity
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows

Callback = Callable[[int, float], None]
ResultT = TypeVar("ResultT")
# The best dictionaries of columns by themselves, by name.
Known = Mapping[str, Dictionary]
# Instead of the number of a fold: a short look.
LOOK = -1


@dataclass(frozen=True)
class Learner:
    """How an expert is learned.

    Parameters
    ----------
    name : str
    look : callable, optional
        Returns the density of a short fit with usual settings, from rows, a generator and known dictionaries. None for
        an expert that is asked in any case.
    choose : callable
        Returns what is to be fitted, from rows, a generator, a checkpoint, known dictionaries and what other experts
        have chosen so far, by name.
    single : callable
        Returns what was chosen, with one model instead of an average of several.
    fit : callable
        Returns a fit, from rows, what was chosen, a generator, a callback and a checkpoint.
    in_folds : callable
        Returns what was chosen, as it suits the fewer rows that folds learn from.
    weaker : callable
        Returns what was chosen, with the next weaker prior; None if there is none.
    kind : str
        Experts of one kind choose one after the other, as they may take over what another has chosen. The default is a
        kind of its own.
    """

    name: str
    look: Callable[[Rows, np.random.Generator, Known], JointDensity] | None
    choose: Callable[[Rows, np.random.Generator, Checkpoint, Known, Mapping[str, Any]], Any]
    single: Callable[[Any], Any]
    fit: Callable[[Rows, Any, np.random.Generator, Callback | None, Checkpoint], AnyFit]
    in_folds: Callable[[Any], Any] = lambda choice: choice
    weaker: Callable[[Any], Any] = lambda _: None
    kind: str = ""


@dataclass(frozen=True)
class Work:
    """The experts at work: what each has chosen (`choices`), and what it has learned from which rows.

    `first` are the densities learned without the first held-out rows, `weakened` is how often priors were weakened.
    `target` is the column that the experts are to predict, if there is one; `others` are then the log-densities of the
    held-out rows without it, by expert and fold, those of a look under `LOOK`. `tables` are the crosstabs of the first
    held-out rows that experts are weighed by, if they are, and `most_loss` is what a row may lose by it.
    At most `n_threads` experts are fitted at once.
    """

    learners: Mapping[str, Learner]
    rows: Rows
    seed: int
    checkpoint: Checkpoint
    tell: Callable[[str], None]
    known: Known
    choices: dict[str, Any] = field(default_factory=dict)
    first: dict[str, JointDensity] = field(default_factory=dict)
    weakened: int = 0
    target: int | None = None
    others: dict[tuple[str, int], FloatArray] = field(default_factory=dict)
    tables: Crosstabs | None = None
    most_loss: float = 0.0
    cells: dict[str, tuple[JointDensity, FloatArray]] = field(default_factory=dict)
    n_threads: int = 1

    def fit(self, name: str, rows: Rows, what: str, callback: Callback | None = None) -> AnyFit:
        """Fit an expert to some rows, as it has chosen from all."""
        learner, number = self.learners[name], list(self.learners).index(name)
        if name not in self.choices:
            self.tell(f"{name}: choosing")
            rng = np.random.default_rng([self.seed, number])
            record = self.checkpoint.section(f"{name}: choice", rng)
            self.choices[name] = learner.choose(self.rows, rng, record, self.known, dict(self.choices))
        self.tell(f"{name}: fitting {what}")
        rng = np.random.default_rng([self.seed, number, 1])
        record = self.checkpoint.section(f"{name}: {what}", rng)
        choice = self.choices[name]
        if rows is not self.rows:
            choice = learner.in_folds(choice)
            if len(self.rows) >= SMALL_TABLE:  # one model of many rows tells enough
                choice = learner.single(choice)
        found = learner.fit(rows, choice, rng, callback, record)
        if found.was_interrupted and rows is not self.rows:  # Ctrl-C keeps fits to all rows alone
            raise KeyboardInterrupt
        return found

    def looks(self, rest: CodedRows, X: FloatArray) -> dict[str, FloatArray]:
        """Log-density of the encoded rows ``X`` under experts, after a short look at the rest."""
        self.tell("a short look at every expert")
        numbers = {name: number for number, name in enumerate(self.learners)}
        looks = {name: learner.look for name, learner in self.learners.items() if learner.look is not None}

        def look(name: str) -> FloatArray:
            rng = np.random.default_rng([self.seed, numbers[name], 2])
            return self._logs(name, LOOK, looks[name](rest, rng, self.known), X)

        return self.for_each(looks, look)

    def all_held_out(self, names: Iterable[str], fold: int, rest: CodedRows, X: FloatArray) -> dict[str, FloatArray]:
        """Return `held_out` of several experts that have chosen, learned side by side."""
        return self.for_each(names, lambda name: self.held_out(name, fold, rest, X))

    def for_each(self, names: Iterable[str], task: Callable[[str], ResultT]) -> dict[str, ResultT]:
        """Return what a task returns for each expert, by name; tasks run side by side."""
        named = list(names)
        return dict(zip(named, in_threads(lambda k: task(named[k]), len(named), self.n_threads), strict=True))

    def held_out(self, name: str, fold: int, rest: CodedRows, X: FloatArray) -> FloatArray:
        """Log-density of the encoded rows ``X`` under an expert learned from the rest."""
        priors = f", with weaker priors ({self.weakened})" if self.weakened else ""
        density = self.fit(name, rest, f"rows without part {fold + 1}{priors}").density
        if fold == 0:
            self.first[name] = density
        return self._logs(name, fold, density, X)

    def _logs(self, name: str, fold: int, density: JointDensity, X: FloatArray) -> FloatArray:
        """Log-density of rows, whose other columns are kept too if there is a target."""
        if self.target is not None:
            self.others[name, fold] = density.mixture.logpdf(_without(X, self.target))
        return density.mixture.logpdf(X)

    def log_masses(self, name: str, tables: Crosstabs) -> FloatArray:
        """Log-probability of each cell of crosstabs under an expert learned without the first held-out rows."""
        density = self.first[name]
        if name not in self.cells or self.cells[name][0] is not density:
            self.cells[name] = density, tables.log_masses(density.mixture)
        return self.cells[name][1]

    def weaker(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the choices with the next weaker priors, of those experts that have any."""
        found = {name: self.learners[name].weaker(self.choices[name]) for name in names}
        return {name: choice for name, choice in found.items() if choice is not None}

    def with_weaker(self, choices: Mapping[str, Any]) -> Work:
        """Return the same experts, some with choices of weaker priors."""
        choices = {**self.choices, **choices}
        return replace(
            self,
            choices=choices,
            weakened=self.weakened + 1,
            first=dict(self.first),
            others=dict(self.others),
            cells=dict(self.cells),
        )

    def without_first(self, weights: Mapping[str, float]) -> JointDensity:
        """Return the sum of experts learned without the first held-out rows."""
        return JointDensity.mix([self.first[name] for name in weights], list(weights.values()))


def _without(X: FloatArray, n: int) -> FloatArray:
    """Return encoded rows in which a column is not known."""
    X = X.copy()
    X[:, n] = np.nan
    return X
