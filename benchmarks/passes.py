"""Time of one pass against its size: over a Gaussian block, beside an EM step of scikit-learn's, and over trees.

The last but one figure stays the same where the law holds: a block takes rows x components x columns squared, the edges
of trees rows x components x columns, and pairs rows x components x pairs. Missing cells cost messages between them.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.measure import repeated
from benchmarks.report import Row
from jointwise import Profile
from jointwise.engines.blocks import BlockComponents, BlockLayout
from jointwise.engines.trees import Forest, TreeComponents, tree_engine
from jointwise.rows.coded import CodedRows

N_ROWS, N_COLUMNS, N_COMPONENTS = 1_000_000, 7, 10
REPEATS, STEPS = 5, 3
N_TREES, N_STATES = 12, 16


def run(device: str = "cpu") -> list[Row]:
    """Return the least seconds of a pass, as one number after another grows."""
    sizes = [
        (N_ROWS, N_COLUMNS, N_COMPONENTS, 0.0),
        (N_ROWS // 4, N_COLUMNS, N_COMPONENTS, 0.0),
        (N_ROWS // 4, N_COLUMNS, 4 * N_COMPONENTS, 0.0),
        (N_ROWS // 4, 2 * N_COLUMNS, N_COMPONENTS, 0.0),
        (N_ROWS // 4, 4 * N_COLUMNS, N_COMPONENTS, 0.0),
        (N_ROWS // 4, N_COLUMNS, N_COMPONENTS, 0.05),
        (N_ROWS // 4, 2 * N_COLUMNS, N_COMPONENTS, 0.05),
    ]
    of_blocks = [pass_time(*size, device=device, rival=n == 0) for n, size in enumerate(sizes)]
    tree_sizes = [
        (16_000, 15, N_STATES, N_TREES, 0.0),
        (64_000, 15, N_STATES, N_TREES, 0.0),
        (16_000, 15, N_STATES, 4 * N_TREES, 0.0),
        (16_000, 60, N_STATES, N_TREES, 0.0),
        (15_000, 100, 2, N_TREES, 0.0),
        (16_000, 15, N_STATES, N_TREES, 0.05),
        (15_000, 100, 2, N_TREES, 0.05),
    ]
    return of_blocks + [row for size in tree_sizes for row in tree_times(*size, device=device)]


def pass_time(
    n: int, d: int, n_components: int, missing: float, *, device: str = "cpu", rival: bool = False
) -> Row:  # fmt: skip
    """Return the time of a pass over n rows of d columns, as fine codes, and that of a rival's step on the values."""
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(n_components, d))
    X = centres[rng.integers(n_components, size=n)] + rng.normal(size=(n, d))
    components = BlockComponents(
        np.full(n_components, -np.log(n_components)),
        centres + 0.1,
        np.stack([np.eye(d) + 0.1] * n_components),
        spikes=[np.zeros((1, n_components))] * d,
    )
    seconds_of_rival = _rival_step(X, components) if rival else np.nan
    X[rng.random(X.shape) < missing] = np.nan
    profile = Profile.of(X)
    schema = profile.schema()
    rows = CodedRows.of(X, schema, profile.axes(schema, 64, fine=schema.names)).on(device)
    layout = BlockLayout(rows.n_bins, range(d), [axis.centres for axis in rows.axes], [])
    engine = rows.block_engine(layout)
    seconds = min(repeated(partial(engine.sums, components), 1 + REPEATS)[1:])
    return _row("block", n, d, n_components, missing, seconds, d * d, seconds_of_rival)


def tree_times(n: int, N: int, S: int, F: int, missing: float, *, device: str = "cpu") -> list[Row]:
    """Return the times of a pass over n rows of N columns of S states: for the edges of F trees, and for all pairs.

    The rows are those of chains that stay in a state with a probability of their own, so the posteriors are as peaked
    as in a fit.
    """
    rng = np.random.default_rng(0)
    stay = rng.uniform(0.5, 0.9, F)
    kinds, codes = rng.integers(F, size=n), rng.integers(S, size=(n, N))
    parents = np.stack([_chain(rng.permutation(N)) for _ in range(F)])
    forest = Forest([S] * N, parents)
    tables = np.full(forest.n_entries, 1 / S)
    for r in range(F):
        rows = np.flatnonzero(kinds == r)
        for column in forest.order[r][1:]:
            forest.table(tables, r, column)[:] = stay[r] * np.eye(S) + (1 - stay[r]) / S
            stays = rows[rng.random(len(rows)) < stay[r]]
            codes[stays, column] = codes[stays, parents[r, column]]
    codes = np.where(rng.random(codes.shape) < missing, S, codes).astype(np.uint8)
    components = TreeComponents(forest, np.full(F, -np.log(F)), np.log(tables))
    engine, pairs = tree_engine(codes, forest.n_bins, device=device), np.argwhere(np.triu(np.ones((N, N)), 1) > 0)
    edge_seconds = min(repeated(partial(engine.edge_sums, components), 1 + REPEATS)[1:])
    pair_seconds = min(repeated(partial(engine.pair_sums, components, pairs), 1 + REPEATS)[1:])
    return [
        _row(f"edges of trees, {S} states", n, N, F, missing, edge_seconds, N),
        _row(f"pairs, {S} states", n, N, F, missing, pair_seconds, len(pairs)),
    ]


def _chain(columns: np.ndarray) -> np.ndarray:
    """Return the parents of columns that hang below each other in this order."""
    parents = np.full(len(columns), -1)
    parents[columns[1:]] = columns[:-1]
    return parents


def _row(
    what: str, n: int, N: int, F: int, missing: float, seconds: float, n_terms: int, rival: float = np.nan
) -> Row:  # fmt: skip
    return {
        "pass": what, "rows": n, "columns": N, "components": F, "missing": missing, "seconds": seconds,
        "ns per row, component and term": 1e9 * seconds / (n * F * n_terms),
        "GaussianMixture, seconds a step": rival,
    }  # fmt: skip


def _rival_step(X: np.ndarray, components: BlockComponents) -> float:
    """Return the seconds of a step of scikit-learn: a fit of several steps less a fit of one, from the same start."""

    def fit(n_steps: int) -> None:
        model = GaussianMixture(
            len(components.means), max_iter=n_steps, tol=0.0, weights_init=np.exp(components.log_weights),
            means_init=components.means, precisions_init=np.linalg.inv(components.covariances), init_params="random",
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X)

    many, one = (min(repeated(partial(fit, n_steps), 2)) for n_steps in (1 + STEPS, 1))
    return (many - one) / STEPS
