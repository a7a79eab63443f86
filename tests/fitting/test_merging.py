"""Bins merged for EM: what they hold, and that EM ends in the same place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jointwise.axes import BinnedAxis, DiscreteAxis
from jointwise.dictionary import Dictionary
from jointwise.fitting import merging
from jointwise.fitting.merging import first_bins, merged_bins
from jointwise.fitting.problem import bin_masses, rows_problem
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows
from jointwise.solvers import RowsEM, solve, start_around


def coded(n_bins=128, n=600):
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n)
    table = {
        "a": rng.normal(3.0 * group, 1.0),
        "b": np.where(rng.random(n) < 0.2, 0.0, np.exp(rng.normal(0.5 * group, 0.4))),
        "c": np.array(["x", "y", "z"])[(group + (rng.random(n) < 0.1)) % 3],
        "d": np.where(rng.random(n) < 0.1, np.nan, rng.normal(-group, 0.5)),
    }
    profile = Profile.of(table)
    schema = profile.schema()
    rows = CodedRows.of(table, schema, profile.axes(schema, n_bins))
    atoms = [
        Dictionary.grid("gaussian", -3, 9, n=17, scale=1.1),
        Dictionary.grid("laplace", 0, 6, n=13, scale=0.7) + Dictionary.points([0.0]),
        Dictionary.categories(3),
        Dictionary.grid("gaussian", -4, 2, n=13, scale=0.7),
    ]
    return rows, rows_problem(rows, atoms, 1.0)


def test_merged_bins_hold_the_same_masses_and_rows():
    rows, problem = coded()
    merged, smaller = merged_bins(rows, problem)
    for axis, before, n in zip(rows.axes, merged.axes, range(4), strict=True):
        assert before.n_bins <= axis.n_bins
        assert merged.marginal(n).sum() == rows.marginal(n).sum()
    assert merged.axes[2] is rows.axes[2]
    np.testing.assert_array_equal(merged.axes[1].spikes, rows.axes[1].spikes)
    for n in (0, 1, 3):
        atoms = [Dictionary.grid("gaussian", -3, 9, n=17, scale=1.1), None, None, None][n]
        if atoms is not None:
            np.testing.assert_allclose(smaller.masses[n], bin_masses(atoms, merged.axes[n]), atol=1e-12)
        np.testing.assert_allclose(np.asarray(smaller.masses[n]).sum(axis=0), 1.0)
    assert sum(merged.n_bins) < sum(rows.n_bins) / 2


def test_shares_within_a_group_differ_by_little():
    axis = BinnedAxis(np.linspace(-4, 4, 200))
    masses = Dictionary.grid("gaussian", -3, 3, n=13, scale=0.8).masses(axis)
    shares = masses / masses.sum(axis=1, keepdims=True)
    first = first_bins(axis, masses, 0.1)
    for start, stop in zip(first, [*first[1:], axis.n_bins], strict=True):
        apart = np.abs(shares[start:stop, None] - shares[None, start:stop]).sum(axis=2) / 2
        assert apart.max() <= 0.1


def test_single_values_are_not_merged():
    axis = DiscreteAxis([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(first_bins(axis, bin_masses(Dictionary.categories(3), axis), 0.9), [0, 1, 2])


def test_em_on_merged_bins_ends_where_em_on_all_bins_does():
    rows, problem = coded()
    start = start_around(problem.margins, 3, np.random.default_rng(1))
    _, merged = merged_bins(rows, problem)
    ends = [solve(RowsEM(start, tol=1e-6), p, max_steps=300).value for p in (problem, merged)]
    objectives = [problem.update(end.point)[0] for end in ends]
    assert objectives[1] == pytest.approx(objectives[0], abs=2e-3)


def test_many_rows_stay_as_they_are(monkeypatch):
    rows, problem = coded()
    monkeypatch.setattr(merging, "MERGED_ROWS", 100)
    assert merged_bins(rows, problem) == (rows, problem)


def test_merging_does_not_depend_on_the_rows_held_out():
    rows, problem = coded()
    half = rows.take(np.arange(0, len(rows), 2))
    part, _ = merged_bins(half, replace(problem, rows=half.engine(), n_rows=half.n_rows))
    assert part.n_bins == merged_bins(rows, problem)[0].n_bins
