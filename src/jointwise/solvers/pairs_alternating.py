"""Stage (iii): refine all factors on the pair masses, by mirror descent on one factor at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointwise.exceptions import InputError
from jointwise.solvers.base import Solver
from jointwise.solvers.factors import Factors
from jointwise.solvers.pairs_problem import PairwiseProblem
from jointwise.solvers.simplex import exponentiated_step

if TYPE_CHECKING:
    from jointwise._typing import FloatArray

# As in stage (i): a step must keep this share of the decrease that the gradient alone promises.
_LEAST_PROMISE_KEPT = 0.1
# Coefficients stay above this negligible number, so that logarithms are finite and atoms can return.
_LEAST_COEFFICIENT = 1e-100
_LARGEST_RATE = 1e100


class _State(NamedTuple):
    weights: FloatArray
    coefficients: FloatArray  # all B_n stacked, (sum L, F)
    inner: FloatArray  # Q_n, (N, F, F)
    objective: float
    previous: float  # objective before the last sweep
    rates: FloatArray  # of B_1, ..., B_N and lam, (N + 1,)


@dataclass(frozen=True, eq=False)
class AlternatingMirrorDescent(Solver[PairwiseProblem, _State, Factors]):
    r"""All factors from pair masses by least squares, as in JUPAD.

    Minimises :math:`J = \sum_{j<k} s_{jk} \|\hat Z_{jk} - \bar D_j B_j \Lambda B_k^\top \bar D_k^\top\|_F^2`
    by exponentiated gradient on each B_n in turn and then on the weights. With
    :math:`Q_n = B_n^\top G_n B_n`,

    .. math:: \nabla_{B_n} J = 2 [G_n B_n (\lambda\lambda^\top \circ \textstyle\sum_k s_{nk} Q_k)
              - \sum_k s_{nk} C_{nk} B_k \Lambda], \qquad \nabla_\lambda J = 2 [P \lambda - c].

    J is quadratic in each block, so its change follows from the block alone, without cancellation. With adapted rates,
    column r of B_n moves with rate eta / lam[r], so that light components do not lag behind, and J never rises.

    Parameters
    ----------
    start : Factors
        Factors to start from; zeros in them stay nearly zero.
    coefficient_rate, weight_rate : float, optional
        The paper's learning rates eta_B and eta_L, the same for all columns and steps. By default adapted.
    n_inner : int
        Number of steps on each block before the next one.
    tol : float
        Stop when a sweep over all blocks changes J by no more than `tol` times J.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.solvers import random_start, solve
    >>> coin = np.eye(2)
    >>> problem = PairwiseProblem((coin, coin), {(0, 1): np.diag([0.3, 0.7])})
    >>> start = random_start(problem, 2, np.random.default_rng(0))
    >>> solution = solve(AlternatingMirrorDescent(start), problem, max_steps=300)
    >>> bool(solution.history[-1] < 1e-6 * solution.history[0])
    True
    """

    start: Factors
    coefficient_rate: float | None = None
    weight_rate: float | None = None
    n_inner: int = 5
    tol: float = 1e-4
    advice = "The given rates are too large: lower them, or leave them out to have them adapted."

    def __post_init__(self) -> None:
        for name in ("coefficient_rate", "weight_rate"):
            rate = getattr(self, name)
            if rate is not None and not 0 < rate < np.inf:
                raise InputError(f"{name} must be a positive number or None; got {rate}.")
        if self.n_inner < 1:
            raise InputError(f"n_inner must be one or more; got {self.n_inner}.")

    def init(self, problem: PairwiseProblem) -> _State:
        """Return the start with its objective."""
        problem.check_factors(self.start)
        coefficients = np.maximum(np.vstack(self.start.coefficients), _LEAST_COEFFICIENT)
        weights = np.maximum(self.start.weights, _LEAST_COEFFICIENT)
        inner = problem.inner_products(self.start.coefficients)
        objective = problem.squared_error(self.start)
        return _State(weights, coefficients, inner, objective, np.inf, self._first_rates(problem, inner))

    def _first_rates(self, problem: PairwiseProblem, inner: FloatArray) -> FloatArray:
        """Return the given rates, or rates that are sure to lower J by the bound of stage (i)."""
        others = np.tensordot(problem.share_matrix, inner, axes=1)
        largest = np.array([np.diag(gram).max() for gram in problem.grams])
        bounds = np.append(
            largest * np.einsum("nrr->nr", others).max(axis=1), 0.5 * np.einsum("nrr,nrr->r", inner, others).max()
        )
        rates = 0.5 / np.where(bounds > 0, bounds, 1.0)  # without pairs there is no gradient, and any rate will do
        if self.coefficient_rate is not None:
            rates[:-1] = self.coefficient_rate
        if self.weight_rate is not None:
            rates[-1] = self.weight_rate
        return rates

    def step(self, problem: PairwiseProblem, state: _State) -> _State:
        """Return the state after a sweep over all blocks."""
        weights, coefficients = state.weights, state.coefficients.copy()
        inner, rates = state.inner.copy(), state.rates.copy()
        change = 0.0
        for n, (gram, rows) in enumerate(zip(problem.grams, problem.slices, strict=True)):
            others = np.tensordot(problem.share_matrix[n], inner, axes=1)
            block = _Block(gram, weights[:, None] * others * weights, (problem.stacked[rows] @ coefficients) * weights)
            found = _descend(
                block, coefficients[rows], rates[n], weights, self.n_inner, adapt=self.coefficient_rate is None
            )
            coefficients[rows], rates[n] = found.columns, found.rate
            inner[n] = found.columns.T @ gram @ found.columns
            change += found.change
        p, c = problem.weight_quadratic(coefficients, inner)
        block = _Block(p, np.ones((1, 1)), c[:, None])
        found = _descend(block, weights[:, None], rates[-1], np.ones(1), self.n_inner, adapt=self.weight_rate is None)
        rates[-1] = found.rate
        change += found.change
        objective = max(state.objective + change, 0.0)
        return _State(found.columns[:, 0], coefficients, inner, objective, state.objective, rates)

    def objective(self, state: _State) -> float:
        """Return J."""
        return state.objective

    def is_done(self, state: _State) -> bool:
        """Return whether the last sweep changed J by no more than `tol` times its value before."""
        change = abs(state.previous - state.objective)
        return bool(np.isfinite(change) and change <= self.tol * state.previous)

    def value(self, state: _State) -> Factors:
        """Return the factors."""
        cuts = np.cumsum([b.shape[0] for b in self.start.coefficients])[:-1]
        return Factors(state.weights, tuple(np.split(state.coefficients, cuts)))


class _Block(NamedTuple):
    """J as a function of one factor B, up to a constant: tr(M B' G B) - 2 <R, B>."""

    gram: FloatArray  # G, (L, L)
    coupling: FloatArray  # M, (F, F)
    target: FloatArray  # R, (L, F)


class _Descent(NamedTuple):
    columns: FloatArray
    rate: float
    change: float  # of J


def _descend(
    block: _Block, columns: FloatArray, rate: float, scales: FloatArray, n_steps: int, *, adapt: bool
) -> _Descent:
    """Take exponentiated-gradient steps on one block.

    With `adapt`, column r moves with rate / scales[r], a step is taken only if J falls by enough, and the rate follows
    the curvature. Otherwise all columns move with the given rate.
    """
    gram, coupling, target = block
    gradient = 2 * (gram @ columns @ coupling - target)
    logs = np.log(columns)
    speeds = 1.0 / np.maximum(scales, _LEAST_COEFFICIENT) if adapt else np.ones(scales.shape)
    total = 0.0
    for _ in range(n_steps):
        proposal = exponentiated_step(logs, (rate * speeds) * gradient)
        np.maximum(proposal, _LEAST_COEFFICIENT, out=proposal)
        step = proposal - columns
        image = gram @ step @ coupling
        promise = float(np.vdot(step, gradient))
        curvature = float(np.vdot(step, image))
        if not adapt or curvature <= -(1 - _LEAST_PROMISE_KEPT) * promise:
            columns, gradient, logs = proposal, gradient + 2 * image, np.log(proposal)
            total += promise + curvature
        if adapt:
            longest = -(1 - _LEAST_PROMISE_KEPT) * promise / max(curvature, 1e-300)
            rate = min(rate * min(max(0.9 * longest, 0.3), 2.0), _LARGEST_RATE)
    return _Descent(columns, rate, total)
