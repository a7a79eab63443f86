"""PairwiseMarginals: counts by hand, merge laws, the file form."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.axes import BinnedAxis, DiscreteAxis
from jointwise.exceptions import FileFormatError, InputError, UnknownNameError
from jointwise.marginals import PairwiseMarginals, Profile
from jointwise.tables.variables import Schema, Variable


def random_table(n, seed=0):
    rng = np.random.default_rng(seed)
    real, whole = rng.normal(size=n), rng.integers(0, 5, n).astype(float)
    real[rng.random(n) < 0.2] = np.nan
    text = [None if hole else label for label, hole in zip(rng.choice(["a", "b"], n), rng.random(n) < 0.1, strict=True)]
    return {"real": real, "whole": whole, "text": np.array(text, dtype=object)}


def rows(data, chosen):
    return {name: values[chosen] for name, values in data.items()}


@pytest.fixture(scope="module")
def setting():
    data = random_table(300)
    profile = Profile.of(data)
    schema = profile.schema({"whole": "integer"})
    return data, schema, profile.axes(schema, 6)


@pytest.fixture
def marginals(setting):
    return PairwiseMarginals.of(*setting)


def test_counts_agree_with_loops(setting, marginals):
    data, schema, axes = setting
    codes = {"text": {"a": 0, "b": 1}}
    for first in schema.names:
        for second in schema.names:
            table = np.zeros((marginals.axes[schema.index(first)].n_bins, marginals.axes[schema.index(second)].n_bins))
            for x, y in zip(data[first], data[second], strict=True):
                if x is None or y is None or x != x or y != y:  # noqa: PLR0124  # NaN
                    continue
                places = [
                    int(axes[schema.index(name)].index([codes.get(name, {}).get(value, value)])[0])
                    for name, value in ((first, x), (second, y))
                ]
                table[*places] += 1
            np.testing.assert_array_equal(marginals.pair(first, second), table)
            np.testing.assert_array_equal(marginals.pair(first, second), marginals.pair(second, first).T)


def test_marginals_are_one_dimensional_counts(setting, marginals):
    data, _, axes = setting
    observed = data["real"][~np.isnan(data["real"])]
    np.testing.assert_array_equal(marginals.marginal("real"), np.bincount(axes[0].index(observed)))
    np.testing.assert_array_equal(marginals.marginal(0), marginals.marginal("real"))
    np.testing.assert_array_equal(marginals.marginal(-1), marginals.marginal("text"))
    assert marginals.n_rows == 300.0
    assert marginals.counts.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        marginals.counts[0, 0] = 1
    with pytest.raises(UnknownNameError, match="Known: 'real', 'whole', 'text'"):
        marginals.marginal("odd")
    with pytest.raises(IndexError):
        marginals.marginal(3)


@given(st.integers(0, 2**32), st.lists(st.integers(0, 50), max_size=4))
@settings(deadline=None, max_examples=40)
def test_any_partition_gives_the_same_counts(seed, cuts):
    data = random_table(50, seed)
    data["text"][0], data["real"][0] = "a", 0.5
    profile = Profile.of(data)
    schema = profile.schema()
    axes = profile.axes(schema, 4)
    order = np.random.default_rng(seed).permutation(50)
    parts = [PairwiseMarginals.of(rows(data, piece), schema, axes) for piece in np.split(order, sorted(cuts))]
    whole = PairwiseMarginals.of(data, schema, axes)
    empty = PairwiseMarginals.empty(schema, axes)
    assert sum(parts, empty) == whole
    assert sum(reversed(parts), empty) == whole
    assert whole + empty == empty + whole == whole


def test_integer_weights_are_repeats(setting):
    data, schema, axes = setting
    repeats = np.random.default_rng(0).integers(0, 4, 300)
    weighted = PairwiseMarginals.of(data, schema, axes, repeats)
    repeated = PairwiseMarginals.of(rows(data, np.repeat(np.arange(300), repeats)), schema, axes)
    assert weighted == repeated
    assert hash(weighted) == hash(repeated)
    assert weighted.counts.dtype == np.float64


def test_other_counts_are_not_equal(setting, marginals):
    data, schema, axes = setting
    weights = np.random.default_rng(0).random(300)
    whole = PairwiseMarginals.of(data, schema, axes, weights)
    half = [
        PairwiseMarginals.of(rows(data, part), schema, axes, weights[part]) for part in (slice(150), slice(150, None))
    ]
    np.testing.assert_allclose((half[0] + half[1]).counts, whole.counts)
    assert marginals != whole
    assert marginals != 3


def test_unequal_axes_and_schemas_do_not_add(setting, marginals):
    data, schema, axes = setting
    other = PairwiseMarginals.of(data, schema, (BinnedAxis([0.0]), *axes[1:]))
    with pytest.raises(InputError, match="axes of 'real' differ"):
        marginals + other
    with pytest.raises(InputError, match="different schemas"):
        marginals + marginals.select(["real", "whole"])


def test_selection(setting, marginals):
    data, schema, axes = setting
    chosen = marginals.select(["text", "real"])
    direct = PairwiseMarginals.of(data, schema.select(["text", "real"]), (axes[2], axes[0]))
    assert chosen == direct


def test_repr_is_short(marginals):
    assert repr(marginals) == "PairwiseMarginals(3 variables, 13 bins, 300 rows)"


def test_json_round_trip(setting, marginals):
    data, schema, axes = setting
    again = PairwiseMarginals.from_dict(json.loads(json.dumps(marginals.to_dict())))
    assert again == marginals
    assert again.counts.dtype == np.int64
    weighted = PairwiseMarginals.of(data, schema, axes, np.random.default_rng(0).random(300))
    assert PairwiseMarginals.from_dict(json.loads(json.dumps(weighted.to_dict()))) == weighted


def damaged(marginals, name):
    fields = marginals.to_dict()
    counts = np.array(fields["counts"], dtype=float)
    counts[0, 0] = {"nan": np.nan, "negative": -1.0}.get(name, counts[0, 0])
    counts[0, -1] += name == "asymmetric"
    fields["counts"] = counts.tolist()
    changes = {
        "format": {"format": "odd"},
        "version": {"version": 2},
        "shape": {"counts": [[1.0]]},
        "ragged": {"counts": [[1.0], [1.0, 2.0]]},
        "text": {"counts": [["a"]]},
        "rows": {"n_rows": -1},
        "axes": {"axes": []},
        "schema": {"schema": {}},
    }
    return fields | changes.get(name, {})


@pytest.mark.parametrize(
    "name", ["format", "version", "shape", "ragged", "text", "rows", "axes", "schema", "nan", "negative", "asymmetric"]
)
def test_damaged_files_are_refused(marginals, name):
    with pytest.raises(FileFormatError):
        PairwiseMarginals.from_dict(damaged(marginals, name))


def test_absent_fields_are_refused(marginals):
    for name in marginals.to_dict():
        fields = marginals.to_dict()
        del fields[name]
        with pytest.raises(FileFormatError):
            PairwiseMarginals.from_dict(fields)
    with pytest.raises(FileFormatError):
        PairwiseMarginals.from_dict([])


def test_codes_must_fit(setting):
    _, schema, axes = setting
    for codes in (np.full((2, 3), 99, np.uint8), np.zeros((2, 2), np.uint8), np.zeros(3, np.uint8)):
        with pytest.raises(InputError, match="`codes` must have 3 columns"):
            PairwiseMarginals.from_codes(codes, schema, axes)
    assert PairwiseMarginals.from_codes(np.zeros((0, 3), np.uint8), schema, axes) == PairwiseMarginals.empty(
        schema, axes
    )


def test_too_many_bins_are_refused_before_memory_is_taken():
    names = ("id", "x")
    schema = Schema(tuple(Variable(name, "integer") for name in names))
    axes = (DiscreteAxis(np.arange(60_000)), BinnedAxis([0.0]))
    with pytest.raises(InputError, match=r"26\.8 GiB\. Most bins: 'id' \(60000 bins\)"):
        PairwiseMarginals.empty(schema, axes)
    with pytest.raises(InputError, match="Drop such columns"):
        PairwiseMarginals.of(np.zeros((1, 2)), schema, axes)


def test_wrong_shapes_are_refused(setting):
    _, schema, axes = setting
    with pytest.raises(InputError, match="Expected 3 axes"):
        PairwiseMarginals(schema, axes[:2], np.zeros((2, 2)), 0)
    with pytest.raises(InputError, match="`counts` must have shape"):
        PairwiseMarginals(schema, axes, np.zeros((2, 2)), 0)
