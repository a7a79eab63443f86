"""Where EM on a mixture of trees begins: groups of nearby rows, found by k-means, without edges."""

from __future__ import annotations

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.axes import Axis, BinnedAxis
from jointwise.fitting.blocks.start import MOST_CATEGORIES, filled, grouped_counts, weights_of
from jointwise.rows.coded import CodedRows
from jointwise.solvers.kmeans import k_means
from jointwise.solvers.trees_em import PairPrior, TreeFactors

# Rows with the shares of the whole table that each group counts as having seen: the first trees see all rows in all
# groups, and none begins with too few.
SPREAD_ROWS = 5.0


def start_factors(sample: CodedRows, known: PairPrior, n_components: int, rng: np.random.Generator) -> TreeFactors:
    """Return components without edges to start from.

    Parameters
    ----------
    sample : CodedRows
        At most some ten thousand rows, their axes those of states.
    known : PairPrior
    n_components : int
    rng : numpy.random.Generator
        Draws the first centres of groups.
    """
    groups = start_groups(sample, n_components, rng)
    weights = weights_of(sample)
    totals = np.bincount(groups, weights, minlength=n_components) + SPREAD_ROWS
    conditionals = []
    for n, mean in enumerate(known.margins):
        counts = grouped_counts(sample.codes[:, n], groups, weights, len(mean), n_components)
        counts += SPREAD_ROWS * mean[:, None]
        conditionals.append(counts / counts.sum(axis=0))
    return TreeFactors.products(totals / totals.sum(), conditionals)


def start_groups(sample: CodedRows, n_components: int, rng: np.random.Generator) -> IntArray:
    """Return the group of each row, by the ranks of numbers and the categories."""
    if n_components == 1 or not len(sample):
        return np.zeros(len(sample), dtype=np.int64)
    features = []
    for n, axis in enumerate(sample.axes):
        if axis.n_bins == 2 or (isinstance(axis, BinnedAxis) and sample.schema.variables[n].categories is None):
            features.append(filled(_ranks(sample, n, axis)[:, None]))
        elif 1 < axis.n_bins <= MOST_CATEGORIES:
            features.append(np.eye(axis.n_bins + 1)[sample.codes[:, n]][:, : axis.n_bins])
    if not features:
        return np.zeros(len(sample), dtype=np.int64)
    return k_means(np.hstack(features), weights_of(sample), n_components, rng)


def _ranks(sample: CodedRows, n: int, axis: Axis) -> FloatArray:
    """Return the share of the rows below each cell of a column, scaled to a variance of one; NaN where missing."""
    counts = sample.marginal(n)
    place = np.arange(axis.n_bins, dtype=np.float64)
    if isinstance(axis, BinnedAxis):  # a spike lies within an interval
        place[axis.n_intervals :] = np.searchsorted(axis.edges, axis.spikes) + 0.25
    order = np.argsort(place, kind="stable")
    shares = np.empty(axis.n_bins)
    shares[order] = (np.cumsum(counts[order]) - counts[order] / 2) / max(float(counts.sum()), 1e-300)
    shares -= counts @ shares / max(float(counts.sum()), 1e-300)
    spread = float(np.sqrt(counts @ shares**2 / max(float(counts.sum()), 1e-300)))
    return np.asarray(np.append(shares / max(spread, 1e-6), np.nan)[sample.codes[:, n]])
