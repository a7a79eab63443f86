"""What an experiment is: tasks that are run one by one, and a report made of their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Result = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One piece of an experiment, done in one go and then kept.

    Parameters
    ----------
    key : str
        Name within the experiment; letters, digits, ``.``, ``_``, ``-`` and ``+``, since it names a file.
    run : callable
        Computes the result: a dict that JSON can hold.
    settings : mapping
        All that the result depends on: sizes, seeds, options, and a version to raise when the code of the task itself
        changes. A stored result of other settings is not used again. JSON must be able to hold it.

    Examples
    --------
    >>> Task("n500-seed0", lambda: {"D": 0.25}, {"n": 500, "seed": 0}).run()
    {'D': 0.25}
    """

    key: str
    run: Callable[[], Result]
    settings: Mapping[str, Any] = field(default_factory=dict)


class Experiment(ABC):
    """A table or figure of the results page: what to compute, and how to tell it.

    Attributes
    ----------
    name : str
        On the command line, and the folder of its results.
    title : str
        Heading of its section.
    """

    name: str
    title: str

    @abstractmethod
    def tasks(self, *, quick: bool) -> list[Task]:
        """Tasks in the order they are run; fewer or smaller ones if `quick`."""

    @abstractmethod
    def report(self, results: Mapping[str, Result], folder: Path) -> str:
        """Markdown below the heading; figures are written into `folder` under names that start with the experiment's.

        Parameters
        ----------
        results : mapping of task keys to results, in the order of the tasks
        folder : Path
            Where the page is; figures are linked by their bare names.
        """
