"""Events: what users may write, probabilities of boxes, and conditioning."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.joint.cases import PlainJoint, build, cases, random_event, random_region, random_rows, single

from jointwise.dictionary import Dictionary
from jointwise.exceptions import ImpossibleEventError, InputError, RareEventWarning, UnknownNameError
from jointwise.families import Cauchy, Exponential, Gaussian, Lattice, PointMass, Uniform
from jointwise.joint.events import AnyOf, Interval, Point, Values, common, joined, others, parse_region
from jointwise.tables.variables import Variable

FEW = settings(deadline=None, max_examples=50)

X = Variable("x", "continuous")
K = Variable("k", "integer", dtype="int64")
GRADE = Variable("grade", "categorical", categories=("low", "mid", "high"), ordered=True, dtype="string")
LABEL = Variable("label", "categorical", categories=("a", "b", "c"), dtype="string")


# ---- reading -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "given_", "expected"),
    [
        (X, 2, Point(2.0)),
        (X, np.float32(0.5), Point(0.5)),
        (X, (1, 2), Interval(1.0, 2.0)),
        (X, (None, 2), Interval(-math.inf, 2.0)),
        (X, (None, None), Interval(-math.inf, math.inf)),
        (X, (2, 2.0), Interval(2.0, 2.0)),
        (K, {3, 1}, Values((1.0, 3.0))),
        (K, frozenset({3}), Values((3.0,))),
        (GRADE, ("mid", None), Interval(1.0, math.inf)),
        (GRADE, {"high", "low"}, Values((0.0, 2.0))),
        (LABEL, "c", Point(2.0)),
        (LABEL, ["c", "a"], Values((0.0, 2.0))),
        (K, range(3), Values((0.0, 1.0, 2.0))),
        (K, np.array([4, 2]), Values((2.0, 4.0))),
        (K, pd.Series([4, 2]), Values((2.0, 4.0))),
        (K, pl.Series([4, 2]), Values((2.0, 4.0))),
        (K, [(None, 3), (9, None), 6], AnyOf((Interval(-math.inf, 3.0), Interval(9.0, math.inf), Values((6.0,))))),
        (K, [(1, 3), (4, 6)], Interval(1.0, 6.0)),
        (K, {(1, 5), (3, 8)}, Interval(1.0, 8.0)),
        (X, [(1, 2), 2], Interval(1.0, 2.0)),
        (GRADE, [(None, "low"), "high"], Values((0.0, 2.0))),
    ],
)
def test_what_a_user_writes(variable, given_, expected):
    assert parse_region(variable, given_) == expected


@pytest.mark.parametrize(
    ("variable", "given_", "error", "message"),
    [
        (X, set(), InputError, "set of values for 'x' is empty"),
        (X, (2, 1), InputError, "wrong way round"),
        (GRADE, ("high", "low"), InputError, "wrong way round"),
        (X, (1, 2, 3), InputError, r"written \(low, high\).*use a set"),
        (X, (), InputError, r"written \(low, high\)"),
        (LABEL, ("a", "b"), InputError, "without an order.*use a set of categories, such as {'a', 'b'}"),
        (X, None, InputError, r"'x' is missing \(None\).*Leave the variable out"),
        (X, math.nan, InputError, "'x' is missing"),
        (X, (math.nan, 1), InputError, "'x' is missing"),
        (X, {1.0, None}, InputError, "'x' is missing"),
        (X, "much", InputError, "takes numbers; got 'much'"),
        (X, [1, "much"], InputError, "takes numbers; got 'much'"),
        (X, [], InputError, "set of values for 'x' is empty"),
        (X, [(1, 2), (4, 3)], InputError, "wrong way round"),
        (X, [(1, 2, 3)], InputError, r"written \(low, high\)"),
        (X, np.zeros((2, 2)), InputError, "takes numbers"),
        (LABEL, "z", UnknownNameError, "category of variable 'label': 'z'.*'a', 'b', 'c'"),
        (LABEL, {"a", "z"}, UnknownNameError, "Known: 'a', 'b', 'c'"),
    ],
)
def test_what_makes_no_sense_is_refused(variable, given_, error, message):
    density = single(variable, Dictionary.categories(3) if variable.categories else Dictionary((Gaussian(0.0, 1.0),)))
    for ask in (density.probability, density.condition):
        with pytest.raises(error, match=message):
            ask({variable.name: given_})


@pytest.mark.parametrize("event", [("x", 1), [("x", 1)], "x", None, 3])
def test_an_event_is_a_mapping(event):
    density = single(X, Dictionary((Gaussian(0.0, 1.0),)))
    for ask in (density.probability, density.condition):
        with pytest.raises(InputError, match="An event is written"):
            ask(event)


# ---- probabilities ---------------------------------------------------------------------------------------


@FEW
@given(cases())
def test_probability_equals_plain_loops(case):
    density, rng = case.density, case.rng
    names = rng.choice(density.names, size=rng.integers(1, len(density.names) + 1), replace=False)
    event = random_event(rng, density, names)
    # both compute masses as differences of cdf values
    assert density.probability(event) == pytest.approx(PlainJoint(density).probability(event), rel=1e-9, abs=1e-13)


@FEW
@given(cases())
def test_the_whole_space_has_probability_one(case):
    density = case.density
    whole = {v.name: (None, None) if v.categories is None or v.ordered else set(v.categories) for v in density.schema}
    assert density.probability(whole) == pytest.approx(1.0, abs=1e-12)
    assert density.probability({}) == pytest.approx(1.0, abs=1e-12)
    assert density.probability(whole) <= 1.0


@FEW
@given(cases())
def test_law_of_total_probability(case):
    """Two closed intervals that share an end both count its point mass."""
    density, rng = case.density, case.rng
    *rest, name = density.names
    event = random_event(rng, density, rest)
    variable = density.schema[name]
    total = density.probability(event)
    if variable.categories is not None:
        parts = sum(density.probability({**event, name: c}) for c in variable.categories)
    else:
        cut = variable.decode_value(density.marginal(name).mixture.sample(1, rng)[0, 0])
        parts = density.probability({**event, name: (None, cut)}) + density.probability({**event, name: (cut, None)})
        parts -= density.probability({**event, name: cut})
    assert parts == pytest.approx(total, rel=1e-10, abs=1e-14)


@FEW
@given(cases())
def test_a_value_an_interval_of_one_point_and_a_set_of_one_are_one_event(case):
    density, rng = case.density, case.rng
    name = density.names[0]
    value = random_region(rng, density, name, shapes=("value",))
    expected = density.probability({name: value})
    assert density.probability({name: {value}}) == expected
    if density.schema[name].categories is None or density.schema[name].ordered:
        assert density.probability({name: (value, value)}) == pytest.approx(expected, rel=1e-12)


def test_intervals_are_closed():
    spiky = single(X, Dictionary((Gaussian(0.0, 1.0), PointMass(1.0))), [0.5, 0.5])
    assert spiky.probability({"x": (1.0, None)}) == pytest.approx(0.5 + 0.5 * 0.15865525393145707)
    assert spiky.probability({"x": (None, 1.0)}) == pytest.approx(0.5 + 0.5 * 0.8413447460685429)
    assert spiky.probability({"x": (1.0, 1.0)}) == 0.5
    assert spiky.probability({"x": (np.nextafter(1.0, 2.0), None)}) == pytest.approx(0.5 * 0.15865525393145707)
    counts = single(K, Dictionary.points([1, 2, 3]))
    assert counts.probability({"k": (1, 2)}) == pytest.approx(2 / 3)
    assert counts.probability({"k": (1.2, 2.9)}) == pytest.approx(1 / 3)
    grades = single(GRADE, Dictionary.categories(3))
    assert grades.probability({"grade": ("mid", "high")}) == pytest.approx(2 / 3)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_spike_at_the_lower_end_is_inside_whatever_the_sign_of_zero(zero):
    spiky = single(X, Dictionary((Uniform(-1.0, 1.0), PointMass(0.0))), [0.5, 0.5])
    assert spiky.probability({"x": (zero, None)}) == pytest.approx(0.75)
    assert spiky.probability({"x": zero}) == 0.5
    above = spiky.condition({"x": (zero, None)})
    assert above.probability({"x": 0.0}) == pytest.approx(2 / 3)
    assert above.pdf([[0.0], [0.5], [-1e-300]]).tolist() == pytest.approx([2 / 3, 1 / 3, 0.0])


def test_a_single_number_of_a_density_has_probability_zero():
    smooth = single(X, Dictionary((Gaussian(0.0, 1.0),)))
    for event in (0.0, (0.0, 0.0), {0.0, 1.0}, (math.inf, None), (None, -math.inf)):
        assert smooth.probability({"x": event}) == 0.0
    # an interval that only touches the support
    assert single(X, Dictionary((Uniform(0.0, 1.0),))).probability({"x": (1.0, 2.0)}) == 0.0


def test_far_tails_keep_their_digits():
    tail = single(X, Dictionary((Gaussian(0.0, 1.0), Exponential(0.0, 1.0, -1.0))), [1.0, 0.0])
    assert tail.probability({"x": (30.0, None)}) == pytest.approx(4.906713927148187e-198, rel=1e-12)
    assert tail.probability({"x": (30.0, 31.0)}) == pytest.approx(4.906713927147887e-198, rel=1e-9)


# ---- conditioning ----------------------------------------------------------------------------------------


@FEW
@given(cases())
def test_conditional_probability_is_a_ratio(case):
    """P(B | A) = P(A and B) / P(A), for an interval or set A, which keeps its variable."""
    density, rng = case.density, case.rng
    name = density.names[0]
    a = {name: random_region(rng, density, name, shapes=("interval", "set"))}
    assume(density.probability(a) > 1e-8)
    given_a = density.condition(a)
    assert given_a.names == density.names
    others = random_event(rng, density, density.names[1:])
    assert given_a.probability(others) == pytest.approx(
        density.probability({**a, **others}) / density.probability(a), rel=1e-8, abs=1e-14
    )
    assert given_a.probability(a) == pytest.approx(1.0, abs=1e-9)


@FEW
@given(cases())
def test_conditional_density_is_a_ratio_inside_and_zero_outside(case):
    density, rng = case.density, case.rng
    name = density.names[0]
    event = {name: random_region(rng, density, name, shapes=("interval", "set"))}
    assume(density.probability(event) > 1e-8)
    given_a = density.condition(event)
    rows = density.mixture.sample(8, rng)
    plain = PlainJoint(density)
    inside = plain.region(0, event[name])
    for row, found in zip(rows, given_a.mixture.logpdf(rows), strict=True):
        # a point mass at the cell shows whether the cell lies in the region
        cell = PlainJoint(single(density.schema[name], _point_atom(density.schema[name], row[0]))).atoms[0][0]
        if inside(cell):
            expected = plain.pdf(row) / plain.probability(event)
            assert math.exp(found) == pytest.approx(expected, rel=1e-8, abs=1e-300)
        else:
            assert found == -math.inf


def _point_atom(variable, value):
    if variable.categories is None:
        return Dictionary.points([value])
    return Dictionary.categories(len(variable.categories)).take(np.arange(len(variable.categories)) == value)


@FEW
@given(cases(min_variables=2))
def test_marginal_and_condition_commute(case):
    density, rng = case.density, case.rng
    *kept, name = density.names
    event = {name: random_region(rng, density, name)}
    part = kept[: rng.integers(1, len(kept) + 1)]
    try:
        one = density.condition(event).marginal(part)
    except ImpossibleEventError:  # a set of numbers without a point mass
        assume(condition=False)
    other = density.marginal([*part, name]).condition(event).marginal(part)
    rows = random_rows(rng, one, 6)
    np.testing.assert_allclose(one.mixture.logpdf(rows), other.mixture.logpdf(rows), rtol=1e-9, atol=1e-9)


@FEW
@given(cases(min_variables=2, max_variables=3))
def test_conditioning_twice_is_conditioning_once(case):
    """Conditions on different variables may come one after the other or together."""
    density, rng = case.density, case.rng
    *first, last = density.names
    one, two = random_event(rng, density, first, shapes=("interval", "set")), random_event(rng, density, [last])
    if not isinstance(two[last], tuple | set):
        two[last] = {two[last]}
    assume(density.probability({**one, **two}) > 1e-8)
    at_once, in_turn = density.condition({**one, **two}), density.condition(one).condition(two)
    rows = random_rows(rng, at_once, 6)
    np.testing.assert_allclose(at_once.mixture.logpdf(rows), in_turn.mixture.logpdf(rows), rtol=1e-7, atol=1e-7)


@FEW
@given(cases(kinds=("smooth", "spiky", "counts", "lattice", "inflated", "grade"), max_variables=2))
def test_intervals_intersect(case):
    density, rng = case.density, case.rng
    name = density.names[0]
    variable = density.schema[name]
    ends = np.sort(density.marginal(name).mixture.sample(4, rng)[:, 0])
    a, b, c, d = (variable.decode_value(end) for end in ends)
    assume(density.probability({name: (b, c)}) > 1e-6)
    twice = density.condition({name: (a, c)}).condition({name: (b, d)})
    once = density.condition({name: (b, c)})
    rows = random_rows(rng, density, 8)
    np.testing.assert_allclose(twice.mixture.logpdf(rows), once.mixture.logpdf(rows), rtol=1e-7, atol=1e-7)


@FEW
@given(cases())
def test_the_conditional_is_a_density_of_its_own(case):
    """The result of conditioning is a valid density."""
    density, rng = case.density, case.rng
    kept = density.names[-1]
    event = random_event(rng, density, density.names[:-1])
    event[kept] = random_region(rng, density, kept, shapes=("interval", "set"))
    try:
        answer = density.condition(event)
    except ImpossibleEventError:
        # a value where there is no point mass, or a set of such values, may be impossible
        return
    assert kept in answer.names
    assert type(answer) is type(density)
    assert answer.mixture.weights.sum() == pytest.approx(1.0)
    rows = answer.mixture.sample(10, rng)
    assert np.isfinite(answer.mixture.logpdf(rows)).all()
    assert np.isfinite(answer.marginal(kept).mixture.logpdf(rows[:, [answer.names.index(kept)]])).all()
    assert answer.probability({kept: event[kept]}) == pytest.approx(1.0, abs=1e-7)


def test_a_value_removes_its_variable_and_an_interval_keeps_it():
    gaussian = Dictionary((Gaussian([0.0, 4.0], 1.0),))
    density = build([X, K, GRADE], [gaussian, Dictionary.points([0, 1]), Dictionary.categories(3)], [0.5, 0.5],
                    [np.eye(2), np.eye(2), np.full((3, 2), 1 / 3)])  # fmt: skip
    assert density.condition({"k": 1}).names == ("x", "grade")
    assert density.condition({"k": 1}).mean()["x"] == 4.0
    assert density.condition({"k": (1, None)}).names == density.names
    assert density.condition({"k": {0, 1}, "grade": "low"}).names == ("x", "k")
    assert density.condition({}).names == density.names


def test_components_that_the_event_rules_out_are_removed():
    density = build([X, K], [Dictionary((Gaussian([0.0, 4.0], 1.0),)), Dictionary.points([0, 1])], [0.5, 0.5],
                    [np.eye(2), np.eye(2)])  # fmt: skip
    assert density.condition({"k": 1}).n_components == 1
    assert density.condition({"k": (1, 5)}).n_components == 1


@pytest.mark.parametrize(
    ("dictionary", "variable", "event"),
    [
        (Dictionary((Uniform(0.0, 1.0),)), X, (2.0, 3.0)),
        (Dictionary((Uniform(0.0, 1.0),)), X, (1.0, 3.0)),
        (Dictionary((Uniform(0.0, 1.0),)), X, {0.5}),
        (Dictionary((Gaussian(0.0, 1.0),)), X, (0.5, 0.5)),
        (Dictionary((Gaussian(0.0, 1.0), PointMass(0.0))), X, {0.5, 1.0}),
        (Dictionary((Cauchy(0.0, 1.0),)), X, (math.inf, None)),
        (Dictionary.points([1, 2]), K, (3, None)),
        (Dictionary.points([1, 2]), K, {1.5, 7}),
        (Dictionary((Lattice(Uniform(0.0, 1.0)),)), K, (1.2, 1.8)),
        (Dictionary.categories(2), GRADE, "high"),
        (Dictionary.categories(2), GRADE, ("high", None)),
        (Dictionary.categories(2), GRADE, {"high"}),
    ],
)
def test_an_impossible_event_is_refused_by_name(dictionary, variable, event):
    other = Variable("other", "continuous")
    density = build([variable, other], [dictionary, Dictionary((Gaussian(0.0, 1.0),))], [1.0],
                    [np.full((dictionary.n_atoms, 1), 1 / dictionary.n_atoms), np.ones((1, 1))])  # fmt: skip
    assert density.probability({variable.name: event}) == 0.0
    with pytest.raises(ImpossibleEventError, match=rf"What is given of '{variable.name}' has probability zero"):
        density.condition({variable.name: event})


def test_events_possible_alone_and_impossible_together():
    uniforms = Dictionary((Uniform([0.0, 5.0], [1.0, 6.0]),))
    density = build([X, Variable("y", "continuous")], [uniforms, uniforms], [0.5, 0.5], [np.eye(2), np.eye(2)])
    assert density.probability({"x": (0, 1), "y": (5, 6)}) == 0.0
    with pytest.raises(ImpossibleEventError, match="has probability zero"):
        density.condition({"x": (0, 1), "y": (5, 6)})


def test_fixing_every_variable_leaves_nothing():
    density = single(X, Dictionary((Gaussian(0.0, 1.0),)))
    with pytest.raises(InputError, match=r"settles every variable.*logpdf"):
        density.condition({"x": 1.0})


# ---- alternatives ----------------------------------------------------------------------------------------

PIECES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)).map(lambda p: (float(p[0]), float(p[0] + p[1]))))


def members(pieces):
    return {k for k in range(20) if any(low <= k <= high for low, high in pieces)}


@FEW
@given(PIECES, PIECES)
def test_sets_of_values_are_sets(a, b):
    first, second = joined(K, a), joined(K, b)
    assert members(first) == members(a)
    assert members(common(first, second)) == members(a) & members(b)
    assert members(others(K, first)) == set(range(20)) - members(a)
    for pieces in (first, others(K, first), common(first, second)):
        assert all(low <= high for low, high in pieces)
        assert all(a[1] < b[0] for a, b in pairwise(pieces))


@FEW
@given(cases())
def test_any_of_several_regions_is_their_sum(case):
    """For a number: P(x < a or x > b) = 1 - P(a <= x <= b), and conditioning on it is a ratio of probabilities."""
    density, rng = case.density, case.rng
    *rest, name = density.names
    assume(density.schema[name].categories is None)
    low, high = np.sort(density.marginal(name).mixture.sample(2, rng)[:, 0])
    assume(low < high)
    outside = [(None, np.nextafter(low, -np.inf)), (np.nextafter(high, np.inf), None)]
    p = density.probability({name: outside})
    assert p == pytest.approx(1 - density.probability({name: (low, high)}), abs=1e-9)
    assume(p > 1e-6)
    given_outside = density.condition({name: outside})
    assert given_outside.names == density.names
    assert given_outside.probability({name: outside}) == pytest.approx(1.0, abs=1e-9)
    event = random_event(rng, density, rest)
    joint = sum(density.probability({**event, name: part}) for part in outside)
    assert given_outside.probability(event) == pytest.approx(joint / p, rel=1e-7, abs=1e-10)


def test_alternatives_beside_a_single_value():
    schema = [X, K]
    dictionaries = [Dictionary((Gaussian(0.0, 1.0), Gaussian(4.0, 1.0))), Dictionary.points([1, 2, 3])]
    coefficients = [np.eye(2), np.array([[0.7, 0.1], [0.2, 0.1], [0.1, 0.8]])]
    density = build(schema, dictionaries, np.array([0.5, 0.5]), coefficients)
    left = density.condition({"x": 0.0, "k": [1, (3, 3)]})
    expected = density.condition({"x": 0.0})
    total = expected.probability({"k": {1, 3}})
    assert left.names == ("k",)
    assert left.probability({"k": 3}) == pytest.approx(expected.probability({"k": 3}) / total)


def test_impossible_alternatives_and_too_many(recwarn):
    coin = single(K, Dictionary.points([1, 2]))
    with pytest.raises(ImpossibleEventError, match="probability zero"):
        coin.condition({"k": [(5, 6), (8, 9)]})
    names = [Variable(f"k{n}", "integer") for n in range(11)]
    shares = [np.array([[0.5], [0.5]])] * 11
    many = build(names, [Dictionary.points([0, 2])] * 11, np.ones(1), shares)
    with pytest.raises(InputError, match="2,048 combinations"):
        many.probability({v.name: [(0, 0.5), (2, 3)] for v in names})


def test_a_rare_part_of_a_common_event_does_not_warn(recwarn):
    smooth = single(X, Dictionary((Gaussian(0.0, 1.0),)))
    smooth.condition({"x": [(None, 1), (30, None)]})
    assert not recwarn.list
    with pytest.warns(RareEventWarning):
        smooth.condition({"x": [(20, 21), (30, None)]})


def test_rows_as_series_lists_and_parts_of_rows():
    density = build(
        [X, LABEL], [Dictionary((Gaussian(0.0, 1.0),)), Dictionary.categories(3)], np.ones(1),
        [np.ones((1, 1)), np.array([[0.5], [0.3], [0.2]])],
    )  # fmt: skip
    whole = density.logpdf({"x": [1.0], "label": ["b"]})
    frame = pd.DataFrame({"label": ["b"], "x": [1.0]})
    for row in ({"x": 1.0, "label": "b"}, [1.0, "b"], (1.0, "b"), pd.Series({"label": "b", "x": 1.0}), frame.iloc[0]):
        assert density.logpdf(row) == pytest.approx(whole)
    assert density.pdf({"label": "b"}) == pytest.approx([0.3])
    assert density.pdf(pd.Series({"label": "b"})) == pytest.approx([0.3])
    assert density.probability(pd.Series({"label": "b", "x": np.nan})) == pytest.approx(0.3)
    assert density.condition(pd.Series({"label": "b"})).names == ("x",)
    with pytest.raises(UnknownNameError, match="did you mean 'label'"):
        density.pdf({"labl": "b"})
