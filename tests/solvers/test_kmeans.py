"""k-means: groups that are apart are found, whatever the weights."""

import numpy as np
import pytest

from jointwise.solvers.kmeans import SAMPLE_ROWS, k_means


@pytest.mark.parametrize("seed", range(5))
def test_groups_far_apart_are_found(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 300)
    values = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])[truth] + rng.normal(size=(300, 2))
    groups = k_means(values, rng.uniform(0.5, 2.0, 300), 3, rng)
    assert len({(a, b) for a, b in zip(truth, groups, strict=True)}) == 3


def test_no_step_makes_the_distance_larger():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(500, 4)), rng.uniform(0.1, 3.0, 500)
    groups = k_means(values, weights, 6, rng)
    centres = np.stack([np.average(values[groups == g], axis=0, weights=weights[groups == g]) for g in range(6)])
    nearest = ((values[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == groups).mean() > 0.95  # settled, or nearly


def test_equal_rows_are_one_group():
    assert np.unique(k_means(np.ones((50, 2)), np.ones(50), 4, np.random.default_rng(0))).size == 1


def test_a_weight_is_so_many_rows():
    values = np.random.default_rng(0).normal(size=(40, 2))
    repeats = np.random.default_rng(1).integers(1, 4, 40)
    once = k_means(values, repeats.astype(float), 3, np.random.default_rng(2))
    many = k_means(np.repeat(values, repeats, axis=0), np.ones(repeats.sum()), 3, np.random.default_rng(2))
    np.testing.assert_array_equal(np.repeat(once, repeats), many)


def test_rows_of_a_large_table_join_the_centres_of_a_sample():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 3 * SAMPLE_ROWS)
    values = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])[truth] + rng.normal(size=(len(truth), 2))
    groups = k_means(values, np.ones(len(truth)), 3, rng)
    assert len({(a, b) for a, b in zip(truth, groups, strict=True)}) == 3
    assert np.bincount(groups).min() > 0.9 * SAMPLE_ROWS
