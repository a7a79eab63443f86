r"""Increasing maps of all columns together, after which the columns are as close to one Gaussian as they can be.

Column c has a coordinate u, and its map rises from there with the slope :math:`g_c'(u) = e^{z_c(u)}`: numbers z at
evenly spaced knots, with straight lines between the slopes. With n rows and C the covariance of the columns after their
maps, the objective is the negative log-likelihood of one Gaussian per row, and what a bend costs:

.. math:: J(z) = \tfrac12 \log |C| - \frac1n \sum_{i, c} \log g_c'(u_{ic})
                 + \frac\lambda n \sum_c \int z_c''(u)^2 \, du .

A straight z costs nothing. Where u is the logarithm of a column, a straight z is a power of it. Columns that are
functions of each other, up to a map of each, lie on a plane after their maps, and the determinant is then close to
zero: the eccentricity of an ellipse and its axes, a volume and its sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.solvers.blocks_em import evidence_share
from jointwise.solvers.sloped_maps import SlopedMaps

# Knots of a map, and how many of them lie beyond the rows on each side: there the map goes on as smoothly as it can.
N_KNOTS, BEYOND = 33, 2
# Rows lie within this many standard deviations of u, as far as knots are concerned, and span at least so many.
REACH, LEAST_SPAN = 6.0, 0.1
# lambda: what a bend costs, in nats of all rows.
BEND_COST = 200.0
# Share of its variance that each column has besides: thinner planes count as this thin.
TRACE = 1e-6
# Most steps, fewest of them, and rows x columns x (columns + knots) that all steps may take.
MOST_STEPS, FEWEST_STEPS, MOST_WORK = 100, 20, 1e9
# A step that lowers the objective by less than this share of it is the last one.
TOL = 1e-6


@dataclass(frozen=True, eq=False)
class StraighteningProblem:
    """Rows whose columns are to be straightened.

    Parameters
    ----------
    codes : array of int, shape (n, d)
        Position of each cell among the coordinates of its column.
    weights : array of shape (n,)
    coordinates : sequence of d arrays of shape (I_c,)
        u of each value of a column, with a mean near zero and a variance near one.
    bent : array of bool, shape (d,)
        Which columns have a map; the others keep their coordinate.
    """

    codes: IntArray
    weights: FloatArray
    coordinates: Sequence[FloatArray]
    bent: BoolArray

    @cached_property
    def n_rows(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @cached_property
    def knots(self) -> FloatArray:
        """Knots of each column; shape (d, K)."""
        low = np.array([max(float(u.min()), -REACH) for u in self.coordinates])
        high = np.array([min(float(u.max()), REACH) for u in self.coordinates])
        step = np.maximum(high - low, LEAST_SPAN) / (N_KNOTS - 1 - 2 * BEYOND)
        return np.asarray(low[:, None] + step[:, None] * np.arange(-BEYOND, N_KNOTS - BEYOND))

    @cached_property
    def steps(self) -> FloatArray:
        """Distance of the knots of each column; shape (d,)."""
        return np.asarray(self.knots[:, 1] - self.knots[:, 0])

    @cached_property
    def cells(self) -> IntArray:
        """Position of each cell among the coordinates of all columns; shape (n, d)."""
        sizes = [len(u) for u in self.coordinates]
        return np.asarray(self.codes + np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64))

    @cached_property
    def counts(self) -> FloatArray:
        """Rows at each coordinate of all columns."""
        size = sum(len(u) for u in self.coordinates)
        weights = np.repeat(self.weights, self.codes.shape[1])
        return np.asarray(np.bincount(self.cells.ravel(), weights, minlength=size), dtype=np.float64)

    @cached_property
    def share(self) -> float:
        """What is left of correlations for the evidence that rows give of them; see `evidence_share`."""
        u = np.concatenate(list(self.coordinates))[self.cells]
        return evidence_share(self._covariance(u), self.n_rows)

    @cached_property
    def maps(self) -> SlopedMaps:
        """The maps at all coordinates of all columns."""
        return SlopedMaps.of(self.coordinates, self.knots)

    @cached_property
    def bends(self) -> FloatArray:
        """Second differences of z, scaled so that the sum of their squares is the cost; shape (d, K - 2, K)."""
        second = np.diff(np.eye(N_KNOTS), 2, axis=0)
        return np.sqrt(BEND_COST / self.steps**3)[:, None, None] * second

    @cached_property
    def preconditioner(self) -> FloatArray:
        """Matrices R with z = R y, in whose y the objective is about as curved in all directions; shape (d, K, K)."""
        curvature = 2 * np.swapaxes(self.bends, 1, 2) @ self.bends + self.n_rows / N_KNOTS * np.eye(N_KNOTS)
        return np.asarray(np.linalg.inv(np.swapaxes(np.linalg.cholesky(curvature / self.n_rows), 1, 2)))

    def objective(self, z: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient; ``z`` and the gradient of shape (d, K)."""
        n, knot_slopes = self.n_rows, np.exp(z)
        own, slope = self.maps.values(knot_slopes)
        w = own[self.cells]
        w -= self.weights @ w / n
        covariance = self._drawn(self._covariance(w))
        inverse: FloatArray = np.asarray(np.linalg.inv(covariance))
        bends = np.einsum("cbk,ck->cb", self.bends, z)
        value = 0.5 * float(np.linalg.slogdet(covariance)[1])
        value += float((bends**2).sum() - self.counts @ np.log(slope)) / n
        pulls = (w @ self._drawn(inverse)) * (self.weights / n)[:, None]
        by_map = np.bincount(self.cells.ravel(), pulls.ravel(), minlength=len(own)).astype(np.float64)
        by_slopes = self.maps.pulled(by_map, -self.counts / slope / n)
        gradient = knot_slopes * by_slopes + 2 / n * np.einsum("cb,cbk->ck", bends, self.bends)
        return value, np.where(self.bent[:, None], gradient, 0.0)

    def _covariance(self, w: FloatArray) -> FloatArray:
        centred = w - self.weights @ w / self.n_rows
        return np.asarray((centred * self.weights[:, None]).T @ centred / self.n_rows)

    def _drawn(self, matrix: FloatArray) -> FloatArray:
        """Return a matrix with its correlations drawn to zero and a trace added; this linear map is its own adjoint."""
        out = self.share * matrix
        np.fill_diagonal(out, (1 + TRACE) * np.diag(matrix))
        return out


def straightened(problem: StraighteningProblem) -> FloatArray:
    """Return the slopes of the maps at their knots; shape (d, K). They are ones where nothing is gained.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u = rng.normal(size=300)
    >>> columns = [np.sinh(u), u + 0.01 * rng.normal(size=300)]  # a curve; a map of the first straightens it
    >>> codes = np.tile(np.arange(300)[:, None], 2)
    >>> problem = StraighteningProblem(codes, np.ones(300), columns, np.array([True, False]))
    >>> slopes = straightened(problem)
    >>> mapped = problem.maps.values(slopes)[0][:300]
    >>> bool(np.corrcoef(columns[0], u)[0, 1] < 0.96), bool(np.corrcoef(mapped, u)[0, 1] > 0.999)
    (True, True)
    """
    n, d = problem.codes.shape
    precondition, start = problem.preconditioner, np.zeros((d, N_KNOTS))

    def objective(y: FloatArray) -> tuple[float, FloatArray]:
        z = np.einsum("ckj,cj->ck", precondition, y.reshape(d, N_KNOTS))
        value, gradient = problem.objective(z)
        return value, np.einsum("ckj,ck->cj", precondition, gradient).ravel()

    n_steps = int(np.clip(MOST_WORK / (n * d * (d + N_KNOTS)), FEWEST_STEPS, MOST_STEPS))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = minimize(
            objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": n_steps, "ftol": TOL}
        )
        z = np.einsum("ckj,cj->ck", precondition, found.x.reshape(d, N_KNOTS))
        slopes = np.exp(z)
    usable = bool(np.isfinite(slopes).all() and (slopes > 0).all()) and found.fun < problem.objective(start)[0]
    return np.asarray(slopes if usable else np.ones((d, N_KNOTS)))
