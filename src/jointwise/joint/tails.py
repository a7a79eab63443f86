"""Tails that are no heavier than the rows say.

Of as many new rows as were seen, one is expected above the largest and one below the smallest, whatever the law: each
of n + 1 rows is as likely as the others to be the last in order. A wide atom that a fit keeps for the sake of the bulk
may put far more there, because nothing in the rows speaks for or against what lies beyond them.
"""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Kind, Schema, Variable

# Beyond the observed range two rows of as many as were seen are expected; over ten come once in a hundred tables,
# whatever the law. Beyond the range widened by a tenth fewer are enough to tell. Each limit: by what share the range is
# widened on each side, how many rows beyond are too many, and how many are then left.
LIMITS = ((0.0, 10.0, 2.0), (0.1, 3.0, 1.0))
# Atoms with fewer rows in the tails than this are left as they are.
LEAST_ROWS = 0.01
# An atom needs this share of its mass within the widened range to be cut to it.
LEAST_INSIDE = 1e-3


def lighter_tails(
    mixture: ProductMixture, schema: Schema, n_rows: float, given: Collection[str] = ()
) -> ProductMixture:
    r"""Return the mixture with tails that hold one or two of ``n_rows`` rows, in columns where they hold far more.

    Each atom d with mass in the tails becomes :math:`s\,d + (1 - s)\,d(\cdot \mid \text{widened range})`, with s the
    share of the tails' mass that is kept: no value becomes impossible.

    Parameters
    ----------
    mixture : ProductMixture
    schema : Schema
    n_rows : float
        Number of rows that the mixture was fitted to.
    given : collection of str
        Variables whose atoms were given and stay as they are.

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
    """Coefficients and atoms with ``expected`` rows beyond the widened range, where there were more than ``most``."""
    margin = widened * (variable.observed[1] - variable.observed[0])
    low, high = variable.observed[0] - margin, variable.observed[1] + margin
    outside = dictionary.mass(-np.inf, np.nextafter(low, -np.inf)) + dictionary.mass(high, np.inf)
    rows = n_rows * outside * (coefficients @ weights)
    heavy = (rows > LEAST_ROWS) & (outside < 1 - LEAST_INSIDE)
    if rows.sum() <= most or not heavy.any():
        return coefficients, dictionary
    kept = min(expected / float(rows[heavy].sum()), 1.0)
    cut = dictionary.take(heavy).truncate(low, high)
    scaled = np.where(heavy[:, None], kept, 1.0) * coefficients
    return np.vstack([scaled, (1 - kept) * coefficients[heavy]]), dictionary + cut
