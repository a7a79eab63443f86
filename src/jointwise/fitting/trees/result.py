"""TreeFit: what a fit of a mixture of trees returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.fitting.result import Ended
from jointwise.fitting.trees.choice import TreeChoice
from jointwise.fitting.trees.options import TreeOptions
from jointwise.joint.density import JointDensity
from jointwise.solvers import Solution


@dataclass(frozen=True)
class TreeFit(Ended):
    """A fitted density, what was chosen for it, and how each stage of the fit went.

    Parameters
    ----------
    density : JointDensity
    options : TreeOptions
        What was asked for.
    choice : TreeChoice
        What was chosen.
    axes : tuple of Axis
        The bins that are states, or that atoms are laws of, by column of the density.
    n_rows : float
        Number of rows, or the sum of their weights.
    stages : mapping of str to Solution
        In the order they ran.
    final : tuple of Solution
        Those whose answer the density is, or is the average of.
    level_counts : mapping of str to array of shape (n_levels,)
        Rows at each level of each categorical column.
    n_states : tuple of int
        States by column of the density.
    """

    density: JointDensity
    options: TreeOptions
    choice: TreeChoice
    axes: tuple[Axis, ...]
    n_rows: float
    stages: Mapping[str, Solution[Any]]
    final: tuple[Solution[Any], ...]
    level_counts: Mapping[str, FloatArray]
    n_states: tuple[int, ...]
