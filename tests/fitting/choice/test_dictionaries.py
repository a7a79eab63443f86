"""The choice of dictionaries: its parts against plain loops, its outcome against the laws the data came from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from jointwise.axes import BinnedAxis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, UnknownNameError
from jointwise.fitting.choice.candidates import _densities, _Margin, candidate_dictionaries
from jointwise.fitting.choice.dictionaries import (
    SELECTION_GAIN,
    SELECTION_STEPS,
    SELECTION_TOL,
    _Column,
    _Scored,
    as_good_as_best,
    choose_dictionaries,
    held_out,
)
from jointwise.fitting.choice.folds import split_counts
from jointwise.fitting.problem import smoothing_rows
from jointwise.marginals import PairwiseMarginals, Profile
from jointwise.solvers import simplex_weights
from jointwise.tables.variables import MAX_ENUMERATED

FEW = settings(deadline=None, max_examples=60)


def rng(seed=0):
    return np.random.default_rng(seed)


def margin(values, kinds=None, n_bins=64):
    """Variable, axis and counts of one column."""
    data = {"x": values}
    profile = Profile.of(data)
    schema = profile.schema(kinds)
    axes = profile.axes(schema, n_bins)
    return schema.variables[0], axes[0], PairwiseMarginals.of(data, schema, axes).marginal(0)


def fitted(dictionary, axis, counts):
    return simplex_weights(dictionary.masses(axis), counts)


def mean_logpdf(dictionary, axis, counts, fresh):
    with np.errstate(divide="ignore"):  # a point out of reach is minus infinity, and the comparison then fails
        return np.mean(np.log(dictionary.pdf(fresh) @ fitted(dictionary, axis, counts)))


def chosen(values, **kinds):
    variable, axis, counts = margin(values, **kinds)
    return choose_dictionary(variable, axis, counts, rng()), axis, counts


def choose_dictionary(variable, axis, counts, rng):
    return _Column.of(variable, axis, counts, rng).scored().smallest_good(1.0)


def families(dictionary):
    return {entry.split()[1] for entry in dictionary.summary()}


# ---- folds -------------------------------------------------------------------------------------------------------


@FEW
@given(arrays(float, st.integers(1, 12), elements=st.floats(0, 1e6)), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_folds_add_up_to_the_counts(counts, n_folds, seed):
    folds = split_counts(counts, n_folds, rng(seed))
    assert folds.shape == (len(counts), n_folds)
    assert np.all(folds >= 0)
    np.testing.assert_allclose(folds.sum(axis=1), counts, rtol=1e-12, atol=1e-9)


@FEW
@given(arrays(np.int64, st.integers(1, 12), elements=st.integers(0, 10**6)), st.integers(0, 2**32 - 1))
def test_folds_depend_on_counts_and_generator_alone(counts, seed):
    whole = split_counts(counts, 5, rng(seed))
    np.testing.assert_array_equal(whole, split_counts(counts.astype(float), 5, rng(seed)))
    np.testing.assert_array_equal(whole, np.rint(whole))


def test_rows_are_dealt_evenly():
    folds = split_counts(np.full(50, 1000.0), 5, rng())
    # 50 000 rows to 5 folds at random: four standard deviations are 358 rows
    np.testing.assert_allclose(folds.sum(axis=0), 10_000, atol=358)


@FEW
@given(st.integers(0, 2**32 - 1))
def test_held_out_likelihood_is_that_of_a_plain_loop(seed):
    pool = rng(seed).dirichlet(np.ones(8), size=6).T
    folds = split_counts(rng(seed).integers(0, 30, 8) * rng(seed + 1).integers(0, 2, 8), 3, rng(seed))
    mixtures = [np.array([0, 1, 2, 4]), np.array([5, 1])]  # they share an atom
    found = held_out(pool, mixtures, folds)
    for scores, atoms in zip(found, mixtures, strict=True):
        np.testing.assert_allclose(scores, plain_held_out(pool[:, atoms], folds), rtol=1e-6, atol=1e-9)


def plain_held_out(masses, folds):
    expected, n_atoms = [], masses.shape[1]
    for k in range(folds.shape[1]):
        others = sum(folds[:, i] for i in range(folds.shape[1]) if i != k)
        weights = simplex_weights(
            masses,
            others,
            prior=smoothing_rows(folds.sum()),
            tol=SELECTION_TOL,
            least_gain=SELECTION_GAIN / max(folds.sum(), 1),
            max_steps=SELECTION_STEPS,
        )
        weights = (1 - 1e-6) * weights + 1e-6 / n_atoms
        total = 0.0
        for i in range(len(folds)):
            if folds[i, k]:
                total += folds[i, k] * np.log(sum(masses[i, l] * weights[l] for l in range(n_atoms)))
        expected.append(total / folds[:, k].sum() if folds[:, k].sum() else 0.0)
    return expected


# ---- the rule ----------------------------------------------------------------------------------------------------


def smallest_good(scores, sizes):
    candidates = [Dictionary.categories(size) for size in sizes]
    picked = _Scored(candidates, scores).smallest_good(1.0)
    return next(i for i, candidate in enumerate(candidates) if candidate is picked)


def test_good_ones_come_best_first_and_far_ones_not_at_all():
    best = np.array([1.0, 1.1, 0.9, 1.0])
    close, far = best - np.array([0.1, -0.1, 0.1, 0.0]), best - np.array([0.1, 0.11, 0.1, 0.09])
    assert as_good_as_best(np.stack([far, close, best]), 2.0) == [2, 1]


def test_smaller_wins_within_one_standard_error():
    best = np.array([1.0, 1.1, 0.9, 1.0])
    close = best - np.array([0.1, -0.1, 0.1, 0.0])  # behind by 0.025 +- 0.048
    far = best - np.array([0.1, 0.11, 0.1, 0.09])  # behind by 0.1 +- 0.004
    assert smallest_good(np.stack([best, close]), [9, 5]) == 1
    assert smallest_good(np.stack([best, far]), [9, 5]) == 0


def test_equal_sizes_go_to_the_better_score():
    assert smallest_good(np.array([[1.0, 1.2], [1.3, 1.0], [1.2, 1.1]]), [4, 4, 4]) in {1, 2}


def test_a_candidate_that_rules_out_held_out_rows_is_never_taken():
    scores = np.array([[1.0, -np.inf, 3.0], [0.5, 0.4, 0.6]])
    assert smallest_good(scores, [1, 9]) == 1


def test_where_every_candidate_rules_some_out_one_is_still_taken():
    assert smallest_good(np.full((3, 4), -np.inf), [5, 3, 4]) == 1


def test_a_bin_met_by_one_fold_alone_is_unlikely_not_impossible():
    masses = np.eye(3)
    folds = np.array([[0.0, 3.0], [5.0, 2.0], [1.0, 4.0]])
    assert np.all(np.isfinite(held_out(masses, [np.arange(masses.shape[1])], folds)))


# ---- candidates --------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(
    arrays(
        float,
        st.integers(1, 40),
        elements=st.floats(-1e15, 1e15) | st.sampled_from([0.0, 1.0, -1.0, 1e-12, 1e12, 1e12 + 1]),
    )
)
def test_candidates_have_masses_that_sum_to_one_whatever_the_column(values):
    variable, axis, counts = margin(values)
    candidates = list(candidate_dictionaries(variable, axis, counts))
    assert candidates
    for candidate in candidates:
        masses = candidate.masses(axis)
        assert np.all(np.isfinite(masses))
        np.testing.assert_allclose(masses.sum(axis=0), 1, atol=1e-9)
    picked = choose_dictionary(variable, axis, counts, rng())
    assert np.all(np.isfinite(fitted(picked, axis, counts)))


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_choice_does_not_depend_on_units(scale, offset):
    values = rng(1).normal(size=400) + offset
    here, _, _ = chosen(values)
    there, _, _ = chosen(values * scale)
    assert here.summary() == there.summary()


def test_a_far_offset_leaves_the_density_as_sharp():
    values = rng(2).normal(size=2000)
    near, axis, counts = chosen(values)
    far, far_axis, far_counts = chosen(values + 1e12)
    fresh = rng(3).normal(size=2000)
    # numbers near 1e12 are 1e-4 apart, which the density cannot see
    assert mean_logpdf(far, far_axis, far_counts, fresh + 1e12) == pytest.approx(
        mean_logpdf(near, axis, counts, fresh), abs=0.01
    )


def test_choice_is_the_same_for_the_same_generator():
    variable, axis, counts = margin(rng(4).normal(size=300))
    picks = [choose_dictionary(variable, axis, counts, rng(7)) for _ in range(2)]
    np.testing.assert_array_equal(picks[0].masses(axis), picks[1].masses(axis))


# ---- outcomes ----------------------------------------------------------------------------------------------------

LAWS = {
    "gaussian": (stats.norm(), 0.01),
    "laplace": (stats.laplace(), 0.02),
    "exponential": (stats.expon(), 0.02),
    "lognormal": (stats.lognorm(1.0), 0.02),
    "very skewed": (stats.lognorm(2.0), 0.03),
    "uniform": (stats.uniform(), 0.04),
    "cauchy": (stats.cauchy(), 0.03),
    "student": (stats.t(3), 0.02),
}


@pytest.mark.parametrize("law", LAWS)
def test_chosen_dictionary_comes_close_to_the_law(law):
    """KL divergence from the law, in nats; bounds are twice what was seen over several seeds."""
    truth, bound = LAWS[law]
    dictionary, axis, counts = chosen(truth.rvs(3000, random_state=1))
    fresh = truth.rvs(5000, random_state=2)
    assert np.mean(truth.logpdf(fresh)) - mean_logpdf(dictionary, axis, counts, fresh) < bound


def test_two_scales_in_one_column_are_both_met():
    narrow, wide = stats.norm(0, 0.05), stats.norm(0, 5)
    values = np.concatenate([narrow.rvs(900, random_state=1), wide.rvs(2100, random_state=2)])
    dictionary, axis, counts = chosen(values)
    fresh = np.concatenate([narrow.rvs(900, random_state=3), wide.rvs(2100, random_state=4)])
    truth = np.log(0.3 * narrow.pdf(fresh) + 0.7 * wide.pdf(fresh)).mean()
    assert truth - mean_logpdf(dictionary, axis, counts, fresh) < 0.05


def test_density_that_jumps_gets_uniform_atoms_and_gains_by_them():
    truth = stats.uniform(2, 3)
    values, fresh = truth.rvs(4000, random_state=1), truth.rvs(4000, random_state=2)
    dictionary, axis, counts = chosen(values)
    assert "uniform" in families(dictionary)
    without = [c for c in candidate_dictionaries(*margin(values)) if not families(c) & {"uniform", "exponential"}]
    best_without = max(mean_logpdf(c, axis, counts, fresh) for c in without)
    assert mean_logpdf(dictionary, axis, counts, fresh) > best_without


def test_large_laplace_sample_does_not_take_broad_gaussians():
    """With 100 000 rows the peak is plain: the choice must come within 0.003 nats of the law."""
    truth = stats.laplace()
    dictionary, axis, counts = chosen(truth.rvs(100_000, random_state=1))
    fresh = truth.rvs(50_000, random_state=2)
    assert np.mean(truth.logpdf(fresh)) - mean_logpdf(dictionary, axis, counts, fresh) < 0.003


def test_positive_column_keeps_its_mass_positive():
    dictionary, axis, counts = chosen(stats.lognorm(1.0).rvs(3000, random_state=1))
    below_zero = dictionary.cdf([0.0]) @ fitted(dictionary, axis, counts)
    assert {"exponential", "gamma", "log_normal"} <= families(dictionary)
    assert below_zero[0] < 0.01


def test_few_integers_have_an_atom_each():
    dictionary, _, _ = chosen(rng().integers(3, 9, 300))
    assert dictionary.is_identity
    np.testing.assert_array_equal(dictionary.spikes, np.arange(3, 9))


@pytest.mark.parametrize(
    "law",
    [stats.poisson(200), stats.randint(0, 500), stats.geom(0.01), stats.nbinom(2, 0.02)],
    ids=lambda law: law.dist.name,
)
def test_many_integers_go_on_the_lattice(law):
    values = law.rvs(3000, random_state=1)
    assert np.ptp(values) >= MAX_ENUMERATED
    dictionary, axis, counts = chosen(values)
    assert families(dictionary) == {"lattice"}
    fresh = law.rvs(3000, random_state=2)
    assert np.mean(law.logpmf(fresh)) - mean_logpdf(dictionary, axis, counts, fresh.astype(float)) < 0.04


def test_spikes_get_point_masses_and_the_rest_its_density():
    values = np.where(rng().random(3000) < 0.6, 0.0, stats.lognorm(1.0).rvs(3000, random_state=1))
    dictionary, axis, counts = chosen(values)
    np.testing.assert_array_equal(dictionary.spikes, [0.0])
    assert "log_normal" in families(dictionary)
    at_zero = dictionary.pdf([0.0]) @ fitted(dictionary, axis, counts)
    assert at_zero[0] == pytest.approx(np.mean(values == 0), abs=0.01)


def test_column_of_one_value_is_a_point_mass():
    dictionary, _, _ = chosen(np.full(20, 4.5))
    assert repr(dictionary) == "Dictionary(1 point_mass)"


def test_categories_have_an_atom_each():
    dictionary, _, _ = chosen(["a", "b", "c", "a"])
    assert repr(dictionary) == "Dictionary(3 category)"


# ---- given dictionaries ------------------------------------------------------------------------------------------


def marginals():
    data = {"x": rng().normal(size=60), "k": rng().integers(0, 100, 60), "c": list("ab") * 30}
    profile = Profile.of(data)
    schema = profile.schema()
    return PairwiseMarginals.of(data, schema, profile.axes(schema, 16))


def test_given_dictionaries_are_taken_by_name_and_put_on_the_lattice_for_integers():
    mine = Dictionary.grid("gaussian", 0, 100, step=20, scale=10)
    _, integer, categorical = choose_dictionaries(marginals(), {"k": mine}, rng())
    assert families(integer) == {"lattice"}
    assert integer.n_atoms == 6
    assert categorical.n_atoms == 2


@pytest.mark.parametrize(
    ("given_dictionaries", "error", "message"),
    [
        ({"y": Dictionary.points([0.0])}, UnknownNameError, "dictionaries: 'y'"),
        ({"c": Dictionary.grid("gaussian", 0, 1, n=2, scale=1)}, InputError, "'c', which is categorical"),
    ],
)
def test_wrong_dictionaries_get_a_sentence(given_dictionaries, error, message):
    with pytest.raises(error, match=message):
        choose_dictionaries(marginals(), given_dictionaries, rng())


def test_binned_axis_alone_decides_where_spikes_are():
    variable, _, _ = margin(rng().normal(size=50))
    axis = BinnedAxis([0.0, 1.0], spikes=[0.5])
    candidates = list(candidate_dictionaries(variable, axis, np.array([20, 20, 0, 10])))
    assert all(list(c.spikes) == [0.5] for c in candidates)


def test_numbers_whose_ratio_is_beyond_the_largest_number_have_candidates():
    profile = Profile.of({"x": [1e300] * 10 + [1e-300, 0.0]})
    schema = profile.schema()
    (axis,) = profile.axes(schema, 16)
    counts = np.bincount(axis.index([1e300] * 10 + [1e-300, 0.0]), minlength=axis.n_bins).astype(float)
    for candidate in candidate_dictionaries(schema["x"], axis, counts):
        assert np.isfinite(candidate.sample(np.arange(candidate.n_atoms), np.random.default_rng(0))).all()


@pytest.mark.parametrize("kind", ["continuous", "positive", "integer"])
def test_candidates_evaluated_together_are_those_evaluated_alone(kind):
    values = np.random.default_rng(0).normal(3.0, 1.0, 2_000)
    values = {"continuous": values, "positive": np.exp(values), "integer": np.floor(np.exp(values))}[kind]
    variable, axis, counts = margin(values)
    made = _Margin(variable, axis, counts)
    raw = _densities(made)
    candidates = made.atoms_of_all(raw)
    masses = candidates.pool.masses(axis)
    for number, (found, dictionary) in enumerate(zip(candidates, raw, strict=True)):
        alone = made.atoms(dictionary)
        assert found.summary() == alone.summary()
        np.testing.assert_allclose(found.masses(axis), alone.masses(axis), rtol=1e-9, atol=1e-15)
        np.testing.assert_array_equal(masses[:, candidates.atoms(number)], found.masses(axis))
