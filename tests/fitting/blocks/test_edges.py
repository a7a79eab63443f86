"""Whatever the table, the covariances are regular and every row has a finite density."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import GaussianBlocks
from jointwise.fitting.blocks import WARPS

RNG = np.random.default_rng(0)
A = RNG.normal(size=120)
B = RNG.normal(size=120)


def with_gaps(values, share=0.3, seed=1):
    return np.where(np.random.default_rng(seed).random(len(values)) < share, np.nan, values)


TABLES = {
    "a constant": {"a": A, "b": np.full(120, 3.0)},
    "one row": {"a": [1.5], "b": [2.5]},
    "two rows": {"a": [1.5, 2.0], "b": [2.5, 4.0]},
    "more columns than rows": {f"c{n}": RNG.normal(size=12) for n in range(14)},
    "copies": {"a": A, "b": 2 * A + 1, "c": -A, "d": B},
    "sums": {"a": A, "b": B, "c": A + B, "d": A - B},
    "tiny": {"a": 1e-300 * (A + 5), "b": 1e-300 * B},
    "tiny, not the smallest": {"a": 1e-290 * A, "b": 1e-200 * B},
    "huge": {"a": 1e300 * A, "b": 1e300 * (A + B)},
    "far away": {"a": 1e12 + A, "b": B},
    "nearly all gaps": {"a": np.where(np.arange(120) < 15, A, np.nan), "b": np.where(np.arange(120) > 100, B, np.nan)},
    "never together": {"a": np.where(np.arange(120) < 60, A, np.nan), "b": np.where(np.arange(120) >= 60, B, np.nan)},
    "one row repeated": {"a": np.full(100, 1.25), "b": np.full(100, 7.5)},
    "one row repeated, and others": {"a": np.r_[np.full(100, 1.25), A[:20]], "b": np.r_[np.full(100, 7.5), B[:20]]},
    "heavy tails": {"a": np.random.default_rng(2).standard_cauchy(120) ** 3, "b": B},
    "an outlier": {"a": np.r_[A[:-1], 1e200], "b": B},
    "integers": {"k": RNG.integers(0, 40, 120), "m": RNG.poisson(300, 120), "a": A},
    "copied integers": {"k": np.arange(120) * 3, "m": np.arange(120) * 3, "n": np.arange(120) * 3 + 1},
    "large integers": {"k": RNG.integers(0, 2**50, 120), "a": A},
    "gaps everywhere": {name: with_gaps(column, seed=s) for s, (name, column) in enumerate([("a", A), ("b", A + B)])},
}


def check(model, table):
    assert np.isfinite(model.score_samples(table)).all()
    if model.block_:
        covariances = model.density_.mixture.block.covariances
        assert np.linalg.eigvalsh(covariances).min() > 0
    sample = model.sample(20, random_state=0)
    assert np.isfinite(model.score_samples(sample)).all()


SLOW = [pytest.param(warp, marks=pytest.mark.slow) for warp in ("none", "scores", "joint")]


@pytest.mark.parametrize("warp", ["power", *SLOW])
@pytest.mark.parametrize("name", TABLES)
def test_any_table_can_be_fitted(name, warp):
    table = TABLES[name]
    keep = list(table)
    check(GaussianBlocks(warp, n_components=2, keep=keep, random_state=0).fit(table), table)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one row", "two rows", "copies", "sums", "one row repeated", "never together"])
def test_any_table_can_be_chosen_for(name):
    check(GaussianBlocks("power", keep=list(TABLES[name]), random_state=0).fit(TABLES[name]), TABLES[name])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_tables(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    makers = [
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-280, 280),
        lambda: rng.integers(0, 10 ** rng.integers(1, 10), n),
        lambda: np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n)),
        lambda: rng.choice(["u", "v", "w"], n),
        lambda: np.r_[1.0, with_gaps(rng.normal(size=n - 1), rng.random(), seed)],
        lambda: np.round(rng.normal(size=n), 1),
    ]
    table = {f"c{k}": makers[rng.integers(len(makers))]() for k in range(int(rng.integers(1, 5)))}
    warp = WARPS[seed % len(WARPS)]
    check(GaussianBlocks(warp, n_components=3, keep=list(table), random_state=0).fit(table), table)
