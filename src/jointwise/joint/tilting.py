r"""Sequential conditioning of a Gaussian in a window, with Botev's minimax tilting.

Genz's transformation writes a Gaussian vector as x = L y along the Cholesky factor. Given y_1, ..., y_{k-1}, the window
of coordinate k is an interval of the standard Gaussian y_k, so y can be drawn coordinate by coordinate inside the
window. Botev draws y_k around a shift mu_k instead of zero. The weight of a draw is then exp(psi(y; mu)) with

.. math::
    \psi(y; \mu) = \sum_k \tfrac12 \mu_k^2 - y_k \mu_k
                   + \log\bigl(\Phi(b_k(y) - \mu_k) - \Phi(a_k(y) - \mu_k)\bigr),

and P(window) is the mean weight, for any mu. The function psi is concave in y and convex in mu; at its saddle point mu
makes the largest weight as small as possible, and that largest weight bounds all others. So relative errors stay small
far in the tails, and draws accepted with probability exp(psi(y; mu) - bound) follow the Gaussian in the window exactly.

References: A. Genz, J. Comput. Graph. Stat. 1 (1992); Z. I. Botev, J. R. Stat. Soc. B 79 (2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.joint.intervals import interval_moments, interval_quantile, interval_step, log_interval

# A conditional variance below this share of the coordinate's variance is raised to it, so correlations of one are
# treated as correlations of 1 - 5e-15. A window's edge is then blurred by 1e-7 standard deviations.
LEAST_VARIANCE = 1e-14
# The bound on weights is raised by this much, far more than the error of a saddle point that counts as found.
SLACK = 1e-4
# Newton steps for a saddle point. Most cases need three or four.
N_STEPS = 50


@dataclass(frozen=True)
class Chain:
    """Windows of B Gaussian vectors as chains of d intervals; entry k depends on the entries before it.

    Attributes
    ----------
    low, high, width : array of shape (B, d)
        The interval of y_k is (low_k - c, high_k - c] with c = sum_m slope[k, m] y_m.
    slope : array of shape (B, d, d)
        Zero on and above the diagonal.
    order : array of shape (B, d)
        Entry k is this coordinate of the vector.
    scale : array of shape (B, d)
        Conditional standard deviation of entry k given those before it, for a coordinate of variance one.
    shift : array of shape (B, d)
        The tilt mu; the last is zero.
    bound : array of shape (B,)
        No draw has a larger log-weight.
    """

    low: FloatArray
    high: FloatArray
    width: FloatArray
    slope: FloatArray
    order: IntArray
    scale: FloatArray
    shift: FloatArray
    bound: FloatArray

    def weigh(
        self, cases: IntArray, levels: FloatArray, *, last: bool = False
    ) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Draw along the chain at given levels of the unit cube; return log-weights and draws.

        Parameters
        ----------
        cases : array of int of shape (n,)
        levels : array of shape (N, d - 1), or (N, d) with ``last``
            The same for every case.
        last : bool
            Whether the last entry is drawn too; the weight does not need it.

        Returns
        -------
        log_weight : array of shape (n, N)
        y, distance : array of shape (d, n, N)
        end : array of int of shape (d, n, N)
            As in :func:`~jointwise.joint.intervals.interval_quantile`.
        """
        low, high, width, slope, mu = (x[cases] for x in (self.low, self.high, self.width, self.slope, self.shift))
        n, d = low.shape
        shape = (n, len(levels))
        y, distance, end = np.zeros((d, *shape)), np.zeros((d, *shape)), np.zeros((d, *shape), dtype=np.int64)
        log_weight = np.zeros(shape)
        for k in range(d):
            centre = np.einsum("nm,mnN->nN", slope[:, k, :k], y[:k]) + mu[:, k, None]
            a, b, w = low[:, k, None] - centre, high[:, k, None] - centre, np.broadcast_to(width[:, k, None], shape)
            log_weight += log_interval(a, b, w)
            if k < d - 1 or last:
                y[k], distance[k], end[k] = interval_quantile(a, b, w, levels[:, k])
                y[k] += mu[:, k, None]
                log_weight += mu[:, k, None] * (0.5 * mu[:, k, None] - y[k])
        return log_weight, y, distance, end

    def log_weights(self, cases: IntArray, levels: FloatArray) -> FloatArray:
        """Log-weights of draws at levels (N, d - 1), as `weigh` gives them, in half the time; shape (n, N)."""
        low, high, width, slope, mu = (x[cases] for x in (self.low, self.high, self.width, self.slope, self.shift))
        n, d = low.shape
        shape = (n, len(levels))
        y, log_weight = np.empty((d - 1, *shape)), np.zeros(shape)
        for k in range(d):
            centre = np.broadcast_to(mu[:, k, None], shape).copy()
            for m in range(k):
                centre += slope[:, k, m, None] * y[m]
            a, b, w = low[:, k, None] - centre, high[:, k, None] - centre, np.broadcast_to(width[:, k, None], shape)
            if k == d - 1:
                log_weight += log_interval(a, b, w)
                break
            log_p, y[k] = interval_step(a, b, w, np.broadcast_to(levels[:, k], shape))
            y[k] += mu[:, k, None]
            log_weight += log_p + mu[:, k, None] * (0.5 * mu[:, k, None] - y[k])
        return log_weight


def chain(low: FloatArray, high: FloatArray, width: FloatArray, correlation: FloatArray) -> Chain:
    """Return the tilted chains of windows of Gaussian vectors with mean zero and variances one.

    Parameters
    ----------
    low, high, width : array of shape (B, d)
        As in :func:`~jointwise.joint.intervals.log_interval`; d >= 2.
    correlation : array of shape (B, d, d)

    Examples
    --------
    Both coordinates above 30, with correlation 1/2: weights differ little, so few give a good mean.

    >>> ends = np.full((1, 2), 30.0), np.full((1, 2), np.inf), np.full((1, 2), np.inf)
    >>> made = chain(*ends, np.array([[[1.0, 0.5], [0.5, 1.0]]]))
    >>> made.weigh(np.array([0]), np.array([[0.1], [0.5], [0.9]]))[0].round(3)
    array([[-607.69 , -607.69 , -607.691]])
    """
    order, scale, slope, start = _ordered(low, high, width, correlation)
    low, high, width = (np.take_along_axis(x, order, axis=1) / scale for x in (low, high, width))
    shift, bound = _saddle(low, high, width, slope, start)
    return Chain(low, high, width, slope, order, scale, shift, bound)


def _ordered(
    low: FloatArray, high: FloatArray, width: FloatArray, correlation: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the order, conditional deviations, slopes and means: the least probable interval is always next.

    Each interval is taken given the means of the ones before it, as Gibson, Glasbey and Elston do.
    """
    n, d = low.shape
    rows = np.arange(n)
    order = np.tile(np.arange(d), (n, 1))
    factor, mean = np.zeros((n, d, d)), np.zeros((n, d))  # factor in the original order of coordinates
    left = np.ones((n, d), dtype=bool)
    scale = np.ones((n, d))
    for k in range(d):
        spread = np.sqrt(np.maximum(1 - (factor[:, :, :k] ** 2).sum(axis=2), LEAST_VARIANCE))
        centre = np.einsum("njm,nm->nj", factor[:, :, :k], mean[:, :k])
        log_p, means, _ = interval_moments((low - centre) / spread, (high - centre) / spread, width / spread)
        j = np.where(left, log_p, np.inf).argmin(axis=1)
        order[:, k], mean[:, k], scale[:, k], left[rows, j] = j, means[rows, j], spread[rows, j], False
        rest = correlation[rows, :, j] - np.einsum("njm,nm->nj", factor[:, :, :k], factor[rows, j, :k])
        factor[:, :, k] = np.where(left, rest / scale[:, k, None], 0.0)
    slope = np.tril(np.take_along_axis(factor, order[:, :, None], axis=1), -1) / scale[:, :, None]
    return order, scale, slope, mean


def _saddle(
    low: FloatArray, high: FloatArray, width: FloatArray, slope: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the tilt and the bound on log-weights of each case, by damped Newton steps on the gradient of psi.

    Where Newton does not arrive, the tilt is zero and the bound is the log-probability of the first interval.
    """
    n, d = low.shape
    e = d - 1  # the last entries of y and mu are zero
    unit = np.eye(e)

    def gradient(at: IntArray, point: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        y, mu = point[:, :e], np.pad(point[:, e:], ((0, 0), (0, 1)))
        centre = mu + np.einsum("nkm,nm->nk", slope[at, :, :e], y)
        log_p, mean, variance = interval_moments(low[at] - centre, high[at] - centre, width[at])
        by_y = np.einsum("nkm,nk->nm", slope[at, :, :e], mean) - mu[:, :e]
        value = 0.5 * (mu**2).sum(axis=1) - (y * mu[:, :e]).sum(axis=1) + log_p.sum(axis=1)
        return np.concatenate([mu[:, :e] - y + mean[:, :e], by_y], axis=1), variance - 1, value

    at = np.arange(n)
    point = np.concatenate([start[:, :e], np.zeros((n, e))], axis=1)
    force, bend, psi = gradient(at, point)
    for _ in range(N_STEPS):
        at = at[np.abs(force[at]).max(axis=1) > 1e-9 * (1 + np.abs(point[at, e:]).max(axis=1))]
        if not at.size:
            break
        bent = bend[at, :, None] * slope[at, :, :e]
        jacobian = np.empty((at.size, 2 * e, 2 * e))
        jacobian[:, :e, :e] = bent[:, :e] - unit
        jacobian[:, :e, e:] = unit * (1 + bend[at, :e, None])
        jacobian[:, e:, :e] = np.swapaxes(slope[at, :, :e], 1, 2) @ bent
        jacobian[:, e:, e:] = np.swapaxes(jacobian[:, :e, :e], 1, 2)
        try:
            step = np.linalg.solve(jacobian, -force[at, :, None])[:, :, 0]
        except np.linalg.LinAlgError:  # one matrix is singular to the last bit
            step = -(np.linalg.pinv(jacobian) @ force[at, :, None])[:, :, 0]
        left, length = np.arange(at.size), 1.0
        while left.size and length > 1e-6:  # halve the step until the gradient shrinks
            tried = point[at[left]] + length * step[left]
            new_force, new_bend, new_psi = gradient(at[left], tried)
            good = (new_force**2).sum(axis=1) < (force[at[left]] ** 2).sum(axis=1)
            to = at[left[good]]
            point[to], force[to], bend[to], psi[to] = tried[good], new_force[good], new_bend[good], new_psi[good]
            left, length = left[~good], 0.5 * length
        at = np.delete(at, left)  # no step helps: rounding, or a hopeless case
    mu = np.pad(point[:, e:], ((0, 0), (0, 1)))
    found = np.abs(force).max(axis=1) <= 1e-6 * (1 + np.abs(mu).max(axis=1))
    mu[~found] = 0.0
    return mu, np.where(found, psi + SLACK, log_interval(low[:, 0], high[:, 0], width[:, 0]))
