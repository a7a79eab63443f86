"""Tables as people have them: spikes, bounds, identifiers, sentinels, weights of any size."""

import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.estimators.cases import make_classifier, make_imputer

from jointwise import JUPAD, Dictionary
from jointwise.exceptions import InputError, LeftOutWarning, MisfitWarning, UnknownNameError


@pytest.mark.parametrize(("share", "values"), [(0.9, (1000, 99_999)), (0.8, (1, 100)), (0.5, (1, 50))])
@pytest.mark.parametrize("spike", [0, -1])
def test_a_spike_of_integers_has_its_share(share, values, spike):
    r = np.random.default_rng(0)
    v = np.where(r.random(5000) < share, spike, r.integers(*values, 5000))
    density = JUPAD(random_state=0).fit({"v": v, "w": r.normal(size=5000) + (v > 0)}).density_
    # half a per cent of 5,000 rows is a standard error of their share
    assert density.probability({"v": spike}) == pytest.approx(np.mean(v == spike), abs=0.01)
    assert density.probability({"v": (None, spike - 1)}) == 0.0
    rest = density.condition({"v": (spike + 1, None)})
    assert rest.mean()["w"] == pytest.approx(1.0, abs=0.1)


def test_integers_that_are_all_spikes_leave_room_for_those_between():
    v = np.repeat([10, 20, 50, 90], 100)
    density = JUPAD(2, random_state=0).fit({"v": v, "w": np.tile([0.5, 1.5], 200)}).density_
    assert density.probability({"v": 10}) == pytest.approx(0.25, abs=0.01)
    assert 0 < density.probability({"v": 35}) < 1e-3
    assert np.isfinite(density.logpdf({"v": [35], "w": [0.5]})).all()


def rows(n=300):
    r = np.random.default_rng(1)
    x = r.normal(size=n)
    y = x + r.normal(size=n)
    y[::7] = np.nan
    return {"id": np.arange(1, n + 1), "name": [f"n{i}" for i in range(n)], "x": x, "y": y}


def test_columns_that_name_the_rows_are_left_out_with_one_warning():
    with pytest.warns(LeftOutWarning, match="'id', 'name'") as caught:
        model = JUPAD(2, random_state=0).fit(rows())
    assert len(caught) == 1
    assert model.left_out_ == ("id", "name")
    assert model.density_.names == ("x", "y")
    assert model.n_features_in_ == 4
    assert model.score_samples(rows()).shape == (300,)


def test_drop_and_keep_settle_it_without_a_warning():
    model = JUPAD(2, drop=["name"], keep=["id"], random_state=0).fit(rows())
    assert model.density_.names == ("id", "x", "y")
    assert JUPAD(2, drop=["name", "id"], random_state=0).fit(rows()).density_.names == ("x", "y")
    assert "id" in JUPAD(2, drop=["name"], kinds={"id": "integer"}, random_state=0).fit(rows()).density_.names


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"drop": ["nome"]}, UnknownNameError, "did you mean 'name'"),
        ({"keep": ["nome"]}, UnknownNameError, "column in `keep`"),
        ({"drop": "name"}, InputError, "`drop` must be a list"),
        ({"drop": ["x"], "keep": ["x"]}, InputError, "must not share"),
        ({"drop": ["id", "name", "x", "y"]}, InputError, "names every column"),
    ],
)
def test_wrong_names_are_told(parameters, error, message):
    with pytest.raises(error, match=message):
        JUPAD(2, **parameters).fit(rows())


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=["dict", "pandas", "polars", "arrow"]
)
def test_an_imputer_hands_columns_that_were_left_out_through(make):
    X = make(rows())
    with pytest.warns(LeftOutWarning):
        out = make_imputer(2, random_state=0).fit(X).transform(X)
    assert type(out) is type(X)
    names = list(
        out.column_names if isinstance(out, pa.Table) else out.keys() if isinstance(out, dict) else out.columns
    )
    assert names == ["id", "name", "x", "y"]
    assert list(np.asarray(out["name"])) == rows()["name"]
    assert not np.isnan(np.asarray(out["y"], dtype=float)).any()


def test_arrays_and_classes_do_without_left_out_columns():
    X = np.column_stack([np.arange(300), rows()["x"], rows()["y"]])
    with pytest.warns(LeftOutWarning, match="'x0'"):
        classifier = make_classifier(2, random_state=0).fit(X, X[:, 1] > 0)
    assert classifier.estimator_.left_out_ == ("x0",)
    assert classifier.score(X, X[:, 1] > 0) > 0.9
    with pytest.warns(LeftOutWarning):
        filled = make_imputer(2, random_state=0).fit(X).transform(X)
    np.testing.assert_array_equal(filled[:, 0], X[:, 0])
    assert not np.isnan(filled).any()


@pytest.mark.parametrize("weight", [3e7, 1e10, 1e200, 1e-200])
def test_the_cost_of_weights_does_not_grow_with_their_sum(weight):
    X = np.random.default_rng(0).normal(size=(200, 3))
    started = time.perf_counter()
    model = JUPAD(2, random_state=0, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps need not converge
        model.fit(X, sample_weight=np.full(200, weight))
    assert np.isfinite(model.score_samples(X)).all()
    assert time.perf_counter() - started < 20


def test_weights_without_a_finite_sum_are_refused():
    with pytest.raises(InputError, match="finite sum"):
        JUPAD(2).fit(np.zeros((200, 1)), sample_weight=np.full(200, 1e307))


def test_given_atoms_settle_the_support_unless_that_is_given_too():
    x = np.random.default_rng(0).exponential(size=500)
    atoms = {"x": Dictionary.grid("gaussian", 0, 5, n=6, scale=1)}
    X = {"x": x, "y": np.arange(500) % 3}
    with pytest.warns(MisfitWarning, match="reaches beyond the values that occur"):
        loose = JUPAD(2, dictionaries=atoms, random_state=0).fit(X).density_
    assert loose.probability({"x": (None, 0)}) > 0.01
    bounded = JUPAD(2, dictionaries=atoms, supports={"x": (0, None)}, random_state=0).fit(X).density_
    assert bounded.probability({"x": (None, 0)}) == 0.0
