"""Answers about each of 10,000 rows x 10 columns, beside a loop that conditions the density on every row.

The density is a stack fitted to some of the rows. The loop answers the first rows only; its time is that of all rows at
the same rate. How odd rows are, and why one row is, has no such loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.generated import generated
from benchmarks.measure import timed
from benchmarks.report import Row
from jointwise import JointDensity, JointEstimator
from jointwise.exceptions import RareEventWarning

N_ROWS, N_FITTED, N_LOOPED = 10_000, 2_000, 20
TARGET, EVENT = "income", {"plan": "full", "age": (30, 60)}


def run() -> list[Row]:
    """Return seconds of each answer for all rows, and of the loop."""
    warnings.simplefilter("ignore", RareEventWarning)
    table = generated(0, N_ROWS)
    table["hours"] = np.round(table["age"] / 2 + np.random.default_rng(0).normal(size=N_ROWS), 1)
    density = JointEstimator(random_state=0).fit(_rows(table, N_FITTED)).density_
    rows = []
    for name, (answer, alone) in ANSWERS.items():
        _, seconds = timed(partial(answer, density, table))
        looped, loop_seconds = timed(partial(_loop, density, table, alone))
        every = loop_seconds * N_ROWS / len(looped)
        rows.append({"answer": name, "seconds": seconds, "loop, seconds": every, "times faster": every / seconds})
    for name, answer in UNLOOPED.items():
        _, seconds = timed(partial(answer, density, table))
        rows.append({"answer": name, "seconds": seconds, "loop, seconds": "", "times faster": ""})
    return rows


def _rows(table: dict[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    return {name: column[:n] for name, column in table.items()}


def _loop(density: JointDensity, table: dict[str, np.ndarray], alone: Callable[..., Any]) -> list[Any]:
    """Answer the first rows one by one."""
    cells = [dict(zip(table, row, strict=True)) for row in zip(*_rows(table, N_LOOPED).values(), strict=True)]
    return [alone(density, {name: c for name, c in row.items() if c == c}) for row in cells]  # noqa: PLR0124  a gap


def _given(density: JointDensity, row: dict[str, Any], without: set[str]) -> JointDensity:
    return density.condition({name: value for name, value in row.items() if name not in without})


def _alone_interval(density: JointDensity, row: dict[str, Any]) -> Any:
    return _given(density, row, {TARGET}).quantile(TARGET, [0.1, 0.9])


def _alone_event(density: JointDensity, row: dict[str, Any]) -> Any:
    return _given(density, row, set(EVENT)).probability(EVENT)


def _alone_surprisal(density: JointDensity, row: dict[str, Any]) -> Any:
    return [_given(density, row, {name}).marginal(name).logpdf({name: value}) for name, value in row.items()]


def _alone_contributions(density: JointDensity, row: dict[str, Any]) -> Any:
    return [_given(density, row, {TARGET, name}).marginal(TARGET).mean() for name in row if name != TARGET]


def _explained(density: JointDensity, table: dict[str, np.ndarray]) -> None:
    for row in zip(*_rows(table, N_LOOPED).values(), strict=True):
        density.explain(dict(zip(table, row, strict=True)))


ANSWERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "predict": (lambda f, X: f.predict(TARGET, X), lambda f, row: _given(f, row, {TARGET}).marginal(TARGET).mean()),
    "interval": (lambda f, X: f.predict(TARGET, X, interval=0.8), _alone_interval),
    "P(event | row)": (lambda f, X: f.probability(EVENT, X), _alone_event),
    "surprisal": (lambda f, X: f.surprisal(X), _alone_surprisal),
    "contributions": (lambda f, X: f.contributions(TARGET, X), _alone_contributions),
}
# Answers that no loop over `condition` gives.
UNLOOPED: dict[str, Callable[..., Any]] = {
    "oddness": lambda f, X: f.oddness(X),
    f"explain, {N_LOOPED} rows one by one": _explained,
}
