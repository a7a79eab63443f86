"""The command classifies like JointClassifier, from a model file or from the table to learn from."""

import csv
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.cases import people, run, write_csv

import jointwise
from jointwise import ClassModel, JointClassifier, JointDensity
from jointwise.tables.dtypes import is_missing

# written when a classifier could have a second density
OLDER = Path(__file__).parents[1] / "joint" / "golden" / "version-1-classes.jw"


def bands(n=240, seed=0, labels=("high", "low", "mid")):
    """Three narrow bands side by side, which only both numbers together separate; also text, integers and gaps."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 3, n)
    along = 3 * rng.normal(size=n)
    columns = {
        "a": along + 0.3 * rng.normal(size=n),
        "kind": np.array(labels, dtype=object)[code],
        "b": along + code,
        "job": np.where(rng.random(n) < 0.3 + 0.2 * code, "cook", "nurse").astype(object),
        "k": rng.poisson(3 + code),
    }
    columns["job"][rng.random(n) < 0.1] = None
    columns["b"][rng.random(n) < 0.05] = np.nan
    return columns


def written(path, columns):
    """Write the columns as CSV, with empty cells for gaps and every digit of the numbers."""
    cells = {
        name: ["" if is_missing(cell) else str(cell) for cell in column.tolist()] for name, column in columns.items()
    }
    return write_csv(path, cells)


def features(columns, target="kind"):
    return {name: column for name, column in columns.items() if name != target}


def probabilities(text, classes):
    rows = list(csv.DictReader(io.StringIO(text)))
    return np.array([[float(row[f"P({c})"]) for c in classes] for row in rows])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A table, its model file, a test table, and the classifier of the same rows."""
    folder = tmp_path_factory.mktemp("bands")
    table, test = written(folder / "train.csv", bands()), written(folder / "test.csv", bands(60, seed=1))
    run("fit", table, "--target", "kind", "-o", folder / "m.jw")
    same = JointClassifier(random_state=0).fit(features(bands()), bands()["kind"])
    return table, folder / "m.jw", test, same


def test_a_model_file_holds_all_that_the_classifier_knows(trained):
    _, path, test, same = trained
    expected = same.predict_proba(features(bands(60, seed=1)))
    model = ClassModel.load(path)
    np.testing.assert_allclose(model.predict_proba(features(bands(60, seed=1))), expected, rtol=0, atol=1e-12)
    result = run("classify", path, test, "--target", "kind", "--proba")
    np.testing.assert_allclose(probabilities(result.stdout, same.classes_), expected, rtol=1e-9)  # as many are shown
    right = int(np.sum(same.predict(features(bands(60, seed=1))) == bands(60, seed=1)["kind"]))
    assert f"Right: {right} of 60 rows" in result.stderr
    assert "Note" not in result.stderr


def test_a_table_to_learn_from_gives_the_same(trained):
    table, path, test, _ = trained
    asked = (test, "--target", "kind", "--proba")
    assert run("classify", table, *asked).stdout == run("classify", path, *asked).stdout


def test_the_joint_density_is_there_for_all_other_questions(trained):
    _, path, test, same = trained
    density = jointwise.load(path)
    assert isinstance(density, JointDensity)
    assert density.names == ("a", "b", "job", "k", "kind")
    np.testing.assert_array_equal(density.mixture.weights, same.density_.mixture.weights)
    asked = float(run("query", path, "P(kind=high | job=cook)").stdout)
    expected = same.density_.condition({"job": "cook"}).probability({same.target_name_: "high"})
    assert asked == pytest.approx(expected, rel=1e-5)
    assert len(run("score", path, test).stdout.splitlines()) == 61
    assert len(run("sample", path, "-n", 5).stdout.splitlines()) == 6


def test_info_says_so(trained):
    _, path, _, _ = trained
    assert "classes of 'kind': by the joint density\n" in run("info", path).stdout
    assert "classes of" not in run("info", path, "--format", "csv").stdout


def test_older_files_with_a_second_density_are_used(tmp_path):
    model = ClassModel.load(OLDER)
    assert f"{model.share:.0%} by a second density, of columns standardised" in run("info", OLDER).stdout
    columns = model.density.sample(20, rng=0)
    table = written(tmp_path / "t.csv", {name: np.asarray(column) for name, column in columns.items()})
    found = run("classify", OLDER, table, "--target", model.target, "--proba")
    expected = model.predict_proba(columns)
    assert np.abs(expected - model.density.predict_proba(model.target, columns)).max() > 1e-3  # it has a say
    np.testing.assert_allclose(probabilities(found.stdout, model.classes), expected, rtol=1e-9)


@pytest.mark.slow
def test_blocks_and_standard_streams_have_no_effect(trained, monkeypatch, tmp_path):
    table, path, test, _ = trained
    monkeypatch.setattr("jointwise.cli.text_files.BLOCK_CELLS", 100)
    run("fit", table, "--target", "kind", "-o", tmp_path / "m.jw")
    assert (tmp_path / "m.jw").read_bytes() == path.read_bytes()
    piped = run("classify", "-", test, "--target", "kind", input=path.read_bytes())
    assert piped.stdout == run("classify", path, test, "--target", "kind").stdout


@pytest.mark.slow
def test_parquet_gives_the_model_of_the_csv(trained, tmp_path):
    _, path, _, _ = trained
    columns = {name: [None if is_missing(c) else c for c in column.tolist()] for name, column in bands().items()}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    run("fit", tmp_path / "t.parquet", "--target", "kind", "-o", tmp_path / "m.jw")
    assert (tmp_path / "m.jw").read_bytes() == path.read_bytes()


def test_another_target_is_classified_by_the_joint_density(trained):
    _, path, test, _ = trained
    result = run("classify", path, test, "--target", "job", "--proba")
    expected = jointwise.load(path).predict_proba("job", bands(60, seed=1))
    np.testing.assert_allclose(probabilities(result.stdout, ("cook", "nurse")), expected, rtol=1e-9)


def test_a_density_alone_still_classifies(model, table):
    result = run("classify", model, table, "--target", "job", "--proba")
    columns = people()
    number = {"age": float, "monthly pay": float}
    typed = {n: [number.get(n, str)(c) if c else None for c in cells] for n, cells in columns.items()}
    expected = jointwise.load(model).predict_proba("job", typed)
    np.testing.assert_allclose(probabilities(result.stdout, ("cook", "nurse")), expected, rtol=1e-9)


def test_rows_without_a_class_are_left_out_and_counted(trained, tmp_path):
    more = bands(40, seed=7)
    more["kind"][:] = None
    both = {name: np.concatenate([column, more[name]]) for name, column in bands().items()}
    path = written(tmp_path / "gaps.csv", both)
    result = run("fit", path, "--target", "kind", "-o", tmp_path / "m.jw")
    assert "left out 40 of 280 rows, which have no value in 'kind'" in result.stderr
    assert (tmp_path / "m.jw").read_bytes() == trained[1].read_bytes()
    none = written(tmp_path / "none.csv", more)
    assert "No row of" in run("fit", none, "--target", "kind", "-o", tmp_path / "n.jw", code=1).stderr
    assert not (tmp_path / "n.jw").exists()


def test_categories_that_were_not_seen_are_gaps(trained, tmp_path):
    _, path, _, same = trained
    columns = bands(30, seed=2)
    columns["job"][:5], columns["kind"][0] = "astronaut", "other"
    result = run("classify", path, written(tmp_path / "t.csv", columns), "--target", "kind", "--proba")
    assert "Categories not seen in fitting are treated as missing: 'job': 'astronaut'" in result.stderr
    columns["job"][:5] = None
    expected = same.predict_proba(features(columns))
    np.testing.assert_allclose(probabilities(result.stdout, same.classes_), expected, rtol=1e-9)
    assert " of 30 rows with a value" in result.stderr  # a class that was not seen is always wrong


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ((1, 2, 10), ["1", "10", "2"]),
        ((0.5, 1.0, 2.5), ["0.5", "1.0", "2.5"]),
        ((True, False, True), ["false", "true"]),
    ],
    ids=["integers", "fractions", "booleans"],
)
def test_classes_are_shown_as_in_the_file(tmp_path, labels, shown):
    columns = bands(90, labels=labels)
    columns["kind"][4] = None
    path = written(tmp_path / "t.csv", columns)
    run("fit", path, "--target", "kind", "--n-components", 12, "-o", tmp_path / "m.jw")
    result = run("classify", tmp_path / "m.jw", path, "--target", "kind", "--proba")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert sorted({row["kind"] for row in rows}) == shown
    assert sorted(name for name in rows[0] if name.startswith("P(")) == [f"P({label})" for label in shown]


def test_an_ordered_class_keeps_its_order_without_levels_that_no_row_has(tmp_path):
    columns = bands(90)
    levels = ["none", "low", "mid", "high"]
    codes = pa.array([levels.index(c) for c in columns["kind"]], pa.int8())
    kind = pa.DictionaryArray.from_arrays(codes, pa.array(levels), ordered=True)
    parquet.write_table(pa.table({"a": columns["a"], "b": columns["b"], "kind": kind}), tmp_path / "t.parquet")
    run("fit", tmp_path / "t.parquet", "--target", "kind", "--n-components", 2, "-o", tmp_path / "m.jw")
    model = ClassModel.load(tmp_path / "m.jw")
    assert model.classes == ("low", "mid", "high")
    assert model.density.schema["kind"].ordered
    assert float(run("query", tmp_path / "m.jw", "P(kind >= mid)").stdout) < 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--drop", "a", "--drop", "b", "--drop", "job", "--drop", "k"], "no column beside 'kind'"),
        (["--kind", "kind=integer"], "its kind cannot be 'integer'"),
    ],
)
def test_what_is_no_class_is_refused(trained, tmp_path, args, words):
    assert words in run("fit", trained[0], "--target", "kind", "-o", tmp_path / "m.jw", *args, code=1).stderr


def test_numbers_asked_to_be_numbers_are_no_class(trained, tmp_path):
    args = ("--target", "k", "--kind", "k=integer", "-o", tmp_path / "m.jw")
    assert "must be categorical or ordinal" in run("fit", trained[0], *args, code=1).stderr


@pytest.mark.slow
def test_a_fit_that_was_stopped_goes_on(trained, tmp_path, monkeypatch):
    table, path, _, _ = trained
    args = ("fit", table, "--target", "kind", "-o", tmp_path / "m.jw", "--checkpoint", tmp_path / "fit.checkpoint")
    with monkeypatch.context() as patched:
        patched.setattr("jointwise.fitting.blocks.fit.solve_growing", lambda *args, **options: 1 / 0)  # after a choice
        run("--debug", *args, code=1, foreign=(ZeroDivisionError,))
    assert (tmp_path / "fit.checkpoint").exists()
    run(*args)
    assert (tmp_path / "m.jw").read_bytes() == path.read_bytes()
    assert not (tmp_path / "fit.checkpoint").exists()
