"""The strength of the prior: weak where columns depend strongly, strong where they do not."""

import numpy as np

from jointwise import Profile
from jointwise.likelihood import LikelihoodSettings, fit_likelihood
from jointwise.marginals import CodedRows
from jointwise.selection import STRENGTHS, choose_atoms_and_strength


def coded(X):
    profile = Profile.of(X)
    schema = profile.schema()
    return CodedRows.of(X, schema, profile.axes(schema, 64)).canonical()


def strength(X, seed=0):
    return choose_atoms_and_strength(coded(X), {}, LikelihoodSettings(), np.random.default_rng(seed))[1]


def clusters(n, spread, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(6, 4)) * spread
    return centres[rng.integers(6, size=n)] + rng.normal(size=(n, 4))


def test_strong_dependence_wants_a_weaker_prior_than_none():
    strong, weak = strength(clusters(600, 4.0)), strength(clusters(600, 0.0))
    assert strong < weak
    assert {strong, weak} <= set(STRENGTHS)


def test_choice_does_not_depend_on_the_order_of_rows():
    X = clusters(300, 2.0)
    assert strength(X) == strength(X[::-1])


def test_independent_columns_get_nothing_worse_than_independence():
    """The gain over independence on fresh rows has standard error sd / sqrt(n); three of them are allowed."""
    rng = np.random.default_rng(1)
    X, fresh = rng.normal(size=(2, 1000, 4))
    rows = coded(X)
    dictionaries, beta = choose_atoms_and_strength(rows, {}, LikelihoodSettings(), rng)
    density = fit_likelihood(rows, dictionaries, LikelihoodSettings(beta=beta), rng).density
    independence = fit_likelihood(rows, dictionaries, LikelihoodSettings(n_components=1, beta=beta), rng).density
    gain = density.logpdf(fresh) - independence.logpdf(fresh)
    assert gain.mean() > -3 * gain.std() / np.sqrt(len(gain)) - 1e-3


def test_narrow_atoms_are_added_where_rows_show_that_they_are_needed():
    z = np.random.default_rng(2).normal(size=400)
    twins, strangers = np.column_stack([z, z]), np.random.default_rng(3).normal(size=(400, 2))
    sizes = []
    for X in (twins, strangers):
        chosen, _ = choose_atoms_and_strength(coded(X), {}, LikelihoodSettings(), np.random.default_rng(0))
        sizes.append(chosen[0].n_atoms)
    assert sizes[0] > sizes[1]
