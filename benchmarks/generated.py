"""A generated mixed table with features of real ones: spikes, piles at bounds, a sentinel, steps and gaps."""

from __future__ import annotations

import numpy as np

N_ROWS, N_FACTORS = 20_000, 3
# Standard deviation of the part of each hidden number that no other shares; that of the factors is one.
OWN = 0.5
GAPS = 0.03


def generated(seed: int, n: int = N_ROWS) -> dict[str, np.ndarray]:
    """Draw rows whose columns all depend on six correlated Gaussian numbers.

    Parameters
    ----------
    seed : int
        Draws the correlations, the log-odds of the categories, and the rows.
    n : int
        Number of rows.
    """
    rng = np.random.default_rng(seed)
    z = _correlated(rng, n)
    claimed = z[:, 3] > rng.uniform(0.7, 1.3)
    never = z[:, 5] < rng.uniform(-0.6, 0.0)
    income = np.round(np.exp(10.0 + 0.6 * z[:, 1]), 2)
    income[rng.random(n) < GAPS] = np.nan
    features = np.column_stack([z[:, :3], claimed, never])
    return {
        "age": np.clip(np.round(45 + 14 * z[:, 0]), 18, 95).astype(np.int64),
        "income": income,
        "grade": np.round(2 * (5 + 1.5 * z[:, 2])) / 2,
        "claims": np.where(claimed, np.exp(5 + z[:, 3] + 0.8 * rng.normal(size=n)), 0).astype(np.int64),
        "share": np.clip(0.5 + 0.5 * z[:, 4], 0, 1),
        "days": np.where(never, -1, np.exp(4 + 0.7 * z[:, 0] + 0.5 * rng.normal(size=n))).astype(np.int64),
        "region": _dependent(rng, ("north", "east", "south", "west", "islands"), features),
        "plan": _dependent(rng, ("none", "basic", "full"), features),
        "member": _dependent(rng, ("no", "yes"), features),
    }


def _correlated(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw six standard Gaussian numbers for each row, which share three factors; shape (n, 6)."""
    loadings = rng.normal(size=(6, N_FACTORS))
    loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
    mixed = rng.normal(size=(n, N_FACTORS)) @ loadings.T + OWN * rng.normal(size=(n, 6))
    return np.asarray(mixed / np.sqrt(1 + OWN**2))


def _dependent(rng: np.random.Generator, names: tuple[str, ...], features: np.ndarray) -> np.ndarray:
    """Draw categories whose log-odds are linear in the features."""
    scores = features @ rng.normal(size=(features.shape[1], len(names)))
    return np.array(names, dtype=object)[np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)]
