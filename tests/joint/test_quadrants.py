"""Quadrants of Gaussian pairs: against SciPy's integrals, at every strength of correlation, and their limits."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from jointwise.joint.quadrants import NODES, _by_nodes, _by_owen, quadrants

X, Y = np.array([-3.0, -0.4, 0.0, 1.2, 2.5]), np.array([-2.0, 0.0, 0.3, 1.2, 8.0])


@pytest.mark.parametrize("rho", [0.0, 0.2, -0.6, 0.9, -0.97, 0.99, 0.9999])
def test_they_are_those_of_scipy(rho):
    found = quadrants(X[None], Y[None], np.array([rho]))[0]
    pair = multivariate_normal(np.zeros(2), [[1, rho], [rho, 1]])
    points = np.stack(np.meshgrid(X, Y, indexing="ij"), axis=-1)
    np.testing.assert_allclose(found, pair.cdf(points), atol=1e-7)


@pytest.mark.parametrize(("most", "n_nodes"), NODES)
def test_nodes_are_as_good_as_owens_function(most, n_nodes):
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=(2, 40))
    y = np.hstack([x[:, :20] + 1e-3 * rng.normal(size=(2, 20)), 3 * rng.normal(size=(2, 20))])
    rho = np.array([most, -most])
    expected = np.stack([_by_owen(*each) for each in zip(x, y, rho.tolist(), strict=True)])
    np.testing.assert_allclose(_by_nodes(x, y, rho, n_nodes), expected, atol=2e-15)


def test_far_points_leave_the_other_coordinate():
    far = np.array([[-np.inf, -40.0, 40.0, np.inf]])
    for rho in (0.3, -0.999):
        found = quadrants(far, Y[None], np.array([rho]))[0]
        np.testing.assert_allclose(found, np.outer([0, 0, 1, 1], ndtr(Y)), atol=1e-15)
        np.testing.assert_allclose(quadrants(Y[None], far, np.array([rho]))[0], found.T, atol=1e-15)
