"""Runs experiments task by task, and writes the page of their results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TypeAlias

from joblib import Parallel, delayed, parallel_config

from jointwise.exceptions import DatasetError, MissingDependencyError, UnknownNameError
from jointwise.experiments.base import Experiment, Task
from jointwise.experiments.page import Section, page
from jointwise.experiments.registry import EXPERIMENTS
from jointwise.experiments.store import Record, TaskStore, as_json, write_atomically

# Takes the number of tasks done, the number of all tasks, and the task done last ("" at the start).
Progress: TypeAlias = Callable[[int, int, str], None]


def reproduce(
    names: str | Sequence[str] = "all",
    *,
    quick: bool = False,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    n_jobs: int = -1,
) -> Path:
    """Run experiments and write the page of their results.

    Each result is stored as soon as it is computed, in ``tasks/<experiment>/<key>.json`` of the folder. After a kill
    the same call continues where the last one stopped. A result is computed again if its settings, the versions of the
    packages or the code have changed; to compute all of them again, remove the folder.

    Parameters
    ----------
    names : "all", the name of an experiment, or several
    quick : bool
        Fewer and smaller tasks, as a check that takes minutes; the numbers are rough.
    folder : path, optional
        Folder of page, figures and results. By default ``docs/results`` for all experiments, ``out/results`` for some,
        and ``out/results-quick`` for quick runs, in the current folder.
    progress : callable, optional
        Called with the number of tasks done, the number of all tasks, and the name of the one done last: at the start,
        with an empty name, and after each task. Results counted as done are on disk.
    n_jobs : int
        Processes that run tasks in parallel, each on one core; -1 is one for each core. It may change seconds, but no
        other number.

    Returns
    -------
    Path
        The page, ``README.md`` in the folder.
    """
    if find_spec("matplotlib") is None:  # before the work, not after it
        raise MissingDependencyError(
            "The figures need matplotlib, which is not installed: pip install 'jointwise[plot]'"
        )
    chosen = selected(names, EXPERIMENTS)
    everything = len(chosen) == len(EXPERIMENTS)
    return run(
        chosen,
        quick=quick,
        folder=default_folder(quick=quick, everything=everything) if folder is None else Path(folder),
        command=command(["all"] if everything else [experiment.name for experiment in chosen], quick=quick),
        progress=progress,
        n_jobs=n_jobs,
    )


def selected(names: str | Sequence[str], experiments: Mapping[str, Experiment]) -> list[Experiment]:
    """Return the experiments of these names, in the order of the registry."""
    asked = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in asked if name not in experiments and name != "all"]
    if unknown or not asked:
        raise UnknownNameError(
            f"There is no experiment {', '.join(map(repr, unknown)) or 'in an empty list'}; there are "
            f"{', '.join(experiments)}, and all."
        )
    return [experiment for name, experiment in experiments.items() if name in asked or "all" in asked]


def default_folder(*, quick: bool, everything: bool) -> Path:
    """Return the folder of the results if none is given."""
    if quick:
        return Path("out/results-quick")
    return Path("docs/results") if everything else Path("out/results")


def command(names: Sequence[str], *, quick: bool) -> str:
    """Return the command line that does the same."""
    return " ".join(["jointwise", "reproduce", *names, *(["--quick"] if quick else [])])


def run(
    experiments: Sequence[Experiment],
    *,
    quick: bool,
    folder: Path,
    command: str,
    progress: Progress | None = None,
    n_jobs: int = 1,
) -> Path:
    """Run the tasks that have no stored result, then write figures and page.

    An experiment whose data set is not available is left out and the page says so. The error is raised after the page
    is written.
    """
    plan = [
        (TaskStore(folder / "tasks", experiment.name), task)
        for experiment in experiments
        for task in experiment.tasks(quick=quick)
    ]
    stored = {(store.experiment, task.key): store.load(task) for store, task in plan}
    records = {key: record for key, record in stored.items() if record is not None}
    report_progress = progress or (lambda _done, _total, _name: None)
    report_progress(len(records), len(plan), "")
    pending = [(store, task) for store, task in plan if (store.experiment, task.key) not in records]
    unavailable: dict[str, DatasetError] = {}
    for store, task, record in _finished(pending, n_jobs):
        if isinstance(record, DatasetError):
            unavailable[store.experiment] = record
            continue
        records[store.experiment, task.key] = record
        report_progress(len(records), len(plan), f"{store.experiment}: {task.key}")
    sections = []
    for experiment in experiments:
        if experiment.name in unavailable:
            text = "**Not run:** a data set was not available; set JOINTWISE_DATA to a folder that has it."
            sections.append(Section(experiment.title, text, 0.0, _now()))
            continue
        own = {
            task.key: records[store.experiment, task.key] for store, task in plan if store.experiment == experiment.name
        }
        sections.append(_section(experiment, own, folder))
    target = folder / "README.md"
    write_atomically(target, page(sections, command=command, quick=quick))
    if unavailable:
        raise DatasetError(
            f"{target} is written, but without {' and '.join(unavailable)}: {next(iter(unavailable.values()))}"
        )
    return target


def _finished(
    pending: Sequence[tuple[TaskStore, Task]], n_jobs: int
) -> Iterator[tuple[TaskStore, Task, Record | DatasetError]]:
    """Yield tasks with their results as they finish; the results are on disk."""
    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        results = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")(
            delayed(_run_task)(i, store, task, os.getpid()) for i, (store, task) in enumerate(pending)
        )
        for i, record in results:
            yield *pending[i], record


def _run_task(i: int, store: TaskStore, task: Task, leader: int) -> tuple[int, Record | DatasetError]:
    """Run a task and store its result from the same process, so that no finished result is lost."""
    if os.getpid() != leader:
        _end_with(leader)
    start = time.perf_counter()
    try:
        result = as_json(task.run())
    except DatasetError as error:  # other tasks may need no data
        return i, DatasetError(str(error))  # without its cause, which cannot always be pickled
    record = Record(result, time.perf_counter() - start, _now())
    store.save(task, record)
    return i, record


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def _end_with(leader: int) -> None:
    """End this process soon after its leader ends, so that it does not disturb the next run."""

    def watch() -> None:
        while os.getppid() == leader:
            time.sleep(0.2)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _section(experiment: Experiment, records: Mapping[str, Record], folder: Path) -> Section:
    text = experiment.report({key: record.result for key, record in records.items()}, folder)
    dates = [record.date for record in records.values()]
    return Section(experiment.title, text, sum(r.seconds for r in records.values()), max(dates))
