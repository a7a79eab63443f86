"""The paper's four random laws against their text, written out with scipy.stats."""

import math

import numpy as np
import pytest
from scipy import stats

from jointwise.datasets import gaussians, hybrid, laplacians, laplacians_gaussians
from jointwise.families import Category, Gaussian, Laplace

# law, number of variables, rank, kinds of the variables
LAWS = [
    (laplacians, 5, 10, "LLLLL"),
    (gaussians, 6, 8, "GGGGGG"),
    (laplacians_gaussians, 7, 10, "LLLLLGG"),
    (hybrid, 4, 8, "GGGC"),
]
each_law = pytest.mark.parametrize(
    ("make", "n_variables", "rank", "kinds"), LAWS, ids=[law.__name__ for law, *_ in LAWS]
)


@each_law
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_shapes_and_parameters_are_those_of_the_text(make, n_variables, rank, kinds, seed):
    law = make(rng=seed)
    assert len(law.names) == n_variables == len(kinds)
    assert law.n_components == rank
    assert law.mixture.weights.sum() == pytest.approx(1.0)
    assert (law.mixture.weights > 0).all()
    for kind, dictionary, b in zip(kinds, law.mixture.dictionaries, law.mixture.coefficients, strict=True):
        (family,) = dictionary.families
        np.testing.assert_allclose(b.sum(axis=0), 1.0)
        if kind == "C":
            assert isinstance(family, Category)
            assert b.shape == (10, rank)
            assert (b > 0).all()
            continue
        assert isinstance(family, Laplace if kind == "L" else Gaussian)
        # each component mixes five atoms of its own
        assert b.shape == (5 * rank, rank)
        assert ((b > 0).sum(axis=0) == 5).all()
        assert ((b > 0).sum(axis=1) == 1).all()
        assert family.loc.min() > -5
        assert family.loc.max() < 5
        spread = family.scale if kind == "L" else family.scale**2  # shape factor, or variance
        assert spread.min() > 1
        assert spread.max() < 2


@each_law
def test_density_equals_the_formula_of_the_text(make, n_variables, rank, kinds):
    law = make(rng=3)
    rows = law.mixture.sample(4, np.random.default_rng(0))
    expected = []
    for row in rows:
        total = 0.0
        for r in range(rank):
            product = law.mixture.weights[r]
            for n, kind in enumerate(kinds):
                product *= conditional(law, n, r, kind, row[n])
            total += product
        expected.append(math.log(total))
    np.testing.assert_allclose(law.logpdf(rows), expected, rtol=1e-10)


def conditional(law, n, r, kind, x):
    """f(x_n | H = r): a sum over the five atoms that the component uses."""
    (family,) = law.mixture.dictionaries[n].families
    column = law.mixture.coefficients[n][:, r]
    if kind == "C":
        return column[int(x)]
    make = stats.laplace if kind == "L" else stats.norm
    return sum(column[l] * make.pdf(x, family.loc[l], family.scale[l]) for l in np.flatnonzero(column))


@each_law
def test_parameters_are_uniform_on_their_ranges(make, n_variables, rank, kinds):
    """Kolmogorov-Smirnov over several laws; a right generator fails with probability 1e-4 for each assertion."""
    laws = [make(rng=seed) for seed in range(8)]
    families = [(kind, d.families[0]) for law in laws for kind, d in zip(kinds, law.mixture.dictionaries, strict=True)]
    loc = np.concatenate([f.loc for kind, f in families if kind != "C"])
    spread = np.concatenate([f.scale if kind == "L" else f.scale**2 for kind, f in families if kind != "C"])
    assert stats.kstest(loc, stats.uniform(-5, 10).cdf).pvalue > 1e-4
    assert stats.kstest(spread, stats.uniform(1, 1).cdf).pvalue > 1e-4
    assert stats.kstest(np.sqrt(spread), stats.uniform(1, 1).cdf).pvalue < 1e-4  # a wrong target fails
    # two L1-normalised uniforms have a ratio with the law of U/V
    ratio = np.concatenate([law.mixture.weights[::2] / law.mixture.weights[1::2] for law in laws])
    assert stats.kstest(ratio, lambda x: np.where(x < 1, x / 2, 1 - 0.5 / np.maximum(x, 1))).pvalue > 1e-4


@each_law
def test_sample_and_density_agree(make, n_variables, rank, kinds):
    """Margins by Kolmogorov-Smirnov or chi-square, a joint box by its binomial; 1e-4 for each p-value."""
    law = make(rng=4)
    rows = np.asarray(law.sample(4000, rng=0), dtype=float)
    assert rows.shape == (4000, n_variables)
    for n, kind in enumerate(kinds):
        margin = law.marginal(law.names[n])
        if kind == "C":
            shares = margin.pdf([[c] for c in range(10)])
            assert stats.chisquare(np.bincount(rows[:, n].astype(int), minlength=10), shares * 4000).pvalue > 1e-4
        else:
            assert stats.kstest(rows[:, n], lambda x, m=margin: m.cdf(x[:, None])).pvalue > 1e-4
            assert stats.kstest(rows[:, n] + 0.5, lambda x, m=margin: m.cdf(x[:, None])).pvalue < 1e-4
    a, b = law.names[:2]
    p = law.probability({a: (0, None), b: (None, 0)})
    inside = int(((rows[:, 0] >= 0) & (rows[:, 1] <= 0)).sum())
    assert stats.binomtest(inside, 4000, p).pvalue > 1e-4


def test_the_discrete_variable_has_ten_states():
    law = hybrid(rng=0)
    assert law.schema["x3"].categories == tuple(range(10))
    assert law.predict_proba("x3", law.sample(3, rng=0)).shape == (3, 10)
    np.testing.assert_allclose(sum(law.probability({"x3": c}) for c in range(10)), 1.0)


@each_law
def test_a_seed_gives_the_same_law_and_a_generator_goes_on(make, n_variables, rank, kinds):
    x = np.zeros((1, n_variables))
    assert make(rng=5).logpdf(x) == make(rng=5).logpdf(x)
    assert make(rng=5).logpdf(x) != make(rng=6).logpdf(x)
    rng = np.random.default_rng(5)
    assert make(rng).logpdf(x) == make(rng=5).logpdf(x)
    assert make(rng).logpdf(x) != make(rng=5).logpdf(x)
