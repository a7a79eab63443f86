"""Where marginals, dictionaries and solvers meet: from pair counts to a joint density.

``loss="frobenius"`` is JUPAD as in the paper, in three stages: (i) the atoms' joint masses of each pair, (ii) a start
from successive projections, (iii) alternating exponentiated gradient. ``loss="kl"`` maximises the composite pairwise
likelihood from several starts instead. Neither looks at a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise._checks import check_choice, check_integer, check_real, listed
from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.fitting.result import Fit
from jointwise.joint.density import JointDensity
from jointwise.joint.product import ProductMixture
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.solvers import (
    AlternatingMirrorDescent,
    Factors,
    MirrorDescentPairs,
    PairwiseEM,
    PairwiseProblem,
    Solution,
    Status,
    random_start,
    simplex_weights,
    solve,
    split_starts,
)

LOSSES = ("kl", "frobenius")


@dataclass(frozen=True)
class PairwiseSettings:
    """How to fit from pairs.

    Parameters
    ----------
    n_components : int
        Number of components F.
    loss : "kl" or "frobenius"
        Composite pairwise likelihood, or the paper's squared error.
    learning_rates : (eta_T, eta_B, eta_L) or None
        The paper's learning rates of stages (i), (iii) for coefficients and (iii) for weights; found by backtracking
        if None. Only for the squared error: the likelihood needs none.
    n_init : int
        Starts of the likelihood, or splits of the variables tried in stage (ii); the best is kept.
    max_iter : int
        The most steps of the last stage.
    tol : float
        Its stopping rule: relative change of J, or change of the mean log-likelihood of a pair.
    keep_on_interrupt : bool
        Whether a keyboard interrupt of the last stage ends it there, rather than being raised.
    """

    n_components: int
    loss: str = "kl"
    learning_rates: tuple[float, float, float] | None = None
    n_init: int = 5
    max_iter: int = 500
    tol: float = 1e-4
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_choice("loss", self.loss, LOSSES)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        if check_real("tol", self.tol) < 0:
            raise InputError(f"`tol` must not be negative; got {self.tol!r}.")
        if self.learning_rates is not None:
            self._check_rates(self.learning_rates)

    def _check_rates(self, rates: Any) -> None:
        if self.loss != "frobenius":
            raise InputError(
                '`learning_rates` belong to loss="frobenius"; loss="kl" has none to set, so leave them out.'
            )
        if not isinstance(rates, Sequence) or isinstance(rates, str) or len(rates) != 3:
            raise InputError(f"`learning_rates` must be three numbers (eta_T, eta_B, eta_L) or None; got {rates!r}.")
        if not all(check_real("learning_rates", rate) > 0 for rate in rates):
            raise InputError(f"`learning_rates` must be positive; got {rates!r}.")


def fit_pairwise(
    marginals: PairwiseMarginals,
    dictionaries: Sequence[Dictionary],
    settings: PairwiseSettings,
    rng: np.random.Generator,
    callback: Callable[[int, float], None] | None = None,
) -> Fit:
    """Joint density from pair counts alone.

    With one variable there are no pairs and it is the 1-D maximum-likelihood mixture of its atoms.

    Parameters
    ----------
    marginals : PairwiseMarginals
    dictionaries : sequence of Dictionary
        One per variable.
    settings : PairwiseSettings
    rng : numpy.random.Generator
    callback : callable, optional
        Called with the steps taken and the objective, at every step of every stage.
    """
    if not marginals.n_rows > 0:
        raise InputError("There are no rows to learn from: the table is empty, or every weight is zero.")
    masses = [d.masses(axis) for d, axis in zip(dictionaries, marginals.axes, strict=True)]
    if len(masses) == 1:
        weights = simplex_weights(masses[0], marginals.marginal(0), tol=settings.tol)
        return Fit(_density(marginals, dictionaries, Factors(np.ones(1), (weights[:, None],))), {})
    problem = pairwise_problem(marginals, masses)
    stages = (_fit_frobenius if settings.loss == "frobenius" else _fit_kl)(problem, settings, rng, callback)
    last = list(stages.values())[-1]
    return Fit(_density(marginals, dictionaries, last.value), stages, (last,))


def pairwise_problem(marginals: PairwiseMarginals, masses: Sequence[FloatArray]) -> PairwiseProblem:
    """Pair masses of all pairs, each divided by its number of rows, weighed by that number."""
    counts = {(j, k): marginals.pair(j, k) for j in range(len(masses)) for k in range(j + 1, len(masses))}
    rows = {pair: float(c.sum()) for pair, c in counts.items()}
    unseen = [tuple(marginals.schema.names[n] for n in pair) for pair, n_rows in rows.items() if n_rows == 0]
    if unseen:
        raise InputError(
            f"No row holds both values of {listed(unseen, 3)}, so pairs cannot tell how they depend on each other. "
            "Drop one column of each such pair, or add rows that hold both."
        )
    most = max(rows.values())
    return PairwiseProblem(
        tuple(masses),
        {pair: c / rows[pair] for pair, c in counts.items()},
        shares={pair: n / most for pair, n in rows.items()},
        margins=tuple(m / m.sum() for m in map(marginals.marginal, range(len(masses)))),
    )


def _fit_frobenius(
    problem: PairwiseProblem,
    settings: PairwiseSettings,
    rng: np.random.Generator,
    callback: Callable[[int, float], None] | None,
) -> dict[str, Solution[Any]]:
    rate_pairs, rate_coefficients, rate_weights = settings.learning_rates or (None, None, None)
    pairs = solve(MirrorDescentPairs(rate=rate_pairs), problem, max_steps=settings.max_iter, callback=callback)
    start = split_starts(problem, pairs.value, settings.n_components, n_splits=settings.n_init, rng=rng)
    refined = solve(
        AlternatingMirrorDescent(start.value, rate_coefficients, rate_weights, tol=settings.tol),
        problem,
        max_steps=settings.max_iter,
        callback=callback,
        keep_on_interrupt=settings.keep_on_interrupt,
    )
    return {"pairs": pairs, "projections": start, "refinement": refined}


def _fit_kl(
    problem: PairwiseProblem,
    settings: PairwiseSettings,
    rng: np.random.Generator,
    callback: Callable[[int, float], None] | None,
) -> dict[str, Solution[Any]]:
    tries: list[Solution[Factors]] = []
    while len(tries) < settings.n_init and not (tries and tries[-1].status is Status.INTERRUPTED):
        start = random_start(problem, settings.n_components, rng)
        tries.append(
            solve(
                PairwiseEM(start, tol=settings.tol),
                problem,
                max_steps=settings.max_iter,
                callback=callback,
                keep_on_interrupt=settings.keep_on_interrupt,
            )
        )
    best = min(tries, key=lambda solution: float(solution.history[-1]))
    if tries[-1].status is Status.INTERRUPTED:  # whichever start is kept, not all have had their run
        best = replace(best, status=Status.INTERRUPTED, message=tries[-1].message)
    return {"likelihood": best}


def _density(marginals: PairwiseMarginals, dictionaries: Sequence[Dictionary], factors: Factors) -> JointDensity:
    mixture = ProductMixture(factors.weights, factors.coefficients, tuple(dictionaries))
    return JointDensity(marginals.schema, mixture)
