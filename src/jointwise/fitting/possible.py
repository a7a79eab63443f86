"""Rows that were never met are rare, not impossible.

A category that is declared but was not met, a whole number beyond those seen and a value between those that rows repeat
are values of their columns like any other. Each of them gets a small share of every component. Good and Turing's
estimate bounds the shares together: what was not met has about as many rows as there are values that were met once.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.dictionary import Dictionary
from jointwise.families import StudentT
from jointwise.fitting.counted import Counted
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Kind, Variable

# Rows of each value that was not met, if not too many values were not met.
UNMET_ROWS = 0.5
# Share of the margin that a component has at least: what pairs, or rows without a prior, rule out may be noise.
TRACE = 1e-6


def made_possible(mixture: ProductMixture, counted: Counted, given: Collection[str] = ()) -> ProductMixture:
    r"""Return the mixture with a positive density for every row that the kinds and supports of the columns allow.

    Where all atoms of column n are single values, those that no row has get shares :math:`s_l` of every component, and
    so does one wide Student-t atom for all other numbers:

    .. math:: B_n[l, r] \leftarrow (1 - \textstyle\sum_k s_k) B_n[l, r] + s_l.

    Coefficients that are zero next to the margin are raised to a trace of it.

    Parameters
    ----------
    mixture : ProductMixture
    counted : Rows, PairwiseMarginals or other counts of columns
        What the mixture was fitted to.
    given : collection of str
        Variables whose atoms were given by the user; they get no wide atom.

    Examples
    --------
    >>> from jointwise.rows.coded import CodedRows
    >>> from jointwise.axes import DiscreteAxis
    >>> from jointwise.tables.variables import Schema
    >>> size = Variable("size", "categorical", categories=("S", "M", "L"))
    >>> codes = np.array([[0], [0], [1], [1]], dtype=np.uint8)
    >>> rows = CodedRows(Schema((size,)), (DiscreteAxis(np.arange(3.0)),), codes)
    >>> fitted = ProductMixture([1.0], [[[0.5], [0.5], [0.0]]], [Dictionary.categories(3)])
    >>> made_possible(fitted, rows).coefficients[0].ravel().round(3)
    array([0.444, 0.444, 0.111])
    """
    coefficients, dictionaries = list(mixture.coefficients), list(mixture.dictionaries)
    for n, (variable, axis) in enumerate(zip(counted.schema, counted.axes, strict=True)):
        if dictionaries[n].is_identity:
            others = None if variable.name in given else _others(variable, mixture.margin(n).mean())
            coefficients[n], dictionaries[n] = _with_unmet(
                coefficients[n], dictionaries[n], others, axis, counted.marginal(n)
            )
        coefficients[n] = _with_trace(coefficients[n], mixture.weights)
    if all(a is b for a, b in zip(coefficients, mixture.coefficients, strict=True)):
        return mixture
    return ProductMixture(mixture.weights, tuple(coefficients), tuple(dictionaries))


def unmet_rows(counts: FloatArray) -> FloatArray:
    """Rows that each value without counts is taken to have; zero for the others; shape as ``counts``.

    >>> unmet_rows(np.array([40.0, 0.0])), unmet_rows(np.array([40.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    (array([0. , 0.5]), array([0.  , 0.  , 0.25, 0.25, 0.25, 0.25]))
    """
    unmet = counts <= 0
    once = float((~unmet & (counts <= 1)).sum())
    each = min(UNMET_ROWS, max(once, UNMET_ROWS) / max(int(unmet.sum()), 1))
    return np.where(unmet, each, 0.0)


def _others(variable: Variable, mean: float) -> Dictionary | None:
    """Return a wide atom for the numbers that are not atoms of their own; None where there are none."""
    low, high = variable.observed
    if variable.categories is not None or not np.isfinite([low, high, mean]).all():
        return None
    is_integer = variable.kind is Kind.INTEGER
    if is_integer and low <= variable.support[0] and variable.support[1] <= high:
        return None
    spread = high - low + 1 if is_integer else (high - low) or variable.step or abs(high) or 1.0
    wide = Dictionary((StudentT(df=np.array([3.0]), loc=np.array([mean]), scale=np.array([spread / 2])),))
    if is_integer:
        wide = wide.on_lattice()
    return wide.truncate(*variable.support) if variable.is_bounded else wide


def _with_unmet(
    coefficients: FloatArray, dictionary: Dictionary, others: Dictionary | None, axis: Axis, counts: FloatArray
) -> tuple[FloatArray, Dictionary]:
    """Give a share of every component to atoms without rows, and to the numbers that have no atom of their own."""
    bins = dictionary.bins(axis)
    met = dictionary.masses(axis).T @ counts if bins is None else counts[bins].astype(np.float64)
    rows = unmet_rows(met)
    if others is not None:
        coefficients = np.vstack([coefficients, np.zeros(coefficients.shape[1])])
        # the more rows each value has, the fewer have another one
        fewest = met[met > 0].min(initial=np.inf)
        dictionary, rows = dictionary + others, np.append(rows, UNMET_ROWS / max(fewest, 1.0))
    if not rows.any():
        return coefficients, dictionary
    shares = rows / (met.sum() + rows.sum())
    return (1 - shares.sum()) * coefficients + shares[:, None], dictionary


def _with_trace(coefficients: FloatArray, weights: FloatArray) -> FloatArray:
    """Mix a trace of the margin into all components, if some lack it."""
    margin = coefficients @ weights
    margin = (1 - TRACE) * margin + TRACE / len(margin)
    if (coefficients >= TRACE * margin[:, None]).all():
        return coefficients
    mixed: FloatArray = (1 - TRACE) * coefficients + TRACE * margin[:, None]
    mixed.flags.writeable = False  # so that the mixture needs no copy
    return mixed
