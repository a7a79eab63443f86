"""TreeMixture: parameters, summary, files, tables in blocks, in a stack and inside a classifier."""

import numpy as np
import pytest
from tests.fitting.trees.test_fit import chain, edges_of

import jointwise
from jointwise import JUPAD, JointClassifier, JointEstimator, TreeMixture
from jointwise.exceptions import InputError
from jointwise.fitting.choice.folds import SEARCH_ROWS
from jointwise.fitting.trees import TreeChoice
from jointwise.fitting.trees.choice import MANY_PRIOR, MANY_ROWS, MANY_STATES


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(7).normal(size=500)
    return {**chain(500, 3, 4), "x": x, "y": np.where(x > 0, "up", "down")}


@pytest.fixture(scope="module")
def fitted(data):
    return TreeMixture(2, n_states=8, alpha=1, gamma=3, random_state=0).fit(data)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": "lots"}, "n_components"),
        ({"n_states": 1}, "n_states"),
        ({"alpha": 0}, "alpha"),
        ({"gamma": -1}, "gamma"),
        ({"n_models": 0}, "n_models"),
        ({"tol": -1}, "tol"),
        ({"device": "gpu"}, "device"),
    ],
)
def test_wrong_parameters_are_refused(parameters, match):
    with pytest.raises(InputError, match=match):
        TreeMixture(**parameters).fit({"a": [1, 2]})


def test_the_summary_says_what_was_fitted(fitted):
    lines = fitted.summary().splitlines()
    assert lines[0] == "TreeMixture: joint density of 6 columns"
    assert "trees: 2 kept of 2 at the start (given)" in lines
    assert "alpha: 1 (given), gamma: 3 (given)" in lines
    assert any(line.split()[:2] == ["x", "continuous"] and line.split()[-1] == "8" for line in lines)


def test_a_file_holds_the_density(fitted, data, tmp_path):
    fitted.density_.save(tmp_path / "trees.jw")
    again = jointwise.load(tmp_path / "trees.jw")
    assert np.array_equal(again.logpdf(data), fitted.density_.logpdf(data))


def test_a_table_in_blocks_gives_the_same_fit(fitted, data):
    def blocks():
        return [{name: column[k : k + 130] for name, column in data.items()} for k in range(0, 500, 130)]

    parted = TreeMixture(2, n_states=8, alpha=1, gamma=3, random_state=0).fit_blocks(blocks)
    assert np.array_equal(parted.score_samples(data), fitted.score_samples(data))


def test_many_trees_are_as_many_as_rows_bear(data):
    rows = len(next(iter(data.values())))
    choice = TreeMixture("many", random_state=0).fit(data).fit_.choice
    assert choice.n_components == max(rows // MANY_ROWS, 1)
    assert (choice.n_states, choice.alpha, choice.gamma) == (MANY_STATES, *MANY_PRIOR)
    given = TreeMixture("many", n_states=4, alpha=2, gamma=0, n_models=1, random_state=0).fit(data).fit_.choice
    assert (given.n_states, given.alpha, given.gamma, given.n_models) == (4, 2.0, 0.0, 1)


def test_many_trees_are_fewer_in_folds():
    choice = TreeChoice(256, 8, 1.0, 10.0, tol=0.05)
    assert choice.for_folds().n_components == SEARCH_ROWS // MANY_ROWS
    assert TreeChoice(256, 8, 1.0, 10.0).for_folds().n_components == 256


def test_trees_win_a_chain_in_a_stack(data):
    experts = [("products", JUPAD(4, n_init=1)), ("trees", TreeMixture(1, alpha=1, gamma=3))]
    model = JointEstimator(experts, random_state=0).fit(data)
    assert model.expert_weights_["trees"] > 0.5
    assert "trees" in model.summary()
    assert ("c0", "c1") in edges_of(model.fit_.fits["trees"].density)


def test_a_class_is_one_more_column(data):
    X = {name: column for name, column in data.items() if name != "y"}
    model = JointClassifier(TreeMixture(2, alpha=1, gamma=3), random_state=0).fit(X, data["y"])
    assert model.score(X, data["y"]) > 0.95
