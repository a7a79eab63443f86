"""Mixtures of trees against the enumeration of all their states, for every question of the contract."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy import stats
from tests.joint.cases import random_event, random_rows
from tests.joint.forest_cases import (
    SETTLED,
    enumerated,
    random_forest,
    random_law,
    random_tree,
    state_probabilities,
    twins,
)

from jointwise import JointDensity
from jointwise.dictionary import Dictionary
from jointwise.exceptions import ImpossibleEventError, InputError
from jointwise.families import Cauchy, Gaussian
from jointwise.joint import ProductMixture, forest_reduce
from jointwise.joint import forest as forest_module
from jointwise.joint.events import Interval, Point, Values
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_messages import Messages
from jointwise.joint.forest_reduce import marginal
from jointwise.joint.forest_tree import Tree
from jointwise.joint.prediction import best_values, fill

FEW = settings(deadline=None, max_examples=40)
# Rounding: the enumeration adds up the same terms in another order.
CLOSE = {"rtol": 1e-9, "atol": 1e-13}
# Logarithms of densities below this have too few digits left for a posterior.
NEAR = -1e4


# ---- density -----------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(twins())
def test_density_and_cdf(case):
    trees, whole = case.experts
    rows = random_rows(case.rng, case.whole, 12)
    np.testing.assert_allclose(trees.logpdf(rows), whole.logpdf(rows), **CLOSE)
    np.testing.assert_allclose(trees.cdf(rows), whole.cdf(rows), **CLOSE)
    by_component = trees.component_logpdf(rows)
    assert by_component.shape == (12, trees.n_components)
    np.testing.assert_allclose(np.logaddexp.reduce(by_component, axis=1), whole.logpdf(rows), **CLOSE)
    np.testing.assert_array_equal(trees.without_impossible_cells(rows), whole.without_impossible_cells(rows))
    assert trees.logpdf(rows[:0]).shape == (0,)


@FEW
@given(twins(kinds=SETTLED))
def test_complete_rows_of_states_that_do_not_overlap(case):
    trees, whole = case.experts
    rows = whole.sample(20, case.rng)
    np.testing.assert_allclose(trees.logpdf(rows), whole.logpdf(rows), **CLOSE)
    evidence = trees._evidence(rows)
    assert all(each.all_settled for each in evidence)  # so that each edge is a lookup


def grouped(rng):
    """Six categories in two groups, which are hidden states, beside bins and another column of such categories."""
    groups = np.zeros((2, 6))
    groups[0, :2], groups[1, 2:5] = [0.3, 0.7], [0.2, 0.3, 0.5]  # no state emits the last category
    nodes, parents = [-1, 0, 1, -1, 2], [-1, 0, 1, 1, 3]
    law = [random_law(rng, rows, size) for rows, size in ((1, 2), (2, 3), (3, 2))]
    tree = Tree(nodes, parents, (law[0], groups, random_law(rng, 6, 3), random_law(rng, 6, 2), groups))
    atoms = Dictionary.categories(6)
    return ForestMixture([1.0], [atoms, Dictionary.points([0.0, 1.0, 2.0]), atoms], [tree])


def test_a_child_settles_the_state_of_a_hidden_parent():
    f = grouped(np.random.default_rng(0))
    assert set(f.trees[0].tellers) == {0, 3}
    rows = np.array(np.meshgrid([0, 2, 5, np.nan], [0, 1, np.nan], [0, 1, 4, 5, np.nan])).reshape(3, -1).T
    whole = enumerated(f)
    np.testing.assert_allclose(f.logpdf(rows), whole.logpdf(rows), **CLOSE)
    complete = rows[~np.isnan(rows).any(axis=1)]
    messages = Messages(f.trees[0], f._evidence(complete), len(complete))
    assert all(each.all_settled for each in messages.evidence)
    for n in range(3):
        ours, theirs = f.conditionals(n, rows), whole.conditionals(n, rows)
        np.testing.assert_allclose(ours.log_evidence, theirs.log_evidence, **CLOSE)
        possible = theirs.log_evidence > -np.inf
        np.testing.assert_allclose(ours.atom_weights[possible], theirs.atom_weights[possible], **CLOSE)


def test_likelihoods_far_below_the_smallest_number():
    """A state that its neighbour rules out must not drown the one that is left, however small its density."""
    atoms = Dictionary((Gaussian([0.0, 1000.0], 1.0),))
    tree = Tree([0, 1, 2], [-1, 0, 0], ([[0.5, 0.5]], np.eye(2), np.eye(2)))
    f = ForestMixture([1.0], [Dictionary.categories(2), atoms, atoms], [tree])
    x = np.array([[0.0, 1000.0, 990.0], [np.nan, 1000.0, 20.0]])
    np.testing.assert_allclose(f.logpdf(x), enumerated(f).logpdf(x), rtol=1e-12)
    assert (f.logpdf(x) < -1e5).all()


@FEW
@given(twins(max_variables=2))
def test_tables_of_densities(case):
    trees, whole = case.experts
    points = [np.unique(random_rows(case.rng, case.whole, 9, missing=0)[:, n]) for n in range(whole.n_variables)]
    np.testing.assert_allclose(trees.pdf_table(points), whole.pdf_table(points), **CLOSE)


# ---- one variable ------------------------------------------------------------------------------------------


@FEW
@given(twins())
def test_one_variable(case):
    trees, whole = case.experts
    n = int(case.rng.integers(whole.n_variables))
    dictionary, coefficients = trees.factor(n)
    assert coefficients.shape == (dictionary.n_atoms, trees.n_components)
    np.testing.assert_allclose(coefficients.sum(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(trees.margin(n).weights, whole.margin(n).weights, **CLOSE)
    means = np.where(trees.weights > 0, trees.component_means(n), 0.0)
    np.testing.assert_allclose(means @ trees.weights, whole.margin(n).mean(), rtol=1e-9, atol=1e-9)


@FEW
@given(twins())
def test_conditionals(case):
    trees, whole = case.experts
    rows = random_rows(case.rng, case.whole, 10)
    for n in range(whole.n_variables):
        ours, theirs = trees.conditionals(n, rows), whole.conditionals(n, rows)
        np.testing.assert_allclose(ours.log_evidence, theirs.log_evidence, **CLOSE)
        possible = theirs.log_evidence > NEAR
        points = random_rows(case.rng, case.whole, 10, missing=0)[:, n]
        np.testing.assert_allclose(ours.pdf(points)[possible], theirs.pdf(points)[possible], **CLOSE)
        np.testing.assert_allclose(ours.cdf(points)[possible], theirs.cdf(points)[possible], **CLOSE)
        np.testing.assert_allclose(ours.atom_weights.sum(axis=1), 1.0, rtol=1e-12)
        if case.whole.schema.variables[n].categories is None:
            np.testing.assert_allclose(ours.mean()[possible], theirs.mean()[possible], rtol=1e-8, atol=1e-8)
            median = ours.quantile(0.5)
            assert (ours.cdf(median) >= 0.5 - 1e-9)[possible].all()
            assert (ours.cdf(median - 1e-9 * (1 + abs(median))) <= 0.5 + 1e-6)[possible].all()


@settings(deadline=None, max_examples=100)
@given(twins())
def test_laws_of_gaps_are_the_conditionals(case):
    trees, _ = case.experts
    rows = random_rows(case.rng, case.whole, 8, missing=float(case.rng.choice([0.1, 0.5, 0.9])))
    met = np.zeros(rows.shape, dtype=bool)
    for n, where, law in trees.gaps(rows):
        met[where, n] = True
        one_by_one = trees.conditionals(n, rows[where])
        np.testing.assert_allclose(law.log_evidence, one_by_one.log_evidence, **CLOSE)
        x = np.linspace(-3, 3, len(where))
        np.testing.assert_allclose(law.cdf(x), one_by_one.cdf(x), **CLOSE)
    np.testing.assert_array_equal(met, np.isnan(rows))


# ---- events ------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(twins())
def test_events(case):
    trees, whole = case.experts
    event = case.whole._regions(random_event(case.rng, case.whole, case.whole.names[1:]))
    np.testing.assert_allclose(np.exp(trees.log_probability(event)), np.exp(whole.log_probability(event)), **CLOSE)
    try:
        expected = whole.condition(event)
    except ImpossibleEventError:
        with pytest.raises(ImpossibleEventError):
            trees.condition(event)
        return
    rest = trees.condition(event)
    same_answers(rest, expected, case.rng)
    boxes = {n: region for n, region in event.items() if not isinstance(region, Point)}
    if boxes:
        log_probability, rest = trees.given(boxes)
        assert log_probability == pytest.approx(trees.log_probability(boxes), rel=1e-9, abs=1e-12)


def same_answers(ours, theirs, rng):
    rows = theirs.sample(6, rng)
    np.testing.assert_allclose(ours.logpdf(rows), theirs.logpdf(rows), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.cdf(rows), theirs.cdf(rows), rtol=1e-7, atol=1e-9)


@settings(deadline=None, max_examples=60)
@given(twins(min_variables=2))
def test_any_order_of_steps_gives_the_same(case):
    """Condition on regions of two variables, one value among them or not, and take the marginal, in any order."""
    trees, whole = case.experts
    names = case.whole.names
    event = case.whole._regions(random_event(case.rng, case.whole, names[:2], shapes=("interval", "set")))
    try:
        together = whole.condition(event)
    except ImpossibleEventError:
        assume(False)
    keep = case.rng.permutation(whole.n_variables)[: case.rng.integers(1, whole.n_variables + 1)].tolist()
    for first, second in ((0, 1), (1, 0)):
        later = trees.condition({first: event[first]}).condition({second: event[second]})
        same_answers(later, together, case.rng)
        same_answers(later.marginal(keep), together.marginal(keep), case.rng)
    # a value of the last variable, before and after
    last = whole.n_variables - 1
    if last > 1:
        value = Point(float(together.sample(1, case.rng)[0, last]))
        expected = together.condition({last: value})
        same_answers(trees.condition({last: value}).condition(event), expected, case.rng)
        same_answers(trees.condition(event).condition({last: value}), expected, case.rng)
        same_answers(trees.condition({**event, last: value}), expected, case.rng)


@FEW
@given(twins(min_variables=2))
def test_chain_rule_and_total_probability(case):
    trees, whole = case.experts
    row = whole.sample(1, case.rng)
    first = trees.marginal([0])
    rest = trees.condition({0: Point(float(row[0, 0]))})
    chained = first.logpdf(row[:, :1]) + rest.logpdf(row[:, 1:])
    np.testing.assert_allclose(chained, whole.logpdf(row), rtol=1e-9, atol=1e-9)
    # a missing cell is the marginal of the rest
    without = row.copy()
    without[0, 0] = np.nan
    others = range(1, whole.n_variables)
    np.testing.assert_allclose(trees.logpdf(without), trees.marginal(others).logpdf(row[:, 1:]), **CLOSE)
    # P(B) = P(A) P(B | A) + P(not A) P(B | not A)
    cut = float(row[0, 0])
    sides = {0: [Interval(-np.inf, cut), Interval(float(np.nextafter(cut, np.inf)), np.inf)]}
    b = case.whole._regions(random_event(case.rng, case.whole, case.whole.names[1:2], shapes=("interval", "set")))
    total = 0.0
    for side, p in zip(sides[0], trees.crosstab(sides), strict=True):
        if p > 0:
            total += p * np.exp(trees.condition({0: side}).log_probability(b))
    assert total == pytest.approx(np.exp(trees.log_probability(b)), rel=1e-7, abs=1e-12)


@FEW
@given(twins())
def test_marginals(case):
    trees, whole = case.experts
    keep = case.rng.permutation(whole.n_variables)[: case.rng.integers(1, whole.n_variables + 1)].tolist()
    ours, theirs = trees.marginal(keep), whole.marginal(keep)
    same_answers(ours, theirs, case.rng)
    if len(keep) <= 2:  # of products, which answer faster
        assert isinstance(ours, ProductMixture)


@FEW
@given(twins())
def test_cross_tables(case):
    trees, whole = case.experts
    regions = {}
    for n in case.rng.permutation(whole.n_variables).tolist():
        a, b = np.sort(whole.sample(2, case.rng)[:, n])
        regions[n] = [Interval(-np.inf, a), Point(float(a)), Values((float(b),)), Interval(a, np.inf)]
    np.testing.assert_allclose(trees.crosstab(regions), whole.crosstab(regions), **CLOSE)


@FEW
@given(twins(kinds=("smooth", "counts", "bins"), min_variables=2))
def test_values_of_a_rounded_variable(case):
    """A set of rounded values is one of intervals, which may lie across bins: values need not tell their state."""
    trees, whole = case.experts
    drawn = np.round(whole.sample(3, case.rng)[:, 0])
    values = Values(tuple(np.unique(drawn).tolist()), 0.5)
    try:
        expected = whole.condition({0: values})
    except ImpossibleEventError:
        assume(False)
    same_answers(trees.condition({0: values}), expected, case.rng)
    assert trees.log_probability({0: values}) == pytest.approx(whole.log_probability({0: values}), rel=1e-9, abs=1e-12)


def test_a_value_takes_its_variable_out():
    rng = np.random.default_rng(0)
    density = random_forest(rng, ["bins", "label", "counts", "spiked bins"], 2, n_hidden=0)
    rest = density.mixture.condition({0: Point(float(density.mixture.sample(1, rng)[0, 0]))})
    assert rest.n_variables == 3
    assert all((tree.variables >= 0).all() for tree in rest.trees)  # the state is settled, so no hidden node is left
    with pytest.raises(InputError, match="one or more variables"):
        density.mixture.condition({n: Point(float(x)) for n, x in enumerate(density.mixture.sample(1, rng)[0])})
    with pytest.raises(ImpossibleEventError):
        density.mixture.condition({1: Point(7.0)})
    with pytest.raises(ImpossibleEventError):
        density.mixture.condition({2: Interval(100.0, 200.0)})
    with pytest.raises(ImpossibleEventError):
        density.mixture.condition({2: Values((0.5,))})


def test_an_event_that_no_tree_allows():
    tree = Tree([0, 1, 2], [-1, 0, 1], ([[0.5, 0.5]], np.eye(2), np.eye(2)))
    f = ForestMixture([1.0], [Dictionary.categories(2)] * 3, [tree])
    event = {0: Point(0.0), 2: Values((1.0,))}
    assert f.log_probability(event) == -np.inf
    with pytest.raises(ImpossibleEventError):
        f.condition(event)
    law = f.conditionals(1, np.array([[0.0, np.nan, 1.0], [0.0, np.nan, 0.0]]))
    np.testing.assert_array_equal(law.log_evidence, [-np.inf, np.log(0.5)])
    np.testing.assert_allclose(law.atom_weights, [[0.5, 0.5], [1.0, 0.0]])


# ---- smaller trees -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(twins(max_variables=4, kinds=("label", "counts")))
def test_reduced_trees_have_the_same_law(case):
    for tree in case.trees.mixture.trees:
        keep = case.rng.permutation(tree.n_variables)[: case.rng.integers(1, tree.n_variables + 1)].tolist()
        gone = tuple(set(range(tree.n_variables)) - set(keep))
        whole = state_probabilities(tree).sum(axis=gone) if gone else state_probabilities(tree)
        order = [sorted(keep).index(n) for n in keep]
        for most in (forest_reduce.MOST_CONTRACTED, 0):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(forest_reduce, "MOST_CONTRACTED", most)
                small = marginal(tree, keep)
            np.testing.assert_allclose(state_probabilities(small), whole.transpose(order), rtol=1e-9, atol=1e-15)
            hidden = np.flatnonzero(small.variables == -1)
            for node in hidden:  # none that could be spared
                n_neighbours = len(small.children[node]) + (small.parents[node] != -1)
                assert n_neighbours >= (3 if most else 2)
                assert small.states[node] > 1


def test_large_tables_are_not_contracted(monkeypatch):
    """A hidden node of two states between two of many keeps tables small."""
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.ones(400), 2) for _ in range(2)]
    tree = Tree([-1, 0, 1], [-1, 0, 0], ([[0.4, 0.6]], *rows))
    assert marginal(tree, [0, 1]).n_nodes == 3
    f = ForestMixture([1.0], [Dictionary.categories(400)] * 2, [tree])
    assert isinstance(f.marginal([0, 1]), ProductMixture)
    monkeypatch.setattr(forest_module, "MOST_PAIRS", 100)
    assert isinstance(f.marginal([1, 0]), ForestMixture)


# ---- moments and samples -----------------------------------------------------------------------------------


@FEW
@given(twins(max_variables=5, kinds=("smooth", "counts", "bins", "lattice")))
def test_covariance(case):
    trees, whole = case.experts
    np.testing.assert_allclose(trees.covariance(), whole.covariance(), rtol=1e-7, atol=1e-7)


def test_covariance_without_a_mean_is_missing():
    heavy = Dictionary((Cauchy(0.0, 1.0), Gaussian(1.0, 1.0)))
    tree = Tree([0, 1, 2], [-1, 0, 1], ([[0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]))
    f = ForestMixture([1.0], [Dictionary.points([0.0, 1.0]), heavy, heavy], [tree])
    found, expected = f.covariance(), enumerated(f).covariance()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.isnan(found[1]).all()
    assert found[2, 2] == pytest.approx(1.0)  # its state without a mean has no weight


def chained(rng):
    """Three trees over bins, spikes, categories and overlapping atoms, with a hidden node."""
    return random_forest(rng, ["spiked bins", "label", "smooth", "bins", "counts"], 3, n_hidden=2)


def test_samples_follow_the_law():
    """A right sampler fails with probability 1e-3 at most in all; a wrong target must fail."""
    density, other = chained(np.random.default_rng(1)), chained(np.random.default_rng(2))
    f = density.mixture
    n = 20_000
    rows = f.sample(n, np.random.default_rng(0))
    grid = {k: [Interval(-np.inf, float(np.median(rows[:, k])) - 1e-9), Interval(np.median(rows[:, k]), np.inf)]
            for k in range(5)}  # fmt: skip
    above = np.column_stack([rows[:, k] >= grid[k][1].low for k in range(5)]).astype(int)
    counts = np.zeros((2,) * 5)
    np.add.at(counts, tuple(above.T), 1)
    assert chi_square(counts, f.crosstab(grid)) > 5e-4
    assert chi_square(counts, other.mixture.crosstab(grid)) < 1e-6
    smooth = rows[:, 3]
    assert stats.kstest(smooth, lambda x: f.cdf(np.where(np.arange(5) == 3, x[:, None], np.nan))).pvalue > 2e-4
    assert stats.ttest_ind(smooth[: n // 2], smooth[n // 2 :]).pvalue > 2e-4  # in no order


def chi_square(counts, p):
    """P-value of counts of cells; cells expected less than five times are pooled."""
    expected = (p * counts.sum()).ravel()
    small = expected < 5
    observed = np.append(counts.ravel()[~small], counts.ravel()[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    used = expected > 0
    if observed[~used].any():
        return 0.0
    statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
    return float(stats.chi2.sf(statistic, max(int(used.sum()) - 1, 1)))


def test_gaps_are_drawn_together_from_their_conditional():
    """Fails with probability 1e-3 at most for a right sampler; the marginal must fail."""
    density = chained(np.random.default_rng(1))
    f = density.mixture
    seen = f.sample(1, np.random.default_rng(4))[0]
    rows = np.tile(seen, (20_000, 1))
    rows[:, [0, 2, 4]] = np.nan
    drawn = f.complete(rows, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn[:, [1, 3]], rows[:, [1, 3]])
    law = f.condition({1: Point(float(seen[1])), 3: Point(float(seen[3]))})
    cuts = [float(np.median(drawn[:, k])) for k in (0, 2, 4)]
    grid = {k: [Interval(-np.inf, c - 1e-9), Interval(c, np.inf)] for k, c in enumerate(cuts)}
    above = (drawn[:, [0, 2, 4]] >= cuts).astype(int)
    counts = np.zeros((2,) * 3)
    np.add.at(counts, tuple(above.T), 1)
    assert chi_square(counts, law.crosstab(grid)) > 1e-3
    assert chi_square(counts, f.marginal([0, 2, 4]).crosstab(grid)) < 1e-6


@FEW
@given(twins())
def test_completed_rows_keep_their_cells_and_have_density(case):
    trees, whole = case.experts
    rows = whole.sample(8, case.rng)
    known = case.rng.random(rows.shape) < 0.6
    filled = trees.complete(np.where(known, rows, np.nan), case.rng)
    np.testing.assert_array_equal(filled[known], rows[known])
    assert np.isfinite(whole.logpdf(filled)).all()
    odd = random_rows(case.rng, case.whole, 8, missing=0.4)  # some impossible
    filled = trees.complete(odd, case.rng)
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~np.isnan(odd)], odd[~np.isnan(odd)])


def test_no_rows():
    f = chained(np.random.default_rng(1)).mixture
    rng = np.random.default_rng(0)
    none = f.sample(0, rng)
    assert none.shape == f.complete(none, rng).shape == (0, 5)
    assert f.logpdf(none).shape == f.cdf(none).shape == (0,)
    assert [f.conditionals(n, none).mean().shape for n in range(5)] == [(0,)] * 5
    assert not list(f.gaps(none))
    assert not list(f.gaps(f.sample(3, rng)))


def test_blocks_of_rows_give_the_same(monkeypatch):
    whole = chained(np.random.default_rng(1)).mixture
    monkeypatch.setattr(forest_module, "MOST_LIKELIHOODS", 100)
    f = chained(np.random.default_rng(1)).mixture
    rows = f.sample(30, np.random.default_rng(0))
    rows[::2, 1] = rows[::3, 3] = np.nan
    np.testing.assert_allclose(f.logpdf(rows), whole.logpdf(rows), **CLOSE)
    np.testing.assert_allclose(f.cdf(rows), whole.cdf(rows), **CLOSE)
    np.testing.assert_allclose(f.conditionals(2, rows).mean(), whole.conditionals(2, rows).mean(), **CLOSE)
    assert np.isfinite(f.logpdf(f.complete(rows, np.random.default_rng(0)))).all()


# ---- the answers of a density ------------------------------------------------------------------------------


@settings(deadline=None, max_examples=15)
@given(twins(max_variables=3))
def test_moments_quantiles_and_modes(case):
    trees, whole = case.trees, case.whole
    for name in whole.names:
        for ours, theirs in ((trees.mean(), whole.mean()), (trees.var(), whole.var())):
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-8, atol=1e-8)
        variable = whole.schema[name]
        if variable.categories is None or variable.ordered:
            q = np.array([0.03, 0.5, 0.97])
            ours, theirs = (np.array([variable.encode_value(v) for v in d.quantile(name, q)]) for d in (trees, whole))
            cdf = whole.marginal(name).mixture.cdf(ours[:, None])
            assert (cdf >= q - 1e-9).all()
        modes = [whole.marginal(name).pdf({name: [d.mode()[name]]})[0] for d in (trees, whole)]
        assert modes[0] == pytest.approx(modes[1], rel=1e-6)


@settings(deadline=None, max_examples=10)
@given(twins(min_variables=2, max_variables=2, kinds=("smooth", "bins", "spiked bins", "counts", "label")))
def test_entropy_and_information_agree_within_their_errors(case):
    ours, theirs = case.trees.entropy(), case.whole.entropy()
    assert abs(ours.value - theirs.value) <= 5 * (ours.error + theirs.error) + 1e-9
    ours, theirs = (d.mutual_information(*d.names) for d in (case.trees, case.whole))
    assert abs(ours.value - theirs.value) <= 5 * (ours.error + theirs.error) + 1e-9


def test_information_of_categories_is_a_sum():
    density = random_forest(np.random.default_rng(0), ["label", "counts", "grade"], 2)
    whole = JointDensity(density.schema, enumerated(density.mixture))
    a, b, c = density.names
    ours, theirs = density.mutual_information(a, c), whole.mutual_information(a, c)
    assert ours.method == "sum"
    assert ours.error == 0.0
    assert ours.value == pytest.approx(theirs.value, rel=1e-9)
    ours, theirs = density.mutual_information(a, [b, c], rng=0), whole.mutual_information(a, [b, c], rng=1)
    assert abs(ours.value - theirs.value) < 5 * np.hypot(ours.error, theirs.error)


@FEW
@given(twins(min_variables=2))
def test_predictions_and_filled_gaps(case):
    trees, whole = case.trees, case.whole
    X = random_rows(case.rng, whole, 8)
    rows = whole.mixture.sample(8, case.rng)
    rows[np.isnan(X)] = np.nan
    table = {v.name: [v.decode_value(x) for x in rows[:, n]] for n, v in enumerate(whole.schema)}
    filled = trees.impute(table), whole.impute(table)
    for n, variable in enumerate(whole.schema):
        others = {name: cells for name, cells in table.items() if name != variable.name}
        ours, theirs = (d.predict(variable.name, others) for d in (trees, whole))
        if variable.categories is not None:
            shares = whole.predict_proba(variable.name, others)
            np.testing.assert_allclose(trees.predict_proba(variable.name, others), shares, rtol=1e-8, atol=1e-12)
            continue
        near = 1.0 if variable.kind == "integer" else 1e-7  # a mean half way between integers may go either way
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=near)
        columns = (np.asarray(each[:, n], dtype=float) for each in filled)
        np.testing.assert_allclose(*columns, rtol=1e-7, atol=near)


@FEW
@given(twins())
def test_impossible_rows_are_read_without_their_impossible_cells(case):
    trees, whole = case.experts
    X = random_rows(case.rng, case.whole, 8)
    for n, variable in enumerate(case.whole.schema):
        ours, theirs = (best_values(expert, n, variable.kind, X) for expert in (trees, whole))
        if variable.kind == "continuous":
            others = whole.without_impossible_cells(np.where(np.arange(X.shape[1]) == n, np.nan, X))
            near = whole.logpdf(others) > NEAR
            np.testing.assert_allclose(ours[near], theirs[near], rtol=1e-7, atol=1e-7)
        assert np.isfinite(ours).all()
    assert not np.isnan(fill(trees, case.whole.schema, X)).any()


def test_a_check_is_clean_on_samples_and_finds_another_density():
    density = chained(np.random.default_rng(1))
    whole = JointDensity(density.schema, enumerated(density.mixture))
    rows = density.sample(3000, rng=1)
    assert density.check(rows).is_clean
    independent = JointDensity(density.schema, independent_columns(density.mixture))
    assert not independent.check(rows).is_clean
    ours, theirs = (d.check(independent.sample(3000, rng=2)) for d in (density, whole))
    assert not ours.is_clean
    found = {f.question: f.model for f in ours.findings}
    same = [f for f in theirs.findings if f.question in found]
    assert same
    for f in same:
        assert found[f.question] == pytest.approx(f.model, rel=1e-7, abs=1e-9)


def independent_columns(f):
    """The same columns without any dependence."""
    margins = [f.margin(n) for n in range(f.n_variables)]
    return ProductMixture([1.0], [m.weights[:, None] for m in margins], f.dictionaries)


def test_hundreds_of_columns():
    rng = np.random.default_rng(0)
    n = 300
    dictionaries = [Dictionary.categories(2)] * n
    trees = [random_tree(rng, [2] * n, n_hidden=3, roots=0.01) for _ in range(2)]
    trees = [Tree(t.variables, t.parents, [0.9 * table + 0.1 / table.shape[1] for table in t.tables]) for t in trees]
    f = ForestMixture([0.3, 0.7], dictionaries, trees)
    rows = f.sample(50, rng)
    logs = f.logpdf(rows)
    assert np.isfinite(logs).all()
    # the chain rule through a hundred values, an interval and the rest
    known = {k: Point(float(rows[0, k])) for k in range(100)}
    rest = f.condition(known)
    expected = f.marginal(range(100)).logpdf(rows[:1, :100]) + rest.logpdf(rows[:1, 100:])
    np.testing.assert_allclose(logs[0], expected[0], rtol=1e-9)
    filled = rows.copy()
    filled[:, ::2] = np.nan
    assert not np.isnan(f.complete(filled, rng)).any()


def test_thousands_of_categories():
    """Categories in groups, which are hidden states: no answer needs a table of all pairs of categories."""
    rng = np.random.default_rng(0)
    size = 20_000
    groups = np.zeros((4, size))
    groups[np.arange(size) % 4, np.arange(size)] = rng.exponential(size=size)
    groups /= groups.sum(axis=1, keepdims=True)
    tree = Tree(
        [-1, 0, 1, 2], [-1, 0, 0, 2], (np.full((1, 4), 0.25), groups, random_law(rng, 4, 3), random_law(rng, 3, 2))
    )
    f = ForestMixture(
        [1.0], [Dictionary.categories(size), Dictionary.points([0.0, 1.0, 2.0]), Dictionary.points([0.0, 1.0])], [tree]
    )
    rows = f.sample(2000, rng)
    rows[::3, 1] = np.nan
    assert np.isfinite(f.logpdf(rows)).all()
    region = {0: Values((0.0, 4.0, 9.0)), 1: Interval(0.0, 1.0)}
    p = np.exp(f.log_probability(region))
    assert f.crosstab({n: [each] for n, each in region.items()}).item() == pytest.approx(p, rel=1e-9)
    pair = f.marginal([0, 1])
    assert isinstance(pair, ProductMixture)
    assert np.exp(pair.log_probability(region)) == pytest.approx(p, rel=1e-9)
    assert f.condition(region).n_variables == 3
    assert not np.isnan(f.complete(rows, rng)).any()
