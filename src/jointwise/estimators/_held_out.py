"""The check of a fit: a model like the one fitted, learned without some rows, is compared with them."""

from __future__ import annotations

import numpy as np

from jointwise.joint.check import beyond_range, check_bins
from jointwise.joint.comparison import Beyond
from jointwise.joint.findings import Check
from jointwise.joint.mixture import ProductMixture
from jointwise.likelihood import average
from jointwise.marginals import Rows
from jointwise.selection import Choice, fold_weights, short_fit

# Smaller tables tell nothing from noise that is not plain from a look at them.
LEAST_ROWS = 200
# Rows that are drawn for it: three quarters to learn from, a quarter to compare with.
SAMPLE_ROWS = 20_000
# The best of so many starts: one alone may lead few components astray.
MOST_STARTS = 4
# Cells of the sample at most: it bounds the time for wide tables.
SAMPLE_CELLS = 1_000_000
# The check draws its own numbers, so that a fit is the same with it or without.
SEED = 20_240_521


def held_out_check(rows: Rows, choice: Choice, n_starts: int) -> Check | None:
    """Compare a model like the one fitted with rows that it was not learned from; None for small tables.

    Parameters
    ----------
    rows : Rows
        As they came, whatever their order.
    choice : Choice
        What was fitted.
    n_starts : int
        Starts of the fit; no more than a few are tried here.
    """
    n = len(rows)
    if n < LEAST_ROWS:
        return None
    rng = np.random.default_rng(SEED)
    most = min(SAMPLE_ROWS, max(SAMPLE_CELLS // len(rows.axes), LEAST_ROWS))
    taken = rows.take(np.sort(rng.choice(n, most, replace=False)) if n > most else np.arange(n))
    repeats = 1.0 if taken.weights is None else _repeats(taken.weights)
    sample = taken.canonical()
    assert sample.weights is not None  # canonical rows have them
    held, rest = fold_weights(sample.weights, n, rng)[0]
    part = sample.with_weights(held)
    learned = short_fit(sample.with_weights(rest), choice, rng, min(n_starts, MOST_STARTS))
    mixture = average([learned.dictionaries], [learned.factors])
    beyond = _beyond(rows, mixture)
    return check_bins(rows.schema, mixture, rows.axes, part.codes, part.weights, rng, repeats=repeats, beyond=beyond)


def _repeats(weights: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Rows that count as one where weights differ or are large, by the size of a sample as uncertain (Kish)."""
    return max(float((weights**2).sum() / weights.sum()), 1.0)


def _beyond(rows: Rows, mixture: ProductMixture) -> list[Beyond]:
    """What lies beyond the range of all rows."""
    found: list[Beyond] = []
    for n, variable in enumerate(rows.schema):
        if variable.categories is None and np.isfinite(variable.observed).all():
            found += beyond_range(variable, n, mixture, variable.observed, float(rows.marginal(n).sum()))
    return found
