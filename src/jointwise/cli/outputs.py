"""Writing results as CSV, JSON, JSON lines, Parquet or Arrow, to a file in one step or to standard output."""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from jointwise._files import is_stream, replacing, target
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError, MissingDependencyError
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Kind, Variable

FORMATS = ("csv", "tsv", "json", "jsonl", "parquet", "arrow")
# Significant digits of a guess.
GUESS_DIGITS = 6
_BY_EXTENSION = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl", ".feather": "arrow", ".txt": "csv"}

Columns = Mapping[str, Sequence[Any]]
Write = Callable[[Columns], None]


def format_of(path: str, asked: str | None) -> str:
    """The format asked for, else that of the file's extension, else CSV for standard output and pipes."""
    if asked is not None:
        return asked
    if path == "-" or is_stream(path):
        return "csv"
    extension = Path(path).suffix.lower()
    if extension not in _BY_EXTENSION:
        raise InputError(
            f"{path}: its extension is not one of {', '.join(FORMATS)}; add --format, such as --format csv."
        )
    return _BY_EXTENSION[extension]


def is_named_as_table(text: str) -> bool:
    """Whether a text looks like the name of a table in a file, and not like conditions."""
    return Path(text).suffix.lower() in _BY_EXTENSION and not set(text) & set("=<>|")


@contextmanager
def writing(path: str, form: str) -> Iterator[Write]:
    """Context whose value writes blocks of columns; a file appears only when it is complete."""
    with _destination(path) as binary, _WRITERS[form](binary) as write:
        yield write


def write_bytes(path: str, data: bytes) -> None:
    """Write a whole result at once."""
    with _destination(path) as binary:
        binary.write(data)


def check_place(path: str) -> None:
    """Refuse a path that cannot be written to, before any work is done."""
    if path == "-" or is_stream(path):
        return
    place = target(path)
    if not place.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {place.parent}.")
    if place.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder.")


@contextmanager
def _destination(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check_place(path)
    with replacing(path) as file:
        yield file


def encoded(text: str) -> bytes:
    r"""Text as UTF-8; half of a surrogate pair, which UTF-8 cannot hold, becomes an escape as in JSON.

    >>> encoded("a\ud800")
    b'a\\ud800'
    """
    return text.encode("utf-8", "backslashreplace")


def plain(cell: Any, digits: int = 10) -> Any:
    """One cell as a Python value: None for a gap, floats with this many significant digits.

    >>> plain(np.float64(0.1) + 0.2), plain(np.int64(3)), plain(float("nan")), plain(2 / 3, 3)
    (0.3, 3, None, 0.667)
    """
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, float):
        return None if math.isnan(cell) else float(f"{cell:.{digits}g}")
    return cell


def native_cells(variable: Variable, numbers: FloatArray) -> list[Any]:
    """Cells of a variable from its encoded values; None for NaN."""
    missing = np.isnan(numbers)
    if missing.any():
        cells = iter(native_cells(variable, numbers[~missing]))
        return [None if gap else next(cells) for gap in missing.tolist()]
    if variable.categories is not None:
        return [variable.categories[code] for code in numbers.astype(int)]
    if is_temporal(variable.dtype) or variable.kind is Kind.INTEGER:
        return [variable.decode_value(number) for number in numbers.tolist()]
    return [plain(number) for number in numbers.tolist()]


@contextmanager
def _delimited(binary: IO[bytes], delimiter: str) -> Iterator[Write]:
    first = True
    utf8_writer = codecs.getwriter("utf-8")

    def write(columns: Columns) -> None:
        nonlocal first
        out = csv.writer(utf8_writer(binary, "backslashreplace"), delimiter=delimiter, lineterminator="\n")
        if first:
            out.writerow(columns)
        first = False
        out.writerows(zip(*([_text(cell) for cell in cells] for cells in columns.values()), strict=True))

    yield write


def _text(cell: Any) -> Any:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return cell.isoformat() if isinstance(cell, dt.date) else cell


@contextmanager
def _json_lines(binary: IO[bytes]) -> Iterator[Write]:
    yield lambda columns: binary.writelines(encoded(f"{row}\n") for row in _json_rows(columns))


@contextmanager
def _json_array(binary: IO[bytes]) -> Iterator[Write]:
    separator = "[\n"

    def write(columns: Columns) -> None:
        nonlocal separator
        for row in _json_rows(columns):
            binary.write(encoded(f"{separator}{row}"))
            separator = ",\n"

    yield write
    binary.write(b"[]\n" if separator == "[\n" else b"\n]\n")


def _json_rows(columns: Columns) -> Iterator[str]:
    for row in zip(*columns.values(), strict=True):
        cells = dict(zip(columns, map(_json_cell, row), strict=True))
        yield json.dumps(cells, ensure_ascii=False, allow_nan=False, default=str)


def _json_cell(cell: Any) -> Any:
    """Cell for JSON, which has no infinity: it is written as text. Lists and objects are treated part by part."""
    if isinstance(cell, list):
        return [_json_cell(each) for each in cell]
    if isinstance(cell, dict):
        return {name: _json_cell(each) for name, each in cell.items()}
    if isinstance(cell, float) and math.isinf(cell):
        return str(cell)
    return _text(cell) if isinstance(cell, dt.date) else cell


@contextmanager
def _arrow_table(binary: IO[bytes], form: str) -> Iterator[Write]:
    """Gather the blocks first: only all of them together show the types of the columns."""
    try:
        import pyarrow as pa
        from pyarrow import feather, parquet
    except ImportError:
        raise MissingDependencyError(
            f"Writing {form} needs pyarrow, which is not installed: pip install pyarrow"
        ) from None
    blocks: list[Any] = []

    def write(columns: Columns) -> None:
        blocks.append(pa.table({_utf8(name): [_utf8(cell) for cell in cells] for name, cells in columns.items()}))

    try:
        yield write
        table = pa.concat_tables(blocks, promote_options="permissive") if blocks else pa.table({})
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"The result does not fit into {form} ({reason}); write csv or jsonl.") from None
    if form == "parquet":
        parquet.write_table(table, binary)
    else:
        feather.write_feather(table, binary)


def _utf8(cell: Any) -> Any:
    return encoded(cell).decode() if isinstance(cell, str) else cell


_WRITERS: Mapping[str, Callable[[IO[bytes]], Any]] = {
    "csv": lambda binary: _delimited(binary, ","),
    "tsv": lambda binary: _delimited(binary, "\t"),
    "json": _json_array,
    "jsonl": _json_lines,
    "parquet": lambda binary: _arrow_table(binary, "parquet"),
    "arrow": lambda binary: _arrow_table(binary, "arrow"),
}
