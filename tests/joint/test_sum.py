"""Sums of experts against the one mixture of products that they equal, for every question of the contract.

The parts hide their components (`Opaque`), so nothing can be merged and every generic path is taken.
"""

from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.joint.cases import KINDS, build, random_density, random_event, random_rows, random_variable
from tests.joint.experts import Opaque
from tests.joint.twins import (
    CLOSE,
    Twins,
    check_atom_kinds,
    check_chain_rule_and_total_probability,
    check_completed_rows,
    check_conditionals,
    check_covariance,
    check_cross_tables,
    check_density_and_cdf,
    check_entropy_and_information,
    check_events,
    check_impossible_rows,
    check_laws_of_gaps,
    check_moments_and_quantiles,
    check_predictions_and_filled_gaps,
    check_tables_of_densities,
)

from jointwise import JointDensity
from jointwise.dictionary import Dictionary
from jointwise.exceptions import ImpossibleEventError, InputError
from jointwise.families import Cauchy, Gaussian, Uniform
from jointwise.joint import Expert, ProductMixture, WeightedSum, check_pairs
from jointwise.joint import product as product_module
from jointwise.joint.cells import axis_of_values
from jointwise.joint.events import Interval, Point, Values
from jointwise.joint.language import parse_question
from jointwise.joint.sum import mixed, parts_of
from jointwise.tables.variables import Schema, Variable

FEW = settings(deadline=None, max_examples=30)


def another(rng, density):
    """A density of the same variables: each has the same atoms with other coefficients, or other atoms."""
    variables, dictionaries = [], []
    for variable, own in zip(density.schema, density.mixture.dictionaries, strict=True):
        kind = variable.name.split("_")[1]
        other = random_variable(rng, variable.name, kind)
        keep = variable.categories is not None or rng.random() < 0.5
        variables.append(variable if keep else other[0])
        dictionaries.append(own if keep else other[1])
    n_components = int(rng.integers(1, 4))
    coefficients = [rng.dirichlet(np.full(d.n_atoms, 0.5), n_components).T for d in dictionaries]
    return build(variables, dictionaries, rng.dirichlet(np.ones(n_components)), coefficients)


@st.composite
def twins(draw, min_variables=1, max_variables=3, kinds=KINDS):
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=min_variables, max_size=max_variables))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first = random_density(rng, chosen, int(rng.integers(1, 4)))
    densities = [first, another(rng, first), another(rng, first)]
    shares = rng.dirichlet(np.ones(3))
    schema = reduce(Schema.joined, (d.schema for d in densities))
    products = [d.mixture for d in densities]
    apart = WeightedSum((Opaque(products[0]), Opaque(products[1]), products[2]), shares)
    whole = ProductMixture.mix(products, shares)
    return Twins(JointDensity(schema, apart), JointDensity(schema, whole), rng)


def test_the_parts_stay_apart():
    rng = np.random.default_rng(0)
    one = random_density(rng, ["smooth", "label"], 2).mixture
    both = mixed([Opaque(one), one, Opaque(one)], [0.2, 0.5, 0.3])
    assert [type(part).__name__ for part, _ in parts_of(both)] == ["Opaque", "ProductMixture", "Opaque"]
    assert not both.has_independent_components
    assert WeightedSum((one, one), [1, 1]).has_independent_components


# ---- the contract ------------------------------------------------------------------------------------------


@FEW
@given(twins())
def test_density_and_cdf(case):
    check_density_and_cdf(case)


@FEW
@given(twins(max_variables=2))
def test_tables_of_densities(case):
    check_tables_of_densities(case)


@FEW
@given(twins())
def test_one_variable(case):
    apart, whole = case.experts
    n = int(case.rng.integers(whole.n_variables))
    dictionary, coefficients = apart.factor(n)
    assert coefficients.shape == (dictionary.n_atoms, apart.n_components)
    np.testing.assert_allclose(coefficients.sum(axis=0), 1.0, rtol=1e-12)
    check_atom_kinds(apart)
    x = random_rows(case.rng, case.whole, 9, missing=0)[:, n]
    axis = axis_of_values(case.whole.schema.variables[n], x)
    np.testing.assert_allclose(  # part by part, and from `factor`
        apart.component_masses(n, axis), dictionary.mixed_masses(axis, coefficients), **CLOSE
    )
    for margin in (apart.margin(n), Expert.margin(apart, n)):  # the short way, and from `factor`
        np.testing.assert_allclose(margin.dictionary.cdf(x) @ margin.weights, whole.cdf(alone(x, n, whole)), **CLOSE)
        np.testing.assert_allclose(margin.pdf(x), whole.margin(n).pdf(x), **CLOSE)
        np.testing.assert_allclose(margin.mean(), whole.margin(n).mean(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(margin.var(), whole.margin(n).var(), rtol=1e-9, atol=1e-9)
    means = np.where(apart.weights > 0, apart.component_means(n), 0.0)
    np.testing.assert_allclose(means @ apart.weights, whole.margin(n).mean(), rtol=1e-9, atol=1e-9)
    assert apart.dictionary(n).n_atoms >= len(np.unique(whole.dictionary(n).mode()))


def alone(x, n, expert):
    rows = np.full((len(x), expert.n_variables), np.nan)
    rows[:, n] = x
    return rows


@FEW
@given(twins())
def test_conditionals(case):
    check_conditionals(case)


@FEW
@given(twins(max_variables=4))
def test_laws_of_gaps_are_the_conditionals(case):
    rows = random_rows(case.rng, case.whole, 8, missing=0.5)
    for expert in case.experts:
        check_laws_of_gaps(expert, rows)


@FEW
@given(twins())
def test_events(case):
    check_events(case)


@FEW
@given(twins(min_variables=2))
def test_the_order_of_conditions_does_not_matter(case):
    apart, _ = case.experts
    event = case.whole._regions(random_event(case.rng, case.whole, case.whole.names[:2], shapes=("interval", "set")))
    try:
        together = apart.condition(event)
    except ImpossibleEventError:
        assume(False)
    rows = together.sample(5, case.rng)
    for first, second in ((0, 1), (1, 0)):
        later = apart.condition({first: event[first]}).condition({second: event[second]})
        np.testing.assert_allclose(later.logpdf(rows), together.logpdf(rows), rtol=1e-7, atol=1e-9)


@FEW
@given(twins(min_variables=2))
def test_chain_rule_and_total_probability(case):
    check_chain_rule_and_total_probability(case)


@FEW
@given(twins())
def test_cross_tables(case):
    check_cross_tables(case)


@FEW
@given(twins(kinds=("smooth", "spiky", "counts", "lattice", "label")))
def test_covariance_is_that_of_the_whole(case):
    check_covariance(case)


def test_samples_follow_the_cdf():
    """A right sampler fails with probability 1e-4 at most; a wrong target must fail."""
    a, b = (ProductMixture([1.0], [np.ones((1, 1))] * 2, [Dictionary((Gaussian(m, 1.0),))] * 2) for m in (-2.0, 2.0))
    both = WeightedSum((Opaque(a), Opaque(b)), [0.3, 0.7])
    rows = both.sample(20_000, np.random.default_rng(0))
    assert stats.kstest(rows[:, 0], lambda x: both.cdf(np.column_stack([x, np.full(len(x), np.nan)]))).pvalue > 1e-4
    assert stats.kstest(rows[:, 0], lambda x: a.cdf(np.column_stack([x, np.full(len(x), np.nan)]))).pvalue < 1e-4
    # rows come in no order
    assert stats.ttest_ind(rows[:10_000, 0], rows[10_000:, 0]).pvalue > 1e-4
    together = int(((rows > 0).all(axis=1)).sum())
    p = float(np.exp(both.log_probability({0: Interval(0, np.inf), 1: Interval(0, np.inf)})))
    assert stats.binomtest(together, len(rows), p).pvalue > 1e-4


def test_gaps_are_drawn_from_the_conditional():
    """Fails with probability 1e-4 for a right sampler; the marginal must fail."""
    a, b = (ProductMixture([1.0], [np.ones((1, 1))] * 3, [Dictionary((Gaussian(m, 1.0),))] * 3) for m in (-2.0, 2.0))
    both = WeightedSum((Opaque(a), Opaque(b)), [0.3, 0.7])
    rows = np.tile([0.1, np.nan, np.nan], (20_000, 1))
    drawn = both.complete(rows, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn[:, 0], 0.1)
    law = both.condition({0: Point(0.1)})
    assert stats.kstest(drawn[:, 1], lambda x: law.cdf(np.column_stack([x, np.full(len(x), np.nan)]))).pvalue > 1e-4
    whole = both.marginal([1, 2])
    assert stats.kstest(drawn[:, 1], lambda x: whole.cdf(np.column_stack([x, np.full(len(x), np.nan)]))).pvalue < 1e-4
    positive = int((drawn[:, 1:] > 0).all(axis=1).sum())
    p = float(np.exp(law.log_probability({0: Interval(0, np.inf), 1: Interval(0, np.inf)})))
    assert stats.binomtest(positive, len(rows), p).pvalue > 1e-4


@FEW
@given(twins(max_variables=4))
def test_completed_rows_keep_their_cells_and_have_density(case):
    check_completed_rows(case)


# ---- the answers of a density --------------------------------------------------------------------------------


@settings(deadline=None, max_examples=15)
@given(twins(max_variables=2))
def test_moments_and_quantiles(case):
    check_moments_and_quantiles(case)


@settings(deadline=None, max_examples=15)
@given(twins(max_variables=2, kinds=("smooth", "spiky", "counts", "label")))
def test_entropy_and_information_agree_within_their_errors(case):
    check_entropy_and_information(case)


def test_entropy_of_many_variables_is_sampled():
    rng = np.random.default_rng(5)
    first = random_density(rng, ["smooth", "label", "counts"], 3)
    second = another(rng, first)
    apart = JointDensity(first.schema, WeightedSum((Opaque(first.mixture), second.mixture), [0.5, 0.5]))
    whole = JointDensity.mix([first, second])
    ours, theirs = apart.entropy(rng=0), whole.entropy(rng=1)
    assert ours.method == "monte carlo"
    assert abs(ours.value - theirs.value) < 5 * np.hypot(ours.error, theirs.error)
    a, b = apart.names[0], list(apart.names[1:])
    ours, theirs = apart.mutual_information(a, b, rng=0), whole.mutual_information(a, b, rng=1)
    assert abs(ours.value - theirs.value) < 5 * np.hypot(ours.error, theirs.error)


@FEW
@given(twins(min_variables=2))
def test_predictions_and_filled_gaps(case):
    check_predictions_and_filled_gaps(case)


@FEW
@given(twins())
def test_impossible_rows_are_read_without_their_impossible_cells(case):
    check_impossible_rows(case)


def test_a_part_without_a_mean_gives_the_median():
    heavy = ProductMixture([1.0], [np.ones((1, 1))], [Dictionary((Cauchy(0.0, 1.0),))])
    light = ProductMixture([1.0], [np.ones((1, 1))], [Dictionary((Uniform(0.0, 1.0),))])
    density = JointDensity(Schema((Variable("x", "continuous"),)), WeightedSum((Opaque(heavy), light), [0.5, 0.5]))
    median = density.predict("x", {"x": [None]})[0]
    assert density.cdf({"x": [median]})[0] == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(3))
def test_a_check_finds_what_it_finds_in_the_whole(seed):
    """Shares of sets, alone and given another column, are those of the whole; means under conditions are left out."""
    rng = np.random.default_rng(seed)
    first = random_density(rng, ["smooth", "label", "counts", "spiky", "grade"], 3)
    second = another(rng, first)
    schema = first.schema.joined(second.schema)
    whole = JointDensity.mix([first, second], [0.4, 0.6])
    apart = JointDensity(schema, WeightedSum((Opaque(first.mixture), second.mixture), [0.4, 0.6]))
    assert apart.check(whole.sample(2000, rng=1)).is_clean
    ours, theirs = (d.check(first.sample(4000, rng=1)) for d in (apart, whole))
    assert ours.n_pairs == theirs.n_pairs == 10
    assert not ours.is_clean
    found = {f.question: f for f in ours.findings}
    same = [f for f in theirs.findings if f.question in found]
    assert len(same) >= len(ours.findings) / 2
    for f in same:
        assert found[f.question].model == pytest.approx(f.model, rel=1e-7, abs=1e-9)
    assert not any(f.question.startswith("E[") and "|" in f.question for f in ours.findings)


def test_every_answer_under_a_condition_is_compared_in_the_check():
    """The probabilities that the check takes from tables are those that the density gives to the questions."""
    rng = np.random.default_rng(7)
    first = random_density(rng, ["smooth", "grade", "lattice"], 3)
    second = another(rng, first)
    apart = JointDensity(first.schema, WeightedSum((Opaque(first.mixture), Opaque(second.mixture)), [0.5, 0.5]))
    for finding in apart.check(first.sample(4000, rng=1)).findings:
        if finding.question.startswith("P(") and "without" not in finding.question:
            asked = parse_question(finding.question, apart.schema)
            answer = apart.condition(asked.given).probability(asked.asked)
            assert finding.model == pytest.approx(answer, rel=1e-5, abs=1e-8)


# ---- building sums ---------------------------------------------------------------------------------------------

COIN = Dictionary.categories(2)


def coin(p):
    return ProductMixture([1.0], [[[p], [1 - p]]], [COIN])


def test_sums_flatten_merge_and_drop():
    a, b, c = Opaque(coin(0.1)), Opaque(coin(0.2)), coin(0.3)
    inner = mixed([a, c], [0.5, 0.5])
    both = mixed([inner, b, coin(0.9), Opaque(coin(0.7))], [0.5, 0.25, 0.25, 0.0])
    assert [type(part) for part, _ in parts_of(both)] == [Opaque, ProductMixture, Opaque]
    np.testing.assert_allclose([share for _, share in parts_of(both)], [0.25, 0.5, 0.25])
    np.testing.assert_allclose(both.weights, [0.25, 0.25, 0.25, 0.25])
    assert np.exp(both.logpdf(np.array([[0.0]])))[0] == pytest.approx(0.25 * (0.1 + 0.3 + 0.2 + 0.9))
    assert mixed([a, b], [1, 0]) is a
    assert mixed([a, a], [1, 3]) is a


def test_a_condition_reweighs_the_parts_and_drops_those_without_evidence():
    def law(p, low):
        atoms = [COIN, Dictionary((Uniform(low, low + 1),))]
        return ProductMixture([1.0], [[[p], [1 - p]], [[1.0]]], atoms)

    both = mixed([Opaque(law(0.2, 0.0)), Opaque(law(0.6, 0.5)), Opaque(law(0.5, 7.0))], [0.5, 0.25, 0.25])
    rest = both.condition({1: Point(0.7)})
    np.testing.assert_allclose([share for _, share in parts_of(rest)], [2 / 3, 1 / 3])
    assert isinstance(both.condition({1: Interval(0.0, 0.4)}), Opaque)
    with pytest.raises(ImpossibleEventError):
        both.condition({1: Interval(3.0, 4.0)})
    with pytest.raises(ImpossibleEventError):
        both.condition({0: Values((5.0,)), 1: Point(0.7)})


def test_a_very_large_sum_of_products_is_not_merged(monkeypatch):
    a, b = (random_density(np.random.default_rng(seed), ["smooth", "counts"], 3) for seed in (0, 1))
    whole = JointDensity.mix([a, b])
    monkeypatch.setattr(product_module, "MOST_MERGED", 10)
    apart = JointDensity.mix([a, b])
    assert isinstance(apart.mixture, WeightedSum)
    assert apart.mixture.has_independent_components
    rows = whole.sample(20, rng=0)
    np.testing.assert_allclose(apart.logpdf(rows), whole.logpdf(rows), rtol=1e-10)
    assert apart.check(rows).findings == whole.check(rows).findings


@pytest.mark.parametrize(
    ("experts", "shares", "message"),
    [
        ((), (), "one or more experts"),
        ((coin(0.5), ProductMixture([1.0], [[[0.5], [0.5]]] * 2, [COIN] * 2)), (1, 1), "of the same variables"),
        ((coin(0.5), coin(0.4)), (1,), "must be 2 numbers"),
        ((coin(0.5), coin(0.4)), (-1, 2), "none negative"),
        ((coin(0.5), coin(0.4)), (0, 2), "must be positive"),
    ],
)
def test_sums_that_make_no_sense_are_refused(experts, shares, message):
    with pytest.raises(InputError, match=message):
        WeightedSum(experts, shares)


def test_where_a_part_has_a_point_mass_the_density_of_the_others_counts_as_zero():
    spiked = Dictionary((Gaussian(0.0, 1.0),)) + Dictionary.points([0.5])
    a = ProductMixture([1.0], [[[0.5], [0.5]]], [spiked])
    b = ProductMixture([1.0], [[[1.0]]], [Dictionary((Gaussian(0.0, 1.0),))])
    both = WeightedSum((Opaque(a), Opaque(b)), [0.4, 0.6])
    assert np.exp(both.logpdf(np.array([[0.5]])))[0] == pytest.approx(0.2)
    assert both.pdf_table([np.array([0.5])])[0] == pytest.approx(0.2)
    assert both.conditionals(0, np.array([[np.nan]])).pdf(np.array([0.5]))[0, 0] == pytest.approx(0.2)
    assert np.exp(both.log_probability({0: Point(0.5)})) == pytest.approx(0.2)


# ---- wide tables -----------------------------------------------------------------------------------------------------


def test_pairs_of_a_wide_table_are_drawn(monkeypatch):
    monkeypatch.setattr(check_pairs, "MOST_TABLES", 12)
    density = random_density(np.random.default_rng(0), ["label"] * 6, 2)
    opaque = JointDensity(density.schema, Opaque(density.mixture))
    assert 6 <= opaque.check(density.sample(300, rng=0), rng=0).n_pairs <= 12


def test_pairs_are_all_pairs_where_there_are_few():
    density = random_density(np.random.default_rng(0), ["label"] * 4, 2)
    opaque = JointDensity(density.schema, Opaque(density.mixture))
    assert opaque.check(density.sample(300, rng=0), rng=0).n_pairs == len(list(combinations(range(4), 2)))
