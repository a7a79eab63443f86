"""Rows dealt to folds: copies of one row stay together, rows that chance repeats do not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import JUPAD, JointEstimator
from jointwise.axes import BinnedAxis
from jointwise.fitting.choice.folds import fold_weights, is_one_row, row_folds, split_counts
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows

FEW = settings(deadline=None, max_examples=40)


def coded(data, weights=None, n_bins=16, fine=()):
    profile = Profile.of(data)
    schema = profile.schema()
    return CodedRows.of(data, schema, profile.axes(schema, n_bins, fine=fine), weights).canonical()


def equal_by_chance(rows):
    """The expected number of rows that are equal to each one in its intervals, by plain loops."""
    n = len(rows)
    expected = []
    for row in rows.codes:
        product = float(n)
        for k, axis in enumerate(rows.axes):
            if hasattr(axis, "n_intervals") and row[k] < axis.n_intervals:
                product *= sum(other[k] == row[k] for other in rows.codes) / n
        expected.append(product)
    return np.array(expected)


@FEW
@given(st.integers(0, 2**32 - 1))
def test_one_row_by_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    data = {
        "a": np.where(rng.random(150) < 0.3, 0.0, rng.normal(size=150)),
        "b": rng.choice(["x", "y"], 150),
        "c": np.where(rng.random(150) < 0.2, np.nan, rng.normal(size=150)),
    }
    rows = coded(data, rng.integers(1, 4, 150).astype(float), n_bins=64)
    np.testing.assert_array_equal(is_one_row(rows), equal_by_chance(rows) < 0.1)


def test_weights_and_copies_of_numbers_go_to_one_fold():
    rng = np.random.default_rng(0)
    data = {"a": rng.normal(size=300), "b": rng.normal(size=300)}
    rows = coded(data, rng.uniform(0.2, 4, 300), fine=["a", "b"])
    for part, rest in fold_weights(rows, 300, rng):
        assert not np.any((part > 0) & (rest > 0))
        np.testing.assert_allclose(part + rest, rows.weights)


def test_equal_rows_of_categories_are_dealt_one_by_one():
    rng = np.random.default_rng(0)
    rows = coded({"a": rng.choice(["x", "y"], 600), "b": rng.choice(["u", "v", "w"], 600)})
    assert len(rows) == 6
    for part, rest in row_folds(rows, rng):
        assert len(part) == len(rest) == 6


def test_rows_that_stand_at_spikes_are_dealt_one_by_one():
    """All zeros in many columns is what many rows may be, and no fold should be without them."""
    rng = np.random.default_rng(0)
    there = rng.random(900) < 0.4
    rows = coded({f"x{k}": np.where(there, rng.exponential(size=900), 0.0) for k in range(12)})
    zeros = int(np.argmax(rows.weights))
    assert rows.weights[zeros] > 400
    assert not is_one_row(rows)[zeros]


def test_a_spike_that_was_not_found_is_dealt_one_by_one():
    rng = np.random.default_rng(0)
    at = np.append(np.full(200, np.nan), rng.normal(size=300))
    rows = coded({"a": np.nan_to_num(at), "b": np.nan_to_num(at + rng.normal(size=500))}, fine=["a", "b"])
    # as if zero were a number like others
    rows = replace(rows, axes=tuple(BinnedAxis(np.arange(axis.n_bins - 1.0)) for axis in rows.axes))
    np.testing.assert_array_equal(is_one_row(rows), rows.weights < 200)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_whole_numbers_are_dealt_one_by_one(n_columns):
    """However often columns repeat each other: each number is a value that many rows have."""
    numbers = np.random.default_rng(0).poisson(30, 600)
    rows = coded({f"x{k}": numbers for k in range(n_columns)}, n_bins=128)
    assert not is_one_row(rows).any()


def test_rows_that_weigh_one_are_dealt_as_if_they_were_dealt_one_by_one():
    counts = np.ones(50)
    together = split_counts(counts, 3, np.random.default_rng(1), np.ones(50, dtype=bool))
    np.testing.assert_array_equal(together, split_counts(counts, 3, np.random.default_rng(1)))


@pytest.mark.parametrize("estimator", [JUPAD, JointEstimator])
def test_weights_make_no_dependence(estimator):
    """Whoever knows a row from its copies finds many components between independent columns."""
    rng = np.random.default_rng(3)
    table = {"a": rng.normal(size=400), "b": rng.normal(size=400)}
    weights = rng.integers(1, 4, 400).astype(float)
    density = estimator(random_state=0).fit(table, sample_weight=weights).density_
    # of 400 independent rows a fit finds a few thousandths; with copies in both folds it found .3 and more
    assert density.mutual_information("a", "b").value < 0.03
