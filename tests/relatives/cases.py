"""Known joints of discrete variables, their rows and their exact marginals."""

from itertools import combinations

import numpy as np

from jointwise.axes import DiscreteAxis
from jointwise.marginals import PairwiseMarginals, SubsetMarginals
from jointwise.relatives._states import state_density
from jointwise.solvers import Factors
from jointwise.tables.variables import Schema, Variable


def axes_of(sizes):
    return tuple(DiscreteAxis(np.arange(size, dtype=float)) for size in sizes)


def schema_of(sizes):
    return Schema(
        tuple(
            Variable(f"x{n}", "categorical", categories=tuple(range(size)), dtype="int64")
            for n, size in enumerate(sizes)
        )
    )


def random_law(seed=0, sizes=(3, 3, 3, 3), rank=2):
    """Return a low-rank joint that any of its triples determines."""
    rng = np.random.default_rng(seed)
    factors = Factors(
        rng.dirichlet(np.full(rank, 5.0)), tuple(rng.dirichlet(np.ones(size), size=rank).T for size in sizes)
    )
    return state_density(schema_of(sizes), axes_of(sizes), factors)


def separable_law(seed=0, sizes=(3, 3, 3, 3), rank=2):
    """Return the same joint, but each component has a state of the last variable that no other takes."""
    mixture = random_law(seed, sizes, rank).mixture
    last = np.vstack([0.5 * np.eye(rank), np.full((sizes[-1] - rank, rank), 0.5 / max(sizes[-1] - rank, 1))])
    last /= last.sum(axis=0)
    factors = Factors(mixture.weights, (*mixture.coefficients[:-1], last))
    return state_density(schema_of(sizes), axes_of(sizes), factors)


def tensor(density):
    """Return the mass of every cell, by its definition."""
    mixture = density.mixture
    total = 0.0
    for r, weight in enumerate(mixture.weights):
        term = weight
        for b in mixture.coefficients:
            term = np.multiply.outer(term, b[:, r])
        total = total + term
    return total


def marginal_tables(density, order):
    joint = tensor(density)
    every = range(joint.ndim)
    return {s: joint.sum(axis=tuple(n for n in every if n not in s)) for s in combinations(every, order)}


def exact_triples(density):
    sizes = tensor(density).shape
    return SubsetMarginals(schema_of(sizes), axes_of(sizes), marginal_tables(density, 3), 1.0)


def exact_pairs(density):
    sizes = tensor(density).shape
    starts = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.zeros((starts[-1], starts[-1]))
    for (j, k), z in marginal_tables(density, 2).items():
        counts[starts[j] : starts[j + 1], starts[k] : starts[k + 1]] = z
        counts[starts[k] : starts[k + 1], starts[j] : starts[j + 1]] = z.T
    for (n,), z in marginal_tables(density, 1).items():
        counts[starts[n] : starts[n + 1], starts[n] : starts[n + 1]] = np.diag(z)
    return PairwiseMarginals(schema_of(sizes), axes_of(sizes), counts, 1.0)


def error(model, law):
    return float(np.abs(tensor(model.density_) - tensor(law)).sum())
