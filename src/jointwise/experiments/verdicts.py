"""Claims about the distances, and whether the numbers bear them out. Every statement is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.experiments.distances import CONTROL, DEFAULT, INDEPENDENCE, METHODS, PAPER, Distances
from jointwise.experiments.page import with_error

# A rival and a number of rows.
Cell = tuple[str, int]


@dataclass(frozen=True)
class Claim:
    """One method is expected below others for some numbers of rows, by the mean over the truths.

    Parameters
    ----------
    method : str
    rivals : sequence of str
    smallest, largest : int or None
        Smallest and largest number of rows for which it is expected; None is no bound.

    Examples
    --------
    >>> print(Claim("A", ("B", "C", "D"), smallest=1000))
    A below B, C and D from N_s = 1,000 on
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

    def verdict(self, found: Distances) -> str:
        """Say whether it holds, with the closest rival or all exceptions and why; then the same beyond `largest`."""
        smallest, largest = self.smallest or 0, self.largest or np.inf
        cells = [(rival, n) for n in found.sizes if smallest <= n <= largest for rival in self.rivals]
        beyond = [(rival, n) for n in found.sizes if n > largest for rival in self.rivals]
        if not cells:
            return f"**Not tried:** {self}."
        wrong = self._exceptions(found, cells)
        if wrong:
            judged = f"**Does not hold** in {len(wrong)} of {len(cells)} comparisons: {self}. The exceptions: "
            judged += self._compared(found, wrong) + self._why(found, wrong)
        else:
            closest = max(cells, key=lambda cell: float(found.gap(self.method, *cell).mean()))
            judged = f"**Holds:** {self}. The closest: {self._compared(found, [closest])}"
        return judged + (self._beyond(found, beyond) if beyond else "")

    def _beyond(self, found: Distances, cells: Sequence[Cell]) -> str:
        wrong = self._exceptions(found, cells)
        if not wrong:
            return " It also holds for more rows."
        return f" For more rows it does not hold: {self._compared(found, wrong)}{self._why(found, wrong)}"

    def _exceptions(self, found: Distances, cells: Sequence[Cell]) -> list[Cell]:
        return [cell for cell in cells if not found.gap(self.method, *cell).mean() < 0]

    def _compared(self, found: Distances, cells: Sequence[Cell]) -> str:
        """Return the means side by side, and the mean difference over the truths with its standard error."""
        lines = [
            f"{found.mean(self.method, n):.3f} against {found.mean(rival, n):.3f} of {rival} at N_s = {n:,} "
            f"(difference {with_error(found.gap(self.method, rival, n), sign='+')})"
            for rival, n in cells
        ]
        return "; ".join(lines) + "."

    def _why(self, found: Distances, wrong: Sequence[Cell]) -> str:
        """Say whether the paper's method falls behind because of its atoms, by the control with the true atoms."""
        if self.method != PAPER:
            return ""
        reasons = []
        for n in sorted({n for _, n in wrong}):
            control = found.mean(CONTROL, n)
            ahead = all(control < found.mean(rival, at) for rival, at in wrong if at == n)
            reasons.append(
                f"at N_s = {n:,} it has {control:.3f} with the true atoms, and {DEFAULT}, from rows, "
                f"{found.mean(DEFAULT, n):.3f}: "
                + ("the atoms are the cause" if ahead else "the fit to pairs is the cause, not the atoms")
            )
        return f" Why: {'; '.join(reasons)}."


def verdicts(claims: Sequence[Claim], found: Distances) -> str:
    """Return a list with a line for each claim, and one about independence."""
    return "\n".join(f"- {line}" for line in [*(claim.verdict(found) for claim in claims), above_independence(found)])


def above_independence(found: Distances) -> str:
    """Say where independence is closer to the truth than a method."""
    above = []
    for method in METHODS:
        where = [f"{n:,}" for n in found.sizes if found.mean(method, n) > found.mean(INDEPENDENCE, n)]
        above += [f"{method} at N_s = {_and(where)}"] if where else []
    return f"Above independence: {'; '.join(above)}." if above else "No method is above independence anywhere."


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
