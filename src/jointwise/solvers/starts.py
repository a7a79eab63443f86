"""Where solvers of factors begin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.solvers.factors import Factors
from jointwise.solvers.pairs_problem import PairwiseProblem
from jointwise.solvers.simplex import simplex_weights


def marginal_coefficients(problem: PairwiseProblem, *, tol: float = 1e-3) -> tuple[FloatArray, ...]:
    """Coefficients (L_n,) of the 1-D maximum-likelihood fit of each variable's margin."""
    return tuple(
        simplex_weights(d, margin, tol=tol) for d, margin in zip(problem.masses, problem.settled_margins, strict=True)
    )


def random_start(
    problem: PairwiseProblem, rank: int, rng: np.random.Generator, *, concentration: float = 1.0
) -> Factors:
    """Random factors around the independence of a problem's margins; see `start_around`."""
    return start_around(marginal_coefficients(problem), rank, rng, concentration=concentration)


def start_around(
    margins: Sequence[FloatArray], rank: int, rng: np.random.Generator, *, concentration: float = 1.0
) -> Factors:
    """Random factors around independence: 1-D coefficients times gamma noise, normalised.

    Parameters
    ----------
    margins : sequence of arrays of shape (L_n,)
        Coefficients of the 1-D fit of each variable, as `marginal_coefficients` gives them.
    rank : int
        Number of components F.
    rng : numpy.random.Generator
    concentration : float
        Shape of the gamma noise; the smaller, the more the components differ.
    """
    if rank < 1:
        raise InputError(f"rank must be one or more, not {rank}.")
    coefficients = []
    for margin in margins:
        # A share of uniform coefficients keeps atoms alive that the margin alone does not need.
        centre = 0.95 * margin[:, None] + 0.05 / margin.size
        noisy = centre * (rng.gamma(concentration, size=(margin.size, rank)) + 1e-3)
        coefficients.append(noisy / noisy.sum(axis=0))
    return Factors(np.full(rank, 1.0 / rank), tuple(coefficients))
