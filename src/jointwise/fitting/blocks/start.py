"""Where EM on a Gaussian block begins: groups of nearby rows, found by k-means."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from jointwise._typing import CodeArray, FloatArray, IntArray
from jointwise.engines import bin_starts
from jointwise.engines.blocks import BlockLayout, BlockSums
from jointwise.fitting.blocks.design import Design
from jointwise.rows.coded import CodedRows
from jointwise.solvers.blocks_em import BlockFactors, BlocksProblem, settled_scale
from jointwise.solvers.kmeans import k_means

# Columns of categories with more values than this say nothing of groups.
MOST_CATEGORIES = 32
# Share of each row that is spread over all groups, so that none begins with too few rows.
SPREAD = 0.02
# Regressions that fill gaps one after another, and the variance added to each column, whose scale is about one.
FILLING_STEPS, RIDGE = 10, 1e-3
# Most updates that take the scale W along before it stays; see `settled_scale`.
SETTLING_STEPS = 10


def settled_start(
    design: Design, problem: BlocksProblem, sample: CodedRows, n_components: int, groups: IntArray, tol: float
) -> tuple[BlocksProblem, BlockFactors]:
    """Return factors to start from, and the problem with its scale settled.

    Parameters
    ----------
    design : Design
    problem : BlocksProblem
        Of the sample.
    sample : CodedRows
        At most some ten thousand rows.
    n_components : int
    groups : array of shape (n,)
        The group of each row, of at most `n_components`; see `start_groups`.
    tol : float
        Gain in nats per row at which the scale counts as settled.
    """
    sums = _sums_of_groups(design, sample, groups, n_components)
    problem, factors = problem.settled(_nothing(problem, n_components), sums)
    return settled_scale(problem, factors, SETTLING_STEPS, tol)


def start_groups(design: Design, sample: CodedRows, n_components: int, rng: np.random.Generator) -> IntArray:
    """Return the group of each row, by the block's columns and the categories of the others."""
    if n_components == 1 or not len(sample):
        return np.zeros(len(sample), dtype=np.int64)
    features = [_filled_block(design, sample)]
    for n, dictionary in zip(design.others, design.dictionaries, strict=True):
        bins = design.axes[n].n_bins
        if design.schema.variables[n].gap_of is not None:
            continue  # a group of gaps alone would know nothing of the values that are missing
        if not dictionary.is_identity:
            features.append(filled(_ranks(sample, n)[:, None]))
        elif 1 < bins <= MOST_CATEGORIES:
            features.append(np.eye(bins + 1)[sample.codes[:, n]][:, :bins])
    values = np.hstack(features)
    return k_means(values, weights_of(sample), n_components, rng) if values.size else np.zeros(len(sample), np.int64)


def _ranks(rows: CodedRows, n: int) -> FloatArray:
    """Return the share of the rows below each cell of a column, scaled to a variance of one; NaN where missing."""
    counts = rows.marginal(n)
    shares = (np.cumsum(counts) - counts / 2) / max(float(counts.sum()), 1e-300)
    return np.asarray(np.append(np.sqrt(12) * shares, np.nan)[rows.codes[:, n]])


def block_values(design: Design, rows: CodedRows) -> FloatArray:
    """Return the block's columns in their units w, NaN at spikes and where missing; shape (n, d)."""
    values = np.empty((len(rows), len(design.columns)))
    for c, (n, w) in enumerate(zip(design.columns, design.layout.values, strict=True)):
        table = np.full(design.axes[n].n_bins + 1, np.nan)
        table[: len(w)] = w
        values[:, c] = table[rows.codes[:, n]]
    return values


def filled(values: FloatArray) -> FloatArray:
    """Return values with gaps filled by the mean of their column."""
    seen = ~np.isnan(values)
    means = np.where(seen, values, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.where(seen, values, means)


def _filled_block(design: Design, sample: CodedRows) -> FloatArray:
    """Return the block's columns with gaps filled: by their mean or, if gaps are part of the model, by regression.

    With means alone, rows whose gaps depend on other columns would be a group of their own, far from where they belong,
    and no row of it would show what is missing.
    """
    values = block_values(design, sample)
    seen, found = ~np.isnan(values), filled(values)
    if not design.schema.gaps or seen.all() or values.shape[1] < 2:
        return found
    for _ in range(FILLING_STEPS):
        centre = found.mean(axis=0)
        covariance = np.cov(found.T, bias=True) + np.eye(len(centre)) * RIDGE
        precision = np.linalg.inv(covariance)
        predicted = found - (found - centre) @ precision / np.diag(precision)
        found = np.where(seen, values, predicted)
    return found


def weights_of(rows: CodedRows) -> FloatArray:
    """Return the weights of rows, ones where they have none."""
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def _nothing(problem: BlocksProblem, n_components: int) -> BlockFactors:
    """Return components that are all alike, with means at zero."""
    d = len(problem.centre)
    return BlockFactors(
        np.full(n_components, 1 / n_components),
        np.zeros((n_components, d)),
        np.broadcast_to(problem.scale, (n_components, d, d)),
        tuple(np.tile(m[:, None], n_components) for m in problem.margins),
        tuple(np.tile(q[:, None], n_components) for q in problem.spike_margins),
    )


def _sums_of_groups(design: Design, sample: CodedRows, groups: IntArray, n_components: int) -> BlockSums:
    """Return the sums of a pass in which each row belongs to its group, but for a share of it; centred at zero."""
    values, weights = _filled_block(design, sample), weights_of(sample)
    F, d = n_components, values.shape[1]
    totals: FloatArray = np.bincount(groups, weights, minlength=F).astype(np.float64)
    firsts, seconds = np.zeros((F, d)), np.zeros((F, d, d))
    order = np.argsort(groups, kind="stable")
    for r, rows in enumerate(np.split(order, np.cumsum(np.bincount(groups, minlength=F))[:-1])):
        weighted = values[rows] * weights[rows, None]
        firsts[r], seconds[r] = weighted.sum(axis=0), weighted.T @ values[rows]
    counts = [grouped_counts(sample.codes[:, n], groups, weights, design.axes[n].n_bins, F) for n in design.others]
    spikes = _spike_counts(design.layout, sample.codes, groups, weights, F)
    return BlockSums(
        _spread(totals), _spread(firsts), _spread(seconds), tuple(_spread(c.T).T for c in counts),
        tuple(_spread(s.T).T for s in spikes), 0.0,
    )  # fmt: skip


def _spike_counts(
    layout: BlockLayout, codes: CodeArray, groups: IntArray, weights: FloatArray, n_groups: int
) -> list[FloatArray]:
    """Return the counts of rows at no spike and at each spike in each group, of each block column; (1 + S_c, F)."""
    sizes = np.array([len(w) for w in layout.values], dtype=np.int64)
    own = codes[:, list(layout.columns)].astype(np.int64)
    places = np.where(own < sizes, 0, own - sizes + 1)  # those of all columns below each other, the last for "missing"
    starts = bin_starts([n + 2 for n in layout.n_spikes])
    where = (places + starts[:-1]) * n_groups + groups[:, None]
    found = np.bincount(where.ravel(), np.repeat(weights, layout.d), minlength=starts[-1] * n_groups)
    counts = found.astype(np.float64).reshape(-1, n_groups)
    return [counts[start : end - 1] for start, end in pairwise(starts)]


def grouped_counts(codes: CodeArray, groups: IntArray, weights: FloatArray, n_bins: int, n_groups: int) -> FloatArray:
    """Return the counts of bins in each group, without missing cells; shape (n_bins, n_groups)."""
    where = codes.astype(np.int64) * n_groups + groups
    counts = np.bincount(where, weights, minlength=(n_bins + 1) * n_groups).reshape(n_bins + 1, n_groups)
    return np.asarray(counts[:-1])


def _spread(sums: FloatArray) -> FloatArray:
    """Return sums of groups, shape (F, ...), with a share of each spread over all."""
    return np.asarray((1 - SPREAD) * sums + SPREAD * sums.mean(axis=0))
