"""How much each of two densities should say on the class of a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.axes import Axis, encode_rows
from jointwise.estimators._base import CANONICAL_ROWS
from jointwise.fitting.average import average
from jointwise.fitting.choice import SEARCH_ROWS, Choice, fold_weights, short_run
from jointwise.fitting.rows import likelihood_problem
from jointwise.joint.classes import standardised_probabilities
from jointwise.joint.prediction import category_probabilities
from jointwise.joint.product import ProductMixture
from jointwise.joint.standardisation import ClassStandardisation
from jointwise.rows.coded import CodedRows
from jointwise.solvers import simplex_weights
from jointwise.tables.variables import Schema

# Rows, evenly split, that are taken to have been asked before: few held-out rows settle no share for good.
PRIOR_ROWS = 2.0
# Nats of the class of a held-out row below which a second density is not worth its fit.
LEAST_GAIN = 1e-3


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be fitted to rows, and on which bins.

    Parameters
    ----------
    schema : Schema
    axes : tuple of Axis
    choice : Choice
    """

    schema: Schema
    axes: tuple[Axis, ...]
    choice: Choice

    def short_fit(self, rows: FloatArray, weights: FloatArray, rng: np.random.Generator) -> ProductMixture:
        """Fit one model in a few steps."""
        coded = CodedRows(self.schema, self.axes, encode_rows(rows, self.axes), weights)
        dictionaries = self.choice.models[0]
        problem = likelihood_problem(coded, dictionaries, self.choice.beta)
        return average([dictionaries], [short_run(problem, self.choice.n_components, rng)])


def held_out_share(
    rows: FloatArray,
    weights: FloatArray,
    plans: tuple[Plan, Plan],
    columns: IntArray,
    rng: np.random.Generator,
) -> float:
    r"""Share s of a standardised opinion in :math:`(1 - s) P_1(y \mid x) + s P_2(y \mid x)`, best for held-out rows.

    Zero where held-out rows gain next to nothing by it.

    Parameters
    ----------
    rows : array of shape (n, N)
        Encoded rows, their class last.
    weights : array of shape (n,)
    plans : pair of Plan
        Of the joint density of the rows, and of that of standardised rows.
    columns : array of shape (d,)
        Positions of the columns that are standardised.
    rng : numpy.random.Generator
        Deals rows to folds and draws starts.
    """
    n_classes = plans[0].axes[-1].n_bins
    if len(rows) <= CANONICAL_ROWS:
        rows, weights = _distinct(rows, weights)
    n_rows = len(rows)
    if n_rows > SEARCH_ROWS:
        chosen = np.sort(rng.choice(n_rows, SEARCH_ROWS, replace=False))
        rows, weights = rows[chosen], weights[chosen]
    classes = rows[:, -1].astype(np.int64)
    found, counts = [np.empty((0, 2))], [np.empty(0)]
    for part, rest in fold_weights(weights, n_rows, rng):
        asked, used = np.flatnonzero(part > 0), np.flatnonzero(rest > 0)
        own = ClassStandardisation.of(rows[used], columns, classes[used], rest[used], n_classes)
        if own is None or len(own.columns) != len(columns):
            continue  # too few rows without the fold
        first = plans[0].short_fit(rows[used], rest[used], rng)
        second = plans[1].short_fit(own.apply(rows[used], classes[used]), rest[used], rng)
        opinions = (
            category_probabilities(first, rows.shape[1] - 1, rows[asked], n_classes),
            standardised_probabilities(own, second, rows[asked, :-1]),
        )
        said = np.stack([opinion[np.arange(len(asked)), classes[asked]] for opinion in opinions], axis=1)
        told = ~np.isnan(said).any(axis=1)
        found.append(said[told])
        counts.append(part[asked][told])
    return _best_share(np.concatenate(found), np.concatenate(counts))


def _best_share(said: FloatArray, counts: FloatArray) -> float:
    """Share of the second column of probabilities of what came true, zero where it gains next to nothing."""
    if not counts.sum() > 0:
        return 0.0
    said = np.maximum(said, np.finfo(float).tiny)
    shares = simplex_weights(said, counts, prior=PRIOR_ROWS)
    gain = np.average(np.log(said @ shares) - np.log(said[:, 0]), weights=counts)
    return float(shares[1]) if gain > LEAST_GAIN else 0.0


def _distinct(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Equal rows as one, their weights added, sorted: neither order nor repetition of rows then has an effect.

    >>> _distinct(np.array([[2.0, 0.0], [1.0, np.nan], [2.0, 0.0], [9.0, 9.0]]), np.array([1.0, 1.0, 1.0, 0.0]))
    (array([[ 1., nan],
           [ 2.,  0.]]), array([1., 2.]))
    """
    rows, weights = rows[weights > 0], weights[weights > 0]
    order = np.lexsort(rows.T[::-1])
    rows, weights = rows[order], weights[order]
    before, after = rows[:-1], rows[1:]
    new = ((before != after) & ~(np.isnan(before) & np.isnan(after))).any(axis=1)
    starts = np.flatnonzero(np.concatenate([[True], new]))
    return rows[starts], np.add.reduceat(weights, starts)
