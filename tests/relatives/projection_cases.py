"""Random factors of a discrete joint, and all its cells."""

from itertools import product

import numpy as np

from jointwise.solvers import Factors


def dirichlet_factors(sizes, rank, seed, concentration=1.0):
    rng = np.random.default_rng(seed)
    return Factors(
        rng.dirichlet(np.full(rank, 5.0)), tuple(rng.dirichlet(np.full(size, concentration), rank).T for size in sizes)
    )


def joint_of(factors):
    """Return all cells of a joint, one by one."""
    sizes = [len(b) for b in factors.coefficients]
    joint = np.zeros(sizes)
    for cell in product(*map(range, sizes)):
        terms = [b[i] for b, i in zip(factors.coefficients, cell, strict=True)]
        joint[cell] = np.sum(factors.weights * np.prod(terms, axis=0))
    return joint
