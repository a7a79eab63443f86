"""Maximum a posteriori from rows: EM on posterior counts, with a prior centred on independence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import xlogy

from jointwise._typing import FloatArray
from jointwise.engines.atoms import Masses, StackedAtoms, weighted_log
from jointwise.engines.base import PosteriorCounts, PosteriorEngine
from jointwise.exceptions import InputError
from jointwise.solvers.accelerated import LEAST_MASS, AcceleratedEM
from jointwise.solvers.factors import stacked_slices


@dataclass(frozen=True, eq=False)
class RowsProblem:
    r"""Rows, atoms, and a Dirichlet prior that shrinks every component towards the margins.

    With m_n the coefficients of variable n's own 1-D fit, the prior adds
    :math:`-\beta \sum_{n,r} \mathrm{KL}(m_n \| B_n[:, r])` to the log-likelihood, as if each component had seen `beta`
    more rows, in each variable, with the distribution of the whole table.

    Parameters
    ----------
    masses : sequence of Places or arrays of shape (I_n, L_n)
        Dbar_n: probability of bin i under atom l.
    margins : sequence of arrays of shape (L_n,)
        m_n.
    rows : PosteriorEngine
        The coded rows.
    n_rows : float
        Their number, or the sum of their weights.
    beta : float
        Number of rows that the prior counts for.
    """

    masses: tuple[Masses, ...]
    margins: tuple[FloatArray, ...]
    rows: PosteriorEngine
    n_rows: float
    beta: float
    _atoms: StackedAtoms | None = None

    def __post_init__(self) -> None:
        if not self.beta >= 0:
            raise InputError(f"beta must be zero or more; got {self.beta!r}.")
        if self._atoms is None or self._atoms.masses is not self.masses:  # `replace` hands on those of equal masses
            object.__setattr__(self, "_atoms", StackedAtoms(self.masses))

    @property
    def atoms(self) -> StackedAtoms:
        """The masses of all variables, ready for products."""
        assert self._atoms is not None  # set above
        return self._atoms

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Rows of each variable in arrays that stack the atoms of all variables."""
        return stacked_slices([d.shape[1] for d in self.masses])

    @cached_property
    def bin_slices(self) -> tuple[slice, ...]:
        """Rows of each variable in arrays that stack the bins of all variables."""
        return stacked_slices([d.shape[0] for d in self.masses])

    @cached_property
    def prior(self) -> FloatArray:
        """The prior rows beta m_n, stacked; shape (sum L,)."""
        return np.asarray(self.beta * np.concatenate(self.margins))

    @cached_property
    def bin_margins(self) -> FloatArray:
        """Bin masses of each variable's own fit, stacked; shape (sum I,)."""
        fitted = [d @ m for d, m in zip(self.masses, self.margins, strict=True)]
        return np.maximum(np.concatenate(fitted), LEAST_MASS)

    def conditionals(self, coefficients: FloatArray) -> FloatArray:
        """A_n = Dbar_n B_n, stacked; shape (sum I, F)."""
        return self.atoms.conditionals(coefficients)

    def update(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective at a point (weights, then all B_n, stacked) and the point after one EM update.

        The objective is the negative log-posterior per row, less that of independence.
        """
        tables, found = self.posterior(point)
        log_posterior = found.log_likelihood - self.divergence(point[1:])
        return -log_posterior / self.n_rows, self.atoms.update(point, found, tables, self.bin_margins, self.prior)

    def posterior(self, point: FloatArray) -> tuple[FloatArray, PosteriorCounts]:
        """Return the conditionals at a point, divided by the margins, and the posterior counts of a pass over the rows.

        Their shape is (sum I, F).
        """
        # divided by the margins the factors are near one, so products over many variables stay in range
        tables = self.atoms.tables(point[1:], self.bin_margins)
        return tables, self.rows.posterior_counts(tables, point[0])

    def divergence(self, coefficients: FloatArray) -> float:
        """Return the prior's penalty, beta times the sum over n, r of KL(m_n || B_n[:, r])."""
        if not self.beta:
            return 0.0
        return float(coefficients.shape[1] * self._centre - weighted_log(coefficients, self.prior))

    @cached_property
    def _centre(self) -> float:
        """The sum of the prior rows times the logarithms of m_n."""
        margins = np.concatenate(self.margins)
        return float(self.beta * xlogy(margins, margins).sum())


@dataclass(frozen=True, eq=False)
class RowsEM(AcceleratedEM[RowsProblem]):
    r"""EM on rows from given factors.

    .. math:: B_n \leftarrow B_n \circ \bar D_n^\top (S_n / A_n) + \beta m_n 1^\top, \qquad
              \lambda[r] \leftarrow \textstyle\sum_i P(r \mid x_i),

    each normalised. See `AcceleratedEM` for its parameters and steps.
    """

    def update(self, problem: RowsProblem, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log-posterior per row, less that of independence, and the point after one update."""
        return problem.update(point)
