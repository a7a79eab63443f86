"""Commands on a model in which gaps are a part."""

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
