"""Small coupled problems with known answers, and plain-loop twins of the objectives."""

from itertools import combinations

import numpy as np
from tests.solvers.cases import random_factors

from jointwise.relatives.solvers.coupled_problem import CoupledProblem


def model_cell(factors, subset, cell):
    total = 0.0
    for r, weight in enumerate(factors.weights):
        term = weight
        for n, i in zip(subset, cell, strict=True):
            term *= factors.coefficients[n][i, r]
        total += term
    return total


def model_tensor(factors, subset):
    shape = tuple(factors.coefficients[n].shape[0] for n in subset)
    tensor = np.zeros(shape)
    for cell in np.ndindex(shape):
        tensor[cell] = model_cell(factors, subset, cell)
    return tensor


def exact_coupled(rng, sizes=(3, 2, 4, 3), rank=2, order=3):
    truth = random_factors(rng, sizes, rank)
    subsets = combinations(range(len(sizes)), order)
    return CoupledProblem(sizes, {s: model_tensor(truth, s) for s in subsets}), truth


def noisy_coupled(rng, sizes=(3, 2, 4, 3), orders=(3,), n_rows=200):
    masses = {}
    truth = random_factors(rng, sizes, 2)
    for order in orders:
        for s in combinations(range(len(sizes)), order):
            z = model_tensor(truth, s)
            masses[s] = rng.multinomial(n_rows, z.ravel() / z.sum()).reshape(z.shape) / n_rows
    return CoupledProblem(sizes, masses)


def squared_error_of_subsets(problem, factors):
    total = 0.0
    for subset, z in problem.masses.items():
        for cell in np.ndindex(z.shape):
            total += 0.5 * (z[cell] - model_cell(factors, subset, cell)) ** 2
    return total


def divergence_of_subsets(problem, factors):
    total = 0.0
    for subset, z in problem.masses.items():
        for cell in np.ndindex(z.shape):
            if z[cell] > 0:
                total += z[cell] * np.log(z[cell] / model_cell(factors, subset, cell))
    return total
