"""Distances of several methods from several truths, as tables and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from jointwise._typing import FloatArray
from jointwise.experiments.page import markdown_table, save_figure, with_error

PAPER = "JUPAD as in the paper"
CONTROL = "JUPAD as in the paper, true atoms"
DEFAULT = "JUPAD()"
STACK = "JointEstimator()"
CPD = "CPD-3"
MIXTURES = "best GMM"
INDEPENDENCE = "independence"
# Methods in the order of tables and figures. The control is not compared; it is only the last row of the table.
METHODS = (DEFAULT, PAPER, CPD, MIXTURES, INDEPENDENCE)


@dataclass(frozen=True)
class Measurement:
    """Distance D of one method from one truth, fitted to n rows."""

    method: str
    n: int
    seed: int  # of the truth
    D: float
    seconds: float  # of the fit


@dataclass(frozen=True)
class Distances:
    """Distances of every method from the same truths at the same numbers of rows.

    The best Gaussian mixture is the one closest to each truth. Its D is infinite if none could be fitted, and its
    seconds are those of all mixtures tried.
    """

    measured: Sequence[Measurement]

    @cached_property
    def sizes(self) -> list[int]:
        """Numbers of rows, increasing."""
        return sorted({m.n for m in self.measured})

    @cached_property
    def seeds(self) -> list[int]:
        """Seeds of the truths, increasing."""
        return sorted({m.seed for m in self.measured})

    @cached_property
    def mixtures(self) -> list[str]:
        """Names of the Gaussian mixtures, by number of clusters."""
        names = {m.method for m in self.measured if m.method.startswith("GMM-")}
        return sorted(names, key=lambda name: int(name.removeprefix("GMM-")))

    def of(self, method: str, n: int) -> FloatArray:
        """Return D of one method, truth by truth."""
        if method == MIXTURES:
            return np.array([self._best_mixture(n, seed) for seed in self.seeds])
        found = {m.seed: m.D for m in self.measured if m.method == method and m.n == n}
        return np.array([found[seed] for seed in self.seeds if seed in found])

    def mean(self, method: str, n: int) -> float:
        """Return the mean D over the truths."""
        return float(self.of(method, n).mean())

    def gap(self, method: str, rival: str, n: int) -> FloatArray:
        """Return the differences of D of two methods, truth by truth."""
        with np.errstate(invalid="ignore"):  # two infinite distances differ by NaN, which is not below zero
            return np.asarray(self.of(method, n) - self.of(rival, n))

    def seconds(self, method: str, n: int) -> float:
        """Return the mean seconds of a fit."""
        names = self.mixtures if method == MIXTURES else [method]
        return sum(m.seconds for m in self.measured if m.method in names and m.n == n) / len(self.seeds)

    def _best_mixture(self, n: int, seed: int) -> float:
        tried = [m.D for m in self.measured if m.method in self.mixtures and m.n == n and m.seed == seed]
        return min(tried, default=np.inf)

    def table(self) -> str:
        """Return D of each method at each number of rows, the lowest in bold, and the seconds at the most rows."""
        lowest = {n: min(METHODS, key=lambda method: self.mean(method, n)) for n in self.sizes}
        most = self.sizes[-1]
        rows = []
        for method in (*METHODS, CONTROL):
            cells = {n: with_error(self.of(method, n)) for n in self.sizes}
            bold = {_column(n): f"**{cell}**" if lowest[n] == method else cell for n, cell in cells.items()}
            rows.append({"D": method} | bold | {f"seconds at {most:,}": f"{self.seconds(method, most):.1f}"})
        return markdown_table(rows)

    def mixture_table(self) -> str:
        """Return D of each number of clusters, folded away."""
        rows = [{"D": name} | {_column(n): self._mixture_cell(name, n) for n in self.sizes} for name in self.mixtures]
        if not rows:
            return "No Gaussian mixture could be fitted."
        return (
            "<details><summary>Gaussian mixtures, one by one</summary>\n\n"
            f"{markdown_table(rows)}\n\n"
            "A cell is empty if a covariance failed or D stopped falling before that number of clusters, for every "
            "truth. If that happened for some truths, the number of the others is in parentheses.\n\n</details>"
        )

    def _mixture_cell(self, name: str, n: int) -> str:
        values = self.of(name, n)
        if not len(values):
            return ""
        return with_error(values) + (f" ({len(values)})" if len(values) < len(self.seeds) else "")

    def draw(self, path: Path) -> None:
        """Write the figure of D against the number of rows."""
        from matplotlib.figure import Figure

        from jointwise.plots import plot_distances

        rows = [
            {"method": method, "n": n, "D": d} for method in METHODS for n in self.sizes for d in self.of(method, n)
        ]
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        plot_distances(rows, ax=figure.add_subplot())
        save_figure(figure, path)


def _column(n: int) -> str:
    return f"N_s = {n:,}"
