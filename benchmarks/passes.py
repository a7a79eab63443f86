"""Time of one pass over a Gaussian block against its size, and of one EM step of scikit-learn's GaussianMixture."""

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
from jointwise.rows.coded import CodedRows

N_ROWS, N_COLUMNS, N_COMPONENTS = 1_000_000, 7, 10
REPEATS, STEPS = 5, 3


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
    return [pass_time(*size, device=device, rival=n == 0) for n, size in enumerate(sizes)]


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
    return {
        "rows": n, "columns": d, "components": n_components, "missing": missing, "seconds": seconds,
        "ns per row, component, column squared": 1e9 * seconds / (n * n_components * d * d),
        "GaussianMixture, seconds a step": seconds_of_rival,
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
