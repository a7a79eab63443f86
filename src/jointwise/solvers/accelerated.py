"""EM with squared extrapolation, shared by every likelihood of factors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.engines.atoms import leap
from jointwise.engines.base import bin_starts
from jointwise.engines.compiled_margins import LEAST_MASS as LEAST_MASS  # noqa: PLC0414  # solvers share it
from jointwise.solvers.base import ProblemT, Solver
from jointwise.solvers.factors import Factors, stacked_slices


class EMState(NamedTuple):
    """A point, and the result of one EM update from it."""

    point: FloatArray  # weights in the first row, then all B_n stacked: (1 + sum L, F)
    objective: float
    update: FloatArray  # the point after one EM update, found along with the objective
    decreases: tuple[float, float]  # by the last step and the one before


@dataclass(frozen=True, eq=False)
class AcceleratedEM(Solver[ProblemT, EMState, Factors]):
    """EM on all factors at once; a subclass defines the update.

    A step is an update followed by a squared extrapolation. If that is worse than the plain update, the plain update
    is taken, so the objective never rises.

    Parameters
    ----------
    start : Factors
        Factors to start from; zeros in them stay zero.
    tol : float
        Stop when two steps in a row each lower the objective (in nats) by no more than this.
    """

    start: Factors
    tol: float = 1e-5

    @abstractmethod
    def update(self, problem: ProblemT, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective at a point, and the point after one EM update."""

    def init(self, problem: ProblemT) -> EMState:
        """Return the start with its objective."""
        point = self.start.point
        return EMState(point, *self.update(problem, point), (np.inf, np.inf))

    def step(self, problem: ProblemT, state: EMState) -> EMState:
        """Return the state after an extrapolated update."""
        point = state.update
        objective, update = self.update(problem, point)
        far = leap(state.point, point, update, self._starts)
        far_objective, far_update = self.update(problem, far)
        if far_objective <= objective:
            point, objective, update = far, far_objective, far_update
        return EMState(point, objective, update, (state.objective - objective, state.decreases[0]))

    def objective(self, state: EMState) -> float:
        """Return the value being minimised, in nats."""
        return state.objective

    def is_done(self, state: EMState) -> bool:
        """Return whether each of the last two steps lowered the objective by no more than `tol`."""
        return max(state.decreases) <= self.tol

    def value(self, state: EMState) -> Factors:
        """Return the factors."""
        return Factors.at(state.point, self._slices)

    @cached_property
    def _slices(self) -> tuple[slice, ...]:
        """Rows of each variable in arrays that stack the atoms of all variables."""
        return stacked_slices([len(b) for b in self.start.coefficients])

    @cached_property
    def _starts(self) -> IntArray:
        """Where each variable begins in these arrays, and their length."""
        return bin_starts([len(b) for b in self.start.coefficients])


def normalised(slices: Sequence[slice], point: FloatArray, fallback: FloatArray) -> FloatArray:
    """Scale weights and columns to sum to one, in place; those without mass are taken from `fallback`."""
    if not point[0].any():
        point[0] = fallback[0]
    point[0] /= point[0].sum()
    sums = np.add.reduceat(point[1:], [rows.start for rows in slices], axis=0)
    for variable, component in zip(*np.nonzero(sums <= 0), strict=True):
        point[1:][slices[variable], component] = fallback[1:][slices[variable], component]
        sums[variable, component] = 1.0
    point[1:] /= np.repeat(sums, [rows.stop - rows.start for rows in slices], axis=0)
    return point
