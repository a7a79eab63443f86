"""The check that a fit runs on rows it holds out: it warns where the model is wrong, and changes nothing else."""

import pickle
import warnings

import numpy as np
import pytest
from tests.estimators.cases import make_classifier, make_imputer, mixed_columns, same_model

import jointwise
from jointwise import JUPAD, Dictionary
from jointwise.datasets import hybrid
from jointwise.exceptions import MisfitWarning, WeightsWarning
from jointwise.fitting import held_out
from jointwise.fitting import rows as fitting_rows

SETTINGS = {"n_components": 3, "n_init": 2, "random_state": 0}


def dependent(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    shade = np.where(rng.random(n) < 0.9, colour, rng.choice(["red", "green", "blue"], n))
    return {"colour": colour, "shade": shade, "size": rng.normal(size=n)}


def test_a_good_fit_is_silent_and_says_so():
    rows = hybrid(rng=0).sample(1500, rng=1)
    model = JUPAD(**SETTINGS | {"n_components": 8}).fit(rows)
    assert model.check_.is_clean
    assert f"check: {model.check_.verdict}" in model.summary().splitlines()
    assert model.check_.verdict.startswith("Nothing beyond noise in ")
    assert 400 < model.check_.n_rows < 600  # a third of the rows


@pytest.mark.parametrize("missing", ["ignorable", "auto"])
def test_rows_that_all_differ_are_checked(missing):
    """They have no weights, also when sorted."""
    rows = np.random.default_rng(0).normal(size=(600, 3))
    rows[::7, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert JUPAD(**SETTINGS, missing=missing).fit(rows).check_.n_rows > 0


def test_independence_of_dependent_columns_is_named():
    with pytest.warns(MisfitWarning, match=r"'shade', 'colour'|'colour', 'shade'.*raise n_components") as caught:
        model = JUPAD(1, random_state=0).fit(dependent())
    assert len(caught) == 1
    assert model.check_.is_far
    assert set(model.check_.columns) == {"colour", "shade"}
    assert f"check: {model.check_.verdict}" in model.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert JUPAD(**SETTINGS).fit(dependent()).check_.is_clean


def test_a_coarse_dictionary_and_its_range_are_named():
    rng = np.random.default_rng(0)
    wide = {"age": Dictionary.grid("gaussian", 0, 90, n=2, scale=60)}
    with pytest.warns(MisfitWarning, match=r"'age'.*dictionaries="):
        model = JUPAD(1, dictionaries=wide, random_state=0).fit({"age": rng.uniform(18, 70, 1000)})
    kinds = {finding.kind for finding in model.check_.findings}
    assert "range" in kinds
    assert "check: Far beyond noise" in model.summary()


def test_a_number_that_repeats_and_is_not_modelled_is_named():
    """Bins hold more than one whole number, so they alone could not tell."""
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(3000) < 0.9, 0, rng.integers(1000, 99999, 3000))
    wide = Dictionary.grid("gaussian", 0, 1e5, n=9, scale=[100, 12000]).on_lattice()
    with pytest.warns(MisfitWarning, match=r"P\(gain=0\) is 0\.\d+ in the model and 0\.9"):
        model = JUPAD(1, dictionaries={"gain": wide}, random_state=0).fit({"gain": gain})
    assert model.check_.findings[0].rows == np.mean(gain == 0)


@pytest.mark.parametrize("estimator", [make_classifier, make_imputer])
def test_every_estimator_checks(estimator):
    columns = dependent()
    target = columns.pop("shade") if estimator is make_classifier else None
    with pytest.warns(MisfitWarning) as caught:
        model = estimator(1, random_state=0).fit(
            columns | ({} if target is not None else {"shade": columns["colour"]}), target
        )
    assert len(caught) == 1
    assert model.estimator_.check_.is_far


def test_small_tables_and_pairs_have_none():
    rows = hybrid(rng=0).sample(300, rng=1)
    assert JUPAD(**SETTINGS).fit(rows[:199]).check_ is None
    model = JUPAD(**SETTINGS, method="pairs").fit(rows)
    assert model.check_ is None
    assert "check:" not in model.summary()
    assert model.density_.verdict == ""


@pytest.mark.parametrize("learn", [False, True])
def test_the_model_is_the_same_with_and_without(monkeypatch, learn):
    columns = mixed_columns(400, gaps=True)
    settings = SETTINGS | {"learn_dictionary": learn}
    checked = JUPAD(**settings).fit(columns)
    assert checked.check_ is not None
    monkeypatch.setattr(fitting_rows, "held_out_check", lambda *_: None)
    plain = JUPAD(**settings).fit(columns)
    assert plain.check_ is None
    assert same_model(checked, plain)


def test_order_of_rows_has_no_effect():
    columns = dependent()
    order = np.random.default_rng(1).permutation(1500)
    shuffled = {name: cells[order] for name, cells in columns.items()}
    with pytest.warns(MisfitWarning):
        first, second = (JUPAD(1, random_state=0).fit(c).check_ for c in (columns, shuffled))
    assert first == second


def test_blocks_are_checked_as_the_whole():
    columns = dependent()
    halves = [{name: cells[part] for name, cells in columns.items()} for part in (slice(700), slice(700, None))]
    with pytest.warns(MisfitWarning):
        whole = JUPAD(1, random_state=0).fit(columns).check_
    with pytest.warns(MisfitWarning):
        assert JUPAD(1, random_state=0).fit_blocks(lambda: halves).check_ == whole


def test_large_tables_are_sampled(monkeypatch):
    monkeypatch.setattr(held_out, "SAMPLE_ROWS", 600)
    with pytest.warns(MisfitWarning):
        check = JUPAD(1, random_state=0).fit(dependent()).check_
    assert 130 < check.n_rows < 270


def test_heavy_weights_leave_room_for_noise():
    """Three hundred rows that weigh a million each tell no more than three hundred rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    with pytest.warns(WeightsWarning, match="mean"):
        model = JUPAD(1, random_state=0).fit(X, sample_weight=np.full(300, 1e6))
    assert model.check_.n_rows < 300
    assert not model.check_.is_far


def test_a_check_that_fails_leaves_the_fit(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(fitting_rows, "held_out_check", broken)
    with pytest.warns(RuntimeWarning, match="The check of the fit failed \\(ZeroDivisionError"):
        model = JUPAD(**SETTINGS).fit(dependent())
    assert model.check_ is None
    assert model.density_.verdict == ""


@pytest.mark.parametrize("kept", [False, True])
def test_an_interrupt_of_the_check(monkeypatch, kept):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting_rows, "held_out_check", interrupted)
    model = JUPAD(**SETTINGS, on_interrupt="keep" if kept else "raise")
    if not kept:
        with pytest.raises(KeyboardInterrupt):
            model.fit(dependent())
        return
    assert model.fit(dependent()).check_ is None
    assert model.converged_


def test_the_verdict_is_kept_in_the_file(tmp_path):
    with pytest.warns(MisfitWarning):
        model = JUPAD(1, random_state=0).fit(dependent())
    model.density_.save(tmp_path / "m.jw")
    assert jointwise.load(tmp_path / "m.jw").verdict == model.check_.verdict
    assert pickle.loads(pickle.dumps(model)).check_ == model.check_


def test_very_long_names_are_cut_short():
    columns = {name * 100_000: cells for name, cells in zip("abc", dependent().values(), strict=True)}
    with pytest.warns(MisfitWarning) as caught:
        model = JUPAD(1, random_state=0).fit(columns)
    assert len(str(caught[0].message)) < 1000
    assert len(model.density_.verdict) < 1000


def test_every_kind_of_column_can_be_checked():
    """The check swallows its own errors, so that it works is asked here."""
    columns = mixed_columns(600, gaps=True)
    assert JUPAD(**SETTINGS).fit(columns).check_ is not None
    assert JUPAD(random_state=0).fit({"k": columns["k"]}).check_ is not None
