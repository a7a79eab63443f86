"""Rational quadratic splines at many points, compiled by numba; see :class:`jointwise.warps.Warp` for the formulas.

One loop takes the points one by one, without temporary arrays, and releases the interpreter's lock: a fit asks for the
splines of hundreds of columns thousands of times. The knots of a spline are three arrays of shape (K,): x, w and the
slopes. Arrays that come in are contiguous and read-only, see `locked`; those to be filled are not.
"""

from __future__ import annotations

import numba
import numpy as np

from jointwise._typing import AnyArray

# Slopes beyond this, in those of a line between knots, are scaled before they are squared: an outlier may have them.
STEEP = 1e100


@numba.njit(cache=True, nogil=True)
def are_knots(x: AnyArray, w: AnyArray, slopes: AnyArray) -> bool:
    """Return whether knots are finite and rise in both directions; finite slopes are needed too."""
    for knots in (x, w):
        if not (np.isfinite(knots[0]) and np.isfinite(knots[-1])):
            return False
        for k in range(len(knots) - 1):
            if not knots[k] < knots[k + 1]:
                return False
    return bool(np.isfinite(slopes).all())


@numba.njit(cache=True, nogil=True)
def _piece(knots: AnyArray, value: float, last: int) -> int:
    """Return the piece that a value lies on, or the one at that end; `last` is a guess."""
    if knots[last] <= value < knots[last + 1]:
        return last
    low, high = 0, len(knots) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@numba.njit(cache=True, nogil=True, error_model="numpy")
def values(x: AnyArray, w: AnyArray, slopes: AnyArray, points: AnyArray, out: AnyArray) -> None:
    """Fill the values (n,) of a spline at points (n,); NaN for NaN."""
    k = 0
    for i in range(len(points)):
        k = _piece(x, points[i], k)
        width, rise = x[k + 1] - x[k], w[k + 1] - w[k]
        s, d0, d1 = rise / width, slopes[k], slopes[k + 1]
        t = (points[i] - x[k]) / width
        inner = _clipped(t)
        both = inner * (1 - inner)
        out[i] = w[k] + rise * (s * inner**2 + d0 * both) / (s + (d0 + d1 - 2 * s) * both)
        # beyond the ends by the slope there
        if t < 0:
            out[i] += t * width * d0
        elif t > 1:
            out[i] += (t - 1) * width * d1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def slope_parts(x: AnyArray, w: AnyArray, slopes: AnyArray, points: AnyArray, out: AnyArray) -> None:
    """Fill s, a and b, of shape (3, n), for the slopes s^2 a / b^2 of a spline at points (n,); a is NaN for NaN."""
    k = 0
    for i in range(len(points)):
        k = _piece(x, points[i], k)
        width, rise = x[k + 1] - x[k], w[k + 1] - w[k]
        s, d0, d1 = rise / width, slopes[k], slopes[k + 1]
        t = _clipped((points[i] - x[k]) / width)
        both = t * (1 - t)
        out[0, i] = s
        out[1, i] = d1 * t**2 + 2 * s * both + d0 * (1 - t) ** 2
        out[2, i] = s + (d0 + d1 - 2 * s) * both


@numba.njit(cache=True, nogil=True, error_model="numpy")
def inverses(x: AnyArray, w: AnyArray, slopes: AnyArray, points: AnyArray, out: AnyArray) -> None:
    """Fill the x (n,) at which a spline has values (n,), its points; NaN for NaN."""
    k = 0
    for i in range(len(points)):
        k = _piece(w, points[i], k)
        width, rise = x[k + 1] - x[k], w[k + 1] - w[k]
        s, d0, d1 = rise / width, slopes[k], slopes[k + 1]
        share = (points[i] - w[k]) / rise
        y = _clipped(share)  # of the rise
        first, last = d0 / s, d1 / s  # in units of the mean slope, so that squares stay in range
        bend, steep = y * (first + last - 2), max(first, last)
        scale = steep if steep > STEEP else 1.0  # the root does not depend on it
        a, b, c = (1 - first + bend) / scale, (first - bend) / scale, -y / scale
        root = np.sqrt(max(b * b - 4 * a * c, 0.0))
        t = (root - b) / (2 * a) if b < 0 else 2 * c / (-b - root)  # no difference of near numbers
        out[i] = x[k] + width * (0.0 if y == 0 else _clipped(t))
        if share < 0:
            out[i] += share * rise / d0
        elif share > 1:
            out[i] += (share - 1) * rise / d1


@numba.njit(cache=True, nogil=True)
def _clipped(t: float) -> float:
    """Return a share between 0 and 1, NaN for NaN."""
    return 0.0 if t < 0 else 1.0 if t > 1 else t
