"""Factors from the masses of several subsets of variables, such as all triples, that share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import InputError
from jointwise.solvers.admm import SimplexADMM, Split
from jointwise.solvers.base import Solver
from jointwise.solvers.problem import SUM_TOLERANCE, Factors
from jointwise.solvers.simplex import StepRule, descend

Subset = tuple[int, ...]
# A model mass below this is taken as this, so that a cell the model has given up costs much rather than infinity.
_LEAST_MASS = 1e-290
# A squared error, and a divergence, of no more than this are rounding: there is nothing left to fit.
_SQUARED, _DIVERGENCE = 1e-28, 1e-14


@dataclass(frozen=True, eq=False)
class CoupledProblem:
    r"""Masses of subsets of variables, to be fitted by the subsets' marginals of one low-rank joint.

    The model of subset S is :math:`\sum_r \lambda_r \bigotimes_{n \in S} A_n[:, r]`.

    Parameters
    ----------
    sizes : sequence of N ints
        States I_n of each variable.
    masses : mapping from subsets to arrays of shape (I_j, I_k, ...)
        Masses of the variables (j, k, ...), two or more and increasing, each array summing to one.

    Examples
    --------
    >>> coin = np.eye(2)
    >>> problem = CoupledProblem((2, 2), {(0, 1): np.eye(2) / 2})
    >>> problem.squared_error(Factors([0.5, 0.5], (coin, coin)))
    0.0
    """

    sizes: tuple[int, ...]
    masses: Mapping[Subset, FloatArray]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(map(int, self.sizes)))
        masses = {subset: np.array(z, dtype=np.float64) for subset, z in sorted(self.masses.items())}
        for subset, z in masses.items():
            self._check(subset, z)
            z.setflags(write=False)
        object.__setattr__(self, "masses", masses)
        unseen = sorted(set(range(len(self.sizes))) - {n for subset in masses for n in subset})
        if unseen:
            raise InputError(f"Variables {unseen} are in no subset; give the masses of one that holds each of them.")

    def _check(self, subset: Subset, z: FloatArray) -> None:
        if len(subset) < 2 or list(subset) != sorted(set(subset)) or not 0 <= subset[0] <= subset[-1] < len(self.sizes):
            raise InputError(
                f"masses has the key {subset}, but keys are two or more increasing variables from 0 to "
                f"{len(self.sizes) - 1}."
            )
        expected = tuple(self.sizes[n] for n in subset)
        if z.shape != expected:
            raise InputError(
                f"masses[{subset}] must have shape {expected}, the states of its variables, not {z.shape}."
            )
        if not (z >= 0).all() or not abs(z.sum() - 1) <= SUM_TOLERANCE:
            raise InputError(f"masses[{subset}] must hold masses that sum to one; leave out a subset without rows.")

    @cached_property
    def around(self) -> tuple[tuple[Subset, ...], ...]:
        """For each variable, the other variables of every subset it is in."""
        n_variables = range(len(self.sizes))
        return tuple(tuple(tuple(k for k in s if k != n) for s in self.masses if n in s) for n in n_variables)

    @cached_property
    def unfolded(self) -> tuple[FloatArray, ...]:
        """For each variable, the masses of its subsets side by side; shape (I_n, the others' states of all subsets).

        Columns are in the order of `around`, so that the model is A_n diag(lam) K' with K from `khatri_rao`.
        """
        return tuple(
            np.hstack([np.moveaxis(z, s.index(n), 0).reshape(size, -1) for s, z in self.masses.items() if n in s])
            for n, size in enumerate(self.sizes)
        )

    @cached_property
    def owned(self) -> tuple[slice, ...]:
        """Columns of `unfolded` of the subsets that begin with the variable: together they hold every subset once."""
        ends = []
        for n, others in enumerate(self.around):
            widths = [prod(self.sizes[k] for k in rest) for rest in others]
            # subsets are sorted, so those that begin with n come last among those that hold it
            first = sum(width for rest, width in zip(others, widths, strict=True) if rest[0] < n)
            ends.append(slice(first, sum(widths)))
        return tuple(ends)

    @cached_property
    def observed(self) -> tuple[_Observed, ...]:
        """For each variable, what of `unfolded` the divergence looks at."""
        return tuple(_Observed.of(z) for z in self.unfolded)

    def khatri_rao(self, n: int, coefficients: tuple[FloatArray, ...] | list[FloatArray]) -> FloatArray:
        """Columnwise products of the other variables' factors, stacked over the subsets of variable n; (columns, F)."""
        return np.concatenate([_products([coefficients[k] for k in rest]) for rest in self.around[n]])

    def check_factors(self, factors: Factors) -> None:
        """Raise unless the factors have the variables and states of this problem."""
        sizes = tuple(a.shape[0] for a in factors.coefficients)
        if sizes != self.sizes:
            raise InputError(f"The factors have {sizes} states, but the variables of the problem have {self.sizes}.")

    def _models(self, factors: Factors) -> list[tuple[FloatArray, FloatArray]]:
        """Masses and model of every subset once, as matrices."""
        pairs = []
        for n, (columns, a) in enumerate(zip(self.owned, factors.coefficients, strict=True)):
            if columns.start < columns.stop:
                k = self.khatri_rao(n, factors.coefficients)[columns]
                pairs.append((self.unfolded[n][:, columns], (a * factors.weights) @ k.T))
        return pairs

    def squared_error(self, factors: Factors) -> float:
        r"""Half the sum over subsets of the squared residual, :math:`\tfrac12 \sum_S \|Z_S - \hat Z_S\|_F^2`."""
        return 0.5 * sum(float(np.sum((z - model) ** 2)) for z, model in self._models(factors))

    def divergence(self, factors: Factors) -> float:
        r"""Sum over subsets of :math:`\mathrm{KL}(Z_S \,\|\, \hat Z_S)`."""
        return sum(_divergence(z, model) for z, model in self._models(factors))


def random_factors(sizes: tuple[int, ...], rank: int, rng: np.random.Generator) -> Factors:
    """Columns of uniform (0, 1) entries scaled to sum one, and equal weights: the published start.

    >>> random_factors((3, 2), 4, np.random.default_rng(0)).weights
    array([0.25, 0.25, 0.25, 0.25])
    """
    if rank < 1:
        raise InputError(f"rank must be one or more, not {rank}.")
    columns = [rng.uniform(size=(size, rank)) for size in sizes]
    return Factors(np.full(rank, 1.0 / rank), tuple(a / a.sum(axis=0) for a in columns))


class _ADMMState(NamedTuple):
    factors: Factors
    duals: tuple[FloatArray, ...]  # of A_1, ..., A_N and lam
    objective: float
    previous: float  # objective before the last sweep


@dataclass(frozen=True, eq=False)
class CoupledADMM(Solver[CoupledProblem, _ADMMState, Factors]):
    r"""Least squares on all subsets, one block at a time, each by ADMM.

    Minimises :math:`\tfrac12 \sum_S \|Z_S - \sum_r \lambda_r \bigotimes_{n \in S} A_n[:, r]\|_F^2` over columns
    and weights on the simplex. A step is a sweep: A_1, ..., A_N, then the weights. The blocks and their scaled duals
    are kept from sweep to sweep, so that ADMM needs few steps after the first sweeps.

    Parameters
    ----------
    start : Factors
    factor_admm, weight_admm : SimplexADMM
        How a factor, and the weights, are solved for. The defaults are the published ones.
    tol : float
        Stop when a sweep changes the objective by no more than `tol` times it.

    Notes
    -----
    ADMM stops at a tolerance, so the objective may rise in a sweep by as much as that leaves open.
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
            coefficients[n], duals[n] = self.factor_admm.solve(gram, target, Split(a, duals[n]))
        gram, target = _weight_quadratic(problem, coefficients)
        found = self.weight_admm.solve(gram, target, Split(weights[None], duals[-1]), axis=1)
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
        How a factor, and the weights, are moved. The defaults are those published for triples.
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


class _Observed(NamedTuple):
    """Masses without the columns that are all zero, and their positive cells."""

    columns: IntArray  # kept of the unfolded masses
    masses: FloatArray  # (I, columns)
    cells: IntArray  # positions of the positive masses, counted row by row
    positive: FloatArray  # the positive masses

    @classmethod
    def of(cls, masses: FloatArray) -> _Observed:
        columns = np.flatnonzero(masses.any(axis=0))
        kept = masses[:, columns]
        cells = np.flatnonzero(kept)
        return cls(columns, kept, cells, kept.ravel()[cells])


class _FactorDivergence(NamedTuple):
    """Divergence of the subsets of one variable as a function of its factor: the model is A K'."""

    observed: _Observed
    basis: FloatArray  # K, (columns, F)

    def value(self, columns: FloatArray) -> tuple[float, FloatArray]:
        model = columns @ self.basis.T
        np.maximum(model, _LEAST_MASS, out=model)
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
        basis = np.concatenate([_products([coefficients[n] for n in subset]) for subset in problem.masses])
        return cls(masses[masses > 0], basis[masses > 0])

    def value(self, columns: FloatArray) -> tuple[float, FloatArray]:
        model = np.maximum(self.basis @ columns, _LEAST_MASS)
        return _divergence(self.masses[:, None], model), model

    def gradient(self, model: FloatArray) -> FloatArray:
        return np.asarray(-self.basis.T @ (self.masses[:, None] / model))


def _weight_quadratic(problem: CoupledProblem, coefficients: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return P and c, with which half the squared residual is constant + lam' P lam / 2 - c' lam."""
    rank = coefficients[0].shape[1]
    gram, target = np.zeros((rank, rank)), np.zeros((1, rank))
    for n, columns in enumerate(problem.owned):
        if columns.start < columns.stop:
            k = problem.khatri_rao(n, coefficients)[columns]
            target += np.einsum("ir,ir->r", coefficients[n], problem.unfolded[n][:, columns] @ k)
            gram += (coefficients[n].T @ coefficients[n]) * (k.T @ k)
    return gram, target


def _products(factors: list[FloatArray]) -> FloatArray:
    """Columnwise Kronecker products of factors (I_j, F), (I_k, F), ...; shape (I_j I_k ..., F)."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, None] * factor).reshape(-1, factor.shape[1])
    return product


def _divergence(masses: FloatArray, model: FloatArray) -> float:
    """Sum of z log(z / model) over the cells with z > 0."""
    here = masses > 0
    z = masses[here]
    return float(np.sum(z * np.log(z / np.maximum(model[here], _LEAST_MASS))))


def _settled(previous: float, objective: float, tol: float, negligible: float) -> bool:
    change = abs(previous - objective)
    return bool(np.isfinite(change) and (change <= tol * abs(previous) or objective <= negligible))
