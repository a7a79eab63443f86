"""Weighted sums of densities: against the sum itself, and closed under all that is asked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint.cases import cases, random_event, random_rows

from jointwise import Dictionary, JointDensity
from jointwise.datasets import hybrid
from jointwise.exceptions import InputError
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Schema, Variable


@st.composite
def sums(draw):
    """Three densities of the same variables, their weights, and the generator that goes on from there."""
    case = draw(cases(max_variables=3))
    mixture, found = case.density.mixture, []
    for n_components in (1, 2, 3):
        coefficients = [case.rng.dirichlet(np.ones(len(b)), n_components).T for b in mixture.coefficients]
        weights = case.rng.dirichlet(np.ones(n_components))
        one = ProductMixture(weights, tuple(coefficients), mixture.dictionaries)
        found.append(JointDensity(case.density.schema, one))
    return found, case.rng.dirichlet(np.ones(3)), case.rng


@settings(max_examples=30, deadline=None)
@given(sums())
def test_answers_are_those_of_the_sum(case):
    parts, weights, rng = case
    both = JointDensity.mix(parts, weights)
    rows = random_rows(rng, parts[0], 20)
    expected = sum(w * np.exp(p.mixture.logpdf(rows)) for w, p in zip(weights, parts, strict=True))
    np.testing.assert_allclose(np.exp(both.mixture.logpdf(rows)), expected, rtol=1e-9)
    event = random_event(rng, parts[0], parts[0].names)
    chances = [p.probability(event) for p in parts]
    assert both.probability(event) == pytest.approx(weights @ chances, rel=1e-9, abs=1e-15)
    assert both.n_components == 1 + 2 + 3


def test_conditioning_reweighs_the_parts_by_the_event():
    a, b = hybrid(rng=0), hybrid(rng=1)
    both, event, asked = JointDensity.mix([a, b], [1, 3]), {"x0": (0.5, 2.0)}, {"x1": (None, 0.0)}
    evidence = np.array([0.25 * a.probability(event), 0.75 * b.probability(event)])
    answers = [d.condition(event).probability(asked) for d in (a, b)]
    assert both.condition(event).probability(asked) == pytest.approx(evidence @ answers / evidence.sum())


def test_equal_weights_by_default_and_a_shared_dictionary_appears_once():
    coin = Dictionary.categories(2)
    schema = Schema((Variable("c", "categorical", categories=("h", "t"), dtype="string"),))
    one, two = (JointDensity(schema, ProductMixture([1.0], [[[p], [1 - p]]], [coin])) for p in (0.9, 0.3))
    both = JointDensity.mix([one, two])
    assert both.probability({"c": "h"}) == pytest.approx(0.6)
    assert both.mixture.dictionaries == (coin,)
    assert JointDensity.mix([one]).mixture is one.mixture


def test_the_sum_has_the_widest_ranges_and_all_spikes():
    def density(**parts):
        schema = Schema((Variable("x", "continuous", **parts),))
        return JointDensity(schema, ProductMixture([1.0], [[[1.0]]], [Dictionary.grid("gaussian", 0, 0, n=1, scale=1)]))

    both = JointDensity.mix(
        [
            density(observed=(0, 2), spikes=(1.0,), support=(0, np.inf)),
            density(observed=(-1, 1), spikes=(0.0,)),
            density(),
        ]
    )
    (variable,) = both.schema
    assert (variable.observed, variable.spikes, variable.support) == ((-1, 2), (0.0, 1.0), (-np.inf, np.inf))


def test_files_keep_a_sum(tmp_path):
    both = JointDensity.mix([hybrid(rng=0), hybrid(rng=1)], [0.2, 0.8])
    both.save(tmp_path / "both.jw")
    rows = both.sample(20, rng=0)
    np.testing.assert_array_equal(JointDensity.load(tmp_path / "both.jw").logpdf(rows), both.logpdf(rows))


@pytest.mark.parametrize(
    ("others", "weights", "message"),
    [
        ([], None, "`densities` must be a list of one or more"),
        (["x"], None, "`densities` must be a list of one or more"),
        (None, [1.0], "`weights` must be 2 numbers"),
        (None, [1.0, -1.0], "none negative"),
        (None, [0.0, 0.0], "not all zero"),
        (None, [1.0, np.inf], "`weights` must be 2 numbers"),
        (None, "ab", "`weights` must be 2 numbers"),
    ],
)
def test_wrong_sums_are_refused(others, weights, message):
    with pytest.raises(InputError, match=message):
        JointDensity.mix([hybrid(rng=0), hybrid(rng=1)] if others is None else others, weights)


def test_other_variables_are_refused():
    law = hybrid(rng=0)
    with pytest.raises(InputError, match="the same names, in the same order"):
        JointDensity.mix([law, law.marginal(["x1", "x0", "x2", "x3"])])
    as_integer = JointDensity(
        Schema((Variable("x", "integer", observed=(0, 1)),)),
        ProductMixture([1.0], [[[0.5], [0.5]]], [Dictionary.points([0.0, 1.0])]),
    )
    as_number = JointDensity(
        Schema((Variable("x", "continuous"),)),
        ProductMixture([1.0], [[[1.0]]], [Dictionary.grid("gaussian", 0, 0, n=1, scale=1)]),
    )
    with pytest.raises(InputError, match="'x' must be the same on both sides, but its kind is"):
        JointDensity.mix([as_integer, as_number])
