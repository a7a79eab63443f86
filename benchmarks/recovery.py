"""Error of each discrete method on a joint of 6 variables with 5 states and rank 5, from rows and exact marginals.

Rows come from a *separable* truth: every component has a state of its own in one of the last three variables. Pairs
then determine the joint, by successive projection with the first three variables as rows; triples determine it in any
case. At n = infinity a method gets the exact marginals it works on: pairs of the separable truth, or triples or
projections of a *generic* one without zeros, which multiplicative updates approach slowly. The error is
||P - Phat||_F / ||P||_F: the mean of two truths from rows, the larger one at infinity.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import timed
from benchmarks.report import Row
from jointwise import Dictionary, JointDensity, PairwiseMarginals
from jointwise.axes import DiscreteAxis
from jointwise.joint.product import ProductMixture
from jointwise.marginals import SubsetMarginals
from jointwise.relatives import CoupledPMF, IndependenceDensity, PairwisePMF, ProjectionPMF
from jointwise.relatives._base import JointRelative
from jointwise.relatives.projections import random_vectors
from jointwise.relatives.solvers import project
from jointwise.tables.variables import Schema, Variable

N_VARIABLES, N_STATES, RANK = 6, 5, 5
SIZES = (1_000, 10_000, 100_000)
SEEDS = (0, 1)
# For each component, the variable and the state that no other component takes.
ANCHORS = {0: (3, 0), 1: (3, 1), 2: (4, 0), 3: (4, 1), 4: (5, 0)}
ANCHOR_MASS = 0.3
# Share of the uniform law in the columns of the generic truth.
LEAST = 0.05

SCHEMA = Schema(
    tuple(
        Variable(f"x{n}", "categorical", categories=tuple(range(N_STATES)), dtype="int64") for n in range(N_VARIABLES)
    )
)
AXES = (DiscreteAxis(np.arange(N_STATES, dtype=float)),) * N_VARIABLES
EVERY = range(N_VARIABLES)


def separable(seed: int) -> JointDensity:
    """Return a random joint with the anchors."""
    weights, factors = random_factors(seed)
    for component, (variable, state) in ANCHORS.items():
        own = max(factors[variable][state, component], ANCHOR_MASS)
        factors[variable][state] = 0.0
        factors[variable][state, component] = own
    return density(weights, [a / a.sum(axis=0) for a in factors])


def generic(seed: int) -> JointDensity:
    """Return a random joint in which every component takes every state."""
    weights, factors = random_factors(seed)
    return density(weights, [(1 - LEAST) * a + LEAST / N_STATES for a in factors])


def random_factors(seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return Dirichlet weights and columns."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(RANK, 5.0)), [rng.dirichlet(np.ones(N_STATES), size=RANK).T for _ in EVERY]


def density(weights: np.ndarray, factors: list[np.ndarray]) -> JointDensity:
    """Return the joint of these weights and masses."""
    atoms = (Dictionary.categories(N_STATES),) * N_VARIABLES
    return JointDensity(SCHEMA, ProductMixture(weights, tuple(factors), atoms))


def tensor(truth: JointDensity) -> np.ndarray:
    """Return the mass of every cell; atoms are states in their order."""
    mixture = truth.mixture
    return np.asarray(np.einsum("r,ar,br,cr,dr,er,fr->abcdef", mixture.weights, *mixture.coefficients, optimize=True))


def table(joint: np.ndarray, subset: tuple[int, ...]) -> np.ndarray:
    """Return the exact marginal of a subset of variables."""
    return np.asarray(joint.sum(axis=tuple(n for n in EVERY if n not in subset)))


def exact_triples(joint: np.ndarray) -> SubsetMarginals:
    """Return the masses of all triples."""
    return SubsetMarginals(SCHEMA, AXES, {s: table(joint, s) for s in combinations(EVERY, 3)}, 1.0)


def exact_pairs(joint: np.ndarray) -> PairwiseMarginals:
    """Return the masses of all pairs, in blocks, with those of single variables on the diagonal."""
    blocks = [[np.diag(table(joint, (j,))) if j == k else table(joint, (j, k)) for k in EVERY] for j in EVERY]
    for j, k in combinations(EVERY, 2):
        blocks[k][j] = blocks[j][k].T
    return PairwiseMarginals(SCHEMA, AXES, np.block(blocks), 1.0)


def from_projections(joint: np.ndarray, seed: int) -> JointRelative:
    """Fit ProjectionPMF to the exact masses of random projections, one for each triple of variables."""
    vectors = random_vectors(N_VARIABLES, 20, 3, 2 * N_STATES, np.random.default_rng(seed))
    model = ProjectionPMF(RANK, n_init=1, tol=0.0, max_iter=2000, random_state=seed)
    return model.fit_projections(vectors, project(joint, vectors), joint.shape)


class Method(NamedTuple):
    """An estimator for rows, and its fit from exact marginals, with smaller tolerances."""

    model: JointRelative
    exact: Callable[[np.ndarray, int], JointRelative] | None = None
    truth: str = "generic"


def coupled(joint: np.ndarray, seed: int, **options: Any) -> JointRelative:
    """Fit CoupledPMF to exact triples."""
    return CoupledPMF(RANK, n_init=1, random_state=seed, **options).fit_marginals(exact_triples(joint))


def pairwise(joint: np.ndarray, seed: int, **options: Any) -> JointRelative:
    """Fit PairwisePMF to exact pairs."""
    return PairwisePMF(RANK, split=3, random_state=seed, **options).fit_marginals(exact_pairs(joint))


METHODS = {
    "IndependenceDensity": Method(IndependenceDensity()),  # the baseline
    "CoupledPMF, frobenius": Method(CoupledPMF(RANK), partial(coupled, tol=1e-8, max_iter=2000)),
    "CoupledPMF, kl": Method(CoupledPMF(RANK, loss="kl"), partial(coupled, loss="kl", tol=1e-10, max_iter=20_000)),
    "PairwisePMF, spa": Method(
        PairwisePMF(RANK, method="spa", split=3), partial(pairwise, method="spa"), truth="separable"
    ),
    "PairwisePMF, opt": Method(
        PairwisePMF(RANK, method="opt", split=3), partial(pairwise, method="opt", floor=1e-9), truth="separable"
    ),
    "PairwisePMF, em": Method(PairwisePMF(RANK, method="em", split=3)),  # needs rows
    "ProjectionPMF": Method(ProjectionPMF(RANK), from_projections),
}


def run() -> list[Row]:
    """Return the error of each method at each number of rows."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # runs end at the published number of sweeps
    rows = []
    for name, method in METHODS.items():
        row: Row = {"method": name}
        for n in SIZES:
            row[f"n = {n:,}"] = float(np.mean([from_rows(method.model, n, seed) for seed in SEEDS]))
        exact = [] if method.exact is None else [timed(partial(from_marginals, method, seed)) for seed in SEEDS]
        row["n = infinity (largest)"] = max((error for error, _ in exact), default="-")
        row["its truth"] = method.truth if exact else "-"
        row["seconds (infinity)"] = float(np.mean([seconds for _, seconds in exact])) if exact else "-"
        rows.append(row)
    return rows


def from_rows(model: JointRelative, n: int, seed: int) -> float:
    """Return the error of a fit to n rows of the separable truth."""
    truth = separable(seed)
    kinds = dict.fromkeys(SCHEMA.names, "categorical")
    fitted = clone(model).set_params(kinds=kinds, random_state=seed).fit(truth.sample(n, rng=1_000 + seed))
    return error(fitted, truth)


def from_marginals(method: Method, seed: int) -> float:
    """Return the error of a fit to exact marginals of the method's truth."""
    assert method.exact is not None
    truth = {"generic": generic, "separable": separable}[method.truth](seed)
    return error(method.exact(tensor(truth), seed), truth)


def error(model: JointRelative, truth: JointDensity) -> float:
    """Return the relative distance of the joints."""
    joint = tensor(truth)
    return float(np.linalg.norm(tensor(model.density_) - joint) / np.linalg.norm(joint))
