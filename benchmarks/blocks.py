"""Whether the same rows in 1, 7 and 100 blocks have the same counts, bit for bit, and the same model."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from benchmarks.report import Row
from jointwise import JUPAD, PairwiseMarginals, Profile
from jointwise.datasets import hybrid

N_ROWS = 20_000


def run() -> list[Row]:
    """Return whether counts and model of each split equal those of one block."""
    X = hybrid(0).sample(N_ROWS, rng=1)
    rows: list[Row] = []
    first = None
    for n_blocks in (1, 7, 100):
        blocks = np.array_split(X, n_blocks)
        profile = reduce(add, map(Profile.of, blocks))
        schema = profile.schema()
        axes = profile.axes(schema, 128)
        marginals = reduce(add, (PairwiseMarginals.of(block, schema, axes) for block in blocks))
        mixture = JUPAD(8, random_state=0).fit_marginals(marginals).density_.mixture
        first = first or (profile, marginals, mixture)
        parts = zip((mixture.weights, *mixture.coefficients), (first[2].weights, *first[2].coefficients), strict=True)
        rows.append(
            {
                "blocks": n_blocks,
                "profile equal": profile == first[0],
                "counts equal": marginals == first[1],
                "model equal": all(np.array_equal(a, b) for a, b in parts),
            }
        )
    return rows
