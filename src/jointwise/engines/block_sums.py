r"""The pass of EM over a Gaussian block: posteriors of the components, and the sums that the next step needs.

With P[i, r] the posterior of component r given row i, and x the row's block columns, the sums are

.. math:: n_r = \sum_i P_{ir}, \qquad s_r = \sum_i P_{ir} \mathrm{E}[x_i \mid r], \qquad
          Q_r = \sum_i P_{ir} \mathrm{E}[x_i x_i^\top \mid r],

where a missing cell has its conditional mean and covariance given the observed cells of its row. Sums of the parts of a
table add up. Rows with the same cells missing share all matrices, so they are passed over together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from jointwise._typing import BoolArray, FloatArray, IntArray

# Fewest rows of a part that has sums of its own.
LEAST_PART = 1024
LOG_TAU = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class BlockSums:
    """What one pass over the rows of a block leaves behind; sums of parts of a table add up.

    Parameters
    ----------
    totals : array of shape (F,)
        n_r.
    firsts : array of shape (F, d)
        s_r.
    seconds : array of shape (F, d, d)
        Q_r.
    log_likelihood : float
        Sum over rows of their weighted log-densities.
    """

    totals: FloatArray
    firsts: FloatArray
    seconds: FloatArray
    log_likelihood: float

    def __add__(self, other: BlockSums) -> BlockSums:
        return BlockSums(
            self.totals + other.totals,
            self.firsts + other.firsts,
            self.seconds + other.seconds,
            self.log_likelihood + other.log_likelihood,
        )


@dataclass(frozen=True, eq=False)
class GaussianComponents:
    """Weights, means and covariances of F Gaussians in d dimensions.

    Parameters
    ----------
    weights : array of shape (F,)
    means : array of shape (F, d)
    covariances : array of shape (F, d, d)
        Positive definite.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray

    def seen(self, observed: BoolArray) -> _Seen:
        """Return the components as rows see them of which only some cells are observed."""
        return _Seen(self, np.flatnonzero(observed), np.flatnonzero(~observed))


@dataclass(frozen=True, eq=False)
class _Seen:
    """Components given a pattern of observed cells: with S the covariance, o observed and m missing cells."""

    components: GaussianComponents
    observed: IntArray
    missing: IntArray

    @cached_property
    def whitening(self) -> FloatArray:
        """Inverse Cholesky factors of S_oo, lower triangular; shape (F, o, o)."""
        factors = np.linalg.cholesky(self.components.covariances[:, self.observed[:, None], self.observed])
        return np.stack([solve_triangular(c, np.eye(len(c)), lower=True) for c in factors])

    @cached_property
    def log_norms(self) -> FloatArray:
        """Log of the weight and of the Gaussian's height, of each component; shape (F,)."""
        log_det = np.log(np.diagonal(self.whitening, axis1=1, axis2=2)).sum(axis=1)
        with np.errstate(divide="ignore"):  # a component without weight
            return np.log(self.components.weights) + log_det - 0.5 * len(self.observed) * LOG_TAU

    @cached_property
    def regression(self) -> FloatArray:
        """S_mo S_oo^-1, which takes observed to missing cells; shape (F, m, o)."""
        cross = self.components.covariances[:, self.missing[:, None], self.observed]
        return cross @ np.transpose(self.whitening, (0, 2, 1)) @ self.whitening

    @cached_property
    def residual(self) -> FloatArray:
        """Covariance of the missing cells given the observed; shape (F, m, m)."""
        cross = self.components.covariances[:, self.missing[:, None], self.observed]
        within = self.components.covariances[:, self.missing[:, None], self.missing]
        return within - self.regression @ np.transpose(cross, (0, 2, 1))

    def completed(self, totals: FloatArray, firsts: FloatArray, seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums over all d cells, from those over the observed; shapes (F, d) and (F, d, d)."""
        o, m, mean = self.observed, self.missing, self.components.means
        F, d = mean.shape
        first, second = np.zeros((F, d)), np.zeros((F, d, d))
        first[:, o], second[:, o[:, None], o] = firsts, seconds
        if len(m):
            A = self.regression  # E[x_m | x_o] = offset + A x_o
            offset = mean[:, m] - np.einsum("rmo,ro->rm", A, mean[:, o])
            first[:, m] = totals[:, None] * offset + np.einsum("rmo,ro->rm", A, firsts)
            cross = offset[:, :, None] * firsts[:, None, :] + A @ seconds
            second[:, m[:, None], o] = cross
            second[:, o[:, None], m] = np.transpose(cross, (0, 2, 1))
            shift = offset[:, :, None] * np.einsum("rmo,ro->rm", A, firsts)[:, None, :]
            second[:, m[:, None], m] = (
                totals[:, None, None] * (offset[:, :, None] * offset[:, None, :] + self.residual)
                + shift
                + np.transpose(shift, (0, 2, 1))
                + A @ seconds @ np.transpose(A, (0, 2, 1))
            )
        return first, second


def patterns(values: FloatArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Yield each pattern of observed cells with the positions of its rows; rows without any cell come too."""
    observed = ~np.isnan(values)
    if observed.all():
        yield np.ones(values.shape[1], dtype=bool), np.arange(len(values))
        return
    found, where = np.unique(observed, axis=0, return_inverse=True)
    order = np.argsort(where, kind="stable")
    ends = np.cumsum(np.bincount(where, minlength=len(found)))
    yield from zip(found, np.split(order, ends[:-1]), strict=True)


def reference_sums(
    values: FloatArray, components: GaussianComponents, log_others: FloatArray | None, weights: FloatArray | None
) -> tuple[BlockSums, FloatArray]:
    """Return the sums of a pass, and the weighted posteriors of the rows, shape (n, F), by plain arrays.

    Parameters
    ----------
    values : array of shape (n, d)
        The block's columns, NaN where missing.
    components : GaussianComponents
    log_others : array of shape (n, F), optional
        Log-likelihood of each row's other columns given each component.
    weights : array of shape (n,), optional
        How often each row counts.
    """
    n, d = values.shape
    F = len(components.weights)
    total = BlockSums(np.zeros(F), np.zeros((F, d)), np.zeros((F, d, d)), 0.0)
    posteriors = np.empty((n, F))
    for pattern, rows in patterns(values):
        seen = components.seen(pattern)
        x = values[rows][:, pattern]
        z = np.einsum("roi,nri->nro", seen.whitening, x[:, None, :] - components.means[:, pattern])
        logs = seen.log_norms - 0.5 * (z**2).sum(axis=2)
        if log_others is not None:
            logs += log_others[rows]
        log_density = logsumexp(logs, axis=1)
        posterior = np.exp(logs - log_density[:, None])
        w = np.ones(len(rows)) if weights is None else weights[rows]
        posterior *= w[:, None]
        posteriors[rows] = posterior
        totals = posterior.sum(axis=0)
        first, second = seen.completed(totals, posterior.T @ x, np.einsum("nr,ni,nj->rij", posterior, x, x))
        total += BlockSums(totals, first, second, float(w @ log_density))
    return total, posteriors


@numba.njit(parallel=True, fastmath={"reassoc", "contract", "arcp"})  # type: ignore[untyped-decorator]
def _pass(
    x: FloatArray,
    means: FloatArray,
    whitening: FloatArray,
    log_norms: FloatArray,
    log_others: FloatArray,
    weights: FloatArray,
    posteriors: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    n, d = x.shape
    F = len(log_norms)
    n_parts = min((n + LEAST_PART - 1) // LEAST_PART, 4 * numba.get_num_threads())
    totals, firsts = np.zeros((n_parts, F)), np.zeros((n_parts, F, d))
    seconds, likelihoods = np.zeros((n_parts, F, d, d)), np.zeros(n_parts)
    others = log_others.shape[0] > 0
    keep = posteriors.shape[0] > 0
    for part in numba.prange(n_parts):
        logs = np.empty(F)
        centred = np.empty(d)
        for i in range(part * n // n_parts, (part + 1) * n // n_parts):
            top = -np.inf
            for r in range(F):
                for j in range(d):
                    centred[j] = x[i, j] - means[r, j]
                square = 0.0
                for j in range(d):
                    z = 0.0
                    for k in range(j + 1):
                        z += whitening[r, j, k] * centred[k]
                    square += z * z
                value = log_norms[r] - 0.5 * square
                if others:
                    value += log_others[i, r]
                logs[r] = value
                top = max(top, value)
            norm = 0.0
            for r in range(F):
                logs[r] = np.exp(logs[r] - top)
                norm += logs[r]
            likelihoods[part] += weights[i] * (np.log(norm) + top)
            for r in range(F):
                p = weights[i] * logs[r] / norm
                if keep:
                    posteriors[i, r] = p
                if p < 1e-12:  # nothing to the sums
                    continue
                totals[part, r] += p
                for j in range(d):
                    share = p * x[i, j]
                    firsts[part, r, j] += share
                    for k in range(j + 1):
                        seconds[part, r, j, k] += share * x[i, k]
    return totals, firsts, seconds, likelihoods


def compiled_sums(
    values: FloatArray, components: GaussianComponents, log_others: FloatArray | None, weights: FloatArray | None
) -> tuple[BlockSums, FloatArray]:
    """Return what `reference_sums` returns, by compiled loops on all cores."""
    n, d = values.shape
    F = len(components.weights)
    total = BlockSums(np.zeros(F), np.zeros((F, d)), np.zeros((F, d, d)), 0.0)
    posteriors = np.empty((n, F))
    for pattern, rows in patterns(values):
        seen = components.seen(pattern)
        whole = len(rows) == n
        x = np.ascontiguousarray(values if pattern.all() and whole else values[np.ix_(rows, np.flatnonzero(pattern))])
        others = np.empty((0, F)) if log_others is None else log_others if whole else log_others[rows]
        w = np.ones(len(rows)) if weights is None else weights[rows]
        own = np.empty((len(rows), F))
        parts = _pass(x, components.means[:, pattern], seen.whitening, seen.log_norms, others, w, own)
        totals, firsts, lower, likelihood = (part.sum(axis=0) for part in parts)
        seconds = lower + np.transpose(np.tril(lower, -1), (0, 2, 1))
        posteriors[rows] = own
        first, second = seen.completed(totals, firsts, seconds)
        total += BlockSums(totals, first, second, float(likelihood))
    return total, posteriors
