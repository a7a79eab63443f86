"""Dictionaries: recipes, those of the paper, bin masses on every axis, and derived ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jointwise.axes import BinnedAxis, DiscreteAxis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, ImpossibleEventError, InputError, UnknownNameError
from jointwise.families import (
    FAMILIES,
    Category,
    Cauchy,
    Exponential,
    Gaussian,
    Laplace,
    Lattice,
    LogNormal,
    PointMass,
    StudentT,
    Truncated,
    Uniform,
)

FEW = settings(deadline=None, max_examples=40)
MIXED = Dictionary((Gaussian([0.0, 2.0], [1.0, 0.5]), Laplace(1.0, 1.0), Uniform(-1.0, 3.0), PointMass([0.0, 2.5])))
INTEGERS = Dictionary(
    (Lattice(Gaussian([0.0, 4.0], [1.0, 3.0])), Lattice(Exponential(0.0, 2.0)), PointMass([0.0, 7.0]))
)


# ---- the paper's three ------------------------------------------------------------------------------------


def test_seeds_dictionary_of_the_paper():
    """Gaussians of variance 1 at the boundaries of intervals of length 2 on [10, 22], U(10, 16) and U(16, 22)."""
    seeds = Dictionary.grid("gaussian", 10, 22, step=2, scale=1) + Dictionary.uniforms([10, 16, 22])
    gaussian, uniform = seeds.families
    assert gaussian.loc.tolist() == [10, 12, 14, 16, 18, 20, 22]
    assert (gaussian.scale**2).tolist() == [1.0] * 7
    assert uniform.low.tolist() == [10, 16]
    assert uniform.high.tolist() == [16, 22]
    assert seeds.n_atoms == 9


def test_wifi_dictionary_of_the_paper():
    """Gaussians of variance 4 at the boundaries of intervals of length 4 on [-90, -36]."""
    wifi = Dictionary.grid("gaussian", -90, -36, step=4, scale=2)
    (gaussian,) = wifi.families
    assert gaussian.loc.tolist() == list(range(-90, -36, 4))
    assert (gaussian.scale**2).tolist() == [4.0] * 14


def test_kth_dictionary_of_the_paper():
    """Gaussians of variance 4e-4 at a distance of 0.04 on [0, 1]."""
    kth = Dictionary.grid("gaussian", 0, 1, step=0.04, scale=0.02)
    (gaussian,) = kth.families
    np.testing.assert_allclose(gaussian.loc, np.arange(26) / 25, atol=1e-15)
    np.testing.assert_allclose(gaussian.scale**2, 4e-4)
    assert kth.summary() == ["26 gaussian"]


# ---- recipes ---------------------------------------------------------------------------------------------


def test_grid_takes_each_family_and_scale_at_every_location():
    d = Dictionary.grid(["gaussian", "laplace"], -1, 1, n=5, scale=[0.5, 2.0])
    assert d.summary() == ["10 gaussian", "10 laplace"]
    assert [f.scale[0] for f in d.families] == [0.5, 2.0, 0.5, 2.0]
    for family in d.families:
        assert family.loc.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("name", "shape"),
    [("gaussian", {}), ("laplace", {}), ("cauchy", {}), ("logistic", {}), ("student_t", {"df": 3.0}),
     ("generalized_gaussian", {"shape": 1.5})],
)  # fmt: skip
def test_grid_of_every_location_scale_family(name, shape):
    d = Dictionary.grid(name, 0, 1, n=3, scale=0.1, **shape)
    assert isinstance(d.families[0], FAMILIES[name])
    assert d.n_atoms == 3


@given(st.integers(1, 400), st.floats(0.001, 10), st.floats(-100, 100))
@FEW
def test_a_step_that_divides_the_range_reaches_its_end(n, step, low):
    loc = Dictionary.grid("gaussian", low, low + n * step, step=step, scale=1).families[0].loc
    assert len(loc) == n + 1
    assert loc[-1] == pytest.approx(low + n * step, rel=1e-9, abs=1e-9)


def test_one_location():
    assert Dictionary.grid("gaussian", 3, 3, n=1, scale=1).families[0].loc.tolist() == [3.0]
    assert Dictionary.grid("gaussian", 3, 3, step=1, scale=1).families[0].loc.tolist() == [3.0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Dictionary.grid("gaussian", 1, 0, n=2, scale=1), InputError, "low <= high, got 1 and 0"),
        (lambda: Dictionary.grid("gaussian", 0, math.inf, n=2, scale=1), InputError, "must be finite"),
        (lambda: Dictionary.grid("gaussian", math.nan, 1, n=2, scale=1), InputError, "must be finite"),
        (lambda: Dictionary.grid("gaussian", 0, 1, scale=1), InputError, "Give either step"),
        (lambda: Dictionary.grid("gaussian", 0, 1, step=1, n=2, scale=1), InputError, "Give either step"),
        (lambda: Dictionary.grid("gaussian", 0, 1, step=0, scale=1), InputError, "step must be positive"),
        (lambda: Dictionary.grid("gaussian", 0, 1, step=-1, scale=1), InputError, "step must be positive"),
        (lambda: Dictionary.grid("gaussian", 0, 1, step=math.inf, scale=1), InputError, "step must be positive"),
        (lambda: Dictionary.grid("gaussian", 0, 1, n=0, scale=1), InputError, "`n` must be an integer of at least 1"),
        (lambda: Dictionary.grid("gaussian", 0, 1, n=2.5, scale=1), InputError, "`n` must be an integer"),
        (lambda: Dictionary.grid("gaussian", 0, 1, n=2, scale=0), InputError, "scale of gaussian must be positive"),
        (lambda: Dictionary.grid("gaussian", 0, 1, n=2, scale=[]), InputError, "at least one family"),
        (lambda: Dictionary.grid([], 0, 1, n=2, scale=1), InputError, "at least one family"),
        (lambda: Dictionary.grid("gausian", 0, 1, n=2, scale=1), UnknownNameError, "'gausian'. Known: gaussian"),
        (lambda: Dictionary.grid("uniform", 0, 1, n=2, scale=1), UnknownNameError, "Unknown location-scale family"),
        (lambda: Dictionary.uniforms([1.0]), InputError, "at least two increasing numbers"),
        (lambda: Dictionary.uniforms([[1.0, 2.0]]), InputError, "at least two increasing numbers"),
        (lambda: Dictionary.uniforms([2.0, 1.0]), InputError, "low of uniform must be below high"),
        (lambda: Dictionary.uniforms([0.0, math.inf]), InputError, "must be finite"),
        (lambda: Dictionary.points([]), InputError, "at least one"),
        (lambda: Dictionary.points([math.nan]), InputError, "must be finite"),
        (lambda: Dictionary.categories(0), InputError, "`n` must be an integer of at least 1"),
        (lambda: Dictionary.categories(2.5), InputError, "`n` must be an integer"),
        (lambda: Dictionary(()), InputError, "at least one family of atoms"),
        (lambda: Dictionary(("gaussian",)), InputError, "at least one family of atoms"),
    ],
)
def test_what_cannot_be_built_says_why(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_one_family_needs_no_tuple_and_other_things_do_not_add():
    assert Dictionary(Gaussian(0.0, 1.0)).n_atoms == 1
    with pytest.raises(TypeError):
        Dictionary.points([1.0]) + 2.0


# ---- atoms: the spike rule ---------------------------------------------------------------------------------


def test_at_a_spike_only_point_masses_have_a_density():
    density = MIXED.pdf([0.0, -0.0, 2.5, 1.0])
    np.testing.assert_array_equal(density[:3, :4], 0.0)
    np.testing.assert_array_equal(density[:3, 4:], [[1, 0], [1, 0], [0, 1]])
    np.testing.assert_allclose(density[3, :4], [stats.norm.pdf(1), stats.norm.pdf(1, 2, 0.5), 0.5, 0.25])
    assert MIXED.spikes.tolist() == [0.0, 2.5]


def test_point_masses_among_integers_hide_nothing():
    density = INTEGERS.pdf([0.0, 7.0])
    assert (density[:, :3] > 0).all()
    assert density[:, 3:].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_every_atom_in_turn():
    """Columns of the dictionary are those of its families, one after the other."""
    x = np.array([-1.5, 0.3, 1.0, 2.0])
    for d in (MIXED, INTEGERS, Dictionary.categories(3)):
        for name in ("cdf", "ppf", "logpdf"):
            points = np.array([0.1, 0.5, 0.9]) if name == "ppf" else x
            parts = [getattr(f.take([i]), name)(points) for f in d.families for i in range(f.n_atoms)]
            np.testing.assert_array_equal(getattr(d, name)(points), np.hstack(parts))
        for name in ("mean", "var", "mode"):
            parts = [getattr(f.take([i]), name)() for f in d.families for i in range(f.n_atoms)]
            np.testing.assert_allclose(getattr(d, name)(), np.concatenate(parts), rtol=1e-9, atol=1e-12)


def test_masses_of_points_and_closed_intervals():
    np.testing.assert_array_equal(MIXED.point_mass([0.0, 1.0, 2.5])[:, 4:], [[1, 0], [0, 0], [0, 1]])
    assert not MIXED.point_mass([0.0, 1.0, 2.5])[:, :4].any()
    np.testing.assert_allclose(INTEGERS.point_mass([0.0, 0.5, 3.0]), INTEGERS.pdf([0.0, 0.5, 3.0]), rtol=1e-12)
    closed, half_open = MIXED.closed_mass(0.0, 2.5), MIXED.mass(0.0, 2.5)
    np.testing.assert_array_equal(closed[:4], half_open[:4])
    assert closed[4:].tolist() == [1.0, 1.0]
    assert half_open[4:].tolist() == [0.0, 1.0]
    assert not Dictionary.uniforms([0.0, 1.0]).closed_mass(1.0, 2.0).any()
    np.testing.assert_allclose(INTEGERS.closed_mass(1, 3), INTEGERS.pdf([1.0, 2.0, 3.0]).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(INTEGERS.closed_mass(0.2, 3.9), INTEGERS.closed_mass(1, 3), rtol=1e-12)
    np.testing.assert_allclose(MIXED.closed_mass(-np.inf, np.inf), 1.0)


def test_corners_are_modes_and_finite_ends():
    assert MIXED.corners().tolist() == [-1.0, 0.0, 1.0, 2.0, 2.5, 3.0]


def test_samples_come_from_the_atoms_named():
    rng = np.random.default_rng(0)
    atoms = np.array([5, 4, 3, 5])
    drawn = MIXED.sample(atoms, rng)
    assert drawn[[0, 1, 3]].tolist() == [2.5, 0.0, 2.5]
    assert -1 <= drawn[2] <= 3
    part = MIXED.truncate(0.0, 2.5)  # some of its families are never drawn
    assert part.sample(np.array([5, 4]), rng).tolist() == [2.5, 0.0]


# ---- bin masses ------------------------------------------------------------------------------------------


def masses_by_loops(dictionary, axis):
    """P(bin | atom) from cdf values and point masses, one at a time."""
    atoms = [f.take([i]) for f in dictionary.families for i in range(f.n_atoms)]
    table = np.zeros((axis.n_bins, len(atoms)))
    for l, atom in enumerate(atoms):
        jumps = [] if not atom.is_discrete else [float(s) for s in axis.spikes]
        at = [float(atom.pdf(s)[0]) for s in jumps]
        for i, (low, high) in enumerate(zip(axis.lower, axis.upper, strict=True)):
            inside = sum(p for s, p in zip(jumps, at, strict=True) if low < s <= high)
            table[i, l] = float(atom.cdf(high)[0] - atom.cdf(low)[0]) - inside
        table[axis.n_intervals :, l] = at or 0.0
    return table


AXES = {
    "plain": BinnedAxis([-1.0, 0.0, 0.5, 2.5]),
    "one bin": BinnedAxis([]),
    "spikes between edges": BinnedAxis([-1.0, 1.0], spikes=[0.0, 2.5]),
    "spikes on edges": BinnedAxis([0.0, 2.5], spikes=[0.0, 2.5]),
    "one spike of two": BinnedAxis([1.0], spikes=[2.5]),
    "a spike no atom has": BinnedAxis([1.0], spikes=[-3.0, 0.0, 2.5]),
    "beyond all support": BinnedAxis([-1e6, 1e6]),
}


@pytest.mark.parametrize("axis", AXES.values(), ids=AXES.keys())
@pytest.mark.parametrize("dictionary", [MIXED, Dictionary((Cauchy(0.0, 1.0), StudentT(0.8, 1.0, 2.0)))])
def test_bin_masses_equal_plain_loops_and_sum_to_one(dictionary, axis):
    masses = dictionary.masses(axis)
    assert masses.shape == (axis.n_bins, dictionary.n_atoms)
    np.testing.assert_allclose(masses, masses_by_loops(dictionary, axis), atol=1e-12)
    np.testing.assert_allclose(masses.sum(axis=0), 1.0, rtol=1e-12)
    assert (masses >= 0).all()


@given(st.lists(st.floats(-20, 20), max_size=12, unique=True), st.lists(st.sampled_from([-2.0, 0.0, 2.5]), unique=True))
@FEW
def test_masses_sum_to_one_on_any_axis(edges, spikes):
    axis = BinnedAxis(np.sort(edges), np.sort(spikes))
    masses = MIXED.masses(axis)
    np.testing.assert_allclose(masses.sum(axis=0), 1.0, rtol=1e-12)
    assert (masses >= 0).all()


def test_every_row_of_a_sample_finds_its_bin():
    """Shares of a large sample in the bins are the masses; six standard errors fail once in 10^8."""
    rng = np.random.default_rng(0)
    axis = AXES["spikes on edges"]
    masses = MIXED.masses(axis)
    for atom in range(MIXED.n_atoms):
        drawn = MIXED.sample(np.full(4000, atom), rng)
        share = np.bincount(axis.index(drawn), minlength=axis.n_bins) / 4000
        assert (np.abs(share - masses[:, atom]) <= 6 * np.sqrt(masses[:, atom] * (1 - masses[:, atom]) / 4000)).all()


def test_half_integer_edges_count_integers():
    axis = BinnedAxis([-0.5, 0.5, 1.5, 6.5])
    masses = INTEGERS.masses(axis)
    np.testing.assert_allclose(masses[1], INTEGERS.pdf([0.0])[0], rtol=1e-12)
    np.testing.assert_allclose(masses[2], INTEGERS.pdf([1.0])[0], rtol=1e-12)
    np.testing.assert_allclose(masses[3], INTEGERS.pdf(np.arange(2.0, 7.0)).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(masses.sum(axis=0), 1.0, rtol=1e-12)
    # the masses of a lattice on such an axis are those of its continuous base
    base = Dictionary((Gaussian([0.0, 4.0], [1.0, 3.0]),))
    np.testing.assert_allclose(masses[:, :2], base.masses(axis), rtol=1e-9)


def test_masses_on_values():
    axis = DiscreteAxis([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(Dictionary.points([0, 1, 2]).masses(axis), np.eye(3))
    np.testing.assert_array_equal(Dictionary.categories(3).masses(axis), np.eye(3))
    np.testing.assert_array_equal(Dictionary.points([2, 0]).masses(axis), [[0, 1], [0, 0], [1, 0]])
    wide = DiscreteAxis(np.arange(-60.0, 61.0))
    np.testing.assert_allclose(INTEGERS.masses(wide).sum(axis=0), 1.0, atol=1e-9)


# ---- new from old ----------------------------------------------------------------------------------------


def test_adding_puts_side_by_side():
    d = Dictionary.points([1.0]) + Dictionary.grid("gaussian", 0, 1, n=2, scale=1)
    assert d.n_atoms == 3
    assert d.is_continuous
    assert not d.is_identity
    assert Dictionary.points([1.0]).is_identity
    assert not Dictionary.categories(2).is_continuous


@given(st.lists(st.booleans(), min_size=6, max_size=6).filter(any))
@FEW
def test_take_keeps_the_atoms_marked(keep):
    keep = np.array(keep)
    part = MIXED.take(keep)
    assert part.n_atoms == keep.sum()
    x = np.array([-0.5, 1.0, 2.6])
    np.testing.assert_array_equal(part.logpdf(x), MIXED.logpdf(x)[:, keep])


def test_taking_nothing_is_refused():
    with pytest.raises(InputError, match="at least one family"):
        MIXED.take(np.zeros(6, dtype=bool))


def test_truncate_closes_both_ends():
    part = MIXED.truncate(0.0, 2.5)
    x = np.array([-0.1, 0.0, 1.0, 2.5, 2.6])
    inside = (x >= 0) & (x <= 2.5)
    expected = np.where(inside[:, None], MIXED.pdf(x) / MIXED.closed_mass(0.0, 2.5), 0.0)
    np.testing.assert_allclose(part.pdf(x), expected, rtol=1e-12)
    assert part.spikes.tolist() == [0.0, 2.5]
    whole = INTEGERS.take(np.array([True, True, True, False, True])).truncate(2, 7)
    np.testing.assert_allclose(whole.pdf([1.0, 2.0, 7.0, 8.0]) > 0,
                               [[0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]])  # fmt: skip
    with pytest.raises(ImpossibleEventError, match="no mass"):
        MIXED.truncate(50.0, 60.0)


def test_on_lattice_rounds_densities_and_leaves_points():
    d = Dictionary((Gaussian(0.2, 1.5), PointMass(3.0))).on_lattice()
    assert d.summary() == ["1 lattice", "1 point_mass"]
    assert not d.is_continuous
    np.testing.assert_allclose(d.pdf([1.0])[0, 0], stats.norm.cdf(1.5, 0.2, 1.5) - stats.norm.cdf(0.5, 0.2, 1.5))
    assert d.pdf([0.5])[0].tolist() == [0.0, 0.0]
    assert d.on_lattice() == d


@pytest.mark.parametrize(
    "dictionary",
    [MIXED, INTEGERS, Dictionary.categories(4), MIXED.truncate(0.0, 2.5), INTEGERS.truncate(0, np.inf),
     Dictionary((Truncated(Cauchy(0.0, 1.0), -np.inf, 2.0), Category([0])))],
)  # fmt: skip
def test_the_plain_form_comes_back(dictionary):
    back = Dictionary.from_dict(dictionary.to_dict())
    assert back == dictionary
    assert back.summary() == dictionary.summary()


@pytest.mark.parametrize(
    "data", [{"families": []}, {"families": "gaussian"}, {"families": [3]}, {"families": [{"family": "gauss"}]}]
)
def test_a_plain_form_that_is_none_is_refused(data):
    with pytest.raises(FileFormatError, match="Not a dictionary"):
        Dictionary.from_dict(data)


def test_summary_and_repr_group_neighbours():
    d = Dictionary.grid("gaussian", 0, 1, n=5, scale=[0.1, 0.2]) + Dictionary.uniforms([0, 1, 2])
    assert d.summary() == ["10 gaussian", "2 uniform"]
    assert repr(d) == "Dictionary(10 gaussian + 2 uniform)"


def test_a_density_beyond_the_largest_number_is_infinite_without_a_warning():
    assert Dictionary((Gaussian(0.0, 5e-324),)).pdf([0.0])[0, 0] == np.inf


def test_draws_beyond_the_largest_number_are_that_number_and_have_a_density():
    heavy = Dictionary((LogNormal(log_mean=700.0, log_std=300.0),))
    drawn = heavy.sample(np.zeros(200, dtype=np.int64), np.random.default_rng(0))
    assert drawn.max() == np.finfo(np.float64).max
    assert np.isfinite(heavy.logpdf(drawn)).all()


@pytest.mark.parametrize(
    ("dictionary", "axis"),
    [
        (Dictionary.categories(4), DiscreteAxis(np.arange(4.0))),
        (Dictionary.points([2.0, 0.0, 5.0]), BinnedAxis([1.0, 3.0], spikes=[0.0])),
        (Dictionary.points([0.0, 1.0]) + Dictionary.points([1.0]), DiscreteAxis([0.0, 1.0, 2.0])),
        (Dictionary.points([0.0, 9.0]), DiscreteAxis([0.0, 1.0])),  # a value off the axis has no bin
        (Dictionary.grid("gaussian", 0, 1, n=3, scale=1), BinnedAxis([0.0, 0.5])),
    ],
)
def test_mixed_masses_are_masses_times_coefficients(dictionary, axis):
    coefficients = np.random.default_rng(0).dirichlet(np.ones(dictionary.n_atoms), size=2).T
    found = dictionary.mixed_masses(axis, coefficients)
    np.testing.assert_allclose(found, dictionary.masses(axis) @ coefficients, rtol=1e-12)


def test_families_of_one_kind_are_evaluated_together_as_each_alone():
    grid = Dictionary.grid("gaussian", 0, 2, n=3, scale=1)
    mixed = (
        grid
        + Dictionary.points([1, 2])
        + Dictionary.uniforms([0, 1, 3])
        + Dictionary.grid("gaussian", 1, 4, n=2, scale=2)
    )
    mixed = (
        mixed
        + grid.truncate(0, 3)
        + Dictionary.points([5])
        + Dictionary.grid("laplace", 0, 1, n=2, scale=1).truncate(0, 3)
    )
    x = np.array([-1.0, 0.5, 1.0, 2.5, 5.0])
    for values in (
        lambda f: f.cdf(x),
        lambda f: f.sf(x),
        lambda f: f.partition(x),
        lambda f: f.mass(-1.0, 2.0),
        lambda f: f.ppf([0.2, 0.7]),
    ):
        alone = np.concatenate([values(family) for family in mixed.families], axis=-1)
        np.testing.assert_array_equal(mixed._gather(values), alone)
