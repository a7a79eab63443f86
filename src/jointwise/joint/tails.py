"""Tails that are no heavier than the rows allow.

Among as many new rows as were seen, one is expected above the largest and one below the smallest, whatever the law:
each of n + 1 rows is equally likely to be the largest. A wide atom that a fit needs for the bulk may put far more
there, because no row is evidence for or against the values beyond the range.
"""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Kind, Schema, Variable

# Two of as many rows as were seen are expected beyond the observed range; more than ten occur in one table of a
# hundred, whatever the law. Beyond the range widened by a tenth, fewer are too many. Each limit: the share by which the
# range is widened on each side, the most rows beyond it that are accepted, and the rows that are left otherwise.
LIMITS = ((0.0, 10.0, 2.0), (0.1, 3.0, 1.0))
# Atoms with fewer rows in the tails than this stay as they are.
LEAST_ROWS = 0.01
# An atom is cut to the widened range only if it has this share of its mass inside.
LEAST_INSIDE = 1e-3


def lighter_tails(
    mixture: ProductMixture, schema: Schema, n_rows: float, given: Collection[str] = ()
) -> ProductMixture:
    r"""Return the mixture with tails reduced to one or two of ``n_rows`` rows in columns where they hold far more.

    Each atom d with mass in the tails becomes :math:`s\,d + (1 - s)\,d(\cdot \mid \text{widened range})`, where s is
    the share of the tails' mass that is kept. No value becomes impossible.

    Parameters
    ----------
    mixture : ProductMixture
    schema : Schema
    n_rows : float
        Number of rows that the mixture was fitted to.
    given : collection of str
        Variables whose atoms were given by the user; they stay as they are.

    Examples
    --------
    >>> atoms = Dictionary.grid("cauchy", 0, 0, n=1, scale=1)
    >>> heavy = ProductMixture([1.0], [[[1.0]]], [atoms])
    >>> schema = Schema((Variable("x", "continuous", observed=(-10, 10)),))
    >>> lighter = lighter_tails(heavy, schema, 1000)
    >>> [round(float(m.cdf(np.array([[-12.0]]))[0]), 4) for m in (heavy, lighter)]
    [0.0265, 0.0008]
    """
    coefficients, dictionaries = list(mixture.coefficients), list(mixture.dictionaries)
    for n, variable in enumerate(schema):
        if _has_tails(variable, dictionaries[n]) and variable.name not in given:
            for limit in LIMITS:
                coefficients[n], dictionaries[n] = _drawn_in(
                    variable, coefficients[n], dictionaries[n], mixture.weights, n_rows, *limit
                )
    if all(a is b for a, b in zip(dictionaries, mixture.dictionaries, strict=True)):
        return mixture
    return ProductMixture(mixture.weights, tuple(coefficients), tuple(dictionaries))


def _has_tails(variable: Variable, dictionary: Dictionary) -> bool:
    low, high = variable.observed
    return variable.kind is not Kind.CATEGORICAL and not dictionary.is_identity and low < high and isfinite(high - low)


def _drawn_in(
    variable: Variable,
    coefficients: FloatArray,
    dictionary: Dictionary,
    weights: FloatArray,
    n_rows: float,
    widened: float,
    most: float,
    expected: float,
) -> tuple[FloatArray, Dictionary]:
    """Leave ``expected`` rows beyond the widened range if there are more than ``most``; return coefficients, atoms."""
    added = widened * (variable.observed[1] - variable.observed[0])
    low, high = variable.observed[0] - added, variable.observed[1] + added
    below, _, above = dictionary.partition([np.nextafter(low, -np.inf), high])
    outside = below + above
    rows = n_rows * outside * (coefficients @ weights)
    heavy = (rows > LEAST_ROWS) & (outside < 1 - LEAST_INSIDE)
    if rows.sum() <= most or not heavy.any():
        return coefficients, dictionary
    kept = min(expected / float(rows[heavy].sum()), 1.0)
    cut = dictionary.take(heavy).truncate(low, high)
    scaled = np.where(heavy[:, None], kept, 1.0) * coefficients
    return np.vstack([scaled, (1 - kept) * coefficients[heavy]]), dictionary + cut
