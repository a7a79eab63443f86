"""Warp: a smooth increasing map of the values of a column, with its inverse and its slope in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointwise._checks import read_only, reading
from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import InputError

# Most knots of a map, in a file too.
MOST_KNOTS = 4096

# Slopes beyond this, in those of a line between knots, are scaled before they are squared: an outlier may have them.
STEEP = 1e100


@dataclass(frozen=True, eq=False)
class Warp:
    r"""An increasing map w of the real line onto itself: a rational quadratic spline, straight beyond its ends.

    Between two knots, with :math:`t` the share of the way from one to the next, :math:`\Delta` the rise and :math:`s`
    the mean slope of the piece, :math:`d_0` and :math:`d_1` the slopes at its ends,

    .. math:: w = w_0 + \Delta \frac{s t^2 + d_0 t (1 - t)}{s + (d_0 + d_1 - 2 s) t (1 - t)}

    (Gregory and Delbourgo, 1982). The inverse is the root of a quadratic equation. A map through two knots whose slopes
    are those of the line between them is that line.

    Parameters
    ----------
    x, w : arrays of shape (K,)
        The knots, K at least 2, both increasing.
    slopes : array of shape (K,)
        Slopes of the map at its knots, positive.

    Examples
    --------
    >>> bend = Warp([0.0, 1.0], [0.0, 1.0], [0.5, 2.0])
    >>> bend(np.array([-2.0, 0.5, 3.0])).round(4).tolist()
    [-1.0, 0.3333, 5.0]
    >>> bend.inverse(bend(np.array([0.3]))).round(12).tolist()
    [0.3]
    """

    x: FloatArray
    w: FloatArray
    slopes: FloatArray

    def __post_init__(self) -> None:
        for name in ("x", "w", "slopes"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))
        shapes = {array.shape for array in (self.x, self.w, self.slopes)}
        if shapes != {(len(self.x),)} or not 2 <= len(self.x) <= MOST_KNOTS:
            raise InputError(f"A warp needs 2 to {MOST_KNOTS} knots, as three arrays of equal length.")
        finite = all(np.isfinite(array).all() for array in (self.x, self.w, self.slopes))
        if not finite or not (np.diff(self.x) > 0).all() or not (np.diff(self.w) > 0).all():
            raise InputError("The knots of a warp must be finite and increase.")
        if not (self.slopes > 0).all():
            raise InputError("The slopes of a warp must be positive.")

    @classmethod
    def line(cls, centre: float, scale: float) -> Warp:
        """Return the map (x - centre) / scale.

        >>> Warp.line(10.0, 2.0)(np.array([14.0])).tolist()
        [2.0]
        """
        return cls(np.array([centre - scale, centre + scale]), np.array([-1.0, 1.0]), np.array([1 / scale, 1 / scale]))

    @property
    def is_straight(self) -> bool:
        """Whether the map is a straight line.

        >>> Warp.line(10.0, 2.0).is_straight, Warp([0.0, 1.0], [0.0, 1.0], [0.5, 2.0]).is_straight
        (True, False)
        """
        rise = np.diff(self.w) / np.diff(self.x)
        return bool(np.ptp(np.concatenate([self.slopes, rise])) <= 1e-12 * self.slopes[0])

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Return w(x), NaN for NaN; shape as ``x``."""
        x = np.asarray(x, dtype=np.float64)
        k, t, width, rise = self._place(self.x, x)
        s, d0, d1 = rise / width, self.slopes[k], self.slopes[k + 1]
        inner = np.clip(t, 0.0, 1.0)
        both = inner * (1 - inner)
        middle = self.w[k] + rise * (s * inner**2 + d0 * both) / (s + (d0 + d1 - 2 * s) * both)
        # beyond the ends by the slope there
        return np.asarray(middle + np.where(t < 0, t * width * d0, 0.0) + np.where(t > 1, (t - 1) * width * d1, 0.0))

    def log_slope(self, x: ArrayLike) -> FloatArray:
        """Return log w'(x); shape as ``x``."""
        x = np.asarray(x, dtype=np.float64)
        k, t, width, rise = self._place(self.x, x)
        s, d0, d1 = rise / width, self.slopes[k], self.slopes[k + 1]
        t = np.where(np.isnan(t), np.nan, np.clip(t, 0.0, 1.0))
        both = t * (1 - t)
        numerator = d1 * t**2 + 2 * s * both + d0 * (1 - t) ** 2
        return np.asarray(2 * np.log(s) + np.log(numerator) - 2 * np.log(s + (d0 + d1 - 2 * s) * both))

    def inverse(self, w: ArrayLike) -> FloatArray:
        """Return the x of w; shape as ``w``."""
        w = np.asarray(w, dtype=np.float64)
        k, share, rise, width = self._place(self.w, w)
        s, d0, d1 = rise / width, self.slopes[k], self.slopes[k + 1]
        y = np.clip(share, 0.0, 1.0)  # of the rise
        first, last = d0 / s, d1 / s  # in units of the mean slope, so that squares stay in range
        bend = y * (first + last - 2)
        steep = np.maximum(first, last)
        scale = np.where(steep > STEEP, steep, 1.0)  # the root does not depend on it
        a, b, c = (1 - first + bend) / scale, (first - bend) / scale, -y / scale
        root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
        t = np.where(b < 0, root - b, 2 * c) / np.where(b < 0, 2 * a, -b - root)  # no difference of near numbers
        x = self.x[k] + width * np.clip(np.where(y == 0, 0.0, t), 0.0, 1.0)
        below, above = np.minimum(share, 0.0), np.maximum(share - 1, 0.0)
        return np.asarray(np.where(np.isnan(share), np.nan, x + below * rise / d0 + above * rise / d1))

    def _place(self, knots: FloatArray, values: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Return the piece of each value, its share of the way, and the extent of the piece in both directions."""
        other = self.w if knots is self.x else self.x
        k = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
        extent = knots[k + 1] - knots[k]
        return k, (values - knots[k]) / extent, extent, other[k + 1] - other[k]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays, which a file can hold."""
        return {"x": self.x, "w": self.w, "slopes": self.slopes}

    @classmethod
    @reading("a warp as written by `to_dict`")
    def from_dict(cls, data: Mapping[str, Any]) -> Warp:
        """Read what `to_dict` returned."""
        return cls(data["x"], data["w"], data["slopes"])
