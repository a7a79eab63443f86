"""The strength of the prior, and how narrow atoms may be, by held-out likelihood of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jointwise.dictionary import Dictionary
from jointwise.likelihood import LikelihoodSettings, held_out_gain, likelihood_problem
from jointwise.marginals.coded import CodedRows
from jointwise.selection.dictionaries import choose_dictionaries, sharpened, split_counts
from jointwise.solvers import Factors, LikelihoodProblem, PosteriorEM, solve, start_around

# Strengths of the prior that are tried, in rows, and how thoroughly: on so many rows, a table under `SMALL_TABLE` rows
# three times over.
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 8.0, 16.0, 30.0)
STRENGTH_ROWS, SMALL_TABLE = 20_000, 4_000
STRENGTH_TOL, STRENGTH_STEPS = 1e-4, 40


def choose_atoms_and_strength(
    rows: CodedRows,
    given: Mapping[str, Dictionary],
    settings: LikelihoodSettings,
    rng: np.random.Generator,
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[tuple[Dictionary, ...], float]:
    """Dictionaries and the strength of the prior, by held-out likelihood of rows.

    Dictionaries come from the margins, as they are or with narrow atoms added; the strength is found uphill from the
    middle of a ladder. Weak dependence wants a strong prior and strong dependence a weak one, and narrow atoms;
    between neighbours on the ladder the likelihood hardly differs.

    Parameters
    ----------
    rows : CodedRows
        In canonical order, for a choice that does not depend on the order of rows.
    given : mapping of names to Dictionary
        Dictionaries that are not to be chosen.
    settings : LikelihoodSettings
        For the number of components.
    rng : numpy.random.Generator
        Deals rows to folds.
    strengths : sequence of float
        The ladder; a single rung where the strength is given.
    """
    plain = choose_dictionaries(rows, given, rng, slack=0.0)
    sharp = sharpened(rows, given, plain)
    options = [plain, sharp] if any(a is not b for a, b in zip(plain, sharp, strict=True)) else [plain]
    if len(plain) == 1 or len(options) * len(strengths) == 1:
        return plain, strengths[0]
    folds = _row_folds(rows, rng)
    seed = int(rng.integers(2**32))
    found = [_climb(folds, each, settings, strengths, np.random.default_rng(seed)) for each in options]
    best = int(np.argmax([score for score, _ in found]))
    return options[best], found[best][1]


def _climb(
    folds: list[tuple[CodedRows, CodedRows]],
    dictionaries: Sequence[Dictionary],
    settings: LikelihoodSettings,
    ladder: Sequence[float],
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Held-out log-likelihood of the best strength of the prior, and that strength."""
    problems = [(part, likelihood_problem(rest, dictionaries, 0.0)) for part, rest in folds]
    starts = [start_around(problem.margins, settings.rank(problem.n_rows), rng) for _, problem in problems]
    scores: dict[int, float] = {}

    def score(step: int) -> float:
        if not 0 <= step < len(ladder):
            return -np.inf
        if step not in scores:
            scores[step] = sum(
                _held_out(part, replace(problem, beta=ladder[step]), start)
                for (part, problem), start in zip(problems, starts, strict=True)
            )
        return scores[step]

    step = len(ladder) // 2
    way = 1 if score(step + 1) > score(step) else -1
    while score(step + way) > score(step):
        step += way
    return score(step), ladder[step]


def _row_folds(rows: CodedRows, rng: np.random.Generator) -> list[tuple[CodedRows, CodedRows]]:
    """Pairs of held-out and training rows: one of three parts each for small tables, one quarter for large ones."""
    if len(rows.codes) > STRENGTH_ROWS:
        rows = rows.take(np.sort(rng.choice(len(rows.codes), STRENGTH_ROWS, replace=False)))
    weights = np.ones(len(rows.codes)) if rows.weights is None else rows.weights
    small = len(rows.codes) < SMALL_TABLE
    parts = split_counts(weights, 3 if small else 4, rng).T
    folds = [(rows.with_weights(p), rows.with_weights(weights - p)) for p in (parts if small else parts[:1])]
    return [(part, rest) for part, rest in folds if len(part.codes) and len(rest.codes)]


def _held_out(part: CodedRows, problem: LikelihoodProblem, start: Factors) -> float:
    """Log-likelihood of the bins of ``part`` after a short run on the other rows."""
    solution = solve(PosteriorEM(start, tol=STRENGTH_TOL), problem, max_steps=STRENGTH_STEPS)
    margins = np.concatenate([part.marginal(n) for n in range(len(part.axes))]) @ np.log(problem.bin_margins)
    return float(held_out_gain(problem, solution.value, part) + margins)
