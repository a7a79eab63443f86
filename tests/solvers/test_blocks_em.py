"""EM with a Gaussian block: formulas by plain loops, monotone at every step, covariances of integers, known answers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, multigammaln
from scipy.stats import invwishart, multivariate_normal
from tests.engines.block_cases import make_codes, make_components, make_layout

from jointwise._numerics import LATTICE_FLOOR, on_lattice
from jointwise.engines.atoms import StackedAtoms
from jointwise.engines.blocks import BlockLayout, ReferenceBlockEngine
from jointwise.exceptions import InputError
from jointwise.solvers import solve
from jointwise.solvers.blocks_em import (
    KAPPA,
    KAPPAS,
    LEAST_SIZE,
    SAME_SIZE,
    STEADYING,
    TAIL_SCALE,
    WIDENING,
    BlockFactors,
    BlocksEM,
    BlocksProblem,
    settled_scale,
    shrunk,
    widened,
    with_tails,
)


def make(seed=0, n=120, d=3, n_others=2, spikes=1, missing=0.15, F=3, nu=2.0, beta=0.5, lattice=None):
    """Return a problem with random rows, factors to start from, and the codes."""
    rng = np.random.default_rng(seed)
    layout = make_layout(rng, d, n_others, spikes, n_intervals=30)
    codes = make_codes(rng, layout, n, missing)
    found = make_components(rng, layout, F)
    masses = tuple(rng.dirichlet(np.ones(bins), size=bins + 1).T for bins in layout.table_bins)
    root = rng.normal(size=(d, d))
    problem = BlocksProblem(
        ReferenceBlockEngine(codes, layout),
        n,
        StackedAtoms(masses),
        tuple(rng.dirichlet(np.ones(m.shape[1])) for m in masses),
        tuple(rng.dirichlet(np.ones(1 + s)) for s in layout.n_spikes),
        rng.normal(size=d),
        root @ root.T / d + 0.1 * np.eye(d),
        np.full(d, 1e-3),
        np.zeros(d) if lattice is None else np.asarray(lattice),
        nu,
        beta,
    )
    start = BlockFactors(
        np.exp(found.log_weights),
        found.means,
        found.covariances,
        tuple(rng.dirichlet(np.ones(m.shape[1]), F).T for m in masses),
        tuple(np.exp(s) for s in found.spikes),
    )
    return problem, start, layout, codes


def plain_posterior(problem, factors, layout, codes):
    """Log-posterior with loops over rows, components and cells."""
    tables = [d @ b for d, b in zip(problem.atoms.masses, factors.coefficients, strict=True)]
    total = 0.0
    for row in codes:
        terms = []
        for r, weight in enumerate(factors.weights):
            value, seen, w = weight, [], []
            for c, column in enumerate(layout.columns):
                code = int(row[column])
                if code == layout.n_bins[column]:
                    continue
                at = code - len(layout.values[c]) + 1
                value *= factors.spikes[c][max(at, 0), r]
                if at <= 0:
                    seen.append(c)
                    w.append(layout.values[c][code])
            if seen:
                value *= multivariate_normal.pdf(w, factors.means[r, seen], factors.covariances[r][np.ix_(seen, seen)])
            for table, column in zip(tables, layout.others, strict=True):
                if row[column] < layout.n_bins[column]:
                    value *= table[row[column], r]
            terms.append(value)
        total += np.log(sum(terms))
    for r in range(factors.n_components):
        covariance, away = factors.covariances[r], factors.means[r] - problem.centre
        inverse = np.linalg.inv(covariance)
        if len(away):
            total -= problem.nu * divergence(problem, covariance, factors.n_components > 1)
        total -= KAPPA / 2 * away @ inverse @ away
        for m, b in zip(problem.margins + problem.spike_margins, factors.coefficients + factors.spikes, strict=True):
            total -= problem.beta * np.sum(m * np.log(m / b[:, r]))
    return total


def kl(first, second):
    """KL(N(0, first) || N(0, second))."""
    logs = np.linalg.slogdet(second)[1] - np.linalg.slogdet(first)[1]
    return (np.trace(np.linalg.inv(second) @ first) - len(first) + logs) / 2


def divergence(problem, covariance, sized):
    """Divergence of a covariance from the scale, of the size that makes it smallest."""
    scale, share = problem.scale, problem.nu / SAME_SIZE

    def at(log_size):
        return kl(np.exp(log_size) * scale, covariance) + share * kl(scale, np.exp(log_size) * scale)

    return minimize_scalar(at, bounds=(np.log(LEAST_SIZE), 30.0), options={"xatol": 1e-9}).fun if sized else at(0.0)


@pytest.mark.parametrize("d", [0, 1, 3])
def test_objective_agrees_with_loops(d):
    problem, start, layout, codes = make(d=d, n=40)
    expected = -plain_posterior(problem, start, layout, codes) / len(codes)
    assert problem.update(start)[0] == pytest.approx(expected, rel=1e-9)


def test_complete_rows_of_one_component_have_the_closed_answer():
    problem, start, layout, codes = make(spikes=0, missing=0.0, n_others=0, F=1, nu=5.0)
    values = np.stack([w[codes[:, c]] for c, w in zip(layout.columns, layout.values, strict=True)], axis=1)
    solution = solve(BlocksEM(start, tol=1e-12), problem, max_steps=50)
    n = len(codes)
    mean = (values.sum(axis=0) + KAPPA * problem.centre) / (n + KAPPA)
    away = mean - problem.centre
    scatter = (values - mean).T @ (values - mean) + KAPPA * np.outer(away, away)
    np.testing.assert_allclose(solution.value.means[0], mean, rtol=1e-10)
    expected = (scatter + problem.nu * problem.scale) / (n + problem.nu)
    np.testing.assert_allclose(solution.value.covariances[0], expected, rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 2.0, 50.0]), st.sampled_from([0.0, 0.2, 5.0]), st.booleans())
def test_objective_never_rises(seed, nu, beta, integers):
    """From the start on: the scale W is frozen."""
    lattice = np.array([0.0, 0.4, 0.3]) if integers else None
    problem, start, _, _ = make(seed, n=60, nu=nu, beta=beta, lattice=lattice, F=4)
    start = replace(start, covariances=on_lattice(start.covariances, problem.lattice))
    problem, start = settled_scale(problem, start, 3)
    solution = solve(BlocksEM(start, tol=1e-9), problem, max_steps=60)
    # the last digits of a sum over rows may vary
    assert np.all(np.diff(solution.history) <= 1e-10 * np.abs(solution.history[:-1]))
    assert np.linalg.eigvalsh(solution.value.covariances).min() > 0


def test_a_scale_that_is_settled_takes_no_further_steps():
    problem, start, _, _ = make(n=60, F=2)
    once, factors = settled_scale(problem, start, 10, tol=np.inf)
    expected, same = settled_scale(problem, start, 1)
    np.testing.assert_array_equal(once.scale, expected.scale)
    np.testing.assert_array_equal(factors.means, same.means)
    assert not np.array_equal(settled_scale(problem, start, 10, tol=1e-12)[0].scale, once.scale)


@pytest.mark.parametrize(("size", "within"), [(0.5, 0.03), (1.0, 1e-9), (16.0, 0.03), (1e9, 0.03), (1e-9, None)])
def test_components_of_the_shape_of_the_scale_keep_about_their_size(size, within):
    problem, start, *_ = make(F=2)
    sized = replace(start, covariances=np.stack([problem.scale, size * problem.scale]))
    expected = size if within else LEAST_SIZE
    np.testing.assert_allclose(problem.sizes(sized), [1.0, expected], rtol=within or 1e-12)
    np.testing.assert_array_equal(problem.sizes(sized.take([1])), 1.0)


def test_components_without_rows_are_the_prior():
    problem, start, _, _ = make(F=2)
    far = replace(start, means=np.array([np.zeros(3), np.full(3, 1e3)]), weights=np.array([1.0, 0.0]))
    value = problem.update(far)[1]
    np.testing.assert_allclose(value.means[1], problem.centre)
    np.testing.assert_allclose(value.covariances[1], problem.sizes(far)[1] * problem.scale)
    np.testing.assert_allclose(value.coefficients[0][:, 1], problem.margins[0])


def conditional(covariance, lattice):
    """Covariance of the integers given the others, in units of the lattice."""
    i, j = np.flatnonzero(lattice > 0), np.flatnonzero(lattice == 0)
    inner = covariance[np.ix_(i, i)]
    if len(j):
        inner = inner - covariance[np.ix_(i, j)] @ np.linalg.inv(covariance[np.ix_(j, j)]) @ covariance[np.ix_(j, i)]
    return inner / np.outer(lattice[i], lattice[i])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_lattice_floor_is_kept_by_the_most_likely_covariance(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    root = rng.normal(size=(d, d))
    scatter = root @ root.T + 1e-3 * np.eye(d)
    lattice = np.where(rng.random(d) < 0.6, rng.uniform(0.1, 1.0, d), 0.0)
    raised = on_lattice(scatter[None], lattice)[0]
    if not (lattice > 0).any():
        np.testing.assert_array_equal(raised, scatter)
        return
    assert np.linalg.eigvalsh(conditional(raised, lattice)).min() >= LATTICE_FLOOR * (1 - 1e-9)

    def likelihood(covariance):
        return -0.5 * (np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.inv(covariance) @ scatter))

    best = likelihood(raised)
    for _ in range(20):  # nearby covariances that keep the floor are less likely
        noise = rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-4, -1)
        other = (np.eye(d) + noise) @ raised @ (np.eye(d) + noise).T
        other = on_lattice(other[None], lattice)[0]
        assert likelihood(other) <= best + 1e-9 * abs(best) + 1e-12


def test_enough_spread_is_left_alone():
    covariance = np.diag([2.0, 9.0])[None]
    np.testing.assert_array_equal(on_lattice(covariance, np.array([1.0, 0.0])), covariance)


def test_interrupt_keeps_what_was_reached():
    problem, start, _, _ = make()

    def stop(step, _):
        if step == 3:
            raise KeyboardInterrupt

    solution = solve(BlocksEM(start, tol=0.0), problem, max_steps=9, callback=stop, keep_on_interrupt=True)
    assert solution.status.value == "interrupted"
    assert solution.n_steps == 3


def test_a_run_goes_on_where_it_stood():
    problem, start, _, _ = make()
    states = []
    whole = solve(BlocksEM(start, tol=0.0), problem, max_steps=8, on_state=states.append)
    again = solve(BlocksEM(start, tol=0.0), problem, max_steps=8, resume=states[4])
    np.testing.assert_array_equal(whole.history, again.history)
    np.testing.assert_array_equal(whole.value.covariances, again.value.covariances)


@pytest.mark.parametrize("wrong", [{"nu": 0.0}, {"nu": -1.0}, {"beta": -0.1}])
def test_wrong_priors_are_refused(wrong):
    problem, *_ = make()
    with pytest.raises(InputError, match=next(iter(wrong))):
        replace(problem, **wrong)


def test_two_groups_are_found():
    rng = np.random.default_rng(0)
    group = rng.random(400) < 0.3
    values = np.sort(rng.normal(size=400) * 0.2 + np.where(group, 3.0, 0.0))
    layout = BlockLayout([400], [0], [values], [])
    engine = ReferenceBlockEngine(np.arange(400, dtype=np.uint16)[:, None], layout)
    one = (np.ones(1),)
    problem = BlocksProblem(
        engine, 400.0, StackedAtoms(()), (), one, np.zeros(1), np.eye(1), np.full(1, 1e-3), np.zeros(1), 1.0, 0.1
    )
    start = BlockFactors(np.full(2, 0.5), [[-0.5], [3.5]], np.ones((2, 1, 1)), (), (np.ones((1, 2)),))
    value = solve(BlocksEM(start, tol=1e-8), problem, max_steps=200).value
    np.testing.assert_allclose(value.weights[1], group.mean(), atol=0.02)
    np.testing.assert_allclose(value.means[:, 0], [0.0, 3.0], atol=0.05)


def test_scale_is_the_harmonic_mean_of_steadied_covariances():
    problem, start, *_ = make(F=3)
    sums = problem.sums(start)
    means = problem.maximised(start, sums).means
    d, total = len(problem.centre), sums.totals.sum()
    scatters = []
    for r in range(3):
        away = means[r] - start.means[r]  # sums are about the means they were taken with
        first, second = sums.firsts[r], sums.seconds[r]
        scatter = second - np.outer(first, away) - np.outer(away, first) + sums.totals[r] * np.outer(away, away)
        scatters.append(scatter + KAPPA * np.outer(means[r] - problem.centre, means[r] - problem.centre))
    mean = sum(scatters) / total + np.diag(problem.trace)
    inverse = np.zeros((d, d))
    for r in range(3):
        steadied = (scatters[r] + STEADYING * d * mean) / (sums.totals[r] + STEADYING * d)
        inverse += sums.totals[r] / total * np.linalg.inv(steadied)
    harmonic = np.linalg.inv(inverse)
    expected = shrunk(harmonic, total) + np.diag(problem.trace)
    np.testing.assert_allclose(problem.pooled(start, sums).scale, expected, rtol=1e-8)
    assert (np.linalg.eigvalsh(mean - harmonic) > -1e-12).all()  # never above the mean


def test_scale_of_one_component_is_its_covariance():
    problem, start, *_ = make(F=1)
    sums = problem.sums(start)
    found = problem.pooled(start, sums).scale
    one = replace(problem, nu=1e-12).maximised(start, sums).covariances[0]
    np.testing.assert_allclose(found, shrunk(one + np.diag(problem.trace), sums.totals.sum()), rtol=1e-6)


def test_scale_is_positive_where_a_column_is_the_sum_of_others():
    problem, start, *_ = make(F=3)
    sums = problem.sums(start)
    twice = np.array([[1.0, 0, 0], [0, 1.0, 0], [1.0, 1.0, 0]])  # the third is the sum of the first two
    flat = replace(sums, firsts=sums.firsts @ twice.T, seconds=twice @ sums.seconds @ twice.T)
    many = replace(flat, totals=1e6 * flat.totals, firsts=1e6 * flat.firsts, seconds=1e6 * flat.seconds)
    for each in (flat, many):
        scale = problem.pooled(start, each).scale
        assert np.linalg.eigvalsh(scale).min() >= 0.99 * problem.trace.min()


def evidence(correlations, n, kappa):
    """Log-evidence of n rows for an inverse Wishart prior of kappa rows of uncorrelated columns, by plain terms."""
    d = len(correlations)
    before, after = kappa + d + 1, kappa + d + 1 + n
    return (
        multigammaln(after / 2, d)
        - multigammaln(before / 2, d)
        + before / 2 * np.linalg.slogdet(kappa * np.eye(d))[1]
        - after / 2 * np.linalg.slogdet(kappa * np.eye(d) + n * correlations)[1]
    )


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 12), st.integers(3, 60), st.integers(0, 2**32 - 1))
def test_correlations_are_shrunk_to_the_highest_evidence(d, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 10, d) + rng.normal(size=(n, 1))
    covariance = np.cov(X.T, bias=True)
    correlations = np.corrcoef(X.T)
    best = max(KAPPAS, key=lambda kappa: evidence(correlations, n, kappa))
    expected = (n * covariance + best * np.diag(np.diag(covariance))) / (n + best)
    np.testing.assert_allclose(shrunk(covariance, n), expected, rtol=1e-8, atol=1e-12)


def test_the_evidence_of_correlations_is_the_density_of_rows_without_their_covariance():
    """Against draws of covariances: the density of rows, averaged over the prior, differs by the same constant."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal(np.zeros(2), [[1.0, 0.7], [0.7, 1.0]], size=6)
    second = X.T @ X / 6
    by_draws = []
    for kappa in (5.0, 20.0):
        covariances = invwishart(df=kappa + 3, scale=kappa * np.eye(2)).rvs(200_000, random_state=rng)
        quadratic = 6 * np.einsum("nij,ji->n", np.linalg.inv(covariances), second)
        by_draws.append(logsumexp(-3 * np.linalg.slogdet(covariances)[1] - quadratic / 2) - np.log(200_000))
    expected = evidence(second, 6, 20.0) - evidence(second, 6, 5.0)
    # the standard error of either mean is about .002
    np.testing.assert_allclose(by_draws[1] - by_draws[0], expected, atol=0.015)


def test_functions_of_columns_are_hardly_shrunk_and_columns_without_rows_much():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 200))
    near = np.cov(np.stack([x, y, x + y + 1e-3 * rng.normal(size=200)]))
    assert np.linalg.eigvalsh(shrunk(near, 200.0))[0] < 2 * np.linalg.eigvalsh(near)[0]
    wide = np.cov(rng.normal(size=(100, 40)))  # 40 rows of 100 columns
    assert np.linalg.eigvalsh(shrunk(wide, 40.0))[0] > 0.3


@pytest.mark.parametrize("share", [0.0, 0.15])
def test_tails_are_a_share_of_the_first_model_with_wider_components(share):
    _, one, *_ = make(F=3, seed=0)
    other = replace(one, means=one.means + 1.0)
    found = with_tails([one, other], share)

    def pdf(factors, x, scale=1.0):
        laws = zip(factors.weights, factors.means, factors.covariances, strict=True)
        return sum(weight * multivariate_normal(mean, scale * cov).pdf(x) for weight, mean, cov in laws)

    for x in np.random.default_rng(0).normal(size=(5, one.means.shape[1])):
        expected = (1 - share) * (pdf(one, x) + pdf(other, x)) / 2 + share * pdf(one, x, TAIL_SCALE)
        np.testing.assert_allclose(pdf(found, x), expected, rtol=1e-12)
    np.testing.assert_allclose(found.weights.sum(), 1.0)


def test_few_rows_widen_components_and_many_do_not():
    _, start, *_ = make(F=3)
    few, many = widened(start, 30.0, 2.0), widened(start, 1e9, 2.0)
    for r, n in enumerate(30.0 * start.weights):
        factor = 1 + WIDENING * 3 * n / max(n + 2.0, 1.0) ** 2
        np.testing.assert_allclose(few.covariances[r], factor * start.covariances[r])
    np.testing.assert_allclose(many.covariances, start.covariances, rtol=1e-6)


def test_settling_is_pooling_and_a_step():
    problem, start, _, _ = make(n=60, F=3)
    sums = problem.sums(start)
    pooled, factors = problem.settled(start, sums)
    apart = problem.pooled(start, sums)
    np.testing.assert_array_equal(pooled.scale, apart.scale)
    np.testing.assert_array_equal(factors.covariances, apart.maximised(start, sums).covariances)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_coefficients_take_the_step_of_each_column_alone(beta):
    problem, start, _, _ = make(seed=3, n_others=4, beta=beta)
    sums = problem.sums(start)
    found = problem.maximised(start, sums).coefficients
    columns = zip(start.coefficients, problem.atoms.masses, problem.margins, sums.counts, found, strict=True)
    for b, d, m, counts, step in columns:
        plain = b * (d.T @ (counts / (d @ b))) + beta * m[:, None]
        np.testing.assert_allclose(step, plain / plain.sum(axis=0), rtol=1e-10)


def test_one_component_keeps_the_own_fits_of_columns():
    problem, start, _, _ = make(F=1)
    found = problem.maximised(start, problem.sums(start)).coefficients
    assert all(after is before for after, before in zip(found, start.coefficients, strict=True))
