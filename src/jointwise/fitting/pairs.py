"""Fit from pair counts alone; no row is looked at.

``method="paper"`` is JUPAD as published, in three stages: (i) the atoms' joint masses of each pair, (ii) a start from
successive projections, (iii) alternating exponentiated gradient. Any other method maximises the composite likelihood
of the pairs, from several starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from jointwise.exceptions import InputError
from jointwise.fitting.choice.dictionaries import choose_dictionaries
from jointwise.fitting.options import Options
from jointwise.fitting.possible import made_possible
from jointwise.fitting.problem import pairwise_problem
from jointwise.fitting.result import Choice, Fit
from jointwise.joint.density import JointDensity
from jointwise.joint.product import ProductMixture
from jointwise.joint.tails import lighter_tails
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.solvers import (
    AlternatingMirrorDescent,
    Factors,
    MirrorDescentPairs,
    PairwiseEM,
    PairwiseProblem,
    Solution,
    Status,
    random_start,
    simplex_weights,
    solve,
    split_starts,
)

# Components where none are asked for: pairs have no prior to make a generous number harmless.
N_COMPONENTS = 10

Callback = Callable[[int, float], None]


def fit_pairs(
    marginals: PairwiseMarginals, options: Options, rng: np.random.Generator, callback: Callback | None = None
) -> Fit:
    """Fit the joint density to pair counts.

    With one variable there are no pairs, and the density is its margin.

    Parameters
    ----------
    marginals : PairwiseMarginals
    options : Options
    rng : numpy.random.Generator
    callback : callable, optional
        Called with the steps taken and the objective, at every step of every stage.
    """
    if not marginals.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    dictionaries = choose_dictionaries(marginals, options.given, rng)
    n_components = N_COMPONENTS if options.n_components == "auto" else options.n_components
    masses = [d.masses(axis) for d, axis in zip(dictionaries, marginals.axes, strict=True)]
    stages: dict[str, Solution[Any]] = {}
    if len(masses) == 1:
        weights = simplex_weights(masses[0], marginals.marginal(0), tol=options.tol)
        factors = Factors(np.ones(1), (weights[:, None],))
    else:
        solve_pairs = _by_paper if options.method == "paper" else _by_likelihood
        stages = solve_pairs(pairwise_problem(marginals, masses), n_components, options, rng, callback)
        factors = list(stages.values())[-1].value
    mixture = ProductMixture(factors.weights, factors.coefficients, tuple(dictionaries))
    mixture = made_possible(mixture, marginals, options.given)
    mixture = lighter_tails(mixture, marginals.schema, marginals.n_rows, options.given)
    return Fit(
        JointDensity(marginals.schema, mixture),
        options,
        Choice((tuple(dictionaries),), n_components),
        tuple(marginals.axes),
        marginals.n_rows,
        stages,
        tuple(stages.values())[-1:],
        counts=tuple(map(marginals.marginal, range(len(masses)))),
    )


def _by_paper(
    problem: PairwiseProblem,
    n_components: int,
    options: Options,
    rng: np.random.Generator,
    callback: Callback | None,
) -> dict[str, Solution[Any]]:
    rate_pairs, rate_coefficients, rate_weights = options.learning_rates or (None, None, None)
    pairs = solve(MirrorDescentPairs(rate=rate_pairs), problem, max_steps=options.max_iter, callback=callback)
    start = split_starts(problem, pairs.value, n_components, n_splits=options.n_init, rng=rng)
    refined = solve(
        AlternatingMirrorDescent(start.value, rate_coefficients, rate_weights, tol=options.tol),
        problem,
        max_steps=options.max_iter,
        callback=callback,
        keep_on_interrupt=options.keep_on_interrupt,
    )
    return {"pairs": pairs, "projections": start, "refinement": refined}


def _by_likelihood(
    problem: PairwiseProblem,
    n_components: int,
    options: Options,
    rng: np.random.Generator,
    callback: Callback | None,
) -> dict[str, Solution[Any]]:
    tries: list[Solution[Factors]] = []
    while len(tries) < options.n_init and not (tries and tries[-1].status is Status.INTERRUPTED):
        start = random_start(problem, n_components, rng)
        tries.append(
            solve(
                PairwiseEM(start, tol=options.tol),
                problem,
                max_steps=options.max_iter,
                callback=callback,
                keep_on_interrupt=options.keep_on_interrupt,
            )
        )
    best = min(tries, key=lambda solution: float(solution.history[-1]))
    if tries[-1].status is Status.INTERRUPTED:  # whichever start is kept, not all have had their run
        best = replace(best, status=Status.INTERRUPTED, message=tries[-1].message)
    return {"likelihood": best}
