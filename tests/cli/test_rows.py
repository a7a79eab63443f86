"""Commands that go through a table row by row: score, impute, classify."""

import json

import pytest
from pyarrow import parquet
from tests.cli.cases import people, rows_of, run, typed, write_csv

import jointwise


def test_scores_are_log_densities(model, table, monkeypatch):
    scores = [float(row["log_density"]) for row in rows_of(run("score", model, table).stdout)]
    assert scores == pytest.approx(jointwise.load(model).logpdf(typed(people())))
    monkeypatch.setattr("jointwise.cli.text_files.BLOCK_CELLS", 50)
    again = rows_of(run("score", model, table).stdout)
    assert [float(row["log_density"]) for row in again] == scores
    assert [int(row["row"]) for row in again] == list(range(1, 241))


def test_the_oddest_rows_and_why(model, tmp_path, monkeypatch):
    columns = people(100, seed=1) | {"note": ["as it was"] * 100}
    columns["monthly pay"][70] = "90"
    columns["job"][70] = columns["job"][20] = "cook"
    columns["job"][30] = "astronaut"
    path = write_csv(tmp_path / "t.csv", columns)
    monkeypatch.setattr("jointwise.cli.text_files.BLOCK_CELLS", 90)
    rows = rows_of(run("score", model, path, "--lowest", 3).stdout)
    assert [row["row"] for row in rows[:2]] == ["31", "71"]
    assert [row["oddest"] for row in rows[:2]] == ["job", "monthly pay"]
    assert (rows[0]["log_density"], rows[0]["job"]) == ("-inf", "astronaut")
    assert 20 < float(rows[1]["expected"]) < 30
    assert rows[1]["note"] == "as it was"
    records = json.loads(run("score", model, path, "--lowest", 1, "--format", "json").stdout)
    assert records[0]["log_density"] == "-inf"


def test_gaps_do_not_hide_an_odd_row(model, tmp_path):
    columns = people(100, seed=1)
    for name in ("age", "job"):
        columns[name][40] = ""
    columns["monthly pay"][40] = "70"
    rows = rows_of(run("score", model, write_csv(tmp_path / "t.csv", columns), "--lowest", 1).stdout)
    assert (rows[0]["row"], rows[0]["oddest"]) == ("41", "monthly pay")


@pytest.mark.slow
def test_without_a_model_rows_are_judged_by_models_of_other_rows(tmp_path, monkeypatch):
    columns = people(150, seed=1) | {"name": [f"person {i}" for i in range(150)]}
    columns["age"][40] = "1924"
    path = write_csv(tmp_path / "t.csv", columns)
    monkeypatch.setattr("jointwise.cli.text_files.BLOCK_CELLS", 200)
    result = run("score", path, "--lowest", 1)
    (row,) = rows_of(result.stdout)
    assert (row["row"], row["oddest"], row["name"]) == ("41", "age", "person 40")
    assert "Left out, because they name the rows and tell nothing of other columns: 'name'." in result.stderr
    scores = rows_of(run("score", path).stdout)
    assert [int(each["row"]) for each in scores] == list(range(1, 151))
    assert scores[40]["log_density"] == row["log_density"]


def test_gaps_are_filled_and_nothing_else_is_touched(model, tmp_path):
    columns = people(80, seed=2)
    columns["monthly pay"][3] = "41.500"
    columns["id"] = [f"{i:03d}" for i in range(80)]
    columns["job"][5], columns["sex"][5] = "astronaut", ""
    path = write_csv(tmp_path / "t.csv", columns)
    filled = rows_of(run("impute", model, path).stdout)
    expected = jointwise.load(model).impute(
        typed({name: [c if c != "astronaut" else "" for c in cells] for name, cells in columns.items()})
    )
    for name, cells in columns.items():
        for i, cell in enumerate(cells):
            if cell:
                assert filled[i][name] == cell
            elif name == "monthly pay":
                assert float(filled[i][name]) == pytest.approx(expected[name][i], rel=1e-5)
            else:
                assert filled[i][name] == str(expected[name][i])


def test_filled_with_draws(model, table):
    draws = {run("impute", model, table, "--draw", "--seed", seed).stdout for seed in (0, 1)}
    assert len(draws) == 2
    assert run("impute", model, table, "--draw", "--seed", 0).stdout in draws


def test_filled_json_and_parquet_have_types(model, table, tmp_path):
    run("impute", model, table, "-o", tmp_path / "f.parquet")
    filled = parquet.read_table(tmp_path / "f.parquet")
    assert [str(t) for t in filled.schema.types] == ["string", "int64", "string", "double"]
    assert sum(column.null_count for column in filled.columns) == 0
    records = json.loads(run("impute", model, tmp_path / "f.parquet", "--format", "json").stdout)
    assert isinstance(records[0]["age"], int)


@pytest.mark.slow
def test_a_table_may_stand_for_its_model(table, tmp_path):
    result = run("impute", table, "-o", tmp_path / "filled.csv")
    assert "is a table: fitting it first" in result.stderr
    assert ",," not in (tmp_path / "filled.csv").read_text()


def test_classes(table, tmp_path):
    test = people(60, seed=5)
    path = write_csv(tmp_path / "test.csv", test)
    result = run("classify", table, path, "--target", "job", "--proba")
    rows = rows_of(result.stdout)
    known = [(row["job"], job) for row, job in zip(rows, test["job"], strict=True) if job]
    right = sum(a == b for a, b in known)
    assert f"Right: {right} of {len(known)}" in result.stderr
    assert right / len(known) > 0.85
    for row in rows:
        p = {"cook": float(row["P(cook)"]), "nurse": float(row["P(nurse)"])}
        assert sum(p.values()) == pytest.approx(1)
        assert float(row["probability"]) == pytest.approx(p[row["job"]]) == max(p.values())


def test_classes_without_some_columns(model, tmp_path):
    columns = people(20, seed=5)
    path = write_csv(tmp_path / "t.csv", {"monthly pay": columns["monthly pay"]})
    result = run("classify", model, path, "--target", "job")
    assert "lacks 'sex', 'age'" in result.stderr
    assert len(rows_of(result.stdout)) == 20
    assert "not categorical" in run("classify", model, path, "--target", "age", code=1).stderr
    other = write_csv(tmp_path / "o.csv", {"x": ["1"]})
    assert "none of the model's columns" in run("classify", model, other, "--target", "job", code=1).stderr
