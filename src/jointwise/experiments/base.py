"""What an experiment is: tasks that run one by one, and a report of their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Result = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One piece of an experiment, run in one go and then stored.

    Parameters
    ----------
    key : str
        Name within the experiment, and of its file: letters, digits, ``.``, ``_``, ``-`` and ``+``.
    run : callable
        Computes the result, a dict that JSON can hold.
    settings : mapping
        Everything the result depends on: sizes, seeds, options, and a version to raise when the task's own code
        changes. A stored result is used again only for the same settings. JSON must be able to hold them.

    Examples
    --------
    >>> Task("n500-seed0", lambda: {"D": 0.25}, {"n": 500, "seed": 0}).run()
    {'D': 0.25}
    """

    key: str
    run: Callable[[], Result]
    settings: Mapping[str, Any] = field(default_factory=dict)


class Experiment(ABC):
    """A table or figure of the results page: what to compute, and how to report it.

    Attributes
    ----------
    name : str
        Name on the command line, and of the folder of its results.
    title : str
        Heading of its section.
    """

    name: str
    title: str

    @abstractmethod
    def tasks(self, *, quick: bool) -> list[Task]:
        """Return the tasks in the order they run; fewer or smaller ones if `quick`."""

    @abstractmethod
    def report(self, results: Mapping[str, Result], folder: Path) -> str:
        """Return the Markdown below the heading, and write figures into `folder`; their names start with `name`.

        Parameters
        ----------
        results : mapping of task keys to results, in the order of the tasks
        folder : Path
            Folder of the page; figures are linked by their bare names.
        """
