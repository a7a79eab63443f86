"""Stage (i): coefficients of every pair on its own, by mirror descent (exponentiated gradient)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointwise._typing import BoolArray, FloatArray
from jointwise.exceptions import InputError
from jointwise.solvers.base import Solver
from jointwise.solvers.pairs_problem import Pair, PairwiseProblem

PairCoefficients = dict[Pair, FloatArray]
# A step is taken if the objective falls by at least this share of the decrease that the gradient alone promises. Steps
# no longer than 1 / (2 max G_j max G_k) keep half of the promise, so some step always passes.
_LEAST_PROMISE_KEPT = 0.1
# Logarithms of coefficients stay above this, so that an atom that was dropped early can return.
_LEAST_LOG = -100.0
_LARGEST_RATE = 1e100


class _Batch(NamedTuple):
    """Unfinished pairs of equal shape; the first axis of every array runs over them."""

    pairs: tuple[Pair, ...]
    grams: tuple[FloatArray, FloatArray]  # G_j and G_k, (K, L_j, L_j) and (K, L_k, L_k)
    coefficients: FloatArray  # T, (K, L_j, L_k)
    logs: FloatArray  # log T
    gradient: FloatArray
    objective: FloatArray  # (K,)
    rates: FloatArray  # (K,)
    enough: FloatArray  # (K,): the gap at which a pair is finished

    def gap(self) -> FloatArray:
        """Return the Frank-Wolfe gap <grad, T> - min(grad), the most that the objective is above its minimum."""
        least = self.gradient.min(axis=(1, 2))
        return np.asarray(_dot(self.coefficients, self.gradient - least[:, None, None]))

    def part(self, chosen: BoolArray) -> _Batch:
        pairs = tuple(pair for pair, keep in zip(self.pairs, chosen, strict=True) if keep)
        grams = (self.grams[0][chosen], self.grams[1][chosen])
        return _Batch(pairs, grams, *(array[chosen] for array in self[2:]))


class _State(NamedTuple):
    batches: tuple[_Batch, ...]
    finished: PairCoefficients
    objective: float
    finished_objective: float


@dataclass(frozen=True, eq=False)
class MirrorDescentPairs(Solver[PairwiseProblem, _State, PairCoefficients]):
    r"""Coefficients T_jk of each pair by itself, on the simplex.

    Minimises :math:`\|\hat Z_{jk} - \bar D_j T_{jk} \bar D_k^\top\|_F^2` for all pairs side by side by

    .. math:: T \leftarrow T \circ \exp(-\eta\, 2 (G_j T G_k - C_{jk})), \quad \text{normalised.}

    The problem is convex, and the Frank-Wolfe gap :math:`\langle \nabla, T \rangle - \min \nabla` bounds the
    distance of the objective to its minimum; a pair is finished when the gap is small. Each pair starts from
    the outer product of the coefficients of its two margins.

    Parameters
    ----------
    rate : float, optional
        The paper's learning rate eta_T, the same for all pairs and steps. By default each pair adapts its own at every
        step, so that its objective never rises.
    tol : float
        A pair is finished when its gap is at most `tol` times the squared norm of its masses.

    Notes
    -----
    The default `tol` is looser than a convex problem would allow, on purpose: in the last digits the coefficients of a
    pair follow its sampling noise, and the factors read off them in stage (ii) get worse.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.solvers import solve
    >>> coin = np.eye(2)
    >>> problem = PairwiseProblem((coin, coin), {(0, 1): np.diag([0.3, 0.7])})
    >>> solve(MirrorDescentPairs(tol=1e-6), problem, max_steps=500).value[0, 1].round(3)
    array([[0.3, 0. ],
           [0. , 0.7]])
    """

    rate: float | None = None
    tol: float = 1e-2
    advice = "The given rate is too large: lower it, or leave it out to have it adapted."

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 < self.rate < np.inf:
            raise InputError(f"rate must be a positive number or None; got {self.rate}.")

    def init(self, problem: PairwiseProblem) -> _State:
        """Return the start: products of the margins' coefficients."""
        # a little of every atom, because multiplicative steps cannot leave zero
        centres = [0.9 * m + 0.1 / m.size for m in problem.margin_coefficients]
        by_shape = defaultdict(list)
        for j, k in problem.pairs:
            by_shape[problem.sizes[j], problem.sizes[k]].append((j, k))
        batches = tuple(self._start(problem, tuple(pairs), centres) for pairs in by_shape.values())
        return _sorted_out(batches, {}, 0.0)

    def _start(self, problem: PairwiseProblem, pairs: tuple[Pair, ...], centres: list[FloatArray]) -> _Batch:
        grams = (np.stack([problem.grams[j] for j, _ in pairs]), np.stack([problem.grams[k] for _, k in pairs]))
        projected = np.stack([problem.projected[pair] for pair in pairs])
        norms = np.array([problem.squared_norms[pair] for pair in pairs])
        start = np.stack([np.outer(centres[j], centres[k]) for j, k in pairs])
        image = grams[0] @ start @ grams[1]
        largest = [np.einsum("kll->kl", g).max(axis=1) for g in grams]
        rates = 0.5 / (largest[0] * largest[1]) if self.rate is None else np.full(len(pairs), self.rate)
        objective = norms + _dot(start, image - 2 * projected)
        return _Batch(pairs, grams, start, np.log(start), 2 * (image - projected), objective, rates, self.tol * norms)

    def step(self, problem: PairwiseProblem, state: _State) -> _State:
        """Return the state after one trial step of every unfinished pair."""
        del problem  # the batches hold all that is needed
        batches = tuple(_advanced(batch, adapt=self.rate is None) for batch in state.batches)
        return _sorted_out(batches, state.finished, state.finished_objective)

    def objective(self, state: _State) -> float:
        """Return the sum of the squared errors of all pairs."""
        return state.objective

    def is_done(self, state: _State) -> bool:
        """Return whether every pair is finished."""
        return not state.batches

    def value(self, state: _State) -> PairCoefficients:
        """Return T_jk of shape (L_j, L_k) for every pair."""
        unfinished = {p: t for batch in state.batches for p, t in zip(batch.pairs, batch.coefficients, strict=True)}
        return dict(sorted((state.finished | unfinished).items()))


def _advanced(batch: _Batch, *, adapt: bool) -> _Batch:
    """Take one exponentiated-gradient step for all pairs; with `adapt`, only where it pays, and adapt the rates."""
    logs = batch.logs - batch.rates[:, None, None] * batch.gradient
    logs -= logs.max(axis=(1, 2), keepdims=True)
    np.maximum(logs, _LEAST_LOG, out=logs)
    coefficients = np.exp(logs)
    sums = coefficients.sum(axis=(1, 2), keepdims=True)
    coefficients /= sums
    logs -= np.log(sums)
    change = coefficients - batch.coefficients
    image = batch.grams[0] @ change @ batch.grams[1]
    promise = _dot(change, batch.gradient)
    curvature = _dot(change, image)
    taken = (curvature <= -(1 - _LEAST_PROMISE_KEPT) * promise) if adapt else np.ones(len(promise), dtype=bool)
    image *= 2
    image += batch.gradient
    if not taken.all():
        for new, old in ((coefficients, batch.coefficients), (logs, batch.logs), (image, batch.gradient)):
            new[~taken] = old[~taken]
    objective = batch.objective + np.where(taken, promise + curvature, 0.0)
    rates = np.minimum(batch.rates * _rate_change(promise, curvature), _LARGEST_RATE) if adapt else batch.rates
    return _Batch(batch.pairs, batch.grams, coefficients, logs, image, objective, rates, batch.enough)


def _rate_change(promise: FloatArray, curvature: FloatArray) -> FloatArray:
    """Return the factor for the rates, towards 0.9 of the longest that would just have passed the test."""
    longest = -(1 - _LEAST_PROMISE_KEPT) * promise / np.maximum(curvature, 1e-300)
    return np.clip(0.9 * longest, 0.3, 2.0)


def _sorted_out(batches: tuple[_Batch, ...], finished: PairCoefficients, finished_objective: float) -> _State:
    """Set finished pairs aside, so that only the others take further steps."""
    finished = dict(finished)
    unfinished = []
    for batch in batches:
        done = batch.gap() <= batch.enough
        if done.any():
            part = batch.part(done)
            finished.update(zip(part.pairs, part.coefficients, strict=True))
            finished_objective += float(batch.objective[done].sum())
        if not done.all():
            unfinished.append(batch.part(~done) if done.any() else batch)
    total = finished_objective + sum(float(batch.objective.sum()) for batch in unfinished)
    return _State(tuple(unfinished), finished, total, finished_objective)


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("kab,kab->k", a, b))
