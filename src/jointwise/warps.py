"""Warp: a smooth increasing map of the values of a column, with its inverse and its slope in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointwise._checks import read_only, reading
from jointwise._typing import FloatArray
from jointwise.engines import compiled_splines
from jointwise.engines.compiled_parts import locked
from jointwise.exceptions import InputError

# Most knots of a map, in a file too.
MOST_KNOTS = 4096


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
            object.__setattr__(self, name, locked(read_only(getattr(self, name), np.float64)))
        shapes = {array.shape for array in (self.x, self.w, self.slopes)}
        if shapes != {(len(self.x),)} or not 2 <= len(self.x) <= MOST_KNOTS:
            raise InputError(f"A warp needs 2 to {MOST_KNOTS} knots, as three arrays of equal length.")
        if not compiled_splines.are_knots(self.x, self.w, self.slopes):
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
        points = np.asarray(x, dtype=np.float64)
        out = np.empty(points.size)
        compiled_splines.values(self.x, self.w, self.slopes, locked(points.ravel()), out)
        return out.reshape(points.shape)

    def log_slope(self, x: ArrayLike) -> FloatArray:
        """Return log w'(x); shape as ``x``."""
        points = np.asarray(x, dtype=np.float64)
        parts = np.empty((3, points.size))
        compiled_splines.slope_parts(self.x, self.w, self.slopes, locked(points.ravel()), parts)
        s, a, b = np.log(parts)
        return np.asarray(2 * s + a - 2 * b).reshape(points.shape)

    def inverse(self, w: ArrayLike) -> FloatArray:
        """Return the x of w; shape as ``w``."""
        points = np.asarray(w, dtype=np.float64)
        out = np.empty(points.size)
        compiled_splines.inverses(self.x, self.w, self.slopes, locked(points.ravel()), out)
        return out.reshape(points.shape)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays, which a file can hold."""
        return {"x": self.x, "w": self.w, "slopes": self.slopes}

    @classmethod
    @reading("a warp as written by `to_dict`")
    def from_dict(cls, data: Mapping[str, Any]) -> Warp:
        """Read what `to_dict` returned."""
        return cls(data["x"], data["w"], data["slopes"])
