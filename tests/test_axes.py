"""Axes: bins, edge rules, codes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.axes import (
    Axis,
    BinnedAxis,
    DiscreteAxis,
    code_dtype,
    encode_rows,
    half_integers,
    midpoints,
    regrouping,
    snap,
)
from jointwise.exceptions import FileFormatError, InputError

floats = st.floats(allow_nan=False, allow_infinity=False)


def plain_index(axis, value):
    """Return the bin of a value by trying them one by one."""
    if np.isnan(value):
        return axis.n_bins
    if isinstance(axis, DiscreteAxis):
        return list(axis.values).index(value) if value in axis.values else axis.n_bins
    if value in axis.spikes:
        return axis.n_intervals + list(axis.spikes).index(value)
    (bin_,) = [i for i in range(axis.n_intervals) if (axis.lower[i] < value or i == 0) and value <= axis.upper[i]]
    return bin_


AXES = [
    BinnedAxis([]),
    BinnedAxis([0.5]),
    BinnedAxis([-1.0, 0.0, 2.0]),
    BinnedAxis([-1.0, 0.0, 2.0], spikes=[0.0, 1.5]),
    BinnedAxis([], spikes=[3.0]),
    BinnedAxis([-1.0, 0.0, 2.0], [0.0, 1.5], [-4.0, 0.0, 2.0, 2.5]),
    DiscreteAxis([0.0, 1.0, 2.0]),
    DiscreteAxis([-4.0, 7.5]),
]


@pytest.mark.parametrize("axis", AXES)
@given(st.lists(floats | st.sampled_from([-1.0, 0.0, -0.0, 0.5, 1.5, 2.0, 3.0, 7.5, np.nan, np.inf, -np.inf])))
@settings(deadline=None, max_examples=40)
def test_index_agrees_with_a_plain_search(axis, values):
    codes = axis.index(values)
    assert codes.tolist() == [plain_index(axis, value) for value in values]
    assert codes.dtype == np.uint8


@pytest.mark.parametrize("axis", AXES)
def test_axes_survive_json_and_compare_exactly(axis):
    again = Axis.from_dict(json.loads(json.dumps(axis.to_dict())))
    assert again == axis
    assert hash(again) == hash(axis)
    assert sum(other == axis for other in AXES) == 1
    assert axis != "axis"


def test_bounds_of_intervals():
    axis = BinnedAxis([1.0, 2.0], spikes=[0.0])
    assert axis.lower.tolist() == [-np.inf, 1.0, 2.0]
    assert axis.upper.tolist() == [1.0, 2.0, np.inf]
    assert (axis.n_intervals, axis.n_bins) == (3, 4)
    with pytest.raises(ValueError, match="read-only"):
        axis.edges[0] = 3.0


def test_scalars_have_a_bin_too():
    assert BinnedAxis([1.0], spikes=[2.0]).index(2.0) == 2
    assert DiscreteAxis([1.0]).index(np.nan) == 1


@pytest.mark.parametrize("edges", [[1.0, 1.0], [2.0, 1.0], [np.nan], [np.inf], [[1.0]]])
def test_edges_must_increase(edges):
    with pytest.raises(InputError, match="`edges` must be"):
        BinnedAxis(edges)


def test_axes_are_bounded_in_size():
    assert DiscreteAxis(np.arange(65_535)).n_bins == 65_535
    with pytest.raises(InputError, match="at most 65535 bins; got 65536"):
        DiscreteAxis(np.arange(65_536))
    with pytest.raises(InputError, match="at least one value"):
        DiscreteAxis([])


@pytest.mark.parametrize("fields", [{}, {"type": "odd"}, {"type": "binned"}, {"type": "discrete", "values": [2, 1]}])
def test_damaged_axes_are_refused(fields):
    with pytest.raises(FileFormatError):
        Axis.from_dict(fields)


def test_codes_of_rows():
    axes = [BinnedAxis([0.0]), DiscreteAxis([0.0, 1.0])]
    matrix = np.array([[1.0, 1.0], [np.nan, 0.0], [-1.0, -1.0]])
    codes = encode_rows(matrix, axes)
    assert codes.tolist() == [[1, 1], [2, 0], [0, 2]]
    assert codes.dtype == np.uint8
    assert encode_rows(matrix, [axes[0], DiscreteAxis(np.arange(256))]).dtype == np.uint16
    assert code_dtype([DiscreteAxis(np.arange(255))]) == np.uint8
    with pytest.raises(InputError, match="must have 1 columns"):
        encode_rows(matrix, axes[:1])


@pytest.mark.parametrize(
    ("n_bins", "edges"), [(1, []), (2, [1.0]), (3, [0.0, 2.0]), (4, [0.0, 1.0, 2.0]), (6, [0.0, 0.5, 1.0, 1.5, 2.0])]
)
def test_equal_width(n_bins, edges):
    axis = BinnedAxis.equal_width(0.0, 2.0, n_bins)
    assert axis.edges.tolist() == edges
    assert axis.n_bins == n_bins


def test_equal_width_over_the_whole_range_of_floats():
    assert BinnedAxis.equal_width(-1.7e308, 1.7e308, 5).edges.tolist()[1:3] == pytest.approx(
        [-1.7e308 / 3, 1.7e308 / 3]
    )


def test_equal_width_of_a_point_is_one_bin():
    assert BinnedAxis.equal_width(3.0, 3.0, 8).n_bins == 1
    with pytest.raises(InputError, match="must not be above"):
        BinnedAxis.equal_width(3.0, 2.0, 8)


def test_quantiles_of_distinct_values_are_even():
    values = np.sort(np.random.default_rng(0).normal(size=1000))
    axis = BinnedAxis.quantiles(values, np.ones(1000), 10)
    assert np.bincount(axis.index(values), minlength=10).tolist() == [100] * 10


def test_quantiles_with_few_values_give_each_its_bin():
    axis = BinnedAxis.quantiles([1.0, 2.0, 10.0], [1, 1000, 1], 64)
    assert axis.edges.tolist() == [1.5, 6.0]
    assert BinnedAxis.quantiles([5.0], [3], 64).n_bins == 1
    assert BinnedAxis.quantiles([], [], 64).n_bins == 1


def test_quantiles_keep_ties_whole():
    axis = BinnedAxis.quantiles(np.arange(10.0), [1, 1, 1, 1, 500, 1, 1, 1, 1, 1], 4)
    assert axis.edges.tolist() == [3.5, 4.5]


@given(st.lists(floats, unique=True, min_size=2).map(sorted), st.integers(1, 20), st.randoms())
@settings(deadline=None, max_examples=60)
def test_no_value_sits_on_an_edge_of_a_neighbour(values, n_bins, random):
    values = sorted({value + 0.0 for value in values})
    counts = [random.randint(1, 9) for _ in values]
    axis = BinnedAxis.quantiles(values, counts, n_bins)
    codes = axis.index(values).astype(int)
    assert axis.n_bins <= n_bins
    assert np.all(np.diff(codes) >= 0)
    assert set(codes) == set(range(axis.n_bins)), "each interval holds a value"


@given(st.lists(floats, unique=True, min_size=1).map(sorted))
@settings(deadline=None, max_examples=60)
def test_midpoints_part_neighbours(values):
    values = np.unique(np.array(values) + 0.0)
    points = midpoints(values, values)
    assert np.all(values[:-1] <= points)
    assert np.all(points < values[1:])


def test_midpoint_of_neighbouring_floats():
    values = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert BinnedAxis.quantiles(values, [1, 1], 2).index(values).tolist() == [0, 1]


@given(st.sets(st.integers(-(2**40), 2**40), min_size=2))
@settings(deadline=None, max_examples=60)
def test_half_integers_part_the_same_integers(integers):
    integers = np.sort(np.array(list(integers), dtype=float))
    edges = half_integers(midpoints(integers, integers))
    assert np.all(edges % 1 == 0.5)
    assert np.all((integers[:-1] < edges) & (edges < integers[1:]))


def test_snap_drops_edges_outside_and_merges():
    values = np.array([0.0, 1.0, 4.0])
    assert snap(np.array([-1.0, 0.2, 0.9, 1.0, 3.9, 4.0, 9.0]), values, values).tolist() == [0.5, 2.5]
    assert snap(np.array([2.0]), np.array([5.0]), np.array([5.0])).tolist() == []


def test_an_axis_without_centres_is_written_as_before():
    assert BinnedAxis([1.0], [0.0]).to_dict() == {"type": "binned", "edges": [1.0], "spikes": [0.0]}


@pytest.mark.parametrize(
    "centres", [[0.5], [0.5, 1.0], [1.5, 2.0], [0.5, np.nan], [[0.5, 2.0]], [0.5, np.inf], [2.0, 0.5]]
)
def test_centres_lie_inside_their_intervals(centres):
    with pytest.raises(InputError, match="centres"):
        BinnedAxis([1.0], centres=centres)


def test_representatives_are_in_their_own_bins():
    for axis in (BinnedAxis([1.0, 3.0], [2.0], [1.0, 2.5, 9.0]), DiscreteAxis([3.0, 4.0])):
        assert axis.index(axis.representatives).tolist() == list(range(axis.n_bins))
    with pytest.raises(InputError, match="no centres"):
        BinnedAxis([1.0]).representatives  # noqa: B018


@given(
    edges=st.sets(st.integers(-5, 5)),
    kept=st.sets(st.integers(-5, 5)),
    spikes=st.sets(st.sampled_from([-3.0, -0.5, 2.0, 2.5])),
    kept_spikes=st.sets(st.sampled_from([-3.0, -0.5, 2.0, 2.5])),
    values=st.lists(st.sampled_from([*np.arange(-6, 6.5, 0.5), np.nan, np.inf, -np.inf])),
)
@settings(deadline=None)
def test_regrouped_codes_are_those_of_the_coarse_axis(edges, kept, spikes, kept_spikes, values):
    fine = BinnedAxis(sorted(edges | kept), sorted(spikes | kept_spikes))
    coarse = BinnedAxis(sorted(kept), sorted(kept_spikes))
    assert np.array_equal(regrouping(fine, coarse)[fine.index(values)], coarse.index(values))


def test_regrouped_categories_and_what_cannot_be_merged():
    assert regrouping(DiscreteAxis([0.0, 1.0, 2.0]), DiscreteAxis([0.0, 2.0])).tolist() == [0, 2, 1, 2]
    for fine, coarse in [
        (BinnedAxis([0.0]), BinnedAxis([0.5])),
        (BinnedAxis([0.0]), BinnedAxis([0.0], spikes=[1.0])),
        (DiscreteAxis([0.0]), DiscreteAxis([0.0, 1.0])),
        (BinnedAxis([]), DiscreteAxis([0.0])),
    ]:
        with pytest.raises(InputError, match="only be merged"):
            regrouping(fine, coarse)


@pytest.mark.parametrize("centres", ["x", [0.0], [0.0, "y"], [0.0, 10**400], {"a": 1}, [[0.0], [2.0]], [2.0, 0.0]])
def test_centres_of_a_broken_file_are_refused(centres):
    with pytest.raises(FileFormatError):
        Axis.from_dict({"type": "binned", "edges": [1.0], "spikes": [], "centres": centres})
