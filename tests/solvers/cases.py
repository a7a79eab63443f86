"""Small problems with known answers, and what the solvers compute in plain loops."""

import numpy as np
from scipy.integrate import quad

from jointwise.solvers import Factors, PairwiseProblem


def random_masses(rng, n_bins, n_atoms):
    return rng.dirichlet(np.ones(n_bins), size=n_atoms).T


def random_factors(rng, sizes, n_components):
    return Factors(
        rng.dirichlet(np.full(n_components, 3.0)),
        tuple(rng.dirichlet(np.ones(size), size=n_components).T for size in sizes),
    )


def model_pair(masses, factors, j, k):
    a, b = masses[j] @ factors.coefficients[j], masses[k] @ factors.coefficients[k]
    return (a * factors.weights) @ b.T


def exact_problem(rng, bins=(6, 5, 7), sizes=(4, 3, 5), n_components=2, **options):
    """Return the pair masses of a known joint, without noise."""
    masses = tuple(random_masses(rng, i, size) for i, size in zip(bins, sizes, strict=True))
    factors = random_factors(rng, sizes, n_components)
    n = len(bins)
    pairs = {(j, k): model_pair(masses, factors, j, k) for j in range(n) for k in range(j + 1, n)}
    return PairwiseProblem(masses, pairs, **options), factors


def noisy_problem(rng, bins=(6, 5, 7), sizes=(4, 3, 5), *, n_rows=200, shared=False, drop=()):
    """Return pair masses counted on rows, with a share for each pair on request."""
    problem, _ = exact_problem(rng, bins, sizes, n_components=3)
    pairs = {}
    for pair, z in problem.pairs.items():
        if pair not in drop:
            flat = z.ravel() / z.sum()
            pairs[pair] = rng.multinomial(n_rows, flat).reshape(z.shape) / n_rows
    shares = {pair: float(s) for pair, s in zip(pairs, rng.uniform(0.5, 2, len(pairs)), strict=True)}
    return PairwiseProblem(problem.masses, pairs, shares if shared else None)


def squared_error_by_loops(problem, factors):
    total = 0.0
    for (j, k), z in problem.pairs.items():
        share = 1.0 if problem.shares is None else problem.shares[j, k]
        for i in range(z.shape[0]):
            for h in range(z.shape[1]):
                mass = 0.0
                for r, weight in enumerate(factors.weights):
                    left = sum(problem.masses[j][i, l] * factors.coefficients[j][l, r] for l in range(problem.sizes[j]))
                    right = sum(
                        problem.masses[k][h, l] * factors.coefficients[k][l, r] for l in range(problem.sizes[k])
                    )
                    mass += weight * left * right
                total += share * (z[i, h] - mass) ** 2
    return total


def divergence_by_loops(problem, factors):
    total = shares = 0.0
    for (j, k), z in problem.pairs.items():
        share = 1.0 if problem.shares is None else problem.shares[j, k]
        shares += share
        model = model_pair(problem.masses, factors, j, k)
        for i in range(z.shape[0]):
            for h in range(z.shape[1]):
                if z[i, h] > 0:
                    total += share * z[i, h] * np.log(z[i, h] / model[i, h])
    return total / shares


def assert_on_simplex(columns, tolerance=1e-9):
    assert np.isfinite(columns).all()
    assert (columns >= 0).all()
    np.testing.assert_allclose(columns.sum(axis=0), 1.0, atol=tolerance)


def assert_valid(factors):
    assert_on_simplex(factors.weights)
    for coefficients in factors.coefficients:
        assert_on_simplex(coefficients)


def assert_never_rises(history):
    assert np.all(np.diff(history) <= 1e-15 + 1e-12 * np.abs(history[:-1]))


def assert_descends(solver, problem, true_objective, n_steps):
    """Take steps by hand; the solver's objective must be the true one and never rise."""
    state = solver.init(problem)
    history = []
    for _ in range(n_steps):
        factors = solver.value(state)
        assert_valid(factors)
        history.append(true_objective(problem, factors))
        np.testing.assert_allclose(solver.objective(state), history[-1], rtol=1e-9)
        state = solver.step(problem, state)
    assert_never_rises(np.array(history))


def slow_map(u, knots, slopes):
    """The map and its slope at one coordinate, by quadrature of the slope from the first knot."""

    def slope(t):
        return float(np.interp(t, knots, slopes))

    inner = knots[(knots > min(u, knots[0])) & (knots < max(u, knots[0]))]
    return quad(slope, knots[0], u, points=inner if len(inner) else None, limit=200)[0], slope(u)
