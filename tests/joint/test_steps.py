"""Rounded variables: probabilities of values and intervals, quantiles and samples."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jointwise import Dictionary, GaussianBlocks, JointDensity
from jointwise.joint import ProductMixture
from jointwise.joint.events import rounded_inside
from jointwise.tables.variables import Schema, Variable


def density(step=0.5, support=(-np.inf, np.inf), loc=1.2, scale=0.8):
    atoms = Dictionary.grid("gaussian", loc, loc, n=1, scale=scale)
    if np.isfinite(support).any():
        atoms = atoms.truncate(*support)
    variable = Variable("x", "continuous", step=step, support=support)
    return JointDensity(Schema((variable,), "dict"), ProductMixture([1.0], [[[1.0]]], [atoms]))


def test_a_value_has_the_probability_of_the_numbers_rounded_to_it():
    law = stats.norm(1.2, 0.8)
    assert density().probability({"x": 1.5}) == pytest.approx(law.cdf(1.75) - law.cdf(1.25), rel=1e-12)
    assert density().probability({"x": {1.0, 1.5}}) == pytest.approx(law.cdf(1.75) - law.cdf(0.75), rel=1e-12)
    assert density().probability({"x": (0.9, 1.6)}) == pytest.approx(law.cdf(1.75) - law.cdf(0.75), rel=1e-12)
    assert density().probability({"x": (1.1, 1.2)}) == 0.0
    assert density().cdf({"x": [1.5, 1.6]}) == pytest.approx(law.cdf(1.75), rel=1e-12)


@given(st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.5, 1.0]), st.integers(-200, 200), st.integers(1, 50))
@settings(deadline=None, max_examples=60)
def test_values_add_up_to_intervals(step, first, length):
    f = density(step)
    values = np.round((first + np.arange(length)) * step, 10)
    one_by_one = sum(f.probability({"x": float(v)}) for v in values)
    assert f.probability({"x": (float(values[0]), float(values[-1]))}) == pytest.approx(one_by_one, abs=1e-12)
    below = f.probability({"x": (None, float(values[-1]))})
    above = f.probability({"x": (float(np.round(values[-1] + step, 10)), None)})
    assert below + above == pytest.approx(1.0, abs=1e-12)


@given(st.sampled_from([0.01, 0.1, 0.5]), st.floats(0.001, 0.999))
@settings(deadline=None, max_examples=60)
def test_quantiles_are_values_and_invert_the_cdf(step, q):
    f = density(step)
    x = f.quantile("x", q)
    assert x / step == pytest.approx(round(x / step), abs=1e-6)
    assert f.probability({"x": (None, x)}) >= q - 1e-12
    assert f.probability({"x": (None, x - step)}) < q + 1e-12


def test_samples_are_values_within_the_support():
    f = density(0.05, (0.0, 2.0))
    drawn = f.sample(2000, rng=0)["x"]
    assert set(np.round(drawn * 20)) == set(drawn * 20) or np.allclose(drawn * 20, np.round(drawn * 20), atol=1e-9)
    assert drawn.min() >= 0
    assert drawn.max() <= 2
    assert all(len(repr(float(x))) <= 4 for x in drawn)
    assert f.probability({"x": (None, -0.01)}) == 0.0
    # shares of values agree with their probabilities: the p-value falls below 1e-6 once in a million runs
    values, counts = np.unique(drawn, return_counts=True)
    expected = np.array([f.probability({"x": float(v)}) for v in values]) * len(drawn)
    often = expected > 5
    assert stats.chisquare(counts[often], expected[often] * counts[often].sum() / expected[often].sum()).pvalue > 1e-6


def test_conditioning_on_a_set_leaves_its_values():
    f = density(0.5)
    given_set = f.condition({"x": {1.0, 1.5}})
    share = f.probability({"x": 1.0}) / f.probability({"x": {1.0, 1.5}})
    assert given_set.probability({"x": 1.0}) == pytest.approx(share, rel=1e-12)
    assert set(given_set.sample(50, rng=0)["x"]) == {1.0, 1.5}


@pytest.mark.parametrize("step", [0.0, 0.25])
def test_extreme_quantiles_are_the_bounds_of_the_column(step):
    free, bounded = density(step=step), density(step=step, support=(-1.0, 4.0))
    assert free.quantile("x", [0.0, 1.0]).tolist() == [-np.inf, np.inf]
    assert bounded.quantile("x", [0.0, 1.0]).tolist() == [-1.0, 4.0]


def test_a_step_leaves_the_density_itself_alone():
    x = {"x": [0.3, 1.5]}
    np.testing.assert_array_equal(density(0.5).logpdf(x), density(0.0).logpdf(x))


def test_support_and_step_are_kept_in_files(tmp_path):
    f = density(0.05, (0.0, 2.0))
    f.save(tmp_path / "f.jw")
    assert JointDensity.load(tmp_path / "f.jw").schema == f.schema


@given(st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.5, 1.0]), st.integers(-100_000, 100_000))
@settings(deadline=None, max_examples=200)
def test_settled_values_are_the_floats_nearest_to_their_decimals(step, k):
    written = float(Decimal(k) * Decimal(str(step)))
    drawn = np.array([written, np.nextafter(written, np.inf), written + 0.3 * step])
    assert Variable("x", "continuous", step=step).settle(drawn).tolist() == [written] * 3


def test_a_step_that_does_not_divide_one_is_kept_too():
    assert Variable("x", "continuous", step=0.3).settle(np.array([0.29, 1.0])).tolist() == [0.3, 0.9]
    assert Variable("x", "continuous", step=5.0).settle(np.array([7.0, -1.0])).tolist() == [5.0, 0.0]


def test_settled_spikes_keep_their_last_bits():
    spikes = (np.nextafter(6.85, 7), 75.49, np.nextafter(80.0, 0))
    variable = Variable("x", "continuous", step=0.01, spikes=spikes)
    drawn = np.array([spikes[0], 75.49, spikes[2], 6.86, 1.0, 99.0])
    assert variable.settle(drawn).tolist() == [*spikes, 6.86, 1.0, 99.0]
    alone = Variable("x", "continuous", step=0.01, spikes=spikes[:1])
    assert alone.settle(drawn[[0, 3]]).tolist() == [spikes[0], 6.86]


@given(st.sampled_from([0.0, 0.01, 0.1, 0.5]), st.floats(-3, 3), st.floats(0, 4), st.sampled_from([0.0, np.inf]))
@settings(deadline=None, max_examples=100)
def test_the_ends_of_an_interval_are_the_first_and_last_value_inside(step, low, width, beyond):
    variable = Variable("x", "continuous", step=step)
    ends = np.array([low, low + width + beyond])
    first, last = rounded_inside(variable, ends[None])[0]
    values = np.arange(-1000, 1000) * step if step else np.array([ends[0], ends[1]])
    inside = values[(values >= ends[0] - 1e-9 * step) & (values <= ends[1] + 1e-9 * step)]
    if step and not len(inside):
        middle = ends.mean()
        assert first == last == pytest.approx(values[np.argmin(np.abs(values - middle + 1e-9))], abs=1e-9)
    else:
        assert first == pytest.approx(inside[0], abs=1e-9)
        assert last == (ends[1] if beyond else pytest.approx(inside[-1], abs=1e-9))


@pytest.mark.parametrize("sd", [0.1, 0.2, 0.4, 1.0, 5.0])
def test_intervals_of_a_rounded_column_hold_their_share_of_rows(sd):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 20, 4000)
    y = np.round(x + rng.normal(0, np.hypot(sd, 0.3), 4000))
    law = GaussianBlocks("none", n_components=1, nu=1e-3, random_state=0, kinds={"y": "continuous"}, steps={"y": 1})
    density = law.fit({"x": x, "y": y}).density_
    found = density.predict("y", {"x": x}, interval=0.8)
    inside = (found["y 10%"] <= y) & (y <= found["y 90%"])
    # the Gaussian of one component knows the noise up to the shape of its rounding
    assert inside.mean() == pytest.approx(0.8, abs=0.05)
    assert (found["y 10%"] % 1 == 0).all()
