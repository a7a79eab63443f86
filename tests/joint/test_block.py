"""The block expert against slow twins and the laws of probability."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import kstest, multivariate_normal
from tests.joint.block_cases import BENT, CATEGORY, INF, INTEGER, PRODUCT, SPIKED, mixture, plain, rows, slow_density

from jointwise.exceptions import ImpossibleEventError
from jointwise.joint.block import BlockMixture
from jointwise.joint.block_density import log_density
from jointwise.joint.events import Interval, Point, Values
from jointwise.joint.product import ProductMixture

SEEDS = st.integers(0, 10_000)
# Sums of masses of integers and windows agree to this; see GaussianBlock.
ROUNDED = 2e-3
few = settings(deadline=None, max_examples=8)
EVENTS = {
    "interval": {SPIKED: Interval(-1.0, 1.5)},
    "without spikes": {SPIKED: Interval(1.1, 4.0)},
    "integers": {INTEGER: Interval(-2.0, 5.0)},
    "set of integers": {INTEGER: Values((0.0, 1.0, 2.0, 5.0))},
    "bent": {BENT: Interval(0.0, INF)},
    "several": {SPIKED: Interval(-1.0, INF), BENT: Interval(-INF, 2.0), CATEGORY: Values((0.0, 2.0))},
    "all": {SPIKED: Interval(-1.0, 1.5), INTEGER: Interval(-4.0, 4.0), BENT: Interval(-1.0, 3.0)},
}


@few
@given(SEEDS)
def test_density_is_the_sum_over_components(seed):
    f = mixture(seed)
    X = rows(f, seed)
    X = np.vstack([X, X[0]])
    X[-1, [SPIKED, INTEGER]] = -0.5, 2.0  # both at a spike
    assert_allclose(np.exp(f.logpdf(X)), [slow_density(f, row) for row in X], rtol=1e-9)


def test_impossible_cells_have_density_zero():
    f = mixture(0)
    X = np.full((3, 5), np.nan)
    X[0, INTEGER], X[1, BENT], X[2, CATEGORY] = 1.5, INF, 7.0
    assert np.isneginf(f.logpdf(X)).all()


@few
@given(SEEDS)
def test_a_gap_is_the_marginal(seed):
    f = mixture(seed)
    keep = [BENT, CATEGORY, SPIKED]
    X = rows(f, seed, gaps=0.0)
    gapped = X.copy()
    gapped[:, [INTEGER, PRODUCT]] = np.nan
    assert_allclose(f.logpdf(gapped), f.marginal(keep).logpdf(X[:, keep]), rtol=1e-10)
    assert isinstance(f.marginal([PRODUCT, CATEGORY]), ProductMixture)
    assert_allclose(f.marginal([PRODUCT]).logpdf(X[:, [PRODUCT]]), f.logpdf(only(X, [PRODUCT])), rtol=1e-12)


def only(X, keep):
    out = np.full_like(X, np.nan)
    out[:, keep] = X[:, keep]
    return out


@few
@given(SEEDS, st.sampled_from([[SPIKED], [INTEGER, BENT], [SPIKED, INTEGER, BENT], [CATEGORY, SPIKED], [PRODUCT]]))
def test_chain_rule(seed, given_columns):
    f = mixture(seed)
    for row in rows(f, seed, n=3, gaps=0.0):
        rest = [n for n in range(5) if n not in given_columns]
        g = f.condition({n: Point(row[n]) for n in given_columns})
        both = f.logpdf(only(row[None], given_columns)) + g.logpdf(row[None, rest])
        assert_allclose(both, f.logpdf(row[None]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
@settings(deadline=None, max_examples=5)
@given(SEEDS)
def test_density_given_an_event_is_the_ratio(event, seed):
    f = mixture(seed)
    g, p = f.condition(event), f.log_probability(event)
    X = f.sample(15, np.random.default_rng(seed))
    inside = np.all([holds(region, X[:, n]) for n, region in event.items()], axis=0)
    got = g.logpdf(X)
    assert (np.isneginf(got) == ~inside).all()
    assert_allclose(got[inside], f.logpdf(X[inside]) - p, atol=3e-4)
    draws = g.sample(20, np.random.default_rng(seed))
    assert np.isfinite(g.logpdf(draws)).all()
    assert all(holds(region, draws[:, n]).all() for n, region in event.items())


def holds(region, x):
    if isinstance(region, Interval):
        return (x >= region.low) & (x <= region.high)
    return np.isin(x, region.values)


@few
@given(SEEDS)
def test_conditioning_in_any_order(seed):
    f = mixture(seed)
    row = rows(f, seed, n=1, gaps=0.0)[0]
    at, window, other = Point(row[INTEGER]), Interval(-1.0, 1.5), Interval(-0.5, 3.0)
    once = f.condition({INTEGER: at, SPIKED: window, BENT: other})
    # positions move when a column goes
    after = f.condition({INTEGER: at}).condition({SPIKED: window}).condition({BENT - 1: other})
    before = f.condition({BENT: other}).condition({SPIKED: window, INTEGER: at})
    X = once.sample(5, np.random.default_rng(seed))
    X[0, 0] = X[1, 2] = np.nan
    for g in (after, before):
        assert_allclose(g.logpdf(X), once.logpdf(X), rtol=1e-6, atol=1e-6)


@few
@given(SEEDS)
def test_a_hidden_window_still_counts(seed):
    f = plain(seed, d=3)
    g = f.condition({0: Interval(0.0, 1.0), 1: Interval(-INF, 0.5)})
    x = np.array([[0.3], [1.0], [-2.0]])
    rest = g.marginal([2])
    assert rest.block.n_coordinates == 3
    gapped = np.column_stack([np.full((3, 2), np.nan), x])
    assert_allclose(rest.logpdf(x), g.logpdf(gapped), rtol=1e-9)
    # by brute force: the window of the other two, given the third
    total = f.log_probability({0: Interval(0.0, 1.0), 1: Interval(-INF, 0.5)})
    for row in gapped:
        alone = f.condition({2: Point(row[2])})
        log_joint = f.logpdf(row[None])[0] + alone.log_probability({0: Interval(0.0, 1.0), 1: Interval(-INF, 0.5)})
        assert_allclose(g.logpdf(row[None])[0], log_joint - total, atol=3e-4)
    # a value takes the window of its column away
    assert g.condition({0: Point(0.5)}).block.n_coordinates == 2
    with pytest.raises(ImpossibleEventError):
        g.condition({0: Point(1.5)})


@few
@given(SEEDS)
def test_law_of_total_probability(seed):
    f = mixture(seed)
    X = rows(f, seed, n=8, gaps=0.4)
    for n, cut in ((SPIKED, 0.3), (BENT, 0.7), (INTEGER, 1.0)):
        left = {n: Interval(-INF, cut)}
        right = {n: Interval(cut + 1 if n == INTEGER else np.nextafter(cut, INF), INF)}
        p, q = np.exp(f.log_probability(left)), np.exp(f.log_probability(right))
        assert_allclose(p + q, 1.0, atol=1e-9)
        total = np.logaddexp(np.log(p) + f.condition(left).logpdf(X), np.log(q) + f.condition(right).logpdf(X))
        assert_allclose(total, f.logpdf(X), atol=1e-6)


@few
@given(SEEDS)
def test_cdf_and_probabilities_agree(seed):
    f = mixture(seed)
    X = rows(f, seed, n=4, gaps=0.3)
    for row, p in zip(X, f.cdf(X), strict=True):
        event = {n: Interval(-INF, v) for n, v in enumerate(row) if not np.isnan(v)}
        assert_allclose(p, np.exp(f.log_probability(event)), rtol=3e-4, atol=1e-12)


def test_cdf_of_a_plain_pair_agrees_with_scipy():
    f = plain(3)
    X = np.array([[0.0, 0.5], [1.0, -1.0], [np.nan, 0.3], [2.0, 2.0]])
    for row, p in zip(X, f.cdf(X), strict=True):
        top = np.where(np.isnan(row), 40.0, row)
        parts = [multivariate_normal.cdf(top, m, s) for m, s in zip(f.block.means, f.block.covariances, strict=True)]
        assert_allclose(p, f.weights @ parts, atol=2e-6)


@few
@given(SEEDS)
def test_masses_of_integers_add_up_to_windows(seed):
    f = mixture(seed).marginal([INTEGER])
    k = np.arange(-80.0, 81.0)
    masses = np.exp(f.logpdf(k[:, None]))
    assert_allclose(masses.sum(), 1.0, atol=1e-6)
    assert_allclose(np.cumsum(masses), f.cdf(k[:, None]), atol=1e-4)


@pytest.mark.parametrize("n", [SPIKED, INTEGER, BENT, CATEGORY])
@pytest.mark.parametrize("event", [{}, *EVENTS.values()], ids=["nothing", *EVENTS])
def test_factor_is_the_margin(n, event):
    f = mixture(11)
    g = f.condition(event) if event else f
    alone, margin = g.marginal([n]), g.margin(n)
    x = np.unique(g.sample(60, np.random.default_rng(0))[:, n])
    tolerance = ROUNDED if n == INTEGER else 2e-4
    dictionary, coefficients = g.factor(n)
    assert coefficients.shape == (dictionary.n_atoms, g.n_components)
    assert_allclose(coefficients.sum(axis=0), 1.0)
    assert_allclose(dictionary.pdf(x) @ margin.weights, np.exp(alone.logpdf(x[:, None])), rtol=5 * tolerance)
    assert_allclose(dictionary.cdf(x) @ margin.weights, alone.cdf(x[:, None]), atol=tolerance)
    assert g.dictionary(n).is_continuous == dictionary.is_continuous


@pytest.mark.parametrize("event", [{}, *EVENTS.values()], ids=["nothing", *EVENTS])
def test_samples_follow_the_cdf(event):
    # five columns of eight events: a correct sampler fails one of them with probability 4e-5
    f = mixture(4)
    g = f.condition(event) if event else f
    draws = g.sample(3000, np.random.default_rng(5))
    for n in range(g.n_variables):
        margin = g.margin(n)
        steps = np.unique(draws[:, n])
        if len(steps) > 500:
            continuous = draws[~np.isin(draws[:, n], margin.dictionary.spikes), n]
            mass = margin.dictionary.point_mass(margin.dictionary.spikes).sum(axis=0) @ margin.weights

            def law(x, margin=margin, mass=mass):
                spikes = margin.dictionary.spikes
                at = margin.dictionary.point_mass(spikes) @ margin.weights
                below = np.concatenate([[0.0], np.cumsum(at)])[np.searchsorted(spikes, x, side="right")]
                return (margin.dictionary.cdf(x) @ margin.weights - below) / (1 - mass)

            assert kstest(continuous, law).pvalue > 1e-6
        expected = margin.dictionary.cdf(steps) @ margin.weights
        shares = np.searchsorted(np.sort(draws[:, n]), steps, side="right") / len(draws)
        assert np.abs(shares - expected).max() < 0.05  # six deviations


@pytest.mark.parametrize("event", [{}, EVENTS["interval"], EVENTS["set of integers"], EVENTS["all"]], ids=str)
def test_samples_follow_the_joint_cdf(event):
    f = mixture(4)
    g = f.condition(event) if event else f
    draws = g.sample(20_000, np.random.default_rng(6))
    tops = g.sample(8, np.random.default_rng(7))
    tops[::2, PRODUCT] = tops[1::2, CATEGORY] = tops[:4, INTEGER] = np.nan
    expected = g.cdf(tops)
    shares = np.array([np.all((draws <= top) | np.isnan(top), axis=1).mean() for top in tops])
    # six deviations: a correct sampler fails with probability 1e-7; integers are rounded, see ROUNDED
    assert_allclose(shares, expected, atol=6 * np.sqrt(0.25 / 20_000))
    # and a wrong one is seen
    block = g.block.changed(means=g.block.means + 0.5)
    wrong = BlockMixture(g.weights, block, g.columns, g.coefficients, g.dictionaries)
    assert np.abs(wrong.cdf(tops) - shares).max() > 6 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize("event", [{}, EVENTS["interval"], EVENTS["bent"], EVENTS["several"]], ids=str)
@pytest.mark.parametrize("n", range(5))
def test_conditionals_are_ratios(event, n):
    f = mixture(7)
    g = f.condition(event) if event else f
    X = rows(g, 7, n=3, gaps=0.3)
    law = g.conditionals(n, X)
    others = X.copy()
    others[:, n] = np.nan
    assert_allclose(law.log_evidence, g.logpdf(others), rtol=1e-8, atol=1e-8)
    points = np.unique(g.sample(8, np.random.default_rng(1))[:, n])
    density, mean, quantile = law.pdf(points), law.mean(), law.quantile(0.4)
    for p, point in enumerate(points):
        others[:, n] = point
        assert_allclose(density[:, p], np.exp(g.logpdf(others) - law.log_evidence), rtol=1e-6, atol=1e-12)
    for i, row in enumerate(X):
        given_cells = {k: Point(v) for k, v in enumerate(row) if k != n and not np.isnan(v)}
        place = n - sum(k < n for k in given_cells)
        margin = (g.condition(given_cells) if given_cells else g).margin(place)
        x = margin.quantiles(np.array([0.4]))[0]
        expected = margin.dictionary.cdf([x])[0] @ margin.weights
        assert_allclose(law.cdf(np.full(len(X), x))[i], expected, atol=5e-4)
        if n != CATEGORY:
            assert_allclose(mean[i], margin.mean(), atol=3e-3 * np.sqrt(margin.var()))
            just_below = np.nextafter(quantile[i], -INF) - 1e-6
            below, at = margin.dictionary.cdf([just_below, quantile[i]]) @ margin.weights
            assert below - 1e-3 < 0.4 < at + 1e-3


def test_conditionals_of_impossible_rows_are_laws():
    f = mixture(7)
    X = np.full((2, 5), np.nan)
    X[0, INTEGER], X[1, BENT] = 0.5, INF
    for n in (SPIKED, CATEGORY):
        law = f.conditionals(n, X)
        assert np.isneginf(law.log_evidence).all()
        assert_allclose(law.cdf(np.full(2, 1e9)), 1.0)


@pytest.mark.parametrize("event", [{}, EVENTS["bent"], EVENTS["all"]], ids=str)
def test_completed_rows_follow_the_law(event):
    # a correct sampler fails with probability 6e-6
    f = mixture(9)
    g = f.condition(event) if event else f
    row = g.sample(1, np.random.default_rng(0))[0]
    X = np.tile(row, (800, 1))
    X[:, [SPIKED, BENT, CATEGORY]] = np.nan
    filled = g.complete(X, np.random.default_rng(1))
    assert (filled[:, INTEGER] == row[INTEGER]).all()
    rest = g.condition({INTEGER: Point(row[INTEGER]), PRODUCT: Point(row[PRODUCT])})
    for n, place in ((BENT, 2), (SPIKED, 0)):
        margin = rest.margin(place)
        x = np.sort(filled[:, n])
        off = margin.dictionary.cdf(x) @ margin.weights - np.searchsorted(x, x, side="right") / len(x)
        assert np.abs(off).max() < 0.1
    assert_allclose(np.corrcoef(filled[:, SPIKED], filled[:, BENT])[0, 1], correlation(rest, 0, 2), atol=0.2)


def correlation(f, i, j):
    covariance = f.covariance()
    return covariance[i, j] / np.sqrt(covariance[i, i] * covariance[j, j])


def test_completing_an_impossible_row_ignores_its_impossible_cells():
    f = mixture(9)
    X = np.array([[np.nan, 1.0, 2.5, np.nan, 0.1]])
    filled = f.complete(X, np.random.default_rng(0))
    assert np.isfinite(filled).all()
    assert filled[0, INTEGER] == 2.5


@pytest.mark.parametrize("event", [{}, EVENTS["interval"], EVENTS["all"]], ids=str)
def test_covariance_is_that_of_samples(event):
    f = mixture(2)
    g = f.condition(event) if event else f
    keep = [SPIKED, INTEGER, BENT, PRODUCT]
    draws = g.sample(40_000, np.random.default_rng(0))[:, keep]
    got, expected = g.covariance()[np.ix_(keep, keep)], np.cov(draws.T)
    scale = np.sqrt(np.diag(expected))
    assert_allclose(got / scale / scale[:, None], expected / scale / scale[:, None], atol=0.03)  # six deviations
    assert np.isnan(g.covariance()[CATEGORY]).all()


def test_covariance_through_a_bent_warp_is_the_integral():
    f = plain(1, d=2, n_components=1, warps=(mixture(0).block.warps[2],) * 2)
    mean, sigma = f.block.means[0], f.block.covariances[0]
    node, weight = np.polynomial.legendre.leggauss(200)
    y, w = 9 * node, 9 * weight * np.exp(-0.5 * (9 * node) ** 2) / np.sqrt(2 * np.pi)
    root = np.linalg.cholesky(sigma)
    u, v = np.meshgrid(y, y, indexing="ij")
    a, b = (f.block.warps[0].inverse(m) for m in (mean[0] + root[0, 0] * u, mean[1] + root[1, 0] * u + root[1, 1] * v))
    mass = np.outer(w, w)
    expected = (mass * a * b).sum() - (mass * a).sum() * (mass * b).sum()
    assert_allclose(f.covariance()[0, 1], expected, rtol=1e-5)
    moments = [quad(lambda x, k=k: x**k * np.exp(f.marginal([0]).logpdf(np.array([[x]])))[0], -9, 9)[0] for k in (1, 2)]
    assert_allclose(f.covariance()[0, 0], moments[1] - moments[0] ** 2, rtol=1e-5)


def test_mix_has_all_components():
    f = mixture(0)
    g = BlockMixture(f.weights[::-1], f.block, f.columns, f.coefficients, f.dictionaries)
    assert f.merge_key == g.merge_key != mixture(0).marginal([0, 2, 3]).merge_key
    both = BlockMixture.mix([f, g], np.array([0.3, 0.7]))
    X = rows(f, 0)
    assert both.n_components == 4
    assert_allclose(both.logpdf(X), np.logaddexp(np.log(0.3) + f.logpdf(X), np.log(0.7) + g.logpdf(X)))
    assert BlockMixture.mix([f], np.array([1.0])) is f


def test_terms_without_a_say_may_be_left_out():
    f = plain(8, d=5, n_components=12)
    g = f.condition({0: Interval(0.0, 1.0), 1: Interval(-INF, 0.5), 2: Interval(-1.0, 1.0)})
    X = g.sample(6, np.random.default_rng(0))
    X[:, :3] = np.nan
    log_rest = np.log(g.weights)
    every = log_rest + log_density(g.block, X)
    assert np.isfinite(every).all()
    assert_allclose(g.logpdf(X), logsumexp(every, axis=1), rtol=1e-9)
    kept = np.isfinite(g.component_logpdf(X))
    assert_allclose(g.component_logpdf(X)[kept], every[kept])
    assert (every - every.max(axis=1, keepdims=True))[~kept].max(initial=-INF) < -20


@pytest.mark.parametrize(
    "event",
    [
        {BENT: Interval(100.0, 101.0)},
        {SPIKED: Interval(1000.0, 1000.5)},
        {INTEGER: Interval(500.0, INF), BENT: Interval(-INF, -50.0)},
        {BENT: Interval(0.1, 0.1 + 1e-9), SPIKED: Interval(0.2, INF)},
    ],
    ids=str,
)
def test_windows_far_out_or_thin(event):
    g = mixture(3).condition(event)
    draws = g.sample(2000, np.random.default_rng(0))
    assert np.isfinite(g.logpdf(draws)).all()
    for n in (SPIKED, INTEGER, BENT):
        margin = g.margin(n)
        assert_allclose(draws[:, n].mean(), margin.mean(), atol=6 * np.sqrt(margin.var() / 2000))  # six deviations
        assert margin.quantiles(np.array([0.5]))[0] <= draws[:, n].max()


def test_errors_of_probabilities_are_known():
    f = plain(0, d=4)
    box = {n: Interval(-1.0, 1.0) for n in range(4)}
    assert 0 < f.log_probability_error(box) < 1e-4
    assert f.log_probability_error({n: box[n] for n in (0, 1)}) == 0
    parts = zip(f.block.means, f.block.covariances, strict=True)
    masses = [
        multivariate_normal(m, s, maxpts=2_000_000, abseps=1e-7).cdf(np.ones(4), lower_limit=-np.ones(4))
        for m, s in parts
    ]
    assert_allclose(np.exp(f.log_probability(box)), f.weights @ masses, rtol=2e-4)


def test_an_event_without_probability_is_refused():
    f = mixture(0)
    for event in ({SPIKED: Values((0.1,))}, {INTEGER: Values((0.5,))}, {INTEGER: Point(0.5)}, {CATEGORY: Point(9.0)}):
        assert np.isneginf(f.log_probability(event))
        with pytest.raises(ImpossibleEventError):
            f.condition(event)


@few
@given(SEEDS, st.permutations(range(6)), st.booleans())
def test_an_answer_does_not_depend_on_earlier_questions(seed, order, under_a_window):
    """A mixture that was asked before, also of what is impossible or far out, answers like a new one."""
    windows = {SPIKED: Interval(-0.4, 0.9), INTEGER: Interval(-3, 4), BENT: Interval(-1, 1)}
    events = [
        {CATEGORY: Values((0.0,))},
        {CATEGORY: Interval(7.0, 9.0)},  # impossible
        {PRODUCT: Interval(-50.0, -40.0)},
        windows,
        {BENT: Interval(40.0, 41.0)},
        {CATEGORY: Values((1.0, 2.0)), INTEGER: Interval(0, 2)},
    ]

    def fresh():
        f = mixture(seed, 3)
        return f.condition({BENT: Interval(-2.0, 2.0)}) if under_a_window else f

    X = mixture(seed, 3).sample(3, np.random.default_rng(seed))
    X[:, BENT] = np.clip(X[:, BENT], -1.9, 1.9)
    asked = fresh()
    for k in order:
        assert asked.log_probability(events[k]) == pytest.approx(fresh().log_probability(events[k]), rel=1e-9)
        try:
            asked.condition(events[k])
        except ImpossibleEventError:
            continue
    assert_allclose(asked.logpdf(X), fresh().logpdf(X), rtol=1e-9)
    assert_allclose(asked.cdf(X), fresh().cdf(X), rtol=1e-3, atol=1e-9)
