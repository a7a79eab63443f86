"""Fit: what a fit returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jointwise.joint.density import JointDensity
from jointwise.solvers import Solution


@dataclass(frozen=True)
class Fit:
    """A fitted density and how each stage of the fit went.

    Parameters
    ----------
    density : JointDensity
    stages : mapping of str to Solution
        In the order they ran.
    final : tuple of Solution
        Those whose answer the density is, or is the average of; none where there was nothing to solve.
    gain : float, optional
        Log-likelihood of a row beyond that of independence, in nats; None where no rows were seen.
    """

    density: JointDensity
    stages: Mapping[str, Solution[Any]]
    final: tuple[Solution[Any], ...] = ()
    gain: float | None = None
