"""Crosstabs of three columns of rows, and what experts say of their cells."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import JUPAD
from jointwise.fitting.crosstabs import MOST_NUMBERS, N_COLUMNS, N_CUTS, N_TABLES, Crosstabs
from jointwise.joint.events import Interval, Values
from jointwise.tables.variables import Schema, Variable


def table(seed: int, n: int) -> tuple[np.ndarray, Schema]:
    """Return encoded rows with gaps: two columns of numbers, one of integers, one of categories."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.gamma(2, size=n), rng.poisson(3, n), rng.integers(0, 4, n)])
    X[rng.random(X.shape) < 0.1] = np.nan
    kinds = ("continuous", "continuous", "integer")
    variables = [Variable(name, kind) for name, kind in zip("abc", kinds, strict=True)]
    return X, Schema((*variables, Variable("d", "categorical", categories=("p", "q", "r", "s"))))


def holds(region: Interval | Values, x: float) -> bool:
    return x in region.values if isinstance(region, Values) else region.low <= x <= region.high


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 30))
def test_each_row_is_in_the_one_cell_whose_regions_hold_it(seed: int, n: int) -> None:
    X, schema = table(seed, n)
    tables = Crosstabs.draw(X, schema, np.random.default_rng(seed))
    assert tables.cells.shape == (n, N_TABLES)
    start = 0
    for k, regions in enumerate(tables.regions[:10]):
        shape = [len(each) for each in regions.values()]
        numbers = sum(schema.variables[n].categories is None for n in regions)
        assert numbers <= MOST_NUMBERS
        assert len(regions) == (MOST_NUMBERS if numbers == len(regions) else N_COLUMNS)
        assert max(shape) <= N_CUTS + 1
        for i in range(n):
            if np.isnan(X[i, list(regions)]).any():
                assert tables.cells[i, k] == -1
                continue
            place = [[m for m, r in enumerate(each) if holds(r, X[i, v])] for v, each in regions.items()]
            assert [len(found) for found in place] == [1] * len(regions)
            assert tables.cells[i, k] == start + np.ravel_multi_index([found[0] for found in place], shape)
        start += int(np.prod(shape))


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_counts_are_those_of_a_loop(seed: int) -> None:
    X, schema = table(seed, 20)
    tables = Crosstabs.draw(X, schema, np.random.default_rng(seed))
    weights = np.random.default_rng(seed).random(20)
    expected = np.zeros(tables.n_cells)
    for i in range(20):
        for cell in tables.cells[i]:
            if cell >= 0:
                expected[cell] += weights[i]
    np.testing.assert_allclose(tables.counts(weights), expected)
    values = np.random.default_rng(seed).normal(size=tables.n_cells)
    mean = [sum(values[c] for c in row if c >= 0) / N_TABLES for row in tables.cells]
    np.testing.assert_allclose(tables.of_rows(values), mean)


def test_masses_of_a_table_sum_to_one_and_are_probabilities() -> None:
    X, schema = table(0, 400)
    names = ("p", "q", "r", "s")
    columns = {name: X[:, n] for n, name in enumerate("abc")}
    columns["d"] = np.array([None if np.isnan(x) else names[int(x)] for x in X[:, 3]], dtype=object)
    density = JUPAD(4, random_state=0).fit(columns).density_
    tables = Crosstabs.draw(X, schema, np.random.default_rng(0))
    masses, start = np.exp(tables.log_masses(density.mixture)), 0
    for regions in tables.regions:
        shape = [len(each) for each in regions.values()]
        here = masses[start : start + int(np.prod(shape))]
        assert here.sum() == pytest.approx(1, abs=1e-9)
        first = {n: each[0] for n, each in regions.items()}
        assert here[0] == pytest.approx(np.exp(density.mixture.log_probability(first)), abs=1e-9)
        start += int(np.prod(shape))


def test_a_column_of_gaps_alone_is_in_no_cell() -> None:
    X, schema = table(0, 20)
    X[:, 0] = np.nan
    tables = Crosstabs.draw(X, schema, np.random.default_rng(0))
    with_gaps = [k for k, regions in enumerate(tables.regions) if 0 in regions]
    assert (tables.cells[:, with_gaps] == -1).all()
