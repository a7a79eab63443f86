"""The paper's experiments, to be run again by one call or one command: :func:`reproduce`.

An :class:`Experiment` lists :class:`Task` objects and tells their results; :data:`EXPERIMENTS` holds all of them by
name. Results are kept task by task, so a run that was killed goes on where it ended.
"""

from jointwise.experiments.base import Experiment, Task
from jointwise.experiments.registry import EXPERIMENTS
from jointwise.experiments.runner import reproduce

__all__ = ["EXPERIMENTS", "Experiment", "Task", "reproduce"]
