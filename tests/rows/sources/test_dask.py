"""A Dask DataFrame gives the model of the frame in memory, even if workers are lost."""

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import pytest
from tests.rows.sources.cluster_cases import (
    Killer,
    assert_same_model,
    assert_same_table,
    assert_weighs,
    cut,
    hold,
    in_parts,
    mixed_frame,
    model,
    stack,
)

from jointwise.exceptions import ClusterError, InputError
from jointwise.rows.sources import dask_frame as dask_frame_module
from jointwise.rows.sources import find_source
from jointwise.rows.sources.dask_frame import DaskSource

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(autouse=True)
def columns_as_they_are():
    """Dask would turn dates kept as Python objects into text."""
    with dask.config.set({"dataframe.convert-string": False}):
        yield


@pytest.fixture(params=["synchronous", "threads"])
def local(request):
    with dask.config.set(scheduler=request.param):
        yield


def dask_frame(frame, places=(0, 150, 150, 400)):
    """Partitions of unequal lengths, two without rows, with unknown divisions."""
    return dd.from_delayed([dask.delayed(part) for part in cut(frame, places)], meta=frame.iloc[:0], verify_meta=False)


def test_a_dask_frame_is_found_by_its_type():
    assert isinstance(find_source(dask_frame(mixed_frame(9), ())), DaskSource)


def test_the_table_is_that_in_memory(local):
    frame = mixed_frame()
    assert_same_table(find_source(dask_frame(frame)), frame)


def test_the_model_is_that_of_the_frame_in_memory(local):
    frame = mixed_frame()
    expected, found = model(frame), model(dask_frame(frame))
    assert_same_model(found, expected)
    assert found.feature_names_in_.tolist() == list(frame.columns)
    assert isinstance(found.sample(3), pd.DataFrame)


@pytest.mark.parametrize("settings", [{}, {"method": "pairs"}])
def test_a_fit_where_the_rows_lie_is_the_same_to_rounding(monkeypatch, local, settings):
    in_parts(monkeypatch)
    frame = mixed_frame()
    expected, found = model(frame, **settings), model(dask_frame(frame), **settings)
    np.testing.assert_allclose(found.score_samples(frame), expected.score_samples(frame), atol=1e-6)


def test_the_stack_is_that_of_the_frame_in_memory(local):
    frame = mixed_frame()
    expected, found = stack(frame), stack(dask_frame(frame))
    assert found.expert_weights_ == expected.expert_weights_
    assert np.array_equal(found.score_samples(frame), expected.score_samples(frame))


def test_a_stack_fitted_where_the_rows_lie_is_the_same_to_rounding(monkeypatch, local):
    in_parts(monkeypatch)
    frame = mixed_frame()
    expected, found = stack(frame), stack(dask_frame(frame))
    np.testing.assert_allclose(found.score_samples(frame), expected.score_samples(frame), atol=1e-6)


def test_a_column_may_weigh_the_rows(monkeypatch, local):
    assert_weighs(dask_frame, mixed_frame(), where="here")
    in_parts(monkeypatch)
    assert_weighs(dask_frame, mixed_frame(), where="there")


def test_repartitioning_changes_nothing(local):
    whole = dask_frame(mixed_frame())
    assert_same_model(model(whole), model(whole.repartition(npartitions=2)))


def test_categories_may_differ_between_partitions(local):
    parts = [pd.DataFrame({"c": pd.Categorical(labels), "x": np.arange(3.0)}) for labels in (list("aba"), list("cbc"))]
    frame = dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0], verify_meta=False)
    schema = find_source(frame).profile().schema()
    assert schema["c"].categories == ("a", "b", "c")
    assert np.isfinite(model(frame, n_components=2).score_samples(pd.DataFrame({"c": ["a"], "x": [1.0]}))).all()


def test_an_error_in_a_task_comes_out_as_itself(local):
    frame = mixed_frame(40)
    frame["number"] = np.inf
    with pytest.raises(InputError, match="column 'number' must hold finite numbers"):
        model(dask_frame(frame, (20,)))


def test_no_rows_is_no_table(local):
    with pytest.raises(InputError, match="0 sample"):
        model(dask_frame(mixed_frame(4).iloc[:0], ()))


def test_a_result_that_comes_late_is_waited_for_and_its_error_is_its_own():
    class Late:
        status = "pending"
        calls = 0

        def result(self, timeout=None):
            self.calls += 1
            if self.calls == 1:
                self.status = "finished"  # finished after the timeout, before the status is read
                raise TimeoutError
            return 7

    class Failed:
        status = "error"

        def result(self, timeout=None):
            raise TimeoutError("of the task" if timeout is None else "of the wait")

    cluster = dask_frame_module._Cluster()
    cluster._client = type("Client", (), {"status": "running"})
    assert cluster._result(Late()) == 7
    with pytest.raises(TimeoutError, match="of the task"):
        cluster._result(Failed())


def test_parts_that_end_their_workers_are_explained():
    distributed = pytest.importorskip("distributed")
    with (
        pytest.raises(ClusterError, match=r"4 Dask workers ended .*repartition"),
        dask_frame_module._Cluster()._explained(),
    ):
        raise distributed.KilledWorker("codes", None, 3)


# A real cluster: two worker processes that may be killed.

REAL = pytest.mark.clusters


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    distributed = pytest.importorskip("distributed")
    cluster.scale(2)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def held_keys(client):
    """Keys of the values that workers keep."""
    for _ in range(100):
        found = [key for keys in client.has_what().values() for key in keys]
        if not found:
            break
        time.sleep(0.05)
    return found


class TestCluster:
    pytestmark = REAL

    def test_workers_give_the_table_in_memory(self, client):
        frame = mixed_frame()
        assert_same_table(find_source(dask_frame(frame)), frame)

    def test_workers_give_the_model_in_memory(self, monkeypatch, client):
        frame = mixed_frame()
        assert_same_model(model(dask_frame(frame)), model(frame))
        in_parts(monkeypatch)
        expected, found = model(frame), model(dask_frame(frame))
        np.testing.assert_allclose(found.score_samples(frame), expected.score_samples(frame), atol=1e-6)
        assert not held_keys(client)

    @pytest.mark.parametrize(
        ("gate", "settings"),
        [
            (("jointwise.marginals.profile", "read_table"), {}),
            (("jointwise.rows.coded", "code_table"), {}),
            (("jointwise.marginals.pairwise", "pair_counts"), {"method": "pairs"}),
            (("jointwise.rows.parted", "posterior_engine", 20), {}),
        ],
        ids=["profile", "codes", "pair counts", "EM"],
    )
    def test_a_killed_worker_leaves_the_model_as_it_is(self, monkeypatch, client, tmp_path, gate, settings):
        in_parts(monkeypatch)
        frame = dask_frame(mixed_frame())
        expected = model(frame, **settings)
        module, name, *passes = gate
        client.run(hold, module, name, str(tmp_path), *passes)
        killer = Killer(tmp_path)
        found = model(frame, **settings)
        assert killer.killed is not None
        assert_same_model(found, expected)

    def test_an_error_in_a_worker_comes_out_as_itself_and_leaves_nothing(self, monkeypatch, client):
        in_parts(monkeypatch)
        frame = mixed_frame(40)
        source = find_source(dask_frame(frame, (20,)))
        profile = source.profile()
        schema = profile.schema()
        strange = find_source(dask_frame(frame.assign(number="word"), (20,)))
        with (
            pytest.raises(InputError, match="number") as told,
            strange.coded(schema, profile.axes(schema, 8), None) as rows,
        ):
            rows.pairs()
        assert "\n" not in str(told.value)
        del told
        assert not held_keys(client)

    def test_codes_are_forgotten_after_an_error(self, client):
        frame = mixed_frame(40)
        source = find_source(dask_frame(frame, (20,)))
        profile = source.profile()
        schema = profile.schema()
        kept = []

        def broken():
            with source.coded(schema, profile.axes(schema, 8), None) as rows:
                assert len(rows) == 40
                kept.append(rows)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            broken()
        assert not held_keys(client)


@contextmanager
def processes(folder):
    """Yield a scheduler's process and its file, with one worker; both end with the context."""
    place = folder / "scheduler.json"
    alone = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--no-show"]
    path = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    quiet = {"env": path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen([*alone, "--scheduler-file", str(place)], **quiet)]
    try:
        for _ in range(600):
            if place.exists() and place.stat().st_size:
                break
            time.sleep(0.05)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard", "--nworkers", "1"]
        started.append(subprocess.Popen([*worker, "--scheduler-file", str(place)], **quiet))
        yield started[0], str(place)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
            process.kill()
            process.wait()


class SchedulerKiller(threading.Thread):
    """Kill the scheduler once a worker reaches a gate, and let the worker continue."""

    def __init__(self, folder, scheduler):
        super().__init__(daemon=True)
        self.folder, self.scheduler = folder, scheduler

    def run(self):
        for _ in range(600):
            if any(self.folder.glob("at-*")):
                break
            time.sleep(0.05)
        self.scheduler.kill()
        (self.folder / "killed").touch()


class TestLostScheduler:
    pytestmark = REAL

    @pytest.mark.parametrize("moment", ["during a pass", "between passes"])
    def test_a_lost_scheduler_is_one_error_soon(self, tmp_path, moment):
        distributed = pytest.importorskip("distributed")
        frame = mixed_frame(40)
        with processes(tmp_path) as (scheduler, place), distributed.Client(scheduler_file=place, timeout=10) as client:
            client.wait_for_workers(1, timeout=60)
            source = find_source(dask_frame(frame, (20,)))
            profile = source.profile()
            schema = profile.schema()

            def fit():
                with source.coded(schema, profile.axes(schema, 8), None) as rows:
                    assert len(rows) == 40
                    if moment == "between passes":
                        scheduler.kill()
                        scheduler.wait()
                    else:
                        client.run(hold, "jointwise.marginals.pairwise", "pair_counts", str(tmp_path))
                        watcher.start()
                    rows.pairs()

            watcher = SchedulerKiller(tmp_path, scheduler)
            start = time.monotonic()
            with pytest.raises(ClusterError, match="scheduler was lost") as told:
                fit()
            assert time.monotonic() - start < 30
            assert "\n" not in str(told.value)
