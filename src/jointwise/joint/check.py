"""The check of a density: rows as values, or as bins, turned into cells and compared with it.

Every column is cut into a few sets: values that repeat, intervals, the two sides of each edge. For each set of a
column, and given each set of another one, the model's probability is compared with the share of the rows, and the
model's mean with theirs; see :mod:`jointwise.joint.comparison` for what noise explains.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._typing import CodeArray, FloatArray
from jointwise.axes import Axis
from jointwise.joint.cells import Cells, axis_of_values, beyond_text, cells_of_bins, value_text
from jointwise.joint.comparison import MOST_PARTNERS, Aside, Comparison, Values
from jointwise.joint.findings import Check
from jointwise.joint.product import ProductMixture
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Kind, Schema, Variable

# Rows that are compared at most: with more, noise is far below what matters.
MOST_ROWS = 20_000
# Pairs of cells that are counted at most: it bounds the time for wide tables, by fewer rows.
MOST_COUNTED = 100_000_000


def check_rows(schema: Schema, mixture: ProductMixture, X: FloatArray, rng: np.random.Generator) -> Check:
    """Compare a mixture with encoded rows.

    Parameters
    ----------
    schema : Schema of N variables
    mixture : ProductMixture
    X : array of shape (n, N)
        NaN for gaps, -1 for categories that the schema does not know. Of many rows, a sample is compared.
    rng : numpy.random.Generator
    """
    X = X[np.sort(rng.choice(len(X), MOST_ROWS, replace=False))] if len(X) > MOST_ROWS else X
    X = _fewer(np.where(np.isfinite(X), X, np.nan), rng)
    cells: list[Cells] = []
    asides: list[Aside] = []
    values: list[Values] = []
    for n, variable in enumerate(schema):
        axis = axis_of_values(variable, X[:, n])
        masses = mixture.dictionaries[n].masses(axis) @ mixture.coefficients[n]
        cells.append(cells_of_bins(variable, axis, masses, axis.index(X[:, n]), None))
        present = X[~np.isnan(X[:, n]), n]
        if variable.categories is None and len(present):
            ends = float(present.min()), float(present.max())
            asides += beyond_range(variable, n, mixture, ends, float(len(present)))
            values += _values(variable, n, mixture, X[:, n])
    return Comparison(tuple(cells), mixture.weights, asides=tuple(asides), values=tuple(values)).check(rng)


def check_bins(
    schema: Schema,
    mixture: ProductMixture,
    axes: Sequence[Axis],
    codes: CodeArray,
    weights: FloatArray | None,
    rng: np.random.Generator,
    *,
    repeats: float = 1.0,
    asides: Sequence[Aside] = (),
) -> Check:
    """Compare a mixture with rows of which only the bins are known.

    Parameters
    ----------
    schema : Schema of N variables
    mixture : ProductMixture
    axes : sequence of N axes
    codes : array of shape (n, N)
        As `encode_rows` makes them.
    weights : array of shape (n,), optional
        How often each row counts.
    rng : numpy.random.Generator
    repeats : float
        Rows that count as one; see `Comparison`.
    asides : sequence of Aside
        What is asked of the range and of single values, which bins do not tell.
    """
    cells = tuple(
        cells_of_bins(v, axis, mixture.dictionaries[n].masses(axis) @ mixture.coefficients[n], codes[:, n], weights)
        for n, (v, axis) in enumerate(zip(schema, axes, strict=True))
    )
    return Comparison(cells, mixture.weights, weights, repeats, tuple(asides)).check(rng)


def beyond_range(
    variable: Variable, n: int, mixture: ProductMixture, ends: tuple[float, float], n_rows: float
) -> tuple[Aside, Aside]:
    """Return what lies beyond the smallest and the largest of so many values of variable ``n``.

    Of numbers both are taken a little further out, to short ones.
    """
    low, high = _outward(*ends) if variable.kind is Kind.CONTINUOUS and not is_temporal(variable.dtype) else ends
    masses = mixture.dictionaries[n].mass([-np.inf, high], [np.nextafter(low, -np.inf), np.inf])
    below, above = masses @ mixture.coefficients[n]
    return (
        Aside(variable.name, beyond_text(variable, low, above=False), "range", below, 0.0, n_rows),
        Aside(variable.name, beyond_text(variable, high, above=True), "range", above, 0.0, n_rows),
    )


def single_value(
    variable: Variable, n: int, mixture: ProductMixture, value: float, share: float, n_rows: float
) -> Aside:
    """Return a value of variable ``n`` that a share of so many rows have."""
    masses = mixture.dictionaries[n].point_mass(np.array([value]))[0] @ mixture.coefficients[n]
    return Aside(variable.name, value_text(variable, value), "value", masses, share, n_rows)


def _outward(low: float, high: float) -> tuple[float, float]:
    """Return ends of a range a hundredth of it further out at most, with few digits.

    >>> _outward(0.000372, 19.9381)
    (0.0, 20.0)
    """
    if not 1e-100 < high - low < 1e100:
        return low, high
    digits = 2 - int(np.floor(np.log10(high - low)))
    unit = 10.0**-digits
    below, above = round(np.floor(low / unit) * unit, digits), round(np.ceil(high / unit) * unit, digits)
    return min(float(below), low), max(float(above), high)


def _fewer(X: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return fewer rows where the columns are so many that counting pairs would take long."""
    partners = min(X.shape[1], MOST_PARTNERS)
    most = max(MOST_COUNTED // max(X.shape[1] * partners, 1), 2_000)
    return X if len(X) <= most else X[np.sort(rng.choice(len(X), most, replace=False))]


def _values(variable: Variable, n: int, mixture: ProductMixture, column: FloatArray) -> list[Values]:
    """Return the numbers of a column in units of their spread, if both they and the model have a mean and a spread."""
    if is_temporal(variable.dtype):
        return []
    with np.errstate(over="ignore", invalid="ignore"):  # huge numbers and heavy tails: no mean to compare
        dictionary, coefficients = mixture.dictionaries[n], mixture.coefficients[n]
        used = (coefficients > 0).any(axis=1)
        mean, var = dictionary.mean()[used], dictionary.var()[used]
        means, squares = mean @ coefficients[used], (var + mean**2) @ coefficients[used]
        usable = np.isfinite([means, squares, np.full_like(means, np.nanstd(column))]).all()
    return [Values(n, column, means, squares)] if usable else []
