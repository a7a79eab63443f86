"""Products of an EM update over all columns, against loops over columns in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise.engines.atoms import Places, StackedAtoms, leap, weighted_log
from jointwise.engines.base import LEAST_FACTOR, PosteriorCounts
from jointwise.engines.compiled_margins import LEAST_MASS


def dense(masses):
    if not isinstance(masses, Places):
        return masses
    matrix = np.zeros(masses.shape)
    matrix[masses.bins, np.arange(len(masses.bins))] = 1.0
    return matrix


@pytest.fixture(params=["mixed", "places", "dense"])
def case(request):
    rng = np.random.default_rng(0)
    some = {
        "dense": [rng.dirichlet(np.ones(i), size=l).T for i, l in ((7, 3), (4, 5))],
        "places": [Places(np.array([2, 0, 2]), 4), Places(np.arange(5), 5)],
    }
    masses = tuple(some.get(request.param) or [some["dense"][0], *some["places"], some["dense"][1]])
    n_components = 3
    coefficients = [rng.dirichlet(np.ones(d.shape[1]), size=n_components).T for d in masses]
    return masses, coefficients, rng


def test_places_multiply_as_their_matrix(case):
    masses, coefficients, _ = case
    for d, b in zip(masses, coefficients, strict=True):
        np.testing.assert_allclose(d @ b, dense(d) @ b, rtol=1e-12)
        np.testing.assert_allclose(d @ b[:, 0], dense(d) @ b[:, 0], rtol=1e-12)


def test_conditionals_and_tables_agree_with_loops(case):
    masses, coefficients, rng = case
    atoms = StackedAtoms(masses)
    expected = np.concatenate([dense(d) @ b for d, b in zip(masses, coefficients, strict=True)])
    margins = rng.uniform(0.1, 1.0, len(expected))
    np.testing.assert_allclose(atoms.conditionals(np.vstack(coefficients)), expected, rtol=1e-12, atol=1e-280)
    tables = atoms.tables(np.vstack(coefficients), margins)
    np.testing.assert_allclose(tables, np.maximum(expected / margins[:, None], LEAST_FACTOR), rtol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_update_agrees_with_loops(case, beta):
    masses, coefficients, rng = case
    atoms, stacked = StackedAtoms(masses), np.vstack(coefficients)
    margins = rng.uniform(0.1, 1.0, atoms.n_bins)
    tables = atoms.tables(stacked, margins)
    counts = rng.gamma(1.0, size=tables.shape)
    counts[:, 1] = 0.0  # a component without rows stays as it is, or becomes the prior
    prior = beta * rng.dirichlet(np.ones(len(stacked)))
    point = np.vstack([np.full(3, 1 / 3), stacked])
    found = atoms.update(point, PosteriorCounts(counts, np.array([1.0, 0.0, 3.0]), 0.0), tables, margins, prior)
    np.testing.assert_allclose(found[0], [0.25, 0.0, 0.75])
    bin_start, atom_start = 0, 0
    for d, b in zip(masses, coefficients, strict=True):
        bins, own = slice(bin_start, bin_start + d.shape[0]), slice(atom_start, atom_start + d.shape[1])
        quotient = counts[bins] / (tables[bins] * margins[bins, None])
        expected = b * (dense(d).T @ quotient) + prior[own, None]
        expected = expected / expected.sum(axis=0) if beta else np.where(counts[0] > 0, expected, b)
        expected /= expected.sum(axis=0)
        np.testing.assert_allclose(found[1:][own], expected, rtol=1e-9)
        bin_start, atom_start = bins.stop, own.stop


def test_leap_agrees_with_plain_numpy():
    rng = np.random.default_rng(1)
    start, first, second = rng.dirichlet(np.ones(8), size=(3, 2)).transpose(0, 2, 1)
    change, bend = first - start, second - 2 * first + start
    stride = np.clip(np.sqrt((change**2 / second).sum() / (bend**2 / second).sum()), 1, 1e3)
    expected = np.maximum(start + 2 * stride * change + stride**2 * bend, 0.1 * second)
    expected[0] /= expected[0].sum()
    for rows in (slice(1, 4), slice(4, 8)):
        expected[rows] /= expected[rows].sum(axis=0)
    np.testing.assert_allclose(leap(start, first, second, np.array([0, 3, 7])), expected, rtol=1e-9)


def test_weighted_log_is_a_sum_of_logarithms_also_of_tiny_numbers():
    rng = np.random.default_rng(0)
    point = np.exp(-rng.uniform(0, 600, (20, 9)))
    point[:3] = rng.random((3, 9))
    point[4, 2:4] = 0.0
    weights = np.where(np.arange(20) % 5 == 0, 0.0, rng.random(20))
    expected = weights @ np.log(np.maximum(point, LEAST_MASS)).sum(axis=1)
    assert weighted_log(point, weights) == pytest.approx(expected, rel=1e-12)
