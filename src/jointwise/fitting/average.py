"""The mean of several fits, as one mixture."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from jointwise.dictionary import Dictionary
from jointwise.fitting.atoms import Learned
from jointwise.joint.product import ProductMixture
from jointwise.solvers.factors import Factors, stacked_slices


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
    columns = stacked_slices([len(f.weights) for f in factors])
    dictionaries, coefficients = [], []
    for n in range(len(models[0])):
        used = [model[n] for model in models]
        distinct = list({id(d): d for d in used}.values())
        rows = dict(zip(map(id, distinct), stacked_slices([d.n_atoms for d in distinct]), strict=True))
        block = np.zeros((sum(d.n_atoms for d in distinct), columns[-1].stop))
        for d, f, own in zip(used, factors, columns, strict=True):
            block[rows[id(d)], own] = f.coefficients[n]
        dictionaries.append(reduce(add, distinct))
        coefficients.append(block)
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
