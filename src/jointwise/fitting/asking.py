"""Asking experts about held-out rows: their log-densities, the weights these give, and priors that rows bear.

Experts that a short look finds far behind are not asked, and one that has no weight on the first held-out rows, nor is
needed for a target or for answers, is not asked about the others.

A sum averages what chance makes of each expert, so it bears weaker priors than the experts chose for themselves. Those
of all experts are weakened together, step by step, while the held-out rows gain by it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jointwise._typing import FloatArray
from jointwise.fitting.crosstabs import Crosstabs
from jointwise.fitting.learners import LOOK, Work
from jointwise.fitting.weighing import (
    LEAST_CELL_LOSS,
    LEAST_CHANGE,
    LEAST_ERRORS,
    LEAST_LOSS,
    LEAST_WEIGHT,
    answering_weights,
    changes_without,
    kept_weights,
    losses_without,
    mean_and_error,
    predicting_weights,
    stacking_weights,
    sum_logs,
)
from jointwise.rows.coded import CodedRows

# An expert that has less weight than this after a short look, or by which a held-out row gains no more than this many
# nats nor more than noise, and is this far behind the best, is left: a few odd rows are all it could serve.
LOOK_WEIGHT, LOOK_GAIN, FAR_BEHIND = 0.05, 0.02, 1.0
# Such an expert is asked all the same if it has this many times the weight, or the say, that a target needs.
LOOK_TARGET = 5.0
# Weaker priors are kept if a held-out row gains this many nats by them, and more than noise.
LEAST_GAIN = 5e-3

Fold = tuple[CodedRows, CodedRows]


def ask(work: Work, folds: Sequence[Fold]) -> Asked:
    """Ask experts for the log-densities of held-out rows; after each fold, only those with some weight go on.

    Those that a short look finds far behind are not asked at all.
    """
    asked = Asked({name: np.empty(0) for name in work.learners}, np.empty(0), {}, [])
    for fold, (part, rest) in enumerate(folds):
        X = part.values()
        if fold:
            names = {**asked.weights, **_telling(work, asked, range(fold)), **_answering(work, asked)}
            found = work.all_held_out(names, fold, rest, X)
        else:
            asked, found = _ask_first(work, part, rest, X)
        asked = asked.further(found, _counts(part))
    return asked


def _ask_first(work: Work, part: CodedRows, rest: CodedRows, X: FloatArray) -> tuple[Asked, dict[str, FloatArray]]:
    """Return what a short look says, and the log-densities of the first held-out rows under those that are not left.

    The best is asked first. What it says takes the place of its look, and those that are then far behind are left too,
    even if they gained as much on their looks as others did. Experts that tell of a target are asked in any case. The
    kinds of experts are asked side by side.
    """
    logs, counts = work.looks(rest, X), _counts(part)
    telling = _telling(work, Asked(logs, counts, {}, []), [LOOK], LOOK_TARGET)
    asked = looked(logs, counts, list(work.learners), telling)

    def ask_in_turn(names: Iterable[str], found: dict[str, FloatArray]) -> dict[str, FloatArray]:
        for name in names:
            gain = max((_mean(found[each], counts) - asked.looks[each] for each in found if each in logs), default=0.0)
            by_now = {each: found.get(each, log + max(gain, 0.0)) for each, log in logs.items()}
            if name in telling or name not in far_behind(by_now, asked.looks, counts):
                found[name] = work.held_out(name, 0, rest, X)
        return found

    best = ask_in_turn(asked.near[:1], {})
    kinds: dict[str, list[str]] = {}
    for name in asked.near[1:]:
        kinds.setdefault(work.learners[name].kind or name, []).append(name)
    found = work.for_each(kinds, lambda kind: ask_in_turn(kinds[kind], dict(best)))
    return asked, dict(ChainMap(best, *found.values()))


def _mean(logs: FloatArray, counts: FloatArray) -> float:
    return float(np.average(logs, weights=counts))


def _counts(rows: CodedRows) -> FloatArray:
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def weaken(work: Work, asked: Asked, folds: Sequence[Fold]) -> tuple[Work, Asked]:
    """Weaken the priors of all experts that are kept together, while held-out rows gain by it."""
    while folds and (weaker := work.weaker(asked.weights)):
        trial = work.with_weaker(weaker)
        found = _ask_again(trial, asked, weaker, folds)
        if found is None:
            break
        work, asked = trial, found
    return work, asked


def _ask_again(work: Work, asked: Asked, names: Iterable[str], folds: Sequence[Fold]) -> Asked | None:
    """Ask some experts again, with weaker priors; None as soon as held-out rows do not gain by these."""
    again = Asked({name: np.empty(0) for name in names}, np.empty(0), {}, [])
    for fold, (part, rest) in enumerate(folds):
        X = part.values()
        again = again.further(work.all_held_out(names, fold, rest, X), _counts(part))
        before = asked.on_first(len(again.counts))
        after = replace(before, logs={**before.logs, **again.logs})
        gain, error = _gain(before, after)
        if not gain > LEAST_GAIN:
            return None
    return replace(asked, logs={**asked.logs, **again.logs}) if gain > LEAST_ERRORS * error else None


def _gain(before: Asked, after: Asked) -> tuple[float, float]:
    """Return the gain of a held-out row under the weighted sum, and its standard error."""
    return mean_and_error(after.logs_of_sum(after.weights) - before.logs_of_sum(before.weights), before.counts)


def looked(
    logs: Mapping[str, FloatArray], counts: FloatArray, names: Sequence[str], telling: Container[str] = ()
) -> Asked:
    """Return what a short look says: the mean log-densities of experts, and those that are asked.

    Those are the experts that are not far behind, those that tell of a target, and those at which nobody looked.
    """
    asked = Asked({name: np.empty(0) for name in names}, np.empty(0), {}, names)
    if not logs:
        return asked
    first = Asked(logs, counts, {}, [])
    scores = {name: first.mean(name) or 0.0 for name in logs}
    far = [name for name in far_behind(logs, scores, counts) if name not in telling]
    # the best chooses first, and others like it begin from its choice
    near = sorted((name for name in names if name not in far), key=lambda name: -scores.get(name, -np.inf))
    return replace(asked, looks=scores, near=near)


def far_behind(logs: Mapping[str, FloatArray], scores: Mapping[str, float], counts: FloatArray) -> list[str]:
    """Return the experts whose mean log-density at a look is far below the best, and which add little to the sum.

    These have little weight, or rows gain little by them and no more than noise.

    Parameters
    ----------
    logs : mapping of str to arrays of shape (n,)
        Log-density of each row under each expert, after a look or a fit.
    scores : mapping of str to float
        Mean log-density under each expert after a look.
    counts : array of shape (n,)
        How often each row counts.
    """
    every, least = Asked(logs, counts, {}, []), max(scores.values(), default=0.0) - FAR_BEHIND

    def adds_little(name: str) -> bool:
        if every.weights.get(name, 0.0) < LOOK_WEIGHT:
            return True
        others = replace(every, logs={other: log for other, log in logs.items() if other != name})
        with np.errstate(invalid="ignore"):  # rows that the others hold impossible
            gain, error = _gain(others, every)
        return gain <= min(LOOK_GAIN, LEAST_ERRORS * error)

    return [name for name, score in scores.items() if score <= least and adds_little(name)]


def _answering(work: Work, asked: Asked) -> dict[str, float]:
    """Return the experts that answers need, as far as is known; none where experts are weighed by rows alone."""
    return {} if work.tables is None else weights_for_answers(work, asked, work.tables)


def weights_for_answers(work: Work, asked: Asked, tables: Crosstabs) -> dict[str, float]:
    """Return the weights that predict crosstabs of the first held-out rows best, with a loss on all of them."""
    work.tell("asking about crosstabs of held-out rows")

    def weigh(names: list[str]) -> FloatArray:
        rows, counts = asked.stacked(names), asked.counts
        # what these lose already, without those that were dropped
        gone = asked.loss(dict(zip(names, stacking_weights(rows, counts).tolist(), strict=True)))
        return answering_weights(rows, cells(names), counts, tables, max(work.most_loss - max(gone, 0.0), 0.0))

    def cells(names: list[str]) -> FloatArray:
        return np.stack(list(work.for_each(names, lambda name: work.log_masses(name, tables)).values()), axis=1)

    met = tables.counts(asked.counts[: len(tables.cells)])

    def worth(names: list[str], weights: FloatArray) -> FloatArray:
        lost = np.maximum(asked.lost(names, weights), losses_without(cells(names), met, weights) / LEAST_CELL_LOSS)
        return np.minimum(weights / LEAST_WEIGHT, lost)

    found = kept_weights(asked.known, weigh, worth)
    return found if asked.loss(found) <= work.most_loss else asked.weights


def _telling(work: Work, asked: Asked, folds: Sequence[int], least: float = 1.0) -> dict[str, float]:
    """Return the experts that a target is predicted by; none where there is no target."""
    return {} if work.target is None or not asked.known else weights_for_target(work, asked, folds, least)


def weights_for_target(work: Work, asked: Asked, folds: Sequence[int], least: float = 1.0) -> dict[str, float]:
    """Return the weights that predict a column of the rows that some folds hold out best from the others.

    An expert is dropped if it has next to no weight, and next to no say: one with a far higher density of rows than the
    others decides at any weight. Of an expert, ``least`` times as much of either is asked for.
    """
    others = {name: np.concatenate([work.others[name, fold] for fold in folds]) for name in asked.known}

    def without(names: list[str]) -> FloatArray:
        return np.stack([others[name] for name in names], axis=1)

    def weigh(names: list[str]) -> FloatArray:
        return predicting_weights(asked.stacked(names), without(names), asked.counts)

    def worth(names: list[str], weights: FloatArray) -> FloatArray:
        changes = changes_without(asked.stacked(names), without(names), asked.counts, weights)
        return np.maximum(weights / LEAST_WEIGHT, changes / LEAST_CHANGE) / least

    return kept_weights(asked.known, weigh, worth)


@dataclass(frozen=True)
class Asked:
    """Log-densities of held-out rows by expert, and how often each row counts; some experts know the first only."""

    logs: Mapping[str, FloatArray]
    counts: FloatArray
    looks: Mapping[str, float]
    near: Sequence[str]

    def further(self, found: Mapping[str, FloatArray], counts: FloatArray) -> Asked:
        """Return it with the log-densities of further rows."""
        logs = {name: np.concatenate([log, found.get(name, np.empty(0))]) for name, log in self.logs.items()}
        return Asked(logs, np.concatenate([self.counts, counts]), self.looks, self.near)

    def on_first(self, n: int) -> Asked:
        """Return what the experts that were kept say of the first rows."""
        return Asked({name: self.logs[name][:n] for name in self.weights}, self.counts[:n], {}, [])

    @property
    def known(self) -> list[str]:
        """The experts that know all rows."""
        return [name for name, log in self.logs.items() if len(log) == len(self.counts)]

    def stacked(self, names: Iterable[str]) -> FloatArray:
        """Log-density of each row under some experts that know all; shape (n, experts)."""
        return np.stack([self.logs[name] for name in names], axis=1)

    @cached_property
    def weights(self) -> dict[str, float]:
        """Weights by rows of the experts that know all rows and have some, by name."""
        return kept_weights(self.known, self._weigh)

    @property
    def last_weights(self) -> dict[str, float]:
        """The same of those without which these rows lose something."""
        return kept_weights(
            self.known, self._weigh, lambda names, found: np.minimum(found / LEAST_WEIGHT, self.lost(names, found))
        )

    def _weigh(self, names: list[str]) -> FloatArray:
        return stacking_weights(self.stacked(names), self.counts)

    def lost(self, names: list[str], weights: FloatArray) -> FloatArray:
        """Return what rows lose without each of some experts, in units of what is worth keeping one for."""
        return losses_without(self.stacked(names), self.counts, weights) / LEAST_LOSS

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
