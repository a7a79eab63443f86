"""One density for each class: their sum, and the tables that have it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from jointwise import JUPAD, Dictionary, JointClassifier, JointDensity, JointEstimator
from jointwise.estimators._columns import ColumnOptions
from jointwise.estimators.joint_estimator import BY_CLASS
from jointwise.fitting.by_class import LEAST_ROWS, by_class, classes, has_classes
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.fits import ClassFit
from jointwise.joint import ProductMixture
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows


def table(n: int = 150, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    a = rng.normal(size=n) + kind
    return {"a": a, "b": rng.normal(size=n) - a * (kind - 1), "kind": np.array(["x", "y", "z"])[kind]}


def of_classes(n_classes: int) -> dict[str, Any]:
    return {**table(300), "kind": np.array([f"class {k % n_classes}" for k in range(300)])}


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
        (
            lambda data: (
                {name: np.tile(column, 2) for name, column in data.items()}
                | {"kind": np.array([f"c{k % 10}" for k in range(300)])}
            ),
            True,
        ),
        (
            lambda data: (
                {name: np.tile(column, 2) for name, column in data.items()}
                | {"kind": np.array([f"c{k % 11}" for k in range(300)])}
            ),
            False,
        ),
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


def test_each_class_chooses_from_the_rows_that_are_fitted() -> None:
    """A choice from all rows of a class, which are few, would tell of those that a fold holds out."""
    chosen: list[int] = []

    def choose(rows: Any, *_: Any) -> int:
        chosen.append(len(rows))
        return len(rows)

    plain = JUPAD(1, random_state=0).learner("plain", ColumnOptions(None, None, None, (), (), 16, {}), alone=False)
    learner = by_class(replace(plain, choose=choose, single=lambda choice: -choice, fit=keep), "kind")
    rows, rng = coded(table()), np.random.default_rng(0)
    plan = learner.choose(rows, rng, Checkpoint(), {}, {})
    assert not chosen
    part = rows.take(np.arange(100))
    for some, sign, asked in ((rows, 1, plan), (part, 1, learner.in_folds(plan)), (part, -1, learner.single(plan))):
        chosen.clear()
        fits = learner.fit(some, asked, rng, None, Checkpoint()).fits
        counts = some.marginal(2).astype(int).tolist()
        assert chosen == counts
        assert [fit.choice for fit in fits.values()] == [sign * count for count in counts]
    chosen.clear()
    fits = learner.fit(rows, plan, rng, None, Checkpoint()).fits
    assert not chosen  # as in the one fold of a large table
    assert [fit.choice for fit in fits.values()] == counts


@dataclass(frozen=True)
class Kept:
    """A fit that keeps what it was told."""

    choice: int
    density: JointDensity


def keep(rows: CodedRows, choice: int, *_: Any) -> Any:
    atoms = [Dictionary.grid("gaussian", 0, 0, n=1, scale=3), Dictionary.grid("gaussian", 0, 0, n=1, scale=3)]
    mixture = ProductMixture([1.0], [[[1.0]], [[1.0]], np.full((3, 1), 1 / 3)], [*atoms, Dictionary.categories(3)])
    return Kept(choice, JointDensity(rows.schema, mixture))
