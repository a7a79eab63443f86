"""Steps on the simplex: the Euclidean projection, and exponentiated gradient with backtracking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.solvers.simplex import exponentiated_step


def project_on_simplex(points: FloatArray, axis: int = 0) -> FloatArray:
    r"""Return the nearest points on the simplex, :math:`\arg\min_{a \ge 0,\, 1^\top a = 1} \|a - p\|_2`.

    The answer is :math:`\max(p - \theta, 0)`. With p sorted downwards, theta is the largest of
    :math:`(p_1 + \dots + p_m - 1) / m` over m: each is the shift that makes the m largest entries sum to one.

    Parameters
    ----------
    points : array of shape (L, F)
        Finite numbers.
    axis : 0 or 1
        0 if each column is a point, 1 if each row is.

    Returns
    -------
    array of shape (L, F)

    Examples
    --------
    >>> project_on_simplex(np.array([[0.5, 2.0], [0.1, 0.3]]))
    array([[0.7, 1. ],
           [0.3, 0. ]])
    """
    columns = points if axis == 0 else points.T
    sums = np.array(columns)
    sums.sort(axis=0)
    sums = sums[::-1].cumsum(axis=0)
    sums -= 1.0
    sums /= np.arange(1.0, len(columns) + 1)[:, None]
    nearest: FloatArray = np.maximum(columns - sums.max(axis=0), 0.0)
    return nearest if axis == 0 else nearest.T


@dataclass(frozen=True)
class StepRule:
    """Settings of exponentiated gradient on a block; the search for a rate starts afresh at every step.

    Parameters
    ----------
    rate : float
        The first rate tried.
    shrink : float
        A refused rate is multiplied by this, below one.
    decrease : float
        A step from a to b is taken if the objective falls by at least this times <gradient, a - b>.
    least_rate : float
        If no rate of at least this is accepted, the block stays as it is.
    max_steps : int
        Most steps on the block.
    tol : float
        Stop when a step changes the block by no more than `tol` of its norm.
    """

    rate: float = 0.5
    shrink: float = 0.5
    decrease: float = 1e-3
    least_rate: float = 1e-5
    max_steps: int = 1000
    tol: float = 1e-4

    def __post_init__(self) -> None:
        if not (0 < self.least_rate <= self.rate < np.inf and 0 < self.shrink < 1 and 0 <= self.decrease < 1):
            raise InputError(
                "A step rule needs 0 < least_rate <= rate, 0 < shrink < 1 and 0 <= decrease < 1; got "
                f"least_rate={self.least_rate}, rate={self.rate}, shrink={self.shrink}, decrease={self.decrease}."
            )
        if self.max_steps < 1 or not self.tol >= 0:
            raise InputError(
                f"A step rule needs max_steps of at least 1 and tol of at least 0; got {self.max_steps} and {self.tol}."
            )


class Objective(Protocol):
    """A function of columns on the simplex whose value and gradient share a model, computed once."""

    def value(self, columns: FloatArray) -> tuple[float, FloatArray]:
        """Return the value at some columns, and the model from which the gradient follows."""
        ...

    def gradient(self, model: FloatArray) -> FloatArray:
        """Return the gradient, in the shape of the columns."""
        ...


def descend(objective: Objective, start: FloatArray, rule: StepRule) -> tuple[FloatArray, float]:
    r"""Exponentiated gradient with backtracking on columns that sum to one; return the last columns and their value.

    .. math:: a \leftarrow a \circ \exp(-\eta \nabla f(a)), \quad \text{normalised,}

    with the first eta among rate, rate * shrink, ... that lowers f enough; f never rises.

    Parameters
    ----------
    objective : Objective
    start : array of shape (L, F)
        Columns on the simplex; zeros stay zero.
    rule : StepRule
    """
    columns = start
    value, model = objective.value(columns)
    for _ in range(rule.max_steps):
        gradient = objective.gradient(model)
        with np.errstate(divide="ignore"):  # a zero has the logarithm -inf and stays zero
            logs = np.log(columns)
        rate = rule.rate
        while rate >= rule.least_rate:
            proposal = exponentiated_step(logs, rate * gradient)
            new_value, new_model = objective.value(proposal)
            if value - new_value >= rule.decrease * float(np.vdot(gradient, columns - proposal)) >= 0:
                break
            rate *= rule.shrink
        else:
            break
        change = float(np.linalg.norm(proposal - columns))
        size = float(np.linalg.norm(columns))
        columns, value, model = proposal, new_value, new_model
        if change <= rule.tol * size:
            break
    return columns, value
