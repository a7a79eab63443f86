"""Fit from rows: EM on their codes, from several starts, with a prior that shrinks components towards independence.

Starts are drawn around independence. In trials on the paper's experiments they ended as well as starts from a pairwise
fit, and they need no pair counts, so the cost grows with columns and not with their pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from jointwise._checks import check_integer, check_real
from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.fitting import Fit
from jointwise.joint.density import JointDensity
from jointwise.joint.mixture import ProductMixture
from jointwise.marginals.coded import CodedRows
from jointwise.solvers import Factors, LikelihoodProblem, PosteriorEM, Solution, simplex_weights, solve, start_around
from jointwise.solvers.likelihood import RowPass

# Starts are compared after this many steps, on at most this many rows: by then their order is mostly settled.
SHORT_STEPS, SHORT_ROWS = 12, 20_000
# A component with less than this many rows to its name is dropped.
LEAST_ROWS = 0.5
# Generous beside the paper's ranks (8 to 10): 16 at n = 1,000, 39 at 20,000.
GROWTH = 0.3
LEAST_RANK, MOST_RANK = 4, 64
# Components whose conditionals differ in no column by more than this in total variation are one.
SAME = 1e-3


@dataclass(frozen=True)
class LikelihoodSettings:
    """How to fit from rows.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components to start with; those left without rows are dropped. "auto" is generous, about
        2 n^0.3 for n rows: with the prior, more than are needed do no harm.
    beta : float
        Strength of the prior, in rows per component.
    n_init : int
        Number of starts; the best after a few steps is finished.
    max_iter : int
        The most steps of the last run.
    tol : float
        It stops when two steps in a row each gain no more than this in nats per row.
    keep_on_interrupt : bool
        Whether a keyboard interrupt of the last run ends it there, rather than being raised.
    """

    n_components: int | Literal["auto"] = "auto"
    beta: float = 3.0
    n_init: int = 4
    max_iter: int = 500
    tol: float = 1e-5
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        if self.n_components != "auto":
            check_integer("n_components", self.n_components, 1)
        if check_real("beta", self.beta) < 0:
            raise InputError(f'`beta` must be "auto" or a number of rows, zero or more; got {self.beta!r}.')
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        if check_real("tol", self.tol) < 0:
            raise InputError(f"`tol` must not be negative; got {self.tol!r}.")

    def rank(self, n_rows: float) -> int:
        """Number of components to start with."""
        if self.n_components != "auto":
            return self.n_components
        return int(np.clip(2 * n_rows**GROWTH, LEAST_RANK, MOST_RANK))


def fit_likelihood(
    rows: CodedRows,
    dictionaries: Sequence[Dictionary],
    settings: LikelihoodSettings,
    rng: np.random.Generator,
    callback: Callable[[int, float], None] | None = None,
) -> Fit:
    """Joint density of coded rows, the mode of the posterior.

    Parameters
    ----------
    rows : CodedRows
    dictionaries : sequence of Dictionary
        One per variable.
    settings : LikelihoodSettings
    rng : numpy.random.Generator
    callback : callable, optional
        Called with the steps taken and the objective, at every step of the last run.
    """
    if not rows.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    problem = likelihood_problem(rows, dictionaries, settings.beta)
    if len(dictionaries) == 1:  # without another variable there is nothing for components to tell apart
        return Fit(_density(rows, dictionaries, Factors(np.ones(1), (problem.margins[0][:, None],))), {}, gain=0.0)
    start = best_start(rows, problem, settings, rng)
    solution = solve(
        PosteriorEM(start, tol=settings.tol),
        problem,
        max_steps=settings.max_iter,
        callback=callback,
        keep_on_interrupt=settings.keep_on_interrupt,
    )
    factors = tidied(solution.value, problem)
    gain = _gain(problem, factors, problem.rows) / rows.n_rows
    return Fit(_density(rows, dictionaries, factors), {"likelihood": solution}, gain)


def likelihood_problem(rows: CodedRows, dictionaries: Sequence[Dictionary], beta: float) -> LikelihoodProblem:
    """Atoms on the axes, the 1-D fit of every column, and the rows."""
    masses = tuple(d.masses(axis) for d, axis in zip(dictionaries, rows.axes, strict=True))
    margins = tuple(simplex_weights(d, rows.marginal(n)) for n, d in enumerate(masses))
    return LikelihoodProblem(masses, margins, rows.engine(), rows.n_rows, beta)


def best_start(
    rows: CodedRows, problem: LikelihoodProblem, settings: LikelihoodSettings, rng: np.random.Generator
) -> Factors:
    """The start that has come furthest after a few steps, on a sample of the rows if there are many."""
    starts = [start_around(problem.margins, settings.rank(rows.n_rows), rng) for _ in range(settings.n_init)]
    if settings.n_init == 1:
        return starts[0]
    if len(rows.codes) > SHORT_ROWS:
        sample = rows.take(np.sort(rng.choice(len(rows.codes), SHORT_ROWS, replace=False)))
        problem = replace(problem, rows=sample.engine(), n_rows=sample.n_rows)
    runs: list[Solution[Factors]] = [
        solve(PosteriorEM(start, tol=settings.tol), problem, max_steps=SHORT_STEPS) for start in starts
    ]
    return min(runs, key=lambda run: float(run.history[-1])).value


def tidied(factors: Factors, problem: LikelihoodProblem) -> Factors:
    """The same density with components that have no rows dropped and equal ones merged, largest first."""
    least = min(LEAST_ROWS / problem.n_rows, float(factors.weights.max()))
    alive = np.flatnonzero(factors.weights >= least)
    order = alive[np.argsort(-factors.weights[alive], kind="stable")]
    weights, stacked = factors.weights[order], np.vstack(factors.coefficients)[:, order]
    conditionals = problem.conditionals(stacked)
    kept: list[int] = []
    for r in range(len(order)):
        twin = next((k for k in kept if _distance(problem, conditionals[:, r], conditionals[:, k]) < SAME), None)
        if twin is None:
            kept.append(r)
            continue
        share = weights[r] / (weights[r] + weights[twin])
        stacked[:, twin] = (1 - share) * stacked[:, twin] + share * stacked[:, r]
        weights[twin] += weights[r]
    coefficients = [stacked[rows][:, kept] for rows in problem.slices]
    return Factors(weights[kept] / weights[kept].sum(), tuple(coefficients))


def held_out_gain(problem: LikelihoodProblem, factors: Factors, rows: CodedRows) -> float:
    """Log-likelihood of other rows beyond that of independence, summed over them."""
    return _gain(problem, factors, rows.engine())


def _gain(problem: LikelihoodProblem, factors: Factors, rows: RowPass) -> float:
    conditionals = problem.conditionals(np.vstack(factors.coefficients))
    found = rows.posterior_counts(conditionals / problem.bin_margins[:, None], factors.weights)
    return found.log_likelihood


def _density(rows: CodedRows, dictionaries: Sequence[Dictionary], factors: Factors) -> JointDensity:
    mixture = ProductMixture(factors.weights, factors.coefficients, tuple(dictionaries))
    return JointDensity(rows.schema, mixture)


def _distance(problem: LikelihoodProblem, a: FloatArray, b: FloatArray) -> float:
    """Largest total variation between two components' conditionals of one variable."""
    return max(float(np.abs(a[rows] - b[rows]).sum()) / 2 for rows in problem.bin_slices)
