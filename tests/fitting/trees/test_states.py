"""States of columns: they do not overlap, hold all values, keep bounds, and have the shape of the 1-D fit."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from jointwise.estimators._columns import ColumnOptions
from jointwise.fitting.trees.counts import regrouped_pairs
from jointwise.fitting.trees.design import TreeDesign
from jointwise.fitting.trees.space import pair_prior
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows

RNG = np.random.default_rng(0)
N = 400
COLUMNS = {
    "normal": RNG.normal(size=N),
    "skewed": RNG.lognormal(size=N),
    "spiked": np.where(RNG.random(N) < 0.3, 0.0, RNG.exponential(size=N)),
    "share": RNG.beta(0.5, 0.5, size=N),
    "rounded": np.round(RNG.normal(size=N), 1),
    "count": RNG.poisson(3, size=N),
    "large count": RNG.poisson(200, size=N),
    "capital": np.where(RNG.random(N) < 0.8, 0, RNG.integers(1000, 90_000, size=N)),
    "two values": np.where(RNG.random(N) < 0.4, 1.5, 2.25),
    "far integers": RNG.choice([0, 5000, 10**6], size=N),
    "constant": np.full(N, 3.25),
    "few rows": np.concatenate([[1.0, 2.5], np.full(N - 2, np.nan)]),
    "kinds": RNG.choice(list("abc"), size=N),
    "many kinds": np.array([f"k{i:03d}" for i in RNG.zipf(1.3, size=N).clip(max=300)]),
}


def design_of(data, **options):
    about = ColumnOptions(None, None, None, (), tuple(data), 128, {}, fine=True)
    columns = about.settle(Profile.of(data))
    rows = CodedRows.of(data, columns.schema, columns.axes)
    return TreeDesign.of(rows, columns.coarse, np.random.default_rng(0), **options), rows, columns


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("n_states", [2, 8, 32])
def test_each_state_emits_its_own_bin(name, n_states):
    design, rows, _ = design_of({name: COLUMNS[name]})
    states = design.space(n_states).columns[0]
    coded = rows.regrouped((states.axis,))
    counts = coded.marginal(0)
    assert counts.sum() == rows.marginal(0).sum()
    assert states.shares.sum() < 0.05
    assert len(states.log_masses) == states.axis.n_bins
    if states.groups is not None:
        assert np.allclose(states.groups.sum(axis=1), 1.0)
        assert np.count_nonzero(states.groups, axis=0).max() == 1
        return
    masses = states.atoms.masses(states.axis)
    n = states.axis.n_bins
    assert np.allclose(masses[:, :n], np.eye(n), atol=1e-9)
    # every row has a density under its own state, and under no other
    values = rows.values()[:, 0]
    seen = ~np.isnan(values)
    logs = states.atoms.logpdf(values[seen])
    at = coded.codes[seen, 0].astype(int)
    assert np.isfinite(logs[np.arange(len(at)), at]).all()
    own = logs[np.arange(len(at)), at].copy()
    logs[np.arange(len(at)), at] = -np.inf
    assert (logs < own[:, None] - 15).all()  # ends of bins are known to the rounding of a warp and back


def test_the_shape_within_a_bin_is_that_of_the_own_fit():
    design, _, _ = design_of({"a": COLUMNS["skewed"]})
    column = design.columns[0]
    fine, coarse = (design.space(n).columns[0] for n in (8, 2))
    low, high = fine.axis.edges[2], fine.axis.edges[3]
    for states in (fine, coarse):
        at = states.axis.index(np.array([low * 0.5 + high * 0.5]))[0]
        total = quad(lambda x, s=states, k=at: float(s.atoms.pdf([x])[0, k]), low, high, epsabs=1e-9)[0]
        assert total == pytest.approx(np.exp(_log_mass(column, low, high) - _bin_mass(column, states, at)), rel=1e-6)


def _log_mass(column, low, high):
    return np.log(norm.cdf(column.warp(high)) - norm.cdf(column.warp(low)))


def _bin_mass(column, states, at):
    low, high = column._ends(states.axis)
    return _log_mass(column, low[at], high[at])


def test_no_state_has_mass_beyond_a_bound():
    design, _, columns = design_of({"share": COLUMNS["share"], "capital": COLUMNS["capital"]})
    for column, variable in zip(design.space(16).columns, columns.schema, strict=True):
        low, high = variable.support
        assert variable.is_bounded
        assert np.allclose(column.atoms.closed_mass(low, high), 1.0)


def test_spikes_of_integers_are_states_of_one_value():
    design, _, _ = design_of({"capital": COLUMNS["capital"]})
    states = design.space(8).columns[0]
    zero = states.axis.index(np.array([0.0]))[0]
    assert states.atoms.pdf([0.0])[0, zero] == 1.0
    assert len(states.axis.spikes) == 0


def test_many_categories_are_frequent_ones_and_groups():
    design, rows, _ = design_of({"a": np.array([f"k{i:04d}" for i in range(5000)]), "b": np.arange(5000) % 3})
    states = design.space(8).columns[0]
    assert states.axis.n_bins <= 64
    assert states.groups.shape == (states.axis.n_bins, 5000)
    assert pair_prior(rows.regrouped(design.space(8).axes).pairs()).tables.size <= 64 * 3


def test_pair_counts_merge_as_rows_do():
    data = {name: COLUMNS[name] for name in ("normal", "spiked", "kinds")}
    design, rows, _ = design_of(data)
    axes = design.space(4).axes
    pairs = rows.pairs()
    assert np.array_equal(regrouped_pairs(pairs, axes).counts, rows.regrouped(axes).pairs().counts)
