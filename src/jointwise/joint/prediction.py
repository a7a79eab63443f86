"""What each row tells about one column, about an event, or about its own gaps.

The law of each variable given the row's other cells is all that is needed: see :class:`Conditionals`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jointwise._typing import FloatArray
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.events import Point, Region, Values
from jointwise.joint.expert import Expert, in_blocks
from jointwise.tables.variables import Kind, Schema


def category_probabilities(mixture: Expert, n: int, X: FloatArray, n_categories: int) -> FloatArray:
    """P(category | other cells) of variable ``n`` in each encoded row of ``X``; shape (rows, n_categories).

    What a row itself holds there is not looked at.
    """
    codes = np.arange(n_categories, dtype=float)
    out = _answers(mixture, n, X, lambda law: law.pdf(codes))
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def best_values(mixture: Expert, n: int, kind: Kind, X: FloatArray) -> FloatArray:
    """Best guess of variable ``n`` in each encoded row of ``X``, given the row's other cells; shape (rows,).

    It is the most probable category, the conditional mean, or its nearest integer. Where the mean does not exist (heavy
    tails) it is the conditional median.
    """
    return _answers(mixture, n, X, _guess(mixture, n, kind))


def expectations(mixture: Expert, n: int, X: FloatArray) -> FloatArray:
    """E[X_n | other cells] in each encoded row of ``X``, NaN where there is no mean; shape (rows,)."""
    return _answers(mixture, n, X, lambda law: law.mean())


def quantiles(mixture: Expert, n: int, levels: Sequence[float], X: FloatArray) -> FloatArray:
    """Quantiles of variable ``n`` in each encoded row of ``X``, given the row's other cells; shape (rows, levels)."""
    return _answers(mixture, n, X, lambda law: np.stack([law.quantile(q) for q in levels], axis=1))


def event_probabilities(mixture: Expert, event: Mapping[int, Region], X: FloatArray) -> FloatArray:
    """P(event | other cells) in each encoded row of ``X``; cells of the event's own variables are ignored.

    By the theorem of Bayes it is P(event) f(rest | event) / f(rest), so the event is looked at once for all rows;
    shape (rows,).
    """
    sets = {n: Values((r.value,), r.half) if isinstance(r, Point) else r for n, r in event.items()}
    log_prior = mixture.log_probability(sets)
    rest = [n for n in range(mixture.n_variables) if n not in event]
    if np.isneginf(log_prior) or not rest:
        return np.full(len(X), np.exp(log_prior))
    given, alone = mixture.condition(sets).marginal(rest), mixture.marginal(rest)

    def of(rows: FloatArray) -> FloatArray:
        known = rows[:, rest]
        log_known = alone.logpdf(known)
        impossible = np.isneginf(log_known)
        if impossible.any():
            known[impossible] = alone.without_impossible_cells(known[impossible])
            log_known[impossible] = alone.logpdf(known[impossible])
        return np.minimum(np.exp(log_prior + given.logpdf(known) - log_known), 1.0)

    return in_blocks(of, X)


def fill(mixture: Expert, schema: Schema, X: FloatArray) -> FloatArray:
    """Encoded rows with each missing cell replaced by its best guess, a value that it can have; shape (n, N)."""
    return in_blocks(lambda rows: _filled(mixture, schema, rows), X)


def _filled(mixture: Expert, schema: Schema, X: FloatArray) -> FloatArray:
    out, impossible = X.copy(), np.zeros(len(X), dtype=bool)
    for n, rows, law in mixture.gaps(X):
        out[rows, n] = schema.variables[n].settle(_guess(mixture, n, schema.variables[n].kind)(law))
        impossible[rows] = np.isneginf(law.log_evidence)
    if impossible.any():
        known = X[impossible]
        out[impossible] = _filled(mixture, schema, mixture.without_impossible_cells(known))
        out[impossible] = np.where(np.isnan(known), out[impossible], known)
    return out


def _answers(mixture: Expert, n: int, X: FloatArray, answer: Callable[[Conditionals], FloatArray]) -> FloatArray:
    """Return what ``answer`` says of the law of variable ``n`` in each row; impossible cells are left out."""

    def of(rows: FloatArray) -> FloatArray:
        law = mixture.conditionals(n, rows)
        out, impossible = answer(law), np.isneginf(law.log_evidence)
        if impossible.any():
            known = rows[impossible]
            known[:, n] = np.nan
            out[impossible] = answer(mixture.conditionals(n, mixture.without_impossible_cells(known)))
        return out

    return in_blocks(of, X)


def _guess(mixture: Expert, n: int, kind: Kind) -> Callable[[Conditionals], FloatArray]:
    """Return the function that gives the best guess of variable ``n`` in each row from its laws."""
    if kind is Kind.CATEGORICAL:
        codes = np.unique(mixture.dictionary(n).mode())
        return lambda law: np.asarray(codes[np.argmax(law.pdf(codes), axis=1)])

    def number(law: Conditionals) -> FloatArray:
        guess = law.mean()
        if not np.isfinite(guess).all():
            guess = np.where(np.isfinite(guess), guess, law.quantile(0.5))
        return np.round(guess) if kind is Kind.INTEGER else guess

    return number
