"""Commands on a model in which gaps are a part."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.cases import rows_of, run, write_csv

import jointwise


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table whose pay is missing mostly for pilots, and a model of it."""
    folder = tmp_path_factory.mktemp("gaps")
    rng = np.random.default_rng(0)
    job = rng.choice(["cook", "pilot"], 400)
    pay = (rng.normal(30, 5, 400) + 20 * (job == "pilot")).round(2)
    gone = rng.random(400) < np.where(job == "pilot", 0.6, 0.1)
    cells = ["" if gap else str(value) for gap, value in zip(gone, pay, strict=True)]
    write_csv(folder / "people.csv", {"job": job.tolist(), "pay": cells})
    table, model = str(folder / "people.csv"), str(folder / "people.jw")
    run("fit", table, "-o", model, "--gaps", "auto", "--n-components", "2")
    return table, model, job, gone


def test_a_fitted_model_tells_gaps(files):
    _, model, job, gone = files
    density = jointwise.load(model)
    assert density.names == ("job", "pay")
    assert density.gaps == {"pay": "pay missing"}
    answer = float(run("query", model, "P(pay missing | job = pilot)").stdout)
    assert answer == pytest.approx(gone[job == "pilot"].mean(), abs=0.05)


def test_samples_have_gaps_and_the_columns_of_the_table(files):
    rows = rows_of(run("sample", files[1], "-n", "200", "--seed", "0").stdout)
    assert list(rows[0]) == ["job", "pay"]
    share = np.mean([row["pay"] == "" for row in rows])
    assert share == pytest.approx(files[3].mean(), abs=0.1)


def test_gaps_are_filled(files):
    table, model, _, gone = files
    rows = rows_of(run("impute", model, table).stdout)
    assert list(rows[0]) == ["job", "pay"]
    assert all(row["pay"] for row in rows)
    assert len(rows) == len(gone)


@pytest.mark.parametrize("command", ["score", "check"])
def test_tables_need_the_columns_of_the_table_alone(files, command):
    run(command, files[1], files[0])


def test_other_words_for_gaps_are_refused(files, tmp_path):
    result = run("fit", files[0], "-o", str(tmp_path / "m.jw"), "--gaps", "mnar", code=2)
    assert "--gaps" in result.stderr


def test_gaps_are_no_columns_of_what_is_shown(files):
    table, model, _, gone = files
    shown = run("info", model, "--data", table).stdout
    assert "2 columns" in shown
    assert "gaps: part of the model for 'pay'" in shown
    assert f"{gone.sum():,} cells" in shown
    rows = rows_of(run("info", model, "--data", table, "--format", "csv").stdout)
    assert [row["column"] for row in rows] == ["job", "pay"]
    assert rows[1]["gaps"] == str(gone.sum())
    pairs = rows_of(run("info", model, "--pairs", "--format", "csv").stdout)
    assert [(row["column"], row["with"]) for row in pairs] == [("job", "pay")]


def test_an_odd_gap_is_told(files, tmp_path):
    """A row of a table is odd because its cell is missing: rows are told in JSON and CSV, the gap without a value."""
    _, model, _, _ = files
    path = write_csv(tmp_path / "t.csv", {"job": ["cook", "cook"], "pay": ["30", ""]})
    records = [
        json.loads(line) for line in run("score", model, path, "--explain", "--format", "jsonl").stdout.splitlines()
    ]
    density = jointwise.load(model)
    expected = density.surprisal({"job": ["cook", "cook"], "pay": [30.0, None]})[1]
    assert expected[1] > 1
    cell = next(cell for cell in records[1]["odd_cells"] if cell["column"] == "pay")
    assert cell["value"] is None
    assert cell["surprisal"] == pytest.approx(expected[1], rel=1e-4)
    lowest = rows_of(run("score", model, path, "--lowest", 2).stdout)
    assert [row["row"] for row in lowest] == ["2", "1"]
    found = -density.oddness({"job": ["cook", "cook"], "pay": [None, 30.0]})
    assert [float(row["score"]) for row in lowest] == pytest.approx(found, rel=1e-4)


def test_predictions_ignore_whether_the_cell_is_there(files, tmp_path):
    """The command says what Python says: of the column that is asked for, nothing in the row counts."""
    _, model, _, _ = files
    density = jointwise.load(model)
    columns = {"job": ["cook", "pilot"], "pay": ["", "31"]}
    path = write_csv(tmp_path / "t.csv", columns)
    rows = rows_of(run("predict", model, path, "--event", "pay missing", "--event", "job=pilot").stdout)
    known = {"job": ["cook", "pilot"], "pay": [None, 31.0]}
    for event, head in (({"pay": None}, "P(pay missing)"), ({"job": "pilot"}, "P(job=pilot)")):
        assert [float(row[head]) for row in rows] == pytest.approx(density.probability(event, known), rel=1e-6)
    rows = rows_of(run("predict", model, path, "--target", "pay").stdout)
    assert [float(row["pay"]) for row in rows] == pytest.approx(density.predict("pay", known), rel=1e-3)
    rows = rows_of(run("predict", model, path, "--target", "job", "--proba").stdout)
    assert [float(row["P(pilot)"]) for row in rows] == pytest.approx(
        density.predict_proba("job", known)[:, 1], rel=1e-6
    )


def test_more_gaps_are_drift_of_their_column(files, tmp_path):
    table, model, _, gone = files
    rows = rows_of(Path(table).read_text())
    for row in rows[::2]:
        row["pay"] = ""
    new = write_csv(tmp_path / "new.csv", {name: [row[name] for row in rows] for name in ("job", "pay")})
    run("fit", new, "-o", tmp_path / "new.jw", "--gaps", "informative", "--n-components", "2")
    result = run(
        "compare", model, tmp_path / "new.jw", "--data", new, "--fail-above", "0.02", "--format", "json", code=1
    )
    first = json.loads(result.stdout)[0]
    assert first["columns"] == "pay"
    assert first["question"] == "P(pay missing)"
    assert first["beyond_noise"]
    assert first["new"] - first["old"] == pytest.approx(0.5 * (1 - gone.mean()), abs=0.1)
    assert run("query", model, first["question"]).stdout


@pytest.mark.slow
def test_a_report_shows_the_columns_of_the_table(files, tmp_path):
    run("report", files[1], files[0], "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Distribution of pay" in page
    assert "Distribution of pay missing" not in page
    assert "gaps in the model" in page
