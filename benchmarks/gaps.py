"""D of JUPAD() on experiment 4 with 30% of the cells deleted at random, beside that of the whole table."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import train_and_test
from benchmarks.report import Row
from jointwise import JUPAD
from jointwise.datasets import hybrid
from jointwise.metrics import mean_absolute_log_ratio

SIZES, SEEDS, SHARE = (5_000, 20_000), (0, 1, 2), 0.3
KINDS = {"x3": "categorical"}


def run() -> list[Row]:
    """Return D with and without gaps for each size and seed."""
    rows = []
    for n in SIZES:
        for seed in SEEDS:
            law = hybrid(seed)
            X, Z = train_and_test(law, n, seed)
            holes = X.copy()
            holes[np.random.default_rng(seed).random(X.shape) < SHARE] = np.nan
            whole, gappy = (
                mean_absolute_log_ratio(JUPAD(kinds=KINDS, random_state=seed).fit(t).score_samples, law.logpdf, Z)
                for t in (X, holes)
            )
            rows.append({"n": n, "seed": seed, "whole": whole, "30% deleted": gappy, "ratio": gappy / whole})
    for n in SIZES:
        ratios = [row["30% deleted"] / row["whole"] for row in rows if row["n"] == n]
        rows.append({"n": n, "seed": "median", "whole": "", "30% deleted": "", "ratio": float(np.median(ratios))})
    return rows
