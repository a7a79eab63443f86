"""The experiments by name, in the order of the page."""

from __future__ import annotations

from jointwise.experiments import classification, conditional, samples, synthetic
from jointwise.experiments.base import Experiment

_IN_ORDER: tuple[Experiment, ...] = (
    *synthetic.FIGURE_1,
    classification.EXPERIMENT,
    samples.EXPERIMENT,
    conditional.EXPERIMENT,
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _IN_ORDER}
