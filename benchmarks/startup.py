"""Seconds of the import and of a fit of 200 rows in a fresh process."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.report import Row

REPEATS = 3
PROGRAM = """
import time
start = time.perf_counter()
from jointwise import JUPAD
imported = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
kind = rng.integers(0, 3, 200)
table = {"kind": np.array(["a", "b", "c"])[kind], "size": rng.normal(kind, 1), "count": rng.poisson(3 + kind)}
ready = time.perf_counter()
JUPAD(random_state=0).fit(table)
print(imported - start, time.perf_counter() - ready)
"""


def run() -> list[Row]:
    """Return the least seconds of several runs, since a busy machine only makes them slower."""
    runs = [tuple(map(float, _output("-c", PROGRAM).split())) for _ in range(REPEATS)]
    report = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import jointwise"], capture_output=True, text=True, check=True
    ).stderr
    microseconds = next(
        int(line.split("|")[1]) for line in reversed(report.splitlines()) if line.endswith(" jointwise")
    )
    bare = _output("-c", "import time; s = time.perf_counter(); import sklearn.base; print(time.perf_counter() - s)")
    return [
        {
            "import, seconds": min(a for a, _ in runs),
            "import by -X importtime": microseconds / 1e6,
            "import sklearn.base alone": float(bare),
            "fit of 200 rows, seconds": min(b for _, b in runs),
            "both": min(a + b for a, b in runs),
        }
    ]


def _output(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout
