"""Draws from a Gaussian block: exact, inside windows too."""

from __future__ import annotations

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.joint.block_density import MISSING, NUMBER, log_choice, regression, ways
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.window import sample_window


def sample_block(block: GaussianBlock, component: IntArray, rng: np.random.Generator) -> FloatArray:
    """One row of the block's columns from each of the given components; shape (n, d).

    >>> from jointwise.warps import Warp
    >>> block = GaussianBlock((Warp.line(10.0, 2.0),), [[0.0]], [[[1.0]]], ([],), (np.empty((0, 1)),), (True,))
    >>> rows = sample_block(block, np.zeros(10_000, dtype=int), np.random.default_rng(0))
    >>> rows.mean().round(1), rows.std().round(1), bool((rows == rows.round()).all())
    (np.float64(10.0), np.float64(2.0), True)
    """
    z = np.empty((len(component), block.n_coordinates))
    for r in np.unique(component):
        rows = np.flatnonzero(component == r)
        z[rows] = sample_window(
            block.means[r], block.latent_covariances[r], block.low[r], block.high[r], len(rows), rng
        )
    return seen(block, z, component, rng)


def seen(block: GaussianBlock, z: FloatArray, component: IntArray, rng: np.random.Generator) -> FloatArray:
    """Columns of latent vectors (n, D): through the inverse warp, rounded if integers, or at a spike; shape (n, d)."""
    out = np.empty((len(z), block.n_columns))
    for c, (warp, spikes) in enumerate(zip(block.warps, block.spikes, strict=True)):
        out[:, c] = warp.inverse(z[:, c])
        if block.whole[c]:
            out[:, c] = np.ceil(out[:, c] - 0.5)
        if len(spikes):
            ladder = np.cumsum(block.spike_weights[c], axis=0)[:, component]
            step = (ladder <= rng.random(len(z))).sum(axis=0)
            out[:, c] = np.where(step < len(spikes), spikes[np.minimum(step, len(spikes) - 1)], out[:, c])
    return out


def complete_block(block: GaussianBlock, component: IntArray, X: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows of the block's columns (n, d) with their missing cells drawn, given the others and the row's component."""
    out = X.copy()
    logs: list[FloatArray] = []
    found = list(ways(block, X))
    for rows, choice, at in found:
        logs.append(log_choice(block, choice, X[rows], at)[np.arange(len(rows)), component[rows]])
    chosen = _chosen(found, logs, len(X), rng)
    for k, (rows, choice, _) in enumerate(found):
        own = rows[chosen[rows] == k]
        gaps = np.flatnonzero(choice == MISSING)
        if own.size and gaps.size:
            z = _latent(block, component[own], np.flatnonzero(choice == NUMBER), X[own], gaps, rng)
            out[np.ix_(own, gaps)] = seen(block, z, component[own], rng)[:, gaps]
    return out


def _chosen(
    found: list[tuple[IntArray, IntArray, IntArray]], logs: list[FloatArray], n: int, rng: np.random.Generator
) -> IntArray:
    """Draw, for each row, which of its ways of reading the cells holds; Gumbel's trick, since ways come apart."""
    best, chosen = np.full(n, -np.inf), np.full(n, -1)
    for k, ((rows, _, _), each) in enumerate(zip(found, logs, strict=True)):
        score = each + rng.gumbel(size=len(rows))
        better = score > best[rows]
        best[rows[better]], chosen[rows[better]] = score[better], k
    return chosen


def _latent(
    block: GaussianBlock, component: IntArray, given: IntArray, X: FloatArray, gaps: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Latent vectors (n, D) given the numbers of some columns, filled at the gaps only."""
    windowed = block.has_window.copy()
    windowed[given] = False
    rest = np.union1d(gaps, np.flatnonzero(windowed))
    z_given = np.stack([block.warps[c](X[:, c]) for c in given], axis=1) if len(given) else np.empty((len(X), 0))
    gain, covariances = regression(block, given, rest)
    z = np.full((len(X), block.n_coordinates), np.nan)
    for r in np.unique(component):
        rows = np.flatnonzero(component == r)
        mean = block.means[r, rest] + (z_given[rows] - block.means[r, given]) @ gain[r]
        low, high = block.low[r, rest], block.high[r, rest]
        if ((low > -np.inf) | (high < np.inf)).any():
            draws = [sample_window(m, covariances[r], low, high, 1, rng)[0] for m in mean]
        else:
            noise = rng.standard_normal((len(rows), len(rest)))
            draws = mean + noise @ np.linalg.cholesky(covariances[r]).T
        z[np.ix_(rows, rest)] = draws
    return z
