"""A joint density that rests on a block: every answer works, in files too."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.joint.block_cases import mixture

from jointwise import JointDensity
from jointwise.tables.variables import Schema, Variable

SCHEMA = Schema((
    Variable("pay", "continuous", spikes=(-0.5, 1.0)),
    Variable("town", "categorical", categories=("A", "B", "C")),
    Variable("age", "integer"),
    Variable("size", "continuous"),
    Variable("rate", "continuous", spikes=(0.25,)),
))  # fmt: skip
ROWS = {"pay": [-0.5, 0.7], "town": ["A", "C"], "age": [2, np.nan], "size": [0.3, np.nan], "rate": [np.nan, 0.1]}


@pytest.fixture(scope="module")
def density():
    return JointDensity(SCHEMA, mixture(3))


@pytest.mark.parametrize("event", [{}, {"size": (0, None)}, {"pay": (-1, 2), "age": (0, 9)}, {"age": 2, "town": "B"}])
def test_every_answer_works(density, event, tmp_path):
    f = density.condition(event) if event else density
    rows = {name: column for name, column in ROWS.items() if name in f.names}
    names = [name for name in f.names if name != "town"]
    assert np.isfinite(f.logpdf(rows)).all() or event
    assert ((f.cdf(rows) >= 0) & (f.cdf(rows) <= 1)).all()
    assert all(np.isfinite(f.mean()[name]) and f.var()[name] > 0 for name in names)
    assert set(f.mode()) == set(f.names)
    for name in names:
        low, middle, high = f.quantile(name, [0.1, 0.5, 0.9])
        assert low <= middle <= high
    assert 0 < f.probability({"size": (None, 1)}) < 1
    assert_allclose(f.probability({"pay": (None, None)}), 1.0)
    assert len(f.predict("size", rows)) == 2
    assert not np.isnan(np.asarray(f.predict("pay", rows), dtype=float)).any()
    f.impute(rows)
    f.save(tmp_path / "density")
    again = JointDensity.load(tmp_path / "density")
    assert_allclose(again.logpdf(rows), f.logpdf(rows))
    assert f.marginal(["size", "pay"]).entropy(rng=0).value is not None


def test_information_of_a_pair(density):
    pair = density.mutual_information("pay", "size")
    draws = density.marginal(["pay", "size"]).sample(20_000, rng=0)
    columns = {name: np.asarray(draws[name]) if hasattr(draws, "keys") else draws[:, k] for k, name in
               enumerate(["pay", "size"])}  # fmt: skip
    both = density.marginal(["pay", "size"]).logpdf(columns)
    apart = sum(density.marginal([name]).logpdf({name: columns[name]}) for name in columns)
    # the mean of 20,000 draws, to six of its deviations
    assert_allclose(pair.value, (both - apart).mean(), atol=6 * (both - apart).std() / np.sqrt(20_000) + pair.error)


def test_a_check_of_its_own_draws_is_clean(density):
    assert density.check(density.sample(3000, rng=1), rng=0).is_clean


def test_a_sum_with_a_mixture_of_products(density, tmp_path):
    from jointwise.joint import ProductMixture

    factors = [density.mixture.dictionary(n) for n in range(5)]
    even = [np.full((d.n_atoms, 1), 1 / d.n_atoms) for d in factors]
    apart = JointDensity(SCHEMA, ProductMixture([1.0], even, factors))
    both = JointDensity.mix([density, apart], [0.7, 0.3])
    assert_allclose(both.pdf(ROWS), 0.7 * density.pdf(ROWS) + 0.3 * apart.pdf(ROWS))
    event = {"size": (0, 2), "age": {1, 2, 3}}
    expected = 0.7 * density.probability(event) + 0.3 * apart.probability(event)
    assert_allclose(both.probability(event), expected)
    both.save(tmp_path / "both")
    given = JointDensity.load(tmp_path / "both").condition(event)
    assert_allclose(
        given.marginal("pay").pdf({"pay": [0.7]}), both.condition(event).marginal("pay").pdf({"pay": [0.7]})
    )
    assert np.isfinite(given.mean()["pay"])
