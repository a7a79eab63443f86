"""Tables in files: types of columns, gaps, and hostile files."""

import datetime as dt
import gzip
import json
import os
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from jointwise.cli import files, table_file, text_files
from jointwise.cli.cells import CellCounts, cell_type, convert
from jointwise.cli.files import open_table
from jointwise.exceptions import InputError
from jointwise.tables import read_table

ROWS = {"a": [1, None, 3], "b": ["x", "y", None], "c": [0.5, 1.5, None], "d": [True, False, None]}


def written(folder, form):
    path = folder / f"table.{form}"
    arrow = pa.table(ROWS)
    match form:
        case "csv":
            path.write_text("a,b,c,d\n1,x,.5,true\nNA,y,1.5,FALSE\n3,,nan,\n")
        case "tsv":
            path.write_text("a\tb\tc\td\n1\tx\t.5\ttrue\n\ty\t1.5\tfalse\n3\t\t\t\n")
        case "bom":
            path.write_bytes("\ufeffa; b;c;d\r\n1; x;0.5;true\r\n;y;1.5;false\r\n3;;;\r\n".encode())
        case "gz":
            path.write_bytes(gzip.compress(b"a|b|c|d\n1|x|0.5|true\n|y|1.5|false\n3|||\n", mtime=0))
        case "jsonl":
            records = [{"a": 1, "b": "x", "c": 0.5, "d": True}, {"b": "y", "c": 1.5, "d": False}, {"a": 3, "c": None}]
            path.write_text("\n".join(map(json.dumps, records)) + "\n\n")
        case "json":
            path.write_text(json.dumps(arrow.to_pylist(), indent=1))
        case "parquet":
            parquet.write_table(arrow, path)
        case "pandas":
            pd.DataFrame(ROWS, index=["r", "s", "t"]).to_parquet(path)
        case "feather":
            feather.write_feather(arrow, path)
        case "stream":
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, arrow.schema) as out:
                out.write_table(arrow)
    return str(path)


FORMS = ("csv", "tsv", "bom", "gz", "jsonl", "json", "parquet", "feather", "stream", "pandas")


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_columns(tmp_path, form):
    file = open_table(written(tmp_path, form))
    assert set(file.names) == set(ROWS)
    (block,) = file.blocks()
    assert (file.rows_read, file.share) == (3, 1.0)
    table = read_table(file.frame(block, {name: file.dtypes()[name] for name in "abcd"}))
    columns = {column.name: column for column in table}
    assert columns["a"].dtype == ("float64" if form == "pandas" else "int64")
    assert [columns[name].dtype for name in "bcd"] == ["string", "float64", "bool"]
    assert np.array_equal(columns["a"].values, [1, np.nan, 3], equal_nan=True)
    assert np.array_equal(columns["c"].values, [0.5, 1.5, np.nan], equal_nan=True)
    assert columns["b"].labels == ("x", "y")
    typed = file.typed_cells(block, file.dtypes())
    assert {name: typed[name] for name in ROWS} == ROWS


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "feather"])
def test_blocks_add_up_to_the_table(tmp_path, form, monkeypatch):
    for module in (table_file, text_files):
        monkeypatch.setattr(module, "BLOCK_CELLS", 8)
    monkeypatch.setattr("jointwise.cli.arrow_file.BLOCK_CELLS", 8)
    file = open_table(written(tmp_path, form))
    blocks = [file.cells(block) for block in file.blocks()]
    assert [len(block["a"]) for block in blocks] == [2, 1]
    assert list(file.typed_cells(next(file.blocks()), file.dtypes())["a"]) == [1, None]


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (["1", "-2", "+3"], "int64"),
        (["1", "2.5", "1e-3", ".5", "inf"], "float64"),
        (["007", "123"], "string"),
        (["1_000"], "string"),
        (["true", "FALSE"], "bool"),
        (["true", "1"], "string"),
        (["2024-05-31", "2024-06-01"], "date"),
        (["2024-05-31", "2024-06-01 12:30"], "datetime[us]"),
        (["2024-05-31T10:00Z", "2024-05-31T10:00:01.5+02:00"], "datetime[us,UTC]"),
        (["2024-05-31T10:00Z", "2024-05-31T10:00"], "string"),
        (["red", "1"], "string"),
        ([None], "string"),
    ],
)
def test_the_narrowest_type_that_holds_all_cells(cells, dtype):
    counts = CellCounts()
    for cell in cells:
        counts.add([cell, None], cell_type)
    assert counts.dtype("x") == dtype
    assert len(convert("x", [*cells, None], dtype)) == len(cells) + 1


def test_one_odd_cell_among_numbers_is_found():
    counts = CellCounts()
    counts.add(["1", "2", "3", "4.5", "unknown"], cell_type)
    assert counts.odd_cell() == "unknown"
    counts.add(["red"] * 5, cell_type)
    assert counts.odd_cell() is None


def test_dates_become_moments():
    assert convert("x", ["2024-05-31"], "date").tolist() == [dt.date(2024, 5, 31)]
    (moment,) = convert("x", ["2024-05-31T12:00+02:00"], "datetime[us,UTC]")
    assert moment == dt.datetime(2024, 5, 31, 10, tzinfo=dt.UTC)
    with pytest.raises(InputError, match=r"'x' takes dates such as 2024-05-31; got '2024-13-01'"):
        convert("x", ["2024-13-01"], "date")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n1,2\n1,2,3\n", "line 3: 3 cells where the header has 2"),
        (b"a,a\n1,2\n", "more than one column called 'a'"),
        (b'a,b\n"x,1\n', "line 2: this is not CSV"),
        (b"a,b\n1,\xff\xfe\n", "not UTF-8"),
        (b"a,b\n1,\x00\n", "line 2: this is not text"),
        (b"a,b\n1," + b"x" * 200_000 + b"\n", "field larger than field limit"),
        (b"\x1f\x8b\x08\x00garbage", "damaged or cut short"),
        (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:20] + b"xxxxxxxxxxxx", "damaged or cut short"),
        (b"PAR1 and then nothing", "cannot be read as parquet"),
        (b"ARROW1\x00\x00 and then nothing", "cannot be read as"),
        (b"\xff\xff\xff\xff and then nothing", "cannot be read as stream"),
        (b"FEA1....", "version 1"),
        (b'{"a": 1}\n{"a": \n', "line 2: this is not JSON"),
        (b'[{"a": 1}, 3]', "a row must be a JSON object, but one is 3"),
        (b'{"a": [1]}\n', "nested list"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_hostile_files_get_one_sentence(tmp_path, content, words):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        open_table(str(path)).dtypes()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_line_without_end_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_LINE", 100)
    path = tmp_path / "long.csv"
    path.write_text("a,b\n1,2\n" + "x" * 1000)
    with pytest.raises(InputError, match="line 3: a line of over 100 characters"):
        open_table(str(path)).dtypes()


def test_columns_without_a_name_are_called_by_their_position(tmp_path):
    path = tmp_path / "index.csv"
    path.write_text(",a\n0,1\n")
    assert open_table(str(path)).names == ("column 1", "a")


@pytest.mark.parametrize("form", ["csv", "gz", "jsonl", "parquet", "feather"])
def test_no_damage_gets_past_the_reader(tmp_path, form):
    """A good file with random bytes changed is read, or refused in one sentence."""
    path = Path(written(tmp_path, form))
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 3):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.3 else damaged)
        try:
            file = open_table(str(path))
            dtypes = file.dtypes()
            for block in file.blocks():
                file.typed_cells(block, dtypes)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017


@pytest.fixture
def copies():
    yield files._SPOOLED
    files.forget_spooled()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_an_endless_input_is_not_read_for_ever(monkeypatch, copies):
    monkeypatch.setattr(files, "MOST_OF_A_DEVICE", 3 << 20)
    with pytest.raises(InputError, match="/dev/zero does not end, or is more than"):
        open_table("/dev/zero")
    (copy,) = copies.values()
    assert copy.stat().st_size <= 3 << 20
    files.forget_spooled()
    assert not copy.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("form", ["csv", "gz", "jsonl", "parquet", "feather", "stream"])
def test_a_pipe_is_copied_once_and_read_often(tmp_path, form, copies):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = Path(written(tmp_path, form)).read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    file = open_table(str(pipe))
    writer.join(timeout=30)
    assert file.label == str(pipe)
    for _ in range(2):
        (block,) = file.blocks()
        assert set(file.cells(block)) == set(ROWS)
    assert open_table(str(pipe)).names == file.names  # the same copy
    assert len(copies) == 1
