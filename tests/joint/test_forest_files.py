"""Plain forms of mixtures of trees: they come back as they were, and hostile ones are refused."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.joint.forest_cases import random_forest

import jointwise
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, InputError
from jointwise.joint import serialization
from jointwise.joint.events import Interval, Point
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_tree import Tree

KINDS = ["spiked bins", "label", "smooth", "counts"]
NOISY = [[0.9, 0.1], [0.2, 0.8]]


def small():
    """Two variables with a hidden node between them."""
    tree = Tree([0, -1, 1], [-1, 0, 1], ([[0.5, 0.5]], NOISY, NOISY))
    return ForestMixture([1.0], [Dictionary.categories(2), Dictionary.points([0.0, 1.0])], [tree])


@pytest.mark.parametrize("seed", range(3))
def test_a_file_gives_the_same_density(seed, tmp_path):
    density = random_forest(np.random.default_rng(seed), KINDS, 3, n_hidden=2)
    for k, f in enumerate([density, density.condition({density.names[3]: (-9, 9)})]):
        path = tmp_path / f"{k}"
        f.save(path)
        g = jointwise.load(path)
        X = f.mixture.sample(20, np.random.default_rng(0))
        X[::3, 1] = np.nan
        assert_array_equal(g.mixture.logpdf(X), f.mixture.logpdf(X))
        assert g.mixture.merge_key == f.mixture.merge_key
        json.dumps(f.mixture.to_dict(), default=lambda a: a.tolist())


def test_an_expert_of_a_part_is_written_too(tmp_path):
    f = random_forest(np.random.default_rng(0), KINDS, 2, n_hidden=2).mixture
    for part in (f.marginal([0, 1, 3]), f.condition({2: Point(0.1)}), f.condition({2: Interval(-1.0, 1.0)})):
        path = tmp_path / "expert"
        serialization.write(path, part.to_dict())
        read = serialization.read(path, type(part).from_dict)
        X = part.sample(9, np.random.default_rng(0))
        assert_array_equal(read.logpdf(X), part.logpdf(X))


def damaged(change):
    data = small().to_dict()
    change(data)
    return data


def tree(**parts):
    return lambda data: data["trees"][0].update(parts)


FLAT = np.array([0.5, 0.5, 0.9, 0.1, 0.2, 0.8, 0.9, 0.1, 0.2, 0.8])


def changed(value, at=2):
    flat = FLAT.copy()
    flat[at] = value
    return flat


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("weights"),
        lambda data: data.update(kind="product"),
        lambda data: data.update(more=1),
        lambda data: data.update(weights=np.ones(2)),
        lambda data: data.update(weights=np.full(2, 0.5)),
        lambda data: data.update(weights=np.array([np.nan])),
        lambda data: data.update(weights=None),
        lambda data: data.update(dictionaries=[]),
        lambda data: data.update(dictionaries=data["dictionaries"][:1]),
        lambda data: data.update(dictionaries=[Dictionary.categories(3).to_dict(), data["dictionaries"][1]]),
        lambda data: data.update(dictionaries=3),
        lambda data: data.update(trees=[]),
        lambda data: data.update(trees=None),
        lambda data: data.update(trees=[1]),
        lambda data: data["trees"][0].pop("states"),
        tree(more=1),
        tree(variables=[0, -1, 2]),
        tree(variables=[0, 0, 1]),
        tree(variables=[0, -1, -1]),
        tree(variables=[0, -2, 1]),
        tree(variables=[0, 1]),
        tree(variables=[0, -1, 1.0]),
        tree(variables=[False, -1, True]),
        tree(variables=[0, -1, 2**70]),
        tree(variables=[0, -1, "1"]),
        tree(variables=None),
        tree(variables=[[0], [-1], [1]]),
        tree(parents=[-1, 2, 1]),  # forwards
        tree(parents=[-1, 1, 1]),  # of itself
        tree(parents=[1, -1, 1]),
        tree(parents=[-1, -2, 1]),
        tree(parents=[-1, 0, 7]),
        tree(parents=[-1, 0]),
        tree(parents=[-1, 0, np.nan]),
        tree(parents=[-1, -1, 1]),  # the tables have another length then
        tree(states=[2, 2, 3]),
        tree(states=[2, 0, 2]),
        tree(states=[2, -2, 2]),
        tree(states=[2, 2**62, 2]),
        tree(states=[2, 2**40, 2**40]),
        tree(states=[2, 2, True]),
        tree(tables=FLAT[:-1]),
        tree(tables=FLAT.reshape(5, 2)),
        tree(tables=np.append(FLAT, 0.0)),
        tree(tables=changed(0.8)),
        tree(tables=changed(np.nan)),
        tree(tables=changed(np.inf)),
        tree(tables=changed(-0.9)),
        tree(tables=changed(0.0, at=slice(2, 4))),
        tree(tables=None),
        tree(tables="abc"),
        tree(variables=[], parents=[], states=[], tables=np.array([0.0])[:0]),
    ],
)
def test_hostile_dicts_are_refused(change):
    with pytest.raises(FileFormatError):
        ForestMixture.from_dict(damaged(change))


def test_the_undamaged_form_is_read():
    assert_array_equal(small().to_dict()["trees"][0]["tables"], FLAT)
    assert ForestMixture.from_dict(damaged(lambda data: None)).n_variables == 2


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0, 1], [-1], [[[1.0]]]), "a variable, a parent and a table"),
        (([0, 2], [-1, 0], [[[1.0]], [[1.0]]]), "must be 0, 1, ... once each"),
        (([0, 1], [1, -1], [[[1.0]], [[1.0]]]), "must come before it"),
        (([0, 1], [-1, 0], [NOISY, NOISY]), "root and must have one row"),
        (([0, 1], [-1, 0], [[[1.0]], NOISY]), "one row for each of the 1 states"),
        (([0], [-1], [[[0.5, 0.6]]]), "sum to one in each row"),
        (([0], [-1], [[["a"]]]), "array of numbers"),
        (([0.5], [-1], [[[1.0]]]), "variables must be a list of integers"),
        (([0], [[-1]], [[[1.0]]]), "parents must be a list of integers"),
    ],
)
def test_wrong_trees_are_refused(parts, message):
    with pytest.raises(InputError, match=message):
        Tree(*parts)


def test_wrong_mixtures_are_refused():
    one = Tree([0], [-1], [[[0.5, 0.5]]])
    two = Dictionary.categories(2)
    with pytest.raises(InputError, match="Tree for each of the 2 weights"):
        ForestMixture([0.5, 0.5], [two], [one])
    with pytest.raises(InputError, match="Dictionary for each"):
        ForestMixture([1.0], [], [one])
    with pytest.raises(InputError, match=r"trees\[0\] has 1 variables; there are 2"):
        ForestMixture([1.0], [two, two], [one])
    with pytest.raises(InputError, match="2 states for variable 0, whose dictionary has 3"):
        ForestMixture([1.0], [Dictionary.categories(3)], [one])


def test_a_tree_is_immutable():
    f = small()
    for array in (f.weights, f.trees[0].parents, f.trees[0].variables, f.trees[0].tables[1]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
