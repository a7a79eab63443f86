"""Which columns form the block, and what is said of the others."""

import numpy as np

from jointwise.estimators._columns import ColumnOptions
from jointwise.fitting.blocks.columns import MOST_COLUMNS, choose_columns, off_spikes
from jointwise.fitting.choice.folds import SMALL_TABLE
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows

RNG = np.random.default_rng(0)
A = RNG.normal(size=200)


def rows(table, **kinds):
    columns = ColumnOptions(kinds, None, None, (), list(table), 128, {}, fine=True).settle(Profile.of(table))
    return CodedRows.of(table, columns.schema, columns.axes)


def reasons(table, **kinds):
    found = choose_columns(rows(table, **kinds))
    names = list(table)
    assert {*found.left_out} == {*names} - {names[n] for n in found.columns}
    return found.left_out


def test_kinds_and_numbers_of_values():
    table = {
        "number": A,
        "rounded": np.round(A, 1),
        "few": RNG.choice([0.5, 1.5, 2.25], 200),
        "count": RNG.poisson(500, 200),
        "grade": RNG.integers(0, 12, 200),
        "job": RNG.choice(["cook", "nurse"], 200),
        "constant": np.full(200, 2.5),
        "day": np.datetime64("2024-01-01") + RNG.integers(0, 400, 200),
    }
    found = reasons(table)
    assert {*found} == {"few", "grade", "job", "constant"}
    assert found["job"] == "categorical"
    assert found["grade"] == "12 different values"
    assert found["constant"] == "1 different value"
    assert found["few"] == "3 different values"


def test_copies_stay_out_and_sums_stay_in():
    b = RNG.normal(size=200)
    found = reasons({"a": A, "b": b, "scaled": 3 - 2 * A, "sum": A + b, "near": A + 1e-2 * b})
    assert found == {"scaled": "the same as 'a', up to scale and shift"}


def test_copies_with_other_gaps_are_no_copies():
    gap = np.where(RNG.random(200) < 0.2, np.nan, 1.0)
    assert reasons({"a": A, "b": A * gap}) == {}
    assert [*reasons({"a": A * gap, "b": 2 * A * gap})] == ["b"]


def test_a_column_of_spikes_and_many_values_is_in():
    spiked = np.where(RNG.random(200) < 0.5, 0.0, A)
    coded = rows({"a": spiked, "b": A})
    assert coded.schema.variables[0].spikes == (0.0,)
    assert choose_columns(coded).columns == (0, 1)


def test_integers_that_are_spikes_have_bins_of_their_own():
    hours = np.where(RNG.random(400) < 0.5, 40, RNG.integers(10, 90, 400))
    coded = rows({"hours": hours, "a": np.r_[A, A]})
    assert coded.axes[0].spikes.tolist() == [40.0]
    assert coded.marginal(0)[-1] == np.sum(hours == 40)
    assert choose_columns(coded).columns == (0, 1)


def test_values_that_hardly_differ_stay_out():
    found = reasons({"a": 1e16 + 2 * np.arange(200.0), "b": A}, a="continuous")
    assert found == {"a": "its values hardly differ"}


def test_a_block_has_no_more_columns_than_it_can_bear():
    table = {f"c{n}": RNG.normal(size=15) for n in range(MOST_COLUMNS + 2)}
    assert len(choose_columns(rows(table)).columns) == MOST_COLUMNS


def test_what_follows_from_columns_is_found_once_in_small_tables():
    small, large = rows({"a": A, "b": A**2}), rows({"a": RNG.normal(size=SMALL_TABLE)})
    assert off_spikes(small, 0) is off_spikes(small, 0)
    assert off_spikes(small, 0) is not off_spikes(small, 1)
    assert choose_columns(small) is choose_columns(small)
    assert off_spikes(small.take(np.arange(50)), 0).counts.sum() == 50
    assert off_spikes(large, 0) is not off_spikes(large, 0)
