"""Learned atoms: moves against a general optimiser, and an objective that never rises, against plain loops."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.fitting.cases import fit_models

from jointwise import Dictionary, Profile
from jointwise.axes import BinnedAxis
from jointwise.datasets import gaussians
from jointwise.families import Gaussian, Laplace, StudentT
from jointwise.fitting import atoms as module
from jointwise.fitting.atoms import HOLD_ROWS, Learned, learn_atoms, moved, slopes
from jointwise.fitting.problem import rows_problem
from jointwise.rows.coded import CodedRows
from jointwise.solvers import RowsEM, solve, start_around

AXIS = BinnedAxis(np.linspace(-4, 4, 33))


def log_likelihood(dictionary, shares):
    return (shares * np.log(np.maximum(dictionary.masses(AXIS), 1e-290))).sum(axis=0)


@pytest.mark.parametrize("family", [Gaussian, Laplace, lambda loc, scale: StudentT(df=4.0, loc=loc, scale=scale)])
def test_moves_end_where_a_general_optimiser_ends(family):
    rows = np.random.default_rng(0).normal(0.7, 1.4, 500)
    shares = np.histogram(rows, np.concatenate([[-np.inf], AXIS.edges, [np.inf]]))[0].astype(float)[:, None]
    atom = Dictionary((family(loc=0.0, scale=0.5),))
    for _ in range(40):
        atom = moved(atom, AXIS, shares)
    best = minimize(
        lambda p: -log_likelihood(Dictionary((family(loc=p[0], scale=np.exp(p[1])),)), shares)[0], [0.0, 0.0],
        method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9},
    )  # fmt: skip
    assert log_likelihood(atom, shares)[0] == pytest.approx(-best.fun, abs=1e-3)
    assert atom.families[0].loc[0] == pytest.approx(best.x[0], abs=1e-2)


def test_no_move_leads_downhill_whatever_the_shares():
    rng = np.random.default_rng(1)
    for _ in range(30):
        atoms = Dictionary((Gaussian(rng.normal(size=3), rng.uniform(0.05, 3, 3)), Laplace(0.0, 1.0)))
        shares = rng.gamma(0.2, size=(AXIS.n_bins, 4)) * (rng.random((AXIS.n_bins, 4)) < 0.2)
        after = log_likelihood(moved(atoms, AXIS, shares), shares)
        assert (after >= log_likelihood(atoms, shares) - 1e-9).all()


def test_an_atom_without_rows_and_other_families_stay():
    atoms = Dictionary((Gaussian(0.3, 1.0),)) + Dictionary.uniforms([-1.0, 1.0])
    after = moved(atoms, AXIS, np.zeros((AXIS.n_bins, 2)))
    assert after.families[0].loc.tolist() == [0.3]
    assert after.families[1] is atoms.families[1]


def fitted(n=2000, beta=4.0):
    X = gaussians(0).sample(n, rng=1)
    profile = Profile.of(X)
    schema = profile.schema()
    rows = CodedRows.of(X, schema, profile.axes(schema, 64))
    atoms = (Dictionary.grid("gaussian", -6, 6, n=5, scale=3.0),) * 6
    problem = rows_problem(rows, atoms, beta)
    start = start_around(problem.margins, 6, np.random.default_rng(0))
    return rows, Learned(atoms, problem, solve(RowsEM(start), problem, max_steps=20).value)


def test_objective_never_rises_and_is_that_of_plain_loops(monkeypatch):
    monkeypatch.setattr(module, "MOST_MOVES", 6)
    rows, before = fitted(300)
    after = learn_atoms(before, rows.axes, tol=0.0)
    assert len(after.history) == 7
    assert (np.diff(after.history) <= 1e-12).all()
    total = 0.0
    for row in rows.codes:
        components = after.factors.weights.copy()
        for masses, b, code in zip(after.problem.masses, after.factors.coefficients, row, strict=True):
            components *= masses[code] @ b
        total -= np.log(components.sum())
    for n in range(6):
        m, b = after.problem.margins[n], after.factors.coefficients[n]
        total += 4.0 * sum(m @ np.log(m / b[:, r]) for r in range(b.shape[1]))
        p, q = before.problem.masses[n], after.problem.masses[n]
        total += HOLD_ROWS * (p * np.log(p / q)).sum()
    assert after.history[-1] == pytest.approx(total / 300, rel=1e-9)


def test_coarse_atoms_gain_on_fresh_rows():
    """Five wide atoms cannot fit a law whose scales are about 1.2; learned atoms come much closer."""
    law = gaussians(0)
    rows, before = fitted(3000)
    fresh = law.sample(2000, rng=2)
    fits = [fit_models(rows, [before.dictionaries], 6, 4.0, learn_dictionary=learn).density for learn in (False, True)]
    gain = fits[1].logpdf(fresh) - fits[0].logpdf(fresh)
    assert gain.mean() > 5 * gain.std() / np.sqrt(len(gain))


@pytest.mark.parametrize("spikes", [(), (0.3,)])
@pytest.mark.parametrize(
    "family",
    [
        Gaussian(loc=[-1.0, 0.5, 90.0], scale=[0.3, 2.0, 0.1]),
        Laplace(loc=[-1.03, 0.51], scale=[0.3, 2.0]),  # not on an edge: a cusp has two slopes
        StudentT(df=[3.0, 1.5], loc=[0.0, 1.0], scale=[0.5, 4.0]),
    ],
)
def test_slopes_are_those_of_finite_differences(family, spikes):
    axis = BinnedAxis(np.linspace(-4, 4, 33), spikes=spikes)
    step = 1e-6 * family.scale

    def masses(loc, scale):
        return Dictionary((family.at(loc, scale),)).masses(axis)

    by_loc = (masses(family.loc + step, family.scale) - masses(family.loc - step, family.scale)) / 2e-6
    by_scale = (masses(family.loc, family.scale + step) - masses(family.loc, family.scale - step)) / 2e-6
    np.testing.assert_allclose(slopes(family, axis), [by_loc, by_scale], atol=1e-8)
