"""Parameters are broadcast, copied and checked; a wrong one raises an error that names it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from jointwise.exceptions import ImpossibleEventError, InputError
from jointwise.families import (
    Beta,
    Category,
    Cauchy,
    Exponential,
    Gamma,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    Lattice,
    Logistic,
    LogNormal,
    PointMass,
    StudentT,
    Truncated,
    Uniform,
)


def test_parameters_are_broadcast_to_one_length():
    atoms = Beta(2.0, [1.0, 2.0, 3.0])
    assert atoms.n_atoms == 3
    assert_array_equal(atoms.a, [2, 2, 2])
    assert_array_equal(atoms.low, [0, 0, 0])
    assert Gaussian(0, 1).n_atoms == 1


def test_parameters_are_copied():
    loc = np.zeros(2)
    atoms = Gaussian(loc, 1.0)
    loc[0] = 5.0
    assert_array_equal(atoms.loc, [0, 0])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Gaussian(0.0, [1.0, 0.0]), "parameter scale of gaussian must be positive, got 0.0 for atom 1"),
        (lambda: Gaussian(np.nan, 1.0), "parameter loc of gaussian must be finite, got nan for atom 0"),
        (lambda: Gaussian(0.0, np.inf), "parameter scale of gaussian must be finite, got inf for atom 0"),
        (lambda: Gaussian([0.0, 1.0], [1.0, 1.0, 1.0]), r"\(loc, scale\) of gaussian must be .* of one length"),
        (lambda: Gaussian([[0.0]], 1.0), r"1-D arrays .* got shape \(1, 1\)"),
        (lambda: Gaussian([], 1.0), "at least one; got shape"),
        (lambda: Gaussian("wide", 1.0), "must be numbers"),
        (lambda: Laplace(0.0, -1.0), "scale of laplace must be positive"),
        (lambda: Cauchy(0.0, -1.0), "scale of cauchy must be positive"),
        (lambda: Logistic(0.0, -1.0), "scale of logistic must be positive"),
        (lambda: StudentT(0.0, 0.0, 1.0), "df of student_t must be positive"),
        (lambda: GeneralizedGaussian(-2.0, 0.0, 1.0), "shape of generalized_gaussian must be positive"),
        (lambda: Exponential(0.0, 0.0), "scale of exponential must be positive"),
        (lambda: Exponential(0.0, 1.0, 0.5), "direction of exponential must be 1 .* or -1 .*, got 0.5"),
        (lambda: Gamma(0.0, 1.0), "shape of gamma must be positive"),
        (lambda: LogNormal(0.0, 0.0), "log_std of log_normal must be positive"),
        (lambda: Uniform([0.0, 3.0], 3.0), "low of uniform must be below high, got 3.0 for atom 1"),
        (lambda: Beta(1.0, 0.0), "b of beta must be positive"),
        (lambda: Beta(1.0, 1.0, 2.0, 1.0), "low of beta must be below high"),
        (lambda: PointMass(np.inf), "loc of point_mass must be finite"),
        (lambda: Category(-1), "code of category must be a whole number from 0 up, got -1.0"),
        (lambda: Category(0.5), "code of category must be a whole number"),
        (lambda: Lattice(PointMass(0.0)), "base of lattice must be a continuous family"),
        (lambda: Lattice(Lattice(Gaussian(0, 1))), "base of lattice must be a continuous family"),
        (lambda: Truncated(PointMass(0.0), -1.0, 1.0), "base of truncated must be a continuous family"),
        (lambda: Truncated(Gaussian(0, 1), 1.0, 1.0), "low of truncated must be below high, got 1.0 and 1.0"),
        (lambda: Truncated(Gaussian(0, 1), np.nan, 1.0), "low of truncated must be below high"),
    ],
)
def test_wrong_parameters_are_answered_with_a_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_truncation_without_mass_is_impossible():
    with pytest.raises(ImpossibleEventError, match="gaussian base has no mass"):
        Truncated(Gaussian(0, 1), 50.0, 60.0)


def test_atoms_to_draw_from_are_checked():
    rng = np.random.default_rng(0)
    for atoms in ([0, 2], [-1], [[0]]):
        with pytest.raises(InputError, match="1-D array of numbers from 0 to 1"):
            Gaussian([0.0, 1.0], 1.0).sample(atoms, rng)
    assert Gaussian([0.0, 1.0], 1.0).sample([], rng).shape == (0,)
