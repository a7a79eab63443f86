"""Samples against the density's own cdf and probabilities, by p-value.

Seeds are fixed. A right sampler fails an assertion here with probability ``LEVEL`` per seed, whatever the number of
p-values behind it (Bonferroni). Each test also tries a wrong target, which must fail.
"""

import numpy as np
import pytest
from scipy import stats
from tests.joint.cases import random_density, random_event, single

from jointwise.dictionary import Dictionary
from jointwise.families import Cauchy, Gaussian, PointMass
from jointwise.tables.variables import Variable

LEVEL = 1e-4
N = 4000
# one seed by default, many on request
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]


def margin_p_value(column, mixture):
    """Return the p-value of one column under a 1-D mixture.

    It is that of Kolmogorov-Smirnov if the cdf is continuous, else of chi-square on the values that repeat.
    """
    if is_continuous(mixture) and not mixture.dictionaries[0].spikes.size:
        return stats.kstest(column, lambda x: mixture.cdf(x[:, None])).pvalue
    values, counts = np.unique(column, return_counts=True)
    spikes = mixture.dictionaries[0].spikes
    # for a continuous variable with spikes: each spike, and the rest as one more cell
    cells = spikes if is_continuous(mixture) else values[counts > 20]
    observed = np.array([(column == cell).sum() for cell in cells])
    expected = np.exp(mixture.logpdf(cells[:, None])) * len(column)
    observed, expected = (
        np.append(observed, len(column) - observed.sum()),
        np.append(expected, len(column) - expected.sum()),
    )
    if ((expected < 1e-6) & (observed > 0)).any():
        return 0.0
    used = expected > 5
    statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
    return stats.chi2.sf(statistic, max(used.sum() - 1, 1))


def is_continuous(mixture):
    return mixture.dictionaries[0].is_continuous


def box_p_values(rows, density, rng, n_boxes=12):
    """Return exact binomial p-values of the shares of rows in random boxes, half of them of the first two variables."""
    found = []
    for box in range(n_boxes):
        names = density.names[:2] if box % 2 else density.names
        event = random_event(rng, density, names, shapes=("interval",))
        inside = np.ones(len(rows), dtype=bool)
        for n, (name, region) in enumerate(event.items()):
            inside &= is_inside(rows[:, n], density.schema[name], region)
        p = min(density.probability(event), 1.0)
        found.append(stats.binomtest(int(inside.sum()), len(rows), p).pvalue)
    return found


def is_inside(column, variable, region):
    if isinstance(region, set):
        return np.isin(column, [variable.encode_value(v) for v in region])
    low = -np.inf if region[0] is None else variable.encode_value(region[0])
    high = np.inf if region[1] is None else variable.encode_value(region[1])
    return (low <= column) & (column <= high)


def assert_fits(p_values):
    assert min(p_values) > LEVEL / len(p_values)


def assert_does_not_fit(p_values):
    assert min(p_values) < LEVEL / len(p_values)


CASES = {
    "numbers": ["smooth", "smooth", "smooth"],
    "mixed": ["spiky", "counts", "grade", "smooth"],
    "integers": ["lattice", "inflated", "label"],
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kinds", CASES.values(), ids=CASES.keys())
def test_each_margin_follows_its_cdf(kinds, seed):
    rng = np.random.default_rng([seed, 1])
    density = random_density(rng, kinds, 3)
    rows = density.mixture.sample(N, rng)
    margins = [density.mixture.marginal([n]) for n in range(len(kinds))]
    assert_fits([margin_p_value(rows[:, n], m) for n, m in enumerate(margins)])
    other = random_density(rng, kinds, 3)
    wrong = [other.mixture.marginal([n]) for n in range(len(kinds))]
    assert_does_not_fit([margin_p_value(rows[:, n], m) for n, m in enumerate(wrong)])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kinds", CASES.values(), ids=CASES.keys())
def test_boxes_hold_their_share_and_dependence_shows(kinds, seed):
    """The wrong rows have the same margins, but independent variables."""
    rng = np.random.default_rng([seed, 2])
    density = dependent_density(rng, kinds)
    rows = density.mixture.sample(N, rng)
    assert_fits(box_p_values(rows, density, rng))
    shuffled = np.column_stack([rng.permutation(rows[:, n]) for n in range(len(kinds))])
    assert_does_not_fit(box_p_values(shuffled, density, rng, n_boxes=40))


def dependent_density(rng, kinds):
    """Return the one of 50 random densities whose first two variables are most correlated."""

    def dependence(density):
        cov = np.cov(density.mixture.sample(300, rng)[:, :2].T)
        return abs(cov[0, 1]) / np.sqrt(cov[0, 0] * cov[1, 1] + 1e-12)

    return max((random_density(rng, kinds, 3) for _ in range(50)), key=dependence)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kinds", CASES.values(), ids=CASES.keys())
def test_conditional_samples_follow_the_conditional(kinds, seed):
    """Sampling given an event is sampling and keeping the rows in the event."""
    rng = np.random.default_rng([seed, 3])
    density = dependent_density(rng, kinds)
    name = density.names[0]
    events = [random_event(rng, density, [name], shapes=("interval", "set")) for _ in range(50)]
    event = min(events, key=lambda event: abs(density.probability(event) - 0.4))
    part = density.condition(event)
    drawn = part.mixture.sample(N, rng)
    assert is_inside(drawn[:, 0], density.schema[name], event[name]).all()
    assert_fits(box_p_values(drawn, part, rng))
    everything = density.mixture.sample(4 * N, rng)
    kept = everything[is_inside(everything[:, 0], density.schema[name], event[name])]
    assert_fits(box_p_values(kept, part, rng))
    assert_does_not_fit(box_p_values(everything[:N], part, rng, n_boxes=40))


@pytest.mark.parametrize("seed", SEEDS)
def test_samples_given_a_value_follow_the_conditional(seed):
    rng = np.random.default_rng([seed, 4])
    density = dependent_density(rng, ["counts", "smooth", "spiky"])
    k = density.names[0]
    everything = density.mixture.sample(8 * N, rng)
    values, counts = np.unique(everything[:, 0], return_counts=True)
    common = values[np.argmax(counts)]
    kept = everything[everything[:, 0] == common][:, 1:]
    assert_fits(box_p_values(kept, density.condition({k: int(common)}), rng))
    wrong = [density.condition({k: int(other)}) for other in values if other != common]
    assert_does_not_fit([p for target in wrong for p in box_p_values(kept, target, rng, n_boxes=40)])


def test_logpdf_and_sample_agree_by_importance_weights():
    """E[g(X)/f(X)] = 1 for a density g inside the support of f; five standard errors fail once in a million."""
    rng = np.random.default_rng(5)
    density = random_density(rng, ["smooth", "smooth"], 2)
    rows = density.mixture.sample(20_000, rng)
    low, high = np.quantile(rows, [0.3, 0.7], axis=0)
    inside = ((rows >= low) & (rows <= high)).all(axis=1)
    ratio = inside / np.prod(high - low) / density.pdf(rows)
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1) < 5 * error
    assert abs(1.2 * ratio.mean() - 1) > 5 * error  # a density wrong by a fifth fails


def test_spikes_are_drawn_exactly_and_heavy_tails_reach_far():
    x = Variable("x", "continuous")
    rows = single(x, Dictionary((Gaussian(0.0, 1.0), PointMass(0.1)))).sample(1000, rng=0)
    assert stats.binomtest(int((rows == 0.1).sum()), 1000, 0.5).pvalue > LEVEL
    heavy = single(x, Dictionary((Cauchy(0.0, 1.0),))).sample(5000, rng=0)
    assert stats.kstest(heavy[:, 0], stats.cauchy.cdf).pvalue > LEVEL
    assert stats.kstest(heavy[:, 0], stats.norm.cdf).pvalue < LEVEL
