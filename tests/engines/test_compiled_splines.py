"""Compiled splines against the same formulas for all points at once in numpy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from jointwise.engines import compiled_splines
from jointwise.engines.compiled_parts import locked
from jointwise.warps import Warp


def piece(knots, others, points):
    k = np.clip(np.searchsorted(knots, points, side="right") - 1, 0, len(knots) - 2)
    extent = knots[k + 1] - knots[k]
    return k, (points - knots[k]) / extent, extent, others[k + 1] - others[k]


def plain_values(warp, points):
    k, t, width, rise = piece(warp.x, warp.w, points)
    s, d0, d1 = rise / width, warp.slopes[k], warp.slopes[k + 1]
    inner = np.clip(t, 0.0, 1.0)
    both = inner * (1 - inner)
    middle = warp.w[k] + rise * (s * inner**2 + d0 * both) / (s + (d0 + d1 - 2 * s) * both)
    return middle + np.where(t < 0, t * width * d0, 0.0) + np.where(t > 1, (t - 1) * width * d1, 0.0)


def plain_log_slopes(warp, points):
    k, t, width, rise = piece(warp.x, warp.w, points)
    s, d0, d1 = rise / width, warp.slopes[k], warp.slopes[k + 1]
    t = np.clip(t, 0.0, 1.0)
    both = t * (1 - t)
    a = d1 * t**2 + 2 * s * both + d0 * (1 - t) ** 2
    return 2 * np.log(s) + np.log(a) - 2 * np.log(s + (d0 + d1 - 2 * s) * both)


def plain_inverses(warp, points):
    k, share, rise, width = piece(warp.w, warp.x, points)
    y, first, last = np.clip(share, 0.0, 1.0), warp.slopes[k] * width / rise, warp.slopes[k + 1] * width / rise
    bend = y * (first + last - 2)
    a, b, c = 1 - first + bend, first - bend, -y
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    t = np.where(b < 0, root - b, 2 * c) / np.where(b < 0, 2 * a, -b - root)
    beyond = np.where(share < 0, share, np.where(share > 1, share - 1, 0.0))
    return warp.x[k] + width * np.clip(t, 0.0, 1.0) + beyond * rise / np.where(share < 0, *warp.slopes[[k, k + 1]])


def random_warp(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 40)
    x, w = (rng.normal() + np.cumsum(rng.exponential(1, n) + 0.01) for _ in range(2))
    return Warp(x, w, rng.exponential(1, n) + 1e-3)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_compiled_splines_are_the_plain_ones(seed, ordered):
    warp, rng = random_warp(seed), np.random.default_rng(seed)

    def points(knots):
        found = np.concatenate([rng.uniform(knots[0] - 3, knots[-1] + 3, 300), knots, [-np.inf, np.inf, np.nan]])
        return np.sort(found) if ordered else rng.permutation(found)

    x, w = points(warp.x), points(warp.w)
    # the same sums and quotients in the same order
    with np.errstate(invalid="ignore"):  # both branches of a choice are taken at infinity
        assert_allclose(warp(x), plain_values(warp, x), rtol=1e-14)
        assert_allclose(warp.log_slope(x), plain_log_slopes(warp, x), rtol=1e-14, atol=1e-14)
        assert_allclose(warp.inverse(w), plain_inverses(warp, w), rtol=1e-12, atol=1e-12)


def test_points_keep_their_shape_and_stay_writable():
    warp = random_warp(0)
    x = np.linspace(-1.0, 5.0, 24).reshape(2, 3, 4)
    assert warp(x.T).shape == warp.inverse(x.T).shape == warp.log_slope(x.T).shape == (4, 3, 2)
    assert np.array_equal(warp(x.T), warp(x).T)
    assert warp(1.0).shape == ()
    assert warp(np.empty(0)).shape == (0,)
    assert x.flags.writeable


@pytest.mark.parametrize(
    ("x", "slopes", "good"),
    [([0.0, 1.0], [1.0, 2.0], True), ([0.0, 0.0], [1.0, 2.0], False), ([1.0, 0.0], [1.0, 2.0], False),
     ([0.0, np.nan], [1.0, 2.0], False), ([-np.inf, 1.0], [1.0, 2.0], False), ([0.0, 1.0], [np.inf, 2.0], False)],
)  # fmt: skip
def test_what_knots_are(x, slopes, good):
    x, other, slopes = (locked(np.array(each)) for each in (x, [0.0, 1.0], slopes))
    assert compiled_splines.are_knots(x, other, slopes) == compiled_splines.are_knots(other, x, slopes) == good
