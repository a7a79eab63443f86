"""Runs experiments, a task at a time, and writes the page of their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from jointwise.exceptions import UnknownNameError
from jointwise.experiments.base import Experiment, Task
from jointwise.experiments.page import Section, page
from jointwise.experiments.registry import EXPERIMENTS
from jointwise.experiments.store import Record, TaskStore, as_json, write_atomically

# Takes the number of tasks done, of all tasks, and the task that is next ("" at the end).
Progress: TypeAlias = Callable[[int, int, str], None]


def reproduce(
    names: str | Sequence[str] = "all",
    *,
    quick: bool = False,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Run experiments and write the page of their results.

    Every task's result is kept as soon as it is there, in ``tasks/<experiment>/<key>.json`` of the folder. After a kill
    the same call goes on where the last one ended. A result is computed anew if its settings, the versions of the
    packages or the code have changed; to compute all of them anew, remove the folder.

    Parameters
    ----------
    names : "all", the name of an experiment, or several
    quick : bool
        Fewer and smaller tasks, to see in minutes that all is in order; the numbers are rough.
    folder : path, optional
        Where page, figures and results go. By default ``docs/results`` for all experiments, ``out/results`` for some,
        and ``out/results-quick`` for quick runs, in the current folder.
    progress : callable, optional
        Called with the number of tasks done, the number of tasks, and the name of the next, before each task and at
        the end. What is counted as done is on the disk.

    Returns
    -------
    Path
        The page, ``README.md`` in the folder.
    """
    chosen = selected(names, EXPERIMENTS)
    everything = len(chosen) == len(EXPERIMENTS)
    return run(
        chosen,
        quick=quick,
        folder=default_folder(quick=quick, everything=everything) if folder is None else Path(folder),
        command=command(["all"] if everything else [experiment.name for experiment in chosen], quick=quick),
        progress=progress,
    )


def selected(names: str | Sequence[str], experiments: Mapping[str, Experiment]) -> list[Experiment]:
    """Experiments of these names, in the order of the registry."""
    asked = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in asked if name not in experiments and name != "all"]
    if unknown or not asked:
        raise UnknownNameError(
            f"There is no experiment {', '.join(map(repr, unknown)) or 'in an empty list'}; there are "
            f"{', '.join(experiments)}, and all."
        )
    return [experiment for name, experiment in experiments.items() if name in asked or "all" in asked]


def default_folder(*, quick: bool, everything: bool) -> Path:
    """Folder of the results if none is given."""
    if quick:
        return Path("out/results-quick")
    return Path("docs/results") if everything else Path("out/results")


def command(names: Sequence[str], *, quick: bool) -> str:
    """Command line that does the same."""
    return " ".join(["jointwise", "reproduce", *names, *(["--quick"] if quick else [])])


def run(
    experiments: Sequence[Experiment], *, quick: bool, folder: Path, command: str, progress: Progress | None = None
) -> Path:
    """Do the tasks that are not done yet, then write figures and page."""
    plan = [(experiment, experiment.tasks(quick=quick)) for experiment in experiments]
    report_progress = progress or (lambda _done, _total, _name: None)
    total, done = sum(len(tasks) for _, tasks in plan), 0
    records: list[dict[str, Record]] = []
    for experiment, tasks in plan:
        store = TaskStore(folder / "tasks", experiment.name)
        found: dict[str, Record] = {}
        for task in tasks:
            report_progress(done, total, f"{experiment.name}: {task.key}")
            found[task.key] = store.load(task) or _do(task, store)
            done += 1
        records.append(found)
    report_progress(done, total, "")
    sections = [_section(experiment, found, folder) for (experiment, _), found in zip(plan, records, strict=True)]
    target = folder / "README.md"
    write_atomically(target, page(sections, command=command, quick=quick))
    return target


def _do(task: Task, store: TaskStore) -> Record:
    store.path(task)  # a key that cannot be kept is refused before the work, not after it
    start = time.perf_counter()
    result = as_json(task.run())
    seconds = time.perf_counter() - start
    record = Record(result, seconds, datetime.now(UTC).isoformat(timespec="seconds"))
    store.save(task, record)
    return record


def _section(experiment: Experiment, records: Mapping[str, Record], folder: Path) -> Section:
    text = experiment.report({key: record.result for key, record in records.items()}, folder)
    dates = [record.date for record in records.values()]
    return Section(experiment.name, experiment.title, text, sum(r.seconds for r in records.values()), max(dates))
