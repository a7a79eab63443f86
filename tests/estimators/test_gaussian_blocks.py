"""GaussianBlocks: one model from every container and place, weights, checkpoints, interrupts and what it says."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.estimators.cases import CONTAINERS, mixed_columns, table

from jointwise import GaussianBlocks, JointClassifier, JointImputer
from jointwise.exceptions import FileFormatError, InputError, LeftOutWarning
from jointwise.fitting import checkpoint, models
from jointwise.fitting.blocks.choice import SEARCH_STEPS, _Search
from jointwise.fitting.blocks.start import SETTLING_STEPS
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.solvers.blocks_em import BlocksProblem

QUICK = {"n_components": 2, "random_state": 0}


def columns(n=150, *, gaps=False):
    """Return columns of every kind; with enough integers for the block."""
    found = mixed_columns(n, gaps=gaps)
    rng = np.random.default_rng(5)
    return found | {"m": rng.poisson(60, n), "y": rng.normal(size=n)}


def numbers(model):
    """Return all results of a fit as text."""
    mixture = model.density_.mixture
    stages = [[k, v.value.weights.tolist(), v.history.tolist(), v.message] for k, v in model.stages_.items()]
    plain = [mixture.to_dict(), stages, model.summary()]
    return json.dumps(plain, default=lambda array: array.tolist())


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_gives_the_same_model(kind):
    data = columns(gaps=True)
    model = GaussianBlocks("power", **QUICK).fit(table(kind, data))
    one = GaussianBlocks("power", **QUICK).fit(data)
    assert model.density_.mixture.weights.tolist() == one.density_.mixture.weights.tolist()
    assert model.density_.mixture.block.covariances.tolist() == one.density_.mixture.block.covariances.tolist()
    assert len(model.score_samples(table(kind, data))) == 150
    assert type(model.sample(3)) is type(table(kind, data))


def test_blocks_and_files_give_the_model_of_the_whole(tmp_path):
    import pyarrow.dataset
    import pyarrow.parquet

    data = columns()
    frame = table("pyarrow", data)
    settings = {"warp": "none", "random_state": 0}
    whole = GaussianBlocks(**settings).fit(frame)
    pieces = GaussianBlocks(**settings).fit_blocks(lambda: iter([frame[:7], frame[7:90], frame[90:]]))
    assert numbers(pieces) == numbers(whole)
    assert pieces.feature_names_in_.tolist() == list(data)
    pyarrow.parquet.write_table(frame, tmp_path / "table.parquet", row_group_size=40)
    stored = GaussianBlocks(**settings).fit(pyarrow.dataset.dataset(tmp_path / "table.parquet"))
    assert numbers(stored) == numbers(whole)


def test_rows_in_any_order_and_weights_for_repeats():
    data = columns()
    order = np.random.default_rng(0).permutation(150)
    one = GaussianBlocks("power", random_state=0).fit(data)
    shuffled = GaussianBlocks("power", random_state=0).fit({name: column[order] for name, column in data.items()})
    assert numbers(shuffled) == numbers(one)
    repeats = np.random.default_rng(1).integers(0, 3, 150)
    weighed = GaussianBlocks("scores", **QUICK).fit(data, sample_weight=repeats)
    repeated = GaussianBlocks("scores", **QUICK).fit(
        {name: np.repeat(column, repeats) for name, column in data.items()}
    )
    assert numbers(weighed) == numbers(repeated)


def test_summary_says_what_is_in_the_block_and_why():
    model = GaussianBlocks("power", random_state=0).fit(columns())
    text = model.summary()
    assert text.startswith("GaussianBlocks: joint density of 7 columns\nrows: 150\n")
    assert "block: 4 columns, warp power" in text
    assert model.block_ == ("x", "when", "m", "y")
    lines = {line.split()[0]: line for line in text.splitlines()[-7:]}
    assert lines["x"].endswith("yes")
    assert "no: categorical" in lines["job"]
    assert "different values" in lines["k"]


def test_columns_that_name_the_rows_are_left_out():
    data = {"id": np.arange(1, 151), **columns()}
    with pytest.warns(LeftOutWarning, match="id"):
        model = GaussianBlocks("none", **QUICK).fit(data)
    assert model.left_out_ == ("id",)
    assert "id" in GaussianBlocks("none", **QUICK, keep=["id"]).fit(data).density_.names
    assert "x" not in GaussianBlocks("none", **QUICK, drop=["x", "id"]).fit(data).density_.names


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"warp": "root"}, "warp"),
        ({"n_components": 0}, "n_components"),
        ({"nu": 0.0}, "nu"),
        ({"beta": -1.0}, "beta"),
        ({"n_models": "many"}, "n_models"),
        ({"tol": -1.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"device": "abacus"}, "device"),
        ({"on_interrupt": "stop"}, "on_interrupt"),
        ({"kinds": {"z": "integer"}}, "z"),
        ({"n_bins": 1}, "n_bins"),
    ],
)
def test_wrong_parameters_are_refused(wrong, words):
    with pytest.raises((InputError, KeyError), match=words):
        GaussianBlocks(**wrong).fit(columns())


def test_it_can_be_held_by_a_classifier_and_an_imputer():
    data = columns()
    features = {name: data[name] for name in ("x", "m", "y", "flag")}
    classifier = JointClassifier(GaussianBlocks("none", **QUICK)).fit(features, data["job"])
    assert set(classifier.predict(features)) <= {"cook", "nurse"}
    holes = {name: data[name] for name in ("m", "y")} | {"x": np.where(np.arange(150) % 3, data["x"], np.nan)}
    filled = JointImputer(GaussianBlocks("none", **QUICK)).fit_transform(holes)
    assert not np.isnan(filled["x"]).any()


def test_a_short_run_warns():
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        model = GaussianBlocks("none", n_components=4, tol=0.0, max_iter=3, random_state=0).fit(columns())
    assert not model.converged_
    assert model.n_iter_ == 3


class Stopped(Exception):  # noqa: N818  (a stop, not an error)
    pass


def stopping(monkeypatch, at, error=Stopped):
    """Count passes, and stop at one of them, once."""
    count = {"passes": 0, "at": at}
    sums = BlocksProblem.sums

    def counted(self, factors):
        if count["passes"] == count["at"]:
            count["at"] = None
            raise error
        count["passes"] += 1
        return sums(self, factors)

    monkeypatch.setattr(BlocksProblem, "sums", counted)
    monkeypatch.setattr(models, "n_cores", lambda: 1)  # Ctrl-C comes to the main thread alone
    return count


FULL = {"n_models": 2, "random_state": 0}


def test_a_stopped_fit_goes_on_and_ends_with_the_same_model(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    data, path = columns(80), tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patch:
        count = stopping(patch, None)
        whole = numbers(GaussianBlocks("power", **FULL).fit(data))
    for share in (0.0, 0.4, 0.9, 0.99):
        stop_and_go_on(monkeypatch, data, path, share, count, whole)


def stop_and_go_on(monkeypatch, data, path, share, count, whole):
    with monkeypatch.context() as patch:
        stopping(patch, int(share * count["passes"]))
        with pytest.raises(Stopped):
            GaussianBlocks("power", **FULL, checkpoint=path).fit(data)
    assert path.exists()
    with monkeypatch.context() as patch:
        again = stopping(patch, None)
        assert numbers(GaussianBlocks("power", **FULL, checkpoint=path).fit(data)) == whole
        # done again: the run that was stopped, and of up to three averages the first model of each of three folds
        most_again = 10 * (SETTLING_STEPS + SEARCH_STEPS)
        assert again["passes"] <= count["passes"] - int(share * count["passes"]) + most_again
    assert not path.exists()


def test_scores_in_a_checkpoint_are_not_computed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    path, data = tmp_path / "fit.checkpoint", columns(120)
    with monkeypatch.context() as patch:
        patch.setattr("jointwise.fitting.blocks.fit.fit_models", lambda *_, **__: (_ for _ in ()).throw(Stopped()))
        with pytest.raises(Stopped):
            GaussianBlocks("none", **FULL, checkpoint=path).fit(data)
    monkeypatch.setattr(_Search, "_run", lambda *_: pytest.fail("computed again"))
    GaussianBlocks("none", **FULL, checkpoint=path).fit(data)


@pytest.mark.parametrize("change", [{"warp": "power"}, {"nu": 3.0}, {"beta": 0.5}, {"n_components": 5}])
def test_a_checkpoint_of_another_fit_is_refused(tmp_path, monkeypatch, change):
    path, data = tmp_path / "fit.checkpoint", columns(60)
    settings = {"warp": "none", "nu": 2.0, "n_components": 3, "random_state": 0, "checkpoint": path}
    with monkeypatch.context() as patch:
        stopping(patch, 5)
        with pytest.raises(Stopped):
            GaussianBlocks(**settings).fit(data)
    with pytest.raises(InputError, match="another fit"):
        GaussianBlocks(**settings | change).fit(data)


@pytest.mark.parametrize("key", ["weights", "means", "covariances", "spikes", "coefficients"])
def test_broken_states_are_refused(tmp_path, monkeypatch, key):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    path, data = tmp_path / "fit.checkpoint", columns(60)
    with monkeypatch.context() as patch:
        stopping(patch, 14)
        with pytest.raises(Stopped):
            GaussianBlocks("none", nu=2.0, tol=0.0, **QUICK, checkpoint=path).fit(data)
    find = Checkpoint.find

    def broken(self, stage, build):
        if stage != "model 1":
            return find(self, stage, build)
        factors = self._content["stages"][stage]["em"]["factors"]
        factors[key] = [-a for a in factors[key]] if isinstance(factors[key], list) else -1e9 * factors[key][:1]
        return find(self, stage, build)

    monkeypatch.setattr(Checkpoint, "find", broken)
    with pytest.raises(FileFormatError, match="not a valid jointwise checkpoint"):
        GaussianBlocks("none", nu=2.0, tol=0.0, **QUICK, checkpoint=path).fit(data)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_interrupt_keeps_what_was_reached(monkeypatch):
    data = columns(120)
    settings = {"n_components": 4, "nu": 2.0, "tol": 0.0, "max_iter": 30, "random_state": 0}
    with monkeypatch.context() as patch:
        stopping(patch, 20, KeyboardInterrupt)
        model = GaussianBlocks("none", **settings, on_interrupt="keep").fit(data)
    assert model.fit_.was_interrupted
    assert np.isfinite(model.score(data))
    with monkeypatch.context() as patch:
        stopping(patch, 20, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            GaussianBlocks("none", **settings).fit(data)
    with monkeypatch.context() as patch:  # in the second of three models
        stopping(patch, 60, KeyboardInterrupt)
        model = GaussianBlocks("none", **settings, n_models=3, on_interrupt="keep").fit(data)
    assert 1 <= len(model.stages_) < 3


def test_a_clone_has_the_same_parameters():
    model = GaussianBlocks("power", nu=3.0)
    assert clone(model).get_params() == model.get_params()


def test_a_fitted_density_can_be_stored(tmp_path):
    from jointwise import load

    data = columns()
    model = GaussianBlocks(**QUICK).fit(data)
    model.density_.save(tmp_path / "model.jointwise")
    np.testing.assert_allclose(load(tmp_path / "model.jointwise").logpdf(data), model.score_samples(data), rtol=1e-12)


def test_counts_near_zero_are_not_crossed_by_a_gaussian():
    rng = np.random.default_rng(77)
    a = rng.normal(size=2000)
    table = {"a": a, "b": a + 0.3 * rng.normal(size=2000), "visits": rng.poisson(np.exp(1.8 + 0.8 * a))}
    model = GaussianBlocks("none", n_components=4, random_state=0).fit(table)
    assert model.density_.schema["visits"].support[0] == 0
    assert model.block_ == ("a", "b")
    assert "close to a bound" in model.summary()
    assert model.density_.probability({"visits": (None, -1)}) < 1e-12
