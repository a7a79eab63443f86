"""Distances told: which is below which, as a table and as a figure. Every word about order is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jointwise._typing import FloatArray
from jointwise.experiments.page import markdown_table

PAPER = "JUPAD as in the paper"
DEFAULT = "JUPAD()"
CPD = "CPD-3"
MIXTURES = "best GMM"
INDEPENDENCE = "independence"
# In tables and figures.
ORDER = (DEFAULT, PAPER, CPD, MIXTURES, INDEPENDENCE)


@dataclass(frozen=True)
class Measurement:
    """Distance D of one method from one truth, from n rows.

    Parameters
    ----------
    method : str
    n, seed : int
        Number of rows, and the seed of the truth.
    D : float
    seconds : float
        To fit.
    """

    method: str
    n: int
    seed: int
    D: float
    seconds: float


@dataclass(frozen=True)
class Claim:
    """One method is expected below others for some numbers of rows.

    Parameters
    ----------
    method : str
    rivals : sequence of str
    smallest, largest : int or None
        Numbers of rows between which it is expected; None is no bound.
    """

    method: str
    rivals: Sequence[str]
    smallest: int | None = None
    largest: int | None = None

    def __str__(self) -> str:
        if self.smallest is not None:
            where = f"from N_s = {self.smallest:,} on"
        else:
            where = "at every N_s" if self.largest is None else f"up to N_s = {self.largest:,}"
        return f"{self.method} below {_and(self.rivals)} {where}"

    def covers(self, n: int) -> bool:
        """Whether the claim is about this number of rows."""
        return (self.smallest or 0) <= n and (self.largest is None or n <= self.largest)


def best_mixtures(found: Sequence[Measurement]) -> list[Measurement]:
    """The Gaussian mixture closest to each truth at each number of rows; its seconds are those of all tried."""
    cells: dict[tuple[int, int], list[Measurement]] = {}
    for m in found:
        if m.method.startswith("GMM-"):
            cells.setdefault((m.n, m.seed), []).append(m)
    return [
        replace(min(tried, key=lambda m: m.D), method=MIXTURES, seconds=sum(m.seconds for m in tried))
        for tried in cells.values()
    ]


def verdicts(claims: Sequence[Claim], found: Sequence[Measurement]) -> str:
    """A line for each claim: whether it holds for the means over the truths, and the exceptions."""
    return "\n".join(_verdict(claim, found) for claim in claims)


def _verdict(claim: Claim, found: Sequence[Measurement]) -> str:
    cells = [(rival, n) for n in _sizes(found) if claim.covers(n) for rival in claim.rivals]
    gaps = {cell: _gap(found, claim.method, *cell) for cell in cells}
    wrong = [cell for cell in cells if not gaps[cell].mean() < 0]
    if not wrong:
        rival, n = max(cells, key=lambda cell: gaps[cell].mean())
        return f"- **Holds:** {claim}. The closest: {_compared(found, claim.method, rival, n)}."
    exceptions = "; ".join(_compared(found, claim.method, *cell) for cell in wrong)
    return f"- **Does not hold** in {len(wrong)} of {len(cells)} comparisons: {claim}. The exceptions: {exceptions}."


def above_independence(found: Sequence[Measurement]) -> str:
    """A line that tells where the independence of all variables is closer to the truth than a method."""
    sizes = _sizes(found)
    worse = {
        method: [f"{n:,}" for n in sizes if _gap(found, method, INDEPENDENCE, n).mean() >= 0]
        for method in ORDER
        if method != INDEPENDENCE
    }
    told = [f"{method} at N_s = {_and(where)}" for method, where in worse.items() if where]
    if not told:
        return "- No method is above independence anywhere."
    return f"- Above independence, which knows nothing of how the variables hang together: {'; '.join(told)}."


def _gap(found: Sequence[Measurement], method: str, rival: str, n: int) -> FloatArray:
    """Differences of D, truth by truth."""
    return _distances(found, method, n) - _distances(found, rival, n)


def _compared(found: Sequence[Measurement], method: str, rival: str, n: int) -> str:
    ours, theirs = (_distances(found, each, n).mean() for each in (method, rival))
    difference = _with_error(_gap(found, method, rival, n), sign="+")
    return f"{ours:.3f} against {theirs:.3f} of {rival} at N_s = {n:,} (difference {difference})"


def distance_table(found: Sequence[Measurement]) -> str:
    """D of each method at each number of rows, the lowest in bold, and the seconds at the most rows."""
    sizes = _sizes(found)
    lowest = {n: min(ORDER, key=lambda method: _distances(found, method, n).mean()) for n in sizes}
    rows = []
    for method in ORDER:
        cells = {_column(n): _with_error(_distances(found, method, n)) for n in sizes}
        cells |= {_column(n): f"**{cells[_column(n)]}**" for n in sizes if lowest[n] == method}
        seconds = np.mean([m.seconds for m in found if m.method == method and m.n == sizes[-1]])
        rows.append({"D": method} | cells | {f"seconds at {sizes[-1]:,}": f"{seconds:.1f}"})
    return markdown_table(rows)


def mixture_table(found: Sequence[Measurement]) -> str:
    """D of each number of clusters, folded away; cells that some truths are missing from say so."""
    methods = sorted({m.method for m in found if m.method.startswith("GMM-")}, key=lambda name: int(name[4:]))
    rows = [{"D": method} | {_column(n): _mixture_cell(found, method, n) for n in _sizes(found)} for method in methods]
    return (
        "<details><summary>Gaussian mixtures, one by one</summary>\n\n"
        f"{markdown_table(rows)}\n\n"
        "Empty where a covariance had failed or D had stopped falling for every truth; in parentheses the number of "
        "truths where it had not for all of them.\n\n</details>"
    )


def _mixture_cell(found: Sequence[Measurement], method: str, n: int) -> str:
    distances, everything = _distances(found, method, n), len({m.seed for m in found})
    if not len(distances):
        return ""
    return _with_error(distances) + (f" ({len(distances)})" if len(distances) < everything else "")


def draw(found: Sequence[Measurement], path: Path) -> None:
    """Write the figure of D against N_s."""
    from matplotlib.figure import Figure

    from jointwise.plots import plot_distances

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    rows = [
        {"method": m.method, "n": m.n, "D": m.D} for method in ORDER for m in found if m.method == method
    ]  # methods appear in this order
    plot_distances(rows, ax=figure.add_subplot())
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _distances(found: Sequence[Measurement], method: str, n: int) -> FloatArray:
    """D of one method at one number of rows, in the order of the truths."""
    cell = sorted((m.seed, m.D) for m in found if m.method == method and m.n == n)
    return np.array([distance for _, distance in cell])


def _sizes(found: Sequence[Measurement]) -> list[int]:
    return sorted({m.n for m in found})


def _column(n: int) -> str:
    return f"N_s = {n:,}"


def _with_error(values: FloatArray, sign: str = "") -> str:
    """Mean and its standard error, which one value has not."""
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}" if len(values) > 1 else ""
    return f"{values.mean():{sign}.3f}{error}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
