"""Layouts, rows and components of random blocks, for every engine."""

import numpy as np

from jointwise.engines.blocks import BlockComponents, BlockLayout


def make_layout(rng, d, n_others, spikes=0, n_intervals=40):
    """Return a layout whose columns are in no order, with one column that belongs to nothing."""
    places = rng.permutation(d + n_others + 1)
    columns, others = places[:d], places[d : d + n_others]
    n_bins = np.full(len(places), 7)
    n_bins[columns] = n_intervals + np.arange(d) % (spikes + 1)
    n_bins[others] = rng.integers(2, 6, n_others)
    return BlockLayout(n_bins, columns, [np.sort(rng.normal(size=n_intervals)) for _ in range(d)], others)


def make_codes(rng, layout, n, missing):
    """Return codes, many at spikes, some missing."""
    codes = np.stack([rng.integers(0, bins, n) for bins in layout.n_bins], axis=1)
    for column, spikes in zip(layout.columns, layout.n_spikes, strict=True):
        at = (rng.random(n) < 0.3) & (spikes > 0)
        codes[at, column] = layout.n_bins[column] - rng.integers(1, max(spikes, 1) + 1, at.sum())
    codes = np.where(rng.random(codes.shape) < missing, layout.n_bins, codes)
    return codes.astype(np.uint8 if max(layout.n_bins) < 256 else np.uint16)


def make_components(rng, layout, F):
    d = layout.d
    root = rng.normal(size=(F, d, d))
    tables = [np.log(rng.dirichlet(np.ones(bins), F).T) for bins in layout.table_bins]
    spikes = [np.log(rng.dirichlet(np.ones(1 + n), F).T) for n in layout.n_spikes]
    covariances = root @ np.swapaxes(root, 1, 2) + 0.3 * np.eye(d)
    return BlockComponents(np.log(rng.dirichlet(np.ones(F))), rng.normal(size=(F, d)), covariances, tables, spikes)


def assert_close(found, expected, tolerance=1e-9):
    for name in ("totals", "firsts", "seconds", "log_likelihood"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=tolerance, atol=tolerance)
    for name in ("counts", "spikes"):
        for a, b in zip(getattr(found, name), getattr(expected, name), strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
