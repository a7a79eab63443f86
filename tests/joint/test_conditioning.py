"""Events that are next to impossible warn, by the share of rows as far out; ordinary rows do not."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy import stats
from scipy.special import gammaincc, softmax
from tests.joint.block_cases import plain
from tests.joint.cases import cases, random_density, random_event
from tests.joint.experts import Opaque

from jointwise import Dictionary, JointDensity
from jointwise.exceptions import ImpossibleEventError, RareEventWarning
from jointwise.families import Gaussian, Uniform
from jointwise.joint import ProductMixture
from jointwise.joint.conditioning import RARE, conditioned, rarity
from jointwise.joint.crosstab import region_masses
from jointwise.joint.events import AnyOf, Interval, Point, Values
from jointwise.tables.variables import Schema, Variable


@pytest.fixture
def density():
    schema = Schema(
        (
            Variable("pay", "continuous"),
            Variable("job", "categorical", categories=("cook", "nurse", "king"), dtype="string"),
            Variable("age", "integer"),
            Variable("gain", "continuous", spikes=(0.0,)),
        )
    )
    atoms = (
        Dictionary((Gaussian([0.0, 9.0], [1.0, 2.0]),)),
        Dictionary.categories(3),
        Dictionary.grid("gaussian", 30, 50, n=2, scale=8).on_lattice(),
        Dictionary((Gaussian(100.0, 1.0),)) + Dictionary.points([0.0]),
    )
    columns = [
        np.eye(2),
        np.array([[0.5, 0.3], [0.5, 0.7], [0.0, 3e-11]]),
        np.eye(2),
        np.array([[1.0, 1 - 1e-12], [0.0, 1e-12]]),
    ]
    columns[1] /= columns[1].sum(axis=0)
    return JointDensity(schema, ProductMixture([0.5, 0.5], columns, atoms))


@pytest.mark.parametrize(
    ("event", "share"),
    [
        ({"pay": (25.0, None)}, stats.norm.sf(8) / 2),
        ({"pay": -7.0}, stats.norm.sf(7)),
        ({"job": "king"}, 4.5e-11),
        ({"job": {"king"}}, 1.5e-11),
        ({"gain": 0.0}, 5e-13),
        ({"age": 120}, stats.norm.sf((119.5 - 50) / 8)),
        ({"pay": 1e6}, 0.0),
    ],
)
def test_an_event_that_is_next_to_impossible_warns(density, event, share):
    found = rarity(density.schema, density.mixture, density._regions(event))
    assert found == pytest.approx(share, rel=1e-6)
    (name,) = event
    with pytest.warns(RareEventWarning, match=rf"given of '{name}' is next to impossible .*about .*extrapolates"):
        rest = density.condition(event)
    assert np.isfinite(rest.mixture.logpdf(rest.mixture.sample(3, np.random.default_rng(0)))).all()


@pytest.mark.parametrize(
    "event",
    [
        {}, {"pay": 3.0}, {"pay": (15, None)}, {"job": "nurse"}, {"age": (0, 10)}, {"gain": 100.3},
        {"pay": 0.0, "job": "cook", "age": 31}, {"pay": -5.0},
    ],
)  # fmt: skip
def test_other_events_do_not_warn(density, event):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        density.condition(event)


def test_parts_count_given_those_before_them(density):
    """Two parts that are ordinary alone may be rare together; against plain formulas."""
    event = {0: Point(-1.0), 2: Interval(90.0, np.inf)}
    first = density.mixture.marginal([0])
    tails = [2 * min(first.cdf(np.array([[-1.0]]))[0], 1 - first.cdf(np.array([[-1.0]]))[0])]
    given = density.mixture.condition({0: Point(-1.0)})
    tails.append(np.exp(given.log_probability({1: Interval(90.0, np.inf)})))
    slow = stats.combine_pvalues(tails, method="fisher").pvalue
    assert rarity(density.schema, density.mixture, event) == pytest.approx(slow, rel=1e-6)
    alone = rarity(density.schema, density.mixture, {2: event[2]})
    assert slow < RARE < alone


def test_a_set_is_as_rare_as_it_is_improbable(density):
    asked = Values((0.0, 1.0, 2.0))
    assert rarity(density.schema, density.mixture, {1: asked}) == pytest.approx(1)


def test_ordinary_rows_are_not_rare_however_many_cells_are_known():
    """Conditioning on all but one cell of rows that the density itself draws."""
    rng = np.random.default_rng(0)
    density = random_density(rng, ["smooth"] * 12 + ["label"] * 12, 3, "numpy")
    rows = density.mixture.sample(200, rng)
    shares = [
        rarity(density.schema, density.mixture, {n: Point(float(row[n])) for n in range(len(row) - 1)}) for row in rows
    ]
    assert min(shares) > 1e-4


def by_components(schema, mixture, event):
    """Rarity of an event under a mixture of products, from the posterior of the component after each part."""
    tails = []
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.weights)
        for n, region in event.items():
            weights, factor = softmax(log_weights), mixture.factor(n)

            def mass(of, factor=factor, weights=weights):
                return float(region_masses(*factor, of) @ weights)

            if not isinstance(region, Point):
                tails.append(mass(region))
                log_weights = log_weights + np.log(region_masses(*factor, region))
                continue
            variable = schema.variables[n]
            if variable.categories is not None:
                tails.append(len(variable.categories) * mass(region))
            elif variable.kind == "continuous" and mass(Point(region.value)) > 0:
                tails.append(mass(Point(region.value)))
            else:
                tails.append(2 * min(mass(Interval(-np.inf, region.value)), mass(Interval(region.value, np.inf))))
            log_weights = log_weights + mixture.log_conditionals(n, np.array([region.value]))[0]
    return gammaincc(len(event), -np.log(np.minimum(tails, 1.0)).sum())


@settings(deadline=None, max_examples=60)
@given(cases())
def test_rarity_equals_that_from_posteriors(case):
    density = case.density
    names = case.rng.permutation(density.names)[: case.rng.integers(1, len(density.names) + 1)]
    event = density._regions(random_event(case.rng, density, names.tolist()))
    row = np.full((1, len(density.names)), np.nan)
    for n, region in event.items():
        if isinstance(region, Point):
            row[0, n] = region.value
    assume(density.mixture.log_probability({n: r for n, r in event.items() if not isinstance(r, Point)}) > -500)
    assume(np.isfinite(density.mixture.logpdf(row))[0])
    try:
        if len(names) < len(density.names):
            density.mixture.condition(event)
    except ImpossibleEventError:
        assume(False)
    with np.errstate(invalid="ignore"):
        slow = by_components(density.schema, density.mixture, event)
    assume(np.isfinite(slow))
    assert rarity(density.schema, density.mixture, event) == pytest.approx(slow, rel=1e-6, abs=1e-12)
    hidden = rarity(density.schema, Opaque(density.mixture), event)
    assert hidden == pytest.approx(slow, rel=1e-6, abs=1e-12)


def test_an_event_beyond_all_numbers_is_as_rare_as_can_be():
    """The first part leaves one component, under which the second is impossible."""
    atoms = Dictionary((Gaussian([0.0, 10.0], 1.0),))
    bounded = Dictionary((Uniform([0.0, 5.0], [1.0, 6.0]),))
    mixture = ProductMixture([0.5, 0.5], [np.eye(2), np.eye(2)], [atoms, bounded])
    schema = Schema((Variable("a", "continuous"), Variable("b", "continuous")))
    for expert in (mixture, Opaque(mixture)):
        assert rarity(schema, expert, {0: Point(1e4), 1: Point(0.5)}) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_a_block_given_any_of_several_intervals(seed):
    """P(B | A) = sum_k P(B and A_k) / sum_k P(A_k), where columns are correlated; a point beside them goes first."""
    block = plain(seed, d=3)
    schema = Schema(tuple(Variable(name, "continuous") for name in "xyz"))
    parts = (Interval(-np.inf, -0.5), Interval(0.5, 2.0))
    _, given_any = conditioned(schema, block, {0: AnyOf(parts)})
    b = Interval(-0.3, 1.0)
    both = sum(np.exp(block.log_probability({0: part, 1: b})) for part in parts)
    total = sum(np.exp(block.log_probability({0: part})) for part in parts)
    assert np.exp(given_any.log_probability({1: b})) == pytest.approx(both / total, rel=1e-8)
    _, after_point = conditioned(schema, block, {0: AnyOf(parts), 2: Point(0.4)})
    at_point = block.condition({2: Point(0.4)})
    both = sum(np.exp(at_point.log_probability({0: part, 1: b})) for part in parts)
    total = sum(np.exp(at_point.log_probability({0: part})) for part in parts)
    assert np.exp(after_point.log_probability({1: b})) == pytest.approx(both / total, rel=1e-8)
