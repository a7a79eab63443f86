"""ClassStandardisation: rows go through the map of their class."""

import numpy as np

from jointwise.joint.standardisation import ClassStandardisation


def correlated(n=300, d=3, n_classes=2, seed=0):
    """Return rows, classes, and the maps that make the columns of each class uncorrelated."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n)
    rows = np.einsum("ni,nij->nj", rng.normal(size=(n, d)), rng.normal(size=(n_classes, d, d))[classes])
    rows = (rows + 3 * classes[:, None]) * 10.0 ** np.arange(d)
    parts = [rows[classes == c] for c in range(n_classes)]
    maps = [np.linalg.inv(np.linalg.cholesky(np.cov(part.T))).T for part in parts]
    means = np.array([part.mean(axis=0) for part in parts])
    return rows, classes, ClassStandardisation(np.arange(d), means, np.array(maps))


def test_each_class_is_centred_and_uncorrelated():
    rows, classes, maps = correlated()
    seen = maps.apply(rows, classes)
    for c in range(2):
        np.testing.assert_allclose(seen[classes == c].mean(axis=0), 0, atol=1e-8)
        np.testing.assert_allclose(np.cov(seen[classes == c].T), np.eye(3), atol=1e-7)
        covariance = np.cov(rows[classes == c].T)
        np.testing.assert_allclose(maps.log_jacobians[c], -0.5 * np.linalg.slogdet(covariance)[1])


def test_rows_are_mapped_by_their_own_class_and_other_columns_follow():
    rows, classes, maps = correlated()
    moved = ClassStandardisation(np.array([0, 2, 3]), maps.means, maps.maps)
    seen = moved.apply(np.column_stack([rows[:, 0], classes, rows[:, 1:]]), classes)
    for row, c, got in zip(rows, classes, seen, strict=True):
        np.testing.assert_allclose(got[:3], (row - maps.means[c]) @ maps.maps[c], atol=1e-8)
        assert got[3] == c


def test_a_gap_in_a_mixed_column_empties_all_of_them():
    rows, classes, maps = correlated()
    rows[4, 1] = np.nan
    seen = maps.apply(rows, classes)
    assert np.isnan(seen[4]).all()
    assert np.isfinite(np.delete(seen, 4, axis=0)).all()


def test_a_row_is_mapped_the_same_whatever_the_other_rows():
    rows, classes, maps = correlated()
    together = maps.apply(rows, classes)
    np.testing.assert_allclose(together[7:8], maps.apply(rows[7:8], classes[7:8]), rtol=0, atol=2e-9)


def test_values_near_the_largest_float_are_empty():
    _, _, maps = correlated()
    assert np.isnan(maps.apply(np.full((1, 3), 1e308), np.zeros(1, dtype=int))).all()
