"""Several fits as one mixture: components tidied up, then averaged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.engines import PosteriorEngine
from jointwise.fitting.atoms import Learned
from jointwise.joint.product import ProductMixture, stacked
from jointwise.solvers import Factors, RowsProblem
from jointwise.solvers.accelerated import LEAST_MASS

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
    return fitted[0].problem.rows.posterior_counts(*_mean_tables(fitted)).log_likelihood


def held_out_gains(fitted: Sequence[Learned], parts: Sequence[PosteriorEngine]) -> FloatArray:
    """Log-likelihood of the bins of each of several parts of other rows beyond that of independence.

    Parameters
    ----------
    fitted : sequence of Learned
        The models, whose mean is scored.
    parts : sequence of PosteriorEngine
        The coded rows of each part.
    """
    tables, mixing = _mean_tables(fitted)
    return np.array([part.posterior_counts(tables, mixing).log_likelihood for part in parts])


def _mean_tables(fitted: Sequence[Learned]) -> tuple[FloatArray, FloatArray]:
    """Return the conditionals of all components, divided by the mean margins, and the weights of the components.

    A bin that no row has met says nothing about components: it counts as if the columns were independent.
    """
    bin_margins = np.array([model.problem.bin_margins for model in fitted])
    tables = np.hstack([model.problem.conditionals(np.vstack(model.factors.coefficients)) for model in fitted])
    mixing = np.concatenate([model.factors.weights for model in fitted]) / len(fitted)
    met = np.max(bin_margins, axis=0) > LEAST_MASS
    return np.where(met[:, None], tables / bin_margins.mean(axis=0)[:, None], 1.0), mixing


def tidied(factors: Factors, problem: RowsProblem) -> Factors:
    """The same density with components that have no rows dropped and equal ones merged, largest first."""
    least = min(LEAST_ROWS / problem.n_rows, float(factors.weights.max()))
    alive = np.flatnonzero(factors.weights >= least)
    order = alive[np.argsort(-factors.weights[alive], kind="stable")]
    weights, stacked = factors.weights[order], np.vstack(factors.coefficients)[:, order]
    conditionals = problem.conditionals(stacked)
    kept: list[int] = []
    starts = [bins.start for bins in problem.bin_slices]
    first = conditionals[problem.bin_slices[0]]  # most components differ here already
    for r in range(len(order)):
        near = [kept[i] for i in np.flatnonzero(np.abs(first[:, kept] - first[:, r : r + 1]).sum(axis=0) / 2 < SAME)]
        apart = np.abs(conditionals[:, near] - conditionals[:, r : r + 1])
        distances = np.add.reduceat(apart, starts, axis=0).max(axis=0) / 2
        twin = next((k for k, distance in zip(near, distances, strict=True) if distance < SAME), None)
        if twin is None:
            kept.append(r)
            continue
        share = weights[r] / (weights[r] + weights[twin])
        stacked[:, twin] = (1 - share) * stacked[:, twin] + share * stacked[:, r]
        weights[twin] += weights[r]
    coefficients = [stacked[rows][:, kept] for rows in problem.slices]
    return Factors(weights[kept] / weights[kept].sum(), tuple(coefficients))
