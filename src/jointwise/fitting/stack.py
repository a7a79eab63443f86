"""One density from several experts, weighted by how well they predict held-out rows and parts of these.

Each expert is learned without some rows and gives the log-densities of these; `weighing` finds the weights. Experts
with next to no weight are dropped. One that has none on the first held-out rows is not asked about the others.

A sum averages what chance makes of each expert, so it bears weaker priors than the experts chose for themselves. Those
of all experts are weakened together, step by step, while the held-out rows gain by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jointwise._checks import check_real, shown
from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.fitting.blocks import BlockFit, BlockOptions
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.dictionaries import choose_dictionaries
from jointwise.fitting.choice.folds import SMALL_TABLE, row_folds
from jointwise.fitting.held_out import Repeated, check_part
from jointwise.fitting.options import Options, check_run
from jointwise.fitting.order import in_canonical_order, with_columns
from jointwise.fitting.result import Ended, Fit
from jointwise.fitting.trees import TreeFit, TreeOptions
from jointwise.fitting.weighing import (
    LEAST_ERRORS,
    MOST_LOSS,
    PART_COLUMNS,
    answering_weights,
    kept_weights,
    mean_and_error,
    parts_of,
    stacking_weights,
    sum_logs,
)
from jointwise.joint.check import Check
from jointwise.joint.density import MOST_VERDICT, JointDensity
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Solution

# An expert that has less weight than this after a short look, and is this far behind the best in nats of a held-out
# row, is left: a few odd rows are all it could serve.
LOOK_WEIGHT, FAR_BEHIND = 0.05, 1.0
# Weaker priors are kept if a held-out row gains this many nats by them, and more than noise.
LEAST_GAIN = 5e-3
# Options that identify a fit: its result depends on them.
IDENTIFYING = ("plan", "max_iter", "tol", "device", "random_state", "most_loss")

Callback = Callable[[int, float], None]
# The best dictionaries of columns by themselves, by name.
Known = Mapping[str, Dictionary]
Fold = tuple[CodedRows, CodedRows]


@dataclass(frozen=True)
class StackOptions:
    """What a stack is asked to do, checked on construction.

    Parameters are those of :class:`jointwise.JointEstimator` with the same names. `random_state` only tells the fit
    from others in its checkpoint.
    """

    experts: Any
    max_iter: int = 500
    tol: float = 1e-4
    device: Literal["cpu", "cuda"] = "cpu"
    checkpoint: str | Path | None = None
    random_state: int | np.random.RandomState | None = None
    most_loss: float = MOST_LOSS
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        check_run(self)
        if not 0 <= check_real("most_loss", self.most_loss) < np.inf:
            raise InputError(f"`most_loss` must be a number of nats, zero or more; got {shown(self.most_loss)}.")

    @property
    def plan(self) -> str:
        """The experts and their parameters, as text that identifies the fit."""
        return repr([(name, sorted(expert.get_params().items(), key=str)) for name, expert in self.experts])


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
    """

    name: str
    look: Callable[[Rows, np.random.Generator, Known], JointDensity] | None
    choose: Callable[[Rows, np.random.Generator, Checkpoint, Known, Mapping[str, Any]], Any]
    single: Callable[[Any], Any]
    fit: Callable[[Rows, Any, np.random.Generator, Callback | None, Checkpoint], Fit | BlockFit | TreeFit]
    in_folds: Callable[[Any], Any] = lambda choice: choice
    weaker: Callable[[Any], Any] = lambda _: None


@dataclass(frozen=True)
class Judged:
    """An expert, and what held-out rows say of it.

    Parameters
    ----------
    name : str
    weight : float
        Zero if it was dropped.
    held_out : float, optional
        Mean log-density of the held-out rows it was asked about; None where no rows were held out.
    fit : Fit, optional
        Its fit to all rows; None if it was dropped.
    """

    name: str
    weight: float
    held_out: float | None
    fit: Fit | BlockFit | TreeFit | None


@dataclass(frozen=True)
class StackFit(Ended):
    """A density stacked from experts.

    Parameters
    ----------
    density : JointDensity
    experts : tuple of Judged
        In the order they were given.
    n_rows : float
        Number of rows, or the sum of their weights.
    held_out : float, optional
        Mean log-density of held-out rows under the weighted sum; None where none were held out.
    loss : float, optional
        How far `held_out` is below that of the weights that predict rows best, for better predictions of parts; None
        where rows alone decide.
    check : Check, optional
        How experts learned without some rows answer questions about these.
    """

    density: JointDensity
    experts: tuple[Judged, ...]
    n_rows: float
    held_out: float | None
    loss: float | None
    check: Check | None

    @property
    def fits(self) -> dict[str, Fit | BlockFit | TreeFit]:
        """The fits of the experts that were kept, by name."""
        return {each.name: each.fit for each in self.experts if each.fit is not None}

    @property
    def options(self) -> Options | BlockOptions | TreeOptions:
        """Options of an expert; those of the last run are the same in all."""
        return next(iter(self.fits.values())).options

    @property
    def stages(self) -> dict[str, Solution[Any]]:
        """How each stage of the fits to all rows went."""
        return {f"{name}: {stage}": run for name, fit in self.fits.items() for stage, run in fit.stages.items()}

    @property
    def level_counts(self) -> Mapping[str, FloatArray]:
        """Rows at each level of each categorical column, by name; all experts have met the same."""
        return next(iter(self.fits.values())).level_counts

    @property
    def final(self) -> tuple[Solution[Any], ...]:  # type: ignore[override]  # a property here
        """The runs whose answers the experts are."""
        return tuple(run for fit in self.fits.values() for run in fit.final)


def fit_stack(
    rows: Rows,
    axes: Sequence[Axis],
    learners: Sequence[Learner],
    rng: np.random.Generator,
    callback: Callback | None = None,
    *,
    checkpoint: Checkpoint | None = None,
    repeated: Repeated | None = None,
    most_loss: float = MOST_LOSS,
    tell: Callable[[str], None] = lambda _: None,
) -> StackFit:
    """Fit experts to coded rows and weigh them by held-out rows.

    Parameters
    ----------
    rows : Rows
        With axes that suit every learner, fine ones for columns of numbers.
    axes : sequence of Axis
        The same without fine bins, on which the fit is checked.
    learners : sequence of Learner
    rng : numpy.random.Generator
        Deals rows to folds, and seeds the experts' own generators.
    callback : callable, optional
        Called with the steps taken and the objective, at every step of the last runs.
    checkpoint : Checkpoint, optional
        Keeps what was chosen, the log-densities of held-out rows, and where fits stand.
    repeated : mapping, optional
        What `Profile.repeated` found in the table, for the check of the fit; without it the fit is not checked.
    most_loss : float
        Most nats of a row of a large table that are given up for better answers.
    tell : callable
        Told in words what is going on.
    """
    if not rows.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    # one expert puts rows in order itself, and is checked with them as they came
    ordered, columns = in_canonical_order(rows) if len(learners) > 1 else (rows, np.arange(len(axes)))
    folds = row_folds(ordered, rng) if len(learners) > 1 else []
    seed = int(rng.integers(2**32))
    coarse = dict(zip(rows.schema.names, axes, strict=True))
    known = _known(ordered, [coarse[name] for name in ordered.schema.names], np.random.default_rng(seed))
    work = _Work({each.name: each for each in learners}, ordered, seed, checkpoint or Checkpoint(), tell, known)
    work, asked = _weaken(work, _ask(work, folds), folds)
    by_parts = len(rows) >= SMALL_TABLE and len(axes) > PART_COLUMNS and len(folds) == 1 and most_loss > 0
    weights = asked.weights if folds else {learners[0].name: 1.0}
    if by_parts:
        weights = _weights_by_parts(work, asked, folds[0][0], most_loss)
    check = None
    if folds and repeated is not None:
        tell("checking the sum of experts against held-out rows")
        density = work.without_first(weights).marginal(rows.schema.names)
        check = check_part(rows, axes, with_columns(folds[0][0], np.argsort(columns)), density, repeated)
    fits = _fit_all(work, weights, callback)
    if len(learners) == 1:
        check = getattr(fits[learners[0].name], "check", None)
    density = JointDensity.mix([fit.density for fit in fits.values()], [weights[name] for name in fits])
    density = density.marginal(rows.schema.names)
    if any(fit.was_interrupted for fit in fits.values()):
        work.checkpoint.flush()
    else:
        work.checkpoint.remove()
    return StackFit(
        replace(density, verdict=check.verdict[:MOST_VERDICT] if check else ""),
        tuple(Judged(name, weights.get(name, 0.0), asked.mean(name), fits.get(name)) for name in work.learners),
        ordered.n_rows,
        asked.mean_of_sum(weights),
        asked.loss(weights) if by_parts else None,
        check,
    )


def _known(rows: Rows, axes: Sequence[Axis], rng: np.random.Generator) -> Known:
    """Return the dictionaries that fit the columns best by themselves."""
    chosen = choose_dictionaries(rows.regrouped(axes), {}, rng, slack=0.0)
    return dict(zip(rows.schema.names, chosen, strict=True))


def _fit_all(work: _Work, names: Iterable[str], callback: Callback | None) -> dict[str, Fit | BlockFit | TreeFit]:
    """Fit experts to all rows; one that is interrupted is the last."""
    fits: dict[str, Fit | BlockFit | TreeFit] = {}
    for name in names:
        fits[name] = work.fit(name, work.rows, "all rows", callback)
        if fits[name].was_interrupted:
            break
    return fits


@dataclass(frozen=True)
class _Work:
    """The experts at work: what each has chosen (`choices`), and what it has learned from which rows.

    `first` are the densities learned without the first held-out rows, `weakened` is how often priors were weakened.
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

    def fit(self, name: str, rows: Rows, what: str, callback: Callback | None = None) -> Fit | BlockFit | TreeFit:
        """Fit an expert to some rows, as it has chosen from all."""
        learner, number = self.learners[name], list(self.learners).index(name)
        if name not in self.choices:
            self.tell(f"{name}: choosing")
            rng = np.random.default_rng([self.seed, number])
            record = self.checkpoint.section(f"{name}: choice", rng)
            self.choices[name] = learner.choose(self.rows, rng, record, self.known, self.choices)
        self.tell(f"{name}: fitting {what}")
        rng = np.random.default_rng([self.seed, number, 1])
        record = self.checkpoint.section(f"{name}: {what}", rng)
        choice = self.choices[name]
        if rows is not self.rows:
            choice = learner.in_folds(choice)
            if len(self.rows) >= SMALL_TABLE:  # one model of many rows tells enough
                choice = learner.single(choice)
        return learner.fit(rows, choice, rng, callback, record)

    def looks(self, rest: CodedRows, X: FloatArray) -> dict[str, FloatArray]:
        """Log-density of the encoded rows ``X`` under experts, after a short look at the rest."""
        self.tell("a short look at every expert")
        found = {}
        for number, (name, learner) in enumerate(self.learners.items()):
            if learner.look is not None:
                rng = np.random.default_rng([self.seed, number, 2])
                found[name] = learner.look(rest, rng, self.known).mixture.logpdf(X)
        return found

    def held_out(self, name: str, fold: int, rest: CodedRows, X: FloatArray) -> FloatArray:
        """Log-density of the encoded rows ``X`` under an expert learned from the rest."""
        priors = f", with weaker priors ({self.weakened})" if self.weakened else ""
        density = self.fit(name, rest, f"rows without part {fold + 1}{priors}").density
        if fold == 0:
            self.first[name] = density
        return density.mixture.logpdf(X)

    def weaker(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the choices with the next weaker priors, of those experts that have any."""
        found = {name: self.learners[name].weaker(self.choices[name]) for name in names}
        return {name: choice for name, choice in found.items() if choice is not None}

    def with_weaker(self, choices: Mapping[str, Any]) -> _Work:
        """Return the same experts, some with choices of weaker priors."""
        choices = {**self.choices, **choices}
        return replace(self, choices=choices, first=dict(self.first), weakened=self.weakened + 1)

    def without_first(self, weights: Mapping[str, float]) -> JointDensity:
        """Return the sum of experts learned without the first held-out rows."""
        return JointDensity.mix([self.first[name] for name in weights], list(weights.values()))


def _ask(work: _Work, folds: Sequence[Fold]) -> _Asked:
    """Ask experts for the log-densities of held-out rows; after each fold, only those with some weight go on.

    Those that a short look finds far behind are not asked at all.
    """
    asked = _Asked({name: np.empty(0) for name in work.learners}, np.empty(0), {}, [])
    for fold, (part, rest) in enumerate(folds):
        X = part.values()
        if not fold:
            asked = _looked(work.looks(rest, X), _counts(part), list(work.learners))
        names = asked.weights if fold else asked.near
        found = {name: work.held_out(name, fold, rest, X) for name in names}
        asked = asked.further(found, _counts(part))
    return asked


def _counts(rows: CodedRows) -> FloatArray:
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def _weaken(work: _Work, asked: _Asked, folds: Sequence[Fold]) -> tuple[_Work, _Asked]:
    """Weaken the priors of all experts that are kept together, while held-out rows gain by it."""
    while folds and (weaker := work.weaker(asked.weights)):
        trial = work.with_weaker(weaker)
        found = _ask_again(trial, asked, weaker, folds)
        if found is None:
            break
        work, asked = trial, found
    return work, asked


def _ask_again(work: _Work, asked: _Asked, names: Iterable[str], folds: Sequence[Fold]) -> _Asked | None:
    """Ask some experts again, with weaker priors; None as soon as held-out rows do not gain by these."""
    again = _Asked({name: np.empty(0) for name in names}, np.empty(0), {}, [])
    for fold, (part, rest) in enumerate(folds):
        X = part.values()
        again = again.further({name: work.held_out(name, fold, rest, X) for name in names}, _counts(part))
        before = asked.on_first(len(again.counts))
        after = replace(before, logs={**before.logs, **again.logs})
        gain, error = _gain(before, after)
        if not gain > LEAST_GAIN:
            return None
    return replace(asked, logs={**asked.logs, **again.logs}) if gain > LEAST_ERRORS * error else None


def _gain(before: _Asked, after: _Asked) -> tuple[float, float]:
    """Return the gain of a held-out row under the weighted sum, and its standard error."""
    return mean_and_error(after.logs_of_sum(after.weights) - before.logs_of_sum(before.weights), before.counts)


def _looked(logs: Mapping[str, FloatArray], counts: FloatArray, names: Sequence[str]) -> _Asked:
    """Return what a short look says: the mean log-densities of experts, and those that are asked.

    Those are the experts that are not far behind, and those at which nobody looked.
    """
    asked = _Asked({name: np.empty(0) for name in names}, np.empty(0), {}, names)
    if not logs:
        return asked
    first = _Asked(logs, counts, {}, [])
    scores = {name: first.mean(name) or 0.0 for name in logs}
    least = max(scores.values()) - FAR_BEHIND
    far = [name for name in logs if first.weights.get(name, 0.0) < LOOK_WEIGHT and scores[name] <= least]
    # the best chooses first, and others like it begin from its choice
    near = sorted((name for name in names if name not in far), key=lambda name: -scores.get(name, -np.inf))
    return replace(asked, looks=scores, near=near)


def _weights_by_parts(work: _Work, asked: _Asked, part: CodedRows, most_loss: float) -> dict[str, float]:
    """Return the weights that predict parts of the held-out rows of a large table best, with a small loss on rows."""
    work.tell("asking about parts of held-out rows")
    X = parts_of(part.values(), np.random.default_rng([work.seed, len(work.learners)]))
    logs = {name: work.first[name].mixture.logpdf(X) for name in asked.known}

    def weigh(names: list[str]) -> FloatArray:
        rows, counts = asked.stacked(names), asked.counts
        # what these lose already, without those that were dropped
        lost = asked.loss(dict(zip(names, stacking_weights(rows, counts).tolist(), strict=True)))
        parts = np.stack([logs[name] for name in names], axis=1)
        return answering_weights(rows, parts, counts, max(most_loss - max(lost, 0.0), 0.0))

    found = kept_weights(asked.known, weigh)
    return found if asked.loss(found) <= most_loss else asked.weights


@dataclass(frozen=True)
class _Asked:
    """Log-densities of held-out rows by expert, and how often each row counts; some experts know the first only."""

    logs: Mapping[str, FloatArray]
    counts: FloatArray
    looks: Mapping[str, float]
    near: Sequence[str]

    def further(self, found: Mapping[str, FloatArray], counts: FloatArray) -> _Asked:
        """Return it with the log-densities of further rows."""
        logs = {name: np.concatenate([log, found.get(name, np.empty(0))]) for name, log in self.logs.items()}
        return _Asked(logs, np.concatenate([self.counts, counts]), self.looks, self.near)

    def on_first(self, n: int) -> _Asked:
        """Return what the experts that were kept say of the first rows."""
        return _Asked({name: self.logs[name][:n] for name in self.weights}, self.counts[:n], {}, [])

    @property
    def known(self) -> list[str]:
        """The experts that know all rows."""
        return [name for name, log in self.logs.items() if len(log) == len(self.counts)]

    def stacked(self, names: Iterable[str]) -> FloatArray:
        """Log-density of each row under some experts that know all; shape (n, experts)."""
        return np.stack([self.logs[name] for name in names], axis=1)

    @cached_property
    def weights(self) -> dict[str, float]:
        """Weights by rows of the experts that know all rows and are worth keeping, by name."""
        return kept_weights(self.known, lambda names: stacking_weights(self.stacked(names), self.counts))

    def mean(self, name: str) -> float | None:
        """Mean log-density of the rows that an expert knows, or of a short look; None where there is neither."""
        log = self.logs[name]
        if not len(log):
            return self.looks.get(name)
        return float(np.average(log, weights=self.counts[: len(log)]))

    def mean_of_sum(self, weights: Mapping[str, float]) -> float | None:
        """Mean log-density of all rows under a weighted sum; None where there are none."""
        if not len(self.counts):
            return None
        return float(np.average(self.logs_of_sum(weights), weights=self.counts))

    def loss(self, weights: Mapping[str, float]) -> float:
        """Mean log-density that a row loses by weights that are not those by rows."""
        return (self.mean_of_sum(self.weights) or 0.0) - (self.mean_of_sum(weights) or 0.0)

    def logs_of_sum(self, weights: Mapping[str, float]) -> FloatArray:
        """Log-density of each row under a weighted sum."""
        return sum_logs(self.stacked(weights), np.array(list(weights.values())))
