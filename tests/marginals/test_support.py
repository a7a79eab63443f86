"""Bounds, steps, spikes and identifiers that are evident from the rows of a column."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.exceptions import InputError, UnknownNameError
from jointwise.marginals import Profile
from jointwise.marginals.sketch import STEPS, ValueSketch
from jointwise.marginals.support import evident_support

EVERYWHERE = (-np.inf, np.inf)


def support(values):
    sketch = ValueSketch.of(values)
    return evident_support(sketch, sketch.spikes())


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (rng().exponential(size=1000), (0, np.inf)),
        (rng().lognormal(size=1000), (0, np.inf)),
        (rng().gamma(2, size=1000), (0, np.inf)),
        (rng().random(1000), (0, 1)),
        (np.clip(rng().normal(70, 30, 1000), 0, 100).round(1), (0, 100)),
        (-rng().exponential(size=1000), (-np.inf, 0)),
        (np.where(rng().random(2000) < 0.6, -1, rng().integers(1, 800, 2000)), (-1, np.inf)),
        (np.where(rng().random(2000) < 0.9, 0, rng().integers(1000, 99999, 2000)), (0, np.inf)),
    ],
    ids=["exponential", "lognormal", "gamma", "uniform", "percent", "negative", "sentinel", "zero-inflated"],
)
def test_bounds_that_the_rows_make_plain(values, expected):
    assert support(values.astype(float)) == expected


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n", [50, 500, 5000])
def test_no_bound_where_the_law_has_none(seed, n):
    # laws that come near zero, one or a hundred but continue beyond
    r = rng(seed)
    for values in (
        r.normal(3, 1, n),
        r.normal(0.7, 0.1, n),
        r.normal(90, 3, n),
        r.logistic(5, 0.6, n),
        r.normal(size=n),
    ):
        assert support(values) == EVERYWHERE


@pytest.mark.parametrize(
    ("values", "lower"),
    [
        (rng().poisson(0.8, 1000), 0),
        (rng().integers(0, 2, 1000), 0),
        (np.rint(rng().normal(3, 2, 1000)), -np.inf),
        (rng().choice(5, 1000, p=[0.1, 0.2, 0.4, 0.2, 0.1]) + 1, -np.inf),
    ],
    ids=["count", "bit", "rounded", "answers 1 to 5"],
)
def test_small_counts_are_not_negative_and_have_no_upper_bound(values, lower):
    (variable,) = Profile.of({"x": values.astype(int)}).schema().variables
    assert variable.is_enumerated
    assert variable.support == (lower, np.inf)


def test_few_rows_tell_of_no_bound():
    assert support(rng().random(25)) == EVERYWHERE
    assert support(np.full(100, 3.0)) == EVERYWHERE


@given(st.sampled_from(STEPS), st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=40), st.integers(1, 39))
@settings(deadline=None, max_examples=100)
def test_steps_are_found_and_do_not_depend_on_how_rows_are_split(step, numbers, cut):
    values = np.round(np.array(numbers) * step, 10)
    sketch = ValueSketch.of(values)
    assert sketch == ValueSketch.of(values[:cut]) + ValueSketch.of(values[cut:])
    assert sketch.step >= step
    slow = next(s for s in STEPS if all(abs(v / s - round(v / s)) < 1e-6 for v in values))
    assert sketch.step == slow


def test_a_step_needs_every_value():
    assert ValueSketch.of([0.5, 1.5, 1.75]).step == 0.25
    assert ValueSketch.of([0.5, np.pi]).step == 0.0
    assert ValueSketch.of([0.5, 1e300]).step == 0.0


def test_spikes_among_the_rest_are_found_too():
    # one in ten rows is not zero; of those a quarter share a value
    values = np.where(
        rng(0).random(5000) < 0.9, 0, np.where(rng(1).random(5000) < 0.25, 15_024, rng(2).integers(1, 99_999, 5000))
    )
    assert ValueSketch.of(values.astype(float)).spikes() == (0.0, 15_024.0)


def table(n=200):
    r = rng(3)
    return {
        "id": np.arange(n),
        "name": [f"row {i}" for i in range(n)],
        "city": [f"city {i}" for i in r.integers(0, 60, n)],
        "count": r.integers(0, n, n),
        "year": np.arange(1900, 1900 + n),
        "x": r.normal(size=n),
    }


def test_identifiers_are_text_that_differs_and_numbers_that_count_the_rows():
    assert Profile.of(table()).identifiers() == ("id", "name")
    assert Profile.of({k: v[:40] for k, v in table().items()}).identifiers() == ()
    # a part of a table that was split at random
    part = np.sort(rng().choice(1000, 750, replace=False))
    assert Profile.of({"id": part, "x": rng().normal(size=750)}).identifiers() == ("id",)
    # nothing would be left
    assert Profile.of({"id": np.arange(100)}).identifiers() == ()


def test_identifiers_do_not_depend_on_how_rows_are_split_or_weighed():
    whole = Profile.of(table())
    parts = Profile.of({k: v[:70] for k, v in table().items()}) + Profile.of({k: v[70:] for k, v in table().items()})
    assert parts == whole
    assert Profile.of(table(), np.full(200, 1 / 200)).identifiers() == ("name",)


def test_too_many_texts_are_no_error_until_they_are_used():
    texts = [f"t{i}" for i in range(70_000)]
    halves = [
        Profile.of({"t": texts[:40_000], "x": range(40_000)}),
        Profile.of({"t": texts[40_000:], "x": range(30_000)}),
    ]
    profile = halves[0] + halves[1]
    assert profile == halves[1] + halves[0] == Profile.of({"t": texts, "x": [*range(40_000), *range(30_000)]})
    assert profile.columns[0].n == 70_000
    assert "t" in profile.identifiers()
    with pytest.raises(InputError, match="more than 65535 different values"):
        profile.schema()
    assert profile.without(["t"]).schema().names == ("x",)


def test_supports_and_steps_are_overridden_by_name():
    profile = Profile.of(
        {"x": rng().exponential(size=500), "p": rng().normal(5, 1, 500).round(2), "c": ["a", "b"] * 250}
    )
    schema = profile.schema()
    assert (schema["x"].support, schema["p"].step) == ((0, np.inf), 0.01)
    schema = profile.schema(supports={"x": (None, 50), "p": None}, steps={"p": 0})
    assert (schema["x"].support, schema["p"].step) == ((-np.inf, 50), 0.0)
    with pytest.raises(UnknownNameError, match="supports"):
        profile.schema(supports={"z": None})
    with pytest.raises(InputError, match="must be \\(low, high\\)"):
        profile.schema(supports={"x": 3})
    with pytest.raises(InputError, match="must hold the values seen"):
        profile.schema(supports={"x": (1, None)})
    with pytest.raises(InputError, match="only a number"):
        profile.schema(supports={"c": (0, 1)})
    with pytest.raises(InputError, match="must be a mapping"):
        profile.schema(steps=[0.1])


def test_dates_have_the_step_of_a_day_and_no_natural_bounds():
    days = np.datetime64("1970-01-05") + rng().exponential(300, 500).astype(int)
    variable = Profile.of({"day": days}).schema()["day"]
    assert (variable.step, variable.support) == (1.0, EVERYWHERE)
