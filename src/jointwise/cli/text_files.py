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
from itertools import islice
from pathlib import Path
from typing import Any

from jointwise._checks import listed, shown
from jointwise.cli.cells import CellCounts, cell_type, convert, json_type
from jointwise.cli.table_file import BLOCK_CELLS, Cells, TableFile, without_nan
from jointwise.exceptions import InputError
from jointwise.tables.dtypes import is_missing
from jointwise.tables.texts import MISSING

# Longest line of a table; a file without line ends would otherwise be read whole.
MAX_LINE = 1 << 24
# Lines between two updates of the share read.
LINES_PER_LOOK = 1000
DELIMITERS = ",;\t|"


class TextFile(TableFile):
    """What CSV and JSON files share: cells without types."""

    type_of = staticmethod(cell_type)

    def __init__(self, path: Path, label: str, missing: frozenset[str]) -> None:
        super().__init__(path, label)
        self._missing = missing

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
            with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
                try:
                    while line := text.readline(MAX_LINE):
                        number += 1
                        if len(line) == MAX_LINE or "\0" in line:
                            raise self._bad_line(line, number)
                        if number % LINES_PER_LOOK == 0:
                            self.share = raw.tell() / size
                        yield line
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{self.label}, after line {number}: the text is not UTF-8 ({error.reason}); convert the "
                        "file first."
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


class CsvFile(TextFile):
    """Comma-separated values, or with semicolons, tabs or bars if the header has more of those."""

    def __init__(self, path: Path, label: str, missing: frozenset[str]) -> None:
        super().__init__(path, label, missing | MISSING)
        header = next(self._lines(), "")
        self._delimiter = max(DELIMITERS, key=header.count)
        names = next(self._parsed(), None)
        if names is None:
            raise InputError(f"{self.label} is empty; a table begins with a line of column names.")
        self.names = self._named(names)

    def _rows(self) -> Iterator[Sequence[Any]]:
        rows = self._parsed()
        next(rows)
        width = len(self.names)
        for row in rows:
            if len(row) != width:
                raise InputError(
                    f"{self.label}, line {self._line_number}: {len(row)} cells where the header has {width}; "
                    "put cells that contain a delimiter into quotes."
                )
            yield [None if (text := cell.strip()) in self._missing else text for cell in row]

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

    def __init__(self, path: Path, label: str, missing: frozenset[str]) -> None:
        super().__init__(path, label, missing)
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
        super().__init__(parts[0].path, label, frozenset())
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
