"""The strength of the prior, by held-out likelihood of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jointwise.dictionary import Dictionary
from jointwise.likelihood import LikelihoodSettings, held_out_gain, likelihood_problem
from jointwise.marginals.coded import CodedRows
from jointwise.selection.dictionaries import split_counts
from jointwise.solvers import Factors, LikelihoodProblem, PosteriorEM, solve, start_around

# Strengths of the prior that are tried, in rows, and how thoroughly: on so many rows, a table under `SMALL_TABLE` rows
# three times over.
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 8.0, 16.0, 30.0)
STRENGTH_ROWS, SMALL_TABLE = 20_000, 4_000
STRENGTH_TOL, STRENGTH_STEPS = 1e-4, 40


def choose_strength(
    rows: CodedRows, dictionaries: Sequence[Dictionary], settings: LikelihoodSettings, rng: np.random.Generator
) -> float:
    """Strength of the prior, in rows, by held-out likelihood: uphill from the middle of a ladder of strengths.

    Weak dependence wants a strong prior and strong dependence a weak one; between neighbours on the ladder the
    likelihood hardly differs.

    Parameters
    ----------
    rows : CodedRows
        In canonical order, for a choice that does not depend on the order of rows.
    dictionaries : sequence of Dictionary
    settings : LikelihoodSettings
        For the number of components.
    rng : numpy.random.Generator
        Deals rows to folds.
    """
    folds = [(part, likelihood_problem(rest, dictionaries, 0.0)) for part, rest in _row_folds(rows, rng)]
    starts = [start_around(problem.margins, settings.rank(problem.n_rows), rng) for _, problem in folds]
    scores: dict[int, float] = {}

    def score(step: int) -> float:
        if step not in scores:
            scores[step] = sum(
                _gain(part, replace(problem, beta=STRENGTHS[step]), start)
                for (part, problem), start in zip(folds, starts, strict=True)
            )
        return scores[step]

    step = len(STRENGTHS) // 2
    way = 1 if score(step + 1) > score(step) else -1
    while 0 <= step + way < len(STRENGTHS) and score(step + way) > score(step):
        step += way
    return STRENGTHS[step]


def _row_folds(rows: CodedRows, rng: np.random.Generator) -> list[tuple[CodedRows, CodedRows]]:
    """Pairs of held-out and training rows: one of three parts each for small tables, one quarter for large ones."""
    if len(rows.codes) > STRENGTH_ROWS:
        rows = rows.take(np.sort(rng.choice(len(rows.codes), STRENGTH_ROWS, replace=False)))
    weights = np.ones(len(rows.codes)) if rows.weights is None else rows.weights
    small = len(rows.codes) < SMALL_TABLE
    parts = split_counts(weights, 3 if small else 4, rng).T
    folds = [(rows.with_weights(p), rows.with_weights(weights - p)) for p in (parts if small else parts[:1])]
    return [(part, rest) for part, rest in folds if len(part.codes) and len(rest.codes)]


def _gain(part: CodedRows, problem: LikelihoodProblem, start: Factors) -> float:
    """Held-out log-likelihood of ``part`` beyond independence, after a short run on the other rows."""
    solution = solve(PosteriorEM(start, tol=STRENGTH_TOL), problem, max_steps=STRENGTH_STEPS)
    return held_out_gain(problem, solution.value, part)
