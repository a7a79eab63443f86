"""Tails beyond the observed range: drawn in where they hold more than the rows say, and left alone elsewhere."""

import numpy as np
import pytest

from jointwise import JUPAD, Dictionary, JointDensity
from jointwise.joint import ProductMixture
from jointwise.joint.tails import lighter_tails
from jointwise.variables import Schema, Variable


def heavy(kind="continuous", observed=(-10.0, 10.0)):
    atoms = Dictionary.grid("gaussian", -5, 5, n=3, scale=2) + Dictionary.grid("student_t", 0, 0, n=1, scale=5, df=2.0)
    atoms = atoms.on_lattice() if kind == "integer" else atoms
    schema = Schema((Variable("x", kind, observed=observed), Variable("y", "continuous", observed=(-2.0, 3.0))))
    weights = np.array([0.3, 0.7])
    coefficients = (np.array([[0.2, 0.1], [0.1, 0.3], [0.2, 0.3], [0.5, 0.3]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    return schema, ProductMixture(weights, coefficients, (atoms, Dictionary.grid("gaussian", 0, 1, n=2, scale=0.1)))


@pytest.mark.parametrize("kind", ["continuous", "integer"])
def test_tails_hold_one_row_of_as_many_and_nothing_becomes_impossible(kind):
    schema, mixture = heavy(kind)
    lighter = lighter_tails(mixture, schema, 10_000)
    density = JointDensity(schema, lighter)
    beyond = 1 - density.probability({"x": (-12, 12)})
    assert beyond * 10_000 == pytest.approx(1.0, abs=0.2)
    assert np.isfinite(density.logpdf({"x": [50.0, -400.0], "y": [0.0, 0.0]})).all()
    total = lighter.marginal([0])
    assert total.cdf(np.array([[np.inf]]))[0] == pytest.approx(1.0, abs=1e-12)
    # the other column keeps its very atoms
    assert lighter.dictionaries[1] is mixture.dictionaries[1]


def test_tails_that_hold_little_are_left_as_they_are():
    schema, mixture = heavy()
    assert lighter_tails(mixture, schema, 20) is mixture
    assert lighter_tails(mixture, schema, 10_000, given={"x"}) is mixture


def test_inside_the_range_densities_keep_their_shape():
    schema, mixture = heavy()
    lighter = lighter_tails(mixture, schema, 10_000)
    x = np.column_stack([np.linspace(-9, 9, 50), np.full(50, np.nan)])
    # a twentieth of the wide atom lay beyond, and is now inside
    assert np.abs(lighter.logpdf(x) - mixture.logpdf(x)).max() < 0.1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_samples_stay_near_the_observed_range(seed):
    r = np.random.default_rng(seed)
    n = 2000
    rows = {
        "age": np.clip(r.gamma(6, 7, n), 17, 90).astype(int),
        "hours": np.where(r.random(n) < 0.45, 40, np.clip(r.normal(40, 12, n), 1, 99)).astype(int),
        "waiting": r.lognormal(3, 1.2, n).round(1),
        "height": r.normal(170, 10, n).round(1),
    }
    density = JUPAD(random_state=0).fit(rows).density_
    drawn = density.sample(n, rng=seed)
    for name, values in rows.items():
        margin = 0.1 * np.ptp(values)
        beyond = (drawn[name] < values.min() - margin) | (drawn[name] > values.max() + margin)
        # at most three rows are expected: eleven or more come with a probability of 3e-4
        assert beyond.sum() <= 10, name
    assert drawn["waiting"].min() >= 0
    assert np.isfinite(density.logpdf(drawn)).all()
