"""The problem of fitting the masses of several subsets of variables with the same factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import InputError
from jointwise.solvers.factors import Factors
from jointwise.solvers.pairs_problem import SUM_TOLERANCE

Subset = tuple[int, ...]
# A smaller model mass is taken as this, so that a cell without model mass costs much, but not infinity.
LEAST_MASS = 1e-290


@dataclass(frozen=True, eq=False)
class CoupledProblem:
    r"""Masses of subsets of variables, to be fitted by the marginals of one low-rank joint.

    The model of subset S is :math:`\sum_r \lambda_r \bigotimes_{n \in S} A_n[:, r]`.

    Parameters
    ----------
    sizes : sequence of N ints
        Number of states I_n of each variable.
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
            raise InputError(f"Variables {unseen} are in no subset; add a subset for each of them.")

    def _check(self, subset: Subset, z: FloatArray) -> None:
        if len(subset) < 2 or list(subset) != sorted(set(subset)) or not 0 <= subset[0] <= subset[-1] < len(self.sizes):
            raise InputError(
                f"`masses` must have keys of two or more increasing variables from 0 to {len(self.sizes) - 1}; got "
                f"{subset}."
            )
        expected = tuple(self.sizes[n] for n in subset)
        if z.shape != expected:
            raise InputError(
                f"`masses[{subset}]` must have shape {expected}, the states of its variables; got {z.shape}."
            )
        if not (z >= 0).all() or not abs(z.sum() - 1) <= SUM_TOLERANCE:
            raise InputError(f"`masses[{subset}]` must sum to one without negatives; leave out a subset without rows.")

    @cached_property
    def around(self) -> tuple[tuple[Subset, ...], ...]:
        """For each variable, the other variables of every subset it is in."""
        n_variables = range(len(self.sizes))
        return tuple(tuple(tuple(k for k in s if k != n) for s in self.masses if n in s) for n in n_variables)

    @cached_property
    def unfolded(self) -> tuple[FloatArray, ...]:
        """For each variable, the masses of its subsets side by side; shape (I_n, cells of the other variables).

        Columns are in the order of `around`, so the model is A_n diag(lam) K' with K from `khatri_rao`.
        """
        return tuple(
            np.hstack([np.moveaxis(z, s.index(n), 0).reshape(size, -1) for s, z in self.masses.items() if n in s])
            for n, size in enumerate(self.sizes)
        )

    @cached_property
    def owned(self) -> tuple[slice, ...]:
        """Columns of `unfolded` for the subsets that begin with the variable; together they hold every subset once."""
        ends = []
        for n, others in enumerate(self.around):
            widths = [prod(self.sizes[k] for k in rest) for rest in others]
            # subsets are sorted, so those that begin with n come after the others with n
            first = sum(width for rest, width in zip(others, widths, strict=True) if rest[0] < n)
            ends.append(slice(first, sum(widths)))
        return tuple(ends)

    @cached_property
    def observed(self) -> tuple[Observed, ...]:
        """For each variable, the part of `unfolded` that the divergence needs."""
        return tuple(Observed.of(z) for z in self.unfolded)

    def khatri_rao(self, n: int, coefficients: Sequence[FloatArray]) -> FloatArray:
        """Return products of the other variables' factors, stacked over the subsets of variable n; (columns, F)."""
        return np.concatenate([columnwise_products([coefficients[k] for k in rest]) for rest in self.around[n]])

    def check_factors(self, factors: Factors) -> None:
        """Raise unless the factors have the variables and states of this problem."""
        sizes = tuple(a.shape[0] for a in factors.coefficients)
        if sizes != self.sizes:
            raise InputError(f"The factors must have the problem's {self.sizes} states; got {sizes}.")

    def parts(self, coefficients: Sequence[FloatArray]) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield masses, A_n and K of the subsets that begin with each variable n, so that each subset comes once."""
        for n, (columns, a) in enumerate(zip(self.owned, coefficients, strict=True)):
            if columns.start < columns.stop:
                yield self.unfolded[n][:, columns], a, self.khatri_rao(n, coefficients)[columns]

    def _models(self, factors: Factors) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield masses and model of every subset, as matrices."""
        return ((z, (a * factors.weights) @ k.T) for z, a, k in self.parts(factors.coefficients))

    def squared_error(self, factors: Factors) -> float:
        r"""Return half the sum over subsets of the squared residual, :math:`\tfrac12 \sum_S \|Z_S - \hat Z_S\|_F^2`."""
        return 0.5 * sum(float(np.sum((z - model) ** 2)) for z, model in self._models(factors))

    def divergence(self, factors: Factors) -> float:
        r"""Return the sum over subsets of :math:`\mathrm{KL}(Z_S \,\|\, \hat Z_S)`."""
        return sum(divergence_of(z, model) for z, model in self._models(factors))


def random_factors(sizes: tuple[int, ...], n_components: int, rng: np.random.Generator) -> Factors:
    """Return columns of uniform (0, 1) entries scaled to sum one, and equal weights: the published start.

    >>> random_factors((3, 2), 4, np.random.default_rng(0)).weights
    array([0.25, 0.25, 0.25, 0.25])
    """
    columns = [rng.uniform(size=(size, n_components)) for size in sizes]
    return Factors(np.full(n_components, 1.0 / n_components), tuple(a / a.sum(axis=0) for a in columns))


class Observed(NamedTuple):
    """Masses without the columns that are all zero, and their positive cells."""

    columns: IntArray  # positions of the columns kept
    masses: FloatArray  # (I, columns)
    cells: IntArray  # positions of the positive masses, counted row by row
    positive: FloatArray  # the positive masses

    @classmethod
    def of(cls, masses: FloatArray) -> Observed:
        """Find the columns and cells with mass in a matrix."""
        columns = np.flatnonzero(masses.any(axis=0))
        kept = masses[:, columns]
        cells = np.flatnonzero(kept)
        return cls(columns, kept, cells, kept.ravel()[cells])


def columnwise_products(factors: list[FloatArray]) -> FloatArray:
    """Return columnwise Kronecker products of factors (I_j, F), (I_k, F), ...; shape (I_j I_k ..., F)."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, None] * factor).reshape(-1, factor.shape[1])
    return product


def divergence_of(masses: FloatArray, model: FloatArray) -> float:
    """Return the sum of z log(z / model) over the cells with z > 0."""
    here = masses > 0
    z = masses[here]
    return float(np.sum(z * np.log(z / np.maximum(model[here], LEAST_MASS))))
