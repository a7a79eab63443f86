r"""Quadrants of standard Gaussian pairs: P(X <= x, Y <= y) at every combination of points, of many pairs at once.

With :math:`\rho` the correlation, by Plackett's identity,

.. math:: P = \Phi(x) \Phi(y) + \frac{1}{2 \pi} \int_0^{\arcsin \rho}
          \exp\Big(-\frac{x^2 + y^2 - 2 x y \sin t}{2 \cos^2 t}\Big) \, dt .

Gauss-Legendre nodes give it to about 1e-15, more of them for stronger correlations. The strongest are left to Owen's T
function, at ten times the time.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtr, owens_t

from jointwise._typing import FloatArray

# Standard deviations beyond which a Gaussian has no mass.
REACH = 9.0
# Correlations up to which so many nodes are exact to 1e-15.
NODES = ((0.5, 8), (0.75, 12), (0.925, 20), (0.98, 32), (0.995, 48))
# Combinations of points that are computed together.
TOGETHER = 2**15
_TINY = np.finfo(float).tiny


def quadrants(x: FloatArray, y: FloatArray, rho: FloatArray) -> FloatArray:
    """Return P(X <= x, Y <= y) of standard Gaussian pairs at every combination of points.

    Parameters
    ----------
    x : array of shape (F, n)
    y : array of shape (F, m)
        Points of each pair, infinite ones too.
    rho : array of shape (F,)
        Correlations, from -1 to 1.

    Returns
    -------
    array of shape (F, n, m)

    Examples
    --------
    >>> origin = np.zeros((3, 1))
    >>> quadrants(origin, origin, np.array([0.0, 0.5, 1.0])).ravel().round(6)
    array([0.25    , 0.333333, 0.5     ])
    """
    x, y = np.clip(x, -REACH, REACH), np.clip(y, -REACH, REACH)
    out = np.empty((len(rho), x.shape[1], y.shape[1]))
    left = np.ones(len(rho), dtype=bool)
    size = max(TOGETHER // max(out[:1].size, 1), 1)
    for most, n_nodes in NODES:
        here = np.flatnonzero(left & (np.abs(rho) <= most))
        left[here] = False
        for start in range(0, len(here), size):
            some = here[start : start + size]
            out[some] = _by_nodes(x[some], y[some], rho[some], n_nodes)
    for r in np.flatnonzero(left):
        out[r] = _by_owen(x[r], y[r], float(rho[r]))
    return out


@cache
def _rule(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights on the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return (nodes + 1) / 2, weights / 2


def _by_nodes(x: FloatArray, y: FloatArray, rho: FloatArray, n_nodes: int) -> FloatArray:
    angle = np.arcsin(rho)
    squares, products = 0.5 * (x[:, :, None] ** 2 + y[:, None, :] ** 2), x[:, :, None] * y[:, None, :]
    out = ndtr(x)[:, :, None] * ndtr(y)[:, None, :]
    for node, weight in zip(*_rule(n_nodes), strict=True):
        sine = np.sin(node * angle)[:, None, None]
        term = (sine * products - squares) / ((1 - sine) * (1 + sine))
        out += (weight / (2 * np.pi) * angle)[:, None, None] * np.exp(term)
    return np.asarray(out)


def _by_owen(x: FloatArray, y: FloatArray, rho: float) -> FloatArray:
    spread = np.sqrt(max((1 - rho) * (1 + rho), 1e-14))
    h, k = (np.where(each == 0, _TINY, each) for each in (x[:, None], y[None, :]))
    with np.errstate(over="ignore"):
        t = owens_t(h, (k / h - rho) / spread) + owens_t(k, (h / k - rho) / spread)
    return np.asarray(0.5 * (ndtr(h) + ndtr(k)) - t - 0.5 * ((h < 0) != (k < 0)))
