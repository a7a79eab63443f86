"""k-means: groups of nearby rows, from which mixtures start."""

from __future__ import annotations

import numpy as np

from jointwise._typing import FloatArray, IntArray

# Groups settle within a few steps as far as a start needs them.
MOST_STEPS = 20
# Centres are found on a sample of this many rows, or of this many for each group if that is more.
SAMPLE_ROWS, ROWS_PER_GROUP = 4_000, 100


def k_means(values: FloatArray, weights: FloatArray, n_groups: int, rng: np.random.Generator) -> IntArray:
    """Return the group of each row, by Lloyd's steps from k-means++ centres; many rows join the centres of a sample.

    Parameters
    ----------
    values : array of shape (n, d)
        Finite numbers.
    weights : array of shape (n,)
        How often each row counts, positive.
    n_groups : int
        Most groups; fewer are found where rows coincide.
    rng : numpy.random.Generator
        Draws the sample and the first centres.

    Examples
    --------
    >>> values = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> groups = k_means(values, np.ones(4), 2, np.random.default_rng(0))
    >>> bool(groups[0] == groups[1] != groups[2] == groups[3])
    True
    """
    n, most = len(values), max(SAMPLE_ROWS, ROWS_PER_GROUP * n_groups)
    if n <= most:
        return _settled(values, weights, n_groups, rng)[0]
    sample = np.sort(rng.choice(n, most, replace=False))
    return _nearest(values, _settled(values[sample], weights[sample], n_groups, rng)[1])


def _settled(
    values: FloatArray, weights: FloatArray, n_groups: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return the group of each row, and the centres."""
    centres = _first_centres(values, weights, n_groups, rng)
    groups, d = np.zeros(len(values), dtype=np.int64), values.shape[1]
    weighted, columns = (weights[:, None] * values).ravel(), np.arange(d)
    for step in range(MOST_STEPS):
        nearest = _nearest(values, centres)
        if step and np.array_equal(nearest, groups):
            break
        groups = nearest
        totals = np.bincount(groups, weights, minlength=len(centres))
        cells = (d * groups[:, None] + columns).ravel()
        sums = np.bincount(cells, weighted, minlength=centres.size).reshape(centres.shape)
        centres = np.where(totals[:, None] > 0, sums / np.maximum(totals, 1e-300)[:, None], centres)
    return groups, centres


def _nearest(values: FloatArray, centres: FloatArray) -> IntArray:
    """Return the position of the centre next to each row."""
    return np.asarray((values @ centres.T - 0.5 * (centres**2).sum(axis=1)).argmax(axis=1))


def _first_centres(values: FloatArray, weights: FloatArray, n_groups: int, rng: np.random.Generator) -> FloatArray:
    """Return rows drawn far from each other: each with a chance that grows with the square of its distance."""
    chosen = [_drawn(weights, rng)]
    distance = ((values - values[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < n_groups and (weights * distance).sum() > 0:
        chosen.append(_drawn(weights * distance, rng))
        distance = np.minimum(distance, ((values - values[chosen[-1]]) ** 2).sum(axis=1))
    return values[chosen]


def _drawn(chances: FloatArray, rng: np.random.Generator) -> int:
    cumulative = np.cumsum(chances)
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right").clip(max=len(chances) - 1))
