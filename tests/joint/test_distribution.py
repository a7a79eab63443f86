"""Answers: tables sum to one, and agree with the density's own probabilities."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import Dictionary, JointDensity
from jointwise.exceptions import ImpossibleEventError, InputError, RareEventWarning
from jointwise.families import Cauchy, Exponential, Gaussian, StudentT
from jointwise.joint import distribution as answers
from jointwise.joint.answers import answer
from jointwise.joint.crosstab import region_masses
from jointwise.joint.events import Interval, Point
from jointwise.joint.language import parse_question
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Schema, Variable


@pytest.fixture(scope="module")
def density():
    schema = Schema(
        (
            Variable("sex", "categorical", categories=("F", "M"), dtype="string"),
            Variable("children", "integer", dtype="int64"),
            Variable("age", "integer", dtype="int64"),
            Variable("gain", "continuous", spikes=(0.0, 5.0)),
            Variable("day", "continuous", dtype="date"),
        )
    )
    dictionaries = (
        Dictionary.categories(2),
        Dictionary.points([0, 1, 2, 3]),
        Dictionary.grid("gaussian", 30, 50, n=2, scale=8).on_lattice(),
        Dictionary.grid("gaussian", 1, 9, n=2, scale=2) + Dictionary.points([0.0, 5.0]),
        Dictionary.grid("gaussian", 19_000, 20_000, n=2, scale=90),
    )
    rng = np.random.default_rng(0)
    coefficients = [rng.dirichlet(np.ones(d.n_atoms), 3).T for d in dictionaries]
    return JointDensity(schema, ProductMixture(np.array([0.2, 0.3, 0.5]), coefficients, dictionaries))


@pytest.mark.parametrize("given", ["", " | sex=F", " | age in 30..40", " | gain > 0, children in {0, 2}"])
@pytest.mark.parametrize("name", ["sex", "children", "age", "gain", "day"])
def test_rows_sum_to_one(density, name, given):
    if name in given and "=" in given:
        pytest.skip("the variable is given one value")
    bound = parse_question(name + given, density.schema)
    rest = density.condition(bound.given)
    found = answers.distribution(rest, bound.names)
    parts, table = found.parts, found.table
    assert table.sum() == pytest.approx(1, abs=1e-9)
    assert len(set(parts[0].labels)) == len(parts[0].labels) <= 30


def test_every_row_can_be_asked_back(density):
    """The label of a row, used as a condition, has the probability of the row."""
    for name in ("sex", "children", "age"):
        found = answers.distribution(density, (name,))
        parts, table = found.parts, found.table
        for text, p in zip(parts[0].labels, table, strict=True):
            relation = "in" if ".." in str(text) else "="
            bound = parse_question(f"P({name} {relation} {text})", density.schema)
            assert density.probability(bound.asked) == pytest.approx(p, rel=1e-9)


def test_point_masses_have_rows_of_their_own(density):
    found = answers.distribution(density, ("gain",))
    parts, table = found.parts, found.table
    rows = dict(zip(parts[0].labels, table, strict=True))
    assert rows[0.0] == pytest.approx(density.probability({"gain": 0.0}))
    assert rows[5.0] == pytest.approx(density.probability({"gain": 5.0}))
    assert rows["4..<5"] == pytest.approx(density.probability({"gain": (4, 5)}) - rows[5.0])
    assert rows[">5..6"] == pytest.approx(density.probability({"gain": (5, 6)}) - rows[5.0])


def spiky(spikes, law, kind="continuous"):
    atoms = Dictionary((law,)) + Dictionary.points(spikes)
    shares = np.full((atoms.n_atoms, 1), 1 / atoms.n_atoms)
    schema = Schema((Variable("x", kind, spikes=tuple(spikes)),))
    return JointDensity(schema, ProductMixture([1.0], [shares], (atoms,)))


def beginning(label):
    """From a label: where its row begins, whether that value is excluded, and where the row ends."""
    low, _, high = str(label).partition("..")
    if not high and low.startswith("<"):
        low, high = "-inf", low
    start = float(low.lstrip(">") or "-inf")
    single = isinstance(label, float)
    return start, not single, start if single else float(high.lstrip("<") or "inf")


@given(
    st.lists(st.integers(-30, 30), min_size=1, max_size=6, unique=True),
    st.floats(0.3, 3),
    st.sampled_from([1.0, 0.1, 0.01]),
)
@settings(max_examples=25, deadline=None)
def test_rows_come_in_the_order_of_their_values_and_do_not_overlap(spikes, scale, unit):
    density = spiky(np.round(np.sort(spikes) * unit, 6).tolist(), Gaussian(1.0, scale))
    labels = answers.partition(density, "x").labels
    rows = [beginning(label) for label in labels]
    assert rows == sorted(rows)
    assert all(a[2] <= b[0] for a, b in pairwise(rows))
    assert answers.distribution(density, ("x",)).table.sum() == pytest.approx(1)


def test_a_spike_stands_before_what_is_above_it():
    assert answers.partition(spiky([1.0, 1.01], Exponential(1.0, 0.05)), "x").labels[:3] == (1.0, ">1..<1.01", 1.01)
    labels = answers.partition(spiky([1.0], Exponential(0.0, 0.19)), "x").labels
    assert labels[-3:] == ("0.9..<1", 1.0, ">1")


def test_a_spike_of_an_integer_has_a_row_of_its_own():
    wide = Dictionary.grid("gaussian", 4_000, 6_000, n=2, scale=900).on_lattice() + Dictionary.points([0])
    schema = Schema((Variable("x", "integer"),))
    density = JointDensity(schema, ProductMixture([1.0], [np.array([[0.1], [0.1], [0.8]])], (wide,)))
    found = answers.distribution(density, ("x",))
    parts, table = found.parts, found.table
    rows = dict(zip(parts[0].labels, table, strict=True))
    assert rows[0] == pytest.approx(density.probability({"x": 0}))
    assert table.sum() == pytest.approx(1)


def test_two_variables_agree_with_their_margins(density):
    found = answers.distribution(density, ("age", "sex"))
    parts, table = found.parts, found.table
    assert table.shape == tuple(len(part.labels) for part in parts)
    assert table.sum(axis=0) == pytest.approx(answers.distribution(density, ("sex",)).table)
    assert table[0, 0] != pytest.approx(table[0].sum() * table[:, 0].sum(), rel=1e-3)
    (columns,) = found.blocks(3)
    assert columns["probability"] == pytest.approx(np.sort(table.ravel())[::-1][:3])


def own_masses(mixture, n, part):
    """Mass of each row of a variable under each component, without the points that have rows of their own."""
    points = [region for region in part.regions if isinstance(region, Point)]
    return [
        region_masses(*mixture.factor(n), region)
        - sum(
            region_masses(*mixture.factor(n), point)
            for point in points
            if isinstance(region, Interval) and region.low <= point.value <= region.high
        )
        for region in part.regions
    ]


@pytest.mark.parametrize("names", [("sex", "children", "age"), ("gain", "sex"), ("age", "gain", "sex", "children")])
def test_several_variables_agree_with_a_plain_sum(density, names):
    found = answers.distribution(density, names)
    parts, table = found.parts, found.table
    mixture = density.mixture
    masses = [own_masses(mixture, density.schema.index(name), part) for name, part in zip(names, parts, strict=True)]
    for place in product(*map(range, table.shape)):
        given = [each[i] for each, i in zip(masses, place, strict=True)]
        plain = sum(mixture.weights[r] * np.prod([mass[r] for mass in given]) for r in range(mixture.n_components))
        assert table[place] == pytest.approx(plain, rel=1e-12, abs=1e-300)


def test_many_rows_come_in_blocks(density, monkeypatch):
    found = answers.distribution(density, ("age", "sex"))
    table = found.table
    (whole,) = found.blocks()
    monkeypatch.setattr(answers, "BLOCK_ROWS", 7)
    blocks = list(found.blocks())
    assert len(blocks) == -(-table.size // 7)
    assert {name: [cell for block in blocks for cell in block[name]] for name in whole} == whole


def test_dates_are_labelled_as_dates(density):
    labels = answers.partition(density, "day").labels
    assert labels[1].count("..") == 1
    assert parse_question(f"P(day in {labels[1]})", density.schema).asked


def test_zero_has_no_sign():
    assert answers.label(Variable("t", "continuous"), Interval(-0.0, 2.5)) == "0..2.5"


def test_conditional_probability_is_that_of_the_density(density):
    bound = parse_question("P(sex=F, age > 40 | gain in 1..3, children=1)", density.schema)
    expected = density.condition({"gain": (1, 3), "children": 1}).probability({"sex": "F", "age": (41, None)})
    assert density.condition(bound.given).probability(bound.asked) == pytest.approx(expected)


def test_nothing_left_and_impossible(density):
    all_given = parse_question("P(sex=F | children=1, age=30, gain=0, day=2022-01-01)", density.schema)
    assert 0 <= density.condition(all_given.given).probability(all_given.asked) <= 1
    impossible = parse_question("sex | children > 3", density.schema)
    with pytest.raises(ImpossibleEventError, match="probability zero"):
        density.condition(impossible.given)
    everything = parse_question("sex | children=1, age=30, gain=0, day=2022-01-01", density.schema).given
    with pytest.raises(InputError, match="settles every variable"):
        density.condition({**everything, **all_given.asked})


def test_summaries(density):
    assert answer(density, parse_question("age", density.schema)).summary_lines()[0].startswith("age: mean ")
    assert "median 20" in answer(density, parse_question("day", density.schema)).summary_lines()[0]


@pytest.mark.parametrize(
    ("law", "words"), [(StudentT(1.5, 3.0, 1.0), "x: mean 3, median 3, "), (Cauchy(3.0, 1.0), "x: median 3, ")]
)
def test_a_mean_is_shown_if_it_exists(law, words):
    schema = Schema((Variable("x", "continuous"),))
    density = JointDensity(schema, ProductMixture([1.0], [np.ones((1, 1))], (Dictionary((law,)),)))
    assert answer(density, parse_question("x", density.schema)).summary_lines()[0].startswith(words)


def test_almost_impossible_conditions_warn(density):
    far = parse_question("P(sex=F | age > 300)", density.schema)
    with pytest.warns(RareEventWarning, match="What is given of 'age' is next to impossible"):
        density.condition(far.given).probability(far.asked)
