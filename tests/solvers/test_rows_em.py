"""EM on rows with the prior centred on the margins: formulas by plain loops, monotone at every step, known answers."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise.engines import ReferenceEngine
from jointwise.exceptions import InputError
from jointwise.solvers import Factors, RowsEM, RowsProblem, solve


def make(seed=0, n=300, beta=3.0, sizes=((6, 4), (5, 5), (3, 3)), n_components=3, missing=0.1):
    rng = np.random.default_rng(seed)
    masses = tuple(np.eye(i) if i == l else rng.dirichlet(np.ones(i), size=l).T for i, l in sizes)
    margins = tuple(rng.dirichlet(np.ones(l)) for _, l in sizes)
    codes = np.column_stack([rng.integers(0, i, n) for i, _ in sizes]).astype(np.uint8)
    gaps = rng.random(codes.shape) < missing
    codes[gaps] = np.broadcast_to([i for i, _ in sizes], codes.shape)[gaps]
    engine = ReferenceEngine(codes, [i for i, _ in sizes])
    problem = RowsProblem(masses, margins, engine, n, beta)
    start = Factors(
        rng.dirichlet(np.ones(n_components)), tuple(rng.dirichlet(np.ones(l), size=n_components).T for _, l in sizes)
    )
    return problem, start, codes


def plain_objective(problem, factors, codes):
    """Negative log-posterior per row, less that of independence, with loops over rows and components."""
    fitted = [d @ m for d, m in zip(problem.masses, problem.margins, strict=True)]
    tables = [d @ b for d, b in zip(problem.masses, factors.coefficients, strict=True)]
    total = 0.0
    for row in codes:
        present = [(n, c) for n, c in enumerate(row) if c < len(fitted[n])]
        joint = sum(weight * np.prod([tables[n][c, r] for n, c in present]) for r, weight in enumerate(factors.weights))
        total += np.log(joint) - sum(np.log(fitted[n][c]) for n, c in present)
    for m, b in zip(problem.margins, factors.coefficients, strict=True):
        for r in range(factors.n_components):
            total -= problem.beta * np.sum(m * np.log(m / b[:, r]))
    return -total / len(codes)


@pytest.mark.parametrize("beta", [0.0, 3.0])
def test_objective_agrees_with_a_loop(beta):
    problem, start, codes = make(beta=beta)
    assert problem.update(start.point)[0] == pytest.approx(plain_objective(problem, start, codes), rel=1e-10)


def test_update_agrees_with_a_loop():
    problem, start, codes = make(n=40)
    tables = [d @ b for d, b in zip(problem.masses, start.coefficients, strict=True)]
    totals = np.zeros(start.n_components)
    shares = [problem.beta * np.tile(m[:, None], start.n_components) for m in problem.margins]
    for row in codes:
        present = [(n, c) for n, c in enumerate(row) if c < len(tables[n])]
        joint = np.array([w * np.prod([tables[n][c, r] for n, c in present]) for r, w in enumerate(start.weights)])
        posterior = joint / joint.sum()
        totals += posterior
        for n, c in present:
            for r in range(start.n_components):
                atoms = start.coefficients[n][:, r] * problem.masses[n][c]
                shares[n][:, r] += posterior[r] * atoms / atoms.sum()
    expected = np.vstack([totals / totals.sum(), *(s / s.sum(axis=0) for s in shares)])
    np.testing.assert_allclose(problem.update(start.point)[1], expected, rtol=1e-10)


@pytest.mark.parametrize("beta", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_objective_never_rises(seed, beta):
    problem, start, _ = make(seed, beta=beta)
    solution = solve(RowsEM(start, tol=1e-8), problem, max_steps=300)
    # the last digits of a sum over rows may vary
    assert np.all(np.diff(solution.history) <= 1e-12)
    assert solution.history[-1] < solution.history[0]


def test_a_strong_prior_is_independence():
    problem, start, _ = make(beta=1e7)
    solution = solve(RowsEM(start), problem, max_steps=100)
    for m, b in zip(problem.margins, solution.value.coefficients, strict=True):
        np.testing.assert_allclose(b, np.tile(m[:, None], b.shape[1]), atol=1e-4)
    assert solution.history[-1] == pytest.approx(0.0, abs=1e-4)


def test_a_known_latent_class_model_is_recovered():
    rng = np.random.default_rng(0)
    truth = [np.array([[0.9, 0.1], [0.1, 0.9]]) for _ in range(5)]
    component = rng.random(20_000) < 0.3
    codes = np.column_stack([rng.random(20_000) < np.where(component, b[1, 1], b[1, 0]) for b in truth]).astype(
        np.uint8
    )
    masses = tuple(np.eye(2) for _ in truth)
    margins = tuple(np.bincount(codes[:, n]) / len(codes) for n in range(5))
    problem = RowsProblem(masses, margins, ReferenceEngine(codes, [2] * 5), len(codes), 1.0)
    start = Factors(np.array([0.5, 0.5]), tuple(rng.dirichlet([2, 2], size=2).T for _ in truth))
    found = solve(RowsEM(start, tol=1e-9), problem, max_steps=500).value
    order = np.argsort(-found.weights)
    # three standard errors of a share of 6,000 rows
    np.testing.assert_allclose(found.weights[order], [0.7, 0.3], atol=0.02)
    for b, expected in zip(found.coefficients, truth, strict=True):
        np.testing.assert_allclose(b[:, order], expected, atol=0.02)


def test_a_negative_prior_is_refused():
    with pytest.raises(InputError, match="beta"):
        make(beta=-1.0)
