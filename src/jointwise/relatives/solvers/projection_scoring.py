"""Scoring steps that find the last digits of a fit to projections, where EM has become slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointwise._typing import FloatArray
from jointwise.relatives.solvers.projections import ProjectionProblem, divergence, leave_one_out, model_masses
from jointwise.solvers.accelerated import normalised
from jointwise.solvers.base import Solver
from jointwise.solvers.factors import Factors, stacked_slices

# Smaller model masses get the weight of this one, so that rounding errors are not amplified.
LEAST_WEIGHED = 1e-6
# Times a step is tried, halved each time, until it lowers the objective.
N_TRIES = 6


class _State(NamedTuple):
    point: FloatArray  # weights in the first row, then all A_n stacked: (1 + sum I, F)
    objective: float
    decrease: float  # by the last step; zero if no step helped


@dataclass(frozen=True, eq=False)
class ProjectionScoring(Solver[ProjectionProblem, _State, Factors]):
    r"""Fisher scoring on the composite likelihood of projections.

    With J the derivative of all model masses p by weights and factors, a step solves

    .. math:: \min_\delta \sum_{m,y} \frac{s_m}{p_m(y)} \bigl(h_m(y) - p_m(y) - (J \delta)_m(y)\bigr)^2

    for changes that keep all sums, and sets negative entries to zero. If a factor of the truth is zero, EM is slow (its
    error falls like one over the steps). A few scoring steps then reach rounding error, provided that some joint fits
    the masses exactly. A step is taken only if it lowers the divergence; with sampling noise there may be none, and
    the start is returned.

    Parameters
    ----------
    start : Factors

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.relatives.solvers import project
    >>> from jointwise.solvers import solve
    >>> joint = np.einsum("r,ir,jr,kr->ijk", [0.4, 0.6], *[[[0.9, 0.0], [0.1, 1.0]]] * 3)
    >>> vectors = np.array([[1, 2, 4]])
    >>> problem = ProjectionProblem(joint.shape, vectors, project(joint, vectors))
    >>> start = Factors([0.5, 0.5], [[[0.8, 0.1], [0.2, 0.9]]] * 3)
    >>> solve(ProjectionScoring(start), problem, max_steps=20).value.weights.round(6)
    array([0.4, 0.6])
    """

    start: Factors

    def init(self, problem: ProjectionProblem) -> _State:
        """Return the start with its objective."""
        point = self.start.point
        return _State(point, divergence(problem, point), np.inf)

    def step(self, problem: ProjectionProblem, state: _State) -> _State:
        """Return the state after a scoring step, or the same state if none lowers the objective."""
        direction = _direction(problem, state.point)
        for _ in range(N_TRIES):
            proposal = normalised(problem.slices, np.maximum(state.point + direction, 0.0), state.point)
            objective = divergence(problem, proposal)
            if objective < state.objective:
                return _State(proposal, objective, state.objective - objective)
            direction = direction / 2
        return state._replace(decrease=0.0)

    def objective(self, state: _State) -> float:
        """Return the mean divergence of the projections."""
        return state.objective

    def is_done(self, state: _State) -> bool:
        """Return whether no step lowered the objective."""
        return state.decrease <= 0

    def value(self, state: _State) -> Factors:
        """Return the factors."""
        return Factors.at(state.point, stacked_slices([len(b) for b in self.start.coefficients]))


def _direction(problem: ProjectionProblem, point: FloatArray) -> FloatArray:
    """Return the change of the point that fits the residuals best and keeps the sums of every block."""
    model = model_masses(problem, point)
    derivative = _derivative(problem, point)  # (M, L, 1 + sum I, F)
    for rows in (slice(0, 1), *(slice(s.start + 1, s.stop + 1) for s in problem.slices)):
        axis = 3 if rows.stop == 1 else 2  # weights sum to one over components, factors over states
        derivative[:, :, rows] -= derivative[:, :, rows].mean(axis=axis, keepdims=True)
    scale = np.sqrt(problem.scaled_shares[:, None] / np.maximum(model, LEAST_WEIGHED))[problem.attainable]
    design = derivative[problem.attainable].reshape(len(scale), -1) * scale[:, None]
    residual = (problem.masses - model)[problem.attainable] * scale
    return np.asarray(np.linalg.lstsq(design, residual, rcond=1e-10)[0].reshape(point.shape))


def _derivative(problem: ProjectionProblem, point: FloatArray) -> FloatArray:
    """Return the derivative of all model masses (M, L) by the point (1 + sum I, F)."""
    projections = np.arange(len(problem.vectors))
    derivative = np.zeros((*problem.masses.shape, *point.shape))
    by_component, partial = leave_one_out(problem, point)
    derivative[:, :, 0] = by_component
    starts = np.array([rows.start for rows in problem.slices])
    sizes = np.array(problem.sizes)
    for term, rest in zip(problem.terms, partial, strict=True):
        flat = rest.reshape(-1, rest.shape[-1])
        for i, before in enumerate(term.before):
            here = projections[term.present & (i < sizes[term.variables])]
            derivative[here, :, 1 + starts[term.variables[here]] + i] = flat[before[here]]
    return derivative
