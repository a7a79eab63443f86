"""Answers: tables sum to one, and agree with the density's own probabilities."""

import numpy as np
import pytest

from jointwise import Dictionary, JointDensity
from jointwise.cli import answers
from jointwise.cli.language import bind, parse_question
from jointwise.exceptions import ImpossibleEventError, InputError
from jointwise.joint.events import Interval
from jointwise.joint.mixture import ProductMixture
from jointwise.variables import Schema, Variable


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
    bound = bind(parse_question(name + given), density.schema)
    rest = answers.condition(density, bound.given)
    parts, table = answers.distribution(rest, bound.names)
    assert table.sum() == pytest.approx(1, abs=1e-9)
    assert len(set(parts[0].labels)) == len(parts[0].labels) <= 30


def test_every_row_can_be_asked_back(density):
    """A row's label is a condition: with ranges of integers, and values, the probability is the same."""
    for name in ("sex", "children", "age"):
        parts, table = answers.distribution(density, (name,))
        for text, p in zip(parts[0].labels, table, strict=True):
            relation = "in" if ".." in str(text) else "="
            bound = bind(parse_question(f"P({name} {relation} {text})"), density.schema)
            assert answers.probability(density, bound.asked, {}) == pytest.approx(p, rel=1e-9)


def test_point_masses_have_rows_of_their_own(density):
    parts, table = answers.distribution(density, ("gain",))
    rows = dict(zip(parts[0].labels, table, strict=True))
    assert rows[0.0] == pytest.approx(density.probability({"gain": 0.0}))
    assert rows[5.0] == pytest.approx(density.probability({"gain": 5.0}))
    between = next(text for text in parts[0].labels if str(text).startswith("4"))
    low, high = (float(end) for end in between.split(".."))
    spikes = sum(density.probability({"gain": s}) for s in (0.0, 5.0) if low <= s <= high)
    assert rows[between] == pytest.approx(density.probability({"gain": (low, high)}) - spikes)


def test_two_variables_agree_with_their_margins(density):
    parts, table = answers.distribution(density, ("age", "sex"))
    assert table.shape == tuple(len(part.labels) for part in parts)
    assert table.sum(axis=0) == pytest.approx(answers.distribution(density, ("sex",))[1])
    assert table[0, 0] != pytest.approx(table[0].sum() * table[:, 0].sum(), rel=1e-3)
    columns = answers.combinations(("age", "sex"), parts, table, 3)
    assert columns["probability"] == pytest.approx(np.sort(table.ravel())[::-1][:3])


def test_dates_are_labelled_as_dates(density):
    labels = answers.partition(density, "day").labels
    assert labels[1].count("..") == 1
    assert bind(parse_question(f"P(day in {labels[1]})"), density.schema).asked


def test_zero_has_no_sign():
    assert answers.label(Variable("t", "continuous"), Interval(-0.0, 2.5)) == "0..2.5"


def test_conditional_probability_is_that_of_the_density(density):
    bound = bind(parse_question("P(sex=F, age > 40 | gain in 1..3, children=1)"), density.schema)
    expected = density.condition({"gain": (1, 3), "children": 1}).probability({"sex": "F", "age": (41, None)})
    assert answers.probability(density, bound.asked, bound.given) == pytest.approx(expected)


def test_nothing_left_and_impossible(density):
    all_given = bind(parse_question("P(sex=F | children=1, age=30, gain=0, day=2022-01-01)"), density.schema)
    assert 0 <= answers.probability(density, all_given.asked, all_given.given) <= 1
    impossible = bind(parse_question("sex | children > 3"), density.schema)
    with pytest.raises(ImpossibleEventError, match="probability zero"):
        answers.condition(density, impossible.given)
    everything = bind(parse_question("sex | children=1, age=30, gain=0, day=2022-01-01"), density.schema).given
    with pytest.raises(InputError, match="settle every variable"):
        answers.condition(density, {**everything, 0: next(iter(all_given.asked.values()))})


def test_summaries(density):
    assert answers.summary(density, "age").startswith("age: mean ")
    assert "median 20" in answers.summary(density, "day")
