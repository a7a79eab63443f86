"""Profile: kinds, schema and axes, the same for any split of the rows."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import axes as axes_module
from jointwise.axes import BinnedAxis, DiscreteAxis, regrouping
from jointwise.exceptions import FileFormatError, InputError, UnknownNameError
from jointwise.marginals import Profile
from jointwise.marginals import profile as profile_module
from jointwise.marginals.sketch import ValueSketch
from jointwise.tables.variables import Kind

DAY = dt.date(2024, 1, 1)


def random_table(n, seed=0):
    """Return columns of every kind, with missing values."""
    rng = np.random.default_rng(seed)

    def gaps(values):
        return [None if hole else value for value, hole in zip(values, rng.random(n) < 0.2, strict=True)]

    return {
        "real": gaps(rng.normal(size=n).round(2).tolist()),
        "count": gaps(rng.poisson(3, n).tolist()),
        "wide": gaps(rng.integers(-500, 500, n).tolist()),
        "zero": gaps((rng.exponential(size=n) * (rng.random(n) < 0.5)).tolist()),
        "flag": gaps((rng.random(n) < 0.5).tolist()),
        "text": gaps(rng.choice(["a", "bb", "c"], n).tolist()),
        "day": gaps([DAY + dt.timedelta(days=int(k)) for k in rng.integers(0, 400, n)]),
    }


FRAMES = {
    "dict": dict,
    "pandas": lambda columns: pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()}),
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "pyarrow": pa.table,
}


@pytest.fixture(params=FRAMES)
def container(request):
    return request.param


def part(columns, rows):
    return {name: [values[i] for i in rows] for name, values in columns.items()}


def test_kinds_are_found(container):
    schema = Profile.of(FRAMES[container](random_table(200))).schema()
    assert [(v.name, str(v.kind)) for v in schema] == [
        ("real", "continuous"),
        ("count", "integer"),
        ("wide", "integer"),
        ("zero", "continuous"),
        ("flag", "categorical"),
        ("text", "categorical"),
        ("day", "continuous"),
    ]
    assert schema["flag"].categories == (False, True)
    assert schema["text"].categories == ("a", "bb", "c")
    assert schema["zero"].spikes == (0.0,)
    assert schema["real"].spikes == ()


@given(st.integers(0, 2**32), st.integers(1, 60), st.lists(st.integers(0, 60), max_size=3))
@settings(deadline=None, max_examples=25)
@pytest.mark.parametrize("container", FRAMES)
def test_any_partition_gives_the_same_profile_schema_and_axes(container, seed, n, cuts):
    columns = random_table(n, seed)
    columns["real"][0], columns["count"][0], columns["wide"][0], columns["zero"][0] = 0.25, 3, -7, 0.0
    columns["flag"][0], columns["text"][0], columns["day"][0] = True, "a", DAY
    order = np.random.default_rng(seed).permutation(n)
    pieces = np.split(order, sorted(min(cut, n) for cut in cuts))
    whole = Profile.of(FRAMES[container](columns))
    parts = [Profile.of(FRAMES[container](part(columns, rows))) for rows in pieces]
    total = sum(parts, Profile.empty())
    assert total == whole
    assert sum(reversed(parts), Profile.empty()) == whole
    assert total.schema() == whole.schema()
    assert total.axes(total.schema(), 8) == whole.axes(whole.schema(), 8)


@given(st.lists(st.integers(0, 2**32), min_size=3, max_size=3))
@settings(deadline=None, max_examples=25)
def test_profiles_are_a_commutative_monoid(seeds):
    a, b, c = (Profile.of(random_table(12, seed)) for seed in seeds)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Profile.empty() == Profile.empty() + a == a


@pytest.mark.parametrize("limit", [None, 16])
@pytest.mark.parametrize("container", FRAMES)
def test_profiles_that_were_sent_as_text_add_up(container, limit, monkeypatch):
    """Two places write their profiles as JSON; their sum has the schema and axes of all rows in one place."""
    if limit is not None:  # fewer groups than values
        monkeypatch.setattr(ValueSketch, "LIMIT", limit)
    parts = [FRAMES[container](random_table(60, seed)) for seed in (1, 2)]
    weights = np.linspace(0.5, 2.0, 60)
    for weight in (None, weights):
        here = [Profile.of(part, weight) for part in parts]
        sent = [Profile.from_dict(json.loads(json.dumps(profile.to_dict()))) for profile in here]
        assert [profile.to_dict() for profile in sent] == [profile.to_dict() for profile in here]
        both, expected = sum(sent, Profile.empty()), sum(here, Profile.empty())
        assert both.schema() == expected.schema()
        assert both.axes(both.schema(), 8) == expected.axes(expected.schema(), 8)
    assert Profile.from_dict(Profile.empty().to_dict()).columns == ()


def test_a_profile_that_cannot_be_is_refused():
    form = Profile.of({"x": [1.5, 2.5, 2.5], "job": ["a", "b", None]}).to_dict()
    x, job = form["columns"]
    for wrong, words in (
        (form | {"version": 2}, "version 2"),
        (form | {"n_rows": 4.0}, "as many rows"),
        (form | {"columns": [x, x]}, "differ in name"),
        (form | {"columns": [x | {"sketch": x["sketch"] | {"low": [2.5, 1.5]}}, job]}, "increase"),
        (form | {"columns": [x | {"sketch": x["sketch"] | {"counts": [1, -2]}}, job]}, "positive"),
        (form | {"columns": [x, job | {"dtype": "pickle"}]}, "dtype"),
        (form | {"columns": [x, job | {"counts": [1.0]}]}, "zip"),
    ):
        with pytest.raises(FileFormatError, match=words):
            Profile.from_dict(wrong)


def test_integer_weights_are_repeats_and_zero_is_absent(container):
    columns = random_table(60)
    repeats = np.random.default_rng(1).integers(0, 4, 60)
    weighted = Profile.of(FRAMES[container](columns), repeats)
    repeated = Profile.of(FRAMES[container](part(columns, np.repeat(np.arange(60), repeats))))
    assert weighted == repeated
    assert weighted.schema() == repeated.schema()
    assert weighted.axes(weighted.schema(), 8) == repeated.axes(repeated.schema(), 8)


def test_labels_of_rows_without_weight_are_not_categories():
    profile = Profile.of({"s": ["a", "b", "c"]}, [1, 0, 2])
    assert profile.schema()["s"].categories == ("a", "c")
    with pytest.raises(InputError, match=r"0 sample\(s\)"):
        Profile.of({"s": ["a"]}, [0.0]).schema()


@pytest.mark.parametrize("gap", [[], [np.nan]], ids=["full", "gaps"])
def test_floats_that_are_all_whole_are_integers_with_gaps_or_without(gap):
    def variable(*numbers, kinds=None):
        return Profile.of({"x": np.array([*numbers, *gap])}).schema(kinds)["x"]

    assert (variable(1.0, 3.0).kind, variable(1.0, 3.0).dtype) == (Kind.INTEGER, "float64")
    assert variable(-(2.0**52), 2.0**52).kind is Kind.INTEGER
    assert variable(1.0, 3.0, kinds={"x": "continuous"}).kind is Kind.CONTINUOUS
    assert variable(1.5, 3.0).kind is Kind.CONTINUOUS
    assert variable(1e300, 3.0).kind is Kind.CONTINUOUS


def test_types_are_promoted_when_parts_differ():
    ints, reals = Profile.of({"x": [1, 2]}), Profile.of({"x": [0.5]})
    holes, text = Profile.of({"x": [None]}), Profile.of({"x": ["a"]})
    assert (ints + reals).schema()["x"].dtype == "float64"
    assert (holes + ints).schema()["x"].dtype == "int64"
    assert (text + holes).schema()["x"].categories == ("a",)
    assert Profile.of({"x": np.array([np.nan])}) + text == text + holes
    with pytest.raises(InputError, match="Column 'x' holds int64 values in one part of the table and string"):
        ints + text


def test_times_are_promoted():
    day = Profile.of({"x": np.array(["2020-01-01"], "M8[D]")})
    second = Profile.of({"x": np.array(["2020-01-01"], "M8[s]")})
    nano = Profile.of({"x": np.array(["2020-01-01"], "M8[ns]")})
    assert (day + second).schema()["x"].dtype == "datetime[s]"
    assert (nano + day + second).schema()["x"].dtype == "datetime[ns]"
    zoned = Profile.of(pd.DataFrame({"x": pd.to_datetime(["2020-01-01"]).tz_localize("UTC")}))
    with pytest.raises(InputError, match="convert them to one type"):
        zoned + Profile.of(pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}))


def categorical(labels, declared, *, ordered=False):
    return Profile.of(pd.DataFrame({"x": pd.Categorical(labels, declared, ordered=ordered)}))


def test_declared_categories_when_parts_differ():
    a, b = categorical(["u"], ["v", "u"]), categorical(["v"], ["v", "u"])
    c = categorical(["w"], ["w"])
    text = Profile.of(pd.DataFrame({"x": ["z"]}))
    assert (a + b).schema()["x"].categories == ("v", "u")
    assert (a + c).schema()["x"].categories == ("u", "v", "w")
    assert (a + b) + c == a + (b + c) == c + a + b
    assert (a + text).schema()["x"].categories == ("u", "z")
    assert (a + text) + c == a + (text + c)
    assert categorical([None], ["v", "u"]) + b == b + categorical([None], ["v", "u"])
    with pytest.raises(InputError, match="ordered categories that differ"):
        categorical(["u"], ["v", "u"], ordered=True) + categorical(["u"], ["u", "v"], ordered=True)


def test_profiles_of_different_tables_do_not_add():
    with pytest.raises(InputError, match="same columns in the same order"):
        Profile.of({"x": [1]}) + Profile.of({"y": [1]})
    with pytest.raises(InputError, match="dict and pandas"):
        Profile.of({"x": [1]}) + Profile.of(pd.DataFrame({"x": [1]}))


def test_kinds_can_be_asked_for():
    profile = Profile.of({"x": [3, 1, 3], "f": [1.0, 2.5, 1.0], "w": [1.0, 2.0, 3.0], "s": ["a", "b", "a"]})
    schema = profile.schema({"x": "ordinal", "f": "categorical", "w": "integer", "s": "ordinal"})
    assert (schema["x"].categories, schema["x"].ordered) == ((1, 3), True)
    assert (schema["f"].categories, schema["f"].ordered) == ((1.0, 2.5), False)
    assert schema["w"].kind is Kind.INTEGER
    assert (schema["s"].categories, schema["s"].ordered) == (("a", "b"), True)
    assert profile.schema({"x": "continuous"})["x"].dtype == "float64"
    axes = profile.axes(schema, 8)
    assert axes[0] == DiscreteAxis([0.0, 1.0])


def test_declared_order_can_be_switched_off():
    profile = categorical(["u"], ["v", "u"], ordered=True)
    assert profile.schema()["x"].ordered
    assert not profile.schema({"x": "categorical"})["x"].ordered


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (["a"], "continuous", "Column 'x' holds string values and cannot be continuous"),
        ([True], "integer", "Column 'x' holds bool values and cannot be integer"),
        ([1.5], "integer", "Column 'x' holds fractions"),
        ([DAY], "categorical", "Column 'x' holds dates and cannot be categorical"),
        ([1.5], "odd", r"`kinds\['x'\]` must be one of 'continuous', 'integer', 'categorical', 'ordinal'"),
    ],
)
def test_kinds_that_do_not_fit_are_refused(values, kind, message):
    with pytest.raises(InputError, match=message):
        Profile.of({"x": values}).schema({"x": kind})


def test_unknown_names_in_kinds():
    with pytest.raises(UnknownNameError, match="did you mean 'height'"):
        Profile.of({"height": [1.5]}).schema({"heigth": "integer"})


def test_columns_without_values_are_named(container):
    data = FRAMES[container]({"good": [1, 2], "void": [None, None]})
    with pytest.raises(InputError, match="Column 'void' has no observed value"):
        Profile.of(data).schema()
    with pytest.raises(InputError, match=r"0 sample\(s\)"):
        Profile.empty().schema()


def test_infinity_is_named():
    with pytest.raises(InputError, match="Input X contains infinity: column 'b'"):
        Profile.of({"a": [1.0], "b": [-np.inf]})


def test_one_row():
    profile = Profile.of({"x": [1.5], "k": [3], "s": ["a"]})
    schema = profile.schema()
    axes = profile.axes(schema, 16)
    assert schema["x"].spikes == (1.5,)
    assert axes == (BinnedAxis([], [1.5]), BinnedAxis([]), DiscreteAxis([0.0]))


def test_thousand_categories_and_the_limit():
    labels = [f"c{i:05}" for i in range(1000)]
    schema = Profile.of({"s": labels}).schema()
    assert schema["s"].categories == tuple(labels)
    first = Profile.of({"id": np.arange(40_000).astype(str)})
    second = Profile.of({"id": np.arange(40_000, 80_000).astype(str)})
    with pytest.raises(InputError, match=r"Column 'id' has more than 65535 different values"):
        (first + second).schema()


def test_numbers_with_too_many_values_are_not_categories():
    with pytest.raises(InputError, match="too many different numbers"):
        Profile.of({"x": np.arange(70_000)}).schema({"x": "categorical"})


def test_integer_axes():
    profile = Profile.of({"short": [0, 7, 5], "long": [0, 8, 5], "gap": [-3, None, 4]})
    short, long, gap = profile.axes(profile.schema(), 8)
    assert short == BinnedAxis(np.arange(7) + 0.5)
    assert long == BinnedAxis([2.5, 6.5])
    assert gap == BinnedAxis(np.arange(-3, 4) + 0.5)


def test_wide_integers_have_half_integer_edges():
    values = np.random.default_rng(0).poisson(200, 5000)
    profile = Profile.of({"k": values})
    (axis,) = profile.axes(profile.schema(), 16)
    assert axis.n_bins <= 16
    assert np.all(axis.edges % 1 == 0.5)
    assert np.bincount(axis.index(values), minlength=axis.n_bins).min() > 0


def test_continuous_axes_leave_out_spikes():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(500), rng.normal(3.0, 0.1, 500)])
    profile = Profile.of({"x": values})
    (axis,) = profile.axes(profile.schema(), 10)
    counts = np.bincount(axis.index(values), minlength=axis.n_bins)
    assert axis.spikes.tolist() == [0.0]
    assert axis.n_intervals <= 10
    assert axis.edges.min() > 2.5
    assert counts[-1] == 500
    assert counts.min() > 0


def test_half_the_edges_are_evenly_spaced_and_half_hold_equal_counts():
    values = np.random.default_rng(0).normal(size=20_000)
    profile = Profile.of({"x": values})
    (axis,) = profile.axes(profile.schema(), 32)
    assert 30 <= axis.n_bins <= 32
    low, high = np.quantile(values, [0.005, 0.995])
    for wanted in (np.linspace(low, high, 16), np.quantile(values, np.arange(1, 16) / 16)):
        nearest = np.abs(axis.edges[:, None] - wanted).min(axis=0)
        assert np.median(nearest) < 0.01


@given(st.lists(st.integers(-40, 40).map(lambda k: k / 4), min_size=1, max_size=80), st.integers(1, 12))
@settings(deadline=None, max_examples=60)
def test_axes_have_no_more_intervals_than_asked_and_none_is_empty(values, n_bins):
    profile = Profile.of({"x": np.array(values)})
    schema = profile.schema()
    (axis,) = profile.axes(schema, n_bins)
    assert axis.n_intervals <= n_bins
    spread = [value for value in values if value not in schema["x"].spikes]
    if spread:
        assert set(axis.index(spread)) == set(range(axis.n_intervals))


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1.7e305])
def test_axes_at_any_scale(scale):
    values = np.arange(-1000.0, 1001.0) * scale
    profile = Profile.of({"x": values})
    (axis,) = profile.axes(profile.schema(), 8)
    assert axis.n_bins == 8
    assert np.bincount(axis.index(values)).min() > 0


def test_rounded_values_do_not_sit_on_edges():
    values = np.random.default_rng(0).normal(size=2000).round(1)
    profile = Profile.of({"x": values})
    (axis,) = profile.axes(profile.schema(), 16)
    assert not np.isin(axis.edges, values).any()


def test_all_spikes_leave_one_interval():
    profile = Profile.of({"x": np.repeat([0.5, 1.5], 50)})
    assert profile.axes(profile.schema(), 16) == (BinnedAxis([], [0.5, 1.5]),)


def test_axes_refuse_what_they_do_not_know():
    profile = Profile.of({"x": [1.5, 2.5]})
    with pytest.raises(InputError, match="`n_bins` must be an integer"):
        profile.axes(profile.schema(), 0)
    with pytest.raises(UnknownNameError, match="Unknown column 'y'"):
        profile.axes(Profile.of({"y": [1.5]}).schema(), 8)


def test_partition_beyond_the_limit_of_the_sketch(monkeypatch):
    monkeypatch.setattr(ValueSketch, "LIMIT", 512)
    values = np.random.default_rng(0).normal(size=1000)
    whole = Profile.of({"x": values})
    total = sum((Profile.of({"x": piece}) for piece in np.array_split(values, 7)), Profile.empty())
    assert total == whole
    (axis,) = total.axes(total.schema(), 8)
    assert (axis,) == whole.axes(whole.schema(), 8)
    assert np.bincount(axis.index(values)).min() > 0


def fine_and_coarse(values, n_bins=8, **settings):
    profile = Profile.of({"x": values})
    schema = profile.schema(**settings)
    return profile.axes(schema, n_bins, fine=["x"])[0], profile.axes(schema, n_bins)[0]


@given(
    values=st.lists(
        st.one_of(st.integers(-30, 30).map(float), st.floats(-1e300, 1e300), st.just(0.0), st.none()),
        min_size=1, max_size=80,
    ),
    n_bins=st.integers(1, 12),
    zeros=st.sampled_from([0, 40]),
    kind=st.sampled_from([None, "continuous"]),
)  # fmt: skip
@settings(deadline=None)
def test_a_fine_axis_keeps_every_value_and_every_coarse_edge(values, n_bins, zeros, kind):
    values = np.array([np.nan if value is None else value for value in values] + [0.0] * zeros)
    if np.isnan(values).all():
        return
    fine, coarse = fine_and_coarse(values, n_bins, kinds={"x": kind} if kind else None)
    assert np.array_equal(regrouping(fine, coarse)[fine.index(values)], coarse.index(values))
    known = values[~np.isnan(values)]
    assert np.array_equal(fine.representatives[fine.index(known)], known)
    assert fine.spikes.tolist() == coarse.spikes.tolist()


def test_bins_of_a_fine_axis_beyond_the_limits(monkeypatch):
    """Groups of the sketch, and fewer bins than groups: centres stay within the group of each value."""
    monkeypatch.setattr(ValueSketch, "LIMIT", 512)
    monkeypatch.setattr(profile_module, "MAX_BINS", 300)
    values = np.append(np.random.default_rng(0).normal(size=5000), [0.25] * 500)
    fine, coarse = fine_and_coarse(values, 40)
    assert fine.spikes.tolist() == [0.25]
    assert fine.n_bins == 300
    codes = fine.index(values)
    assert np.array_equal(regrouping(fine, coarse)[codes], coarse.index(values))
    for code in range(fine.n_intervals):
        own = values[codes == code]
        assert len(own) == 0 or own.min() <= fine.centres[code] <= own.max()
    assert np.max(np.abs(fine.representatives[codes] - values)) < 0.3
    assert axes_module.MAX_BINS == 65_535


def test_a_fine_axis_at_the_largest_size():
    """One more group than codes, with a spike: the closest groups are merged."""
    values = np.concatenate([np.arange(65_535) + 0.5, [-1.5] * 5000])
    fine, coarse = fine_and_coarse(values, 64)
    assert (fine.n_bins, fine.spikes.tolist()) == (65_535, [-1.5])
    assert np.array_equal(regrouping(fine, coarse)[fine.index(values)], coarse.index(values))
    assert np.mean(fine.representatives[fine.index(values)] == values) > 0.9999


def test_fine_axes_of_named_columns_only():
    table = random_table(200)
    profile = Profile.of(table)
    schema = profile.schema()
    coarse, some = profile.axes(schema, 8), profile.axes(schema, 8, fine=["wide", "day"])
    assert [a == b for a, b in zip(coarse, some, strict=True)] == [name not in {"wide", "day"} for name in schema.names]
    with pytest.raises(InputError, match="'text' is categorical"):
        profile.axes(schema, 8, fine=["text"])
    with pytest.raises(UnknownNameError, match="in `fine`"):
        profile.axes(schema, 8, fine=["nothing"])


def test_a_fine_axis_of_spikes_alone():
    fine, coarse = fine_and_coarse(np.repeat([0.5, 1.5], 50))
    assert fine.centres.tolist() == [0.0]
    assert (fine.edges.tolist(), fine.spikes.tolist()) == (coarse.edges.tolist(), [0.5, 1.5])
