"""Warps: increasing, with the inverse and slope they claim."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointwise.exceptions import FileFormatError, InputError
from jointwise.warps import Warp


@st.composite
def warps(draw) -> Warp:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    knots = draw(st.integers(2, 12))
    scale = 10.0 ** draw(st.integers(-6, 6))
    return Warp(
        rng.normal() * scale + np.cumsum(rng.exponential(1, knots) + 0.01) * scale,
        np.cumsum(rng.exponential(1, knots) + 0.01),
        rng.exponential(1, knots) / scale + 1e-3 / scale,
    )


@given(warps())
def test_inverse_and_order(warp: Warp) -> None:
    width = warp.x[-1] - warp.x[0]
    x = np.linspace(warp.x[0] - width, warp.x[-1] + width, 301)
    w = warp(x)
    assert (np.diff(w) > 0).all()
    np.testing.assert_allclose(warp.inverse(w), x, rtol=0, atol=1e-8 * width)


@given(warps())
def test_slope_is_the_derivative(warp: Warp) -> None:
    width = warp.x[-1] - warp.x[0]
    x = np.linspace(warp.x[0] - width, warp.x[-1] + width, 101)
    h = 1e-5 * np.diff(warp.x).min()
    away = (np.abs(x[:, None] - warp.x) > 4 * h).all(axis=1)
    numeric = (warp(x + h) - warp(x - h)) / (2 * h)
    np.testing.assert_allclose(np.exp(warp.log_slope(x))[away], numeric[away], rtol=1e-2)


def test_knots_and_gaps() -> None:
    warp = Warp([0.0, 1.0, 4.0], [-1.0, 0.0, 3.0], [1.0, 2.0, 0.5])
    assert warp([0.0, 1.0, 4.0]).tolist() == [-1.0, 0.0, 3.0]
    assert np.exp(warp.log_slope([0.0, 1.0, 4.0])).round(12).tolist() == [1.0, 2.0, 0.5]
    assert warp.inverse([-1.0, 0.0, 3.0]).tolist() == [0.0, 1.0, 4.0]
    assert all(np.isnan(f([np.nan])).all() for f in (warp, warp.inverse, warp.log_slope))


@pytest.mark.parametrize(
    "knots", [([0.0], [0.0], [1.0]), ([0.0, 0.0], [0.0, 1.0], [1.0, 1.0]), ([0.0, 1.0], [0.0, 1.0], [1.0, 0.0]),
              ([0.0, np.inf], [0.0, 1.0], [1.0, 1.0]), ([0.0, 1.0], [0.0, 1.0], [1.0])]
)  # fmt: skip
def test_knots_that_are_none_are_refused(knots) -> None:
    with pytest.raises(InputError):
        Warp(*knots)


def test_file_form() -> None:
    warp = Warp.line(3.0, 2.0)
    assert Warp.from_dict(warp.to_dict()).w.tolist() == warp.w.tolist()
    with pytest.raises(FileFormatError):
        Warp.from_dict({"x": [0.0]})
