"""Divergences and the likeness of rows against enumeration, SciPy's quadrature and samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import rel_entr
from tests.joint.cases import build, random_density, random_simplex
from tests.joint.test_block import mixture as block_mixture

from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.families import Gaussian
from jointwise.joint import JointDensity, ProductMixture
from jointwise.joint.divergence import of_all, of_column, partition, unlikeness
from jointwise.tables.variables import Schema, Variable

FEW = settings(deadline=None, max_examples=25)
KINDS = ("smooth", "spiky", "counts", "lattice", "label", "grade")


def plain(p, q):
    m = (np.asarray(p) + q) / 2
    return (rel_entr(p, m).sum() + rel_entr(q, m).sum()) / 2


def reweighed(rng, density):
    """A density of the same atoms with other weights."""
    f = density.mixture
    coefficients = [random_simplex(rng, len(b), f.n_components, power=2) for b in f.coefficients]
    return JointDensity(
        density.schema, ProductMixture(random_simplex(rng, f.n_components), coefficients, f.dictionaries)
    )


@st.composite
def two(draw, kinds=KINDS, size=3):
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first = random_density(rng, chosen, int(rng.integers(1, 4)))
    return first, reweighed(rng, first), rng


@FEW
@given(two(kinds=("counts", "label")))
def test_discrete_densities_equal_enumeration(case):
    a, b, rng = case
    values = [np.unique(d.mode()) for d in a.mixture.dictionaries]
    grid = np.stack([g.ravel() for g in np.meshgrid(*values, indexing="ij")], axis=1)
    p, q = (np.exp(f.mixture.logpdf(grid)) for f in (a, b))
    expected = plain(p, q)
    found = a.divergence(b, rng=rng, n_samples=4000)
    # five standard errors, and rows so rare that 4,000 draws miss them
    assert abs(found.total.value - expected) < 5 * found.total.error + 0.005
    for n, name in enumerate(a.names):
        alone = [np.array([w[grid[:, n] == v].sum() for v in values[n]]) for w in (p, q)]
        assert found.columns[name].value == pytest.approx(plain(*alone), abs=1e-9)
    for (left, right), value in found.pairs.items():
        assert 0 <= value <= np.log(2) + 1e-12
        assert (
            value >= max(found.columns[left].value, found.columns[right].value) - 1e-3
        )  # a value of 1e-4 may be merged
    assert list(found.pairs.values()) == sorted(found.pairs.values(), reverse=True)


@FEW
@given(two())
def test_laws_of_divergences(case):
    a, b, _ = case
    for n in range(len(a.names)):
        there, back = of_column(a.mixture, b.mixture, [n]), of_column(b.mixture, a.mixture, [n])
        same = of_column(a.mixture, a.mixture, [n])
        assert there.value == pytest.approx(back.value, abs=2 * there.error + 1e-9)
        assert 0 <= there.value <= np.log(2) + 1e-6
        assert same.value == pytest.approx(0.0, abs=1e-9)
    for n, variable in enumerate(a.schema):  # a partition holds every value once
        regions = partition(a.mixture, n, variable)
        assert a.mixture.crosstab({n: regions}).sum() == pytest.approx(1.0, abs=1e-9)


def test_a_continuous_column_equals_quadrature():
    x = Variable("x", "continuous")
    a, b = (build([x], [Dictionary((Gaussian([loc], [scale]),))], [1.0], [[[1.0]]]) for loc, scale in ((0, 1), (1, 2)))

    def integrand(t):
        f, g = stats.norm.pdf(t), stats.norm.pdf(t, 1, 2)
        m = (f + g) / 2
        return (f * np.log(f / m) + g * np.log(g / m)) / 2 if f > 0 and g > 0 else 0.0

    expected, _ = integrate.quad(integrand, -12, 14)
    found = of_column(a.mixture, b.mixture, [0])
    assert found.value == pytest.approx(expected, abs=1e-8)
    assert found.error < 1e-6


@pytest.mark.parametrize("seed", range(2))
def test_blocks_have_divergences_too(seed):
    a, b = block_mixture(seed, 2), block_mixture(seed + 10, 2)
    rng = np.random.default_rng(0)
    schema = Schema(tuple(Variable(f"x{n}", "continuous") for n in range(a.n_variables)))
    total = of_all(schema, a, b, rng, 4000)
    columns = [of_column(a, b, [n]) for n in range(a.n_variables)]
    assert 0 < total.value <= np.log(2)
    assert max(c.value for c in columns) <= total.value + 5 * total.error


@FEW
@given(two())
def test_likeness_is_the_divergence_of_conditioned_laws(case):
    density, _, rng = case
    n = int(rng.integers(len(density.names)))
    X = density.mixture.sample(4, rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    row = density.mixture.sample(1, rng)[0]
    found = unlikeness(density.schema, density.mixture, [n], X, row)
    name = density.names[n]
    regions = partition(density.mixture, n, density.schema.variables[n])

    def law(x):
        known = {v.name: v.decode_value(x[m]) for m, v in enumerate(density.schema) if m != n and not np.isnan(x[m])}
        rest = (density.condition(known) if known else density).marginal(name)
        return rest.mixture.crosstab({0: regions})

    for x, value in zip(X, found, strict=True):
        assert value == pytest.approx(plain(law(x), law(row)), abs=1e-7)


def test_similar_rows_of_a_table():
    rng = np.random.default_rng(0)
    density = random_density(rng, ("smooth", "label", "smooth", "counts"), 4)
    X = density.sample(30, rng=1)
    found = density.similar(X, to=X[[7]], wrt=list(density.names[:2]))
    assert found.shape == (30,)
    assert found[7] == pytest.approx(0.0, abs=1e-9)
    assert (found >= 0).all()
    with pytest.raises(InputError, match="`to` must be one row; got 2"):
        density.similar(X, to=X[:2], wrt=density.names[0])


def test_densities_that_cannot_be_compared():
    rng = np.random.default_rng(0)
    a, b = random_density(rng, ("smooth", "label"), 2), random_density(rng, ("smooth", "counts"), 2)
    with pytest.raises(InputError, match="same variables"):
        a.divergence(b)
    with pytest.raises(InputError, match="must be a JointDensity"):
        a.divergence(3)
