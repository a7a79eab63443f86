"""The order of columns, and their names, do not change a fit."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import JUPAD, Profile
from jointwise.fitting.order import column_order, with_columns
from jointwise.rows.coded import CodedRows


def coded(frame, weights=None):
    profile = Profile.of(frame, weights)
    schema = profile.schema()
    return CodedRows.of(frame, schema, profile.axes(schema, 16), weights)


def names_in_order(frame, weights=None):
    return [frame.columns[n] for n in column_order(coded(frame, weights))]


def mixed(n=150, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "x": hidden + 0.5 * rng.normal(size=n),
            "colour": np.array(["red", "blue", "green"])[(hidden + rng.integers(0, 2, n)) % 3],
            "count": rng.poisson(1 + 2 * hidden),
            "yes": rng.random(n) < 0.2 + 0.3 * hidden,
        }
    )


def coins(n=200, seed=0):
    """Four columns with equal counts of two categories, two of them nearly equal, two independent."""
    rng = np.random.default_rng(seed)
    a, c, d = (rng.permutation(np.repeat([0, 1], n // 2)) for _ in range(3))
    b = a.copy()
    b[[np.flatnonzero(a & c)[0], np.flatnonzero((1 - a) & (1 - c))[0]]] = [0, 1]
    return pd.DataFrame({name: np.array(["u", "v"])[v] for name, v in zip("abcd", (a, b, c, d), strict=True)})


def test_a_fit_does_not_depend_on_the_order_of_columns():
    for table in (mixed(), coins()):
        model = {"n_components": 4, "beta": 1.0, "n_models": 2, "random_state": 0}
        expected = JUPAD(**model).fit(table).density_
        values = expected.logpdf(table)
        for order in list(itertools.permutations(table.columns))[1::5]:
            density = JUPAD(**model).fit(table[list(order)]).density_
            assert density.names == order
            # sums over columns are in another order when a density is asked
            np.testing.assert_allclose(density.logpdf(table), values, rtol=0, atol=1e-11)
            np.testing.assert_array_equal(density.mixture.weights, expected.mixture.weights)


@pytest.mark.slow
def test_nor_does_a_fit_with_all_choices():
    table = mixed(400)
    values = JUPAD(random_state=0).fit(table).score_samples(table)
    for order in list(itertools.permutations(table.columns))[1::7]:
        found = JUPAD(random_state=0).fit(table[list(order)]).score_samples(table[list(order)])
        np.testing.assert_allclose(found, values, rtol=0, atol=1e-11)


def test_nor_on_the_names_of_columns():
    for table in (mixed(), coins()):
        renamed = table.set_axis([f"n{9 - k}" for k in range(4)], axis=1)
        values = [JUPAD(3, random_state=0).fit(t).score_samples(t) for t in (table, renamed)]
        np.testing.assert_array_equal(*values)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 30), levels=st.integers(1, 3))
def test_the_order_is_that_of_the_content(seed, n, levels):
    """Rows in any order, repeated or weighted, columns in any order: one order of columns."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.integers(0, levels, n).astype(str) for name in "abcde"})
    weights = rng.integers(1, 3, n)
    expected = names_in_order(table, weights)
    columns, rows = rng.permutation(5), rng.permutation(n)
    assert names_in_order(table.iloc[rows, columns], weights[rows]) == expected
    repeated = table.loc[np.repeat(np.arange(n), weights)]
    assert names_in_order(repeated.iloc[:, columns]) == expected


def test_columns_with_equal_counts_are_told_apart_by_the_rows():
    table = coins()
    names = names_in_order(table)
    renamed = table.set_axis(["d", "c", "b", "a"], axis=1)
    back = dict(zip(renamed.columns, table.columns, strict=True))
    assert [back[name] for name in names_in_order(renamed)] == names


def test_equal_columns_are_put_in_the_order_of_their_names():
    table = pd.DataFrame({name: ["u", "v", "v"] for name in "cab"})
    assert names_in_order(table) == ["a", "b", "c"]


def test_columns_move_with_all_that_is_theirs():
    rows = coded(mixed())
    order = np.array([2, 0, 3, 1])
    moved = with_columns(rows, order)
    assert moved.schema.names == tuple(rows.schema.names[n] for n in order)
    assert [a.n_bins for a in moved.axes] == [rows.axes[n].n_bins for n in order]
    np.testing.assert_array_equal(moved.codes, rows.codes[:, order])
