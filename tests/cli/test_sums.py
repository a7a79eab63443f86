"""Every command on a sum of experts of two kinds answers as on the mixture that it equals."""

import json

import numpy as np
import pytest
from tests.cli.cases import rows_of, run
from tests.joint.experts import Opaque, taken_apart

import jointwise
from jointwise.joint import density as density_module


@pytest.fixture
def pair(model, tmp_path, monkeypatch):
    """A model, and the same one as a sum."""
    monkeypatch.setitem(density_module.EXPERTS, Opaque.KIND, Opaque)
    taken_apart(jointwise.load(model)).save(tmp_path / "sum.jw")
    return str(tmp_path / "sum.jw"), model


def close(ours, theirs, rtol=1e-6):
    """Compare two tables cell by cell: text as it is, numbers up to rounding."""
    assert [row.keys() for row in ours] == [row.keys() for row in theirs]
    for one, other in zip(ours, theirs, strict=True):
        for name, cell in one.items():
            try:
                assert float(cell) == pytest.approx(float(other[name]), rel=rtol, abs=1e-9)
            except ValueError:
                assert cell == other[name]


def test_files_keep_the_parts(pair):
    ours, theirs = map(jointwise.load, pair)
    assert [type(part).__name__ for part in ours.mixture.experts] == ["Opaque", "ProductMixture"]
    rows = theirs.sample(50, rng=0)
    np.testing.assert_allclose(ours.logpdf(rows), theirs.logpdf(rows), rtol=1e-9)


@pytest.mark.parametrize(
    "question",
    ["sex", "age | job=nurse", "sex, monthly pay | age in 30..40", "P(sex=F | monthly pay > 30)", "age, job, sex"],
)
def test_questions(pair, question):
    ours, theirs = (rows_of(run("query", path, question, "--format", "csv").stdout) for path in pair)
    close(ours, theirs)


def test_columns_and_pairs(pair):
    for path in pair:
        columns = json.loads(run("info", path, "--format", "json").stdout)
        assert [c["column"] for c in columns] == ["sex", "age", "job", "monthly pay"]
        assert all(c["atoms"] for c in columns)
    ours, theirs = ({tuple(sorted((row["column"], row["with"]))): float(row["mutual information (nats)"]) for row in
                     rows_of(run("info", path, "--pairs", "--format", "csv").stdout)} for path in pair)  # fmt: skip
    assert ours.keys() == theirs.keys()
    assert all(ours[names] == pytest.approx(theirs[names], abs=2e-3) for names in ours)


@pytest.mark.parametrize("command", [["score"], ["impute"], ["classify", "--target", "job", "--proba"]])
def test_rows_are_scored_filled_and_classified(pair, table, command):
    name, *options = command
    ours, theirs = (rows_of(run(name, path, table, *options).stdout) for path in pair)
    close(ours, theirs)


def test_odd_rows(pair, table):
    """Scores are less a mean over draws, which differ."""
    found = [rows_of(run("score", path, table, "--lowest", 40).stdout) for path in pair]
    ours, theirs = ({row["row"]: row for row in rows} for rows in found)
    both = ours.keys() & theirs.keys()
    assert len(both) > 30
    assert all(float(ours[i]["log_density"]) == pytest.approx(float(theirs[i]["log_density"])) for i in both)


def test_rows_are_drawn(pair, table):
    path = pair[0]
    assert len(rows_of(run("sample", path, "-n", "20", "--given", "sex=F", "--seed", "1").stdout)) == 20
    filled = rows_of(run("impute", path, table, "--draw", "--seed", "1").stdout)
    assert all(all(row.values()) for row in filled)


def test_the_check(pair, table):
    ours, theirs = (rows_of(run("check", path, table, "--format", "csv").stdout) for path in pair)
    known = {row["question"]: float(row["model"]) for row in theirs}
    for row in ours:
        assert float(row["model"]) == pytest.approx(known[row["question"]], rel=1e-6)
