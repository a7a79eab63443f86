"""The command that compares a model with a table."""

import csv
import io
import json

import numpy as np
import pytest
from tests.cli.cases import people, run, write_csv

import jointwise
from jointwise.cli import survey


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """A thousand people whose pay depends on their job in another way than in the model's table."""
    columns = people(1000, seed=5)
    rng = np.random.default_rng(0)
    columns["monthly pay"] = [f"{p:.1f}" for p in rng.normal(60, 2, 1000)]
    return write_csv(tmp_path_factory.mktemp("others") / "others.csv", columns)


def test_a_model_that_fits(table, model):
    result = run("check", model, table, "--strict")
    assert result.stdout.startswith("Nothing beyond noise in 240 rows: 4 columns, 6 pairs.")


def test_a_model_that_does_not(model, others):
    result = run("check", model, others)
    assert result.stdout.startswith("Far beyond noise in 1,000 rows: ")
    assert "'monthly pay'" in result.stdout
    run("check", model, others, "--strict", code=1)


def test_findings_go_to_files(model, others, tmp_path):
    place = tmp_path / "found.json"
    result = run("check", model, others, "-o", place)
    assert result.stderr.startswith("Far beyond noise")
    found = json.loads(place.read_text())
    density = jointwise.load(model)
    assert found[0]["columns"] == "monthly pay"
    assert found[0]["error"] > 0.5
    text = run("check", model, others, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["question"] for row in rows] == [row["question"] for row in found]
    assert {row["columns"].split(", ")[0] for row in rows} <= set(density.names)


def test_many_rows_are_drawn_from_all_blocks(model, others, monkeypatch):
    monkeypatch.setattr(survey, "MOST_ROWS", 400)
    monkeypatch.setattr("jointwise.cli.text_files.BLOCK_CELLS", 600)
    first, again, other = (run("check", model, others, "--seed", seed).stdout for seed in (1, 1, 2))
    assert "in 400 rows" in first
    assert first == again != other


def test_unseen_categories_and_lacking_columns(model, tmp_path):
    columns = people(500, seed=3)
    columns["job"] = ["smith" if job == "cook" else job for job in columns["job"]]
    result = run("check", model, write_csv(tmp_path / "t.csv", columns))
    assert "P(job=(new))" in result.stdout
    del columns["job"]
    result = run("check", model, write_csv(tmp_path / "t.csv", columns), code=1)
    assert "lacks the model's columns 'job'" in result.stderr
    run("check", "-", "-", code=2)


def test_info_shows_the_verdict_of_the_fit(model):
    verdict = jointwise.load(model).verdict
    assert verdict
    assert f"check at the fit: {verdict[:40]}" in run("info", model).stdout
