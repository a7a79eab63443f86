"""Checkpoints: a fit stopped anywhere goes on from the last write and ends with the same model."""

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.estimators.cases import make_classifier, make_imputer

from jointwise import JUPAD, Dictionary, PairwiseMarginals, Profile
from jointwise.engines.compiled import CompiledEngine
from jointwise.exceptions import FileFormatError, InputError, StorageError
from jointwise.fitting import checkpoint, starts
from jointwise.fitting.checkpoint import FORM, Checkpoint
from jointwise.joint.serialization import write

FIT = {"parameters": {"n_components": 2}, "table": {"columns": "a", "rows": 5}}
# Every part of a fit: a search, two models with learned atoms, several starts.
FULL = {"n_components": 8, "n_models": 2, "learn_dictionary": True, "n_init": 2, "n_bins": 16, "random_state": 0}
# Nothing is chosen, and there is one start.
ATOMS = Dictionary.grid("gaussian", -5, 6, n=10, scale=1)
PLAIN = {
    "n_components": 3, "beta": 1.0, "n_init": 1, "random_state": 0, "learn_dictionary": False,
    "dictionaries": {"x": ATOMS, "y": ATOMS},
}  # fmt: skip


def rows(n=90, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n) < 0.5
    return {"x": rng.normal(size=n) + 3 * hidden, "y": rng.normal(size=n) - 2 * hidden, "c": np.where(hidden, "u", "v")}


def numbers(model):
    """Return all results of a fit as text."""
    mixture, stages = model.density_.mixture, getattr(model, "estimator_", model).stages_
    return json.dumps(
        [
            mixture.weights.tolist(),
            [b.tolist() for b in mixture.coefficients],
            [d.to_dict() for d in mixture.dictionaries],
            [[k, v.value.weights.tolist(), v.history.tolist(), v.message] for k, v in stages.items()],
            model.summary(),
        ],
        default=lambda array: array.tolist(),
    )


class Stopped(Exception):  # noqa: N818  (a stop, not an error)
    pass


class Watch:
    """Counts passes over rows, stops at one of them, and records when the checkpoint was written."""

    def __init__(self, monkeypatch):
        self.passes, self.stop_at, self.kept, self.at_write = 0, None, [], 0
        one_pass, keep, replace = CompiledEngine.posterior_counts, Checkpoint.keep, checkpoint.write

        def counted(engine, tables, mixing):
            if self.passes == self.stop_at:
                self.stop_at = None
                raise Stopped
            self.passes += 1
            return one_pass(engine, tables, mixing)

        def noted(own, stage, content, **options):
            self.kept.append((stage, "learned" in content, self.passes))
            keep(own, stage, content, **options)

        def written(*arguments):
            replace(*arguments)
            self.at_write = self.passes

        monkeypatch.setattr(CompiledEngine, "posterior_counts", counted)
        monkeypatch.setattr(Checkpoint, "keep", noted)
        monkeypatch.setattr(checkpoint, "write", written)

    def run(self, model, data, stop_at=None):
        """Fit, and return the number of passes; None if it was stopped."""
        self.passes, self.stop_at, self.kept = 0, stop_at, []
        try:
            model.fit(data)
        except Stopped:
            return None
        return self.passes


@pytest.fixture
def watch(monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    return Watch(monkeypatch)


@pytest.fixture(scope="module")
def whole():
    return numbers(JUPAD(**FULL).fit(rows()))


def places(kept, n_passes):
    """Return a pass inside each part of the fit, by name, from the records of a fit without a stop."""
    of = {
        (stage, learned): [at for s, l, at in kept if (s, l) == (stage, learned)]
        for stage, learned in {(s, l) for s, l, _ in kept}
    }
    return {
        "the first pass": 0,
        "in the search": of["search", False][len(of["search", False]) // 2] + 1,
        "in the starts of the first model": of["choice", False][0] + 1,
        "in the first model": of["model 1", False][len(of["model 1", False]) // 2],
        "learning the first model's atoms": of["model 1", True][len(of["model 1", True]) // 2] + 1,
        "between the models": of["model 1", True][-1] + 1,
        "in the last model": of["model 2", False][len(of["model 2", False]) // 2] + 1,
        "learning the last model's atoms": of["model 2", True][0] + 2,
        "the last pass": n_passes - 1,
    }


def test_a_fit_stopped_anywhere_goes_on_from_the_last_write_to_the_same_model(watch, whole, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model = JUPAD(**FULL, checkpoint=path)
    n_passes = watch.run(model, rows())
    assert numbers(model) == whole
    assert not path.exists()
    stops = places(watch.kept, n_passes)
    assert len(set(stops.values())) == len(stops)
    for place, stop_at in stops.items():
        assert watch.run(JUPAD(**FULL, checkpoint=path), rows(), stop_at) is None, place
        assert path.exists(), place
        done = watch.at_write
        again = JUPAD(**FULL, checkpoint=path)
        assert watch.run(again, rows()) == n_passes - done, place
        assert numbers(again) == whole, place
        assert not path.exists(), place


@pytest.mark.slow
def test_a_fit_stopped_on_a_part_of_many_rows_goes_on_from_there(watch, tmp_path, monkeypatch):
    """The same part is drawn again, and only the passes since the last write are repeated."""
    monkeypatch.setattr(starts, "PART_ROWS", 10)
    monkeypatch.setattr(starts, "PART_GROWTH", 3)
    settings = {"n_components": 2, "n_models": 2, "beta": 1.0, "random_state": 0, "learn_dictionary": False}
    model = JUPAD(**settings).fit(rows())
    path = tmp_path / "fit.checkpoint"
    n_passes = watch.run(JUPAD(**settings, checkpoint=path), rows())
    kept = list(watch.kept)
    stages = dict.fromkeys(stage for stage, _, _ in kept)
    on_parts = [f"model {model} on {n} rows" for model in (1, 2) for n in (10, 30)]
    assert [stage for stage in stages if " on " in stage] == on_parts
    for stage in stages:
        of_stage = [at for s, _, at in kept if s == stage]
        for stop_at in {of_stage[0] + 1, of_stage[len(of_stage) // 2] + 1, of_stage[-1] + 1} - {n_passes}:
            assert watch.run(JUPAD(**settings, checkpoint=path), rows(), stop_at) is None, stage
            done = watch.at_write
            again = JUPAD(**settings, checkpoint=path)
            assert watch.run(again, rows()) == n_passes - done, (stage, stop_at)
            assert numbers(again) == numbers(model), (stage, stop_at)


def test_a_fit_stopped_again_and_again_takes_no_more_than_the_lost_passes(watch, whole, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model = JUPAD(**FULL, checkpoint=path)
    for _ in range(200):
        if watch.run(model, rows(), 150) is not None:
            break
    assert numbers(model) == whole
    assert not list(tmp_path.iterdir())


def test_with_rare_writes_each_stage_is_written_at_its_end(watch, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 3600.0)
    path = tmp_path / "fit.checkpoint"
    n_passes = watch.run(JUPAD(**FULL, checkpoint=path), rows())
    stop_at = places(watch.kept, n_passes)["learning the last model's atoms"]
    assert watch.run(JUPAD(**FULL, checkpoint=path), rows(), stop_at) is None
    done = watch.at_write
    assert 0 < done < stop_at
    again = JUPAD(**FULL, checkpoint=path)
    assert watch.run(again, rows()) == n_passes - done
    assert numbers(again) == whole


@pytest.mark.parametrize("estimator", [JUPAD, make_classifier, make_imputer])
@pytest.mark.parametrize("kind", ["array", "blocks"])
def test_every_estimator_and_every_kind_of_table_goes_on(watch, estimator, kind, tmp_path):
    path = tmp_path / "fit.checkpoint"
    X = {"x": rows()["x"], "y": rows()["y"]}
    y = rows()["c"]

    def fit(model):
        if kind == "blocks" and estimator is JUPAD:
            return model.fit_blocks(
                lambda: iter([{k: v[:40] for k, v in X.items()}, {k: v[40:] for k, v in X.items()}])
            )
        return model.fit(X, y)

    expected = numbers(fit(estimator(**PLAIN)))
    watch.passes, watch.stop_at = 0, 5
    with pytest.raises(Stopped):
        fit(estimator(**PLAIN, checkpoint=str(path)))
    watch.stop_at = None
    assert numbers(fit(estimator(**PLAIN, checkpoint=str(path)))) == expected
    assert not path.exists()


@pytest.mark.parametrize("random_state", [None, "instance"])
def test_a_fit_without_a_seed_goes_on_with_the_one_drawn_at_first(watch, random_state, tmp_path):
    def model(seed, **further):
        np.random.seed(seed)  # noqa: NPY002  (what `random_state=None` draws from)
        state = None if random_state is None else np.random.RandomState(seed)
        return JUPAD(3, n_init=3, random_state=state, beta=1.0, n_bins=16, **further)

    expected = numbers(model(5).fit(rows()))
    path = tmp_path / "fit.checkpoint"
    for stop_at in (0, 40, None):
        again = model(5 if stop_at == 0 else 6, checkpoint=path)
        watch.run(again, rows(), stop_at)
    assert numbers(again) == expected


def test_an_interrupt_leaves_the_last_state_on_disk(watch, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 3600.0)
    path = tmp_path / "fit.checkpoint"
    n_passes = watch.run(JUPAD(**FULL, checkpoint=path), rows())
    stop_at = places(watch.kept, n_passes)["in the last model"]
    monkeypatch.setitem(globals(), "Stopped", KeyboardInterrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        watch.run(JUPAD(**FULL, checkpoint=path, on_interrupt="keep"), rows(), stop_at)
    assert path.exists()
    assert watch.run(JUPAD(**FULL, checkpoint=path), rows(), 1) is None  # stopped again at the second pass
    again = JUPAD(**FULL, checkpoint=path)
    assert watch.run(again, rows()) <= n_passes - stop_at + 3  # a step takes two passes, a start one
    assert numbers(again) == whole


KILLED = """
import sys, time
import numpy as np
from pathlib import Path
from jointwise import JUPAD, Dictionary
from jointwise.fitting import checkpoint
from jointwise.fitting.checkpoint import Checkpoint
path, ready, model = map(Path, sys.argv[1:])
checkpoint.INTERVAL = 0.0
keep = Checkpoint.keep
def slow(self, stage, content, **options):
    keep(self, stage, content, **options)
    if not model.exists() and stage == "model 1" and len(content["em"]["history"]) > 3:
        ready.touch()
        time.sleep(0.02)
Checkpoint.keep = slow
rng = np.random.default_rng(0)
X = rng.normal(size=(20000, 3)) + 2 * (rng.random((20000, 1)) < 0.5)
if ready.exists():
    Checkpoint.keep = keep
atoms = dict.fromkeys(["x0", "x1", "x2"], Dictionary.grid("gaussian", -4, 6, n=20, scale=0.7))
fit = JUPAD(4, random_state=0, beta=1.0, n_init=1, learn_dictionary=False, dictionaries=atoms, checkpoint=path).fit(X)
fit.density_.save(model)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_killed_process_goes_on_in_another(tmp_path):
    path, ready, model = tmp_path / "fit.checkpoint", tmp_path / "ready", tmp_path / "model.jw"
    command = [sys.executable, "-c", KILLED, *map(str, (path, ready, model))]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert path.exists()
    assert not model.exists()
    subprocess.run(command, check=True, timeout=120)
    assert not path.exists()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 3)) + 2 * (rng.random((20000, 1)) < 0.5)
    expected = tmp_path / "expected.jw"
    atoms = dict.fromkeys(["x0", "x1", "x2"], Dictionary.grid("gaussian", -4, 6, n=20, scale=0.7))
    fit = JUPAD(4, random_state=0, beta=1.0, n_init=1, learn_dictionary=False, dictionaries=atoms).fit(X)
    fit.density_.save(expected)
    assert model.read_bytes() == expected.read_bytes()


# ---- what is refused --------------------------------------------------------------------------------------


def stopped(watch, path, parameters=PLAIN, data=None, stop_at=9):
    assert watch.run(JUPAD(**parameters, checkpoint=path), rows() if data is None else data, stop_at) is None
    return path.read_bytes()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_components": 4}, "`n_components` was 3 and is 4"),
        ({"beta": "auto"}, "`beta` was 1.0 and is 'auto'"),
        ({"tol": 1e-6, "max_iter": 7}, "`max_iter` was 500 and is 7; `tol` was 0.0001 and is 1e-06"),
        ({"random_state": 1}, "`random_state` was 0 and is 1"),
        ({"random_state": None}, "`random_state` was 0 and is None"),
        ({"dictionaries": {"x": ATOMS}}, "`dictionaries` has changed"),
        ({"n_bins": 20}, "its columns have other bins"),
        ({"kinds": {"c": "ordinal"}}, "the table has other columns"),
    ],
)
def test_a_checkpoint_of_other_parameters_is_refused_and_kept(watch, changed, message, tmp_path):
    path = tmp_path / "fit.checkpoint"
    before = stopped(watch, path)
    with pytest.raises(InputError, match="is the checkpoint of another fit") as error:
        JUPAD(**{**PLAIN, **changed}, checkpoint=path).fit(rows())
    assert message in str(error.value)
    assert "Fit as before to go on from it, delete it, or give `checkpoint` another path." in str(error.value)
    assert path.read_bytes() == before


def swapped(columns):
    """Swap one value of two rows, which changes no count of a bin."""
    x = columns["x"].copy()
    x[[0, 1]] = x[[1, 0]]
    return {**columns, "x": x}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda t: {**t, "z": t["x"]}, "other columns"),
        (lambda t: {"x": t["x"], "y": t["y"], "w": t["c"]}, "other columns"),
        (lambda t: {k: np.append(v, v[5]) for k, v in t.items()}, "its rows hold other values"),
        (swapped, "its rows hold other values"),
    ],
)
def test_a_checkpoint_of_another_table_is_refused_and_kept(watch, other, message, tmp_path):
    path = tmp_path / "fit.checkpoint"
    before = stopped(watch, path)
    with pytest.raises(InputError, match="is the checkpoint of another fit") as error:
        JUPAD(**PLAIN, checkpoint=path).fit(other(rows()))
    assert path.read_bytes() == before
    assert message in str(error.value)


def test_rows_in_another_order_are_the_same_table(watch, tmp_path):
    path = tmp_path / "fit.checkpoint"
    expected = numbers(JUPAD(**PLAIN).fit(rows()))
    stopped(watch, path)
    reverse = {name: column[::-1] for name, column in rows().items()}
    assert numbers(JUPAD(**PLAIN, checkpoint=path, verbose=True).fit(reverse)) == expected


def refused(path, message="Delete the file, or give `checkpoint` another path.", parameters=PLAIN):
    before = path.read_bytes()
    with pytest.raises(FileFormatError) as error:
        JUPAD(**parameters, checkpoint=path).fit(rows())
    assert str(path) in str(error.value)
    assert message in str(error.value)
    assert path.read_bytes() == before


def test_foreign_and_damaged_files_are_refused_and_kept(watch, tmp_path):
    path = tmp_path / "fit.checkpoint"
    good = stopped(watch, path)
    JUPAD(**PLAIN).fit(rows()).density_.save(tmp_path / "model.jw")
    strangers = [
        b"", b"a,b\n1,2\n", pickle.dumps([1]), good[:-1], good[:40], good + b"\0", good[:100] + b"\1" + good[101:],
        (tmp_path / "model.jw").read_bytes(),
    ]  # fmt: skip
    for data in strangers:
        path.write_bytes(data)
        refused(path)


def sealed(content, arrays=(), payload=b""):
    text = json.dumps({"arrays": list(arrays), "content": content}).encode()
    body = struct.pack("<10sIQ", FORM.magic, FORM.version, len(text)) + text + payload
    return body + sha256(body).digest()


def test_a_few_bytes_cannot_ask_for_much_memory(tmp_path):
    path = tmp_path / "fit.checkpoint"
    for shape in ([10**9, 10**9], [1 << 62], [-1], [2, 2, 2], ["a"], None):
        path.write_bytes(sealed({"fit": {"$array": 0}, "stages": {}, "rng": {}}, [shape]))
        refused(path)
    path.write_bytes(sealed([1, 2]))
    refused(path)


def edited(path, change):
    """Rewrite a checkpoint with its tree changed and a valid checksum."""
    tree = checkpoint.read(path, lambda content: content, FORM)
    change(tree)
    write(path, tree, FORM)


def put(*keys, value):
    def change(tree):
        for key in keys[:-1]:
            tree = tree[key]
        tree[keys[-1]] = value

    return change


EM = ("stages", "model 1", "em")
CHOICE = ("stages", "choice")


@pytest.mark.parametrize(
    "change",
    [
        put("rng", value={}),
        put("rng", value={"bit_generator": "MT19937", "state": {"key": [1], "pos": 0}}),
        put("rng", "state", "state", value=-1),
        put("rng", "state", value="x"),
        put("fit", value=[]),
        put("fit", "parameters", value={}),
        put("fit", "parameters", "tol", value=np.ones(3)),
        put("stages", value=[]),
        put("stages", "model 1", value=[1]),
        put("stages", "model 1", value={}),
        put("stages", "choice", value=None),
        put("more", value=1),
        put(*EM, "point", value=np.ones((2, 2))),
        put(*EM, "point", value=None),
        put(*EM, "update", value=np.full((1, 3), np.nan)),
        put(*EM, "decreases", value=[1.0]),
        put(*EM, "history", value=3.0),
        put(*EM, "history", value=np.ones((1, 2))),
        put(*EM, "objective", value="low"),
        put(*CHOICE, "n_components", value=10**9),
        put(*CHOICE, "n_components", value=2),
        put(*CHOICE, "n_components", value=True),
        put(*CHOICE, "beta", value=-1.0),
        put(*CHOICE, "beta", value=float("nan")),
        put(*CHOICE, "models", value=[]),
        put(*CHOICE, "models", value=[[0, 0, 0]]),
        put(*CHOICE, "models", value=[[0, 1]]),
        put(*CHOICE, "models", value=[[7, 8, 9]]),
        put(*CHOICE, "dictionaries", 0, value={"families": []}),
        put(*CHOICE, "dictionaries", 0, value={"families": [{"family": "os.system", "loc": 1.0}]}),
        put(*CHOICE, "dictionaries", 0, value={"families": [{"family": "point_mass", "loc": np.array([1e9])}]}),
        put(*CHOICE, "held_out", value="high"),
    ],
)
def test_a_file_with_wrong_contents_is_refused_and_kept(watch, change, tmp_path):
    path = tmp_path / "fit.checkpoint"
    stopped(watch, path)
    edited(path, change)
    refused(path)


def test_points_off_the_simplex_are_refused(watch, tmp_path):
    path = tmp_path / "fit.checkpoint"
    for factor in (2.0, -1.0, np.nan):
        path.unlink(missing_ok=True)
        stopped(watch, path)
        edited(path, lambda tree, by=factor: tree["stages"]["model 1"]["em"]["point"].__imul__(by))
        refused(path, "sum to one")


@pytest.mark.parametrize(
    "change",
    [
        lambda learned: learned["dictionaries"].pop(),
        lambda learned: learned["dictionaries"].reverse(),
        lambda learned: learned.pop("point"),
        lambda learned: learned.update(history=1),
    ],
)
def test_wrong_learned_atoms_are_refused(watch, change, tmp_path):
    path = tmp_path / "fit.checkpoint"
    parameters = {**PLAIN, "learn_dictionary": True}
    watch.run(JUPAD(**parameters, checkpoint=tmp_path / "other"), rows())
    stop_at = next(at for _, learned, at in watch.kept if learned)
    stopped(watch, path, parameters, stop_at=stop_at)
    edited(path, lambda tree: change(tree["stages"]["model 1"]["learned"]))
    refused(path, parameters=parameters)


def test_wrong_scores_of_the_search_are_refused(watch, tmp_path):
    path = tmp_path / "fit.checkpoint"
    parameters = {"random_state": 0}
    stopped(watch, path, parameters, stop_at=130)
    for value in (None, [[1]], [["a"] * 5], [[0, 8, 3.0, 0, "high"]], [[10**400, 8, 3.0, 0, -1.0]]):
        edited(path, put("stages", "search", value={"scores": value}))
        refused(path, parameters=parameters)


def test_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "fit.checkpoint"
    body = struct.pack("<10sIQ", FORM.magic, FORM.version + 1, 2) + b"{}"
    path.write_bytes(body + sha256(body).digest())
    refused(path, f"has format version {FORM.version + 1}")


@pytest.mark.parametrize("path", [3, b"\xff".decode("latin1").encode, object()])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InputError, match="`checkpoint` must be the path of a file, or None; got"):
        JUPAD(**PLAIN, checkpoint=path).fit(rows())


def test_places_that_cannot_be_written_are_refused_before_the_fit(watch, tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing" / "fit", tmp_path / "file" / "fit"):
        with pytest.raises(StorageError, match=r"No checkpoint could be written in .*Give `checkpoint` a path"):
            JUPAD(**PLAIN, checkpoint=path).fit(rows())
    with pytest.raises(InputError, match="is something else"):
        JUPAD(**PLAIN, checkpoint=tmp_path).fit(rows())
    assert watch.passes == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_devices_are_left_alone():
    with pytest.raises(InputError, match="is something else"):
        JUPAD(**PLAIN, checkpoint="/dev/full").fit(rows())


def test_a_full_disk_raises_and_leaves_the_last_file(watch, tmp_path, monkeypatch):
    path = tmp_path / "fit.checkpoint"
    expected = numbers(JUPAD(**PLAIN).fit(rows()))
    written, n_writes = checkpoint.write, iter(range(100))

    def full(*arguments):
        if next(n_writes) == 6:
            raise OSError(28, "No space left on device")
        written(*arguments)

    monkeypatch.setattr(checkpoint, "write", full)
    with pytest.raises(StorageError, match=r"could not be written: .*No space left .*has room\."):
        JUPAD(**PLAIN, checkpoint=path).fit(rows())
    assert numbers(JUPAD(**PLAIN, checkpoint=path).fit(rows())) == expected


@pytest.mark.parametrize("method", ["rows", "pairs"])
def test_fits_from_pairs_have_no_checkpoint(method, tmp_path):
    model = JUPAD(2, method=method, random_state=0, checkpoint=tmp_path / "missing" / "fit")
    profile = Profile.of(rows())
    schema = profile.schema()
    marginals = PairwiseMarginals.of(rows(), schema, profile.axes(schema, 16))
    model.fit(rows()) if method == "pairs" else model.fit_marginals(marginals)
    assert not list(tmp_path.iterdir())


# ---- the file alone ---------------------------------------------------------------------------------------


def test_stages_and_generator_are_restored(tmp_path):
    path, rng = tmp_path / "fit", np.random.default_rng(3)
    first = Checkpoint(path, FIT, rng)
    rng.random(5)
    numbers = {"list": [1, 2.5, None], "array": np.array([0.1, np.inf]), "infinite": -np.inf}
    first.keep("one", numbers)
    following = rng.random()
    first.keep("two", {"a": 1}, draws_again=True)
    first.flush()
    other = np.random.default_rng()
    again = Checkpoint(path, FIT, other)
    found = again.find("one", dict)
    assert found["list"] == [1, 2.5, None]
    assert np.array_equal(found["array"], numbers["array"])
    assert found["infinite"] == -np.inf
    assert again.find("two", dict) == {"a": 1}
    assert again.find("three", dict) is None
    assert other.random() == following


def test_writes_come_at_intervals_and_when_asked(tmp_path, monkeypatch):
    clock, writes = [0.0], []
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(checkpoint, "write", lambda *arguments: writes.append(clock[0]))
    kept = Checkpoint(tmp_path / "fit", FIT, np.random.default_rng())
    for second in range(12):
        clock[0] = float(second)
        kept.keep("stage", {"second": second})
    kept.flush()
    kept.flush()
    assert writes == [0.0, 5.0, 10.0, 11.0]


def test_without_a_path_nothing_is_kept():
    nothing = Checkpoint()
    nothing.keep("stage", {})
    nothing.flush()
    nothing.remove()
    assert nothing.find("stage", dict) is None
