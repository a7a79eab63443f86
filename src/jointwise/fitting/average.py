"""Several fits as one mixture: components tidied up, then averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.fitting.atoms import Learned
from jointwise.joint.product import ProductMixture, stacked
from jointwise.rows.base import Rows
from jointwise.solvers import Factors, RowsProblem

# A component with fewer rows than this is dropped.
LEAST_ROWS = 0.5
# Components whose conditionals differ in no column by more than this in total variation are one.
SAME = 1e-3


def average(models: Sequence[Sequence[Dictionary]], factors: Sequence[Factors]) -> ProductMixture:
    """Mean of the densities of several models as one mixture: all their components, each with its own atoms.

    A dictionary that several models share appears once. Models of one component each are averaged column by column:
    the mean of several independences would not be one.

    Examples
    --------
    >>> coin = Dictionary.categories(2)
    >>> heads, tails = (Factors(np.ones(1), (np.array([[p], [1 - p]]),)) for p in (0.9, 0.3))
    >>> average([[coin], [coin]], [heads, tails]).coefficients[0].round(2)
    array([[0.6],
           [0.4]])
    """
    dictionaries, coefficients = stacked(models, [f.coefficients for f in factors])
    weights = np.concatenate([f.weights for f in factors]) / len(factors)
    if len(weights) == len(factors):
        weights, coefficients = np.ones(1), [block.mean(axis=1, keepdims=True) for block in coefficients]
    return ProductMixture(weights, tuple(coefficients), tuple(dictionaries))


def average_gain(fitted: Sequence[Learned]) -> float:
    """Log-likelihood of the bins of all rows beyond that of independence, under the mean of the models."""
    bin_margins = np.mean([model.problem.bin_margins for model in fitted], axis=0)
    tables = [model.problem.conditionals(np.vstack(model.factors.coefficients)) for model in fitted]
    mixing = np.concatenate([model.factors.weights for model in fitted]) / len(fitted)
    rows = fitted[0].problem.rows
    return rows.posterior_counts(np.hstack(tables) / bin_margins[:, None], mixing).log_likelihood


def held_out_gain(fitted: Sequence[Learned], rows: Rows) -> float:
    """Log-likelihood of the bins of other rows beyond that of independence, under the mean of the models."""
    engine = rows.engine()
    return average_gain([replace(model, problem=replace(model.problem, rows=engine)) for model in fitted])


def tidied(factors: Factors, problem: RowsProblem) -> Factors:
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


def _distance(problem: RowsProblem, a: FloatArray, b: FloatArray) -> float:
    """Largest total variation between two components' conditionals of one variable."""
    return max(float(np.abs(a[rows] - b[rows]).sum()) / 2 for rows in problem.bin_slices)
