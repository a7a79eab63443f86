"""What counts on axes have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointwise._checks import listed
from jointwise._typing import CodeArray
from jointwise.axes import Axis
from jointwise.exceptions import InputError
from jointwise.tables.variables import Schema

MEMORY_LIMIT = 2 * 2**30  # most bytes of the counts


@dataclass(frozen=True, eq=False, repr=False)
class Marginals:
    """Counts of rows on the axes of a schema; those on equal axes add up. Subclasses say how `counts` is laid out."""

    schema: Schema
    axes: tuple[Axis, ...]
    counts: Any
    n_rows: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))
        object.__setattr__(self, "n_rows", float(self.n_rows))
        if len(self.axes) != len(self.schema):
            raise InputError(f"Expected {len(self.schema)} axes, one for each variable; got {len(self.axes)}.")

    def __hash__(self) -> int:
        return hash((self.schema, self.n_rows))

    def _check_addable(self, other: Marginals) -> None:
        """Raise if the other counts are of different variables or on different axes."""
        if self.schema != other.schema:
            raise InputError(
                "Counts of different schemas do not add; make one schema from the sum of the profiles: "
                f"{listed(self.schema.names)} and {listed(other.schema.names)}."
            )
        unequal = [v.name for v, a, b in zip(self.schema, self.axes, other.axes, strict=True) if a != b]
        if unequal:
            raise InputError(
                f"Counts on different axes do not add; the axes of {listed(unequal)} differ. Make one set of "
                "axes from the sum of the profiles."
            )


def check_codes(codes: CodeArray, n_bins: Sequence[int]) -> None:
    """Raise unless coded rows fit their axes."""
    fits = codes.ndim == 2 and codes.shape[1] == len(n_bins)
    if not fits or np.any(codes.max(axis=0, initial=0) > n_bins):
        raise InputError(
            f"`codes` must have {len(n_bins)} columns, each with codes up to its axis's `n_bins`; "
            f"got shape {codes.shape}."
        )
