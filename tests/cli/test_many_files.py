"""`fit` reads several files, or folders of them, as one table."""

import pyarrow as pa
import pytest
from pyarrow import dataset, feather, parquet
from tests.cli.cases import run

from jointwise import load
from jointwise.cli.files import open_tables
from jointwise.exceptions import InputError

TABLE = pa.table({"a": [0.5 * (n % 7) + n / 1000 for n in range(60)], "b": ["xyz"[n % 3] for n in range(60)]})


def write(folder, form, order=("a", "b")):
    """Three files of twenty rows; the columns of the last are in the order asked for."""
    folder.mkdir(exist_ok=True)
    for k in range(3):
        part = TABLE.slice(20 * k, 20).select(list(order) if k == 2 else ["a", "b"])
        path = folder / f"{k}.{form}"
        if form == "parquet":
            parquet.write_table(part, path)
        elif form == "feather":
            feather.write_feather(part, path)
        elif form == "csv":
            part.to_pandas().to_csv(path, index=False)
        else:
            part.to_pandas().to_json(path, orient="records", lines=True)
    return sorted(str(path) for path in folder.iterdir())


def cells(file):
    found = {name: [] for name in file.names}
    types = file.dtypes()
    for block in file.blocks():
        for name, column in file.typed_cells(block, types).items():
            found[name] += column
    return found


@pytest.mark.parametrize("form", ["parquet", "feather", "csv", "jsonl"])
def test_files_and_folders_hold_the_rows_of_all(tmp_path, form):
    paths = write(tmp_path / "parts", form, order=("b", "a"))
    (tmp_path / "parts" / "_done").write_text("no data")
    for asked in (paths, [str(tmp_path / "parts")]):
        file = open_tables(asked)
        assert cells(file) == TABLE.to_pydict()
        assert cells(file) == TABLE.to_pydict(), "and again"
        assert file.share == 1.0
        assert file.rows_read == 60


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_model_is_that_of_one_file(tmp_path, form):
    paths = write(tmp_path / "parts", form)
    if form == "parquet":
        parquet.write_table(TABLE, tmp_path / "one")
    else:
        TABLE.to_pandas().to_csv(tmp_path / "one", index=False)
    run("fit", tmp_path / "one", "-o", tmp_path / "one.jw", "--n-components", 2)
    run("fit", *paths, "-o", tmp_path / "many.jw", "--n-components", 2)
    rows = {name: list(column) for name, column in TABLE.to_pydict().items()}
    expected = load(tmp_path / "one.jw").logpdf(rows)
    assert load(tmp_path / "many.jw").logpdf(rows).tolist() == expected.tolist()


def test_partitions_give_a_column(tmp_path):
    dataset.write_dataset(TABLE, tmp_path / "hive", format="parquet", partitioning=["b"], partitioning_flavor="hive")
    file = open_tables([str(tmp_path / "hive")])
    assert set(file.names) == {"a", "b"}
    assert sorted(cells(file)["b"]) == sorted(TABLE["b"].to_pylist())


def test_a_column_that_a_file_lacks_has_gaps(tmp_path):
    parquet.write_table(TABLE.select(["a"]), tmp_path / "0.parquet")
    parquet.write_table(TABLE, tmp_path / "1.parquet")
    found = cells(open_tables([str(tmp_path)]))
    assert found["b"] == [None] * 60 + TABLE["b"].to_pylist()


def test_refusals_are_one_sentence(tmp_path):
    paths = write(tmp_path / "parts", "parquet")
    csv = write(tmp_path / "texts", "csv")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.csv").write_text("a,c\n1,2\n")
    (tmp_path / "odd.parquet").write_bytes(b"PAR1 and nothing more")
    parquet.write_table(pa.table({"a": ["text"], "b": ["x"]}), tmp_path / "type.parquet")
    for asked, message in (
        ([*paths, csv[0]], "must be of one kind; these are 'csv', 'parquet'"),
        ([str(tmp_path / "empty")], "a folder without files"),
        ([csv[0], "-"], "Standard input cannot be one of several"),
        ([csv[0], str(tmp_path / "other.csv")], "must have the same columns"),
        ([paths[0], str(tmp_path / "odd.parquet")], "cannot be read as parquet"),
        ([paths[0], str(tmp_path / "type.parquet")], "cannot be read as parquet"),
    ):
        with pytest.raises(InputError, match=message):
            open_tables(asked)
