"""Draws from a Gaussian block: exact, inside windows too."""

from __future__ import annotations

import numpy as np

from jointwise._typing import FloatArray, IntArray
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
