r"""Laws of single coordinates of a Gaussian under three or more windows, as mixtures of Gaussians.

Given the coordinates that have a window, the others are Gaussian, with means that are linear in them. So points
:math:`x_i` with weights :math:`p_i` that stand for the coordinates inside their windows give the law of a coordinate c:

.. math:: f(z) = \sum_i p_i \, \frac{N(z; m_i, s^2)}{P(l < z \le h)}, \qquad m_i = E[z_c \mid x_i] ,

with :math:`(l, h]` the window of c itself, which is left out of :math:`x_i`. Many means lie close together compared to
s. Those in one bin become one Gaussian with the same mass, mean and variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from jointwise._typing import FloatArray, IntArray
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.intervals import interval_moments, log_interval
from jointwise.joint.window import window_nodes

# Width of a bin of means, in units of s. Densities change by less than 1e-6, and by 1e-4 of theirs far in the tails.
BIN = 0.15
# Most numbers of points that a block keeps (64 MB).
MOST_KEPT = 2**23
# Where s is less than this many times the spread of the means over the number of points, sums over points would not be
# smooth, so s is raised to that: edges are blurred by 0.002 spreads.
SMOOTH = 16.0


@dataclass(frozen=True, eq=False)
class NodeLaw:
    """Law of one coordinate: a mixture of B Gaussians, all cut to one window.

    Parameters
    ----------
    log_weight : array of shape (B,)
        Log-weights of the Gaussians before they are cut, up to a constant.
    mean, scale : array of shape (B,)
    low, high : float
        The window.
    """

    log_weight: FloatArray
    mean: FloatArray
    scale: FloatArray
    low: float
    high: float

    def log_density(self, z: FloatArray) -> FloatArray:
        """Log-density at points (n,) of the window, up to a constant; shape (n,)."""
        y = (z[:, None] - self.mean) / self.scale
        logs = self.log_weight - np.log(self.scale) - 0.5 * y * y
        top = logs.max(axis=1, keepdims=True)
        return np.asarray(top[:, 0] + np.log(np.exp(logs - top).sum(axis=1)))

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        a, b = (self.low - self.mean) / self.scale, (self.high - self.mean) / self.scale
        log_p, mean, variance = interval_moments(a, b, (self.high - self.low) / self.scale)
        share = np.exp(self.log_weight + log_p - logsumexp(self.log_weight + log_p))
        mean = self.mean + self.scale * mean
        centre = share @ mean
        return float(centre), float(np.sqrt(share @ (self.scale**2 * variance + (mean - centre) ** 2)))


def node_law(block: GaussianBlock, r: int, c: int) -> NodeLaw:
    """Return the law of coordinate ``c`` given component ``r`` and its windows.

    Parameters
    ----------
    block : GaussianBlock
        With at least three windows in the component.
    r, c : int
    """
    inside, x, log_weight = _nodes(block, r)
    other = inside != c
    given, x = inside[other], x[:, other]
    covariance = block.latent_covariances[r]
    gain = np.linalg.solve(covariance[np.ix_(given, given)], covariance[given, c])
    mean = block.means[r, c] + (x - block.means[r, given]) @ gain
    scale = float(np.sqrt(max(covariance[c, c] - gain @ covariance[given, c], 0.0)))
    used = log_weight > -np.inf
    spread = float(np.sqrt(np.cov(mean[used], aweights=np.exp(log_weight[used]))))
    scale = max(scale, SMOOTH * spread / len(x), 1e-12 * float(np.sqrt(covariance[c, c])))
    low, high = float(block.low[r, c]), float(block.high[r, c])
    if not other.all():
        a, b = (low - mean) / scale, (high - mean) / scale
        log_weight = log_weight - log_interval(a, b, np.full(len(x), (high - low) / scale))
    return NodeLaw(*_binned(mean[used], log_weight[used], scale), low, high)


def _nodes(block: GaussianBlock, r: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the coordinates of component ``r`` with a window, points (n, windows) of them, and log-weights (n,)."""
    if r not in block.nodes:
        inside = np.flatnonzero((block.low[r] > -np.inf) | (block.high[r] < np.inf))
        covariance = block.latent_covariances[r][np.ix_(inside, inside)]
        found = inside, *window_nodes(block.means[r, inside], covariance, block.low[r, inside], block.high[r, inside])
        if block.n_components * found[1].size > MOST_KEPT:
            return found
        block.nodes[r] = found
    return block.nodes[r]


def _binned(mean: FloatArray, log_weight: FloatArray, scale: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log-weights, means and deviations of the Gaussians that stand for those in one bin."""
    places = np.floor((mean - mean.min()) / (BIN * scale))
    _, at = np.unique(places, return_inverse=True)
    n = int(at.max()) + 1
    top = np.full(n, -np.inf)
    np.maximum.at(top, at, log_weight)
    share = np.exp(log_weight - top[at])
    total = np.bincount(at, share, n)
    centre = np.bincount(at, share * mean, n) / total
    variance = np.bincount(at, share * (mean - centre[at]) ** 2, n) / total
    return top + np.log(total), centre, np.sqrt(scale**2 + variance)
