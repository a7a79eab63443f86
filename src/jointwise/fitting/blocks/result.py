"""BlockFit: what a fit of Gaussian blocks returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.fitting.blocks.choice import BlockChoice
from jointwise.fitting.blocks.design import Design
from jointwise.fitting.blocks.options import BlockOptions
from jointwise.fitting.result import Ended
from jointwise.joint.density import JointDensity
from jointwise.solvers import Solution


@dataclass(frozen=True)
class BlockFit(Ended):
    """A fitted density, what was chosen for it, and how each stage of the fit went.

    Parameters
    ----------
    density : JointDensity
    options : BlockOptions
        What was asked for.
    choice : BlockChoice
        What was chosen.
    axes : tuple of Axis
        The bins on which it was fitted.
    n_rows : float
        Number of rows, or the sum of their weights.
    stages : mapping of str to Solution
        In the order they ran.
    final : tuple of Solution
        Those whose answer the density is, or is the average of.
    design : Design
        The columns of the block with their warps, and why other columns are not in it.
    level_counts : mapping of str to array of shape (n_levels,)
        Rows at each level of each categorical column.
    """

    density: JointDensity
    options: BlockOptions
    choice: BlockChoice
    axes: tuple[Axis, ...]
    n_rows: float
    stages: Mapping[str, Solution[Any]]
    final: tuple[Solution[Any], ...]
    design: Design
    level_counts: Mapping[str, FloatArray]
