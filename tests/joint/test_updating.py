"""Densities that go on with new rows: EM steps against plain loops, and what they must and must not change."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from tests.joint import block_cases
from tests.joint.cases import build
from tests.joint.forest_cases import random_forest

from jointwise import JUPAD, GaussianBlocks, JointDensity, JointEstimator
from jointwise.datasets import hybrid
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, UnseenCategoryWarning
from jointwise.joint.product import ProductMixture
from jointwise.joint.sum import mixed, parts_of
from jointwise.joint.updating import LEAST_ROWS, step, updated
from jointwise.tables.gaps import gap_variable
from jointwise.tables.variables import Variable

seeds = st.integers(0, 10_000)


def product_mixture(seed, F=3):
    rng = np.random.default_rng(seed)
    atoms = (Dictionary.grid("gaussian", -1, 1, n=4, scale=0.6) + Dictionary.points([0.5]), Dictionary.categories(3))
    return ProductMixture(rng.dirichlet(np.ones(F)), [rng.dirichlet(np.ones(d.n_atoms), F).T for d in atoms], atoms)


def rows_of(f, seed, n=40):
    return block_cases.rows(f, seed, n)


# ---- one step against plain loops --------------------------------------------------------------------------------


def slow_product_step(old, f, X, weight):
    """Counts row by row, component by component and atom by atom."""
    totals, counts = np.zeros(len(f.weights)), [np.zeros(b.shape) for b in f.coefficients]
    for x in X:
        each = np.array(f.weights)
        laws = []
        for v, b, d in zip(x, f.coefficients, f.dictionaries, strict=True):
            laws.append(None if np.isnan(v) else d.pdf([v])[0][:, None] * b)
            each = each if laws[-1] is None else each * laws[-1].sum(axis=0)
        each = each / each.sum()
        totals += each
        for n, law in enumerate(laws):
            if law is not None:
                counts[n] += each * law / law.sum(axis=0)
    before = np.maximum(weight * old.weights, LEAST_ROWS)
    sums = [count + before * b for count, b in zip(counts, old.coefficients, strict=True)]
    return (totals + weight * old.weights) / (len(X) + weight), [s / s.sum(axis=0) for s in sums]


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_a_step_of_products_is_that_of_plain_loops(seed):
    old, now = product_mixture(seed), product_mixture(seed + 1)
    X = rows_of(now, seed)
    _, ((found, share),) = step([(old, 1.0)], [(now, 1.0)], X, 50.0)
    weights, coefficients = slow_product_step(old, now, X, 50.0)
    assert share == pytest.approx(1)
    np.testing.assert_allclose(found.weights, weights)
    for a, b in zip(found.coefficients, coefficients, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def slow_block_step(old, f, X, weight):
    """Moments row by row: for each component, and each of what its integers at a spike may be."""
    block = f.block
    F, d = block.means.shape
    totals, first, second = np.zeros(F), np.zeros((F, d)), np.zeros((F, d, d))
    spikes = [np.zeros((1 + len(s), F)) for s in block.spikes]
    for row in X:
        x, terms = row[list(f.columns)], []
        for r in range(F):
            outside = f.weights[r]
            for n, b, atoms in zip(f.others, f.coefficients, f.dictionaries, strict=True):
                outside *= 1.0 if np.isnan(row[n]) else atoms.pdf([row[n]])[0] @ b[:, r]
            options = []
            for c, v in enumerate(x):
                at = [("spike", k) for k, s in enumerate(block.spikes[c]) if s == v]
                number = [("number", 0)] if not at or block.whole[c] else []
                options.append([("missing", 0)] if np.isnan(v) else at + number)
            for choice in product(*options):
                value, seen = outside, [c for c, (kind, _) in enumerate(choice) if kind == "number"]
                for c, (kind, k) in enumerate(choice):
                    if kind == "spike":
                        value *= block.spike_weights[c][k, r]
                    elif kind == "number":
                        value *= (1 - block.spike_weights[c][:, r].sum()) * np.exp(block.warps[c].log_slope(x[c]))
                z = np.array([float(block.warps[c](x[c])) for c in seen])
                sigma = block.covariances[r]
                if seen:
                    value *= multivariate_normal.pdf(z, block.means[r, seen], sigma[np.ix_(seen, seen)])
                terms.append((value, r, choice, seen, z))
        whole = sum(value for value, *_ in terms)
        for value, r, choice, seen, z in terms:
            p, mu, sigma = value / whole, block.means[r], block.covariances[r]
            totals[r] += p
            gone = [c for c in range(d) if c not in seen]
            mean, left = mu.copy(), sigma.copy()
            if seen:
                gain = sigma[np.ix_(gone, seen)] @ np.linalg.inv(sigma[np.ix_(seen, seen)])
                mean[seen], mean[gone] = z, mu[gone] + gain @ (z - mu[seen])
                left = np.zeros((d, d))
                left[np.ix_(gone, gone)] = sigma[np.ix_(gone, gone)] - gain @ sigma[np.ix_(seen, gone)]
            first[r] += p * mean
            second[r] += p * (np.outer(mean, mean) + left)
            for c, (kind, k) in enumerate(choice):
                if kind != "missing":
                    spikes[c][1 + k if kind == "spike" else 0, r] += p
    before = np.maximum(weight * old.weights, LEAST_ROWS)
    means, covariances = np.zeros((F, d)), np.zeros((F, d, d))
    for r in range(F):
        n, mu = totals[r] + before[r], old.block.means[r]
        means[r] = (first[r] + before[r] * mu) / n
        whole = second[r] + before[r] * (old.block.covariances[r] + np.outer(mu, mu))
        covariances[r] = whole / n - np.outer(means[r], means[r])
    shares = [
        (counts[1:] + before * s) / (counts.sum(axis=0) + before)
        for counts, s in zip(spikes, old.block.spike_weights, strict=True)
    ]
    return means, covariances, shares


@pytest.mark.parametrize("seed", range(4))
def test_a_step_of_blocks_is_that_of_plain_loops(seed):
    old = block_cases.mixture(seed)
    X = rows_of(old, seed, 25)
    _, ((now, _),) = step([(old, 1.0)], [(old, 1.0)], X, 60.0)  # a place that is not the old one
    _, ((found, _),) = step([(old, 1.0)], [(now, 1.0)], X, 60.0)
    means, covariances, spikes = slow_block_step(old, now, X, 60.0)
    np.testing.assert_allclose(found.block.means, means, rtol=1e-8)
    np.testing.assert_allclose(found.block.covariances, covariances, rtol=1e-7, atol=1e-9)
    for a, b in zip(found.block.spike_weights, spikes, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


# ---- the objective -----------------------------------------------------------------------------------------------


def old_rows_log_likelihood(old, new, weight):
    """What the rows that the old mixture counts for have as expected log-likelihood under the new one."""
    before = np.maximum(weight * old.weights, LEAST_ROWS)
    total = weight * old.weights @ np.log(new.weights)
    for a, b in zip(old.coefficients, new.coefficients, strict=True):
        total += (before * np.where(a > 0, a * np.log(np.maximum(b, 1e-300)), 0.0)).sum()
    if isinstance(old, ProductMixture):
        return total
    for a, b in zip(old.block.spike_weights, new.block.spike_weights, strict=True):
        for p, q in ((a, b), (1 - a.sum(axis=0), 1 - b.sum(axis=0))):
            total += (before * p * np.log(np.maximum(q, 1e-300))).sum()
    for r, n in enumerate(before):
        inverse = np.linalg.inv(new.block.covariances[r])
        away = old.block.means[r] - new.block.means[r]
        quadratic = np.trace(inverse @ old.block.covariances[r]) + away @ inverse @ away
        total -= n * (np.linalg.slogdet(new.block.covariances[r])[1] + quadratic) / 2
    return total


@pytest.mark.parametrize("kind", ["product", "block"])
@pytest.mark.parametrize("seed", range(3))
def test_no_step_lowers_the_objective(kind, seed):
    old = product_mixture(seed) if kind == "product" else block_cases.mixture(seed)
    X = rows_of(product_mixture(seed + 7) if kind == "product" else block_cases.mixture(seed + 7), seed, 60)
    X = old.without_impossible_cells(X)
    parts, last = [(old, 1.0)], -np.inf
    for _ in range(12):
        now = parts[0][0]
        likelihood, parts = step([(old, 1.0)], parts, X, 80.0)
        objective = likelihood + old_rows_log_likelihood(old, now, 80.0)
        assert objective >= last - 1e-9 * abs(objective)
        last = objective


# ---- what an update does -----------------------------------------------------------------------------------------


def test_a_density_that_counts_for_very_many_rows_stays():
    for old in (product_mixture(0), block_cases.mixture(0)):
        X = rows_of(old, 1)
        np.testing.assert_allclose(updated(old, X, 1e12).logpdf(X), old.logpdf(X), atol=1e-6)


def test_many_new_rows_take_over():
    old, new = hybrid(rng=0), hybrid(rng=3)
    rows, others = new.sample(4000, rng=0), new.sample(2000, rng=1)
    scores = [old.logpdf(others).mean()]
    scores += [old.updated(rows, weight=weight).logpdf(others).mean() for weight in (40_000, 4000, 400)]
    assert np.all(np.diff(scores) > 0)
    assert np.mean(new.logpdf(others)) - scores[-1] < 0.5 * (np.mean(new.logpdf(others)) - scores[0])


def test_the_order_of_rows_does_not_matter_and_no_rows_change_nothing():
    old = hybrid(rng=0)
    rows = old.sample(300, rng=0)
    a, b = old.updated(rows, 100), old.updated(rows[::-1], 100)
    np.testing.assert_allclose(a.logpdf(rows), b.logpdf(rows))
    assert old.updated(rows[:0], 100) is old


def test_weights_of_experts_in_a_sum_are_updated():
    a, b = hybrid(rng=0), hybrid(rng=1)
    both = JointDensity.mix([a, b], [0.5, 0.5]).mixture
    X = a.sample(500, rng=0)
    (_, first), (_, second) = parts_of(updated(mixed_apart(a, b), X, 100.0))
    assert first > 0.8 > second
    assert updated(both, X, 100.0).n_variables == both.n_variables


def mixed_apart(a, b):
    """A sum of a product and a tree mixture, which cannot be merged."""
    forest = random_forest(np.random.default_rng(0), ["smooth"] * 4, 2).mixture
    assert forest.n_variables == a.mixture.n_variables == b.mixture.n_variables
    return mixed([a.mixture, forest], [0.5, 0.5])


def test_of_trees_the_weights_are_updated():
    f = random_forest(np.random.default_rng(3), ["smooth", "label", "counts"], 3).mixture
    X = f.sample(200, np.random.default_rng(0))
    g = updated(f, X, 50.0)
    assert g.trees == f.trees
    assert g.logpdf(X).mean() > f.logpdf(X).mean()
    assert not np.allclose(g.weights, f.weights)


def test_a_stack_goes_on():
    rng = np.random.default_rng(0)

    def table(n, shift):
        a = rng.normal(size=n) + shift
        return {"a": a, "b": a + 0.3 * rng.normal(size=n), "c": np.where(a + rng.normal(size=n) > shift, "x", "y")}

    first, later, others = table(500, 0.0), table(300, 1.0), table(500, 1.0)
    experts = [("jupad", JUPAD(4)), ("blocks", GaussianBlocks("none", n_components=2))]
    old = JointEstimator(experts, random_state=0).fit(first).density_
    new = old.updated(later, weight=100)
    assert new.logpdf(others).mean() > old.logpdf(others).mean() + 0.2
    assert new.schema["a"].observed[1] >= max(first["a"].max(), later["a"].max())
    assert new.names == old.names
    assert new.verdict == ""  # what a check said of the old rows


def test_gaps_go_on():
    gap = gap_variable("a missing", "a")
    f = build(
        [Variable("a", "continuous"), gap],
        [Dictionary.grid("gaussian", 0, 1, n=2, scale=1.0), Dictionary.categories(2)],
        [1.0],
        [[[0.5], [0.5]], [[0.9], [0.1]]],
        "dict",
    )
    g = f.updated({"a": [0.5, None] * 100}, weight=200)
    assert g.probability({"a": None}) == pytest.approx((0.1 * 200 + 100) / 400)


def test_integers_keep_varying_enough_for_their_sums_to_be_probabilities():
    rng = np.random.default_rng(0)
    table = {"k": rng.poisson(60, 400), "x": rng.normal(size=400)}
    old = GaussianBlocks("none", n_components=1, random_state=0).fit(table).density_
    new = old.updated({"k": np.full(2000, 61), "x": np.zeros(2000)}, weight=10)
    one = new.marginal("k")
    masses = one.pdf({"k": np.arange(0, 200)})
    assert masses.sum() == pytest.approx(1, abs=1e-3)


# ---- what cannot be updated --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0, -1, np.nan, np.inf])
def test_a_weight_is_a_positive_number_of_rows(weight):
    with pytest.raises(InputError, match="weight"):
        hybrid(rng=0).updated(hybrid(rng=0).sample(3, rng=0), weight)


def test_a_block_given_an_interval_is_refused():
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=100), "b": rng.normal(size=100)}
    f = GaussianBlocks("none", n_components=1, random_state=0).fit(table).density_
    with pytest.raises(InputError, match="Update the density first, then condition"):
        f.condition({"a": (0, None)}).updated({"a": [1.0], "b": [0.0]}, 10)


def test_unknown_categories_and_impossible_values_are_ignored():
    s = Variable("s", "categorical", categories=("F", "M"))
    k = Variable("k", "integer")
    f = build([s, k], [Dictionary.categories(2), Dictionary.points([1.0, 2.0])], [1.0], [[[0.5], [0.5]]] * 2, "dict")
    with pytest.warns(UnseenCategoryWarning):
        g = f.updated({"s": ["X", "F"], "k": [1, 9]}, weight=98)
    assert g.probability({"s": "F"}) == pytest.approx(50 / 99)
    assert g.probability({"k": 1}) == pytest.approx(50 / 99)
