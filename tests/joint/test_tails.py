"""Tails beyond the observed range: reduced if they hold more than the rows allow, else left alone."""

import numpy as np
import pytest

from jointwise import JUPAD, Dictionary, JointDensity
from jointwise.joint import ProductMixture
from jointwise.joint.tails import LEAST_ROWS, lighter_tails
from jointwise.tables.variables import Schema, Variable


def heavy(kind="continuous", observed=(-10.0, 10.0)):
    atoms = Dictionary.grid("gaussian", -5, 5, n=3, scale=2) + Dictionary.grid("student_t", 0, 0, n=1, scale=5, df=2.0)
    atoms = atoms.on_lattice() if kind == "integer" else atoms
    schema = Schema((Variable("x", kind, observed=observed), Variable("y", "continuous", observed=(-2.0, 3.0))))
    weights = np.array([0.3, 0.7])
    coefficients = (np.array([[0.2, 0.1], [0.1, 0.3], [0.2, 0.3], [0.5, 0.3]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    return schema, ProductMixture(weights, coefficients, (atoms, Dictionary.grid("gaussian", 0, 1, n=2, scale=0.1)))


@pytest.mark.parametrize("kind", ["continuous", "integer"])
def test_tails_are_reduced_to_two_rows_and_nothing_becomes_impossible(kind):
    schema, mixture = heavy(kind)
    lighter = lighter_tails(mixture, schema, 10_000)
    density = JointDensity(schema, lighter)
    beyond = 1 - density.probability({"x": (-10, 10)})
    assert beyond * 10_000 == pytest.approx(2.0, abs=0.2)
    assert np.isfinite(density.logpdf({"x": [50.0, -400.0], "y": [0.0, 0.0]})).all()
    total = lighter.marginal([0])
    assert total.cdf(np.array([[np.inf]]))[0] == pytest.approx(1.0, abs=1e-12)
    # the other column keeps its atoms
    assert lighter.dictionaries[1] is mixture.dictionaries[1]


def test_far_tails_hold_one_row_where_the_range_itself_is_kept():
    # eight rows beyond the range could be chance, but not that all of them lie far beyond
    atoms = Dictionary.grid("gaussian", 0, 0, n=1, scale=1) + Dictionary.grid("gaussian", 30, 30, n=1, scale=3)
    schema = Schema((Variable("x", "continuous", observed=(-10.0, 20.0)),))
    mixture = ProductMixture([1.0], [[[0.992], [0.008]]], [atoms])
    density = JointDensity(schema, lighter_tails(mixture, schema, 1000))
    assert (1 - density.probability({"x": (-13, 23)})) * 1000 == pytest.approx(1.0, abs=0.05)


def test_tails_that_hold_little_are_left_as_they_are():
    schema, mixture = heavy()
    assert lighter_tails(mixture, schema, 20) is mixture
    assert lighter_tails(mixture, schema, 10_000, given={"x"}) is mixture


def test_inside_the_range_atoms_are_mixed_with_their_cut_form():
    """Against a plain sum over components and atoms."""
    schema, mixture = heavy()
    lighter = lighter_tails(mixture, schema, 10_000)
    atoms, coefficients = mixture.dictionaries[0], mixture.coefficients[0]
    outside = 1 - (atoms.cdf([10.0]) - atoms.cdf([-10.0]))[0]
    rows = 10_000 * outside * (coefficients @ mixture.weights)
    heavy_ones = rows > LEAST_ROWS  # the others stay as they are
    kept = 2.0 / rows[heavy_ones].sum()
    for x in np.linspace(-9.9, 9.9, 23):
        expected = 0.0
        for r, weight in enumerate(mixture.weights):
            for atom, share in enumerate(coefficients[:, r]):
                density = float(atoms.pdf([x])[0, atom])
                cut = kept * density + (1 - kept) * density / (1 - outside[atom])
                expected += weight * share * (cut if heavy_ones[atom] else density)
        assert lighter.logpdf(np.array([[x, np.nan]]))[0] == pytest.approx(np.log(expected), abs=1e-9)


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
        # at most three rows are expected: eleven or more have a probability of 3e-4
        assert beyond.sum() <= 10, name
    assert drawn["waiting"].min() >= 0
    assert np.isfinite(density.logpdf(drawn)).all()
