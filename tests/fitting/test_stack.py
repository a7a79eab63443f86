"""Weights of stacked experts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from jointwise.fitting.stack import FAR_BEHIND, PRIOR_ROWS, _looked, stacking_weights


def objective(weights: np.ndarray, logs: np.ndarray, counts: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(counts @ logsumexp(logs + np.log(weights), axis=1) + PRIOR_ROWS * np.log(weights).sum())


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 60))
def test_weights_are_the_most_likely(seed: int, k: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    logs, counts = rng.normal(-20, 3, (n, k)), rng.integers(1, 4, n).astype(float)
    found = stacking_weights(logs, counts)
    best = minimize(lambda t: -objective(softmax(t), logs, counts), np.zeros(k), method="BFGS")
    assert found.sum() == pytest.approx(1)
    assert objective(found, logs, counts) >= -best.fun - 1e-4 * counts.sum()


def test_an_impossible_row_is_no_verdict_alone() -> None:
    logs = np.full((50, 2), -1.0)
    logs[:, 1] = -3.0
    logs[7, 0] = -np.inf
    found = stacking_weights(logs, np.ones(50))
    assert 0.9 < found[0] < 1


def test_a_row_impossible_for_all_says_nothing() -> None:
    logs = np.array([[-1.0, -2.0], [-1.0, -2.0], [-np.inf, -np.inf]])
    assert np.isfinite(stacking_weights(logs, np.ones(3))).all()


def test_a_look_leaves_experts_that_serve_odd_rows_alone() -> None:
    good, far = np.full(100, -1.0), np.full(100, -1.0 - 3 * FAR_BEHIND)
    odd = np.where(np.arange(100) < 2, -1.0, far)  # as good as the best on two rows
    often = np.where(np.arange(100) < 50, 0.0, -9.0)
    close = good - 0.5 * FAR_BEHIND
    logs = {"good": np.where(np.arange(100) < 2, -9.0, good), "odd": odd, "often": often, "close": close}
    assert _looked(logs, np.ones(100)).near == ["good", "often", "close"]
