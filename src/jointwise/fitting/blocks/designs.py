"""Designs: a design for each set of rows that a fit meets, made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jointwise.axes import Axis
from jointwise.dictionary import Dictionary
from jointwise.fitting.blocks.design import Design
from jointwise.fitting.choice.folds import SMALL_TABLE
from jointwise.rows.base import Rows


class Designs:
    """The designs of one warp for the rows that a fit meets, some of them again and again.

    Those of small tables are kept as long as the fit lasts. Those of large tables take little of the time of a fit, and
    much memory.

    Parameters
    ----------
    warp : "none", "power", "log", "scores" or "joint"
    """

    def __init__(self, warp: str) -> None:
        self._warp = warp
        self._kept: list[tuple[Rows, Design]] = []

    def of(
        self,
        rows: Rows,
        coarse: Sequence[Axis],
        rng: np.random.Generator,
        known: Mapping[str, Dictionary] | None = None,
    ) -> Design:
        """Return the design for rows; see `Design.of`. The dictionaries that are known are the same in all calls."""
        found = next((design for met, design in self._kept if met is rows), None)
        if found is None:
            found = Design.of(rows, coarse, self._warp, rng, known)
            if len(rows) < SMALL_TABLE:
                self._kept.append((rows, found))
        return found
