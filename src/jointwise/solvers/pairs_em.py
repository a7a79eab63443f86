"""PairwiseEM: all factors from pair masses, by composite likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jointwise.solvers.accelerated import LEAST_MASS, AcceleratedEM, EMState, normalised
from jointwise.solvers.pairs_problem import PairwiseProblem

if TYPE_CHECKING:
    from jointwise._typing import FloatArray


@dataclass(frozen=True, eq=False)
class PairwiseEM(AcceleratedEM[PairwiseProblem]):
    r"""Composite pairwise likelihood by EM on all factors at once.

    Minimises :math:`\sum_{j<k} s_{jk} \mathrm{KL}(\hat Z_{jk} \,\|\, A_j \Lambda A_k^\top)` with the shares
    s scaled to sum to one: the negative mean pairwise log-likelihood up to a constant. With the latent triple
    (component, atom of j, atom of k) of every pair, an EM update is

    .. math:: V_n = \sum_k s_{nk} (\hat Z_{nk} / A_n \Lambda A_k^\top) A_k, \quad
              B_n \leftarrow B_n \circ \bar D_n^\top V_n, \quad
              \lambda \leftarrow \lambda \circ \textstyle\sum_n (A_n \circ V_n)^\top 1,

    each normalised. It needs no learning rate and never raises the objective. See `AcceleratedEM` for its parameters
    and steps.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.solvers import random_start, solve
    >>> coin = np.eye(2)
    >>> problem = PairwiseProblem((coin, coin), {(0, 1): np.diag([0.3, 0.7])})
    >>> start = random_start(problem, 2, np.random.default_rng(0))
    >>> solution = solve(PairwiseEM(start, tol=1e-9), problem, max_steps=200)
    >>> solution.converged, bool(solution.history[-1] < 1e-6)
    (True, True)
    """

    def init(self, problem: PairwiseProblem) -> EMState:
        """Return the start with its objective."""
        problem.check_factors(self.start)
        return super().init(problem)

    def update(self, problem: PairwiseProblem, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean pairwise KL divergence at a point, and the point after one EM update."""
        # pair by pair: the products are then small enough for the cache and for one thread
        weights = point[0]
        conditionals = [d @ point[1:][rows] for d, rows in zip(problem.masses, problem.slices, strict=True)]
        weighted = [a * weights for a in conditionals]
        gathered = [np.zeros_like(a) for a in conditionals]  # V_n
        objective = problem.negative_entropy
        for (j, k), z in problem.scaled_pairs.items():
            model = weighted[j] @ conditionals[k].T
            np.maximum(model, LEAST_MASS, out=model)
            ratio = z / model
            objective -= float(np.vdot(z, np.log(model, out=model)))
            gathered[j] += ratio @ conditionals[k]
            gathered[k] += ratio.T @ conditionals[j]
        update = point.copy()
        update[0] *= sum(np.einsum("ir,ir->r", a, v) for a, v in zip(conditionals, gathered, strict=True))
        for d, v, rows in zip(problem.masses, gathered, problem.slices, strict=True):
            update[1:][rows] *= d.T @ v
        return objective, normalised(problem.slices, update, point)
