r"""Whether gaps tell something: the columns whose gaps other columns predict, on rows that were not learned from.

A small mixture is learned from some rows, with a variable for the gaps of each column. On the other rows it predicts
each gap from all cells but those of the gap's own column. The gain over the share of gaps alone is

.. math:: \frac{1}{n} \sum_i \log \frac{P(m_i \mid x_i)}{P(m_i)}

nats per row. A gain beyond noise says that the gaps depend on other columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import log_softmax, logsumexp

from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.fitting.choice import choose_dictionaries, short_run
from jointwise.fitting.choice.folds import SEARCH_ROWS, fold_weights
from jointwise.fitting.choice.search import FIRST_BETA, FIRST_NUMBER
from jointwise.fitting.problem import rows_problem
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.tables.gaps import with_partners

# Standard errors by which a gain must exceed zero. Gains of gaps that depend on nothing are below zero on average, so
# fewer than one such column in a thousand passes.
LEAST_ERRORS = 3.0
# The decision draws its own numbers, so that a fit is the same with it or without.
SEED = 20_261_116
# A bin that the training rows did not meet.
LEAST_PROBABILITY = 1e-12


def telling_gaps(rows: Rows, axes: Sequence[Axis]) -> tuple[str, ...]:
    """Return the columns whose gaps depend on other columns beyond noise.

    Parameters
    ----------
    rows : Rows
        With a variable for the gaps of each column in question. At most 20,000 rows are drawn.
    axes : sequence of Axis
        Bins of the columns, no finer than those of the rows.

    Examples
    --------
    >>> from jointwise.marginals import Profile
    >>> from jointwise.tables.gaps import with_gap_variables
    >>> rng = np.random.default_rng(0)
    >>> job, pay, age = rng.integers(2, size=600), rng.normal(size=600), rng.normal(size=600)
    >>> pay[(job == 1) & (rng.random(600) < 0.5)] = np.nan
    >>> age[rng.random(600) < 0.25] = np.nan
    >>> table = {"job": job, "pay": pay, "age": age}
    >>> profile = Profile.of(table)
    >>> schema = with_gap_variables(profile.schema(), ["pay", "age"])
    >>> axes = profile.axes(schema, 8)
    >>> telling_gaps(CodedRows.of(table, schema, axes), axes)
    ('pay',)
    """
    gaps = rows.schema.gaps
    if not gaps:
        return ()
    rng, n = np.random.default_rng(SEED), len(rows)
    sample = rows.take(np.sort(rng.choice(n, SEARCH_ROWS, replace=False)) if n > SEARCH_ROWS else np.arange(n))
    sample = sample.regrouped(axes)
    n_like = _equal_rows(sample.weights, len(sample))
    sample = sample.canonical()
    assert sample.weights is not None  # canonical rows have them
    parts = []
    for held, rest in fold_weights(sample, n, rng):
        if held.any() and rest.any():
            training, part = sample.with_weights(rest), sample.with_weights(held)
            assert part.weights is not None
            parts.append((part.weights, gap_gains(training, part, rng)))
    if not parts:
        return ()
    weights, gains = (np.concatenate(each) for each in zip(*parts, strict=True))
    mean = np.average(gains, axis=0, weights=weights)
    variance = np.average((gains - mean) ** 2, axis=0, weights=weights)
    error = np.sqrt(variance / max(n_like * weights.sum() / sample.weights.sum(), 1.0))
    return tuple(name for name, tells in zip(gaps, mean > LEAST_ERRORS * error, strict=True) if tells)


def gap_gains(training: CodedRows, part: CodedRows, rng: np.random.Generator) -> FloatArray:
    """Return log P(gap or not | cells of other columns) - log P(gap or not) of each row and gap; shape (n, gaps)."""
    schema = training.schema
    dictionaries = choose_dictionaries(training, {}, rng, slack=0.0)
    problem = rows_problem(training, dictionaries, FIRST_BETA)
    factors = short_run(problem, FIRST_NUMBER, rng)
    tables = [
        np.log(np.maximum(masses @ b, LEAST_PROBABILITY))
        for masses, b in zip(problem.masses, factors.coefficients, strict=True)
    ]
    missing = np.zeros((1, factors.n_components))  # of a gap nothing is known
    cells = [np.vstack([table, missing])[part.codes[:, n]] for n, table in enumerate(tables)]
    whole = np.log(np.maximum(factors.weights, LEAST_PROBABILITY)) + np.sum(cells, axis=0)
    gains = []
    for name in schema.gaps.values():
        n = schema.index(name)
        others = whole - np.sum([cells[k] for k in with_partners([n], schema)], axis=0)
        predicted = logsumexp(log_softmax(others, axis=1) + cells[n], axis=1)
        alone = logsumexp(log_softmax(np.log(factors.weights))[None, :] + cells[n], axis=1)
        gains.append(predicted - alone)
    return np.stack(gains, axis=1)


def _equal_rows(weights: FloatArray | None, n_rows: int) -> float:
    """Return the number of rows of equal weight that tell as much as these (Kish)."""
    return float(n_rows) if weights is None else float(weights.sum() ** 2 / max(float((weights**2).sum()), 1e-300))
