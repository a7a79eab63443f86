"""The four random laws of the paper's section IV-A, each a :class:`~jointwise.JointDensity`.

Every conditional f(x_n | r) is a mixture of 5 atoms with locations from U(-5, 5); Laplacian scales and Gaussian
variances come from U(1, 2). Weights are uniform on (0, 1), then scaled to sum one.

>>> law = laplacians(rng=0)
>>> law.n_components, len(law.names)
(10, 5)
>>> law.sample(3, rng=0).shape
(3, 5)
"""

from __future__ import annotations

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.families import Family, Gaussian, Laplace
from jointwise.joint.density import JointDensity
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Kind, Schema, Variable

ATOMS_PER_CONDITIONAL = 5
N_STATES = 10

Seed = np.random.Generator | int | None


def laplacians(rng: Seed = None) -> JointDensity:
    """Experiment 1: 5 variables, 10 components, mixtures of Laplacians.

    >>> laplacians(rng=0).sample(3, rng=1).shape
    (3, 5)
    """
    return _law(rng, n_components=10, kinds="LLLLL")


def gaussians(rng: Seed = None) -> JointDensity:
    """Experiment 2: 6 variables, 8 components, mixtures of Gaussians.

    >>> gaussians(rng=0).sample(3, rng=1).shape
    (3, 6)
    """
    return _law(rng, n_components=8, kinds="GGGGGG")


def laplacians_gaussians(rng: Seed = None) -> JointDensity:
    """Experiment 3: 7 variables, 10 components, the first five Laplacian and the other two Gaussian.

    >>> laplacians_gaussians(rng=0).sample(3, rng=1).shape
    (3, 7)
    """
    return _law(rng, n_components=10, kinds="LLLLLGG")


def hybrid(rng: Seed = None) -> JointDensity:
    """Experiment 4: 4 variables, 8 components, three Gaussian and one with 10 states.

    >>> hybrid(rng=0).sample(3, rng=1).shape
    (3, 4)
    """
    return _law(rng, n_components=8, kinds="GGGC")


def _law(seed: Seed, n_components: int, kinds: str) -> JointDensity:
    rng = np.random.default_rng(seed)
    weights = _simplex(rng, (n_components,))
    factors = [_states(rng, n_components) if kind == "C" else _conditionals(rng, n_components, kind) for kind in kinds]
    variables = [
        Variable(f"x{n}", Kind.CATEGORICAL, categories=tuple(range(N_STATES)), dtype="int64")
        if kind == "C"
        else Variable(f"x{n}", Kind.CONTINUOUS)
        for n, kind in enumerate(kinds)
    ]
    coefficients, dictionaries = zip(*factors, strict=True)
    return JointDensity(Schema(tuple(variables)), ProductMixture(weights, coefficients, dictionaries))


def _conditionals(rng: np.random.Generator, n_components: int, kind: str) -> tuple[FloatArray, Dictionary]:
    """Return coefficients and all atoms of a variable; component r uses only its own five."""
    shape = (n_components, ATOMS_PER_CONDITIONAL)
    loc = rng.uniform(-5, 5, shape)
    spread = rng.uniform(1, 2, shape)
    atoms: Family = (
        Laplace(loc.ravel(), spread.ravel()) if kind == "L" else Gaussian(loc.ravel(), np.sqrt(spread).ravel())
    )
    own = _simplex(rng, (ATOMS_PER_CONDITIONAL, n_components))
    coefficients = np.zeros((n_components, ATOMS_PER_CONDITIONAL, n_components))
    coefficients[np.arange(n_components), :, np.arange(n_components)] = own.T
    return coefficients.reshape(-1, n_components), Dictionary((atoms,))


def _states(rng: np.random.Generator, n_components: int) -> tuple[FloatArray, Dictionary]:
    return _simplex(rng, (N_STATES, n_components)), Dictionary.categories(N_STATES)


def _simplex(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    raw = rng.uniform(size=shape)
    return np.asarray(raw / raw.sum(axis=0))
