r"""Weights of experts, from the log-densities of held-out rows and of parts of these.

The weights whose sum predicts whole rows best maximise

.. math:: \sum_i \log \sum_k w_k f_k(x_i) + \tfrac12 \sum_k \log w_k.

Questions name few columns, and what predicts whole rows best need not answer them best: a row of many columns is better
predicted by few, smooth components than by many. So experts also predict parts of the held-out rows: the cells of three
columns, all others forgotten. With R(w) the mean log-density of rows and P(w) that of parts, the weights of a large
table

.. math:: \text{maximise } P(w) \quad \text{subject to} \quad R(w) \ge \max_v R(v) - \text{loss}.

Both are concave, so these weights maximise :math:`(1 - t) R(w) + t P(w)` for some t, which is found by bisection. Where
parts gain nothing by it beyond noise, rows alone decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import logsumexp

from jointwise._typing import FloatArray
from jointwise.fitting.choice.folds import SMALL_TABLE
from jointwise.rows.base import Rows
from jointwise.solvers import simplex_weights

# Prior of an expert, in held-out rows.
PRIOR_ROWS = 0.5
# An expert with less weight than this is dropped.
LEAST_WEIGHT = 0.01
# How far below the best expert a log-density can count, so that no single row decides.
LOWEST = -700.0
# Weights are found to this mean log-likelihood, in nats.
TOL = 1e-5
# Columns of a part, and how many different sets of columns are drawn: each costs a block a factorisation.
PART_COLUMNS, N_SETS = 3, 128
# Parts of each held-out row.
N_PARTS = 2
# Most that the mean log-density of a held-out row may lose for better parts, in nats.
MOST_LOSS = 0.15
# Gains of fewer standard errors are noise.
LEAST_ERRORS = 2.0
# Bisections of the odds t / (1 - t), and between which odds: below them parts count for nothing, above them for all.
N_BISECTIONS, LEAST_ODDS, MOST_ODDS = 12, 1e-1, 1e4


def stacking_weights(logs: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the weights of experts whose sum is most likely, with half a row of prior each; shape (K,).

    Parameters
    ----------
    logs : array of shape (n, K)
        Log-density of each held-out row under each expert.
    counts : array of shape (n,)
        How often each row counts.

    Examples
    --------
    >>> stacking_weights(np.log([[0.8, 0.1], [0.8, 0.1], [0.1, 0.8]]), np.ones(3)).round(2)
    array([0.64, 0.36])
    """
    top = np.where(np.isneginf(logs).all(axis=1), 0.0, logs.max(axis=1))
    relative = np.exp(np.maximum(logs - top[:, None], LOWEST))
    return simplex_weights(relative, counts, prior=PRIOR_ROWS * logs.shape[1], tol=TOL)


def answering_weights(rows: FloatArray, parts: FloatArray, counts: FloatArray, loss: float = MOST_LOSS) -> FloatArray:
    """Return the weights that predict parts of rows best and lose at most ``loss`` on whole rows; shape (K,).

    Parameters
    ----------
    rows : array of shape (n, K)
        Log-density of each held-out row under each expert.
    parts : array of shape (m n, K)
        Log-density of parts of these rows: one of each row, then the next of each.
    counts : array of shape (n,)
        How often each row counts.
    loss : float
        In nats of the mean row, beside the weights that predict rows best. These are returned where parts gain nothing
        beyond noise.

    Examples
    --------
    The second expert is worse on rows, and better on parts.

    >>> rows, parts = np.log([[0.8, 0.6], [0.7, 0.5]]), np.log([[0.5, 0.6], [0.6, 0.7]])
    >>> both = np.tile(rows, (500, 1)), np.tile(parts, (500, 1)), np.ones(1000)
    >>> [float(answering_weights(*both, loss=loss)[1].round(1)) for loss in (0.0, 0.1, 1.0)]
    [0.0, 0.4, 1.0]
    """
    best = found = stacking_weights(rows, counts)
    least = mean_log(rows, counts, found) - loss
    n_parts = len(parts) // len(rows)
    every, of_parts = np.vstack([rows, parts]), np.tile(counts, n_parts) / n_parts

    def weights(odds: float) -> FloatArray:
        share = odds / (1 + odds)
        return stacking_weights(every, np.concatenate([(1 - share) * counts, share * of_parts]))

    low, high = LEAST_ODDS, MOST_ODDS
    if mean_log(rows, counts, tried := weights(high)) >= least:
        found, low = tried, high
    for _ in range(N_BISECTIONS if low < high else 0):
        middle = float(np.sqrt(low * high))
        if mean_log(rows, counts, tried := weights(middle)) >= least:
            found, low = tried, middle
        else:
            high = middle
    gain, error = mean_and_error(sum_logs(parts, found) - sum_logs(parts, best), n_parts * of_parts)
    return found if gain > max(LEAST_ERRORS * error, TOL) else best


def mean_log(logs: FloatArray, counts: FloatArray, weights: FloatArray) -> float:
    """Return the mean log-density of rows under a weighted sum of experts."""
    return float(np.average(sum_logs(logs, weights), weights=counts))


def mean_and_error(gains: FloatArray, counts: FloatArray) -> tuple[float, float]:
    """Return the mean gain of a row, and its standard error.

    >>> mean_and_error(np.array([0.0, 2.0]), np.array([2.0, 2.0]))
    (1.0, 0.5)
    """
    mean = float(np.average(gains, weights=counts))
    return mean, float(np.sqrt(np.average((gains - mean) ** 2, weights=counts) / counts.sum()))


def sum_logs(logs: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the log-density of each row under a weighted sum of experts; shape (n,)."""
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(logs + np.log(weights), axis=1))


def kept_weights(names: Sequence[str], weigh: Callable[[list[str]], FloatArray]) -> dict[str, float]:
    """Return the weights of the experts that are worth keeping: the last is dropped while it has too little weight.

    Parameters
    ----------
    names : sequence of str
    weigh : callable
        Returns the weights of some experts.
    """
    left = list(names)
    while True:
        found = weigh(left)
        if found.min() >= LEAST_WEIGHT or len(left) == 1:
            return dict(zip(left, found.tolist(), strict=True))
        left.pop(int(np.argmin(found)))


def has_parts(rows: Rows, loss: float = MOST_LOSS) -> bool:
    """Whether experts are weighed by parts of rows too: large tables with more columns than a part."""
    return len(rows) >= SMALL_TABLE and len(rows.axes) > PART_COLUMNS and loss > 0


def parts_of(X: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return parts of encoded rows: the cells of three columns, the others NaN; shape (parts of a row * n, N).

    Parameters
    ----------
    X : array of shape (n, N)
    rng : numpy.random.Generator
        Draws sets of columns, and deals them to the rows.

    Examples
    --------
    >>> parts = parts_of(np.zeros((100, 5)), np.random.default_rng(0))
    >>> parts.shape, np.unique((~np.isnan(parts)).sum(axis=1)).tolist()
    ((200, 5), [3])
    """
    n, N = X.shape
    sets = np.argsort(rng.random((N_SETS, N)), axis=1) < PART_COLUMNS
    return np.where(sets[rng.integers(N_SETS, size=N_PARTS * n)], np.tile(X, (N_PARTS, 1)), np.nan)
