"""What the methods on triples share: which triples, which settings, the best of several starts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from jointwise._checks import check_choice, check_integer, check_real, listed
from jointwise.engines import Subset
from jointwise.exceptions import InputError
from jointwise.marginals import SubsetMarginals
from jointwise.relatives.solvers.admm import SimplexADMM
from jointwise.relatives.solvers.coupled import CoupledADMM, CoupledMirrorDescent
from jointwise.relatives.solvers.coupled_problem import CoupledProblem, random_factors
from jointwise.solvers import Factors, Solution, Solver, solve

LOSSES = ("frobenius", "kl")
# The published tolerance and steps of ADMM; a closer fit asks for a closer ADMM too.
ADMM_TOL, FACTOR_STEPS, WEIGHT_STEPS = 1e-5, 1000, 200


@dataclass(frozen=True)
class CoupledSettings:
    """How to fit triples; see `jointwise.relatives.CoupledPMF` for the parameters."""

    n_components: int
    loss: str
    triples: float
    rho: float | None
    n_init: int
    max_iter: int
    tol: float

    def __post_init__(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_choice("loss", self.loss, LOSSES)
        if not 0 < check_real("triples", self.triples) <= 1:
            raise InputError(f"`triples` must be a share of all triples, above 0 and at most 1; got {self.triples!r}.")
        if self.rho is not None and (self.loss != "frobenius" or not check_real("rho", self.rho) > 0):
            raise InputError(f'`rho` must be a positive number, for loss="frobenius" only, or None; got {self.rho!r}.')
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        if check_real("tol", self.tol) < 0:
            raise InputError(f"`tol` must not be negative; got {self.tol!r}.")

    def solution(self, problem: CoupledProblem, rng: np.random.Generator) -> Solution[Factors]:
        """Return the run of lowest objective among `n_init` random starts."""
        starts = (random_factors(problem.sizes, self.n_components, rng) for _ in range(self.n_init))
        runs = [solve(self._solver(start), problem, max_steps=self.max_iter) for start in starts]
        return min(runs, key=lambda run: float(run.history[-1]))

    def _solver(self, start: Factors) -> Solver[CoupledProblem, Any, Factors]:
        if self.loss == "kl":
            return CoupledMirrorDescent(start, tol=self.tol)
        inner = min(ADMM_TOL, self.tol)
        return CoupledADMM(
            start,
            SimplexADMM(self.rho, inner, FACTOR_STEPS),
            SimplexADMM(self.rho, inner, WEIGHT_STEPS),
            tol=self.tol,
        )


def spread_triples(n_variables: int, share: float) -> list[Subset]:
    """A share of all triples of variables, evenly spaced in their order, which is the published choice.

    >>> spread_triples(4, 0.5)
    [(0, 1, 2), (0, 2, 3)]
    """
    every = list(combinations(range(n_variables), 3))
    n_kept = max(round(share * len(every)), 1)
    kept: list[Subset] = [every[position] for position in np.arange(n_kept) * len(every) // n_kept]
    unseen = sorted(set(range(n_variables)) - {n for triple in kept for n in triple})
    if unseen:
        raise InputError(
            f"With triples={share:g}, {n_kept} of {len(every)} triples are used, and columns {unseen} are in none of "
            "them. Raise `triples`."
        )
    return kept


def coupled_problem(marginals: SubsetMarginals) -> CoupledProblem:
    """Masses of all subsets that some row has."""
    masses = marginals.masses()
    seen = {n for subset in masses for n in subset}
    unseen = [name for n, name in enumerate(marginals.schema.names) if n not in seen]
    if unseen:
        raise InputError(
            f"No row holds a value of {listed(unseen)} together with values of the columns it is counted with, so "
            "nothing tells how they depend on each other. Drop such columns, or add rows that hold all values."
        )
    return CoupledProblem(tuple(axis.n_bins for axis in marginals.axes), masses)


def most_components(sizes: tuple[int, ...]) -> int:
    """So many components hold any joint of variables with these numbers of states: one for each cell of all but one.

    >>> most_components((5, 2, 3))
    6
    """
    return prod(sizes) // max(sizes)


def record(model: Any, solution: Solution[Any]) -> None:
    """Keep how a run ended on the estimator, and warn where it stopped short."""
    model.n_iter_ = max(solution.n_steps, 1)
    model.converged_ = solution.converged
    model.objective_ = float(solution.history[-1])
    if not solution.converged:
        warnings.warn(
            f"{solution.message} Raise max_iter (now {model.max_iter}) or tol (now {model.tol}).",
            ConvergenceWarning,
            stacklevel=4,
        )
