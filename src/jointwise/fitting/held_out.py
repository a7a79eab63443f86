"""The check of a fit: a model like the one fitted, learned without some rows, is compared with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.fitting.average import average
from jointwise.fitting.choice import short_fit
from jointwise.fitting.choice.folds import fold_weights
from jointwise.fitting.possible import made_possible
from jointwise.fitting.result import Choice
from jointwise.joint.check import Check, beyond_range, check_bins, single_value
from jointwise.joint.comparison import Aside
from jointwise.joint.density import JointDensity
from jointwise.joint.expert import Expert
from jointwise.joint.tails import lighter_tails
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.tables.variables import Kind

# In smaller tables, what goes beyond noise is plain to see.
LEAST_ROWS = 200
# Most rows drawn for the check: three quarters to learn from, a quarter to compare with.
SAMPLE_ROWS = 20_000
# Most starts: one alone may lead a few components astray.
MOST_STARTS = 4
# Most cells of the sample, which bounds the time for wide tables.
SAMPLE_CELLS = 1_000_000
# The check draws its own numbers, so that a fit is the same with it or without.
SEED = 20_240_521

# By column name, the values that many rows share, each with its share of the rows.
Repeated = Mapping[str, Mapping[float, float]]


def held_out_check(
    rows: Rows, choice: Choice, n_starts: int, repeated: Repeated, given: Collection[str] = ()
) -> Check | None:
    """Compare a model like the one fitted with rows that it was not learned from; None for small tables.

    Parameters
    ----------
    rows : Rows
        As they came, whatever their order.
    choice : Choice
        What was fitted.
    n_starts : int
        Starts of the fit; no more than a few are tried here.
    repeated : mapping
        What `Profile.repeated` found in all rows.
    given : collection of str
        Variables whose atoms were given.
    """
    n = len(rows)
    if n < LEAST_ROWS:
        return None
    rng = np.random.default_rng(SEED)
    taken = _sampled(rows, rng)
    repeats = 1.0 if taken.weights is None else _repeats(taken.weights)
    sample = taken.canonical()
    held, rest = fold_weights(sample, n, rng)[0]
    part = sample.with_weights(held)
    training = sample.with_weights(rest)
    learned = short_fit(training, choice, rng, min(n_starts, MOST_STARTS))
    mixture = made_possible(average([learned.dictionaries], [learned.factors]), training, given)
    mixture = lighter_tails(mixture, rows.schema, rows.n_rows, given)
    asides = _asides(rows, mixture, repeated)
    return check_bins(rows.schema, mixture, rows.axes, part.codes, part.weights, rng, repeats=repeats, asides=asides)


def check_part(
    rows: Rows, axes: Sequence[Axis], part: CodedRows, density: JointDensity, repeated: Repeated
) -> Check | None:
    """Compare a density learned without some rows with these; None for small tables.

    Parameters
    ----------
    rows : Rows
        All rows, as they came.
    axes : sequence of Axis
        Bins to compare on.
    part : CodedRows
        The rows that the density was learned without.
    density : JointDensity
    repeated : mapping
        What `Profile.repeated` found in all rows.
    """
    if len(rows) < LEAST_ROWS:
        return None
    rng = np.random.default_rng(SEED)
    taken = _sampled(rows, rng)
    repeats = 1.0 if taken.weights is None else _repeats(taken.weights)
    most = min(len(part), max(SAMPLE_CELLS // len(axes), LEAST_ROWS))
    part = part.take(np.sort(rng.choice(len(part), most, replace=False))).regrouped(axes)
    mixture = density.mixture
    asides = _asides(rows, mixture, repeated)
    return check_bins(rows.schema, mixture, axes, part.codes, part.weights, rng, repeats=repeats, asides=asides)


def _sampled(rows: Rows, rng: np.random.Generator) -> CodedRows:
    """Return rows to check with: all of them, or as many as take little time."""
    n = len(rows)
    most = min(SAMPLE_ROWS, max(SAMPLE_CELLS // len(rows.axes), LEAST_ROWS))
    return rows.take(np.sort(rng.choice(n, most, replace=False)) if n > most else np.arange(n))


def _repeats(weights: FloatArray) -> float:
    """Rows that count as one where weights differ or are large, by the size of a sample as uncertain (Kish)."""
    return max(float((weights**2).sum() / weights.sum()), 1.0)


def _asides(rows: Rows, mixture: Expert, repeated: Repeated) -> list[Aside]:
    """Return what bins do not tell: the mass beyond the range of all rows, and at whole numbers that repeat."""
    found: list[Aside] = []
    for n, variable in enumerate(rows.schema):
        n_rows = float(rows.marginal(n).sum())
        if variable.categories is None and np.isfinite(variable.observed).all():
            found += beyond_range(variable, n, mixture, variable.observed, n_rows)
        if variable.kind is Kind.INTEGER:  # of other numbers that repeat, spikes have bins and the rest is rounding
            shares = repeated.get(variable.name, {}).items()
            found += [single_value(variable, n, mixture, value, share, n_rows) for value, share in shares]
    return found
