"""The experiments by name, in the order of the page."""

from __future__ import annotations

from jointwise.experiments import (
    classification,
    conditional,
    gaussians,
    hybrid,
    laplacians,
    laplacians_gaussians,
    samples,
)
from jointwise.experiments.base import Experiment

_IN_ORDER: tuple[Experiment, ...] = (
    laplacians.EXPERIMENT,
    gaussians.EXPERIMENT,
    laplacians_gaussians.EXPERIMENT,
    hybrid.EXPERIMENT,
    classification.EXPERIMENT,
    samples.EXPERIMENT,
    conditional.EXPERIMENT,
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _IN_ORDER}
