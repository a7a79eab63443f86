"""Tails that are no heavier than the rows allow.

Among as many new rows as were seen, one is expected above the largest and one below the smallest, whatever the law:
each of n + 1 rows is equally likely to be the largest. A wide atom that a fit needs for the bulk may put far more
there, because no row is evidence for or against the values beyond the range.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
            coefficients[n], dictionaries[n] = _lighter(
                variable, coefficients[n], dictionaries[n], mixture.weights, n_rows
            )
    if all(a is b for a, b in zip(dictionaries, mixture.dictionaries, strict=True)):
        return mixture
    return ProductMixture(mixture.weights, tuple(coefficients), tuple(dictionaries))


def _has_tails(variable: Variable, dictionary: Dictionary) -> bool:
    low, high = variable.observed
    return variable.kind is not Kind.CATEGORICAL and not dictionary.is_identity and low < high and isfinite(high - low)


def _lighter(
    variable: Variable, coefficients: FloatArray, dictionary: Dictionary, weights: FloatArray, n_rows: float
) -> tuple[FloatArray, Dictionary]:
    """Return coefficients and atoms of one column with lighter tails; the same ones if all limits hold."""
    ranges = [_widened(variable, widened) for widened, _, _ in LIMITS]
    outside = _outside(dictionary, ranges)
    for k, (_, most, expected) in enumerate(LIMITS):
        rows = n_rows * outside[k] * (coefficients @ weights)
        heavy = (rows > LEAST_ROWS) & (outside[k] < 1 - LEAST_INSIDE)
        if rows.sum() > most and heavy.any():
            kept = min(expected / float(rows[heavy].sum()), 1.0)
            scaled = np.where(heavy[:, None], kept, 1.0) * coefficients
            coefficients = np.vstack([scaled, (1 - kept) * coefficients[heavy]])
            dictionary = dictionary + dictionary.take(heavy).truncate(*ranges[k])
            outside = _outside(dictionary, ranges)
    return coefficients, dictionary


def _widened(variable: Variable, share: float) -> tuple[float, float]:
    """Return the observed range, widened by a share of it on each side."""
    low, high = variable.observed
    added = share * (high - low)
    return low - added, high + added


def _outside(dictionary: Dictionary, ranges: Sequence[tuple[float, float]]) -> FloatArray:
    """Return the mass of each atom beyond each of some ranges, every one within the next; shape (ranges, L)."""
    lower = [np.nextafter(low, -np.inf) for low, _ in ranges]
    masses = dictionary.partition([*lower[::-1], *(high for _, high in ranges)])
    n = len(ranges)
    return (np.cumsum(masses[:n], axis=0) + np.cumsum(masses[: -n - 1 : -1], axis=0))[::-1]
