"""Distances between densities, and their total mass."""

import numpy as np
import pytest
from scipy.stats import norm

from jointwise import Dictionary, JointDensity
from jointwise.datasets import gaussians, hybrid, laplacians
from jointwise.exceptions import InputError
from jointwise.joint.product import ProductMixture
from jointwise.metrics import covering_proposal, mean_absolute_log_ratio, total_mass
from jointwise.tables.variables import Schema, Variable


def test_distance_is_the_mean_of_absolute_log_ratios():
    points = np.array([[0.0], [1.0], [3.0]])
    distance = mean_absolute_log_ratio(lambda x: x[:, 0], lambda x: 2 * x[:, 0] - 1, points)
    assert distance == pytest.approx((1 + 0 + 2) / 3)


def test_distance_of_an_estimate_that_gives_a_point_no_density_is_infinite():
    assert mean_absolute_log_ratio(lambda x: np.array([-np.inf, 0.0]), lambda x: np.zeros(2), None) == np.inf


@pytest.mark.parametrize("law_of", [laplacians, gaussians, hybrid])
def test_the_truth_has_mass_one_less_what_is_beyond_the_box(law_of):
    law = law_of(0)
    mass = total_mass(law.logpdf, covering_proposal(law), 20_000, rng=0)
    assert mass.value == pytest.approx(1, abs=4 * mass.error + 2e-5 * len(law.names))
    assert mass.error < 0.01


def test_mass_of_a_density_times_a_number_is_that_number():
    law = laplacians(0)
    mass = total_mass(lambda x: law.logpdf(x) + np.log(1.5), covering_proposal(law), 20_000, rng=0)
    assert mass.value == pytest.approx(1.5, abs=4 * mass.error)


def test_mass_of_floors_is_found_where_the_truth_has_none():
    law = laplacians(0)
    proposal = covering_proposal(law)
    box = np.array([law.quantile(name, [1e-5, 1 - 1e-5]) for name in law.names])
    widths = np.diff(box)[:, 0]

    def floored(x):  # the truth's margins, each with a floor: the mass is a product of 1-D ones
        margins = np.stack([law.marginal(name).logpdf(x[:, [n]]) for n, name in enumerate(law.names)])
        return np.log(np.exp(margins) + 1e-3).sum(axis=0)

    mass = total_mass(floored, proposal, 50_000, rng=0)
    assert mass.value == pytest.approx(np.prod(1 - 2e-5 + 1e-3 * widths), abs=4 * mass.error)
    assert mass.error < 0.01


def test_standard_error_is_what_repetitions_show():
    law = hybrid(1)
    proposal = covering_proposal(law)
    masses = [total_mass(law.logpdf, proposal, 500, rng=seed) for seed in range(200)]
    spread = np.std([m.value for m in masses], ddof=1)
    assert spread == pytest.approx(np.mean([m.error for m in masses]), rel=0.2)  # 200 runs give it to 5%


def test_proposal_covers_the_truth():
    law = gaussians(2)
    proposal = covering_proposal(law)
    x = proposal.sample(2000, rng=0)
    bound = np.log(2) - len(law.names) * np.log(0.9)
    assert (law.logpdf(x) - proposal.logpdf(x)).max() <= bound
    low, high = np.array([law.quantile(name, [1e-5, 1 - 1e-5]) for name in law.names]).T
    assert ((x >= low) & (x <= high)).all()


def test_proposal_refuses_integers():
    schema = Schema((Variable("k", "integer", dtype="int64"),))
    law = JointDensity(schema, ProductMixture([1.0], [np.ones((2, 1)) / 2], (Dictionary.points([0.0, 1.0]),)))
    with pytest.raises(InputError, match=r"'k' is neither\. Write a proposal"):
        covering_proposal(law)


def test_mass_needs_two_draws_for_an_error():
    with pytest.raises(InputError, match="`n`"):
        total_mass(lambda x: norm.logpdf(x[:, 0]), covering_proposal(hybrid(0)), 1)
