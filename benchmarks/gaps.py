"""Experiment 4 with 30% of the cells deleted at random: D beside that of the whole table."""

from __future__ import annotations

import numpy as np

from benchmarks.report import Row
from jointwise import JUPAD
from jointwise.datasets import hybrid
from jointwise.metrics import mean_absolute_log_ratio

SIZES, SEEDS, SHARE = (5_000, 20_000), (0, 1, 2), 0.3


def run() -> list[Row]:
    """Return D with and without gaps on each size and seed."""
    rows = []
    for n in SIZES:
        for seed in SEEDS:
            law = hybrid(seed)
            X, Z = law.sample(n, rng=1_000 + seed), law.sample(1_000, rng=2_000 + seed)
            holes = X.copy()
            holes[np.random.default_rng(seed).random(X.shape) < SHARE] = np.nan
            kinds = {"x3": "categorical"}
            whole, gappy = (
                mean_absolute_log_ratio(JUPAD(kinds=kinds, random_state=seed).fit(t).score_samples, law.logpdf, Z)
                for t in (X, holes)
            )
            rows.append({"n": n, "seed": seed, "whole": whole, "30% deleted": gappy, "ratio": gappy / whole})
    for n in SIZES:
        ratios = [row["30% deleted"] / row["whole"] for row in rows if row["n"] == n]
        rows.append({"n": n, "seed": "median", "whole": "", "30% deleted": "", "ratio": float(np.median(ratios))})
    return rows
