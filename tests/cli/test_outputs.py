"""Results in every format: written whole or not at all, and readable again."""

import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.cases import people, rows_of, run, write_csv

from jointwise.cli.files import open_table
from jointwise.cli.outputs import FORMATS


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_drawn_can_be_read_again(model, tmp_path, form):
    path = tmp_path / f"drawn.{form}"
    run("sample", model, "-n", 30, "-o", path, "--seed", 0)
    scores = rows_of(run("score", model, path).stdout)
    assert len(scores) == 30
    assert all(np.isfinite(float(row["log_density"])) for row in scores)


def test_a_failed_result_leaves_the_old_file(model, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    bad = people(5)
    bad["age"][4] = "old"
    run("impute", model, write_csv(tmp_path / "bad.csv", bad), "-o", out, code=1)
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "out.csv"]


def test_pyarrow_is_asked_for_by_name(table, model, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1]}), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install pyarrow" in run("fit", path, "-o", tmp_path / "m.jw", code=1).stderr
    assert "pip install pyarrow" in run("sample", model, "-o", path, code=1).stderr
    assert run("score", model, table).exit_code == 0


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A table with halves of surrogate pairs, which JSON can hold, and a model of it."""
    folder = tmp_path_factory.mktemp("halves")
    rng = np.random.default_rng(0)
    rows = [{"a\ud800": str(rng.choice(["x", "y"])) + "\udc80", "n": float(rng.normal())} for _ in range(60)]
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("fit", folder / "t.jsonl", "-o", folder / "m.jw", "--n-components", 2)
    return folder


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl", "parquet", "arrow"])
def test_halves_of_surrogate_pairs_are_written(halves, tmp_path, form):
    out = tmp_path / f"out.{form}"
    run("sample", halves / "m.jw", "-n", 20, "-o", out)
    if form in {"json", "jsonl"}:  # comes back as it was
        assert set(open_table(str(out)).names) == {"a\ud800", "n"}
    else:
        assert r"a\ud800" in open_table(str(out)).names
    run("score", halves / "m.jw", halves / "t.jsonl", "--lowest", 2, "-o", out)
    run("impute", halves / "m.jw", halves / "t.jsonl", "-o", out)


def test_a_picture_of_half_a_pair_is_refused(halves, tmp_path):
    run("plot", halves / "m.jw", "-o", tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 1000
