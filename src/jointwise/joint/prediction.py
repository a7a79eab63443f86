"""Filling one column, or every gap, from what is known of a row.

Given the observed cells of a row, the posterior of its component is all that is needed: the conditional of any
other variable is the same mixture of its 1-D factors with the posterior as weights.
"""

from __future__ import annotations

import numpy as np

from jointwise._numerics import smallest_true
from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.joint.product import BLOCK, ProductMixture, draw_atoms
from jointwise.tables.variables import Kind, Schema


def category_probabilities(mixture: ProductMixture, n: int, X: FloatArray, n_categories: int) -> FloatArray:
    """P(category | other cells) of variable ``n`` in each encoded row of ``X``; shape (rows, n_categories).

    What a row itself holds there is not looked at.
    """
    others = X.copy()
    others[:, n] = np.nan
    given_component = mixture.dictionaries[n].pdf(np.arange(n_categories, dtype=float)) @ mixture.coefficients[n]
    out = mixture.posterior(others) @ given_component.T
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def best_value(mixture: ProductMixture, n: int, kind: Kind, posterior: FloatArray) -> FloatArray:
    """Best guess of variable ``n`` in each row: most probable category, conditional mean, or its nearest integer.

    Where the mean does not exist (heavy tails) it is the conditional median.
    """
    if kind is Kind.CATEGORICAL:
        codes = np.unique(mixture.dictionaries[n].mode())
        given_component = mixture.dictionaries[n].pdf(codes) @ mixture.coefficients[n]
        return np.asarray(codes[np.argmax(posterior @ given_component.T, axis=1)])
    # a component without weight has no say, whatever its mean
    means = np.where(mixture.weights > 0, mixture.component_means(n), 0.0)
    guess = posterior @ means if np.isfinite(means).all() else conditional_medians(mixture, n, posterior)
    return np.round(guess) if kind is Kind.INTEGER else np.asarray(guess)


def conditional_medians(mixture: ProductMixture, n: int, posterior: FloatArray) -> FloatArray:
    """Median of variable ``n`` given each row; shape (rows,)."""
    dictionary: Dictionary = mixture.dictionaries[n]
    middle = dictionary.ppf(np.array([0.5]))[0]
    out = np.empty(len(posterior))
    for start in range(0, len(posterior), BLOCK):
        weights = posterior[start : start + BLOCK] @ mixture.coefficients[n].T
        out[start : start + BLOCK] = smallest_true(
            lambda x, w=weights: np.einsum("nl,nl->n", dictionary.cdf(x), w) >= 0.5 * w.sum(axis=1),  # type: ignore[misc]
            np.full(len(weights), middle.min()),
            np.full(len(weights), middle.max()),
        )
    return out


def fill(mixture: ProductMixture, schema: Schema, X: FloatArray) -> FloatArray:
    """Encoded rows with each missing cell replaced by its best guess, a value that it can have; shape (n, N)."""
    out = X.copy()
    incomplete = np.isnan(X).any(axis=1)
    if not incomplete.any():
        return out
    posterior = mixture.posterior(X[incomplete])
    for n, variable in enumerate(schema):
        gaps = np.isnan(X[incomplete, n])
        if gaps.any():
            rows = np.flatnonzero(incomplete)[gaps]
            out[rows, n] = variable.settle(best_value(mixture, n, variable.kind, posterior[gaps]))
    return out


def draw(mixture: ProductMixture, X: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Encoded rows with the missing cells of each drawn together, given its observed cells; shape (n, N).

    A row's component is drawn once from its posterior, then each gap from that component: gaps of one row depend on
    each other as the mixture says.
    """
    out = X.copy()
    incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
    if not incomplete.size:
        return out
    ladder = np.cumsum(mixture.posterior(X[incomplete]), axis=1)
    component = np.sum(ladder / ladder[:, -1:] <= rng.random((len(incomplete), 1)), axis=1)
    for n, (coefficients, dictionary) in enumerate(zip(mixture.coefficients, mixture.dictionaries, strict=True)):
        gaps = np.isnan(X[incomplete, n])
        out[incomplete[gaps], n] = dictionary.sample(draw_atoms(coefficients, component[gaps], rng), rng)
    return out
