"""Options that say how a table is written, hints about tables that look misread, weights and rare categories."""

import csv
import io
import json

import numpy as np
import pytest
from tests.cli.cases import rows_of, run, write_csv

import jointwise
from jointwise.cli.cells import CellCounts, cell_type
from jointwise.cli.files import open_table
from jointwise.cli.rare import Labels, merged
from jointwise.cli.reading import Reading
from jointwise.exceptions import InputError
from jointwise.tables import encode, read_table
from jointwise.tables.variables import OTHER, Schema, Variable

FEW = ("--n-components", 1)


def opened(tmp_path, text, **options):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_table(str(path), Reading(**options))


def cells(file):
    (block,) = file.blocks()
    return file.typed_cells(block, file.dtypes())


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("1,x\n2,y\n", {"header": False}, {"column 1": [1, 2], "column 2": ["x", "y"]}),
        ("1,x\n2,y\n", {"header": False, "names": ("a", "b")}, {"a": [1, 2], "b": ["x", "y"]}),
        ("p,q\n1,x\n2,y\n", {"names": ("a", "b")}, {"a": [1, 2], "b": ["x", "y"]}),
        ("a:b\n1:x,z\n", {"separator": ":"}, {"a": [1], "b": ["x,z"]}),
        ("a   b\n1  2.5\n3 4\n", {"separator": " "}, {"a": [1, 3], "b": [2.5, 4.0]}),
        ("a;b\n1,5;x,y\n1.234,25;z\n", {"decimal": ","}, {"a": [1.5, 1234.25], "b": ["x,y", "z"]}),
        ("a\tb\n-0,5\t3\n", {"decimal": ","}, {"a": [-0.5], "b": [3]}),
        ("a,é\n1,ü\n".encode("latin-1"), {"encoding": "latin-1"}, {"a": [1], "é": ["ü"]}),
        ("a,é\n1,ü\n".encode("utf-16"), {"encoding": "utf-16"}, {"a": [1], "é": ["ü"]}),
        ("a,b\n1,?\n-,2\n", {"missing": frozenset({"?", "-"})}, {"a": [1, None], "b": [None, 2]}),
    ],
)
def test_a_table_is_read_as_it_is_written(tmp_path, text, options, expected):
    assert cells(opened(tmp_path, text, **options)) == expected


def test_wrong_options_say_what_is_wrong(tmp_path):
    with pytest.raises(InputError, match=r"--names gives 1 names, but .* has 2 columns"):
        opened(tmp_path, "1,2\n", names=("a",))
    with pytest.raises(InputError, match=r"not UTF-8 .*--encoding latin-1"):
        opened(tmp_path, "a,é\n1,ü\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"looks like data .*--no-header"):
        opened(tmp_path, "1.5,0,0\n2.5,1,1\n")
    (tmp_path / "t.json").write_text('{"a": 1}\n')
    with pytest.raises(InputError, match=r"--sep: these options are for CSV, but .* is json"):
        open_table(str(tmp_path / "t.json"), Reading(separator=";"))
    assert open_table(str(tmp_path / "t.json"), Reading(encoding="latin-1")).names == ("a",)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--sep", "ab"), "not one character"),
        (("--sep", '"'), "not one character"),
        (("--decimal", ";"), "neither . nor ,"),
        (("--decimal", ",", "--sep", ","), "same sign"),
        (("--encoding", "klingon"), "no encoding of text"),
        (("--encoding", "rot13"), "no encoding of text"),
        (("--names", "a,,b"), "not names by commas"),
        (("--names", "a,a"), "more than once"),
        (("--rare", "much"), "not a share"),
        (("--rare", "100%"), "not a share"),
    ],
)
def test_wrong_options_are_a_wrong_use(tmp_path, option, words):
    message = run("fit", tmp_path / "none.csv", "-o", tmp_path / "m.jw", *option, code=2).stderr
    assert words in " ".join(message.replace("│", " ").split())


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,virginica\n", True),
        ("2024-01-01,7\n2024-01-02,8\n", True),
        ("2019,2020,2021\n1,2,3\n", False),
        ("0,1,2\n1.5,2.5,x\n", False),
        ("a,b\n1,2\n", False),
        ("a,7\nx,y\n", False),
    ],
)
def test_a_header_that_looks_like_data(tmp_path, text, header):
    assert bool(opened(tmp_path, text).headed_by_data()) is header
    assert not opened(tmp_path, text, header=False).headed_by_data()


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["3,5", "2,0", "7"], "--decimal ,"),
        (["1"] * 9 + ["old"], "though most of its cells are numbers, because of 'old'"),
        (["red", "?", "blue", "?"], "holds '?' or the like in 2 cells; if that marks a gap, add --missing '?'"),
        (["red", "Unknown", "blue"], "--missing 'Unknown'"),
        (["red", "blue", "none"], None),
        (["1", "2"], None),
    ],
)
def test_hints_about_a_column(column, words):
    counts = CellCounts()
    counts.add(column, cell_type)
    hint = counts.hint()
    assert not hint if words is None else words in hint


def test_hints_are_notes_of_fit_and_of_a_table_in_place_of_a_model(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("5.1,a\n" + "4.9,b\n6.1,?\n" * 20)
    for args in (("fit", path, "-o", tmp_path / "m.jw", *FEW), ("info", path)):
        result = run(*args)
        assert "looks like data ('5.1', 'a')" in result.stderr
        assert "--missing '?'" in result.stderr
    quiet = run("fit", path, "-o", tmp_path / "m.jw", *FEW, "--no-header", "--names", "x,kind", "--missing", "?")
    assert "Note" not in quiet.stderr
    assert jointwise.load(tmp_path / "m.jw").names == ("x", "kind")
    drawn = run("sample", path, "-n", 3, "--no-header", "--names", "x,kind").stdout
    assert drawn.startswith("x,kind\n")


def weighted_table(tmp_path, rng):
    columns = {
        "sex": rng.choice(["F", "M"], 90).tolist(),
        "x": rng.normal(size=90).round(2).tolist(),
        "w": rng.integers(1, 4, 90).tolist(),
    }
    repeated = {name: np.repeat(columns[name], columns["w"]).tolist() for name in ("sex", "x")}
    return write_csv(tmp_path / "w.csv", columns), write_csv(tmp_path / "r.csv", repeated)


@pytest.mark.parametrize("target", [(), ("--target", "sex")])
def test_a_weight_counts_a_row_as_often(tmp_path, target):
    weighted, repeated = weighted_table(tmp_path, np.random.default_rng(0))
    run("fit", weighted, "-o", tmp_path / "w.jw", *FEW, *target, "--weight", "w")
    run("fit", repeated, "-o", tmp_path / "r.jw", *FEW, *target)
    a, b = (jointwise.load(tmp_path / name) for name in ("w.jw", "r.jw"))
    assert set(a.names) == {"sex", "x"}
    assert a.probability({"sex": "F"}) == pytest.approx(b.probability({"sex": "F"}), abs=1e-6)
    assert a.probability({"x": (0, None)}) == pytest.approx(b.probability({"x": (0, None)}), abs=0.02)


def test_a_wrong_weight_is_refused(tmp_path):
    path, _ = weighted_table(tmp_path, np.random.default_rng(0))
    for args, words in (
        (("--weight", "ww"), "did you mean 'w'"),
        (("--weight", "sex"), "must name a column of numbers"),
        (("--weight", "w", "--drop", "w"), "not fitted"),
        (("--weight", "sex", "--target", "sex"), "not fitted"),
    ):
        assert words in run("fit", path, "-o", tmp_path / "m.jw", *FEW, *args, code=1).stderr


def plain_counts(blocks, name):
    found = {}
    for block in blocks:
        for label in block[name]:
            if label is not None:
                found[label] = found.get(label, 0) + 1
    return found


def test_rare_categories_are_merged_as_a_plain_loop_would():
    rng = np.random.default_rng(0)
    labels = ["a", "b", "c", "d", "e", None]
    blocks = [
        {
            "x": rng.choice(labels, 50, p=[0.5, 0.3, 0.05, 0.04, 0.01, 0.1]).tolist(),
            "id": [f"{k}-{i}" for i in range(50)],
        }
        for k in range(4)
    ]
    tables = [read_table(block) for block in blocks]
    counted = Labels(tables)
    kept = counted.kept(0.1)
    counts = plain_counts(blocks, "x")
    assert kept == {"x": frozenset(label for label, n in counts.items() if n >= 0.1 * sum(counts.values()))}
    for block, table in zip(blocks, merged(tables, kept), strict=True):
        column = table.read(0)
        found = [None if np.isnan(v) else column.labels[int(v)] for v in column.values]
        assert found == [x if x is None or x in kept["x"] else OTHER for x in block["x"]]
        assert table.read(1).labels == read_table(block).read(1).labels
    assert "'x' (3 of 5" in counted.note(kept)
    assert counted.kept(1e-9) == {}


def test_one_rare_category_stays_and_so_does_a_column_of_names():
    table = read_table({"x": ["a"] * 50 + ["b"] * 49 + ["c"], "id": [str(i) + "n" for i in range(100)]})
    assert Labels([table]).kept(0.05) == {}
    assert Labels([table], skip=["x"]).counts.keys() == {"id"}


def test_rare_categories_of_a_file(tmp_path):
    rng = np.random.default_rng(1)
    jobs = rng.choice(["cook", "nurse", *(f"rare {i}" for i in range(9))], 300, p=[0.5, 0.41, *[0.01] * 9]).tolist()
    table = write_csv(tmp_path / "t.csv", {"job": jobs, "x": rng.normal(size=300).round(2).tolist()})
    result = run("fit", table, "-o", tmp_path / "m.jw", *FEW, "--rare", "5%")
    assert "rare categories are merged into '(other)'" in result.stderr
    density = jointwise.load(tmp_path / "m.jw")
    assert density.schema["job"].categories == ("(other)", "cook", "nurse")
    rare = sum(job.startswith("rare") for job in jobs) / 300
    assert float(run("query", tmp_path / "m.jw", "P(job = (other))").stdout) == pytest.approx(rare, abs=0.01)
    # a category that the model does not name is one of the others
    scores = [float(row["log_density"]) for row in rows_of(run("score", tmp_path / "m.jw", table).stdout)]
    assert np.isfinite(scores).all()


def test_other_stands_for_what_a_schema_does_not_name():
    schema = Schema((Variable("job", "categorical", categories=(OTHER, "cook")),))
    assert encode({"job": ["cook", "smith", None]}, schema)[:, 0].tolist()[:2] == [1.0, 0.0]


# ---- several questions ---------------------------------------------------------------------------------------


def test_several_questions(model, tmp_path):
    questions = ["P(job=nurse | sex=F)", "mean(age | job=cook)", "job"]
    shown = run("query", model, *questions).stdout
    assert [line for line in shown.splitlines() if line in {*questions}] == questions
    (tmp_path / "q.txt").write_text("# two questions\n\nmean(age | job=cook)\njob\n")
    assert run("query", model, questions[0], "--file", tmp_path / "q.txt").stdout == shown
    assert run("query", model, questions[0], "-f", "-", input="mean(age | job=cook)\njob\n").stdout == shown
    rows = list(csv.DictReader(io.StringIO(run("query", model, *questions, "--format", "csv").stdout)))
    assert list(rows[0]) == ["question", "job", "probability", "mean(age)"]
    assert [row["question"] for row in rows] == [*questions[:2], "job", "job"]
    assert [row["job"] for row in rows] == ["", "", "cook", "nurse"]
    assert float(rows[1]["mean(age)"]) > 20


def test_answers_in_json(model):
    questions = ["P(job=nurse | sex=F)", "q90(age, monthly pay)", "age | job=cook"]
    probability, measures, table = json.loads(run("query", model, *questions, "--format", "json").stdout)
    density = jointwise.load(model)
    assert probability["evidence"] == pytest.approx(density.probability({"sex": "F"}))
    assert probability["probability"] == pytest.approx(density.ask(questions[0]).value)
    assert measures["quantile"] == {
        "age": density.quantile("age", 0.9),
        "monthly pay": density.quantile("monthly pay", 0.9),
    }
    assert sum(row["probability"] for row in table["rows"]) == pytest.approx(1)
    assert set(table["summary"]["age"]) == {"mean", "sd", "q05", "q25", "median", "q75", "q95"}
    (one,) = json.loads(run("query", model, "mean(age)", "--format", "json").stdout)
    assert one == {"question": "mean(age)", "evidence": 1.0, "mean": pytest.approx(density.mean()["age"])}


def test_a_wrong_question_among_several_answers_none(model, tmp_path):
    result = run("query", model, "job", "mean(agee)", code=2)
    assert result.stdout == ""
    assert "did you mean 'age'" in result.stderr
    (tmp_path / "q.txt").write_text("# nothing\n")
    assert "at least one question" in run("query", model, "-f", tmp_path / "q.txt", code=2).stderr
    (tmp_path / "q.txt").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in run("query", model, "-f", tmp_path / "q.txt", code=1).stderr
    (tmp_path / "q.txt").write_bytes(b"x" * (1 << 20) + b"x")
    assert "at most" in run("query", model, "-f", tmp_path / "q.txt", code=1).stderr


def test_a_measure_on_the_screen_and_in_a_file(model):
    density = jointwise.load(model)
    assert float(run("query", model, "median(age | job=cook)").stdout) == density.ask("median(age | job=cook)").value
    assert run("query", model, "mode(job | sex=F)").stdout == "nurse\n"
    assert run("query", model, "mean(age, monthly pay)").stdout.startswith("age: ")
    assert run("query", model, "q50(age)", "--format", "csv").stdout.startswith("q50(age)\n")


def test_samples_given_alternatives(model):
    rows = rows_of(run("sample", model, "-n", 40, "--given", "age < 30 or age > 50").stdout)
    assert all(int(row["age"]) < 30 or int(row["age"]) > 50 for row in rows)
