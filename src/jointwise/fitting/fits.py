"""The fits that a stack may hold, and those of several classes together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jointwise._typing import FloatArray
from jointwise.fitting.blocks import BlockFit, BlockOptions
from jointwise.fitting.options import Options
from jointwise.fitting.result import Ended, Fit
from jointwise.fitting.trees import TreeFit, TreeOptions
from jointwise.joint.density import JointDensity
from jointwise.solvers import Solution


@dataclass(frozen=True)
class ClassFit(Ended):
    """The fits of all classes.

    Parameters
    ----------
    density : JointDensity
        The sum of their densities, each with the share of its rows.
    fits : mapping of int to fit
        By the code of the class.
    level_counts : mapping of str to array
        Rows at each level of each categorical column, by name.
    """

    density: JointDensity
    fits: Mapping[int, Fit | BlockFit | TreeFit]
    level_counts: Mapping[str, FloatArray]

    @property
    def options(self) -> Options | BlockOptions | TreeOptions:
        """Options of the fits, the same for all classes."""
        return next(iter(self.fits.values())).options

    @property
    def stages(self) -> dict[str, Solution[Any]]:
        """How each stage of the fits went."""
        return {f"class {c}: {stage}": run for c, fit in self.fits.items() for stage, run in fit.stages.items()}

    @property
    def final(self) -> tuple[Solution[Any], ...]:  # type: ignore[override]  # a property here
        """The runs whose answers the densities of the classes are."""
        return tuple(run for fit in self.fits.values() for run in fit.final)


AnyFit = Fit | BlockFit | TreeFit | ClassFit
