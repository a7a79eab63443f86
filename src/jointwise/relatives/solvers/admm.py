"""Least squares with rows or columns on the simplex, by ADMM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.relatives.solvers.descent import project_on_simplex


class PrimalDual(NamedTuple):
    """The state of ADMM: the block on the simplex, and its scaled dual."""

    block: FloatArray  # A, (I, F)
    dual: FloatArray  # U, (I, F)


@dataclass(frozen=True)
class SimplexADMM:
    r"""Alternating direction method of multipliers for least squares on the simplex.

    Minimises :math:`\tfrac12 \mathrm{tr}(A G A^\top) - \langle V, A \rangle`, which is
    :math:`\tfrac12 \|X - A K^\top\|_F^2` up to a constant for G = K'K and V = X K, by

    .. math:: \tilde A = (V + \rho (A + U)) (G + \rho I)^{-1}, \quad
              A \leftarrow \Pi(\tilde A - U), \quad U \leftarrow U + A - \tilde A.

    Parameters
    ----------
    rho : float, optional
        The penalty; trace(G) / F by default. A far larger one freezes the block, a far smaller one lets it oscillate.
    tol : float
        Stop when the norms of :math:`A - \tilde A` and of the last change of A are both at most this.
    max_steps : int
        Most steps.

    Examples
    --------
    >>> admm = SimplexADMM(tol=1e-9)
    >>> start = PrimalDual(np.full((2, 1), 0.5), np.zeros((2, 1)))
    >>> admm.solve(np.eye(1), np.array([[0.9], [0.3]]), start).block.round(6)
    array([[0.8],
           [0.2]])
    """

    rho: float | None = None
    tol: float = 1e-5
    max_steps: int = 1000

    def __post_init__(self) -> None:
        if self.rho is not None and not 0 < self.rho < np.inf:
            raise InputError(f"`rho` must be a positive number or None; got {self.rho}.")
        if self.max_steps < 1 or not self.tol >= 0:
            raise InputError(
                f"ADMM needs max_steps of at least 1 and tol of at least 0; got {self.max_steps} and {self.tol}."
            )

    def solve(self, gram: FloatArray, target: FloatArray, start: PrimalDual, axis: int = 0) -> PrimalDual:
        """Run from a start; the end of an earlier run is a warm start.

        Parameters
        ----------
        gram : array of shape (F, F)
            G, positive semidefinite.
        target : array of shape (I, F)
            V.
        start : PrimalDual
        axis : int
            0 if each column of A sums to one, 1 if each row does.
        """
        identity = np.eye(len(gram))
        rho = self.rho if self.rho is not None else max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
        inverse = cho_solve(cho_factor(gram + rho * identity), identity)  # small, and well conditioned thanks to rho
        fixed, scaled = target @ inverse, rho * inverse
        block, dual = start
        for _ in range(self.max_steps):
            copy = fixed + (block + dual) @ scaled
            previous, block = block, project_on_simplex(copy - dual, axis)
            gap = block - copy
            dual = dual + gap
            if np.vdot(gap, gap) > self.tol**2:
                continue
            moved = block - previous
            if np.vdot(moved, moved) <= self.tol**2:
                break
        return PrimalDual(block, dual)
