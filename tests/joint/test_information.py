"""Entropy and mutual information, and their stated errors, against sums, adaptive quadrature and closed forms."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import integrate, stats
from tests.joint.cases import PlainJoint, build, cases, random_density, single

from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.families import Cauchy, Exponential, Gamma, Gaussian, Laplace, Lattice, PointMass, StudentT, Uniform
from jointwise.joint import Estimate
from jointwise.tables.variables import Variable

FEW = settings(deadline=None, max_examples=25)
DISCRETE = ("counts", "label", "grade")

X = Variable("x", "continuous")
Y = Variable("y", "continuous")
K = Variable("k", "integer", dtype="int64")
LABEL = Variable("label", "categorical", categories=("a", "b"), dtype="string")


def plain_entropy(density):
    """Return -E[log f] of one variable: a sum over values and spikes, plus adaptive quadrature between all corners."""
    plain = PlainJoint(density)
    continuous = any(not atom.discrete for atom in plain.atoms[0])
    points = {a.point for a in plain.atoms[0] if a.point is not None} if continuous else plain.support(0)
    total = -sum(p * math.log(p) for p in (plain.pdf([x]) for x in points) if p > 0)
    if not continuous:
        return total
    ends = np.unique(
        np.concatenate([a.sign * a.law.ppf([1e-12, 0.5, 1 - 1e-12]) for a in plain.atoms[0] if not a.discrete])
    )
    corners = [a.sign * e for a in plain.atoms[0] if not a.discrete for e in a.law.support() if math.isfinite(e)]
    breaks = np.unique(np.concatenate([ends, corners, [x for x in points if ends[0] < x < ends[-1]]]))

    def integrand(x):
        f = plain.mixed([lambda a: a.density(x) if not a.discrete else 0.0])
        return -f * math.log(f) if f > 0 else 0.0

    return total + sum(integrate.quad(integrand, a, b, limit=100, epsabs=1e-9)[0] for a, b in pairwise(breaks))


# ---- entropy ---------------------------------------------------------------------------------------------


@FEW
@given(cases(max_variables=1, kinds=DISCRETE))
def test_entropy_of_a_discrete_variable_equals_scipy(case):
    plain = PlainJoint(case.density)
    found = case.density.entropy()
    assert found.value == pytest.approx(stats.entropy([plain.pdf([x]) for x in plain.support(0)]), abs=1e-12)
    assert found.method == "sum"
    assert found.error == 0.0
    assert float(found) == found.value


@settings(deadline=None, max_examples=8)
@given(cases(max_variables=1, kinds=("smooth", "spiky", "lattice", "inflated")))
def test_entropy_equals_adaptive_quadrature_within_its_stated_error(case):
    found = case.density.entropy()
    # the quadrature itself is accurate to about 1e-7
    assert found.value == pytest.approx(plain_entropy(case.density), abs=10 * found.error + 1e-6)
    assert found.error < 1e-3


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (Gaussian(3.0, 2.0), stats.norm(3, 2).entropy()),
        (Laplace(-1.0, 0.5), stats.laplace(-1, 0.5).entropy()),
        (Uniform(2.0, 7.0), math.log(5)),
        (Exponential(1.0, 3.0), 1 + math.log(3)),
        (Exponential(1.0, 3.0, -1.0), 1 + math.log(3)),
        (StudentT(3.0, 0.0, 1.0), stats.t(3).entropy()),
        (Cauchy(0.0, 1.0), math.log(4 * math.pi)),
        (Gamma(4.0, 1.0), stats.gamma(4).entropy()),
        (Gamma(0.7, 1.0), stats.gamma(0.7).entropy()),
    ],
)
def test_entropy_of_known_densities(family, expected):
    found = single(X, Dictionary((family,))).entropy()
    assert found.value == pytest.approx(float(expected), abs=3e-8)  # 1e-10 of each tail is left out
    assert 1e-8 <= found.error < 1e-3


def test_entropy_of_a_truncated_density_is_that_of_its_interval():
    half = single(X, Dictionary((Gaussian(0.0, 1.0),))).condition({"x": (0.0, None)}).entropy()
    assert half.value == pytest.approx(stats.halfnorm().entropy(), abs=1e-7)
    slice_ = single(X, Dictionary((Exponential(0.0, 1.0),))).condition({"x": (0.0, 1e-6)}).entropy()
    assert slice_.value == pytest.approx(math.log(1e-6), abs=1e-6)


def test_many_jumps_do_not_escape_the_stated_error():
    """The entropy of a piecewise constant density is a sum."""
    rng = np.random.default_rng(0)
    breaks = np.sort(rng.uniform(0, 10, 81))
    shares = rng.dirichlet(np.ones(80))
    found = single(X, Dictionary.uniforms(breaks), shares).entropy()
    expected = -(shares * np.log(shares / np.diff(breaks))).sum()
    assert found.value == pytest.approx(expected, abs=1e-9)
    many = np.sort(rng.uniform(0, 10, 401))
    shares = rng.dirichlet(np.ones(400))
    found = single(X, Dictionary.uniforms(many), shares).entropy()
    assert found.value == pytest.approx(-(shares * np.log(shares / np.diff(many))).sum(), abs=5 * found.error)


def test_entropy_of_a_wide_lattice_is_that_of_its_density():
    """With small steps, the entropy of the rounded variable is that of the density."""
    for scale in (500.0, 2e4, 1e7):
        found = single(K, Dictionary((Lattice(Gaussian(0.0, scale)),))).entropy()
        assert found.value == pytest.approx(stats.norm(0, scale).entropy(), abs=max(3 * found.error, 1e-6))
        assert found.error < 1e-3


def test_a_point_mass_on_a_wide_lattice_counts_once():
    wide = Lattice(Gaussian(0.0, 1e5))
    found = single(K, Dictionary((wide, PointMass(3.0))), [0.5, 0.5]).entropy()
    expected = 0.5 * math.log(2) + 0.5 * (stats.norm(0, 1e5).entropy() + math.log(2))
    assert found.value == pytest.approx(expected, abs=1e-4)


def test_entropy_of_more_than_two_variables_is_sampled_with_its_standard_error():
    """For independent variables it is the sum of their entropies; four standard errors fail once in 16,000."""
    gaussian = Dictionary((Gaussian(0.0, 1.0),))
    variables = [Variable(f"x{n}", "continuous") for n in range(4)]
    density = build(variables, [gaussian] * 4, [1.0], [np.ones((1, 1))] * 4)
    found = density.entropy(rng=0, n_samples=4000)
    assert found.method == "monte carlo"
    assert abs(found.value - 4 * stats.norm().entropy()) < 4 * found.error
    # the variance of -log f is 1/2 per Gaussian
    assert found.error == pytest.approx(math.sqrt(4 * 0.5 / 4000), rel=0.1)
    assert density.entropy(rng=0, n_samples=4000) == found


# ---- mutual information ----------------------------------------------------------------------------------


@FEW
@given(cases(min_variables=2, max_variables=2))
def test_mutual_information_is_symmetric_non_negative_and_closes_the_chain(case):
    """I(a; b) = I(b; a) >= 0 and H(a, b) = H(a) + H(b) - I(a; b)."""
    density = case.density
    a, b = density.names
    one, other = density.mutual_information(a, b), density.mutual_information(b, a)
    assert one.value >= 0.0
    assert one.value == pytest.approx(other.value, abs=1e-9)
    joint = density.entropy()
    parts = [density.marginal(name).entropy() for name in (a, b)]
    # each term has its own error; corners of one variable's atoms add up to 1e-4 in two dimensions
    slack = 5 * sum(e.error for e in (one, joint, *parts)) + 1e-9
    assert joint.value == pytest.approx(sum(p.value for p in parts) - one.value, abs=slack)
    assert one.error < 1e-2


@FEW
@given(cases(min_variables=2, max_variables=2, kinds=DISCRETE))
def test_mutual_information_of_discrete_variables_equals_plain_loops(case):
    plain = PlainJoint(case.density)
    total = 0.0
    for x in plain.support(0):
        for y in plain.support(1):
            p = plain.pdf([x, y])
            if p > 0:
                total += p * math.log(p / (plain.pdf([x, math.nan]) * plain.pdf([math.nan, y])))
    found = case.density.mutual_information(*case.density.names)
    assert found.value == pytest.approx(total, abs=1e-12)
    assert found.method == "sum"


@FEW
@given(cases(min_variables=2, max_variables=2))
def test_independent_variables_share_no_information(case):
    density = case.density
    one = build(
        density.schema.variables, density.mixture.dictionaries, [1.0],
        [b[:, :1] for b in density.mixture.coefficients],
    )  # fmt: skip
    found = one.mutual_information(*one.names)
    assert found.value == pytest.approx(0.0, abs=max(found.error, 1e-9))


def test_mutual_information_of_number_and_label_equals_quadrature():
    density = build([X, LABEL], [Dictionary((Gaussian([0.0, 2.0], 1.0),)), Dictionary.categories(2)], [0.3, 0.7],
                    [np.eye(2), np.array([[0.9, 0.2], [0.1, 0.8]])])  # fmt: skip

    def integrand(x, label):
        f = [0.3 * stats.norm.pdf(x), 0.7 * stats.norm.pdf(x, 2)]
        share = [[0.9, 0.1][label], [0.2, 0.8][label]]
        joint, p = f[0] * share[0] + f[1] * share[1], 0.3 * share[0] + 0.7 * share[1]
        return joint * math.log(joint / (sum(f) * p))

    expected = sum(integrate.quad(integrand, -9, 11, args=(label,), epsabs=1e-12)[0] for label in (0, 1))
    found = density.mutual_information("x", "label")
    assert found.value == pytest.approx(expected, abs=1e-8)
    assert found == Estimate(found.value, found.error, "quadrature")


def test_two_copies_of_a_label_share_its_entropy():
    other = Variable("other", "categorical", categories=("a", "b"), dtype="string")
    density = build([LABEL, other], [Dictionary.categories(2)] * 2, [0.3, 0.7], [np.eye(2)] * 2)
    assert density.mutual_information("label", "other").value == pytest.approx(stats.entropy([0.3, 0.7]))


def test_information_on_bounded_supports_that_do_not_meet():
    """Each variable determines the component, so the information is the component's entropy."""
    uniforms = Dictionary((Uniform([0.0, 5.0], [1.0, 6.0]),))
    density = build([X, Y], [uniforms] * 2, [0.5, 0.5], [np.eye(2)] * 2)
    assert density.mutual_information("x", "y").value == pytest.approx(math.log(2), abs=1e-9)
    assert density.entropy().value == pytest.approx(math.log(2), abs=1e-9)


def test_groups_are_sampled_with_a_standard_error():
    """If y is independent of both, I(x, y; label) is I(x; label); four standard errors fail once in 16,000."""
    rng = np.random.default_rng(3)
    base = random_density(rng, ["smooth", "label"], 3)
    noise = Dictionary((Gaussian(0.0, 1.0),))
    density = build(
        [*base.schema.variables, Variable("noise", "continuous")], [*base.mixture.dictionaries, noise],
        base.mixture.weights, [*base.mixture.coefficients, np.ones((1, 3))],
    )  # fmt: skip
    x, label, _ = density.names
    found = density.mutual_information([x, "noise"], label, rng=0, n_samples=5000)
    assert found.method == "monte carlo"
    assert abs(found.value - density.mutual_information(x, label).value) < 4 * found.error


def test_the_two_sides_must_be_different_variables():
    density = random_density(np.random.default_rng(0), ["smooth", "label", "counts"], 2)
    a, b, _ = density.names
    with pytest.raises(InputError, match="must not share a variable"):
        density.mutual_information([a, b], a)
    for group in ([], [a, a]):
        with pytest.raises(InputError, match="at least one variable, each once"):
            density.mutual_information(group, b)


@pytest.mark.parametrize("n_samples", [0, 1, -5, 2.5])
def test_a_standard_error_needs_two_samples(n_samples):
    density = random_density(np.random.default_rng(0), ["smooth"] * 3, 2)
    with pytest.raises(InputError, match="`n_samples` must be an integer of at least 2"):
        density.entropy(n_samples=n_samples)
    with pytest.raises(InputError, match="`n_samples` must be an integer of at least 2"):
        density.mutual_information(density.names[:2], density.names[2], n_samples=n_samples)
