"""Plain forms of unknown origin: every public ``from_dict`` reads them or raises one short FileFormatError."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.axes import Axis, BinnedAxis, DiscreteAxis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, ImpossibleEventError, InputError, UnknownNameError
from jointwise.families import Cauchy, Gaussian, Lattice, PointMass, Truncated, Uniform, family_from_dict
from jointwise.marginals import PairwiseMarginals, Profile
from jointwise.tables.variables import Schema, Variable

LONG = "n" * 1_000_000
VARIABLES = (
    Variable("pay", "continuous", spikes=(0.0,), observed=(0.0, 3.5)),
    Variable("count", "integer", dtype="int64"),
    Variable("when", "continuous", dtype="datetime[us,Europe/Paris]"),
    Variable("size", "categorical", categories=("S", "M"), ordered=True, dtype="string"),
)
DICTIONARY = Dictionary(
    (Gaussian([0.0, 1.0], 1.0), Lattice(Truncated(Cauchy(0.0, 1.0), -1.5, 3.5)), PointMass(0.0), Uniform(0.0, 1.0))
)


def small_marginals():
    data = {"x": [0, 1, 1], "job": ["cook", "cook", "nurse"]}
    schema = Profile.of(data).schema()
    return PairwiseMarginals.of(data, schema, Profile.of(data).axes(schema, n_bins=8))


def small_profile():
    empty = [None, None, None]
    data = {"x": [0.25, None, -1.0], "n": [1, 1, 2], "job": ["cook", None, "nurse"], "on": [True, True, False]}
    return Profile.of(data | {"empty": empty})


# Each reader of a plain form, with a valid form as JSON returns it.
FORMS = {
    "variable": (Variable.from_dict, VARIABLES[0].to_dict()),
    "moment": (Variable.from_dict, VARIABLES[2].to_dict()),
    "label": (Variable.from_dict, VARIABLES[3].to_dict()),
    "schema": (Schema.from_dict, Schema(VARIABLES, "pandas").to_dict()),
    "binned": (Axis.from_dict, BinnedAxis([1.0, 2.0], [0.0]).to_dict()),
    "discrete": (Axis.from_dict, DiscreteAxis([1.0, 2.0]).to_dict()),
    "dictionary": (Dictionary.from_dict, DICTIONARY.to_dict()),
    "pairs": (PairwiseMarginals.from_dict, small_marginals().to_dict()),
    "profile": (Profile.from_dict, small_profile().to_dict()),
}


def plain(tree):
    if isinstance(tree, np.ndarray):
        return tree.tolist()
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    return [plain(value) for value in tree] if isinstance(tree, list) else tree


FORMS = {name: (read, plain(form)) for name, (read, form) in FORMS.items()}

WORDS = sorted({"continuous", "integer", "categorical", "date", "datetime[s,Europe]", "datetime[us,+99:99]", "bool",
                "string", "polars", "gaussian", "truncated", "lattice", "student_t", "binned", "jointwise.pairwise",
                "\ud800", "", "nan", "inf"})  # fmt: skip
KEYS = ["name", "kind", "categories", "ordered", "spikes", "observed", "dtype", "variables", "container", "families",
        "family", "loc", "scale", "base", "low", "high", "type", "edges", "values", "format", "version", "schema",
        "axes", "counts", "n_rows", "columns", "sketch", "shift", "multiples", "labels", "declared"]  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(WORDS)
    | st.sampled_from([10**400, -(10**400), 2**63, 1e308, 5e-324])
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)


def places(tree, path=()):
    yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def replaced(tree, path, value):
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = replaced(tree[path[0]], path[1:], value)
    return copy


def read_or_refused(read, tree):
    """Return whether the form was read; anything but a short FileFormatError is a failure."""
    try:
        read(tree)
    except FileFormatError as error:
        assert len(str(error)) < 2000  # noqa: PT017  # either outcome is right
        return False
    return True


@pytest.mark.parametrize("name", FORMS)
def test_good_forms_are_read(name):
    read, good = FORMS[name]
    assert plain(read(good).to_dict()) == good


@pytest.mark.parametrize("name", FORMS)
@settings(deadline=None, max_examples=60)
@given(tree=TREES)
def test_any_tree_is_refused_in_a_sentence(name, tree):
    assert not read_or_refused(FORMS[name][0], tree)


@pytest.mark.parametrize("name", FORMS)
@settings(deadline=None, max_examples=120)
@given(data=st.data())
def test_a_good_form_with_wrong_places_is_read_or_refused(name, data):
    read, tree = FORMS[name]
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(list(places(tree))))
        tree = replaced(tree, place, data.draw(TREES))
    read_or_refused(read, tree)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    "wrong", [None, 3, "text", [], [[]], {}, 10**400, 10**5000, LONG, [LONG], {LONG: LONG}, float("nan")], ids=range(12)
)
def test_each_place_may_hold_anything(name, wrong):
    read, good = FORMS[name]
    for place in places(good):
        read_or_refused(read, replaced(good, place, wrong))
        if place and isinstance(place[-1], str):
            inner = dict(get(good, place[:-1]))
            del inner[place[-1]]
            read_or_refused(read, replaced(good, place[:-1], inner))


def get(tree, path):
    for key in path:
        tree = tree[key]
    return tree


@pytest.mark.parametrize(
    ("read", "tree"),
    [
        (Dictionary.from_dict, {}),
        (Dictionary.from_dict, {"families": 3}),
        (Dictionary.from_dict, None),
        (Dictionary.from_dict, {"families": [{"family": ["gaussian"]}]}),
        (Dictionary.from_dict, {"families": [{"family": "gaussian", "loc": 10**400, "scale": 1}]}),
        (Dictionary.from_dict, {"families": [FORMS["dictionary"][1]["families"][1] | {"base": None}]}),
        (Variable.from_dict, FORMS["variable"][1] | {"observed": [10**400, 0]}),
        (Variable.from_dict, FORMS["moment"][1] | {"dtype": "datetime[us,+99:99]"}),
        (Schema.from_dict, {"variables": [10**400], "container": "numpy"}),
        (Schema.from_dict, FORMS["schema"][1] | {"container": []}),
        (Axis.from_dict, {"type": "binned", "edges": [10**400], "spikes": []}),
        (Axis.from_dict, {"type": [], "edges": [], "spikes": []}),
        (PairwiseMarginals.from_dict, FORMS["pairs"][1] | {"n_rows": 10**400}),
        (PairwiseMarginals.from_dict, FORMS["pairs"][1] | {"counts": None}),
    ],
)
def test_what_once_leaked(read, tree):
    assert not read_or_refused(read, tree)


def nested(depth):
    tree = {"family": "gaussian", "loc": 0.0, "scale": 1.0}
    for level in range(depth):
        tree = {"family": "truncated", "base": tree, "low": -1.0 - level, "high": 1.0 + level}
    return tree


def test_families_within_families_are_bounded():
    assert family_from_dict(nested(7)) == Truncated(Gaussian(0.0, 1.0), -1.0, 1.0)
    with pytest.raises(InputError, match="nested more than 8 deep"):
        family_from_dict(nested(8))
    for depth in (8, 400, 100_000):  # far beyond what the interpreter's stack holds
        with pytest.raises(FileFormatError, match="nested more than 8 deep"):
            Dictionary.from_dict({"families": [nested(depth)]})


@settings(deadline=None, max_examples=60)
@given(tree=TREES)
def test_a_family_is_refused_with_the_errors_it_names(tree):
    for form in (tree, {"family": "truncated", "base": nested(1), "low": tree, "high": 2.0}):
        try:
            family_from_dict(form)
        except (InputError, UnknownNameError, ImpossibleEventError) as error:
            assert len(str(error)) < 2000  # noqa: PT017
