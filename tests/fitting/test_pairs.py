"""From pair counts to a density: both methods against laws whose pair masses are known exactly."""

import itertools

import numpy as np
import pytest

from jointwise.axes import BinnedAxis, DiscreteAxis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, RankError
from jointwise.fitting import Options, fit_pairs
from jointwise.fitting.problem import pairwise_problem
from jointwise.marginals import PairwiseMarginals
from jointwise.solvers import Factors, Status, simplex_weights
from jointwise.tables.variables import Schema, Variable

SIZES = (4, 3, 5)
WEIGHTS = np.array([0.3, 0.7])
METHODS = ("pairs", "paper")


def simplex(rng, *shape):
    raw = rng.gamma(0.7, size=shape)
    return raw / raw.sum(axis=0)


def true_factors():
    """Each component has a category of its own in each variable: otherwise pairs would not tell the weights."""
    rng = np.random.default_rng(3)
    coefficients = []
    for size in SIZES:
        free = rng.uniform(0.2, 1, (size, len(WEIGHTS)))
        free[0, 0] = free[1, 1] = 0
        coefficients.append(free / free.sum(axis=0))
    return Factors(WEIGHTS, tuple(coefficients))


def exact_counts(conditionals, weights, n_rows=1000.0):
    """Counts that are exactly what n_rows rows of the law have on average."""
    blocks = [[n_rows * (a * weights) @ b.T for b in conditionals] for a in conditionals]
    for n, a in enumerate(conditionals):
        blocks[n][n] = np.diag(n_rows * a @ weights)
    return np.block(blocks)


def categorical_case():
    """Marginals, dictionaries and factors of a rank-2 law of three categorical variables."""
    factors = true_factors()
    schema = Schema(
        tuple(Variable(f"c{n}", "categorical", categories=tuple(range(s)), dtype="int64") for n, s in enumerate(SIZES))
    )
    axes = tuple(DiscreteAxis(np.arange(s, dtype=float)) for s in SIZES)
    counts = exact_counts(factors.coefficients, factors.weights)
    return PairwiseMarginals(schema, axes, counts, 1000.0), [Dictionary.categories(s) for s in SIZES], factors


def continuous_case(n_variables=3):
    """The same for continuous variables: two components of Gaussian atoms, on 12 bins."""
    dictionary = Dictionary.grid("gaussian", -3, 3, n=4, scale=1)
    axis = BinnedAxis(np.linspace(-4, 4, 11))
    rng = np.random.default_rng(5)
    factors = Factors(WEIGHTS, tuple(simplex(rng, 4, 2) for _ in range(n_variables)))
    masses = dictionary.masses(axis)
    schema = Schema(tuple(Variable(f"x{n}", "continuous", observed=(-5, 5)) for n in range(n_variables)))
    counts = exact_counts([masses @ b for b in factors.coefficients], WEIGHTS)
    return PairwiseMarginals(schema, (axis,) * n_variables, counts, 1000.0), [dictionary] * n_variables, factors


CASES = {"categorical": categorical_case, "continuous": continuous_case}


def pair_masses(density, axes, j, k):
    mixture = density.mixture
    left, right = (mixture.dictionaries[n].masses(axes[n]) @ mixture.coefficients[n] for n in (j, k))
    return (left * mixture.weights) @ right.T


def rng():
    return np.random.default_rng(0)


def settings(n_components=2, **changes):
    return {"n_components": n_components, "method": "pairs", "tol": 1e-9, "max_iter": 5000, **changes}


def fit_pairwise(marginals, dictionaries, settings, rng):
    given = {v.name: d for v, d in zip(marginals.schema, dictionaries, strict=True) if v.categories is None}
    return fit_pairs(marginals, Options(dictionaries=given, **settings), rng)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_recovers_a_low_rank_law_from_exact_pair_masses(case, method):
    marginals, dictionaries, _ = CASES[case]()
    fit = fit_pairwise(marginals, dictionaries, settings(method=method, tol=1e-7 if method == "pairs" else 1e-4), rng())
    for j, k in itertools.combinations(range(3), 2):
        found = pair_masses(fit.density, marginals.axes, j, k)
        np.testing.assert_allclose(found, marginals.pair(j, k) / 1000, atol=1e-3)


def test_recovers_the_whole_joint_not_only_its_pairs():
    marginals, dictionaries, truth = categorical_case()
    density = fit_pairwise(marginals, dictionaries, settings(tol=1e-12), rng()).density
    cells = np.array(list(itertools.product(*map(range, SIZES))), dtype=float)
    expected = sum(
        weight * np.prod([b[cells[:, n].astype(int), r] for n, b in enumerate(truth.coefficients)], axis=0)
        for r, weight in enumerate(truth.weights)
    )
    found = density.pdf(cells)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_density_is_what_the_last_stage_found(method):
    marginals, dictionaries, _ = continuous_case()
    fit = fit_pairwise(marginals, dictionaries, settings(method=method, tol=1e-4), rng())
    factors = list(fit.stages.values())[-1].value
    np.testing.assert_allclose(fit.density.mixture.weights, factors.weights, rtol=1e-9, atol=1e-12)
    for found, given in zip(fit.density.mixture.coefficients, factors.coefficients, strict=True):
        np.testing.assert_allclose(found, given, rtol=1e-9, atol=1e-12)
    assert fit.density.schema == marginals.schema


@pytest.mark.parametrize("method", METHODS)
def test_total_mass_is_one(method):
    marginals, dictionaries, _ = continuous_case(2)
    density = fit_pairwise(marginals, dictionaries, settings(method=method, tol=1e-4), rng()).density
    assert density.probability({"x0": (None, None)}) == pytest.approx(1, abs=1e-12)
    step = 0.05
    grid = np.arange(-9, 9, step)
    points = np.array(list(itertools.product(grid, grid)))
    assert density.pdf(points).sum() * step**2 == pytest.approx(1, abs=1e-6)


def test_one_component_is_independence_with_the_margins_fitted_alone():
    marginals, dictionaries, _ = continuous_case()
    density = fit_pairwise(marginals, dictionaries, settings(1), rng()).density
    for n, (dictionary, axis) in enumerate(zip(dictionaries, marginals.axes, strict=True)):
        masses = dictionary.masses(axis)
        alone = simplex_weights(masses, marginals.marginal(n), tol=1e-9, max_steps=5000)
        np.testing.assert_allclose(masses @ density.mixture.coefficients[n][:, 0], masses @ alone, atol=1e-4)
    assert density.mutual_information("x0", "x1").value == pytest.approx(0, abs=1e-9)


def test_one_variable_is_the_best_mixture_of_its_atoms():
    marginals, dictionaries, _ = continuous_case()
    alone = marginals.select(["x1"])
    fit = fit_pairwise(alone, dictionaries[:1], settings(5, tol=1e-6), rng())
    masses = dictionaries[0].masses(alone.axes[0])
    model = masses @ fit.density.mixture.coefficients[0][:, 0]
    # at the optimum of the concave likelihood no atom's gradient is above one
    gradient = masses.T @ (alone.marginal(0) / 1000 / model)
    assert gradient.max() <= 1 + 1e-6
    assert fit.density.n_components == 1
    assert fit.stages == {}


@pytest.mark.parametrize("method", METHODS)
def test_objectives_never_rise_and_stages_say_how_they_went(method):
    marginals, dictionaries, _ = continuous_case()
    stages = fit_pairwise(marginals, dictionaries, settings(method=method, tol=1e-6), rng()).stages
    assert list(stages) == (["likelihood"] if method == "pairs" else ["pairs", "projections", "refinement"])
    for stage in stages.values():
        scale = 1e-9 * abs(stage.history[0])
        assert np.all(np.diff(stage.history) <= scale)
        assert stage.status is Status.CONVERGED
        assert stage.converged
        assert stage.n_steps == len(stage.history) - 1
        assert stage.message.endswith(".")


def test_more_starts_never_end_worse():
    marginals, dictionaries, _ = continuous_case()
    ends = [
        fit_pairwise(marginals, dictionaries, settings(n_init=n, tol=1e-5), rng()).stages["likelihood"].history[-1]
        for n in (1, 4)
    ]
    assert ends[1] <= ends[0]


def test_problem_weighs_pairs_by_their_rows():
    marginals, dictionaries, _ = categorical_case()
    counts = marginals.counts.copy()
    counts[:4, 4:7] /= 2
    counts[4:7, :4] /= 2
    gappy = PairwiseMarginals(marginals.schema, marginals.axes, counts, 1000.0)
    problem = pairwise_problem(gappy, [d.masses(a) for d, a in zip(dictionaries, marginals.axes, strict=True)])
    assert problem.shares == pytest.approx({(0, 1): 0.5, (0, 2): 1.0, (1, 2): 1.0})
    for pair, z in problem.pairs.items():
        assert z.sum() == pytest.approx(1)
        np.testing.assert_allclose(z, marginals.pair(*pair) / 1000)


def test_given_rates_run():
    marginals, dictionaries, _ = continuous_case()
    fit = fit_pairwise(
        marginals,
        dictionaries,
        settings(method="paper", learning_rates=(1.0, 1.0, 0.1), tol=1e-5, max_iter=300),
        rng(),
    )
    assert fit.stages["refinement"].history[-1] < fit.stages["refinement"].history[0]


def test_rates_too_large_are_recorded_as_a_rise_with_advice():
    marginals, dictionaries, _ = continuous_case()
    fit = fit_pairwise(
        marginals,
        dictionaries,
        settings(method="paper", learning_rates=(1e4, 1e4, 1e4), max_iter=30),
        rng(),
    )
    rose = [stage for stage in fit.stages.values() if np.any(np.diff(stage.history) > 1e-9 * stage.history[0])]
    assert rose
    for stage in rose:
        assert "rose at" in stage.message
        assert "lower" in stage.message


def test_no_rows_is_refused():
    marginals, dictionaries, _ = categorical_case()
    empty = PairwiseMarginals.empty(marginals.schema, marginals.axes)
    with pytest.raises(InputError, match="no rows to learn from"):
        fit_pairwise(empty, dictionaries, settings(), rng())


def test_a_pair_never_seen_together_is_named():
    marginals, dictionaries, _ = categorical_case()
    counts = marginals.counts.copy()
    counts[:4, 4:7] = counts[4:7, :4] = 0
    gappy = PairwiseMarginals(marginals.schema, marginals.axes, counts, 1000.0)
    with pytest.raises(InputError, match=r"\('c0', 'c1'\).*Drop one column of each"):
        fit_pairwise(gappy, dictionaries, settings(), rng())


def test_rank_beyond_every_split_is_refused_with_the_way_out():
    marginals, dictionaries, _ = categorical_case()
    with pytest.raises(RankError, match=r'hold at most 5.*method="pairs"'):
        fit_pairwise(marginals, dictionaries, settings(6, method="paper"), rng())
    assert fit_pairwise(marginals, dictionaries, settings(6), rng()).density.n_components == 6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_components": 0}, "`n_components` must be an integer of at least 1; got 0"),
        ({"n_components": 2.5}, "`n_components`"),
        ({"n_components": True}, "`n_components`"),
        ({"method": "l2"}, "`method` must be one of 'rows', 'pairs', 'paper'; got 'l2'"),
        ({"n_init": 0}, "`n_init`"),
        ({"max_iter": 0}, "`max_iter`"),
        ({"tol": -1.0}, "`tol` must not be negative"),
        ({"tol": float("nan")}, "`tol` must be a finite number"),
        ({"learning_rates": (1, 1, 1)}, 'belong to method="paper"'),
        ({"method": "paper", "learning_rates": (1, 1)}, "three numbers"),
        ({"method": "paper", "learning_rates": "abc"}, "three numbers"),
        ({"method": "paper", "learning_rates": 0.1}, "three numbers"),
        ({"method": "paper", "learning_rates": (1, 0, 1)}, "positive"),
        ({"method": "paper", "learning_rates": (1, "a", 1)}, "finite number"),
    ],
)
def test_wrong_settings_get_a_sentence(wrong, message):
    with pytest.raises(InputError, match=message):
        Options(**{"n_components": 2, **wrong})
