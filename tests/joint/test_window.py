"""Probabilities of Gaussian windows and draws inside them, against slow and obvious computations.

``pytest -m slow -s tests/joint/test_window.py`` prints the worst relative errors over 10,000 random cases.
"""

from decimal import Decimal, localcontext
from math import asin, pi

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import chisquare, kstest, multivariate_normal, norm

from jointwise.exceptions import ImpossibleEventError, InputError
from jointwise.joint.intervals import interval_moments, interval_quantile, interval_step, log_interval
from jointwise.joint.tilting import chain
from jointwise.joint.window import TOLERANCE, log_window, sample_window, window_nodes

INF = np.inf
# A correct sampler fails one of the statistical tests below with this probability.
FAILURE = 1e-6


def probability(mean, covariance, low, high):
    """One case, as a number."""
    mean, low, high = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (mean, low, high))
    return float(np.exp(log_window(mean, np.asarray(covariance, dtype=float), low, high)[0][0]))


def decimal_log(low, high, digits=60):
    """log(Phi(high) - Phi(low)) by the series phi(x) (x + x^3/3 + x^5/15 + ...), in exact decimals."""
    with localcontext() as context:
        context.prec = digits

        def area(x):  # from 0 to x; the normalising constant is left out
            x, total, k = Decimal(x), Decimal(0), 1
            term = x
            while abs(term) > Decimal(10) ** (-digits):
                total, k = total + term, k + 2
                term *= x * x / k
            return total * (-x * x / 2).exp()

        return float((area(high) - area(low)).ln()) - 0.5 * np.log(2 * np.pi)


def one_factor(loads, low, high, n=3000):
    """log P(window) of X_i = loads_i F + sqrt(1 - loads_i^2) E_i, by the trapezoidal rule over F."""
    spread = np.sqrt(1 - loads**2)[:, None]
    width = np.where(np.isfinite(low) & np.isfinite(high), high - low, INF)[:, None] / spread

    def log_f(f):
        a, b = (end[:, None] / spread - loads[:, None] / spread * f for end in (low, high))
        return log_interval(a, b, np.broadcast_to(width, a.shape)).sum(axis=0) - f**2 / 2

    left, right = -60.0, 60.0
    for _ in range(4):  # towards where the integrand matters
        f = np.linspace(left, right, 400)
        near = np.flatnonzero(log_f(f) > log_f(f).max() - 45)
        left, right = f[max(near[0] - 1, 0)], f[min(near[-1] + 1, 399)]
    f = np.linspace(left, right, n)
    values = log_f(f)
    return values.max() + np.log(np.exp(values - values.max()).sum() * (f[1] - f[0])) - 0.5 * np.log(2 * np.pi)


def factor_covariance(loads):
    covariance = loads[..., :, None] * loads[..., None, :]
    d = loads.shape[-1]
    covariance[..., range(d), range(d)] = 1.0
    return covariance


def random_windows(rng, n, d, spread=2.0):
    """Windows of widths 0.01 to 10, half of them with one infinite end."""
    low = rng.normal(size=(n, d)) * spread
    high = low + 10 ** rng.uniform(-2, 1, (n, d))
    side = rng.random((n, d))
    return np.where(side < 0.25, -INF, low), np.where(side > 0.75, INF, high)


class TestOneCoordinate:
    @pytest.mark.parametrize("low", [-40.5, -8.0, -1.5, -0.25, 0.0, 0.125, 3.0, 37.0, 40.0])
    @pytest.mark.parametrize("width", [2.0**-33, 2.0**-10, 0.5, 1.0, 3.0])
    def test_full_precision_in_the_bulk_and_the_tails(self, low, width):
        log_p, error = log_window([[0.0]], [[1.0]], [[low]], [[low + width]])
        # 40 deviations out the probability is 1e-350, and the difference of two areas needs as many digits
        assert log_p[0] == pytest.approx(decimal_log(low, low + width, digits=450), rel=1e-13, abs=1e-12)
        assert error[0] == 0.0

    def test_half_lines(self):
        x = np.linspace(-60, 60, 41)[:, None]
        below = log_window(0 * x, np.eye(1), np.full(x.shape, -INF), x)[0]
        above = log_window(0 * x, np.eye(1), x, np.full(x.shape, INF))[0]
        np.testing.assert_allclose(below, log_ndtr(x[:, 0]), rtol=1e-13)
        np.testing.assert_allclose(above, log_ndtr(-x[:, 0]), rtol=1e-13)

    def test_a_narrow_window_far_from_zero_keeps_its_width(self):
        """The ends have 1e-16 relative rounding, the width none: log P = log phi + log width."""
        low, width = 1000.0, 2.0**-40
        log_p = log_window([[1001.0]], [[4.0]], [[low]], [[low + width]])[0][0]
        assert log_p == pytest.approx(norm.logpdf(low, 1001.0, 2.0) + np.log(width), abs=1e-11)

    def test_moments_against_quadrature(self):
        for low, high in [(-1.0, 2.0), (3.0, 3.1), (-0.2, 0.1), (5.0, 9.0), (-7.0, -2.0), (-3.0, 8.0)]:
            p = quad(norm.pdf, low, high, epsrel=1e-13, epsabs=0)[0]
            mean, square = (quad(lambda z, k=k: z**k * norm.pdf(z) / p, low, high, epsabs=1e-13)[0] for k in (1, 2))  # noqa: B023
            variance = square - mean**2
            got = interval_moments(*(np.array([x]) for x in (low, high, high - low)))
            np.testing.assert_allclose([x[0] for x in got], [np.log(p), mean, variance], rtol=1e-10, atol=1e-11)

    @settings(max_examples=200)
    @given(st.floats(-50, 50), st.floats(-9, 2), st.floats(1e-3, 1 - 1e-3))
    def test_quantile_is_the_inverse(self, low, log_width, level):
        high = low + 10**log_width
        width = high - low
        z, distance, end = (float(x[0]) for x in interval_quantile(*(np.array([x]) for x in (low, high, width, level))))
        assert low <= z <= high
        if end == 0:
            parts = (low, z, z - low), (z, high, high - z)
        elif end < 0:
            parts = (low, low + distance, distance), (low + distance, high, width - distance)
        else:
            parts = (low, high - distance, width - distance), (high - distance, high, distance)
        below, above = (np.exp(log_interval(*(np.array([x]) for x in part)) - log_interval(
            *(np.array([x]) for x in (low, high, width))))[0] for part in parts)  # fmt: skip
        assert (below, above) == pytest.approx((level, 1 - level), rel=1e-9)

    def test_the_fast_step_is_the_log_probability_and_the_quantile(self):
        rng = np.random.default_rng(8)
        low = np.concatenate([rng.normal(size=4000) * 3, rng.uniform(3, 40, 500), np.full(500, -INF)])
        width = np.where(rng.random(5000) < 0.3, INF, 10 ** rng.uniform(-9, 1.5, 5000))
        high = np.where(np.isinf(low), rng.normal(size=5000), np.maximum(low, -1e9) + width)
        width[np.isinf(low)] = INF
        turned = rng.random(5000) < 0.5
        low, high = np.where(turned, -high, low), np.where(turned, -low, high)
        level = rng.random(5000)
        log_p, z = interval_step(low, high, width, level)
        np.testing.assert_allclose(log_p, log_interval(low, high, width), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(z, interval_quantile(low, high, width, level)[0], rtol=1e-9, atol=1e-9)
        assert ((low <= z) & (z <= high)).all()
        for extreme in (2.0**-50, 1 - 2.0**-50):
            assert np.isfinite(interval_step(low, high, width, np.full(5000, extreme))[1]).all()


class TestTwoCoordinates:
    @pytest.mark.parametrize("rho", [-0.999999, -0.9, -0.3, 0.0, 0.5, 0.99, 0.999999])
    def test_quadrant(self, rho):
        p = probability([0, 0], [[1, rho], [rho, 1]], [0, 0], [INF, INF])
        assert p == pytest.approx(0.25 + asin(rho) / (2 * pi), rel=1e-11)

    def test_against_scipy_and_double_quadrature(self):
        rng = np.random.default_rng(0)
        for k in range(20):
            mean, rho, scale = rng.normal(size=2), rng.uniform(-0.95, 0.95), rng.uniform(0.5, 2, 2)
            covariance = np.outer(scale, scale) * [[1, rho], [rho, 1]]
            low = rng.normal(size=2)
            high = low + rng.uniform(0.1, 3, 2)
            p, tight = probability(mean, covariance, low, high), {"abseps": 1e-12, "releps": 1e-12}
            assert p == pytest.approx(
                multivariate_normal.cdf(high, mean, covariance, lower_limit=low, **tight), abs=1e-10
            )
            if k < 3:
                pdf = multivariate_normal(mean, covariance).pdf
                exact = dblquad(lambda y, x, pdf=pdf: pdf([x, y]), low[0], high[0], low[1], high[1], epsabs=1e-13)[0]
                assert p == pytest.approx(exact, abs=1e-12)

    @pytest.mark.parametrize("rho", [-0.999999, -0.999, -0.5, 0.0, 0.2, 0.9, 0.999999])
    def test_small_probabilities_keep_their_relative_precision(self, rho):
        """Against quadrature over a common factor, which is another integral than that of the code."""
        rng = np.random.default_rng(1)
        loads = np.sqrt(abs(rho)) * np.array([np.sign(rho), 1.0])
        low, high = random_windows(rng, 60, 2, 6.0)
        log_p = log_window(np.zeros((60, 2)), factor_covariance(loads), low, high)[0]
        n = 3000 if abs(rho) < 0.99 else 30_000  # edges are as sharp as sqrt(1 - rho)
        expected = np.array([one_factor(loads, *ends, n) for ends in zip(low, high, strict=True)])
        possible = expected > -300
        assert possible.sum() > 20
        # correlations of 0.999999 have rounding of 1e-10 in 1 - rho
        np.testing.assert_allclose(
            log_p[possible], expected[possible], rtol=1e-12 if abs(rho) < 0.99 else 1e-9, atol=1e-11
        )

    def test_both_methods_agree_where_they_meet(self, monkeypatch):
        rng = np.random.default_rng(2)
        loads = rng.uniform(-0.99, 0.99, (300, 2))
        low, high = random_windows(rng, 300, 2, 1.0)
        cases = np.zeros((300, 2)), factor_covariance(loads), low, high
        by_owen = log_window(*cases)[0]
        monkeypatch.setattr("jointwise.joint.rectangle.LEAST_BY_OWEN", 2.0)
        np.testing.assert_allclose(by_owen, log_window(*cases)[0], rtol=0, atol=1e-11)

    def test_correlation_one(self):
        for sign in (1.0, -1.0):
            p = probability([0, 0], [[1, sign], [sign, 1]], [-1, -0.5], [0.3, 2])
            assert p == pytest.approx(ndtr(0.3) - ndtr(-0.5 if sign > 0 else -1.0), abs=1e-6)


class TestMoreCoordinates:
    @pytest.mark.parametrize("d", [3, 5, 8])
    def test_independent_coordinates_multiply(self, d):
        rng = np.random.default_rng(d)
        low, high = random_windows(rng, 20, d)
        width = np.where(np.isfinite(high - low), high - low, INF)
        log_p, error = log_window(np.zeros((20, d)), np.eye(d), low, high)
        np.testing.assert_allclose(log_p, log_interval(low, high, width).sum(axis=1), rtol=1e-12, atol=1e-12)
        assert error.max() < 1e-12

    @pytest.mark.parametrize("d", [3, 5, 8])
    def test_orthants_of_equal_correlations(self, d):
        covariance = 0.5 * np.eye(d) + 0.5
        log_p, error = log_window(np.zeros((1, d)), covariance, np.zeros((1, d)), np.full((1, d), INF))
        assert np.exp(log_p[0]) == pytest.approx(1 / (d + 1), rel=TOLERANCE)
        assert 0 < error[0] <= TOLERANCE

    @pytest.mark.parametrize("d", [3, 5, 8])
    @pytest.mark.parametrize("spread", [1.5, 6.0])
    def test_one_factor(self, d, spread):
        rng = np.random.default_rng(10 * d)
        n = 60
        loads = rng.uniform(-0.95, 0.95, (n, d))
        low, high = random_windows(rng, n, d, spread)
        log_p, error = log_window(np.zeros((n, d)), factor_covariance(loads), low, high)
        expected = np.array([one_factor(*case) for case in zip(loads, low, high, strict=True)])
        assert np.abs(np.expm1(log_p - expected)).max() < 1.5 * TOLERANCE
        assert error.max() <= TOLERANCE

    @pytest.mark.parametrize("d", [3, 5])
    def test_against_scipy_on_random_covariances(self, d):
        rng = np.random.default_rng(d)
        for _ in range(5):
            factor = rng.normal(size=(d, d + 1))
            covariance, mean = factor @ factor.T, rng.normal(size=d)
            low = mean - rng.uniform(0, 2, d) * np.sqrt(np.diag(covariance))
            high = low + rng.uniform(1, 4, d) * np.sqrt(np.diag(covariance))
            tight = {"abseps": 1e-7, "releps": 1e-5, "maxpts": 500_000, "rng": np.random.default_rng(0)}
            exact = multivariate_normal.cdf(high, mean, covariance, lower_limit=low, **tight)
            assert probability(mean, covariance, low, high) == pytest.approx(exact, rel=2e-4)

    @pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 0.0])
    def test_correlations_near_one(self, gap):
        """All coordinates are one number, up to a little noise."""
        rng = np.random.default_rng(3)
        low, high = -rng.uniform(0.2, 2, (6, 4)), rng.uniform(0.2, 2, (6, 4))
        covariance = np.full((4, 4), 1 - gap) + gap * np.eye(4)
        log_p, _ = log_window(np.zeros((6, 4)), covariance, low, high)
        exact = ndtr(high.min(axis=1)) - ndtr(low.max(axis=1))
        np.testing.assert_allclose(np.exp(log_p), exact, rtol=3e-4 + 2 * np.sqrt(gap))

    def test_the_answer_does_not_depend_on_the_other_cases(self):
        rng = np.random.default_rng(4)
        low, high = random_windows(rng, 30, 4)
        covariance = factor_covariance(rng.uniform(-0.9, 0.9, (30, 4)))
        mean = rng.normal(size=(30, 4))
        together = log_window(mean, covariance, low, high)[0]
        alone = [log_window(*(x[k : k + 1] for x in (mean, covariance, low, high)))[0][0] for k in range(30)]
        np.testing.assert_allclose(together, alone, rtol=1e-12)
        np.testing.assert_array_equal(together, log_window(mean, covariance, low, high)[0])

    def test_fast_weights_are_those_of_draws(self):
        rng = np.random.default_rng(6)
        low, high = random_windows(rng, 20, 5)
        made = chain(low, high, high - low, factor_covariance(rng.uniform(-0.99, 0.99, (20, 5))))
        levels, cases = rng.random((200, 4)), np.array([3, 0, 19])
        np.testing.assert_allclose(made.log_weights(cases, levels), made.weigh(cases, levels)[0], rtol=1e-8, atol=1e-8)

    def test_equal_cases_have_equal_answers(self):
        rng = np.random.default_rng(7)
        low, high = random_windows(rng, 5, 4)
        covariance = factor_covariance(rng.uniform(-0.9, 0.9, (5, 4)))
        twice = np.array([0, 3, 3, 1, 0, 4, 2, 2])
        once = log_window(np.zeros((5, 4)), covariance, low, high)
        again = log_window(np.zeros((8, 4)), covariance[twice], low[twice], high[twice])
        for one, many in zip(once, again, strict=True):
            np.testing.assert_allclose(many, one[twice], rtol=1e-12)

    def test_a_sum_is_as_precise_as_a_single_case(self):
        rng = np.random.default_rng(9)
        n, d = 40, 4
        loads = rng.uniform(-0.95, 0.95, (n, d))
        low, high = random_windows(rng, n, d)
        log_weight = rng.normal(size=n) * 5
        exact = np.array([one_factor(*case) for case in zip(loads, low, high, strict=True)])
        total = np.logaddexp.reduce(log_weight + exact)
        log_share = log_weight - total + np.log(n)
        log_p, error = log_window(np.zeros((n, d)), factor_covariance(loads), low, high, log_share)
        share = np.exp(log_weight + exact - total)
        assert share @ np.abs(np.expm1(log_p - exact)) < 2 * TOLERANCE
        assert share @ error < 2 * TOLERANCE
        assert error.max() > TOLERANCE  # terms with a small share were left early


class TestNodes:
    @pytest.mark.parametrize("d", [2, 3, 6])
    def test_means_over_points_are_those_in_the_window(self, d):
        rng = np.random.default_rng(d)
        loads = rng.uniform(-0.9, 0.9, d)
        covariance = factor_covariance(loads[None])[0]
        low, high = (x[0] for x in random_windows(rng, 1, d))
        x, log_weight = window_nodes(np.zeros(d), covariance, low, high)
        weight = np.exp(log_weight)
        assert weight.sum() == pytest.approx(1)
        assert ((x > low) & (x <= high)).all()
        # shares of boxes inside the window, from probabilities of windows
        total = one_factor(loads, low, high)
        for k in range(d):
            cut = high.copy()
            cut[k] = weight @ x[:, k]
            share = np.exp(one_factor(loads, low, cut) - total)
            assert weight @ (x[:, k] <= cut[k]) == pytest.approx(share, abs=3e-3)  # an indicator is not smooth

    def test_points_reach_into_the_tails(self):
        x, log_weight = window_nodes(np.zeros(2), np.eye(2), np.zeros(2), np.full(2, INF))
        assert x.max() > 5
        far = x[:, 0] > 3.5
        assert np.exp(log_weight[far]).sum() == pytest.approx(2 * ndtr(-3.5), rel=0.05)


@st.composite
def windows(draw, most=4):
    """A Gaussian vector and a window, with means and ends on a grid so that cutting a window is exact."""
    d = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factor = rng.normal(size=(d, d + draw(st.integers(0, 2))))
    covariance = factor @ factor.T + 1e-3 * np.eye(d)
    grid = st.integers(-24, 24).map(lambda k: k / 8)
    low = np.array([draw(grid | st.just(-INF)) for _ in range(d)])
    high = np.array([draw(grid | st.just(INF)) for _ in range(d)])
    return rng.integers(-8, 9, d) / 8, covariance, np.minimum(low, high), np.maximum(low, high)


def tolerance(case):
    """Relative error to allow for."""
    return 1e-9 if len(case[0]) < 3 else 3 * TOLERANCE


class TestLaws:
    @settings(max_examples=100)
    @given(windows(), st.integers(-20, 20).map(lambda k: k / 8 + 1 / 16), st.data())
    def test_a_window_cut_in_two(self, case, cut, data):
        mean, covariance, low, high = case
        j = data.draw(st.integers(0, len(mean) - 1))
        assume(low[j] < cut < high[j])
        middle_high, middle_low = high.copy(), low.copy()
        middle_high[j] = middle_low[j] = cut
        parts = probability(mean, covariance, low, middle_high) + probability(mean, covariance, middle_low, high)
        assert parts == pytest.approx(probability(*case), rel=tolerance(case), abs=1e-300)

    @settings(max_examples=100)
    @given(windows(), st.randoms(use_true_random=False))
    def test_permutations_and_sign_flips(self, case, random):
        mean, covariance, low, high = case
        order = random.sample(range(len(mean)), len(mean))
        sign = np.array([random.choice([-1.0, 1.0]) for _ in order])
        ends = np.sort(np.stack([sign * low[order], sign * high[order]]), axis=0)
        turned = sign * mean[order], covariance[np.ix_(order, order)] * np.outer(sign, sign), *ends
        assert probability(*turned) == pytest.approx(probability(*case), rel=tolerance(case), abs=1e-300)

    @settings(max_examples=100)
    @given(windows(), st.integers(1, 24).map(lambda k: k / 8), st.data())
    def test_monotone_in_the_window(self, case, more, data):
        mean, covariance, low, high = case
        j = data.draw(st.integers(0, len(mean) - 1))
        wider = high.copy()
        wider[j] += more
        assert probability(mean, covariance, low, wider) >= probability(*case) * (1 - tolerance(case))

    @given(windows())
    def test_one_without_a_window_and_coordinates_without_one_drop_out(self, case):
        mean, covariance, low, high = case
        d = len(mean)
        assert probability(mean, covariance, np.full(d, -INF), np.full(d, INF)) == 1.0
        low[0], high[0] = -INF, INF
        rest = mean[1:], covariance[1:, 1:], low[1:], high[1:]
        expected = probability(*rest) if d > 1 else 1.0
        assert probability(mean, covariance, low, high) == pytest.approx(expected, rel=1e-12)

    @settings(max_examples=60)
    @given(st.integers(0, 2**32 - 1), st.integers(1, 4))
    def test_hostile_numbers_never_give_nan(self, seed, d):
        rng = np.random.default_rng(seed)
        loads = rng.normal(size=(d, rng.integers(1, d + 1)))
        noise = 10 ** rng.uniform(-12, 0) * np.eye(d) * rng.integers(0, 2)
        scale = 10 ** rng.uniform(-140, 140, d) if rng.random() < 0.5 else np.ones(d)
        covariance = (loads @ loads.T + noise) * np.outer(scale, scale)
        covariance *= np.outer(*[rng.random(d) > 0.05] * 2)  # some variances are zero
        mean = rng.normal(size=d) * scale * 10 ** rng.uniform(-2, 5)
        low = mean + scale * rng.normal(size=d) * 10 ** rng.uniform(-3, 3, d)
        high = low + scale * 10 ** rng.uniform(-12, 4, d)
        low[rng.random(d) < 0.2], high[rng.random(d) < 0.2] = -INF, INF
        low[rng.random(d) < 0.03], high[rng.random(d) < 0.03] = -1e308, 1e308
        log_p, error = log_window(mean[None], covariance, low[None], high[None])
        assert log_p[0] <= 1e-4
        assert error[0] >= 0

    @pytest.mark.parametrize("d", [1, 2, 3])
    def test_empty_windows(self, d):
        zero = np.zeros((3, d))
        low, high = np.zeros((3, d)), np.ones((3, d))
        high[0, 0], low[1, -1], high[2, 0] = 0.0, 2.0, -INF
        np.testing.assert_array_equal(log_window(zero, np.eye(d), low, high)[0], -INF)

    def test_no_cases_and_no_coordinates(self):
        assert log_window(np.zeros((0, 3)), np.eye(3), np.zeros((0, 3)), np.ones((0, 3)))[0].shape == (0,)
        none = np.zeros((2, 0))
        np.testing.assert_array_equal(log_window(none, np.zeros((0, 0)), none, none)[0], [0.0, 0.0])

    def test_cases_with_different_windows_in_one_call(self):
        rng = np.random.default_rng(5)
        low, high = random_windows(rng, 40, 3)
        low[rng.random((40, 3)) < 0.5] = -INF
        high[0], low[0] = INF, -INF
        covariance = factor_covariance(rng.uniform(-0.9, 0.9, (40, 3)))
        together, error = log_window(np.zeros((40, 3)), covariance, low, high)
        for k in range(40):
            assert np.exp(together[k]) == pytest.approx(probability(np.zeros(3), covariance[k], low[k], high[k]))
        n_windows = (np.isfinite(low) | np.isfinite(high)).sum(axis=1)
        assert (error[n_windows < 3] == 0).all()
        assert set(n_windows) == {0, 1, 2, 3}

    def test_arguments_that_do_not_fit(self):
        one, eye = np.ones((1, 2)), np.eye(2)
        with pytest.raises(InputError, match="same shape"):
            log_window(one, eye, one, np.ones((1, 3)))
        with pytest.raises(InputError, match="covariance must have the shape"):
            log_window(one, np.eye(3), one, one)
        with pytest.raises(InputError, match="finite"):
            log_window(np.full((1, 2), np.nan), eye, one, one)
        with pytest.raises(InputError, match="NaN"):
            log_window(one, eye, one, np.full((1, 2), np.nan))


def pvalue(draws, mean, covariance, low, high, n_bins=8):
    """Least p-value, over coordinates, of the counts of draws in bins of about equal counts; Bonferroni."""
    d = len(mean)
    p_values = []
    for j in range(d):
        # bins from half of the draws, counts from the other half
        inner = np.quantile(draws[::2, j], np.arange(1, n_bins) / n_bins)
        lows, highs = np.tile(low, (n_bins, 1)), np.tile(high, (n_bins, 1))
        lows[1:, j], highs[:-1, j] = inner, inner
        log_p = log_window(np.tile(mean, (n_bins, 1)), covariance, lows, highs)[0]
        p = np.exp(log_p - log_p.max())
        counts = np.bincount(np.searchsorted(inner, draws[1::2, j]), minlength=n_bins)
        p_values.append(chisquare(counts, counts.sum() * p / p.sum()).pvalue)
    return min(p_values) * d


SAMPLED = {
    "1, bulk": ([1.0], [0.8], [-0.5], [2.0]),
    "1, tail": ([0.0], [0.5], [30.0], [INF]),
    "1, narrow tail": ([0.0], [0.5], [-50.001], [-50.0]),
    "2, bulk": ([0.0, 1.0], [0.9, -0.8], [-1.0, -INF], [2.0, 0.5]),
    "2, tail": ([0.0, 0.0], [0.9, 0.9], [-INF, 12.0], [-5.0, INF]),
    "2, thin": ([0.0, 0.0], [0.9995, 0.9995], [-1.0, 0.0], [1.0, 3.0]),
    "4, bulk": ([0.0, 0.0, 0.5, 0.0], [0.9, 0.7, -0.8, 0.5], [-1.0, 0.0, -INF, -2.0], [1.0, INF, 0.0, 0.3]),
    "4, tail": ([0.0] * 4, [0.9, 0.7, -0.8, 0.5], [5.0, -INF, 4.0, 8.0], [7.0, -6.0, INF, INF]),
}


class TestSamples:
    @pytest.mark.parametrize("name", SAMPLED)
    def test_draws_follow_the_probabilities(self, name):
        mean, loads, low, high = (np.array(x) for x in SAMPLED[name])
        covariance = factor_covariance(loads)
        draws = sample_window(mean, covariance, low, high, 8000, np.random.default_rng(0))
        assert draws.shape == (8000, len(mean))
        assert ((draws > low) & (draws <= high)).all()
        assert pvalue(draws, mean, covariance, low, high) > FAILURE

    def test_a_wrong_law_is_found_out(self):
        mean, loads, low, high = (np.array(x) for x in SAMPLED["4, tail"])
        wrong = factor_covariance(0.9 * loads)
        draws = sample_window(mean, wrong, low, high, 8000, np.random.default_rng(0))
        assert pvalue(draws, mean, factor_covariance(loads), low, high) < FAILURE

    def test_dependence_between_coordinates(self):
        """A linear combination of the draws, against a window of it as one more coordinate."""
        mean, loads, low, high = (np.array(x) for x in SAMPLED["2, bulk"])
        covariance, sum_of = factor_covariance(loads), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        draws = sample_window(mean, covariance, low, high, 8000, np.random.default_rng(1))
        inner = np.quantile(draws[::2].sum(axis=1), np.arange(1, 8) / 8)
        lows, highs = np.tile([*low, -INF], (8, 1)), np.tile([*high, INF], (8, 1))
        lows[1:, 2], highs[:-1, 2] = inner, inner
        log_p = log_window(np.tile(sum_of @ mean, (8, 1)), sum_of @ covariance @ sum_of.T, lows, highs)[0]
        counts = np.bincount(np.searchsorted(inner, draws[1::2].sum(axis=1)), minlength=8)
        p = np.exp(log_p)
        assert chisquare(counts, 4000 * p / p.sum()).pvalue > FAILURE

    @pytest.mark.parametrize("n_windows", [0, 1, 2])
    def test_coordinates_without_a_window_follow_their_regression(self, n_windows):
        covariance = np.array([[4.0, 1.0, 1.5], [1.0, 1.0, 0.2], [1.5, 0.2, 9.0]])
        mean, low, high = np.array([1.0, -2.0, 0.0]), np.full(3, -INF), np.full(3, INF)
        low[:n_windows], high[0] = [5.0, -1.0][:n_windows], 6.0 if n_windows else INF
        draws = sample_window(mean, covariance, low, high, 5000, np.random.default_rng(2)) - mean
        inside, free = slice(0, n_windows), slice(n_windows, 3)
        gain = np.linalg.solve(covariance[inside, inside], covariance[inside, free])
        rest = covariance[free, free] - covariance[free, inside] @ gain
        noise = np.linalg.solve(np.linalg.cholesky(rest), (draws[:, free] - draws[:, inside] @ gain).T)
        assert kstest(noise.ravel(), "norm").pvalue > FAILURE
        assert np.abs(np.corrcoef(np.vstack([noise, draws[:, inside].T]))[0, 1:]).max(initial=0) < 5 / np.sqrt(5000)

    def test_exponential_far_in_a_tail(self):
        """At a = 1e8 deviations, a (x - a) is exponential and x has no digits left for it; from the end it has."""
        draws = sample_window([-1e8], [[1.0]], [0.0], [INF], 4000, np.random.default_rng(3))
        assert kstest(draws[:, 0] * 1e8, "expon").pvalue > FAILURE

    def test_most_draws_are_accepted(self):
        rng = np.random.default_rng(6)
        for d in (2, 4, 8):
            loads = rng.uniform(-0.95, 0.95, (50, d))
            low, high = random_windows(rng, 50, d, 4.0)
            log_p = log_window(np.zeros((50, d)), factor_covariance(loads), low, high)[0]
            width = np.where(np.isfinite(high - low), high - low, INF)
            made = chain(low, high, width, factor_covariance(loads))
            assert np.exp(log_p - made.bound).min() > 0.5
            # no weight beats the bound
            weights = made.weigh(np.arange(50), rng.random((500, d - 1)))[0]
            assert (weights <= made.bound[:, None] + 1e-12).all()

    def test_same_seed_same_draws(self):
        mean, loads, low, high = (np.array(x) for x in SAMPLED["4, bulk"])
        first, second = (
            sample_window(mean, factor_covariance(loads), low, high, 50, np.random.default_rng(1)) for _ in range(2)
        )
        np.testing.assert_array_equal(first, second)
        assert sample_window(mean, factor_covariance(loads), low, high, 0, np.random.default_rng(1)).shape == (0, 4)

    def test_impossible_windows(self):
        rng, zero = np.random.default_rng(0), np.zeros(2)
        with pytest.raises(ImpossibleEventError, match="empty"):
            sample_window(zero, np.eye(2), zero, zero, 1, rng)
        with pytest.raises(ImpossibleEventError, match="accepted"):  # log P = -250,000
            sample_window(zero, factor_covariance(np.full(2, np.sqrt(0.999999))), [0.0, 2.0], [1.0, 3.0], 1, rng)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_worst_error_over_many_cases(d):
    rng = np.random.default_rng(100 + d)
    n = 10_000
    loads = rng.uniform(-0.95, 0.95, (n, d)) if d > 1 else np.zeros((n, 1))
    low, high = random_windows(rng, n, d, 3.0)
    if d == 1:
        low, high = np.maximum(low, -15), np.minimum(high, 15)
        expected = np.array([decimal_log(a, b, 120) for a, b in np.column_stack([low, high])])
    else:
        expected = np.array([one_factor(*case) for case in zip(loads, low, high, strict=True)])
    log_p, stated = log_window(np.zeros((n, d)), factor_covariance(loads) if d > 1 else np.eye(1), low, high)
    error = np.abs(np.expm1(log_p - expected))
    print(
        f"\n{d} coordinates: worst relative error {error.max():.2g}, median {np.median(error):.2g}; "
        f"stated at most {stated.max():.2g}, exceeded in {np.mean(error > stated + 1e-11):.2%}"
    )
    assert error.max() < (1e-11 if d < 3 else 3 * TOLERANCE)
    assert stated.max() <= (0 if d < 3 else TOLERANCE)
