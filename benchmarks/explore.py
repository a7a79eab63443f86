"""The page of a stack of 500 components over 20 columns, in Chromium: bytes, first drawing, time from input to cards.

Needs Debian's chromium and chromium-driver, and selenium: see `make test-page`.
"""

from __future__ import annotations

import gzip
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.report import Row
from jointwise import JUPAD, GaussianBlocks, JointDensity, TreeMixture
from jointwise.explore import write_page
from jointwise.explore.page import bundled

N_ROWS, N_GROUPS, N_NUMBERS, N_CATEGORIES = 3_000, 6, 12, (2, 3, 4, 5, 6, 8, 12, 20)
# Components of each kind of expert: 500 in all, as those without rows are dropped.
EXPERTS = {
    "products": lambda: JUPAD(n_components=210, beta=0.1, n_init=1, random_state=0),
    "blocks, none": lambda: GaussianBlocks(warp="none", n_components=140, random_state=0),
    "blocks, scores": lambda: GaussianBlocks(warp="scores", n_components=140, random_state=0),
    "trees": lambda: TreeMixture(n_components=20, random_state=0),
}
# What is known, one thing after the other: of categories (s) and of numbers (r).
STATES = {
    "a category": ["12s0", "13s1", "14s2", "15s0.1", "16s3", "17s0", "18s1", "19s2"],
    "one range": ["0r-1~1", "0r-1~2", "0r-2~1", "4r-1~1", "4r0~2", "8r-1~1", "8r-2~0"],
    "two ranges": ["0r-1~1_4r-1~2", "0r-1~2_4r-1~1", "0r-2~2_8r-1~1", "4r-1~1_8r-2~2", "4r0~2_8r-1~2"],
    "three ranges": ["0r-1~1_4r-1~2_8r-2~2", "0r-1~2_4r-1~1_8r-1~3", "0r-2~2_4r-2~1_8r-1~1"],
    "a range and a category": ["0r-1~1_12s0", "4r-1~1_14s1", "8r-1~2_19s0.1"],
}
N_ROUNDS = 6
# From setting the address, as a link does, to the frame with all cards. The page draws at once, or is busy until then;
# frames that are asked for meanwhile would put that one off.
_TIME = """
const [state, done] = arguments;
const root = document.querySelector('#explore');
const begin = performance.now();
const frame = () => requestAnimationFrame(() => done(performance.now() - begin));
addEventListener('hashchange', () => {
  if (!('busy' in root.dataset)) return frame();
  const watcher = new MutationObserver(() => {
    if ('busy' in root.dataset) return;
    watcher.disconnect();
    frame();
  });
  watcher.observe(root, { attributes: true });
}, { once: true });
location.hash = state;
"""
_HELPED = "return performance.getEntriesByName('jointwise helped').length"


def table() -> dict[str, Any]:
    """Columns that depend on each other through six groups: half of the numbers skewed, rounded or with a spike."""
    rng = np.random.default_rng(5)
    group = rng.choice(N_GROUPS, N_ROWS)
    centres = rng.normal(0, 2, (N_GROUPS, N_NUMBERS))
    mixing = rng.normal(size=(N_GROUPS, N_NUMBERS, N_NUMBERS)) * 0.35 + 0.6 * np.eye(N_NUMBERS)
    z = centres[group] + np.einsum("nij,nj->ni", mixing[group], rng.normal(size=(N_ROWS, N_NUMBERS)))
    shapes = (
        lambda v: v,
        lambda v: 10 * np.exp(0.5 * v),
        lambda v: (20 + 5 * v).round(),
        lambda v: np.where(v < -1.5, 0.0, 3 * np.abs(v)),
    )
    columns: dict[str, Any] = {f"number {j}": shapes[j % 4](z[:, j]) for j in range(N_NUMBERS)}
    for j, size in enumerate(N_CATEGORIES):
        laws = rng.dirichlet(np.full(size, 0.5), N_GROUPS)[group]
        code = (laws.cumsum(axis=1) < rng.random((N_ROWS, 1))).sum(axis=1).clip(0, size - 1)
        columns[f"kind {j}"] = np.array([f"value {k}" for k in range(size)], dtype=object)[code]
    return columns


def stack() -> JointDensity:
    """Return the sum of all experts."""
    data = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return JointDensity.mix([make().fit(data).density_ for make in EXPERTS.values()])


def _processor(driver: Any) -> float:
    """Seconds of processor time that the page's main thread has used, whatever else the machine does.

    What a second thread computes is not in it: steps like those that took more than 30 ms.
    """
    found = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(each["value"] for each in found if each["name"] == "TaskDuration"))


def _steps(states: list[str]) -> Iterator[str]:
    """Yield states that are all different, since answers that are kept would cost nothing: the ranges move a little."""
    for k in range(N_ROUNDS):
        for i, state in enumerate(states):
            if "~" in state:
                yield re.sub(r"~(-?\d+)", lambda end, k=k: f"~{int(end[1]) + k / 50:g}", state)
            else:  # one more category each round
                yield "_".join(states[(i + j) % len(states)] for j in range(k + 1))


def run() -> list[Row]:
    """Return sizes in kB, and milliseconds."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.explore.browser import browser, open_page

    rows: list[Row] = []
    for name in ("explore.js", "explore.css"):
        text = bundled(name).encode()
        rows.append({"what": name, "kB": len(text) / 1e3, "kB compressed": len(gzip.compress(text, 9)) / 1e3})
    with TemporaryDirectory() as folder:
        density = stack()
        page = write_page(density, Path(folder) / "stack.html", title="A stack")
        what = f"page of {len(density.names)} columns, {density.n_components} components"
        rows.append({"what": what, "kB": page.stat().st_size / 1e3})
        with browser(1900, 2600) as driver:
            first = []
            for _ in range(5):
                open_page(driver, page)
                first.append(
                    driver.execute_script("return performance.getEntriesByName('jointwise drawn')[0].startTime")
                )
            rows.append({"what": "first drawing"} | _spread(first))
            driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            for kind, states in STATES.items():
                open_page(driver, page)
                times, work = [], []
                for state in _steps(states):
                    before = _processor(driver)
                    times.append(driver.execute_async_script(_TIME, f"a={state}"))
                    work.append(1e3 * (_processor(driver) - before))
                first = {"ms, first": times[0]}
                spent = {"processor ms, median": median(work), "processor ms, worst": max(work)}
                thread = {"in a thread": f"{driver.execute_script(_HELPED)} of {len(times)}"}
                rows.append({"what": f"{kind}: input to all cards"} | _spread(times) | first | spent | thread)
    heads = dict.fromkeys(key for row in rows for key in row)
    return [{key: row.get(key, "") for key in heads} for row in rows]


def _spread(times: list[float]) -> Row:
    return {"ms, median": median(times), "ms, worst": max(times)}
