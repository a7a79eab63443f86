"""1-D mixtures compiled by numba: a run that compiles them gives what later runs give."""

import os
import subprocess
import sys
from pathlib import Path

CALL = """
import numpy as np
from jointwise.engines.compiled_margins import held_out_of, weights_of

rng = np.random.default_rng(0)
masses, shares = rng.dirichlet(np.ones(80), 30).T.copy(), rng.dirichlet(np.ones(80), 3)
prior, weights, scores = np.full(3, 1e-3), np.empty((3, 30)), np.empty((1, 3))
atoms, ends = np.arange(30), np.array([30])
held_out_of(masses, atoms, ends, shares, shares, prior * 30, 1e-9, 0.0, 40, 0.0, scores)
weights_of(masses, shares, prior, 1e-9, 0.0, 40, weights)
print(scores.tobytes().hex(), weights.tobytes().hex())
"""


def test_the_run_that_compiles_gives_what_later_runs_give(tmp_path: Path) -> None:
    """A helper that is compiled for itself and into its callers may be either of them, by the order of loading."""
    kept = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run([sys.executable, "-c", CALL], env=kept, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1]
