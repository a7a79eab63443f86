"""Fit, info, query and sample, and errors that all commands share."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from tests.cli.cases import people, rows_of, run, typed, write_csv

import jointwise
from jointwise import JUPAD, Dictionary, JointDensity
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Schema, Variable


def test_a_fitted_model_is_that_of_the_library(table, tmp_path):
    result = run("fit", table, "-o", tmp_path / "m.jw", "--n-components", 2, "--seed", 3)
    assert result.stdout == ""
    assert "joint density of 4 columns" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.jw"]
    density = jointwise.load(tmp_path / "m.jw")
    same = JUPAD(2, random_state=3).fit(typed(people())).density_
    assert density.schema == same.schema
    assert np.array_equal(density.mixture.weights, same.mixture.weights)
    assert [str(v.kind) for v in density.schema] == ["categorical", "integer", "categorical", "continuous"]


def test_fit_in_many_blocks_gives_the_same_file(table, tmp_path, monkeypatch):
    run("fit", table, "-o", tmp_path / "one.jw", "--n-components", 2)
    monkeypatch.setattr("jointwise.cli.text_files.BLOCK_CELLS", 70)
    run("fit", table, "-o", tmp_path / "many.jw", "--n-components", 2)
    assert (tmp_path / "one.jw").read_bytes() == (tmp_path / "many.jw").read_bytes()


def test_target_kinds_and_dropped_columns(table, tmp_path):
    model = tmp_path / "m.jw"
    run(
        "fit",
        table,
        "-o",
        model,
        "--target",
        "sex",
        "--kind",
        "age=categorical",
        "--drop",
        "monthly pay",
        "--n-components",
        2,
    )
    schema = jointwise.load(model).schema
    assert schema.names == ("age", "job", "sex")
    assert schema["age"].categories[0] == 20


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_typed_files_give_the_model_of_the_csv(table, model, tmp_path, form):
    arrow = pa.table({name: cells.tolist() for name, cells in typed(people()).items()})
    path = tmp_path / f"t.{form}"
    (parquet.write_table if form == "parquet" else feather.write_feather)(arrow, path)
    run("fit", path, "-o", tmp_path / "m.jw", "--n-components", 3)
    assert (tmp_path / "m.jw").read_bytes() == Path(model).read_bytes()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--kind", "age=number"], 2, "age=number"),
        (["--kind", "wage=integer"], 1, "Unknown column 'wage'"),
        (["--drop", "agee"], 1, "did you mean 'age'"),
        (["--target", "salary"], 1, "Unknown column 'salary'"),
        (["--n-components", "0"], 2, "--n-components"),
        (["--kind", "job=continuous"], 1, "cannot be continuous"),
    ],
)
def test_fit_refuses(table, tmp_path, args, code, words):
    result = run("fit", table, "-o", tmp_path / "m.jw", *args, code=code)
    assert words in result.stderr
    assert result.stdout == ""
    assert not list(tmp_path.iterdir())


def test_fit_notes_odd_cells_and_columns_left_out(tmp_path):
    columns = people(60)
    columns["name"] = [f"person {i}" for i in range(60)]
    columns["age"][5] = "unknown"
    result = run("fit", write_csv(tmp_path / "t.csv", columns), "-o", tmp_path / "m.jw", "--n-components", 1)
    assert "'age' is read as text" in result.stderr
    assert "--missing 'unknown'" in result.stderr
    assert "Left out, because they name the rows and tell nothing of other columns: 'name'." in result.stderr
    kept = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.jw", "--n-components", 1, "--keep", "name")
    assert "Left out" not in kept.stderr
    result = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.jw", "--n-components", 1, "--missing", "unknown")
    assert "is read as text" not in result.stderr


def test_info(model):
    shown = run("info", model).stdout
    assert "4 columns" in shown
    assert "cook, nurse" in shown
    columns = json.loads(run("info", model, "--format", "json").stdout)
    assert [row["kind"] for row in columns] == ["categorical", "integer", "categorical", "continuous"]
    pairs = rows_of(run("info", model, "--pairs", "--format", "csv").stdout)
    assert len(pairs) == 6
    assert {pairs[0]["column"], pairs[0]["with"]} == {"job", "monthly pay"}


def test_probabilities_are_those_of_the_density(model):
    density = jointwise.load(model)
    asked = float(run("query", model, "P(job=nurse | sex=F, monthly pay >= 30)").stdout)
    expected = density.condition({"sex": "F", "monthly pay": (30, None)}).probability({"job": "nurse"})
    assert asked == pytest.approx(expected, rel=1e-5)
    table = rows_of(run("query", model, "job | sex=F", "--format", "csv").stdout)
    given = density.condition({"sex": "F"})
    assert {row["job"]: float(row["probability"]) for row in table} == pytest.approx(
        {job: given.probability({"job": job}) for job in ("cook", "nurse")}
    )


def test_pictures(model):
    one = run("query", model, "age | job=cook").stdout
    assert "█" in one
    assert "median" in one
    two = run("query", model, "job, sex").stdout
    assert "job \\ sex" in two
    three = run("query", model, "job, sex, age", "--top", 4).stdout
    assert len(three.strip().splitlines()) == 4 + 2 + 1


def test_a_single_value_of_a_density_gets_a_note(model):
    result = run("query", model, "P(monthly pay = 31.4159)")
    assert result.stdout == "0\n"
    assert "ask for a range" in result.stderr


def test_a_wrong_question_shows_its_place(model):
    result = run("query", model, "job | sexx=F", code=2)
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "Error: Unknown variable 'sexx'; did you mean 'sex'? Known: 'sex', 'age', 'job', 'monthly pay'.",
        "  job | sexx=F",
        "        ^",
    ]


def test_an_impossible_condition_is_a_problem_of_the_model(tmp_path):
    coin = Variable("coin", "categorical", categories=("heads", "tails"), dtype="string")
    dice = Variable("dice", "integer", dtype="int64")
    dictionaries = (Dictionary.categories(2), Dictionary.points([1, 2]))
    mixture = ProductMixture([1.0], [np.array([[1.0], [0.0]]), np.array([[0.5], [0.5]])], dictionaries)
    JointDensity(Schema((coin, dice)), mixture).save(tmp_path / "m.jw")
    assert "probability zero" in run("query", tmp_path / "m.jw", "dice | coin=tails", code=1).stderr
    assert "tails" not in run("query", tmp_path / "m.jw", "coin").stdout


def test_samples(model):
    first = run("sample", model, "-n", 50, "--seed", 1).stdout
    assert first == run("sample", model, "-n", 50, "--seed", 1).stdout
    assert first != run("sample", model, "-n", 50).stdout
    rows = rows_of(run("sample", model, "-n", 50, "--given", "sex=F, age > 40").stdout)
    assert len(rows) == 50
    assert list(rows[0]) == ["sex", "age", "job", "monthly pay"]
    assert all(row["sex"] == "F" and int(row["age"]) > 40 for row in rows)
    assert rows_of(run("sample", model, "-n", 0).stdout) == []


def test_samples_come_in_blocks(model, monkeypatch):
    monkeypatch.setattr("jointwise.cli.commands.SAMPLE_BLOCK", 7)
    assert len(rows_of(run("sample", model, "-n", 20).stdout)) == 20


def test_wrong_columns_numbers_and_places(model, table, tmp_path):
    other = write_csv(tmp_path / "o.csv", {"x": ["1"]})
    assert "lacks the model's columns" in run("score", model, other, code=1).stderr
    bad = people(5)
    bad["age"][2] = "old"
    message = run("score", model, write_csv(tmp_path / "bad.csv", bad), code=1).stderr
    assert "'age' takes numbers; got 'old'" in message
    assert "--missing" in message
    assert "There is no file" in run("info", tmp_path / "none.jw", code=1).stderr
    assert "no folder" in run("impute", model, table, "-o", tmp_path / "no" / "f.csv", code=1).stderr
    assert "its extension is not one of" in run("sample", model, "-o", tmp_path / "f.xyz", code=1).stderr
    assert "--format" in run("sample", model, "--format", "xls", code=2).stderr
    assert "--format" in run("query", model, "sex", "--format", "table", "-o", tmp_path / "t", code=2).stderr
    assert "DATA" in run("score", model, code=2).stderr
    assert "both" in run("score", "-", "-", code=2).stderr


def test_damaged_models_and_empty_tables(model, tmp_path):
    damaged = tmp_path / "damaged.jw"
    damaged.write_bytes(Path(model).read_bytes()[:-5])
    result = run("query", damaged, "sex", code=1)
    assert "damaged or cut short" in result.stderr
    assert "Traceback" not in result.stderr
    empty = tmp_path / "empty.csv"
    empty.write_text("a,b\n")
    assert "has no rows" in run("fit", empty, "-o", tmp_path / "m.jw", code=1).stderr
    assert run("score", model, write_csv(tmp_path / "h.csv", people(0))).stdout == ""


def test_debug_raises(tmp_path):
    result = run("info", tmp_path / "none.jw", "--debug", code=1, foreign=(FileNotFoundError,))
    assert isinstance(result.exception, FileNotFoundError)


def test_help_has_an_example_for_each_command():
    commands = ["fit", "info", "query", "sample", "predict", "score", "impute", "classify", "check", "compare"]
    commands += ["report", "plot", "reproduce", "demo", "bench"]
    overview = run("--help").stdout
    for command in commands:
        assert command in overview
        assert f"Example: jointwise {command}" in run(command, "--help").stdout


def test_a_fit_goes_on_from_its_checkpoint_and_removes_it(table, model, tmp_path, monkeypatch):
    out, path = tmp_path / "m.jw", tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patched:
        patched.setattr("jointwise.fitting.rows.solve", lambda *args, **options: 1 / 0)  # after the choice
        run(
            "--debug",
            "fit",
            table,
            "-o",
            out,
            "--n-components",
            3,
            "--checkpoint",
            path,
            code=1,
            foreign=(ZeroDivisionError,),
        )
    assert path.exists()
    assert "another fit" in run("fit", table, "-o", out, "--n-components", 2, "--checkpoint", path, code=1).stderr
    run("fit", table, "-o", out, "--n-components", 3, "--checkpoint", path)
    assert out.read_bytes() == Path(model).read_bytes()
    assert not path.exists()


def test_tables_for_the_screen_are_bounded_and_files_are_not(model, tmp_path):
    question = "age, monthly pay, sex, job"
    shown = run("query", model, question).stdout
    assert shown.count("\n") < 60
    assert "These are the 50 most probable of" in shown
    assert "-o FILE" in shown
    run("query", model, question, "-o", tmp_path / "all.csv")
    with (tmp_path / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert f"of {len(rows):,} rows" in shown
    assert sum(float(row["probability"]) for row in rows) == pytest.approx(1)
    few = run("query", model, question, "--top", 70).stdout
    assert "most probable" not in few
    assert few.count("\n") > 70


@pytest.mark.parametrize("n", ["100000000000000000000", "1000000001", "1e20", "-1"])
def test_a_number_of_rows_that_cannot_be_is_refused(model, n):
    assert "Traceback" not in run("sample", model, "-n", n, code=2).stderr


def test_a_rare_condition_warns_once(model):
    result = run("query", model, "P(sex=F | monthly pay > 1e9)")
    assert result.stderr.count("next to impossible") == 1
    assert "extrapolates" in result.stderr
    assert run("query", model, "P(sex=F | age > 40)").stderr == ""
    drawn = run("sample", model, "-n", 2, "--given", "monthly pay > 1e9")
    assert "next to impossible" in drawn.stderr


@pytest.mark.parametrize("dtype", [pa.timestamp("ms"), pa.timestamp("s", "UTC"), pa.date32()])
def test_moments_beyond_the_calendar_of_python(tmp_path, dtype):
    step = 100 if dtype == pa.date32() else 100 * 86_400 * (1000 if dtype.unit == "ms" else 1)
    start = 2_940_000 * step // 100
    columns = {"t": pa.array([start + i * step for i in range(60)], dtype), "c": ["u", "v", None] * 20}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    run("fit", tmp_path / "t.parquet", "-o", tmp_path / "m.jw", "--n-components", 2)
    for form in ("csv", "jsonl", "parquet"):
        run("impute", tmp_path / "m.jw", tmp_path / "t.parquet", "-o", tmp_path / f"out.{form}")
    assert "10019-" in (tmp_path / "out.csv").read_text()
    assert "10019-" in run("score", tmp_path / "m.jw", tmp_path / "t.parquet", "--lowest", 60).stdout


def test_a_name_that_pyarrow_cannot_take_is_one_sentence(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet")
    parquet.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "t.parquet")
    (tmp_path / "t.parquet").rename(path)
    for paths in ([path], [path, path]):
        assert "not valid UTF-8" in run("fit", *paths, "-o", tmp_path / "m.jw", code=1).stderr
