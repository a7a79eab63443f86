"""The characteristic solver against plain sums, laws of least squares, and known points."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.exceptions import InputError
from jointwise.relatives.solvers import (
    CharacteristicALS,
    CharacteristicProblem,
    empirical_characteristic,
    frequencies,
    random_characteristic,
)
from jointwise.solvers import solve

# ---- plain twins -------------------------------------------------------------------------------------------


def plain_characteristic(points, k):
    """Return the mean over rows, cell by cell."""
    grid = range(-k, k + 1)
    out = np.zeros((2 * k + 1,) * 3, dtype=complex)
    for (i, a), (j, b), (l, c) in product(enumerate(grid), repeat=3):
        out[i, j, l] = np.mean([np.exp(2j * np.pi * (a * x + b * y + c * z)) for x, y, z in points])
    return out


def plain_model(factors, triple):
    phi = factors.factors[list(triple)]
    total = np.zeros((phi.shape[1],) * 3, dtype=complex)
    for r, weight in enumerate(factors.weights):
        total += weight * np.multiply.outer(np.multiply.outer(phi[0, :, r], phi[1, :, r]), phi[2, :, r])
    return total


def plain_objective(problem, factors):
    return sum(np.sum(np.abs(z - plain_model(factors, triple)) ** 2) for triple, z in problem.triples.items())


def case(seed, n_variables=4, k=2, rank=2, n=30):
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(n, n_variables))
    triples = {t: empirical_characteristic(points[:, t], k) for t in combinations(range(n_variables), 3)}
    return CharacteristicProblem(n_variables, triples), random_characteristic(n_variables, k, rank, rng)


# ---- tests -------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 12))
@settings(max_examples=15)
def test_characteristic_function_is_that_of_plain_sums(seed, k, n):
    points = np.random.default_rng(seed).uniform(-1, 2, size=(n, 3))
    assert empirical_characteristic(points, k) == pytest.approx(plain_characteristic(points, k), abs=1e-12)


def test_blocks_of_rows_add_up(monkeypatch):
    points = np.random.default_rng(0).uniform(size=(50, 3))
    whole = empirical_characteristic(points, 3)
    monkeypatch.setattr("jointwise.relatives.solvers.characteristic.BLOCK", 7)
    assert empirical_characteristic(points, 3) == pytest.approx(whole, abs=1e-14)


@given(st.integers(0, 10**6), st.integers(3, 5), st.integers(1, 3), st.integers(1, 4))
@settings(max_examples=20)
def test_laws_of_a_run(seed, n_variables, k, rank):
    problem, start = case(seed, n_variables, k, rank)
    solution = solve(CharacteristicALS(start, tol=0.0), problem, max_steps=8)
    value = solution.value
    assert solution.history[0] == pytest.approx(plain_objective(problem, start))
    assert solution.history[-1] == pytest.approx(plain_objective(problem, value), abs=1e-8)
    assert (
        np.diff(solution.history) <= 1e-8 * solution.history[:-1]
    ).all()  # products of Gram matrices lose some digits
    assert value.weights.sum() == pytest.approx(1)
    assert (value.weights >= 0).all()
    assert value.factors[:, k] == pytest.approx(1)
    assert value.factors[:, ::-1].conj() == pytest.approx(value.factors)


def test_step_is_the_least_squares_solution_of_the_whole_factor():
    problem, start = case(0)
    state = CharacteristicALS(start).init(problem)
    after = CharacteristicALS(start).step(problem, state)
    # the first factor moves while the others are at the start: plain least squares with an unfolded design
    design, target = [], []
    for (first, j, k), z in problem.triples.items():
        if first == 0:
            pairs = zip(start.factors[j].T, start.factors[k].T, strict=True)
            design.append(np.stack([np.outer(u, v).ravel() / 2 for u, v in pairs]))
            target.append(z.reshape(len(z), -1))
    expected = np.linalg.lstsq(np.hstack(design).T, np.hstack(target).T, rcond=None)[0].T
    expected[2] = 1  # frequency zero
    assert after.factors[0] == pytest.approx(expected, abs=1e-8)


def test_points_are_recovered_as_components():
    points = np.array([[0.2, 0.5, 0.7], [0.6, 0.1, 0.3], [0.9, 0.8, 0.1]])
    problem = CharacteristicProblem(3, {(0, 1, 2): empirical_characteristic(points[[0, 1, 1, 2]], 3)})
    starts = [random_characteristic(3, 3, 3, np.random.default_rng(seed)) for seed in range(3)]
    runs = [solve(CharacteristicALS(start, tol=1e-10), problem, max_steps=2000) for start in starts]
    best = min(runs, key=lambda run: run.history[-1])
    assert np.sort(best.value.weights) == pytest.approx([0.25, 0.25, 0.5], abs=1e-3)
    heaviest = best.value.factors[:, :, np.argmax(best.value.weights)]
    assert heaviest == pytest.approx(np.stack([frequencies(x, 3)[0] for x in points[1][:, None]]), abs=1e-2)


def test_every_variable_must_be_in_a_triple():
    with pytest.raises(InputError, match="must be in a triple"):
        CharacteristicProblem(4, {(0, 1, 2): np.ones((3, 3, 3), dtype=complex)})
