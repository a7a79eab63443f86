"""The sinc series against plain loops, its integral against quadrature, edges against the published rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import kstest, norm

from jointwise.exceptions import InputError
from jointwise.relatives._conditionals import SincConditionals, StateConditionals, bin_codes, checked_edges, round_edges


def series_by_loops(x, edges, masses, n_terms):
    """The formula term by term, with the limit at zero."""
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    total = 0.0
    for k in range(n_terms):
        c = min(sum(masses[:k]), 1.0) if k < len(edges) - 1 else 1.0
        z = np.pi * (x - edges[0] - k * width) / width
        total += c * (np.cos(z) / z - np.sin(z) / z**2 if abs(z) > 1e-4 else -z / 3)
    return np.pi / width * total


def bump(n_bins=15, low=-5.0, high=5.0, floor=1e-5, normalize=False, n_terms=400):
    edges = np.linspace(low, high, n_bins + 1)
    masses = np.column_stack([np.diff(norm(m, s).cdf(edges)) for m, s in ((0, 1), (1.5, 0.8), (-4, 1))])
    return SincConditionals(edges, masses / masses.sum(axis=0), n_terms, floor, normalize)


@pytest.mark.parametrize("n_terms", [16, 40, 400])
def test_the_series_agrees_with_loops(n_terms):
    conditionals = bump(n_terms=n_terms)
    x = np.concatenate([np.linspace(-7, 9, 41), conditionals.edges, conditionals.edges + 1e-5, [40.0, -90.0]])
    expected = [[series_by_loops(v, conditionals.edges, m, n_terms) for m in conditionals.masses.T] for v in x]
    np.testing.assert_allclose(conditionals.series(x), expected, rtol=1e-9, atol=1e-9)


def test_a_smooth_density_is_recovered():
    x = np.linspace(-3, 3, 61)
    np.testing.assert_allclose(
        bump(n_bins=25).values(x)[:, 0], norm.pdf(x), atol=4e-3
    )  # the ripple of the truncated series


def test_the_truncated_series_has_the_published_ripple():
    """Beyond the density its amplitude is 1 / (2 * 384 * T)."""
    conditionals = bump()
    flat = conditionals.series(np.linspace(6, 12, 2000))[:, 0]
    assert np.abs(flat).max() == pytest.approx(1 / (2 * 384 * conditionals.width), rel=0.1)


def test_the_floor_holds_everywhere():
    values = bump().values(np.linspace(-50, 50, 999))
    assert values.min() == 1e-5


def test_far_values_are_finite():
    for normalize in (False, True):
        logs = bump(normalize=normalize).log(np.array([1e300, -1e300, 1e18, np.nan]))
        assert np.isfinite(logs).all()
        assert (logs[3] == 0.0).all()


def test_the_normalised_density_integrates_to_one():
    conditionals = bump(normalize=True, floor=1e-3)
    points = [*conditionals.edges]
    for r in range(3):
        inside, _ = quad(lambda x, r=r: conditionals.values(np.array([x]))[0, r], -5, 5, points=points, limit=500)
        left, _ = quad(lambda x, r=r: conditionals.values(np.array([x]))[0, r], -np.inf, -5 - 1e-9)
        right, _ = quad(lambda x, r=r: conditionals.values(np.array([x]))[0, r], 5 + 1e-9, np.inf)
        assert inside + left + right == pytest.approx(1.0, abs=1e-5)
        assert left == pytest.approx(right, rel=1e-6)


def test_draws_follow_the_normalised_density():
    conditionals = bump(normalize=True, floor=0.01)  # this floor gives the tails some weight
    x = conditionals.sample(np.full(4000, 1), np.random.default_rng(0))
    grid = np.concatenate([np.linspace(-60, -5, 4000), np.linspace(-5, 5, 4000), np.linspace(5, 60, 4000)])
    density = conditionals.values(grid)[:, 1]
    steps = np.diff(grid) * (density[1:] + density[:-1]) / 2
    cdf = np.concatenate([[0.0], np.cumsum(steps)])
    cdf += (1 - cdf[-1]) / 2  # both tails beyond the grid
    assert kstest(x, lambda v: np.interp(v, grid, cdf)).pvalue > 1e-3
    assert (np.abs(x) > 5).any()


def test_states_are_raised_to_the_floor():
    masses = np.array([[1.0, 0.3], [0.0, 0.7]])
    plain = StateConditionals(np.array([2.0, 5.0]), masses, 1e-2, normalize=False)
    np.testing.assert_allclose(plain.values(np.array([2.0, 5.0, 3.0])), [[1.0, 0.3], [0.01, 0.7], [0.01, 0.01]])
    whole = StateConditionals(np.array([2.0, 5.0]), masses, 1e-2, normalize=True)
    np.testing.assert_allclose(whole.values(np.array([2.0, 5.0])).sum(axis=0), 1.0)
    np.testing.assert_array_equal(whole.values(np.array([3.0])), 0.0)
    drawn = whole.sample(np.array([0] * 50 + [1] * 50), np.random.default_rng(0))
    assert set(drawn) == {2.0, 5.0}


# ---- edges -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "n_bins", "left", "width"),
    [
        # raw width 0.62, provisional 0.6: left is -0.6; then 8.9 / 15 = 0.593 rounds up in hundredths (0.635 - 0.593)
        (-0.5, 8.8, 15, -0.6, 0.63),
        # raw 1.333, provisional 1: left 0; 20 / 15 = 1.333, steps of 0.01 (1.429 - 1.333 = 0.095): 1.34
        (0.0, 20.0, 15, 0.0, 1.34),
        # raw 66.6, provisional 60: left 960; 1040 / 15 = 69.33, steps of 1 (74.29 - 69.33 = 4.95): 70
        (1000.0, 2000.0, 15, 960.0, 70.0),
    ],
)
def test_edges_by_hand(low, high, n_bins, left, width):
    edges = round_edges(low, high, n_bins)
    assert len(edges) == n_bins + 1
    assert edges[0] == pytest.approx(left)
    np.testing.assert_allclose(np.diff(edges), width)


@settings(deadline=None, max_examples=60)
@given(st.floats(-1e4, 1e4), st.floats(1e-2, 1e6), st.integers(2, 60))
def test_edges_hold_every_value(low, spread, n_bins):
    high = low + spread
    edges = round_edges(low, high, n_bins)
    assert edges[0] <= low
    assert edges[-1] >= high
    widths = np.diff(edges)
    np.testing.assert_allclose(widths, widths[0], rtol=1e-6)
    assert edges[-1] - edges[0] <= 4 * spread + 1e-9


def test_bins_are_closed_on_the_left_and_the_last_on_both_sides():
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    values = np.array([0.0, 0.5, 1.0, 1.999, 2.0, 3.0, np.nan])
    assert bin_codes(values, edges).tolist() == [0, 0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.array([2.0, 2.0]), "Column 'x' holds fewer than two different values"),
        (np.array([]), "Column 'x' holds fewer than two different values"),
        (np.array([1e16, 1e16 + 2]), "Column 'x' reaches from 1e[+]16 to 1e[+]16, too narrow or too wide"),
    ],
)
def test_columns_without_bins(values, sentence):
    with pytest.raises(InputError, match=sentence):
        checked_edges("x", values, 15)
