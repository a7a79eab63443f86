r"""How far two densities of the same variables are apart, and rows that tell the same.

The Jensen-Shannon divergence of two laws f and g with the mean m = (f + g) / 2 is

.. math:: D(f, g) = \tfrac12 \mathrm{E}_f \log\frac{f}{m} + \tfrac12 \mathrm{E}_g \log\frac{g}{m},

in nats: zero if they are equal, log 2 = 0.69 if no value is possible under both. It is what one row, drawn from either
with equal odds, tells on average of which one it came from. It does not depend on units, and it is finite where a
Kullback-Leibler divergence is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from scipy.special import xlogy

from jointwise._typing import FloatArray
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.events import Interval, Point, Region
from jointwise.joint.expert import Expert, in_blocks
from jointwise.joint.information import Estimate, quadrature, sample_mean
from jointwise.joint.sum import mixed
from jointwise.tables.gaps import column_positions, emptied
from jointwise.tables.variables import Kind, Schema, Variable

# Intervals into which numbers are cut for pairs of columns and for the likeness of rows. Cutting can only lower a
# divergence: of two Gaussians one standard deviation apart, by 2%.
N_INTERVALS = 16


@dataclass(frozen=True)
class Divergence:
    """How far two densities are apart, in nats; see `JointDensity.divergence`.

    Parameters
    ----------
    total : Estimate
        Of all columns together, by sampling.
    columns : mapping of names to Estimate
        Of each column alone, by a sum or quadrature, the largest first. If gaps are part of the model, a gap is one of
        the things that a cell may be.
    pairs : mapping of pairs of names to float
        Of each pair of columns, with numbers cut into 16 intervals, the largest first.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> found = hybrid(rng=0).divergence(hybrid(rng=1), rng=0)
    >>> len(found.columns), len(found.pairs), 0 < found.total.value < 0.7
    (4, 6, True)
    """

    total: Estimate
    columns: Mapping[str, Estimate]
    pairs: Mapping[tuple[str, str], float]

    def __str__(self) -> str:
        lines = [f"in all: {self.total.value:.4f} ± {self.total.error:.4f} nats"]
        lines += [f"{name}: {found.value:.4f}" for name, found in self.columns.items()]
        return "\n".join([*lines, *(f"{a}, {b}: {found:.4f}" for (a, b), found in self.pairs.items())])


def divergence(schema: Schema, a: Expert, b: Expert, rng: np.random.Generator, n_samples: int) -> Divergence:
    """Compare two experts of the same variables, in all, by column and by pair."""
    names, places = schema.columns, column_positions(schema)
    columns = {name: of_column(a, b, place) for name, place in zip(names, places, strict=True)}
    cells = [Cells.of(schema, mixed([a, b], [0.5, 0.5]), place) for place in places]
    pairs = {}
    for i, j in combinations(range(len(names)), 2):
        p, q = (crosstab(f, cells[i], cells[j]) for f in (a, b))
        pairs[names[i], names[j]] = float(jensen_shannon(p, q))
    return Divergence(
        of_all(schema, a, b, rng, n_samples),
        dict(sorted(columns.items(), key=lambda item: -item[1].value)),
        dict(sorted(pairs.items(), key=lambda item: -item[1])),
    )


def of_column(a: Expert, b: Expert, place: Sequence[int]) -> Estimate:
    """Divergence of two experts in one column, by a sum over values or a quadrature.

    Parameters
    ----------
    a, b : Expert
    place : one or two positions
        That of the column, and that of the variable that tells its gaps. With the second, a cell is a value that is
        there, or a gap.
    """
    n, *tells = place
    values, both = [f.marginal([n]) for f in (a, b)], [f.marginal(place) for f in (a, b)]

    def at(_: Expert, points: FloatArray, weights: FloatArray) -> float:
        f, g = (part.pdf_table([points, *(np.zeros(1) for _ in tells)]).reshape(-1) for part in both)
        return float((weights * _pointwise(f, g)).sum())

    found = quadrature(mixed(values, [0.5, 0.5]), at)
    gaps = [f.marginal(tells).pdf_table([np.ones(1)]) for f in (a, b)] if tells else [np.zeros(1)] * 2
    return Estimate(max(found.value + float(jensen_shannon(*gaps)), 0.0), found.error, found.method)


def of_all(schema: Schema, a: Expert, b: Expert, rng: np.random.Generator, n_samples: int) -> Estimate:
    """Divergence of two experts in all columns, a mean over samples."""
    halves = []
    for f, g in ((a, b), (b, a)):
        X = emptied(f.sample(n_samples, rng), schema)
        own, other = f.logpdf(X), g.logpdf(X)
        halves.append(own - np.logaddexp(own, other) + np.log(2))
    found = sample_mean((halves[0] + halves[1]) / 2)
    return Estimate(max(found.value, 0.0), found.error, found.method)  # chance and rounding may leave less


def unlikeness(schema: Schema, mixture: Expert, wrt: Sequence[int], X: FloatArray, row: FloatArray) -> FloatArray:
    """Divergence of what each encoded row and ``row`` (N,) tell of the variables ``wrt``, added up; shape (rows,).

    What the rows hold in the variable itself is ignored; numbers are cut into 16 intervals.
    """
    total = np.zeros(len(X))
    for n in wrt:
        regions = partition(mixture, n, schema.variables[n])
        told = in_blocks(partial(_told, mixture, n, regions), X)
        own = _told(mixture, n, regions, row[None])
        total += jensen_shannon(told, np.broadcast_to(own, told.shape), axis=1)
    return total


@dataclass(frozen=True)
class Cells:
    """What the cells of one column may be: some regions of its values and, if the model tells gaps, a gap.

    Parameters
    ----------
    place : sequence of int
        The position of the column, and that of the variable that tells its gaps, if any.
    regions : list of regions
        They cover all values; see `partition`.
    """

    place: Sequence[int]
    regions: list[Region]

    @classmethod
    def of(cls, schema: Schema, mixture: Expert, place: Sequence[int]) -> Cells:
        """Cut the values of a column as `partition` does."""
        return cls(place, partition(mixture, place[0], schema.variables[place[0]]))


def crosstab(mixture: Expert, *columns: Cells) -> FloatArray:
    """Probability of each combination of cells, one dimension per column; a gap comes last in its dimension."""
    asked: dict[int, Sequence[Region]] = {}
    for column in columns:
        asked |= zip(column.place, (column.regions, [Point(0.0), Point(1.0)]), strict=False)
    table = mixture.crosstab(asked)
    for axis, column in enumerate(columns):
        if len(column.place) == 2:
            shown, missing = np.moveaxis(table, axis + 1, 0)
            table = np.concatenate([shown, missing.sum(axis=axis, keepdims=True)], axis=axis)
    return table


def partition(mixture: Expert, n: int, variable: Variable) -> list[Region]:
    """Cut a variable into its categories, a few integers, or spikes and intervals of about equal probability."""
    if variable.categories is not None:
        return [Point(float(code)) for code in range(len(variable.categories))]
    dictionary = mixture.dictionary(n)
    cuts = mixture.margin(n).quantiles(np.arange(1, N_INTERVALS) / N_INTERVALS)
    if variable.kind is Kind.INTEGER:
        low, high = mixture.margin(n).quantiles(np.array([0.0001, 0.9999]))
        # between two integers, so that intervals share none; of a few integers, each is an interval
        cuts = np.arange(low, high) + 0.5 if high - low < 2 * N_INTERVALS else np.floor(cuts) + 0.5
    ends = np.concatenate([[-np.inf], np.unique(cuts), [np.inf]])
    spikes = dictionary.spikes if variable.kind is Kind.CONTINUOUS else np.empty(0)
    return [*map(Point, spikes.tolist()), *map(Interval, ends[:-1].tolist(), ends[1:].tolist())]


def _told(mixture: Expert, n: int, regions: Sequence[Region], X: FloatArray) -> FloatArray:
    """P(region | other cells) of variable ``n`` for each region of a `partition`; shape (rows, regions).

    In a row whose other cells are impossible, these are ignored.
    """
    laws = mixture.conditionals(n, X)
    told, impossible = _masses(laws, regions), np.isneginf(laws.log_evidence)
    if impossible.any():
        rest = X[impossible]
        rest[:, n] = np.nan
        told[impossible] = _masses(mixture.conditionals(n, mixture.without_impossible_cells(rest)), regions)
    return told


def _masses(laws: Conditionals, regions: Sequence[Region]) -> FloatArray:
    """Probability of each region of a `partition` in each row; shape (rows, regions)."""
    n = len(laws.log_evidence)
    points = np.array([region.value for region in regions if isinstance(region, Point)])
    ends = [region.high for region in regions if isinstance(region, Interval)]
    at = laws.pdf(points) if len(points) else np.empty((n, 0))
    if not ends:
        return at
    below = np.stack([np.zeros(n), *(laws.cdf(np.full(n, end)) for end in ends[:-1]), np.ones(n)], axis=1)
    inside = np.diff(below, axis=1)
    bins = np.searchsorted(ends[:-1], points)  # the interval (low, high] that holds each spike
    for column, k in enumerate(bins):
        inside[:, k] -= at[:, column]
    return np.concatenate([at, np.maximum(inside, 0.0)], axis=1)


def jensen_shannon(p: FloatArray, q: FloatArray, axis: int | None = None) -> FloatArray:
    """Divergence of two tables of probabilities."""
    return np.asarray(np.maximum(_pointwise(p, q).sum(axis=axis), 0.0))


def _pointwise(f: FloatArray, g: FloatArray) -> FloatArray:
    return np.asarray((xlogy(f, f) + xlogy(g, g) - xlogy(f + g, (f + g) / 2)) / 2)
