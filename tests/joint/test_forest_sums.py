"""Mixtures of trees beside products and Gaussian blocks in one sum, and merged with their like."""

from itertools import pairwise

import numpy as np
import pytest
from tests.joint import block_cases
from tests.joint.forest_cases import enumerated, random_forest, random_tree

import jointwise
from jointwise import JointDensity
from jointwise.dictionary import Dictionary
from jointwise.families import Gaussian, Lattice
from jointwise.joint import ClassModel, ProductMixture, WeightedSum
from jointwise.joint.classes import with_levels
from jointwise.joint.events import Interval, Point, Values
from jointwise.joint.forest import ForestMixture
from jointwise.joint.sum import mixed, parts_of
from jointwise.tables.variables import Schema, Variable

# The variables of `block_cases.mixture`.
SCHEMA = Schema((
    Variable("spiked", "continuous", spikes=(-0.5, 1.0)),
    Variable("kind", "categorical", categories=("a", "b", "c"), dtype="string"),
    Variable("count", "integer", dtype="int64"),
    Variable("bent", "continuous"),
    Variable("other", "continuous", spikes=(0.25,)),
))  # fmt: skip


def forest(seed):
    """A mixture of trees of the variables of the block."""
    rng = np.random.default_rng([seed, 7])

    def pieces(law, *cuts):
        ends = [-np.inf, *cuts, np.inf]
        return tuple(law.truncate(low, high) for low, high in pairwise(ends))

    dictionaries = [
        Dictionary(pieces(Gaussian(0.5, 2.0), -0.3, 1.7)) + Dictionary.points([-0.5, 1.0]),
        Dictionary.categories(3),
        Dictionary(tuple(map(Lattice, pieces(Gaussian(0.0, 5.0), -2.5, 3.5)))),
        Dictionary(pieces(Gaussian(0.0, 2.0), 0.4)),
        Dictionary((Gaussian([-1.0, 1.0], 0.7),)) + Dictionary.points([0.25]),
    ]
    trees = [random_tree(rng, [d.n_atoms for d in dictionaries], n_hidden=1) for _ in range(2)]
    return ForestMixture([0.4, 0.6], dictionaries, trees)


def three(seed):
    """A sum of a block, a mixture of trees and one of products, and the parts with the trees enumerated."""
    block, trees = block_cases.mixture(seed), forest(seed)
    margins = [trees.margin(n) for n in range(5)]
    flat = ProductMixture([1.0], [m.weights[:, None] for m in margins], trees.dictionaries)
    shares = np.array([0.3, 0.5, 0.2])
    return mixed([block, trees, flat], shares), mixed([block, enumerated(trees), flat], shares)


@pytest.mark.parametrize("seed", range(3))
def test_a_sum_of_three_kinds_answers_as_its_parts(seed, tmp_path):
    apart, whole = three(seed)
    assert {type(part).__name__ for part, _ in parts_of(apart)} == {"BlockMixture", "ForestMixture", "ProductMixture"}
    rng = np.random.default_rng(seed)
    rows = np.vstack([forest(seed).sample(8, rng), block_cases.mixture(seed).sample(8, rng)])
    rows[rng.random(rows.shape) < 0.3] = np.nan
    close = {"rtol": 1e-7, "atol": 1e-9}
    np.testing.assert_allclose(apart.logpdf(rows), whole.logpdf(rows), **close)
    np.testing.assert_allclose(apart.cdf(rows), whole.cdf(rows), **close)
    np.testing.assert_allclose(apart.covariance(), whole.covariance(), **close)
    for n in range(5):
        ours, theirs = apart.conditionals(n, rows), whole.conditionals(n, rows)
        np.testing.assert_allclose(ours.log_evidence, theirs.log_evidence, **close)
        np.testing.assert_allclose(ours.mean(), theirs.mean(), **close)
    event = {0: Interval(-0.7, 1.2), 1: Values((0.0, 2.0)), 4: Point(0.25)}
    later = whole.condition(event).sample(5, rng)
    np.testing.assert_allclose(apart.condition(event).logpdf(later), whole.condition(event).logpdf(later), **close)
    assert apart.log_probability({0: event[0]}) == pytest.approx(whole.log_probability({0: event[0]}), rel=1e-9)
    keep = [3, 0, 1]
    np.testing.assert_allclose(
        apart.marginal(keep).logpdf(rows[:, keep]), whole.marginal(keep).logpdf(rows[:, keep]), **close
    )
    regions = {0: [Interval(-np.inf, 0.0), Interval(0.0, np.inf)], 1: [Values((0.0,)), Values((1.0, 2.0))]}
    np.testing.assert_allclose(apart.crosstab(regions), whole.crosstab(regions), **close)
    assert not np.isnan(apart.complete(rows, rng)).any()
    density = JointDensity(SCHEMA, apart)
    density.save(tmp_path / "density")
    np.testing.assert_array_equal(jointwise.load(tmp_path / "density").mixture.logpdf(rows), apart.logpdf(rows))
    assert density.mutual_information("spiked", "kind").value >= 0
    assert density.check(density.sample(500, rng=0)).n_pairs == 10


def test_mixtures_of_the_same_dictionaries_become_one():
    a, b = forest(0), forest(1)
    both = mixed([a, b], [0.25, 0.75])
    assert isinstance(both, ForestMixture)
    assert both.n_components == 4
    rows = a.sample(9, np.random.default_rng(0))
    expected = np.logaddexp(np.log(0.25) + a.logpdf(rows), np.log(0.75) + b.logpdf(rows))
    np.testing.assert_allclose(both.logpdf(rows), expected, rtol=1e-12)
    given = WeightedSum((a, b), [0.25, 0.75]).condition({0: Interval(-1.0, 2.0), 1: Values((0.0, 1.0))})
    assert isinstance(given, ForestMixture)  # truncated in the same way, so merged again
    other = random_forest(np.random.default_rng(0), ["smooth", "label", "counts", "bins", "smooth"], 1).mixture
    assert len(parts_of(mixed([a, other], [0.5, 0.5]))) == 2


def test_a_merged_pair_of_columns_is_of_products():
    apart, _ = three(0)
    assert isinstance(apart.marginal([1]), ProductMixture)
    kinds = {type(part).__name__ for part, _ in parts_of(apart.marginal([1, 0]))}
    assert kinds == {"BlockMixture", "ProductMixture"}


def test_levels_of_a_class_are_renumbered():
    density = JointDensity(SCHEMA, forest(0))
    few = with_levels(density, "kind", np.array([0, 2]))
    assert few.schema["kind"].categories == ("a", "c")
    rows = density.condition({"kind": {"a", "c"}}).mixture.sample(9, np.random.default_rng(0))
    expected = density.condition({"kind": {"a", "c"}}).mixture.logpdf(rows)
    rows[:, 1] = rows[:, 1] // 2
    np.testing.assert_allclose(few.mixture.logpdf(rows), expected, rtol=1e-12)


def test_a_class_model_of_trees_is_written_and_read(tmp_path):
    model = ClassModel(JointDensity(SCHEMA, forest(0)), "kind")
    model.save(tmp_path / "model")
    rows = forest(0).sample(9, np.random.default_rng(0))
    table = {name: rows[:, n] for n, name in enumerate(SCHEMA.names) if name != "kind"}
    np.testing.assert_array_equal(ClassModel.load(tmp_path / "model").predict_proba(table), model.predict_proba(table))
