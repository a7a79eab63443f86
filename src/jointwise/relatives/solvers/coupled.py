"""Solvers of a coupled problem, such as all triples, by least squares or by Kullback-Leibler divergence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

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


class _State(NamedTuple):
    factors: Factors
    objective: float
    previous: float  # objective before the last sweep
    duals: tuple[FloatArray, ...] = ()  # of A_1, ..., A_N and lam, for ADMM


class _Sweeps(Solver[CoupledProblem, _State, Factors]):
    """What both solvers share: a step is a sweep over all blocks."""

    start: Factors
    tol: float
    #: An objective of at most this is rounding error: there is nothing left to fit.
    negligible: ClassVar[float]

    def objective(self, state: _State) -> float:
        """Return the objective."""
        return state.objective

    def is_done(self, state: _State) -> bool:
        """Return whether the last sweep changed the objective by at most `tol` times it, or it is negligible."""
        change = abs(state.previous - state.objective)
        small = change <= self.tol * abs(state.previous) or state.objective <= self.negligible
        return bool(np.isfinite(change) and small)

    def value(self, state: _State) -> Factors:
        """Return the factors."""
        return state.factors


@dataclass(frozen=True, eq=False)
class CoupledADMM(_Sweeps):
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

    negligible = 1e-28
    start: Factors
    factor_admm: SimplexADMM = field(default_factory=SimplexADMM)
    weight_admm: SimplexADMM = field(default_factory=lambda: SimplexADMM(max_steps=200))
    tol: float = 1e-5

    def init(self, problem: CoupledProblem) -> _State:
        """Return the start with duals of zero."""
        problem.check_factors(self.start)
        blocks = (*self.start.coefficients, self.start.weights[None])
        duals = tuple(np.zeros_like(block) for block in blocks)
        return _State(self.start, problem.squared_error(self.start), np.inf, duals)

    def step(self, problem: CoupledProblem, state: _State) -> _State:
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
        return _State(factors, problem.squared_error(factors), state.objective, (*duals[:-1], found.dual))


@dataclass(frozen=True, eq=False)
class CoupledMirrorDescent(_Sweeps):
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

    negligible = 1e-14
    start: Factors
    factor_rule: StepRule = field(default_factory=StepRule)
    weight_rule: StepRule = field(default_factory=lambda: StepRule(rate=0.2, max_steps=100))
    tol: float = 1e-5

    def init(self, problem: CoupledProblem) -> _State:
        """Return the start with its objective."""
        problem.check_factors(self.start)
        return _State(self.start, problem.divergence(self.start), np.inf)

    def step(self, problem: CoupledProblem, state: _State) -> _State:
        """Return the state after a sweep over all blocks."""
        weights, coefficients = state.factors.weights, list(state.factors.coefficients)
        for n, a in enumerate(coefficients):
            observed = problem.observed[n]
            basis = problem.khatri_rao(n, coefficients)[observed.columns] * weights
            coefficients[n], _ = descend(_FactorDivergence(observed, basis), a, self.factor_rule)
        found, value = descend(_WeightDivergence.of(problem, coefficients), weights[:, None], self.weight_rule)
        return _State(Factors(found[:, 0], tuple(coefficients)), value, state.objective)


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
    for z, a, k in problem.parts(coefficients):
        target += np.einsum("ir,ir->r", a, z @ k)
        gram += (a.T @ a) * (k.T @ k)
    return gram, target
