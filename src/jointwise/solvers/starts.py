"""Factors to start from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.solvers.factors import Factors
from jointwise.solvers.pairs_problem import PairwiseProblem


def random_start(problem: PairwiseProblem, n_components: int, rng: np.random.Generator) -> Factors:
    """Return random factors around the independence of a problem's variables; see `start_around`."""
    return start_around(problem.margin_coefficients, n_components, rng)


def start_around(margins: Sequence[FloatArray], n_components: int, rng: np.random.Generator) -> Factors:
    """Return random factors around independence: 1-D coefficients times gamma noise, normalised.

    Parameters
    ----------
    margins : sequence of arrays of shape (L_n,)
        Coefficients of the 1-D fit of each variable, as `PairwiseProblem.margin_coefficients`.
    n_components : int
        Number of components F.
    rng : numpy.random.Generator
    """
    if n_components < 1:
        raise InputError(f"n_components must be one or more; got {n_components}.")
    coefficients = []
    for margin in margins:
        # a share of uniform coefficients keeps atoms alive that the margin alone does not need
        centre = 0.95 * margin[:, None] + 0.05 / margin.size
        noisy = centre * (rng.gamma(1.0, size=(margin.size, n_components)) + 1e-3)
        coefficients.append(noisy / noisy.sum(axis=0))
    return Factors(np.full(n_components, 1.0 / n_components), tuple(coefficients))
