"""What the methods on triples share: which triples, their parameters, and the fit."""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from jointwise._checks import check_choice, check_integer, check_real, listed
from jointwise.engines import Subset
from jointwise.estimators._tables import generator
from jointwise.exceptions import InputError
from jointwise.marginals import SubsetMarginals
from jointwise.relatives._base import Relative, Seed
from jointwise.relatives._runs import best_run, check_run
from jointwise.relatives.solvers import CoupledADMM, CoupledMirrorDescent, CoupledProblem, SimplexADMM, random_factors
from jointwise.solvers import Factors, Solution, Solver

LOSSES = ("frobenius", "kl")
# The published tolerance and steps of ADMM; a smaller `tol` also tightens ADMM.
ADMM_TOL, FACTOR_STEPS, WEIGHT_STEPS = 1e-5, 1000, 200


class CoupledRelative(Relative):
    """A relative that fits factors to triples; see `jointwise.relatives.CoupledPMF` for the parameters."""

    n_components: int
    loss: str
    triples: float
    rho: float | None = None
    n_init: int
    max_iter: int
    tol: float
    random_state: Seed

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_choice("loss", self.loss, LOSSES)
        check_triples(self.triples)
        if self.rho is not None and (self.loss != "frobenius" or not check_real("rho", self.rho) > 0):
            raise InputError(f'`rho` must be a positive number, for loss="frobenius" only, or None; got {self.rho!r}.')
        check_run(self.n_init, self.max_iter, self.tol)

    def _best_run(self, marginals: SubsetMarginals, states: str) -> Solution[Factors]:
        """Return the best run of `n_init` random starts; `states` names the states of a column in an error."""
        problem = coupled_problem(marginals)
        most = most_components(problem.sizes)
        self._check_n_components(self.n_components, most, f"that many hold any joint of these {states}")
        rng = generator(self.random_state)
        starts = (random_factors(problem.sizes, self.n_components, rng) for _ in range(self.n_init))
        return best_run(map(self._solver, starts), problem, self.max_iter)

    def _solver(self, start: Factors) -> Solver[CoupledProblem, Any, Factors]:
        if self.loss == "kl":
            return CoupledMirrorDescent(start, tol=self.tol)
        inner = min(ADMM_TOL, self.tol)
        factor_admm, weight_admm = (SimplexADMM(self.rho, inner, steps) for steps in (FACTOR_STEPS, WEIGHT_STEPS))
        return CoupledADMM(start, factor_admm, weight_admm, self.tol)


def check_triples(share: object) -> None:
    """Refuse anything but a share above 0 and at most 1."""
    if not 0 < check_real("triples", share) <= 1:
        raise InputError(f"`triples` must be a share of all triples, above 0 and at most 1; got {share!r}.")


def spread_triples(n_variables: int, share: float) -> list[Subset]:
    """Return a share of all triples of variables, evenly spaced in their order, as published.

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
    """Return the masses of all subsets for which some row has all values."""
    masses = marginals.masses()
    seen = {n for subset in masses for n in subset}
    unseen = [name for n, name in enumerate(marginals.schema.names) if n not in seen]
    if unseen:
        raise InputError(
            f"No row holds a value of {listed(unseen)} together with values of the columns it is counted with, so "
            "their dependence cannot be estimated. Drop such columns, or add rows without gaps."
        )
    return CoupledProblem(tuple(axis.n_bins for axis in marginals.axes), masses)


def most_components(sizes: tuple[int, ...]) -> int:
    """Return a number of components that holds any joint of these sizes: one for each cell of all but the largest.

    >>> most_components((5, 2, 3))
    6
    """
    return prod(sizes) // max(sizes)
