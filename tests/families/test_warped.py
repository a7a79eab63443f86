"""Warped families against direct computations."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm, truncnorm

from jointwise.exceptions import InputError
from jointwise.families import Gaussian, Laplace, Lattice, PointMass, Truncated, Warped, family_from_dict
from jointwise.warps import Warp


@st.composite
def warps(draw):
    """Increasing maps with 2 to 6 knots."""
    n = draw(st.integers(2, 6))
    parts = [draw(st.lists(st.floats(0.2, 2.0), min_size=n, max_size=n)) for _ in range(3)]
    return Warp(np.cumsum(parts[0]) - 3, np.cumsum(parts[1]) - 3, parts[2])


@settings(deadline=None, max_examples=6)
@given(warps(), st.floats(-3, 3), st.floats(0.2, 3))
def test_moments_are_integrals(warp, loc, scale):
    atoms = Warped.through(warp, Gaussian(loc, scale))
    knots = [z for z in warp.w if abs(z - loc) < 8 * scale]

    def integral(function):
        ends = np.sort([loc - 9 * scale, *knots, loc + 9 * scale])
        return sum(quad(function, a, b, epsabs=1e-12)[0] for a, b in pairwise(ends))

    mean = integral(lambda z: float(warp.inverse(z)) * norm.pdf(z, loc, scale))
    var = integral(lambda z: (float(warp.inverse(z)) - mean) ** 2 * norm.pdf(z, loc, scale))
    assert_allclose(atoms.mean(), mean, atol=1e-7)
    assert_allclose(atoms.var(), var, rtol=1e-6)


@settings(deadline=None, max_examples=20)
@given(warps(), st.floats(-2, 2), st.floats(0.1, 3))
def test_truncation_is_a_window_of_the_base(warp, low, width):
    atoms = Warped.through(warp, Gaussian(0.0, 1.5)).truncate(low, low + width)
    a, b = (float(warp(end)) / 1.5 for end in (low, low + width))
    x = np.linspace(low, low + width, 7)[1:-1]
    assert_allclose(atoms.cdf(x)[:, 0], truncnorm(a, b, scale=1.5).cdf(warp(x)), rtol=1e-7)
    assert np.isneginf(atoms.logpdf([low - 0.1, low + width + 0.1])).all()
    assert_allclose(atoms.support(), [[low], [low + width]], atol=1e-9)


def test_a_line_only_moves_and_scales():
    atoms = Warped.through(Warp.line(10.0, 2.0), Gaussian([0.0, 1.0], [1.0, 3.0]))
    same = Gaussian([10.0, 12.0], [2.0, 6.0])
    x = np.linspace(-10, 30, 9)
    assert_allclose(atoms.logpdf(x), same.logpdf(x))
    assert_allclose([atoms.mean(), atoms.var(), atoms.mode()], [same.mean(), same.var(), same.mode()], atol=1e-4)


@pytest.mark.parametrize(
    "base",
    [
        Laplace(0.0, 1.0),
        PointMass(0.0),
        Lattice(Gaussian(0.0, 1.0)),
        Truncated(Laplace(0.0, 1.0), 0, 1),
        None,
        "gaussian",
    ],
    ids=str,
)
def test_other_bases_are_refused(base):
    with pytest.raises(InputError, match="base of warped must be gaussian"):
        Warped.through(Warp.line(0.0, 1.0), base)


def test_hostile_dicts_are_refused():
    good = Warped.through(Warp.line(0.0, 1.0), Gaussian(0.0, 1.0)).to_dict()
    assert family_from_dict(good).mean() == [0.0]
    knots = {"x": [1.0, 0.0]}, {"slopes": [0.0, 1.0]}, {"w": [0.0]}, {"x": [0.0, np.nan]}, {"x": np.zeros((2, 2))}
    for change in knots:
        with pytest.raises(InputError):
            family_from_dict(good | change)
    deep = good
    for _ in range(10):
        deep = good | {"base": deep}
    with pytest.raises(InputError, match="nested"):
        family_from_dict(deep)
