"""Tables in text, CSV and JSON. All cells of a column together give its type."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from jointwise._checks import listed, shown
from jointwise.cli.cells import CellCounts, cell_type, convert, is_data, json_type, with_point
from jointwise.cli.reading import DEFAULT, Reading
from jointwise.cli.table_file import BLOCK_CELLS, Cells, TableFile, without_nan
from jointwise.exceptions import InputError
from jointwise.tables.dtypes import is_missing
from jointwise.tables.texts import MISSING
from jointwise.tables.variables import duplicates

# Longest line of a table; a file without line ends would otherwise be read whole.
MAX_LINE = 1 << 24
# Lines between two updates of the share read.
LINES_PER_LOOK = 1000
DELIMITERS = ",;\t|"


class TextFile(TableFile):
    """What CSV and JSON files share: cells without types."""

    type_of = staticmethod(cell_type)

    def __init__(self, path: Path, label: str, reading: Reading) -> None:
        super().__init__(path, label)
        self._reading = reading
        self._missing = reading.missing

    @cached_property
    def cell_counts(self) -> Mapping[str, CellCounts]:
        """Types of the cells of each column."""
        found = {name: CellCounts() for name in self.names}
        for block in self.blocks():
            for name, cells in block.items():
                found[name].add(cells, self.type_of)
        return found

    def frame(self, block: Cells, dtypes: Mapping[str, str]) -> Any:
        """Columns of a block that ``dtypes`` names, in a form that `read_table` takes."""
        try:
            return {name: convert(name, block[name], dtype) for name, dtype in dtypes.items() if name in block}
        except InputError as error:
            raise InputError(f"{self.label}: {error} If that marks a gap, name it with --missing.") from None

    def cells(self, block: Cells) -> Cells:
        """Every cell of a block as it came, None where there is a gap."""
        return block

    def typed_cells(self, block: Cells, dtypes: Mapping[str, str]) -> Cells:
        """Every cell of a block as a number, text or date, None where there is a gap."""
        return {name: without_nan(cells.tolist()) for name, cells in self.frame(block, dtypes).items()}

    def _lines(self) -> Iterator[str]:
        """Lines of the file, none of them too long; updates `share`."""
        size = max(self.path.stat().st_size, 1)
        number = 0
        with self.path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            binary: Any = gzip.GzipFile(fileobj=raw) if packed else raw
            with io.TextIOWrapper(binary, encoding=self._reading.encoding, newline="") as text:
                try:
                    while line := text.readline(MAX_LINE):
                        number += 1
                        if len(line) == MAX_LINE or "\0" in line:
                            raise self._bad_line(line, number)
                        if number % LINES_PER_LOOK == 0:
                            self.share = raw.tell() / size
                        yield line
                except UnicodeError as error:
                    encoding = "UTF-8" if self._reading == DEFAULT else self._reading.encoding
                    raise InputError(
                        f"{self.label}, after line {number}: the text is not {encoding} ({_reason(error)}); name its "
                        "encoding, such as --encoding latin-1."
                    ) from None
                except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                    raise InputError(f"{self.label} is damaged or cut short: {error}.") from None
        self.share = 1.0

    def _bad_line(self, line: str, number: int) -> InputError:
        if len(line) == MAX_LINE:
            return InputError(
                f"{self.label}, line {number}: a line of over {MAX_LINE:,} characters cannot be a row of a table."
            )
        return InputError(f"{self.label}, line {number}: this is not text: it contains a zero byte.")

    @abstractmethod
    def _rows(self) -> Iterator[Sequence[Any]]:
        """Cells of each row in the order of `names`, None where there is a gap."""

    def blocks(self) -> Iterator[Cells]:
        """Blocks of rows; each call starts again at the first row."""
        rows = self._rows()
        self.share, self.rows_read = 0.0, 0
        most = max(BLOCK_CELLS // max(len(self.names), 1), 1)
        while block := list(islice(rows, most)):
            self.rows_read += len(block)
            yield dict(zip(self.names, map(list, zip(*block, strict=True)), strict=True))


def _reason(error: UnicodeError) -> str:
    return error.reason if isinstance(error, UnicodeDecodeError) else str(error)


class CsvFile(TextFile):
    """Comma-separated values, or with semicolons, tabs or bars if the header has more of those."""

    def __init__(self, path: Path, label: str, reading: Reading) -> None:
        super().__init__(path, label, reading)
        self._missing |= MISSING
        first = next(self._lines(), "")
        self._delimiter = reading.separator or max(DELIMITERS.replace(reading.decimal, ""), key=first.count)
        line = next(self._parsed(), None)
        if line is None:
            raise InputError(f"{self.label} is empty; a table begins with a line of column names.")
        self.names = self._column_names(line)

    def _column_names(self, line: Sequence[str]) -> tuple[str, ...]:
        """Names of the columns: those asked for, or those of the first line if it is a header."""
        names = self._reading.names
        if names and len(names) != len(line):
            raise InputError(f"--names gives {len(names)} names, but {self.label} has {len(line)} columns.")
        if names or not self._reading.header:
            return self._named(names or [""] * len(line))
        if duplicates(cell.strip() for cell in line) and any(map(is_data, line)):
            raise InputError(
                f"{self.label}: the first line names columns twice, and looks like data ({listed(line, 5)}); if the "
                "table has no header, add --no-header."
            )
        return self._named(line)

    def headed_by_data(self) -> str:
        """Cells of the header, if it looks like a row of the table; else empty.

        It does if every column of numbers or dates has a number or date as its name. Whole numbers that count up, such
        as years, are names.
        """
        if not self._reading.header or self._reading.names:
            return ""
        typed = [name for name, dtype in self.dtypes().items() if dtype not in {"string", "bool"}]
        whole = [int(name) for name in typed if cell_type(name) == "int64"]
        counting = len(whole) == len(typed) and all(b == a + 1 for a, b in pairwise(whole)) and len(typed) > 1
        return listed(self.names, 5) if typed and all(map(is_data, typed)) and not counting else ""

    def _rows(self) -> Iterator[Sequence[Any]]:
        rows = self._parsed()
        if self._reading.header:
            next(rows)
        width, with_comma = len(self.names), self._reading.decimal == ","
        for row in rows:
            if len(row) != width:
                raise InputError(
                    f"{self.label}, line {self._line_number}: {len(row)} cells where the header has {width}; "
                    "put cells that contain a delimiter into quotes."
                )
            cells = [None if (text := cell.strip()) in self._missing else text for cell in row]
            yield [cell and with_point(cell) for cell in cells] if with_comma else cells

    def _parsed(self) -> Iterator[list[str]]:
        reader = csv.reader(self._lines(), delimiter=self._delimiter, skipinitialspace=True, strict=True)
        try:
            for row in reader:
                self._line_number = reader.line_num
                if row:
                    yield row
        except csv.Error as error:
            raise InputError(f"{self.label}, line {reader.line_num}: this is not CSV ({error}).") from None


class JsonFile(TextFile):
    """One JSON object per line, or one array of objects; a missing key is a gap."""

    type_of = staticmethod(json_type)

    def __init__(self, path: Path, label: str, reading: Reading) -> None:
        super().__init__(path, label, reading)
        keys: dict[str, None] = {}
        for record in self._records():
            keys.update(dict.fromkeys(record))
        self.names = self._named(tuple(keys))

    def _rows(self) -> Iterator[Sequence[Any]]:
        return ([self._cell(record.get(name)) for name in self.names] for record in self._records())

    def _cell(self, cell: Any) -> Any:
        return None if is_missing(cell) or (isinstance(cell, str) and cell in self._missing) else cell

    def _records(self) -> Iterator[dict[str, Any]]:
        lines = self._lines()
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if line.lstrip().startswith("["):
                found = self._parsed("".join([line, *lines]), number)
            else:
                found = [self._parsed(line, number)]
            for record in found:
                if not isinstance(record, dict):
                    raise InputError(f"{self.label}: a row must be a JSON object, but one is {shown(record)}.")
                yield record

    def _parsed(self, text: str, number: int) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.label}, line {number}: this is not JSON ({error}).") from None


class ChainedFile(TextFile):
    """Several files with the same columns, one after the other."""

    def __init__(self, parts: Sequence[TextFile], label: str) -> None:
        super().__init__(parts[0].path, label, DEFAULT)
        self._parts = parts
        self.names = parts[0].names
        self.type_of = parts[0].type_of
        for part in parts:
            if set(part.names) != set(self.names):
                raise InputError(
                    f"Files of one table must have the same columns: {parts[0].label} has {listed(self.names)}, and "
                    f"{part.label} has {listed(part.names)}."
                )

    def _rows(self) -> Iterator[Sequence[Any]]:
        for number, part in enumerate(self._parts):
            order = [part.names.index(name) for name in self.names]
            for row in part._rows():  # noqa: SLF001  # of the same class
                self.share = (number + part.share) / len(self._parts)
                yield [row[n] for n in order]
