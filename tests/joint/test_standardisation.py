"""ClassStandardisation against plain formulas; the order of rows has no effect."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jointwise.joint import standardisation
from jointwise.joint.standardisation import ClassStandardisation


def correlated(n=300, d=3, n_classes=2, seed=0):
    """Return rows and classes; the correlated columns differ from class to class and have units of different size."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n)
    mixing = rng.normal(size=(n_classes, d, d))
    units = 10.0 ** np.arange(d)
    return (np.einsum("ni,nij->nj", rng.normal(size=(n, d)), mixing[classes]) + 3 * classes[:, None]) * units, classes


def found(rows, classes, weights=None, columns=None, n_classes=None):
    return ClassStandardisation.of(
        rows,
        np.arange(rows.shape[1]) if columns is None else np.array(columns),
        classes,
        np.ones(len(rows)) if weights is None else weights,
        classes.max() + 1 if n_classes is None else n_classes,
    )


def plain_covariances(rows, classes):
    """Return the covariance of each class, shrunk by one row of their mean per column, by loops."""
    n_classes, d = classes.max() + 1, rows.shape[1]
    scatter = np.zeros((n_classes, d, d))
    for c in range(n_classes):
        mean = rows[classes == c].mean(axis=0)
        for row in rows[classes == c]:
            scatter[c] += np.outer(row - mean, row - mean)
    pooled = scatter.sum(axis=0) / len(rows)
    return [(s + d * pooled) / (np.sum(classes == c) + d) for c, s in enumerate(scatter)]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
def test_each_class_gets_the_inverse_root_of_its_covariance(seed, d, n_classes):
    rows, classes = correlated(40 * d, d, n_classes, seed)
    std = found(rows, classes)
    assume(std is not None)  # None if the columns happen to be uncorrelated
    for c, covariance in enumerate(plain_covariances(rows, classes)):
        assume(np.linalg.cond(covariance / 10.0 ** np.add.outer(np.arange(d), np.arange(d))) < 1e5)
        np.testing.assert_allclose(std.maps[c].T @ covariance @ std.maps[c], np.eye(d), atol=1e-5)
        np.testing.assert_allclose(std.means[c], rows[classes == c].mean(axis=0), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(std.log_jacobians[c], -0.5 * np.linalg.slogdet(covariance)[1], atol=1e-5)


def test_rows_are_mapped_by_their_own_class_and_other_columns_follow():
    rows, classes = correlated()
    rows = np.column_stack([rows[:, 0], classes, rows[:, 1:]])
    std = found(rows, classes, columns=[0, 2, 3])
    seen = std.apply(rows, classes)
    for row, c, got in zip(rows, classes, seen, strict=True):
        np.testing.assert_allclose(got[:3], (row[[0, 2, 3]] - std.means[c]) @ std.maps[c], atol=1e-8)
        assert got[3] == c


def test_a_gap_in_a_mixed_column_empties_all_of_them():
    rows, classes = correlated()
    std = found(rows, classes)
    rows[4, 1] = np.nan
    seen = std.apply(rows, classes)
    assert np.isnan(seen[4]).all()
    assert np.isfinite(np.delete(seen, 4, axis=0)).all()


def test_rows_with_gaps_do_not_affect_the_maps():
    rows, classes = correlated()
    holed = rows.copy()
    holed[::5, 2] = np.nan
    whole = np.arange(len(rows)) % 5 > 0
    np.testing.assert_array_equal(found(holed, classes).maps, found(rows[whole], classes[whole]).maps)


def test_order_and_repetition_of_rows_have_no_effect():
    rows, classes = correlated()
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, len(rows)).astype(float)
    repeated = rng.permutation(np.repeat(np.arange(len(rows)), weights.astype(int)))
    a, b = found(rows, classes, weights), found(rows[repeated], classes[repeated])
    np.testing.assert_allclose(a.apply(rows, classes), b.apply(rows, classes), rtol=0, atol=2e-9)


def test_a_row_is_mapped_the_same_whatever_the_other_rows():
    rows, classes = correlated()
    std = found(rows, classes)
    together = std.apply(rows, classes)
    np.testing.assert_allclose(together[7:8], std.apply(rows[7:8], classes[7:8]), rtol=0, atol=2e-9)


def test_columns_that_are_constant_within_classes_stay_as_they_are():
    rows, classes = correlated()
    rows = np.column_stack([rows, 5.0 * classes, np.full(len(rows), 1e9)])
    assert found(rows, classes).columns.tolist() == [0, 1, 2]


def test_columns_that_depend_on_each_other_exactly_give_finite_rows():
    rows, classes = correlated()
    rows = np.column_stack([rows, rows[:, 0] - 2 * rows[:, 1] / 10])
    seen = found(rows, classes).apply(rows, classes)
    assert np.isfinite(seen).all()
    assert np.abs(seen).max() < 100


def test_a_class_without_rows_gets_the_covariance_of_all():
    rows, classes = correlated(n_classes=2)
    std = found(rows, classes, n_classes=3)
    assert np.isfinite(std.maps).all()
    assert np.isfinite(std.log_jacobians).all()


def test_values_near_the_largest_float_are_left_out_or_empty():
    rows, classes = correlated()
    huge = np.column_stack([rows, np.where(np.arange(len(rows)) % 2, 1e308, -1e308)])
    std = found(huge, classes)
    assert std.columns.tolist() == [0, 1, 2]
    assert np.isnan(std.apply(np.full((1, 4), 1e308), np.zeros(1, dtype=int))[0, :3]).all()


def test_correlations_that_cancel_between_classes_are_found():
    rng = np.random.default_rng(0)
    classes = np.arange(1000) % 2
    x = rng.normal(size=1000)
    rows = np.column_stack([x, np.where(classes, x, -x) + 0.3 * rng.normal(size=1000)])
    assert abs(np.corrcoef(rows.T)[0, 1]) < 0.1
    seen = found(rows, classes).apply(rows, classes)
    assert abs(np.corrcoef(seen[classes == 1].T)[0, 1]) < 0.01


@pytest.mark.parametrize("case", ["one column", "too few rows", "no correlation", "too large"])
def test_there_may_be_no_map(case, monkeypatch):
    rows, classes = correlated()
    if case == "too large":
        monkeypatch.setattr(standardisation, "MOST_NUMBERS", 17)  # two classes of three columns take 18
    elif case == "one column":
        rows = rows[:, :1]
    elif case == "too few rows":
        rows, classes = rows[:8], classes[:8] * 0
    else:
        rows = np.random.default_rng(0).normal(size=(2000, 3))
        classes = np.arange(2000) % 2
    assert found(rows, classes) is None
