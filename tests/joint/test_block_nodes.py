"""Laws of single columns under three and more windows, against lattice rules at each point and against draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.joint.block_cases import INF, plain

from jointwise.joint.block import BlockMixture
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.block_nodes import NodeLaw, _binned, node_law
from jointwise.joint.events import Interval
from jointwise.warps import Warp

LEVELS = np.array([1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4])


def windowed(seed, n_windows, d):
    """One component with windows on its first coordinates, some open at the top."""
    rng = np.random.default_rng(seed)
    f = plain(seed, d=d, n_components=1)
    scale = np.sqrt(np.diagonal(f.block.covariances[0]))
    low = f.block.means[0] + scale * rng.uniform(-1.5, 0.8, d)
    high = low + scale * np.where(rng.random(d) < 0.4, INF, rng.uniform(0.3, 3.0, d))
    return f.condition({n: Interval(low[n], high[n]) for n in range(n_windows)})


@pytest.mark.parametrize("n_windows", [3, 4, 6])
@pytest.mark.parametrize("seed", range(3))
def test_laws_are_those_of_lattice_rules_at_each_point(n_windows, seed):
    g = windowed(seed, n_windows, n_windows + 1)
    for n in (0, n_windows):  # with a window of its own and without
        margin = g.margin(n)
        x = margin.quantiles(LEVELS)
        # the rule has an error of up to 1e-4 itself
        assert_allclose(margin.dictionary.cdf(x) @ margin.weights, g.marginal([n]).cdf(x[:, None]), atol=3e-4)
        assert_allclose(margin.pdf(x), np.exp(g.marginal([n]).logpdf(x[:, None])), rtol=0.01)


def test_moments_are_those_of_draws():
    # three columns, means and variances: a correct law fails with probability 1e-8
    g = windowed(1, 4, 5)
    draws = g.sample(40_000, np.random.default_rng(0))
    for n in (0, 3, 4):
        margin, x = g.margin(n), draws[:, n]
        assert abs(x.mean() - margin.mean()) < 6 * x.std() / 200
        squares = (x - x.mean()) ** 2
        assert abs(squares.mean() - margin.var()) < 6 * squares.std() / 200


@pytest.mark.parametrize("rest", [1e-2, 1e-5, 1e-8])
def test_sharp_edges(rest):
    d = 4
    shape = np.eye(d)
    shape[3] = shape[0] * np.sqrt(1 - rest)  # the last is nearly the first
    covariance = shape @ (0.5 + 0.5 * np.eye(d)) @ shape.T
    covariance[3, 3] += rest
    none = ((np.empty(0),) * d, (np.empty((0, 1)),) * d, (False,) * d)
    block = GaussianBlock((Warp.line(0.0, 1.0),) * d, np.zeros((1, d)), covariance[None], *none)
    f = BlockMixture([1.0], block, tuple(range(d)), (), ())
    g = f.condition({0: Interval(0.5, 1.5), 1: Interval(-INF, 0.3), 2: Interval(-1.0, 1.0)})
    x = np.array([0.3, 0.45, 0.499, 0.5, 0.501, 0.55, 1.0, 1.4, 1.499, 1.501, 1.6])
    margin = g.margin(3)
    tolerance = 2e-4 if rest > 1e-6 else 2e-3  # blurred
    assert_allclose(margin.dictionary.cdf(x) @ margin.weights, g.marginal([3]).cdf(x[:, None]), atol=tolerance)


def test_bins_change_little():
    rng = np.random.default_rng(0)
    mean, log_weight = rng.normal(size=4000), np.log(rng.dirichlet(np.ones(4000)))
    every = NodeLaw(log_weight, mean, np.full(4000, 0.3), -INF, INF)
    few = NodeLaw(*_binned(mean, log_weight, 0.3), -INF, INF)
    z = np.linspace(-4, 4, 101)
    assert len(few.mean) < 300
    assert_allclose(few.log_density(z), every.log_density(z), atol=1e-5)
    assert_allclose(few.moments(), every.moments(), rtol=1e-12)


def test_points_are_found_once():
    g = windowed(0, 3, 4)
    node_law(g.block, 0, 0)
    (found,) = g.block.nodes.values()
    node_law(g.block, 0, 3)
    assert g.block.nodes[0] is found
