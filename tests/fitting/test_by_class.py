"""One density for each class: their sum, and the tables that have it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointwise import JUPAD, JointClassifier, JointEstimator
from jointwise.estimators.joint_estimator import BY_CLASS
from jointwise.fitting.by_class import LEAST_ROWS, by_class, classes, has_classes
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.fits import ClassFit
from jointwise.fitting.learners import Learner
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows


def table(n: int = 150, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    a = rng.normal(size=n) + kind
    return {"a": a, "b": rng.normal(size=n) - a * (kind - 1), "kind": np.array(["x", "y", "z"])[kind]}


def coded(data: Mapping[str, Any]) -> CodedRows:
    profile = Profile.of(data)
    schema = profile.schema()
    return CodedRows.of(data, schema, profile.axes(schema, 16))


def test_the_density_is_the_sum_of_those_of_the_classes() -> None:
    """A slow twin: JUPAD is fitted to the rows of each class, and the sum is taken row by row."""
    data = table()
    found = JointEstimator(target="kind", random_state=0).fit(data)
    fit = next(each for each in found.fit_.fits.values() if isinstance(each, ClassFit))
    rows = {name: column[:20] for name, column in data.items()}
    names = np.unique(data["kind"]).tolist()
    for row in range(20):
        x = {name: column[row] for name, column in rows.items()}
        c = names.index(x["kind"])
        own = fit.fits[c].density
        expected = np.mean(data["kind"] == x["kind"]) * own.pdf(x) / own.probability({"kind": x["kind"]})
        np.testing.assert_allclose(fit.density.pdf(x), expected)
    alone = fit.density.marginal(["kind"])
    shares = [np.mean(data["kind"] == name) for name in names]
    np.testing.assert_allclose(alone.pdf({"kind": names}), shares)


def test_each_class_is_learned_from_its_rows() -> None:
    data = table()
    found = {c: part for c, part, _ in classes(coded(data), "kind", np.random.default_rng(0))}
    assert list(found) == [0, 1, 2]
    for c, name in enumerate("xyz"):
        assert len(found[c]) == np.sum(data["kind"] == name)
        assert (found[c].codes[:, 2] == c).all()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda data: data, True),
        (lambda data: {**data, "kind": np.arange(150) % 3 / 7}, False),  # numbers
        (lambda data: {**data, "kind": np.full(150, "x")}, False),
        (lambda data: {**data, "kind": np.where(np.arange(150) < LEAST_ROWS - 1, "x", "y")}, False),
        (lambda data: {**data, "kind": np.where(np.arange(150) < LEAST_ROWS, "x", "y")}, True),
        (lambda data: {**data, "kind": np.where(np.arange(150) < 30, None, data["kind"])}, False),
    ],
)
def test_tables_with_enough_rows_of_each_class(change: Any, expected: bool) -> None:
    assert has_classes(coded(change(table())), "kind") is expected


def test_only_a_target_has_classes() -> None:
    data = table()
    assert "jupad_by_class" not in JointEstimator(random_state=0).fit(data).expert_weights_
    kind = data.pop("kind")
    model = JointClassifier(random_state=0).fit(data, kind)
    assert {f"{name}_by_class" for name in BY_CLASS} < set(model.estimator_.expert_weights_)
    given = JointClassifier(JointEstimator([("one", JUPAD(2)), ("two", JUPAD(3))], random_state=0)).fit(data, kind)
    assert set(given.estimator_.expert_weights_) == {"one", "two"}


def test_what_was_chosen_is_changed_for_each_class() -> None:
    plain = Learner(
        "plain",
        look=lambda rows, rng, known: None,  # type: ignore[arg-type, return-value]
        choose=lambda rows, rng, checkpoint, known, others: len(rows),
        single=lambda choice: -choice,
        fit=lambda rows, choice, rng, callback, checkpoint: None,  # type: ignore[arg-type, return-value]
        in_folds=lambda choice: 2 * choice,
    )
    learner = by_class(replace(plain, weaker=lambda choice: choice), "kind")
    data = table()
    counts = {c: int(np.sum(data["kind"] == name)) for c, name in enumerate("xyz")}
    choice = learner.choose(coded(data), np.random.default_rng(0), Checkpoint(), {}, {})
    assert choice == counts
    assert learner.single(choice) == {c: -n for c, n in counts.items()}
    assert learner.in_folds(choice) == {c: 2 * n for c, n in counts.items()}
    assert learner.weaker(choice) is None
