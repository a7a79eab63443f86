"""Low-rank factors of characteristic functions of triples, by alternating least squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointwise._typing import ComplexArray, FloatArray
from jointwise.exceptions import InputError
from jointwise.relatives.solvers.admm import PrimalDual, SimplexADMM
from jointwise.solvers.base import Solver

Triple = tuple[int, ...]
# Solves for the weights in every sweep.
WEIGHT_ADMM = SimplexADMM(tol=1e-6, max_steps=200)
# Rows whose products of exponentials are held at once.
BLOCK = 1024


def frequencies(points: FloatArray, n_frequencies: int) -> ComplexArray:
    """Return exp(2 pi i k x) at points x of shape (n,) for k = -K, ..., K; shape (n, 2 K + 1).

    >>> frequencies(np.array([0.25]), 1).round(3)
    array([[0.-1.j, 1.+0.j, 0.+1.j]])
    """
    return np.asarray(np.exp(2j * np.pi * points[:, None] * np.arange(-n_frequencies, n_frequencies + 1)))


def empirical_characteristic(points: FloatArray, n_frequencies: int) -> ComplexArray:
    r"""Return the characteristic function of three columns, shape (2 K + 1, 2 K + 1, 2 K + 1).

    .. math:: Z[a, b, c] = \frac1n \sum_i e^{2 \pi i (a x_{i1} + b x_{i2} + c x_{i3})}, \quad -K \le a, b, c \le K

    The exponential is a product of three, one per column, so a row costs (2 K + 1)^3 products and only
    3 (2 K + 1) exponentials. Half of the array is the conjugate of the other half.

    Parameters
    ----------
    points : array of shape (n, 3)
    n_frequencies : int
        K.
    """
    n_all = 2 * n_frequencies + 1
    half = np.zeros((n_frequencies + 1, n_all * n_all), dtype=complex)
    for start in range(0, len(points), BLOCK):
        first, second, third = (frequencies(x, n_frequencies) for x in points[start : start + BLOCK].T)
        others = second[:, :, None] * third[:, None, :]
        half += first[:, n_frequencies:].T @ others.reshape(len(others), -1)
    upper = half.reshape(-1, n_all, n_all) / len(points)
    return np.concatenate([upper[:0:-1, ::-1, ::-1].conj(), upper])


@dataclass(frozen=True, eq=False)
class CharacteristicProblem:
    """Characteristic functions of triples of variables, to be fitted by that of a low-rank joint.

    Parameters
    ----------
    n_variables : int
        N; every variable must be in a triple.
    triples : mapping from (j, k, l), j < k < l, to arrays of shape (2 K + 1, 2 K + 1, 2 K + 1)
        Characteristic functions: Z[-a, -b, -c] is the conjugate of Z[a, b, c].
    """

    n_variables: int
    triples: Mapping[Triple, ComplexArray]

    def __post_init__(self) -> None:
        if {n for triple in self.triples for n in triple} != set(range(self.n_variables)):
            raise InputError(f"Each of the {self.n_variables} variables must be in a triple.")

    @property
    def n_frequencies(self) -> int:
        """K, the highest frequency."""
        return int(next(iter(self.triples.values())).shape[0] - 1) // 2

    @cached_property
    def squared_norm(self) -> float:
        """Sum of the squared absolute values of all triples."""
        return float(sum(np.vdot(z, z).real for z in self.triples.values()))

    @cached_property
    def unfolded(self) -> tuple[tuple[tuple[int, int, ComplexArray], ...], ...]:
        """For each variable, its triples: the two others, and Z at its positive frequencies, which come first."""
        found: list[list[tuple[int, int, ComplexArray]]] = [[] for _ in range(self.n_variables)]
        for triple, z in self.triples.items():
            for axis, n in enumerate(triple):
                first, second = (other for other in triple if other != n)
                found[n].append((first, second, np.moveaxis(z, axis, 0)[self.n_frequencies + 1 :]))
        return tuple(tuple(each) for each in found)


class CharacteristicFactors(NamedTuple):
    """Weights and conditional characteristic functions of a low-rank joint."""

    weights: FloatArray  # on the simplex, (F,)
    factors: ComplexArray  # Phi_n[k, r] = E[exp(2 pi i k x_n) | r]; one at k = 0, conjugate at -k; (N, 2 K + 1, F)


class _State(NamedTuple):
    weights: PrimalDual  # (1, F) and its dual
    factors: ComplexArray  # (N, 2 K + 1, F)
    objective: float
    previous: float


@dataclass(frozen=True, eq=False)
class CharacteristicALS(Solver[CharacteristicProblem, _State, CharacteristicFactors]):
    r"""Alternating least squares on characteristic functions of triples.

    .. math:: \min \sum_{j<k<l} \Bigl\| Z_{jkl} - \sum_r \lambda_r \Phi_j[:, r] \otimes \Phi_k[:, r] \otimes
              \Phi_l[:, r] \Bigr\|^2

    over weights on the simplex and factors that are one at frequency zero. Each factor is the least-squares solution
    of least norm given all else, frequency by frequency; the weights come from ADMM. If the start is symmetric, the
    solution at -k is the conjugate of that at k, so only half are computed.

    Parameters
    ----------
    start : CharacteristicFactors
    tol : float
        Stop when a sweep lowers the objective by no more than this share of it.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.solvers import solve
    >>> x = np.array([[0.2, 0.5, 0.7], [0.6, 0.1, 0.3]])  # two points: rank two
    >>> problem = CharacteristicProblem(3, {(0, 1, 2): empirical_characteristic(x, 2)})
    >>> start = random_characteristic(3, 2, 2, np.random.default_rng(0))
    >>> solution = solve(CharacteristicALS(start, tol=1e-9), problem, max_steps=500)
    >>> bool(solution.history[-1] < 1e-6), solution.value.weights.round(3)
    (True, array([0.5, 0.5]))
    """

    start: CharacteristicFactors
    tol: float = 1e-3

    def init(self, problem: CharacteristicProblem) -> _State:
        """Return the start with its objective."""
        weights = self.start.weights[None]
        gram, target = _weight_system(problem, self.start.factors)
        objective = _objective(problem, gram, target, weights)
        return _State(PrimalDual(weights, np.zeros_like(weights)), self.start.factors, objective, np.inf)

    def step(self, problem: CharacteristicProblem, state: _State) -> _State:
        """Return the state after a sweep over all factors and the weights."""
        factors = state.factors.copy()
        grams = np.stack([_gram(phi) for phi in factors])
        for n in range(problem.n_variables):
            factors[n] = _best_factor(problem, n, factors, grams, state.weights.block[0])
            grams[n] = _gram(factors[n])
        gram, target = _weight_system(problem, factors)
        before = _objective(problem, gram, target, state.weights.block)
        weights = WEIGHT_ADMM.solve(gram, target, state.weights, axis=1)
        after = _objective(problem, gram, target, weights.block)
        if after > before:  # ADMM stops short of its optimum, so the old weights may be better
            weights, after = PrimalDual(state.weights.block, np.zeros_like(weights.dual)), before
        return _State(weights, factors, after, state.objective)

    def objective(self, state: _State) -> float:
        """Return the sum of squared errors of all triples."""
        return state.objective

    def is_done(self, state: _State) -> bool:
        """Return whether the last sweep lowered the objective by no more than `tol` of it."""
        return np.isfinite(state.previous) and state.previous - state.objective <= self.tol * state.previous

    def value(self, state: _State) -> CharacteristicFactors:
        """Return weights and factors."""
        return CharacteristicFactors(state.weights.block[0], state.factors)


def random_characteristic(
    n_variables: int, n_frequencies: int, n_components: int, rng: np.random.Generator
) -> CharacteristicFactors:
    """Return a start: real and imaginary parts uniform on (0, 1), conjugate symmetry, equal weights."""
    positive = rng.uniform(size=(n_variables, n_frequencies, n_components, 2)) @ np.array([1, 1j])
    return CharacteristicFactors(np.full(n_components, 1 / n_components), _with_conjugates(positive))


def _with_conjugates(positive: ComplexArray) -> ComplexArray:
    """Return factors at all frequencies (..., 2 K + 1, F) from those at positive ones (..., K, F)."""
    one = np.ones((*positive.shape[:-2], 1, positive.shape[-1]))
    return np.concatenate([positive[..., ::-1, :].conj(), one, positive], axis=-2)


def _gram(phi: ComplexArray) -> FloatArray:
    """Return Phi' conj(Phi), which is real because of the conjugate symmetry."""
    return np.asarray((phi.T @ phi.conj()).real)


def _contracted(z: ComplexArray, first: ComplexArray, second: ComplexArray) -> ComplexArray:
    """Return the sum over the last two axes of z (A, B, C) times conjugates of (B, F) and (C, F); shape (A, F)."""
    return np.asarray(np.einsum("abr,br->ar", z @ second.conj(), first.conj()))


def _best_factor(
    problem: CharacteristicProblem, n: int, factors: ComplexArray, grams: FloatArray, weights: FloatArray
) -> ComplexArray:
    """Return the least-squares factor of variable n, given all else."""
    gram = np.zeros((weights.size, weights.size))
    target = np.zeros((problem.n_frequencies, weights.size), dtype=complex)
    for j, k, z in problem.unfolded[n]:
        gram += grams[j] * grams[k]
        target += _contracted(z, factors[j], factors[k])
    solution = np.linalg.lstsq(gram * np.outer(weights, weights), (target * weights).T, rcond=None)[0]
    return _with_conjugates(np.asarray(solution.T, dtype=np.complex128))


def _weight_system(problem: CharacteristicProblem, factors: ComplexArray) -> tuple[FloatArray, FloatArray]:
    """Return G and v, so that the objective is lam' G lam - 2 v' lam + a constant; v of shape (1, F)."""
    grams = [_gram(phi) for phi in factors]
    gram = np.zeros_like(grams[0])
    target = np.zeros((1, len(gram)))
    for (j, k, l), z in problem.triples.items():
        gram += grams[j] * grams[k] * grams[l]
        target += np.einsum("ar,ar->r", _contracted(z, factors[k], factors[l]), factors[j].conj()).real
    return gram, target


def _objective(problem: CharacteristicProblem, gram: FloatArray, target: FloatArray, weights: FloatArray) -> float:
    return float(problem.squared_norm + np.sum((weights @ gram - 2 * target) * weights))
