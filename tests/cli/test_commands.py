"""The commands, as typed."""

import csv
import io
import json
import os
import shlex
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from tests.cli.cases import people, run, write_csv

import jointwise
from jointwise import JUPAD, Dictionary, JointDensity
from jointwise.cli.files import open_table
from jointwise.cli.outputs import FORMATS
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Schema, Variable


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def typed(columns):
    """Return the columns as a person would give them to Python."""
    number = {"age": int, "monthly pay": float}
    return {
        name: np.array([number.get(name, str)(cell) if cell else None for cell in cells], dtype=object)
        for name, cells in columns.items()
    }


# ---- fit, info -----------------------------------------------------------------------------------------------


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


def test_fit_tells_what_it_wonders_about(tmp_path):
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


# ---- query, sample -------------------------------------------------------------------------------------------


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


def test_a_point_of_a_density_is_remarked_on(model):
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


def test_what_cannot_be_is_a_problem_of_the_model(tmp_path):
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


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_drawn_can_be_read_again(model, tmp_path, form):
    path = tmp_path / f"drawn.{form}"
    run("sample", model, "-n", 30, "-o", path, "--seed", 0)
    scores = rows_of(run("score", model, path).stdout)
    assert len(scores) == 30
    assert all(np.isfinite(float(row["log_density"])) for row in scores)


# ---- score, impute, classify ---------------------------------------------------------------------------------


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


# ---- failures ------------------------------------------------------------------------------------------------


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


# ---- the rest ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args", [["monthly pay"], ["age, monthly pay | sex=F"], ["sex, age, job"], [], ["age", "--components"]]
)
def test_plots(model, table, tmp_path, args):
    data = [] if "--components" in args or not args else ["--data", table]
    run("plot", model, *args, *data, "-o", tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_plots_refuse(model, tmp_path):
    refusal = run("plot", model, "-o", tmp_path / "p.doc", code=2).stderr
    assert "does not end" in " ".join(refusal.replace("│", " ").split())  # wherever the box breaks its lines
    assert "Name variables" in run("plot", model, "P(age > 3)", "-o", tmp_path / "p.png", code=2).stderr
    assert "draws one variable" in run("plot", model, "--components", "-o", tmp_path / "p.png", code=2).stderr


def test_reproduce_calls_the_experiments(monkeypatch, tmp_path):
    def reproduce(names, *, quick, folder, progress):
        progress(0, 1, "")
        progress(1, 1, "toy: 1")
        return f"{folder}/{'-'.join(names)}-{quick}.md"

    monkeypatch.setattr("jointwise.experiments.reproduce", reproduce)
    result = run("reproduce", "toy", "--quick", "--folder", "there")
    assert result.stdout == "there/toy-True.md\n"
    assert "1 of 1: toy: 1" in result.stderr


def test_reproduce_knows_its_experiments():
    assert "There is no experiment 'nothing'" in run("reproduce", "nothing", code=1).stderr


def test_bench_needs_a_checkout(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "checkout" in run("bench", "accuracy", code=1).stderr
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__main__.py").write_text("import sys; sys.exit(len(sys.argv))")
    run("bench", "a", "b", code=3)


def test_help_has_an_example_for_each_command():
    commands = ["fit", "info", "query", "sample", "score", "impute", "classify", "plot", "reproduce", "demo", "bench"]
    overview = run("--help").stdout
    for command in commands:
        assert command in overview
        assert f"Example: jointwise {command}" in run(command, "--help").stdout


@pytest.mark.slow
def test_demo(tmp_path):
    shown = run("demo", "--folder", tmp_path / "demo").stdout
    assert shown.count("$ jointwise") == 7
    assert (tmp_path / "demo" / "filled.csv").exists()


@pytest.mark.slow
def test_the_commands_of_the_readme_work(tmp_path, monkeypatch):
    readme = Path(__file__).parents[2] / "README.md"
    commands = [line for line in readme.read_text().splitlines() if line.startswith("jointwise ")]
    assert len(commands) >= 8
    run("demo", "--folder", tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in commands:
        run(*shlex.split(command)[1:])
    assert {"people.jw", "drawn.csv", "filled.csv", "jobs.csv", "pair.png"} <= {
        path.name for path in tmp_path.iterdir()
    }


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


def test_a_rare_condition_is_told_once(model):
    result = run("query", model, "P(sex=F | monthly pay > 1e9)")
    assert result.stderr.count("next to impossible") == 1
    assert "extrapolates" in result.stderr
    assert run("query", model, "P(sex=F | age > 40)").stderr == ""
    drawn = run("sample", model, "-n", 2, "--given", "monthly pay > 1e9")
    assert "next to impossible" in drawn.stderr


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
    assert "surrogate pair" in run("plot", halves / "m.jw", "-o", tmp_path / "a.png", code=1).stderr


@pytest.mark.parametrize("dtype", [pa.timestamp("ms"), pa.timestamp("s", "UTC"), pa.date32()])
def test_moments_beyond_the_calendar_of_python(tmp_path, dtype):
    step = 100 if dtype == pa.date32() else 100 * 86_400 * (1000 if dtype.unit == "ms" else 1)
    start = 2_940_000 * step // 100
    columns = {
        "t": pa.array([start + i * step for i in range(60)], dtype),
        "c": ["u", "v", None] * 20,
    }
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
