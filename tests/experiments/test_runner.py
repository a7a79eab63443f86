"""Results are stored one by one: a kill loses none, no task runs twice, no stale result is used."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.experiments.toy import Lost, Toy

from jointwise.exceptions import DatasetError, FileFormatError, InputError, MissingDependencyError, UnknownNameError
from jointwise.experiments import EXPERIMENTS, Task, reproduce, runner, store
from jointwise.experiments.runner import command, default_folder, run, selected
from jointwise.experiments.store import Record, TaskStore

SCRIPT = Path(__file__).parent / "toy.py"


@pytest.fixture
def go(tmp_path):
    def go(toy, **options):
        return run(
            [toy], folder=tmp_path / "results", **{"quick": False, "command": "jointwise reproduce toy"} | options
        )

    return go


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path / "log")


def test_the_page_has_command_report_versions_and_no_paths(go, toy, tmp_path):
    text = go(toy).read_text()
    for part in ("`jointwise reproduce toy`", "## A toy", "Sum of squares: 5", "![toy](toy.svg)", "numpy 2.", "core"):
        assert part in text
    assert "quick run" not in text
    assert str(tmp_path) not in text


def test_a_second_run_runs_no_task(go, toy):
    first = go(toy).read_text()
    assert go(toy).read_text() == first
    assert toy.ran() == ["run task-0", "run task-1", "run task-2"]


def test_progress_counts_what_is_done(go, toy):
    calls = []
    go(toy, progress=lambda *call: calls.append(call))
    assert calls == [(0, 3, ""), (1, 3, "toy: task-0"), (2, 3, "toy: task-1"), (3, 3, "toy: task-2")]


def test_a_quick_run_is_smaller_and_says_so(go, toy):
    assert "quick run" in go(toy, quick=True).read_text()
    assert toy.ran() == ["run task-0"]


def test_other_settings_versions_or_code_are_computed_again(go, toy, tmp_path, monkeypatch):
    go(toy)
    go(Toy(tmp_path / "log", settings={"version": 2}))
    assert len(toy.ran()) == 6
    versions = dict(store.versions()) | {"numpy": "0.1"}
    monkeypatch.setattr(store, "versions", lambda: versions)
    go(Toy(tmp_path / "log", settings={"version": 2}))
    assert len(toy.ran()) == 9
    monkeypatch.setattr(store, "code_digest", lambda: "other")
    go(Toy(tmp_path / "log", settings={"version": 2}))
    assert len(toy.ran()) == 12


@pytest.mark.parametrize("content", [b"", b'{"format": "jointwise ta', b"\xff\xfe{}"])
def test_a_damaged_file_is_computed_again(go, toy, tmp_path, content):
    go(toy)
    (tmp_path / "results/tasks/toy/task-1.json").write_bytes(content)
    assert "Sum of squares: 5" in go(toy).read_text()
    assert toy.ran()[3:] == ["run task-1"]


@pytest.mark.parametrize("content", ["[]", "3", '{"square": 100}', '{"format": "another", "result": {}}'])
def test_a_foreign_file_is_refused_and_left_alone(go, toy, tmp_path, content):
    path = tmp_path / "results/tasks/toy/task-1.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(FileFormatError, match="was not written by `jointwise reproduce`"):
        go(toy)
    assert path.read_text() == content


def test_a_half_written_file_beside_its_place_is_not_a_result(go, toy, tmp_path):
    part = tmp_path / "results/tasks/toy/.jointwise-0123456789abcdef"
    part.parent.mkdir(parents=True)
    part.write_text('{"format": "jointwise task result", "resu')
    go(toy)
    assert len(toy.ran()) == 3


def test_a_failing_task_keeps_earlier_results(go, toy, monkeypatch):
    failing = Toy(toy.log)
    monkeypatch.setattr(failing, "_run", lambda i: 1 / (1 - i) and Toy._run(failing, i))
    with pytest.raises(ZeroDivisionError):
        go(failing)
    go(toy)
    assert toy.ran() == ["run task-0", "run task-1", "run task-2"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_experiment_without_its_data_is_left_out_and_reported(tmp_path, n_jobs):
    """The others are on the page; the error is raised after it is written."""
    here, lost = Toy(tmp_path / "log"), Lost(tmp_path / "lost")
    with pytest.raises(DatasetError, match=r"README.md is written, but without lost: No seeds here"):
        run([here, lost], quick=False, folder=tmp_path / "results", command="jointwise reproduce all", n_jobs=n_jobs)
    text = (tmp_path / "results" / "README.md").read_text()
    assert "Sum of squares: 5" in text
    assert "**Not run:** a data set was not available" in text


def test_results_are_equal_at_once_and_after_reading(tmp_path):
    tasks = TaskStore(tmp_path, "toy")
    task = Task("a", dict, {"sizes": (1, 2)})
    tasks.save(task, Record({"D": float("inf"), "x": [0.1 + 0.2]}, 1.5, "2020-01-01"))
    assert tasks.load(task) == Record({"D": float("inf"), "x": [0.1 + 0.2]}, 1.5, "2020-01-01")
    assert tasks.load(Task("a", dict, {"sizes": (1, 3)})) is None


@pytest.mark.parametrize("key", ["", "a/b", "a b", "../a", "é"])
def test_keys_that_cannot_name_a_file_are_refused(tmp_path, key):
    with pytest.raises(InputError, match="cannot name a file"):
        TaskStore(tmp_path, "toy").path(Task(key, dict))


def test_the_code_digest_leaves_out_what_only_shows_results(monkeypatch):
    everything = store.code_digest.__wrapped__()
    monkeypatch.setattr(store, "PARTS_WITHOUT_RESULTS", ())
    assert store.code_digest.__wrapped__() != everything == store.code_digest()


def test_names_and_folders():
    experiments = {"a": 1, "b": 2, "c": 3}
    assert selected("all", experiments) == [1, 2, 3]
    assert selected(["c", "a"], experiments) == [1, 3]
    for wrong in ("d", [], ["a", "d"]):
        with pytest.raises(UnknownNameError, match=r"There is no experiment .*; there are a, b, c, and all"):
            selected(wrong, experiments)
    assert command(["a", "b"], quick=True) == "jointwise reproduce a b --quick"
    assert default_folder(quick=True, everything=True) == Path("out/results-quick")
    assert default_folder(quick=False, everything=True) == Path("docs/results")
    assert default_folder(quick=False, everything=False) == Path("out/results")
    with pytest.raises(UnknownNameError):
        reproduce("no such", quick=True)


def test_without_matplotlib_nothing_is_started(monkeypatch):
    monkeypatch.setattr(runner, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"jointwise\[plot\]"):
        reproduce("laplacians", quick=True)


def test_every_experiment_has_distinct_tasks_with_settings():
    for name, experiment in EXPERIMENTS.items():
        assert name == experiment.name
        for quick in (False, True):
            tasks = experiment.tasks(quick=quick)
            assert len({task.key for task in tasks}) == len(tasks) > 0
            assert all(task.settings for task in tasks)


@pytest.mark.parametrize(
    ("n_jobs", "kills"),
    [(2, [5]), pytest.param(1, [3, 9], marks=pytest.mark.slow), pytest.param(2, [3, 9, 16], marks=pytest.mark.slow)],
)
def test_a_kill_loses_nothing_and_nothing_is_done_twice(tmp_path, n_jobs, kills):
    """The run, with results of 0.2 MB each, is killed at arbitrary moments, then left to finish."""
    results, log, n = tmp_path / "results", tmp_path / "log", 40  # more than all kills can interrupt
    for kill_after in (*kills, None):
        kept, lines_before = finished(results), len(Toy(log).ran())
        promised, returncode = run_until(kill_after, results, log, n, n_jobs)
        assert returncode == (0 if kill_after is None else -signal.SIGKILL)
        # every result reported as done is there, whole
        assert finished(results) >= promised | kept
        # no stored task has run again
        assert not kept & {line.removeprefix("run ") for line in Toy(log).ran()[lines_before:]}
    ran = Toy(log).ran()
    assert set(ran) == {f"run task-{i}" for i in range(n)}
    assert len(ran) <= n + len(kills) * n_jobs  # a kill costs at most the tasks running
    assert f"Sum of squares: {sum(i * i for i in range(n))}" in (results / "README.md").read_text()


def run_until(kill_after, results, log, n, n_jobs):
    """Run the toy in its own process and kill it after `kill_after` tasks; return the tasks done and the exit code."""
    promised = set()
    arguments = [sys.executable, SCRIPT, results, log, str(n), "0.02", str(n_jobs)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:  # continues after the kill with what is left in the pipe
            promised |= set(line.split()[1:])
            if len(promised) == kill_after:
                process.kill()
    return promised, process.returncode


def finished(results):
    """Return the keys of the results on disk, after checking that each is whole."""
    files = (results / "tasks/toy").glob("*.json")
    records = [json.loads(file.read_text()) for file in files]
    assert all(len(record["result"]["padding"]) == 200_000 for record in records)
    return {record["key"] for record in records}
