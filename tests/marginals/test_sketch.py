"""ValueSketch: exact, bounded, the same for any split of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.exceptions import InputError
from jointwise.marginals import sketch as module
from jointwise.marginals.sketch import ValueSketch

floats = st.floats(allow_nan=False, allow_infinity=False)
few_values = st.lists(
    st.sampled_from([-1e300, -2.5, -1.0, -1e-310, -0.0, 0.0, 0.5, 1.0, 1.5, 7.0]) | floats, max_size=40
)


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(ValueSketch, "LIMIT", 5)


def split(values, cuts):
    """Return the sum of the sketches of the parts of a list, in their order."""
    pieces = np.split(np.array(values), sorted(cut % (len(values) + 1) for cut in cuts))
    return sum((ValueSketch.of(piece) for piece in pieces), ValueSketch.empty())


def spelled_out(values, shift):
    """Return the groups of a sketch by plain loops."""
    groups = {}
    for value in values:
        bits = int(np.float64(value + 0.0).view(np.int64))
        key = (bits if bits >= 0 else bits ^ (2**63 - 1)) >> shift
        groups.setdefault(key, []).append(value)
    return [(key, len(g), min(g), g.count(min(g)), max(g), g.count(max(g))) for key, g in sorted(groups.items())]


def rows_of(sketch):
    fields = (sketch.keys, sketch.counts, sketch.low, sketch.low_counts, sketch.high, sketch.high_counts)
    return list(zip(*(field.tolist() for field in fields), strict=True))


def test_exact_below_the_limit():
    sketch = ValueSketch.of([3.0, 1.0, 3.0, -0.0, 0.0])
    assert sketch.exact
    assert sketch.values.tolist() == [0.0, 1.0, 3.0]
    assert sketch.counts.tolist() == [2, 1, 2]
    assert (sketch.n, sketch.min, sketch.max) == (5.0, 0.0, 3.0)
    assert not np.signbit(sketch.values[0])


@given(few_values, st.lists(st.integers(0, 100), max_size=4))
@settings(deadline=None, max_examples=60)
def test_any_split_gives_the_same_sketch(values, cuts):
    assert split(values, cuts) == ValueSketch.of(values)


@given(few_values, st.lists(st.integers(0, 100), max_size=4), st.randoms())
@settings(deadline=None, max_examples=60)
def test_any_split_gives_the_same_sketch_beyond_the_limit(values, cuts, random):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ValueSketch, "LIMIT", 5)
        whole = ValueSketch.of(values)
        random.shuffle(values)
        assert split(values, cuts) == whole
        assert len(whole.keys) <= 5
        assert rows_of(whole) == spelled_out(values, whole.shift)
        if whole.shift:
            assert len(spelled_out(values, whole.shift - 1)) > 5, "the shift is the smallest"


@given(few_values, few_values, few_values)
@settings(deadline=None, max_examples=60)
def test_sketches_are_a_commutative_monoid(a, b, c):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ValueSketch, "LIMIT", 5)
        a, b, c = (ValueSketch.of(values) for values in (a, b, c))
        assert a + b == b + a
        assert (a + b) + c == a + (b + c)
        assert a + ValueSketch.empty() == a
        assert ValueSketch.empty() + a == a


def test_blocks_of_rows_do_not_show(monkeypatch):
    values = np.random.default_rng(0).normal(size=1000)
    whole = ValueSketch.of(values)
    monkeypatch.setattr(module, "_BLOCK", 37)
    assert ValueSketch.of(values) == whole


def test_integer_weights_are_repeats(small_limit):
    rng = np.random.default_rng(0)
    values, repeats = rng.integers(0, 12, 50) / 4, rng.integers(1, 5, 50)
    weighted = ValueSketch.of(values, repeats.astype(float))
    assert not weighted.exact
    assert weighted == ValueSketch.of(np.repeat(values, repeats))


@given(st.lists(floats, min_size=1, max_size=50), st.floats(0, 1))
@settings(deadline=None, max_examples=60)
def test_quantiles_agree_with_numpy(values, q):
    values = np.array(values) + 0.0
    # compare shares that are whole numbers of rows: others depend on the rounding of q * n
    q = np.floor(q * 8) / 8
    expected = np.quantile(values, q, method="inverted_cdf")
    assert ValueSketch.of(values).quantile(q) == expected


def test_quantiles_beyond_the_limit_stay_in_their_group(monkeypatch):
    values = np.random.default_rng(0).lognormal(size=5000)
    exact = ValueSketch.of(values)
    monkeypatch.setattr(ValueSketch, "LIMIT", 200)
    grouped = ValueSketch.of(values)
    shares = np.linspace(0, 1, 101)
    np.testing.assert_allclose(grouped.quantile(shares), exact.quantile(shares), rtol=0.1)
    assert grouped.quantile(0.0) == values.min()
    assert grouped.quantile(1.0) == values.max()
    with pytest.raises(InputError, match="more than 200 different values"):
        _ = grouped.values


@given(st.lists(floats, min_size=1, max_size=80), st.integers(0, 16))
@settings(deadline=None, max_examples=100)
def test_error_of_a_quantile_is_within_its_group(values, sixteenths):
    values, q = np.array(values) + 0.0, sixteenths / 16  # whole shares: others depend on how q * n is rounded
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ValueSketch, "LIMIT", 5)
        sketch = ValueSketch.of(values)
        found, true = sketch.quantile(q), np.quantile(values, q, method="inverted_cdf")
        group = np.searchsorted(sketch.high, true)
        assert sketch.low[group] <= found <= sketch.high[group]
        inside = np.sum((values > sketch.low[group]) & (values < sketch.high[group]))
        rank = max(q * len(values), 1)
        assert np.sum(values < found) - inside <= rank <= np.sum(values <= found) + inside
        if sketch.shift <= 52:
            assert sketch.high[group] - sketch.low[group] <= abs(true) * 2.0 ** (sketch.shift - 52) + 1e-300


def test_infinite_values_are_refused():
    with pytest.raises(InputError, match="finite"):
        ValueSketch.of([1.0, np.inf])


def test_whole_numbers_are_known_beyond_the_limit(small_limit):
    assert ValueSketch.of(np.arange(100.0)).is_integral
    assert not ValueSketch.of([*np.arange(100.0), 50.5]).is_integral


def test_zero_inflated_has_one_spike():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(100), rng.exponential(size=900)])
    assert ValueSketch.of(values).spikes() == (0.0,)


def test_capped_has_spikes_at_both_ends():
    values = np.clip(np.random.default_rng(0).normal(size=2000), -1.5, 1.5)
    assert ValueSketch.of(values).spikes() == (-1.5, 1.5)


@pytest.mark.parametrize("decimals", [1, 2, 3, 8])
def test_rounded_gaussian_has_none(decimals):
    values = np.random.default_rng(0).normal(size=5000).round(decimals)
    assert ValueSketch.of(values).spikes() == ()


def test_constant_and_few_valued_columns_are_all_spikes():
    assert ValueSketch.of([4.5]).spikes() == (4.5,)
    assert ValueSketch.of([4.5] * 100).spikes() == (4.5,)
    assert ValueSketch.of([0.25, 0.75] * 10).spikes() == (0.25, 0.75)
    assert ValueSketch.of([0.25, 0.75]).spikes() == ()
    assert ValueSketch.empty().spikes() == ()


def test_spikes_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(ValueSketch, "LIMIT", 256)
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(200), rng.exponential(size=3800)])
    sketch = ValueSketch.of(values)
    assert not sketch.exact
    assert sketch.spikes() == (0.0,)


def test_rows_of_spikes_are_taken_out(small_limit):
    values = [0.0] * 7 + [1.0, 2.0, 3.0]
    low, high, counts = ValueSketch.of(values).without([0.0, 99.0])
    assert low.tolist() == high.tolist() == [1.0, 2.0, 3.0]
    assert counts.tolist() == [1, 1, 1]
    grouped = ValueSketch.of(np.concatenate([values, np.linspace(1.0, 3.0, 50)]))
    assert grouped.without([0.0, 3.0])[2].sum() == 51
