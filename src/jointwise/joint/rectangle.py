r"""Probabilities of rectangles of Gaussian pairs, to about 1e-12 relative however small they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, owens_t

from jointwise._typing import FloatArray, IntArray
from jointwise.joint.intervals import interval_moments, log_interval
from jointwise.joint.tilting import LEAST_VARIANCE

# Probabilities above this come from Owen's T function, whose rounding is about 1e-15; smaller ones from quadrature.
LEAST_BY_OWEN = 1e-3
# Twenty nodes on each panel; panels are short enough for errors below 1e-14.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Breakpoints around an edge of the second window, in units of the distance over which it takes effect.
_AROUND = np.array([-8.0, -3.0, 3.0, 8.0])
# Cases that are integrated at once: their nodes fit the processor's cache.
_BLOCK = 512
# What is further than this below the peak of a log-integrand adds less than rounding.
_FALL = 40.0
_TINY = np.finfo(float).tiny


def log_rectangle(low: FloatArray, high: FloatArray, width: FloatArray, rho: FloatArray) -> FloatArray:
    r"""Return :math:`\log P(a_1 < X_1 \le b_1, a_2 < X_2 \le b_2)` for standard Gaussian pairs with correlation rho.

    Probabilities above 1e-3 are sums over the corners of

    .. math::
        P(X \le h, Y \le k) = \tfrac12 (\Phi(h) + \Phi(k)) - T(h, \tfrac{k - \rho h}{h s})
                              - T(k, \tfrac{h - \rho k}{k s}) - \tfrac12 [h k < 0], \quad s^2 = 1 - \rho^2,

    with Owen's T. Smaller ones are integrals of the density of one coordinate times the other's probability given it.

    Parameters
    ----------
    low, high, width : array of shape (B, 2)
        As in :func:`~jointwise.joint.intervals.log_interval`.
    rho : array of shape (B,)
        s^2 is at least 1e-14.

    Returns
    -------
    array of shape (B,)

    Examples
    --------
    >>> ends = np.zeros((1, 2)), np.full((1, 2), np.inf), np.full((1, 2), np.inf)
    >>> np.exp(log_rectangle(*ends, np.array([0.5]))).round(6)  # 1/4 + arcsin(1/2) / (2 pi)
    array([0.333333])
    """
    spread = np.sqrt(np.maximum((1 - rho) * (1 + rho), LEAST_VARIANCE))
    p = np.zeros(len(rho))
    for sign, x, y in ((1, high, high), (-1, low, high), (-1, high, low), (1, low, low)):
        p += sign * _quadrant(x[:, 0], y[:, 1], rho, spread)
    out = np.log(np.clip(p, LEAST_BY_OWEN, 1.0))
    small = np.flatnonzero(p < LEAST_BY_OWEN)
    for start in range(0, small.size, _BLOCK):
        at = small[start : start + _BLOCK]
        out[at] = _integral(low[at], high[at], width[at], rho[at], spread[at])
    return out


def _quadrant(x: FloatArray, y: FloatArray, rho: FloatArray, spread: FloatArray) -> FloatArray:
    """Return P(X <= x, Y <= y) by Owen's formula."""
    finite = np.isfinite(x) & np.isfinite(y)
    h, k = (np.where(finite, np.where(z == 0, _TINY, z), 1.0) for z in (x, y))
    with np.errstate(over="ignore"):
        t = owens_t(h, (k - rho * h) / h / spread) + owens_t(k, (h - rho * k) / k / spread)
    p: FloatArray = 0.5 * (ndtr(h) + ndtr(k)) - t - 0.5 * ((h < 0) != (k < 0))
    return np.where(finite, p, ndtr(np.minimum(x, y)))


def _integral(low: FloatArray, high: FloatArray, width: FloatArray, rho: FloatArray, spread: FloatArray) -> FloatArray:
    r"""Return log-probabilities by quadrature of the second coordinate's interval over the first.

    The integrand f(t) is a function of the distance t from the end of the first window that is nearer to zero. The
    logarithm of f is concave with second derivative below -1. So Newton finds its peak, nearly all mass lies within
    nine of it, and Gauss-Legendre panels between the ends, the peak and the edges of the second window resolve it.
    """
    rows = np.arange(len(low))
    # the less probable window is integrated over
    first = log_interval(low, high, width).argmin(axis=1)
    (a1, a2), (b1, b2), (w1, w2) = ((x[rows, first], x[rows, 1 - first]) for x in (low, high, width))
    turned = np.abs(b1) < np.abs(a1)
    a1, rho = np.where(turned, -b1, a1), np.where(turned, -rho, rho)
    turned = rho < 0
    a2, b2, rho = np.where(turned, -b2, a2), np.where(turned, -a2, b2), np.abs(rho)
    steep = rho / spread

    def ends(t: FloatArray, i: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        centre = rho[i] * (a1[i] + t)
        return (a2[i] - centre) / spread[i], (b2[i] - centre) / spread[i], w2[i] / spread[i]

    def log_f(t: FloatArray, i: IntArray) -> FloatArray:
        gaussian: FloatArray = -0.5 * (a1[i] + t) ** 2
        return gaussian + log_interval(*np.broadcast_arrays(*ends(t, i)))

    def slope(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        _, mean, variance = interval_moments(*ends(t, rows))
        return steep * mean - a1 - t, steep**2 * (variance - 1) - 1

    peak = _peak(slope, np.clip(-a1, 0.0, w1), w1, 1e-3 / np.hypot(1.0, steep))
    top = log_f(peak, rows)
    left = peak - _reach(lambda r: log_f(peak - r, rows) - top, np.minimum(peak, 9.0))
    right = peak + _reach(lambda r: log_f(peak + r, rows) - top, np.minimum(w1 - peak, 9.0))
    edges = [end[:, None] / np.maximum(rho, 1e-9)[:, None] - a1[:, None] for end in (a2, b2)]
    breaks = np.column_stack(
        [left, 0.5 * (left + peak), peak, 0.5 * (peak + right), right]
        + [edge + _AROUND / np.maximum(steep, 1e-9)[:, None] for edge in edges]
    )
    breaks = np.sort(np.clip(breaks, left[:, None], right[:, None]), axis=1)
    case, panel = np.nonzero(np.diff(breaks, axis=1) > 0)
    start, half = breaks[case, panel], 0.5 * (breaks[case, panel + 1] - breaks[case, panel])
    nodes = start[:, None] + half[:, None] * (1 + _NODES)
    # where log f itself is beyond 1e12, its rounding is more than the integral adds: all stays finite
    values = np.exp(np.minimum(log_f(nodes, case[:, None]) - top[case, None], 600.0)) @ _WEIGHTS * half
    total = np.bincount(case, values, minlength=len(rows))
    out: FloatArray = top + np.log(np.where(total > 0, total, 1.0)) - 0.5 * np.log(2 * np.pi)
    return out


def _peak(
    slope: Callable[[FloatArray], tuple[FloatArray, FloatArray]], start: FloatArray, most: FloatArray, near: FloatArray
) -> FloatArray:
    """Return the maximum in [0, most] of functions with second derivative below -1, within ``near``.

    The maximum is no further from a point than the slope there. Every third step halves the bracket.
    """
    first, _ = slope(start)
    other = np.clip(start + first, 0.0, most)
    low, high, t = np.minimum(start, other), np.maximum(start, other), start
    for step in range(200):
        value, bend = slope(t)
        low, high = np.where(value > 0, t, low), np.where(value < 0, t, high)
        new = t - value / bend
        new = np.where((new < low) | (new > high) | (step % 3 == 2), 0.5 * (low + high), new)
        done = (np.abs(new - t) <= near) | (high - low <= near)
        t = new
        if done.all():
            break
    return t


def _reach(fall: Callable[[FloatArray], FloatArray], most: FloatArray) -> FloatArray:
    """Return the distances, at most ``most``, at which functions have fallen by 40, or up to a tenth more."""
    far = np.maximum(most, _TINY)
    near, falls = 2.0**-60 * far, fall(far) < -_FALL
    for _ in range(9):
        middle = np.sqrt(near) * np.sqrt(far)
        below = fall(middle) < -_FALL
        near, far = np.where(below, near, middle), np.where(below, middle, far)
    return np.where(falls, far, most)
