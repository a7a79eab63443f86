"""PairwiseProblem: empirical masses of pairs, and the bin masses of the atoms that fit them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jointwise.exceptions import InputError
from jointwise.solvers.factors import Factors, frozen, stacked_slices
from jointwise.solvers.simplex import simplex_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jointwise._typing import FloatArray

Pair = tuple[int, int]
# Masses are sums of many counts or cdf differences: this much rounding is accepted.
SUM_TOLERANCE = 1e-6
MARGIN_TOL = 1e-3  # of a start's margins, in nats


@dataclass(frozen=True, eq=False)
class PairwiseProblem:
    r"""Empirical masses of pairs of variables, to be fitted by a low-rank joint on given atoms.

    The model of a pair is :math:`\bar D_j B_j \Lambda B_k^\top \bar D_k^\top`.

    Parameters
    ----------
    masses : sequence of arrays of shape (I_n, L_n)
        Dbar_n: probability of bin i under atom l. Columns sum to one.
    pairs : mapping from (j, k), j < k, to arrays of shape (I_j, I_k)
        Empirical masses Zhat_jk, each summing to one. Pairs never observed are left out.
    shares : mapping from (j, k) to float, optional
        Relative number of rows behind each pair, the weight of its term in both losses. Ones by default, as in the
        paper.
    margins : sequence of arrays of shape (I_n,), optional
        Empirical masses of each variable alone, by default those of its pairs. Needed if a variable has no pairs.

    Examples
    --------
    Two coins that always agree, and the two-component joint that says so:

    >>> import numpy as np
    >>> coin = np.eye(2)
    >>> problem = PairwiseProblem((coin, coin), {(0, 1): np.eye(2) / 2})
    >>> problem.squared_error(Factors([0.5, 0.5], (coin, coin)))
    0.0
    """

    masses: tuple[FloatArray, ...]
    pairs: Mapping[Pair, FloatArray]
    shares: Mapping[Pair, float] | None = None
    margins: tuple[FloatArray, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "masses", tuple(frozen(d) for d in self.masses))
        object.__setattr__(self, "pairs", {pair: frozen(z) for pair, z in sorted(self.pairs.items())})
        if self.shares is not None:
            object.__setattr__(self, "shares", {p: float(s) for p, s in sorted(self.shares.items())})
        self._check_masses()
        self._check_pairs()
        self._check_margins()

    def _check_masses(self) -> None:
        if len(self.masses) < 2:
            raise InputError("masses must hold two or more variables: one alone has no pairs to fit.")
        for n, masses in enumerate(self.masses):
            if masses.ndim != 2 or 0 in masses.shape:
                raise InputError(f"masses[{n}] must be a table of bins by atoms; got shape {masses.shape}.")
            if not _sums_to_one(masses):
                raise InputError(
                    f"masses[{n}] must hold probabilities with columns that sum to one; "
                    "make the first and last bins open-ended so that no mass is lost."
                )

    def _check_pairs(self) -> None:
        if not self.pairs:
            raise InputError("pairs must hold at least one observed pair.")
        for (j, k), z in self.pairs.items():
            if not 0 <= j < k < self.n_variables:
                raise InputError(f"Keys of pairs must be (j, k) with 0 <= j < k < {self.n_variables}; got {(j, k)}.")
            expected = (self.masses[j].shape[0], self.masses[k].shape[0])
            if z.shape != expected:
                raise InputError(
                    f"pairs[{(j, k)}] must have shape {expected}, the bins of both variables; got {z.shape}."
                )
            if not _sums_to_one(z.ravel()):
                raise InputError(f"pairs[{(j, k)}] must hold masses that sum to one; leave out a pair without rows.")
        shares = self.shares
        if shares is not None and (
            shares.keys() != self.pairs.keys() or not all(0 < s < np.inf for s in shares.values())
        ):
            raise InputError("shares must hold one positive number for each pair and no others.")

    def _check_margins(self) -> None:
        if self.margins is None:
            return
        object.__setattr__(self, "margins", tuple(frozen(m) for m in self.margins))
        sizes = [m.shape for m in self.margins]
        expected = [(d.shape[0],) for d in self.masses]
        if sizes != expected or not all(_sums_to_one(m) for m in self.margins):
            raise InputError(f"margins must hold masses that sum to one, of shapes {expected}; got shapes {sizes}.")

    def _margin_from_pairs(self, n: int) -> FloatArray:
        total = np.zeros(self.masses[n].shape[0])
        for (j, k), z in self.pairs.items():
            if n in (j, k):
                total += self.share_matrix[j, k] * z.sum(axis=1 if n == j else 0)
        if not total.any():
            raise InputError(
                f"Variable {n} shares no row with another: give margins, so that it can be fitted alone, "
                "or leave it out."
            )
        return np.asarray(total / total.sum())

    @property
    def n_variables(self) -> int:
        """Number of variables N."""
        return len(self.masses)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of atoms L_n of each variable."""
        return tuple(d.shape[1] for d in self.masses)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Rows of each variable in arrays that stack the atoms of all variables."""
        return stacked_slices(self.sizes)

    @cached_property
    def settled_margins(self) -> tuple[FloatArray, ...]:
        """Masses (I_n,) of each variable alone: `margins` if given, else those of its pairs."""
        if self.margins is not None:
            return self.margins
        return tuple(frozen(self._margin_from_pairs(n)) for n in range(self.n_variables))

    @cached_property
    def margin_coefficients(self) -> tuple[FloatArray, ...]:
        """Coefficients (L_n,) of the 1-D maximum-likelihood fit of each variable."""
        margins = zip(self.masses, self.settled_margins, strict=True)
        return tuple(frozen(simplex_weights(masses, margin, tol=MARGIN_TOL)) for masses, margin in margins)

    @cached_property
    def scaled_pairs(self) -> dict[Pair, FloatArray]:
        """Zhat_jk times share_jk, over the sum of all shares: together they sum to one."""
        total = np.triu(self.share_matrix).sum()
        return {pair: frozen(self.share_matrix[pair] / total * z) for pair, z in self.pairs.items()}

    @cached_property
    def negative_entropy(self) -> float:
        """Sum over pairs of sum share_jk Zhat_jk log Zhat_jk, with shares that sum to one."""
        logs = {pair: np.log(np.where(z > 0, z, 1.0)) for pair, z in self.pairs.items()}
        return float(sum(np.vdot(self.scaled_pairs[pair], log) for pair, log in logs.items()))

    @cached_property
    def grams(self) -> tuple[FloatArray, ...]:
        """G_n = Dbar_n' Dbar_n, of shape (L_n, L_n)."""
        return tuple(frozen(d.T @ d) for d in self.masses)

    @cached_property
    def projected(self) -> dict[Pair, FloatArray]:
        """C_jk = Dbar_j' Zhat_jk Dbar_k, of shape (L_j, L_k)."""
        return {(j, k): frozen(self.masses[j].T @ z @ self.masses[k]) for (j, k), z in self.pairs.items()}

    @cached_property
    def share_matrix(self) -> FloatArray:
        """Shares as a symmetric (N, N) matrix with zeros where no pair was observed."""
        matrix = np.zeros((self.n_variables, self.n_variables))
        for pair in self.pairs:
            matrix[pair] = matrix[pair[::-1]] = 1.0 if self.shares is None else self.shares[pair]
        return frozen(matrix)

    @cached_property
    def stacked(self) -> FloatArray:
        """Symmetric (sum L, sum L) matrix of the blocks share_jk C_jk, zero where no pair was observed."""
        matrix = np.zeros((sum(self.sizes), sum(self.sizes)))
        for (j, k), c in self.projected.items():
            block = self.share_matrix[j, k] * c
            matrix[self.slices[j], self.slices[k]] = block
            matrix[self.slices[k], self.slices[j]] = block.T
        return frozen(matrix)

    @cached_property
    def squared_norms(self) -> dict[Pair, float]:
        """Squared Frobenius norm of each Zhat_jk."""
        return {pair: float(np.vdot(z, z)) for pair, z in self.pairs.items()}

    @cached_property
    def constant(self) -> float:
        """Sum of share_jk ||Zhat_jk||_F^2: the part of the squared error that no factor changes."""
        return float(sum(self.share_matrix[pair] * norm for pair, norm in self.squared_norms.items()))

    def check_factors(self, factors: Factors) -> None:
        """Raise unless the factors have the variables and atoms of this problem."""
        sizes = tuple(b.shape[0] for b in factors.coefficients)
        if sizes != self.sizes:
            raise InputError(f"The factors have {sizes} atoms, but the variables of the problem have {self.sizes}.")

    def weight_quadratic(self, coefficients: FloatArray, inner: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P and c such that the squared error is constant + lam' P lam - 2 c' lam.

        Parameters
        ----------
        coefficients : array of shape (sum L, F)
            All B_n stacked.
        inner : array of shape (N, F, F)
            Q_n = B_n' G_n B_n.
        """
        others = np.tensordot(self.share_matrix, inner, axes=1)
        p = 0.5 * np.einsum("nrs,nrs->rs", inner, others)
        c = 0.5 * np.einsum("lr,lr->r", coefficients, self.stacked @ coefficients)
        return p, c

    def inner_products(self, coefficients: Sequence[FloatArray]) -> FloatArray:
        """Return Q_n = B_n' G_n B_n for all n, of shape (N, F, F)."""
        return np.stack([b.T @ g @ b for b, g in zip(coefficients, self.grams, strict=True)])

    def squared_error(self, factors: Factors) -> float:
        r"""Return the squared error of the factors.

        .. math:: J = \sum_{j<k} s_{jk} \|\hat Z_{jk} - \bar D_j B_j \Lambda B_k^\top \bar D_k^\top\|_F^2.

        It is computed from Q_n, P and c without a pass over the bins, so its rounding error is about 1e-16 times the
        constant.
        """
        p, c = self.weight_quadratic(np.vstack(factors.coefficients), self.inner_products(factors.coefficients))
        weights = factors.weights
        return max(float(self.constant + weights @ p @ weights - 2 * (c @ weights)), 0.0)


def _sums_to_one(array: FloatArray) -> bool:
    """Return whether columns are non-negative and sum to one; NaN fails both."""
    sums = array.sum(axis=0)
    return bool(np.all(array >= 0) and np.all(np.abs(sums - 1) <= SUM_TOLERANCE))
