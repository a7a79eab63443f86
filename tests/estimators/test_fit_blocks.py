"""A table in blocks gives the same model as the whole table, bit for bit."""

import numpy as np
import pytest
from tests.estimators.cases import QUICK, make_classifier

from jointwise import JUPAD, ClassModel, load
from jointwise.exceptions import InputError, UnknownNameError


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    number = rng.normal(group, 1.0)
    number[rng.random(n) < 0.1] = np.nan
    return {
        "group": np.array(["a", "b", "c"], dtype=object)[group],
        "number": number,
        "count": rng.poisson(3 + group),
    }


def rows(table, chosen):
    return {name: column[chosen] for name, column in table.items()}


@pytest.mark.parametrize("settings", [{}, {"n_components": 2, "method": "pairs"}])
def test_blocks_give_the_model_of_the_whole(settings):
    table = mixed(300)
    parts = [rows(table, np.arange(a, b)) for a, b in ((0, 7), (7, 200), (200, 300))]
    calls = []

    def blocks():
        calls.append(1)
        return iter(parts)

    whole = JUPAD(random_state=0, **settings).fit(table)
    pieces = JUPAD(random_state=0, **settings).fit_blocks(blocks)
    assert len(calls) == 2
    assert pieces.density_.schema == whole.density_.schema
    assert np.array_equal(pieces.density_.mixture.weights, whole.density_.mixture.weights)
    for a, b in zip(pieces.density_.mixture.coefficients, whole.density_.mixture.coefficients, strict=True):
        assert np.array_equal(a, b)
    assert pieces.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    assert pieces.n_features_in_ == 3


def test_no_blocks_is_no_table():
    with pytest.raises(InputError, match="0 sample"):
        JUPAD().fit_blocks(lambda: iter(()))


def test_a_classifier_in_blocks_is_that_of_the_whole():
    table = mixed(300)
    table["number"] = np.where(np.isnan(table["number"]), 0.5, table["number"])
    table["sum"] = 2 * table["number"] + table["count"] + np.random.default_rng(1).normal(0, 0.3, 300)
    parts = [rows(table, np.arange(a, b)) for a, b in ((0, 7), (7, 200), (200, 300))]
    whole = make_classifier(random_state=0).fit({n: c for n, c in table.items() if n != "group"}, table["group"])
    pieces = make_classifier(random_state=0).fit_blocks(lambda: iter(parts), "group")
    assert pieces.target_name_ == "group"
    assert pieces.density_.names == ("number", "count", "sum", "group")
    assert pieces.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    assert pieces.classes_.tolist() == whole.classes_.tolist()
    np.testing.assert_array_equal(pieces.predict_proba(table), whole.predict_proba(table))
    assert pieces.score(table, table["group"]) == whole.score(table, table["group"])


@pytest.mark.parametrize(
    ("target", "kinds", "gap", "words"),
    [
        ("grup", None, False, "did you mean 'group'"),
        ("count", {"count": "integer"}, False, "must be categorical or ordinal; its kind"),
        ("group", None, True, "missing in 1 rows; leave them out"),
    ],
)
def test_a_classifier_in_blocks_refuses(target, kinds, gap, words):
    table = mixed(30)
    table["group"][0] = None if gap else "a"
    with pytest.raises((InputError, UnknownNameError), match=words):
        make_classifier(kinds=kinds).fit_blocks(lambda: [table], target)


def test_a_class_of_its_own_kind_needs_other_columns():
    with pytest.raises(InputError, match="no column beside 'group'"):
        make_classifier().fit_blocks(lambda: [{"group": ["a", "b"]}], "group")


def test_numbers_can_be_classes_and_other_kinds_are_kept():
    table = mixed(120)
    model = make_classifier(**QUICK, kinds={"number": "continuous"}).fit_blocks(lambda: [table], "count")
    assert model.classes_.dtype.kind == "i"
    assert model.get_params()["estimator__kinds"] == {"number": "continuous"}
    assert model.density_.schema["count"].categories == tuple(np.unique(table["count"]).tolist())


def test_what_a_classifier_knows_is_kept_in_a_file(tmp_path):
    table = mixed(100)
    model = make_classifier(**QUICK).fit_blocks(lambda: [table], "group")
    model.class_model_.save(tmp_path / "m.jw")
    np.testing.assert_array_equal(ClassModel.load(tmp_path / "m.jw").predict_proba(table), model.predict_proba(table))
    assert load(tmp_path / "m.jw").names == model.density_.names
