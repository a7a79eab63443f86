"""Solvers of a coupled problem, such as all triples, by least squares or by Kullback-Leibler divergence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from jointwise._typing import FloatArray
from jointwise.relatives.solvers.admm import PrimalDual, SimplexADMM
from jointwise.relatives.solvers.coupled_problem import (
    LEAST_MASS,
    CoupledProblem,
    Observed,
    columnwise_products,
    divergence_of,
)
from jointwise.relatives.solvers.descent import StepRule, descend
from jointwise.solvers.base import Solver
from jointwise.solvers.factors import Factors

# A squared error, or a divergence, of at most this is rounding error: there is nothing left to fit.
_SQUARED, _DIVERGENCE = 1e-28, 1e-14


class _ADMMState(NamedTuple):
    factors: Factors
    duals: tuple[FloatArray, ...]  # of A_1, ..., A_N and lam
    objective: float
    previous: float  # objective before the last sweep


@dataclass(frozen=True, eq=False)
class CoupledADMM(Solver[CoupledProblem, _ADMMState, Factors]):
    r"""Least squares on all subsets, one block at a time, each by ADMM.

    Minimises :math:`\tfrac12 \sum_S \|Z_S - \sum_r \lambda_r \bigotimes_{n \in S} A_n[:, r]\|_F^2` over columns
    and weights on the simplex. A step is a sweep: A_1, ..., A_N, then the weights. ADMM starts from the blocks and
    scaled duals of the last sweep, so it needs few steps after the first sweeps.

    Parameters
    ----------
    start : Factors
    factor_admm, weight_admm : SimplexADMM
        How to solve for a factor, and for the weights. The defaults are the published ones.
    tol : float
        Stop when a sweep changes the objective by no more than `tol` times it.

    Notes
    -----
    ADMM stops at a tolerance, so the objective may rise slightly in a sweep.
    """

    start: Factors
    factor_admm: SimplexADMM = field(default_factory=SimplexADMM)
    weight_admm: SimplexADMM = field(default_factory=lambda: SimplexADMM(max_steps=200))
    tol: float = 1e-5

    def init(self, problem: CoupledProblem) -> _ADMMState:
        """Return the start with duals of zero."""
        problem.check_factors(self.start)
        blocks = (*self.start.coefficients, self.start.weights[None])
        duals = tuple(np.zeros_like(block) for block in blocks)
        return _ADMMState(self.start, duals, problem.squared_error(self.start), np.inf)

    def step(self, problem: CoupledProblem, state: _ADMMState) -> _ADMMState:
        """Return the state after a sweep over all blocks."""
        weights, coefficients = state.factors.weights, list(state.factors.coefficients)
        duals = list(state.duals)
        for n, a in enumerate(coefficients):
            k = problem.khatri_rao(n, coefficients)
            gram = (k.T @ k) * np.outer(weights, weights)
            target = (problem.unfolded[n] @ k) * weights
            coefficients[n], duals[n] = self.factor_admm.solve(gram, target, PrimalDual(a, duals[n]))
        gram, target = _weight_quadratic(problem, coefficients)
        found = self.weight_admm.solve(gram, target, PrimalDual(weights[None], duals[-1]), axis=1)
        factors = Factors(found.block[0], tuple(coefficients))
        return _ADMMState(factors, (*duals[:-1], found.dual), problem.squared_error(factors), state.objective)

    def objective(self, state: _ADMMState) -> float:
        """Return half the squared residual."""
        return state.objective

    def is_done(self, state: _ADMMState) -> bool:
        """Return whether the last sweep changed the objective by no more than `tol` times it."""
        return _settled(state.previous, state.objective, self.tol, _SQUARED)

    def value(self, state: _ADMMState) -> Factors:
        """Return the factors."""
        return state.factors


class _DescentState(NamedTuple):
    factors: Factors
    objective: float
    previous: float


@dataclass(frozen=True, eq=False)
class CoupledMirrorDescent(Solver[CoupledProblem, _DescentState, Factors]):
    r"""Kullback-Leibler divergence of all subsets, one block at a time, each by exponentiated gradient.

    Minimises :math:`\sum_S \mathrm{KL}(Z_S \,\|\, \sum_r \lambda_r \bigotimes_{n \in S} A_n[:, r])` over columns
    and weights on the simplex; it never rises. A step is a sweep: A_1, ..., A_N, then the weights.

    Parameters
    ----------
    start : Factors
        Zeros in it stay zero.
    factor_rule, weight_rule : StepRule
        How to move a factor, and the weights. The defaults are those published for triples.
    tol : float
        Stop when a sweep changes the objective by no more than `tol` times it.
    """

    start: Factors
    factor_rule: StepRule = field(default_factory=StepRule)
    weight_rule: StepRule = field(default_factory=lambda: StepRule(rate=0.2, max_steps=100))
    tol: float = 1e-5

    def init(self, problem: CoupledProblem) -> _DescentState:
        """Return the start with its objective."""
        problem.check_factors(self.start)
        return _DescentState(self.start, problem.divergence(self.start), np.inf)

    def step(self, problem: CoupledProblem, state: _DescentState) -> _DescentState:
        """Return the state after a sweep over all blocks."""
        weights, coefficients = state.factors.weights, list(state.factors.coefficients)
        for n, a in enumerate(coefficients):
            observed = problem.observed[n]
            basis = problem.khatri_rao(n, coefficients)[observed.columns] * weights
            coefficients[n] = descend(_FactorDivergence(observed, basis), a, self.factor_rule).columns
        found = descend(_WeightDivergence.of(problem, coefficients), weights[:, None], self.weight_rule)
        return _DescentState(Factors(found.columns[:, 0], tuple(coefficients)), found.value, state.objective)

    def objective(self, state: _DescentState) -> float:
        """Return the divergence."""
        return state.objective

    def is_done(self, state: _DescentState) -> bool:
        """Return whether the last sweep changed the objective by no more than `tol` times it."""
        return _settled(state.previous, state.objective, self.tol, _DIVERGENCE)

    def value(self, state: _DescentState) -> Factors:
        """Return the factors."""
        return state.factors


class _FactorDivergence(NamedTuple):
    """Divergence of the subsets of one variable as a function of its factor: the model is A K'."""

    observed: Observed
    basis: FloatArray  # K, (columns, F)

    def value(self, columns: FloatArray) -> tuple[float, FloatArray]:
        model = columns @ self.basis.T
        np.maximum(model, LEAST_MASS, out=model)
        positive = self.observed.positive
        return float(positive @ np.log(positive / model.ravel()[self.observed.cells])), model

    def gradient(self, model: FloatArray) -> FloatArray:
        return np.asarray(-(self.observed.masses / model) @ self.basis)


class _WeightDivergence(NamedTuple):
    """Divergence of all subsets as a function of the weights: the model is M lam."""

    masses: FloatArray  # (cells,), positive ones only
    basis: FloatArray  # M, (cells, F)

    @classmethod
    def of(cls, problem: CoupledProblem, coefficients: list[FloatArray]) -> _WeightDivergence:
        masses = np.concatenate([z.ravel() for z in problem.masses.values()])
        basis = np.concatenate([columnwise_products([coefficients[n] for n in subset]) for subset in problem.masses])
        return cls(masses[masses > 0], basis[masses > 0])

    def value(self, columns: FloatArray) -> tuple[float, FloatArray]:
        model = np.maximum(self.basis @ columns, LEAST_MASS)
        return divergence_of(self.masses[:, None], model), model

    def gradient(self, model: FloatArray) -> FloatArray:
        return np.asarray(-self.basis.T @ (self.masses[:, None] / model))


def _weight_quadratic(problem: CoupledProblem, coefficients: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return P and c, so that half the squared residual is lam' P lam / 2 - c' lam + a constant."""
    n_components = coefficients[0].shape[1]
    gram, target = np.zeros((n_components, n_components)), np.zeros((1, n_components))
    for n, columns in enumerate(problem.owned):
        if columns.start < columns.stop:
            k = problem.khatri_rao(n, coefficients)[columns]
            target += np.einsum("ir,ir->r", coefficients[n], problem.unfolded[n][:, columns] @ k)
            gram += (coefficients[n].T @ coefficients[n]) * (k.T @ k)
    return gram, target


def _settled(previous: float, objective: float, tol: float, negligible: float) -> bool:
    """Return whether the objective changed by at most `tol` times it, or is negligible."""
    change = abs(previous - objective)
    return bool(np.isfinite(change) and (change <= tol * abs(previous) or objective <= negligible))
