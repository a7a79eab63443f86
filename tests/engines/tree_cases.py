"""Forests, rows and components of random mixtures of trees, for every engine."""

import numpy as np

from jointwise.engines.trees import Forest, TreeComponents


def make_forest(rng, n_bins, F, roots=0.2):
    """Return random trees: each column, in an order of the tree's own, hangs below an earlier one or is a root."""
    N = len(n_bins)
    parents = np.full((F, N), -1)
    for own in parents:
        order = rng.permutation(N)
        for place in range(1, N):
            if rng.random() >= roots:
                own[order[place]] = order[rng.integers(place)]
    return Forest(n_bins, parents)


def make_components(rng, forest, concentration=1.0):
    F = forest.n_trees
    tables = np.empty(forest.n_entries)
    for r in range(F):
        for n, bins in enumerate(forest.n_bins):
            own = forest.table(tables, r, n)
            own[:] = rng.dirichlet(np.full(bins, concentration), len(own))
    with np.errstate(divide="ignore"):
        return TreeComponents(forest, np.log(rng.dirichlet(np.ones(F))), np.log(tables))


def make_codes(rng, n_bins, n, missing):
    codes = np.stack([rng.integers(0, bins, n) for bins in n_bins], axis=1)
    codes = np.where(rng.random(codes.shape) < missing, n_bins, codes)
    return codes.astype(np.uint8 if max(n_bins) < 256 else np.uint16)


def all_pairs(N):
    return np.argwhere(np.triu(np.ones((N, N)), 1) > 0)


def assert_close(found, expected, tolerance=1e-9):
    for name in expected.__dataclass_fields__:
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=tolerance, atol=tolerance, err_msg=name
        )
