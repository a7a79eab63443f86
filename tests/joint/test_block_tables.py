"""Tables of the block expert: cell by cell, and sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.joint.block_cases import BENT, CATEGORY, INF, INTEGER, PRODUCT, SPIKED, mixture, plain
from tests.joint.twins import check_atom_kinds, check_pair_tables

from jointwise.exceptions import InputError
from jointwise.joint import block_pairs
from jointwise.joint.block import BlockMixture
from jointwise.joint.block_tables import window_table
from jointwise.joint.events import Interval, Point, Values

EDGES = np.array([-INF, -2.0, -0.5, 0.3, 1.0, 4.0, INF])
INTERVALS = [Interval(low, high) for low, high in zip(np.nextafter(EDGES[:-1], INF), EDGES[1:], strict=True)]
INTEGERS = [Interval(-INF, -3.0), Interval(-2.0, 1.0), Interval(2.0, 2.0), Interval(3.0, INF)]
REGIONS = {
    SPIKED: INTERVALS,
    CATEGORY: [Point(0.0), Values((1.0, 2.0))],
    INTEGER: INTEGERS,
    BENT: INTERVALS,
    PRODUCT: [Interval(-INF, 0.0), Interval(np.nextafter(0.0, 1), INF)],
}
WINDOWS = {
    "none": {},
    "own": {SPIKED: Interval(-1.0, 2.0)},
    "another": {INTEGER: Interval(0.0, 6.0)},
}


@pytest.mark.parametrize("event", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize(
    "columns", [(SPIKED,), (BENT, SPIKED), (SPIKED, CATEGORY), (INTEGER, BENT), (CATEGORY, PRODUCT), (PRODUCT, BENT)]
)
def test_cells_are_probabilities_of_boxes(columns, event):
    f = mixture(5)
    g = f.condition(event) if event else f
    table = g.crosstab({n: REGIONS[n] for n in columns})
    assert table.shape == tuple(len(REGIONS[n]) for n in columns)
    assert_allclose(table.sum(), 1.0, atol=2e-4)
    for at in np.ndindex(table.shape):
        box = {n: REGIONS[n][i] for n, i in zip(columns, at, strict=True)}
        assert_allclose(table[at], np.exp(g.log_probability(box)), rtol=1e-3, atol=1e-7)


def test_three_columns_of_the_block():
    f = mixture(5)
    regions = {n: REGIONS[n][:4] for n in (BENT, INTEGER, SPIKED)}
    table = f.crosstab(regions)
    box = {BENT: regions[BENT][2], INTEGER: regions[INTEGER][1], SPIKED: regions[SPIKED][3]}
    assert_allclose(table[2, 1, 3], np.exp(f.log_probability(box)), rtol=1e-3)


def test_an_interval_does_not_count_points_of_their_own():
    f = mixture(5)
    table = f.crosstab({SPIKED: [Point(1.0), Interval(0.0, 2.0)], INTEGER: [Point(3.0), Interval(0.0, 5.0)]})
    both = np.exp(f.log_probability({SPIKED: Interval(0.0, 2.0), INTEGER: Interval(0.0, 5.0)}))
    assert_allclose(table.sum(), both, rtol=1e-9)
    at = np.exp(f.log_probability({SPIKED: Point(1.0), INTEGER: Point(3.0)}))
    assert_allclose(table[0, 0], at, rtol=1e-9)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.floats(-0.9999, 0.9999))
def test_corners_and_boxes_agree(seed, rho):
    rng = np.random.default_rng(seed)
    f = plain(seed, n_components=1)
    block = f.block.changed(covariances=np.array([[[1.0, rho], [rho, 1.0]]]))
    edges = np.sort(rng.normal(size=(2, 5)) * 2, axis=1)
    windows = [np.stack([e[:-1], e[1:]], axis=1) for e in edges]
    table = window_table(block, (0, 1), windows)
    for i, j in np.ndindex(4, 4):
        box = {0: Interval(*windows[0][i]), 1: Interval(*windows[1][j])}
        # the warps are lines through zero, so that windows are intervals
        expected = np.exp(type(f)([1.0], block, (0, 1), (), ()).log_probability(box))
        assert_allclose(table[i, j, 0], expected, atol=1e-13)


@pytest.mark.parametrize("event", WINDOWS.values(), ids=WINDOWS)
def test_many_pairs_at_once_and_one_by_one(event, monkeypatch):
    f = mixture(5)
    points = [Point(1.0), Interval(-INF, 0.0), Interval(0.0, 2.0), Values((2.0, 3.0))]
    g = f.condition(event) if event else f
    monkeypatch.setattr(block_pairs, "TOGETHER", 500)  # a few pairs at a time
    check_pair_tables(g, REGIONS, rtol=1e-9, atol=1e-13)
    check_pair_tables(g, REGIONS | {SPIKED: points, INTEGER: points}, rtol=1e-9, atol=1e-13)


def test_kinds_of_atoms():
    check_atom_kinds(mixture(5))
    f = mixture(5)
    weights, *others = f.block.spike_weights
    never_a_number = f.block.changed(spike_weights=(weights / weights.sum(axis=0), *others))
    check_atom_kinds(BlockMixture(f.weights, never_a_number, f.columns, f.coefficients, f.dictionaries))


def test_a_table_too_large_is_refused():
    f = plain(0, d=3)
    regions = [Interval(k, k + 0.5) for k in np.arange(200.0)]
    with pytest.raises(InputError, match="too large"):
        f.crosstab({0: regions, 1: regions, 2: regions})


@pytest.mark.parametrize("columns", [(SPIKED,), (SPIKED, BENT), (BENT, INTEGER), (INTEGER, CATEGORY), (PRODUCT, BENT)])
@pytest.mark.parametrize("event", WINDOWS.values(), ids=WINDOWS)
def test_density_on_a_grid(columns, event):
    f = mixture(6)
    g = (f.condition(event) if event else f).marginal(columns)
    points = [np.unique(g.sample(12, np.random.default_rng(0))[:, k]) for k in range(len(columns))]
    points = [np.append(p, 0.5) for p in points]  # no integer
    table = g.pdf_table(points)
    X = np.stack([p.ravel() for p in np.meshgrid(*points, indexing="ij")], axis=1)
    assert_allclose(table.ravel(), np.exp(g.logpdf(X)), rtol=1e-9, atol=1e-300)
