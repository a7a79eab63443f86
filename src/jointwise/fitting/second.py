"""A second density for classes: of columns as each class sees them, with a share that held-out rows find.

A product of columns is weak at linear correlation. Within a class, columns of numbers can be centred, scaled and
decorrelated; a density of those predicts classes better where columns are correlated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.axes import Axis, DiscreteAxis, encode_rows
from jointwise.dictionary import Dictionary
from jointwise.fitting.average import average
from jointwise.fitting.choice import choose_model, short_fit
from jointwise.fitting.choice.folds import SEARCH_ROWS, fold_weights
from jointwise.fitting.order import CANONICAL_ROWS, in_order
from jointwise.fitting.result import Choice, Fit
from jointwise.fitting.rows import fit_rows
from jointwise.joint.classes import SecondDensity, standardised_probabilities
from jointwise.joint.prediction import category_probabilities
from jointwise.joint.product import ProductMixture
from jointwise.joint.standardisation import ClassStandardisation
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows
from jointwise.solvers import simplex_weights
from jointwise.tables.variables import Kind, Schema, unused_name

# Rows of prior, split evenly: a few held-out rows do not settle a share.
PRIOR_ROWS = 2.0
# Smallest gain, in nats of the class of a held-out row, that a second density must bring.
LEAST_GAIN = 1e-3


def fit_second(
    first: Fit,
    rows: FloatArray,
    weights: FloatArray | None,
    most_bins: int,
    rng: Callable[[], np.random.Generator],
    callback: Callable[[int, float], None] | None = None,
) -> tuple[SecondDensity, Fit] | None:
    """Fit a density of standardised columns, if held-out rows gain by it; return it and its fit, or None.

    Parameters
    ----------
    first : Fit
        Of the joint density of features and class, from rows.
    rows : array of shape (n, N)
        The same rows, encoded, their class last.
    weights : array of shape (n,), optional
    most_bins : int
        Most bins of a standardised column.
    rng : callable
        Returns a generator from the estimator's seed.
    callback : callable, optional
        Called with the steps taken and the objective, at every step of the last runs.
    """
    schema = first.density.schema
    n_classes = len(schema.variables[-1].categories or ())
    numbers = np.array([n for n, v in enumerate(schema) if v.kind is not Kind.CATEGORICAL], dtype=np.int64)
    each = np.ones(len(rows)) if weights is None else weights
    found = ClassStandardisation.of(rows, numbers, rows[:, -1].astype(np.int64), each, n_classes)
    if found is None:
        return None
    second = _standardised_rows(found, first, rows, weights, most_bins)
    given = {name: d for name, d in first.options.given.items() if name in second.schema.names}
    options = replace(first.options, dictionaries=given, checkpoint=None)
    draws = rng()
    chosen = choose_model(in_order(second.on(options.device)), options, draws)
    plans = (Plan(schema, first.axes, first.choice), Plan(second.schema, second.axes, chosen))
    share = held_out_share(rows, each, plans, found.columns, draws)
    if not share > 0:
        return None
    fit = fit_rows(second.on(options.device), options, rng(), callback, choice=chosen)
    return SecondDensity(found, fit.density, share), fit


def _standardised_rows(
    found: ClassStandardisation, first: Fit, rows: FloatArray, weights: FloatArray | None, most_bins: int
) -> CodedRows:
    """Return the rows as their classes see them: standardised columns, then those that stay as they are."""
    schema = first.density.schema
    seen = found.apply(rows, rows[:, -1].astype(np.int64))
    profile = Profile.of(seen[:, : len(found.columns)], weights)
    # mixtures of columns have neither the columns' bounds nor their steps
    names = profile.names
    mixed = profile.schema(
        dict.fromkeys(names, "continuous"), supports=dict.fromkeys(names), steps=dict.fromkeys(names, 0.0)
    )
    others = np.delete(np.arange(len(schema)), found.columns)
    kept = tuple(schema.variables[n] for n in others)
    taken = tuple(v.name for v in kept)
    renamed = tuple(replace(v, name=unused_name(f"mix {k + 1}", taken)) for k, v in enumerate(mixed))
    axes = profile.axes(mixed, most_bins) + tuple(first.axes[n] for n in others)
    return CodedRows(Schema(renamed + kept, schema.container), axes, encode_rows(seen, axes), weights)


def without_unmet_classes(fit: Fit) -> Fit:
    """Return the fit without levels of the class, the last variable, that no row has."""
    schema, mixture = fit.density.schema, fit.density.mixture
    assert isinstance(mixture, ProductMixture)  # of a fit of products
    levels = schema.variables[-1].categories or ()
    met = np.flatnonzero(fit.counts[-1] if fit.counts else np.ones(len(levels)))
    if len(met) == len(levels):
        return fit
    target = replace(
        schema.variables[-1], categories=tuple(levels[code] for code in met), observed=(0.0, len(met) - 1.0)
    )
    atoms = Dictionary.categories(len(met))
    coefficients = mixture.coefficients[-1][met]
    mixture = ProductMixture(
        mixture.weights,
        (*mixture.coefficients[:-1], coefficients / coefficients.sum(axis=0)),
        (*mixture.dictionaries[:-1], atoms),
    )
    density = replace(fit.density, schema=Schema((*schema.variables[:-1], target), schema.container), mixture=mixture)
    choice = replace(fit.choice, models=tuple((*model[:-1], atoms) for model in fit.choice.models))
    axes = (*fit.axes[:-1], DiscreteAxis(np.arange(len(met), dtype=float)))
    counts = (*fit.counts[:-1], fit.counts[-1][met])
    return replace(fit, density=density, choice=choice, axes=axes, counts=counts)


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
        """Fit one model in a few steps, with atoms as they are."""
        coded = CodedRows(self.schema, self.axes, encode_rows(rows, self.axes), weights)
        fitted = short_fit(coded, replace(self.choice, learn_dictionary=False), rng, n_starts=1)
        return average([fitted.dictionaries], [fitted.factors])


def held_out_share(
    rows: FloatArray,
    weights: FloatArray,
    plans: tuple[Plan, Plan],
    columns: IntArray,
    rng: np.random.Generator,
) -> float:
    r"""Share s of a standardised opinion in :math:`(1 - s) P_1(y \mid x) + s P_2(y \mid x)`, best for held-out rows.

    Zero where held-out rows gain too little by it.

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
    """Share of the second of two columns of probabilities given to what came true; zero where it gains too little."""
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
