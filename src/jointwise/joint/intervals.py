r"""The standard Gaussian on an interval: probability, mean and variance, quantiles; exact in both tails.

An interval is given by its ends ``low`` and ``high`` and by its ``width``. The width is an argument of its own because
``high - low`` loses the digits of an interval that is much narrower than its distance from zero; a caller knows it
from the original window. Ends may be infinite, the width must be positive.

Every function first reflects the interval so that its centre is at or above zero, and then uses one of three forms:

- *narrow* (width * max(1, low) <= 0.1): Gauss-Legendre quadrature around the centre, exact to rounding;
- *beyond zero* (low >= 0): the scaled function erfcx, so that nothing underflows;
- *around zero* (low < 0 < high): one minus the two tails.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, ndtr, ndtri

from jointwise._typing import AnyArray, BoolArray, FloatArray, IntArray

# The logarithm of the density changes by about this much over a narrow interval, so four nodes integrate it to 1e-16.
# The other forms lose a digit to cancellation there.
_NARROW = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_ROOT_HALF = np.sqrt(0.5)
_LOG_ROOT_TAU = 0.5 * np.log(2 * np.pi)
# From here on quantiles are found from a tail's own expansion instead of from probabilities.
_TAIL = 4.0
_BELOW_ONE = np.nextafter(1.0, 0.0)


def log_interval(low: FloatArray, high: FloatArray, width: FloatArray) -> FloatArray:
    r"""Return :math:`\log(\Phi(b) - \Phi(a))` for standard Gaussian intervals (a, b], to full relative precision.

    Parameters
    ----------
    low, high : array
        Ends a < b of the intervals, of any equal shape.
    width : array
        b - a, to full precision.

    Returns
    -------
    array

    Examples
    --------
    >>> log_interval(np.array([40.0]), np.array([np.inf]), np.array([np.inf])).round(6)
    array([-804.608442])
    """
    a, b, w, shape, _ = _reflected(low, high, width)
    out = np.empty(a.shape)
    narrow, beyond, around = _forms(a, w)
    if narrow.size:
        out[narrow] = _narrow(a[narrow], w[narrow])[0]
    if beyond.size:
        out[beyond] = _beyond(a[beyond], b[beyond], w[beyond])[0]
    if around.size:
        out[around] = np.log1p(-(ndtr(a[around]) + ndtr(-b[around])))
    return out.reshape(shape)


def interval_moments(low: FloatArray, high: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return the log-probability of each interval, and the mean and variance of the Gaussian inside it.

    The mean is also the derivative of the log-probability when the interval moves down:
    :math:`\partial_s \log(\Phi(b - s) - \Phi(a - s)) = E[Z \mid a - s < Z \le b - s]`, and the variance less one is its
    second derivative.

    Parameters
    ----------
    low, high, width : array
        As in :func:`log_interval`.

    Returns
    -------
    log_probability, mean, variance : array
        The mean has full relative precision. The variance, at most one, loses digits far in a tail.

    Examples
    --------
    >>> [float(x[0].round(4)) for x in interval_moments(np.array([0.0]), np.array([np.inf]), np.array([np.inf]))]
    [-0.6931, 0.7979, 0.3634]
    """
    a, b, w, shape, sign = _reflected(low, high, width)
    log_p, mean, variance = (np.empty(a.shape) for _ in range(3))
    narrow, beyond, around = _forms(a, w)
    if narrow.size:
        log_p[narrow], terms, t = _narrow(a[narrow], w[narrow])
        terms /= terms.sum(axis=0)
        offset = (terms * t).sum(axis=0)
        mean[narrow] = a[narrow] + 0.5 * w[narrow] + offset
        variance[narrow] = (terms * (t - offset) ** 2).sum(axis=0)
    if beyond.size:
        log_p[beyond], scaled, decay = _beyond(a[beyond], b[beyond], w[beyond])
        hazard = np.sqrt(2 / np.pi) / scaled  # density at a over the probability
        mean[beyond] = hazard * -np.expm1(-decay)
        edge = np.where(decay < 700, b[beyond], 0.0) * np.exp(-decay)
        variance[beyond] = 1 + hazard * (a[beyond] - edge) - mean[beyond] ** 2
    if around.size:
        p = 1 - (ndtr(a[around]) + ndtr(-b[around]))
        at = [np.exp(-0.5 * x**2 - _LOG_ROOT_TAU) / p for x in (a[around], b[around])]
        log_p[around], mean[around] = np.log(p), at[0] - at[1]
        # beyond 50 the density is zero, and an infinite end must not meet it
        moved = [np.clip(x, -50, 50) * f for x, f in zip((a[around], b[around]), at, strict=True)]
        variance[around] = 1 + moved[0] - moved[1] - mean[around] ** 2
    np.clip(variance, 0.0, 1.0, out=variance)
    return log_p.reshape(shape), (sign * mean).reshape(shape), variance.reshape(shape)


def interval_quantile(
    low: FloatArray, high: FloatArray, width: FloatArray, level: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    r"""Return the z with :math:`\Phi(z) = (1 - u)\,\Phi(a) + u\,\Phi(b)`, and its distance from the nearer end.

    Parameters
    ----------
    low, high, width : array
        As in :func:`log_interval`; not both ends infinite.
    level : array
        u, between 0 and 1.

    Returns
    -------
    z : array
    distance : array
        z - low where ``end`` is -1, high - z where it is 1, to full relative precision.
    end : array of int
        0 where the interval is wide and not in a tail; z is then precise by itself.

    Examples
    --------
    >>> z, distance, end = interval_quantile(*(np.array([x]) for x in (1e9, np.inf, np.inf, 0.5)))
    >>> z, distance, end
    (array([1.e+09]), array([6.93147181e-10]), array([-1]))
    """
    low, high, width, level = np.broadcast_arrays(low, high, width, level)
    a, b, w, shape, sign = _reflected(low, high, width)
    u = np.where(sign > 0, level.ravel(), 1 - level.ravel())
    z, distance, end = np.empty(a.shape), np.zeros(a.shape), np.zeros(a.shape, dtype=np.int64)
    narrow = w * np.maximum(a, 1.0) <= _NARROW
    tail = ~narrow & (a > _TAIL)
    for form, find in ((narrow, _narrow_quantile), (tail, _tail_quantile)):
        at = np.flatnonzero(form)
        if at.size:
            distance[at] = np.clip(find(a[at], b[at], w[at], u[at]), 0.0, w[at])
            z[at], end[at] = a[at] + distance[at], -1
    at = np.flatnonzero(~narrow & ~tail)
    if at.size:
        below, above = ((1 - u[at]) * ndtr(s * a[at]) + u[at] * ndtr(s * b[at]) for s in (1, -1))
        z[at] = np.clip(np.where(below < above, 1, -1) * ndtri(np.minimum(below, above)), a[at], b[at])
    return (sign * z).reshape(shape), distance.reshape(shape), (sign * end).astype(np.int64).reshape(shape)


def interval_step(
    low: FloatArray, high: FloatArray, width: FloatArray, level: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log-probabilities and quantiles of intervals as the functions above do, fast.

    Quantiles lose digits at levels below 1e-10, where means over levels do not see it.

    Parameters
    ----------
    low, high, width, level : array
        As in :func:`interval_quantile`, all of one shape.

    Examples
    --------
    >>> [float(x[0].round(4)) for x in interval_step(*(np.array([x]) for x in (0.0, np.inf, np.inf, 0.5)))]
    [-0.6931, 0.6745]
    """
    turned = high < -low
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    beyond_a, beyond_b = ndtr(-a), ndtr(-b)
    mass = beyond_a - beyond_b
    tail = beyond_a - np.where(turned, 1 - level, level) * mass
    z = np.clip(-ndtri(np.minimum(tail, _BELOW_ONE)), a, b)
    z = np.where(turned, -z, z)
    special = (a > _TAIL) | (width * np.maximum(a, 1.0) <= _NARROW)
    if not special.any():
        return np.log(mass), z
    log_p = np.log(np.where(special, 1.0, mass))
    a, b, w = low[special], high[special], width[special]
    log_p[special], z[special] = log_interval(a, b, w), interval_quantile(a, b, w, level[special])[0]
    return log_p, z


def _reflected(
    low: FloatArray, high: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[int, ...], FloatArray]:
    """Return ends with -a <= b and widths as flat arrays, their shape, and the sign: -1 where ends were exchanged."""
    a, b = low.ravel(), high.ravel()
    turned = b < -a
    return np.where(turned, -b, a), np.where(turned, -a, b), width.ravel(), low.shape, np.where(turned, -1.0, 1.0)


def _forms(a: FloatArray, w: FloatArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the places of the intervals that are narrow, beyond zero and around zero."""
    narrow: BoolArray = w * np.maximum(a, 1.0) <= _NARROW
    return np.flatnonzero(narrow), np.flatnonzero(~narrow & (a >= 0)), np.flatnonzero(~narrow & (a < 0))


def _narrow(a: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log-probabilities, and the terms and offsets from the centre of the sum over nodes, (4, n)."""
    middle = a + 0.5 * w
    t = 0.5 * w * _NODES[:, None]
    terms = 0.5 * _WEIGHTS[:, None] * np.exp(-t * (middle + 0.5 * t))
    return np.log(w) + np.log(terms.sum(axis=0)) - 0.5 * middle**2 - _LOG_ROOT_TAU, terms, t


def _beyond(a: FloatArray, b: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log-probabilities, 2 P exp(a^2 / 2), and the fall of the log-density between the ends."""
    decay = 0.5 * w * (a + b)
    scaled = erfcx(_ROOT_HALF * a) - np.exp(-decay) * erfcx(_ROOT_HALF * b)
    return np.log(0.5 * scaled) - 0.5 * a**2, scaled, decay


def _narrow_quantile(a: FloatArray, b: FloatArray, w: FloatArray, u: FloatArray) -> FloatArray:  # noqa: ARG001
    """Return distances from a, by Newton from the quantile of an exponential: two steps reach rounding."""

    def area(t: FloatArray) -> FloatArray:  # of exp(-s (a + s / 2)) for s in (0, t)
        s = 0.5 * t * (1 + _NODES[:, None])
        area: FloatArray = 0.5 * t * (_WEIGHTS[:, None] * np.exp(-s * (a + 0.5 * s))).sum(axis=0)
        return area

    rate = np.maximum(a + 0.5 * w, 1e-8 / w)  # below 1e-8 the exponential is a straight line
    t, whole = -np.log1p(u * np.expm1(-rate * w)) / rate, area(w)
    for _ in range(2):
        t = np.clip(t - (area(t) - u * whole) * np.exp(t * (a + 0.5 * t)), 0.0, w)
    return t


def _tail_quantile(a: FloatArray, b: FloatArray, w: FloatArray, u: FloatArray) -> FloatArray:
    """Return distances from a, by Newton on the log of the upper tail from the quantile of a Rayleigh law."""
    decay = 0.5 * w * (a + b)
    start = -2 * np.log1p(u * np.expm1(-decay))
    t: FloatArray = start / (a + np.hypot(a, np.sqrt(start)))
    # all tails are relative to exp(-a^2 / 2) / 2
    target = np.log((1 - u) * erfcx(_ROOT_HALF * a) + u * np.exp(-decay) * erfcx(_ROOT_HALF * b))
    for _ in range(3):
        tail = erfcx(_ROOT_HALF * (a + t))
        t += (np.log(tail) - t * (a + 0.5 * t) - target) * tail * np.sqrt(np.pi / 2)
    return t
