r"""Weights of experts, from the log-densities of held-out rows, the crosstabs of these, or one column of them.

The weights whose sum predicts whole rows best maximise

.. math:: \sum_i \log \sum_k w_k f_k(x_i) + \tfrac12 \sum_k \log w_k.

Questions name few columns, and what predicts whole rows best need not answer them best: a row of many columns is better
predicted by few, smooth components than by many. So experts also predict crosstabs of the held-out rows: three columns,
each cut into a few regions (`crosstabs`). With R(w) the mean log-density of rows and P(w) the mean log-probability of
their cells, the weights of a large table

.. math:: \text{maximise } P(w) \quad \text{subject to} \quad R(w) \ge \max_v R(v) - \text{loss}.

Both are concave, so these weights maximise :math:`(1 - t) R(w) + t P(w)` for some t, which is found by bisection. Where
cells gain nothing by it beyond noise, rows alone decide.

Where one column y is to be predicted from the others x, such as a class, the weights maximise

.. math:: \sum_i \log \frac{\sum_k w_k f_k(x_i, y_i)}{\sum_k w_k f_k(x_i)} + a \sum_k v_k \log w_k,

with v the weights that predict rows best: what experts say about x alone counts only as far as it tells whom to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from jointwise._typing import FloatArray
from jointwise.fitting.crosstabs import N_COLUMNS, Crosstabs
from jointwise.rows.base import Rows
from jointwise.solvers import simplex_weights

# Prior of an expert, in held-out rows.
PRIOR_ROWS = 0.5
# An expert with less weight than this is dropped, and in the end one without which the mean of held-out rows, or of
# their cells, loses less than so many nats.
LEAST_WEIGHT, LEAST_LOSS, LEAST_CELL_LOSS = 0.01, 1e-3, 1e-5
# Where one column is predicted, an expert with less weight stays if its log-probabilities change more than this without
# it, in the mean over held-out rows.
LEAST_CHANGE = 1e-3
# How far below the best expert a log-density can count, so that no single row decides.
LOWEST = -700.0
# Weights are found to this mean log-likelihood, in nats.
TOL = 1e-5
# Most that the mean log-density of a held-out row may lose for better answers, in nats.
MOST_LOSS = 0.5
# Tables of fewer rows are weighed by rows alone.
CROSSTAB_ROWS = 2_000
# Gains of fewer standard errors are noise.
LEAST_ERRORS = 2.0
# Where one column is predicted, the weights that predict rows best count as this many rows.
TARGET_PRIOR = 2.0
# The search for the weights that predict a column ends when no slope of the mean, in nats, is larger.
LEAST_SLOPE = 1e-6
# Bisections of the odds t / (1 - t), and between which odds: below them cells count for nothing, above them for all.
N_BISECTIONS, LEAST_ODDS, MOST_ODDS = 16, 1e-1, 1e6


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
    return simplex_weights(_relative(logs), counts, prior=PRIOR_ROWS * logs.shape[1], tol=TOL)


def _relative(logs: FloatArray) -> FloatArray:
    """Return the densities of each row beside that of its best expert, none of them zero; shape (n, K)."""
    top = np.where(np.isneginf(logs).all(axis=1), 0.0, logs.max(axis=1))
    return np.asarray(np.exp(np.maximum(logs - top[:, None], LOWEST)))


def predicting_weights(rows: FloatArray, others: FloatArray, counts: FloatArray) -> FloatArray:
    r"""Return the weights of experts whose sum predicts one column best from the others; shape (K,).

    With :math:`f_k` the density of a row, :math:`g_k` that of its other columns, and :math:`w_k` proportional to
    :math:`e^{t_k}`, the objective has the slopes

    .. math:: \sum_i c_i \Big( \frac{w_k f_k(i)}{\sum_l w_l f_l(i)} - \frac{w_k g_k(i)}{\sum_l w_l g_l(i)} \Big)
              + a (v_k - w_k)

    in :math:`t_k`. The problem is not concave. The search begins at v, the weights that predict rows best, and where
    all experts have the same say on the average row, whatever their densities are; the better end is returned.

    Parameters
    ----------
    rows : array of shape (n, K)
        Log-density of each held-out row under each expert.
    others : array of shape (n, K)
        The same without the column that is predicted.
    counts : array of shape (n,)
        How often each row counts.

    Examples
    --------
    The first expert is better on rows, the second tells more about the column.

    >>> others = np.tile(np.log([[0.6, 0.3]]), (100, 1))
    >>> rows = others + np.log([0.5, 0.8])
    >>> stacking_weights(rows, np.ones(100)).round(2), predicting_weights(rows, others, np.ones(100)).round(2)
    (array([0.98, 0.02]), array([0.03, 0.97]))
    """
    known = np.where(np.isneginf(rows).all(axis=1), 0.0, counts)  # a row impossible for all says nothing
    f, g = np.log(_relative(rows)), np.log(_relative(others))
    first = stacking_weights(rows, counts)
    total = max(float(known.sum()), 1.0)

    def loss(t: FloatArray) -> tuple[float, FloatArray]:
        weights = softmax(t)
        # sums, not products of matrices: these add in an order that depends on the number of threads
        in_rows, in_others = softmax(f + t, axis=1), softmax(g + t, axis=1)
        value = (known * (logsumexp(f + t, axis=1) - logsumexp(g + t, axis=1))).sum()
        value += TARGET_PRIOR * (first * log_softmax(t)).sum()
        slopes = (known[:, None] * (in_rows - in_others)).sum(axis=0) + TARGET_PRIOR * (first - weights)
        return -value / total, -slopes / total

    starts = np.log(first), -np.average(g, axis=0, weights=np.maximum(known, 1 / total))
    ends = [minimize(loss, start, jac=True, method="BFGS", options={"gtol": LEAST_SLOPE}) for start in starts]
    return np.asarray(np.maximum(softmax(min(ends, key=lambda end: end.fun).x), np.finfo(float).tiny))


def answering_weights(
    rows: FloatArray, cells: FloatArray, counts: FloatArray, tables: Crosstabs, loss: float = MOST_LOSS
) -> FloatArray:
    """Return the weights that predict crosstabs best and lose at most ``loss`` on whole rows; shape (K,).

    Parameters
    ----------
    rows : array of shape (n, K)
        Log-density of each held-out row under each expert.
    cells : array of shape (C, K)
        Log-probability of each cell of the tables under each expert.
    counts : array of shape (n,)
        How often each row counts.
    tables : Crosstabs
        Of the first of these rows, or all, with C cells.
    loss : float
        In nats of the mean row, beside the weights that predict rows best. These are returned where cells gain nothing
        beyond noise.

    Examples
    --------
    The second expert is worse on rows, and better on the one cell that all rows are in.

    >>> rows, cells = np.tile(np.log([[0.8, 0.6], [0.7, 0.5]]), (500, 1)), np.log([[0.5, 0.6], [0.5, 0.4]])
    >>> tables = Crosstabs((), np.zeros((1000, 1), dtype=int), 2)
    >>> [float(answering_weights(rows, cells, np.ones(1000), tables, loss)[1].round(1)) for loss in (0.0, 0.1, 1.0)]
    [0.0, 0.4, 1.0]
    """
    best = found = stacking_weights(rows, counts)
    least = mean_log(rows, counts, found) - loss
    first = counts[: len(tables.cells)]
    met = tables.counts(first)
    share_of_cells = counts.sum() / max(met.sum(), 1e-300)
    every = np.vstack([rows, cells])

    def weights(odds: float) -> FloatArray:
        share = odds / (1 + odds)
        return stacking_weights(every, np.concatenate([(1 - share) * counts, share * share_of_cells * met]))

    low, high = LEAST_ODDS, MOST_ODDS
    if mean_log(rows, counts, tried := weights(high)) >= least:
        found, low = tried, high
    for _ in range(N_BISECTIONS if low < high else 0):
        middle = float(np.sqrt(low * high))
        if mean_log(rows, counts, tried := weights(middle)) >= least:
            found, low = tried, middle
        else:
            high = middle
    gain, error = mean_and_error(tables.of_rows(sum_logs(cells, found) - sum_logs(cells, best)), first)
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


def losses_without(logs: FloatArray, counts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what the mean log-density of a row loses without each expert, the others in their proportions; shape (K,).

    There are several experts, each with some weight.

    Parameters
    ----------
    logs : array of shape (n, K)
        Log-density of each row under each expert.
    counts : array of shape (n,)
        How often each row counts.
    weights : array of shape (K,)

    Examples
    --------
    The first two experts say the same, and can stand for each other.

    >>> losses_without(np.log([[0.8, 0.8, 0.1], [0.1, 0.1, 0.8]]), np.ones(2), np.array([0.25, 0.25, 0.5])).round(2)
    array([0.03, 0.03, 0.46])
    """
    shares = _relative(logs) * weights
    rest = 1 - np.eye(len(weights))  # sums, not differences: one expert may be nearly all of the sum
    others = shares @ rest / (weights @ rest)
    with np.errstate(divide="ignore"):
        return np.asarray(np.average(np.log(shares.sum(axis=1)[:, None] / others), axis=0, weights=counts))


def changes_without(rows: FloatArray, others: FloatArray, counts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return how far log-probabilities of a column change without each expert, in the mean over rows; shape (K,).

    Parameters
    ----------
    rows, others : arrays of shape (n, K)
        Log-density of each row under each expert, with the column and without it.
    counts : array of shape (n,)
        How often each row counts.
    weights : array of shape (K,)
        Of several experts.

    Examples
    --------
    The first expert is far denser, and has as much say at a weight of one in a million.

    >>> others = np.log([[1.0, 1e-6]])
    >>> changes_without(others + np.log([0.5, 0.9]), others, np.ones(1), np.array([1e-6, 1 - 1e-6])).round(2)
    array([0.25, 0.34])
    """
    f, g = np.log(_relative(rows)), np.log(_relative(others))
    told = sum_logs(f, weights) - sum_logs(g, weights)
    found = np.empty(len(weights))
    for k in range(len(weights)):
        rest = np.delete(np.arange(len(weights)), k)
        alone = sum_logs(f[:, rest], weights[rest]) - sum_logs(g[:, rest], weights[rest])
        found[k] = np.average(np.abs(told - alone), weights=counts)
    return found


def kept_weights(
    names: Sequence[str],
    weigh: Callable[[list[str]], FloatArray],
    worth: Callable[[list[str], FloatArray], FloatArray] = lambda _, weights: weights / LEAST_WEIGHT,
) -> dict[str, float]:
    """Return the weights of the experts that are worth keeping: one after the other is dropped, the least first.

    Parameters
    ----------
    names : sequence of str
    weigh : callable
        Returns the weights of some experts.
    worth : callable
        Returns what each of some experts with weights is worth; less than one is not worth keeping it. By default it
        is the weight alone.
    """
    left = list(names)
    while True:
        found = weigh(left)
        if len(left) == 1 or (worths := worth(left, found)).min() >= 1:
            return dict(zip(left, found.tolist(), strict=True))
        left.pop(int(np.argmin(worths)))


def by_crosstabs(rows: Rows, loss: float = MOST_LOSS) -> bool:
    """Whether experts are weighed by crosstabs too: many rows of more columns than these, if rows may lose."""
    return len(rows) >= CROSSTAB_ROWS and len(rows.axes) > N_COLUMNS and loss > 0
