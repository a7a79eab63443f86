"""Two models or tables side by side: what differs, in words, and an exit code for monitoring."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.cases import people, rows_of, run, write_csv

import jointwise
from jointwise import Dictionary, JointDensity
from jointwise.cli.drift import Change, aligned, change_of, dependence_drift, raked, sizes
from jointwise.families import Gaussian
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Schema, Variable


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """People with a new job, whose pay no longer depends on the job; the columns in another order."""
    columns = people(600, seed=5)
    rng = np.random.default_rng(0)
    columns["monthly pay"] = [f"{p:.1f}" for p in rng.normal(60, 2, 600)]
    columns["job"] = ["smith" if rng.random() < 0.3 else job for job in columns["job"]]
    return write_csv(tmp_path_factory.mktemp("moved") / "moved.csv", dict(reversed(columns.items())))


@pytest.fixture(scope="module")
def moved_model(moved, tmp_path_factory):
    path = tmp_path_factory.mktemp("moved model") / "moved.jw"
    run("fit", moved, "-o", path, "--n-components", 3)
    return str(path)


def test_what_drifted_comes_first_and_in_words(model, moved, moved_model, tmp_path):
    out = tmp_path / "d.json"
    result = run("compare", model, moved_model, "--data", moved, "--fail-above", 0.05, "-o", out, code=1)
    found = json.loads(out.read_text())
    assert {row["columns"] for row in found[:2]} == {"monthly pay", "job"}
    by_name = {row["columns"]: row for row in found}
    assert len(found) == 4 + 6
    pay = by_name["monthly pay"]
    assert pay["question"] == "mean(monthly pay)"
    assert pay["old"] == pytest.approx(jointwise.load(model).mean()["monthly pay"])
    assert pay["new"] == pytest.approx(60, abs=1)
    assert by_name["job"]["question"] == "P(job=smith)"
    assert by_name["job"]["old"] == 0
    assert by_name["job"]["new"] == pytest.approx(0.3, abs=0.06)
    assert pay["beyond_noise"] is True
    assert by_name["age"]["beyond_noise"] is False
    assert "All columns together: " in result.stderr
    assert "Above 0.05 nats: " in result.stderr
    shown = run("compare", model, moved_model, "--data", moved).stdout
    assert "mean(monthly pay) from " in shown
    assert "within noise" in shown
    assert "P(age" not in shown


def test_a_model_does_not_differ_from_itself(model, table):
    result = run("compare", model, model, "--data", table, "--fail-above", 0)
    assert result.stdout.startswith("All columns together: 0.000")
    assert result.stderr == "Nothing above 0 nats and beyond noise.\n"
    rows = rows_of(run("compare", model, model, "--format", "csv").stdout)
    assert list(rows[0]) == ["columns", "divergence", "question", "old", "new"]
    assert max(float(row["divergence"]) for row in rows) < 1e-9


@pytest.mark.slow
def test_a_table_is_fitted_with_the_kinds_of_the_model(model, moved):
    result = run("compare", model, moved, "--format", "csv")
    rows = rows_of(result.stdout)
    assert "is a table: fitting it first" in result.stderr
    assert "beyond_noise" in rows[0]
    assert {row["columns"] for row in rows[:2]} == {"monthly pay", "job"}


def test_columns_that_cannot_be_compared(tmp_path, model):
    age = Variable("age", "continuous", dtype="float64")
    extra = Variable("extra", "integer", dtype="int64")
    law = ProductMixture([1.0], [[[1.0]], [[1.0]]], [Dictionary((Gaussian([40.0], [9.0]),)), Dictionary.points([1])])
    other = JointDensity(Schema((age, extra), "dict"), law)
    other.save(tmp_path / "o.jw")
    result = run("compare", model, tmp_path / "o.jw", code=1)
    assert "Only in the old one: 'sex', 'job', 'monthly pay'." not in result.stderr
    assert "There is no column to compare" in result.stderr
    sex = Variable("sex", "categorical", categories=("M", "X"), dtype="string")
    law = ProductMixture(
        [1.0], [[[1.0]], [[0.5], [0.5]]], [Dictionary((Gaussian([40.0], [9.0]),)), Dictionary.categories(2)]
    )
    JointDensity(Schema((age, sex), "dict"), law).save(tmp_path / "s.jw")
    result = run("compare", model, tmp_path / "s.jw", "--format", "jsonl")
    assert "Only in the old one: 'job', 'monthly pay'." in result.stderr
    assert "'age' is integer in the old one and continuous in the new one" in result.stderr
    (row,) = map(json.loads, result.stdout.splitlines())
    assert (row["columns"], row["question"]) == ("sex", "P(sex=X)")
    assert "standard input" in run("compare", "-", "-", code=2).stderr


def test_aligned_densities_keep_their_answers(model, moved_model):
    old, new = jointwise.load(model), jointwise.load(moved_model)
    first, second, notes = aligned(old, new)
    assert notes == []
    assert first.schema == second.schema
    assert first.names == old.names
    for density, same in ((old, first), (new, second)):
        for job in density.schema["job"].categories:
            event = {"job": job, "age": (30, 45)}
            assert same.probability(event) == pytest.approx(density.probability(event))
    assert first.probability({"job": "smith"}) == 0


def test_dependence_alone_is_found(model):
    """Pairs with the same columns, once dependent and once not."""
    names = [Variable(name, "categorical", categories=("u", "v"), dtype="string") for name in ("a", "b")]
    schema = Schema(tuple(names), "dict")
    atoms = [Dictionary.categories(2)] * 2
    tied = JointDensity(schema, ProductMixture([0.5, 0.5], [np.eye(2), np.eye(2)], atoms))
    free = JointDensity(schema, ProductMixture([1.0], [np.full((2, 1), 0.5)] * 2, atoms))
    found = sizes(tied, free, np.random.default_rng(0))
    assert list(found.parts) == [("a", "b"), ("a",), ("b",)]
    assert found.parts["a", "b"] == pytest.approx(tied.divergence(free, rng=0).pairs["a", "b"])
    assert found.parts["a",] == pytest.approx(0, abs=1e-12)
    change = change_of(tied, free, ("a", "b"))
    assert str(change) in {
        f"P({x}={i} | {y}={k}) from {p} to 50.0%"
        for x, y in (("a", "b"), ("b", "a"))
        for i, k, p in (("u", "u", "100%"), ("v", "v", "100%"), ("u", "v", "0%"), ("v", "u", "0%"))
    }


@given(
    st.lists(st.floats(0.01, 1), min_size=6, max_size=6),
    st.lists(st.floats(0.1, 10), min_size=5, max_size=5),
)
def test_margins_alone_are_no_drift_of_dependence(cells, scales):
    p = np.array(cells).reshape(2, 3)
    q = p * np.array(scales[:2])[:, None] * np.array(scales[2:])
    p, q = p / p.sum(), q / q.sum()
    scaled, same = raked(p, q)
    np.testing.assert_allclose(same, q)
    np.testing.assert_allclose(scaled, q, atol=1e-6)
    assert dependence_drift(p, q) < 1e-9


def test_spikes_heavy_tails_and_dates_in_words():
    def one(variable, dictionary, weights):
        coefficients = np.asarray(weights, dtype=float)[:, None]
        return JointDensity(Schema((variable,), "dict"), ProductMixture([1.0], [coefficients], (dictionary,)))

    rain = Variable("rain", "continuous", spikes=(0.0,))
    atoms = Dictionary((Gaussian([5.0], [1.0]), jointwise.families.PointMass([0.0])))
    dry, wet = one(rain, atoms, [0.2, 0.8]), one(rain, atoms, [0.6, 0.4])
    assert str(change_of(dry, wet, ("rain",))) in {"P(rain=0) from 80.0% to 40.0%", "mean(rain) from 1 to 3"}
    cauchy = [Dictionary((jointwise.families.Cauchy([m], [1.0]),)) for m in (0.0, 5.0)]
    tails = [one(Variable("tail", "continuous"), atom, [1.0]) for atom in cauchy]
    assert change_of(*tails, ("tail",)).question.startswith("P(tail > ")
    day = Variable("day", "continuous", dtype="date")
    days = [one(day, Dictionary((Gaussian([m], [3.0]),)), [1.0]) for m in (19000.0, 19010.0)]
    assert str(change_of(*days, ("day",))) == "mean(day) from 2022-01-08 to 2022-01-18"
    assert str(Change("P(a=1)", 0.00001, 1.0)) == "P(a=1) from 0.001% to 100%"
