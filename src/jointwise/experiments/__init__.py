"""The paper's experiments, run by one call or one command: :func:`reproduce`.

An :class:`Experiment` lists :class:`Task` objects and reports their results; :data:`EXPERIMENTS` holds all experiments
by name. Results are stored task by task, so a run that was killed continues where it stopped.
"""

from jointwise.experiments.base import Experiment, Task
from jointwise.experiments.registry import EXPERIMENTS
from jointwise.experiments.runner import reproduce

__all__ = ["EXPERIMENTS", "Experiment", "Task", "reproduce"]
