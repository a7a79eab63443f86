"""The instances that every test of families runs through."""

from __future__ import annotations

import numpy as np
import pytest

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
    Warped,
)
from jointwise.warps import Warp

BEND = Warp([-2.0, 0.0, 1.0, 5.0], [-3.0, 0.0, 0.5, 4.0], [1.0, 1.0, 0.4, 2.0])

INSTANCES = {
    "gaussian": Gaussian([0.0, -3.0, 1e3], [1.0, 0.2, 50.0]),
    "laplace": Laplace([0.5, 2.0], [1.0, 3.0]),
    "cauchy": Cauchy([0.0, 5.0], [1.0, 0.1]),
    "student_t": StudentT([0.7, 1.5, 3.0, 40.0], 1.0, [1.0, 1.0, 2.0, 0.5]),
    "generalized_gaussian": GeneralizedGaussian([0.6, 1.0, 2.0, 8.0], 0.0, [0.5, 1.0, 1.0, 2.0]),
    "logistic": Logistic([0.0, 10.0], [1.0, 0.3]),
    "exponential": Exponential([0.0, 1.0], [1.0, 2.0], [1.0, -1.0]),
    "gamma": Gamma([0.5, 1.0, 7.0], [1.0, 2.0, 0.5], [0.0, -1.0, 3.0]),
    "log_normal": LogNormal([0.0, 1.0], [0.5, 1.2], [0.0, 2.0]),
    "uniform": Uniform([0.0, -2.0], [1.0, 5.0]),
    "beta": Beta([0.5, 2.0, 3.0], [0.5, 5.0, 1.0], [0.0, -1.0, 2.0], [1.0, 1.0, 4.0]),
    "point_mass": PointMass([0.0, 2.5, -7.0]),
    "category": Category([0, 1, 4]),
    "lattice_gaussian": Lattice(Gaussian([0.25, 3.0], [0.4, 6.0])),
    "lattice_exponential": Lattice(Exponential([0.0, 0.3], [2.0, 30.0])),
    "lattice_student_t": Lattice(StudentT(3.0, [0.1, 0.5], [0.3, 2.0])),
    "lattice_truncated": Lattice(Truncated(Laplace([0.0, 4.0], 3.0), -0.5, 9.5)),
    "truncated_gaussian": Truncated(Gaussian([0.0, 1.0], [1.0, 2.0]), -0.5, 3.0),
    "truncated_tail": Truncated(Gaussian([0.0, 1.0], 1.0), 30.0, np.inf),
    "truncated_lower_tail": Truncated(Laplace([0.0, 1.0], 1.0), -np.inf, -50.0),
    "truncated_cauchy": Truncated(Cauchy([0.0, 1.0], 1.0), 2.0, 100.0),
    "truncated_gamma": Truncated(Gamma([0.5, 4.0], 1.0), -1.0, 2.0),
    "warped_line": Warped.through(Warp.line(1.0, 3.0), Gaussian([0.0, 1.0], [1.0, 0.5])),
    "warped_bend": Warped.through(BEND, Gaussian([0.0, 1.0, -4.0], [1.0, 0.1, 2.0])),
    "warped_window": Warped.through(BEND, Truncated(Gaussian([0.0, 1.0], [1.0, 0.5]), -0.3, 2.0)),
    "warped_tail": Warped.through(BEND, Truncated(Gaussian([0.0, 1.0], 1.0), 30.0, np.inf)),
    "warped_twice": Warped.through(BEND, Warped.through(BEND, Gaussian([0.0, 1.0], [1.0, 2.0]))),
    "lattice_warped": Lattice(Warped.through(BEND, Gaussian([0.0, 3.0], [1.5, 6.0]))),
}


@pytest.fixture(scope="session", params=INSTANCES.values(), ids=INSTANCES.keys())
def family(request):
    return request.param


@pytest.fixture(scope="session")
def instances():
    return INSTANCES
