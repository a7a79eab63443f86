"""Tables that pyarrow reads: Parquet, Arrow, Feather."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jointwise.cli.cells import CellCounts
from jointwise.cli.table_file import BLOCK_CELLS, Cells, TableFile, without_nan
from jointwise.exceptions import InputError, MissingDependencyError
from jointwise.rows.sources.arrow_datasets import dataset_blocks


class ArrowFile(TableFile):
    """Parquet, Arrow or Feather, by pyarrow."""

    cell_counts: Mapping[str, CellCounts] = {}

    def __init__(self, path: Path, label: str, kind: str) -> None:
        super().__init__(path, label)
        self._kind = kind
        self._arrow = _pyarrow(label)
        _check_name(path)
        # pandas keeps its index as one more column
        self.names = self._named([name for name in self._schema_names() if not name.startswith("__index_level_")])

    def blocks(self) -> Iterator[Any]:
        """Blocks of rows; each call starts again at the first row."""
        self.share, self.rows_read = 0.0, 0
        most = max(BLOCK_CELLS // max(len(self.names), 1), 1)
        try:
            for n, total, batch in self._batches(most):
                self.share = (n + 1) / max(total, 1)
                whole = self._arrow.Table.from_batches([batch]).select(list(self.names))
                whole.validate(full=True)  # a damaged file could otherwise break the reading of its cells
                for start in range(0, len(whole), most):
                    self.rows_read += len(part := whole.slice(start, most))
                    yield part
        except (self._arrow.ArrowException, UnicodeDecodeError, OSError) as error:
            raise self._damaged(error) from None

    def frame(self, block: Any, dtypes: Mapping[str, str]) -> Any:
        """Columns of a block that ``dtypes`` names, in a form that `read_table` takes."""
        return block.select([name for name in dtypes if name in self.names])

    def cells(self, block: Any) -> Cells:
        """Every cell of a block as it came, None where there is a gap."""
        return {name: without_nan(self._column_cells(block[name])) for name in block.column_names}

    def _column_cells(self, column: Any) -> list[Any]:
        try:
            return list(column.to_pylist())
        except (ValueError, OverflowError):  # a time that Python cannot hold: after year 9999, or with nanoseconds
            return list(column.cast(self._arrow.string()).to_pylist())

    def _schema_names(self) -> list[str]:
        try:
            if self._kind == "parquet":
                return list(self._parquet().schema_arrow.names)
            with self._arrow.OSFile(str(self.path)) as file:
                opened = self._arrow.ipc.open_file(file) if self._kind == "file" else self._arrow.ipc.open_stream(file)
                return list(opened.schema.names)
        except (self._arrow.ArrowException, UnicodeDecodeError, OSError) as error:
            raise self._damaged(error) from None

    def _batches(self, most: int) -> Iterator[tuple[int, int, Any]]:
        """Batches, each with its number and the number of all batches."""
        if self._kind == "parquet":
            file = self._parquet()
            total = -(-file.metadata.num_rows // most)
            yield from ((n, total, batch) for n, batch in enumerate(file.iter_batches(most)))
            return
        with self._arrow.OSFile(str(self.path)) as source:
            if self._kind == "file":
                opened = self._arrow.ipc.open_file(source)
                total = opened.num_record_batches
                yield from ((n, total, opened.get_batch(n)) for n in range(total))
            else:
                yield from ((0, 1, batch) for batch in self._arrow.ipc.open_stream(source))

    def _parquet(self) -> Any:
        from pyarrow.parquet import ParquetFile

        return ParquetFile(self.path)

    def _damaged(self, error: Exception) -> InputError:
        return InputError(f"{self.label} cannot be read as {self._kind}: {str(error).splitlines()[0].rstrip('.')}.")


class DatasetFile(ArrowFile):
    """Several files that form one table, by pyarrow; a file without one of the columns has gaps there."""

    def __init__(self, paths: Sequence[Path], label: str, kind: str) -> None:
        if kind == "stream":
            raise InputError(
                f"{label}: several Arrow streams cannot be read as one table; write them as Parquet or Feather files."
            )
        for path in paths:
            _check_name(path)
        self._paths = [str(path) for path in paths]
        super().__init__(paths[0], label, kind)

    def _schema_names(self) -> list[str]:
        from pyarrow import dataset

        kind = {"parquet": "parquet", "file": "ipc"}[self._kind]
        try:
            found = dataset.dataset(self._paths, format=kind, partitioning="hive")
            schemas = [found.schema, *(fragment.physical_schema for fragment in found.get_fragments())]
            schema = self._arrow.unify_schemas(schemas, promote_options="permissive")
            self._dataset = found.replace_schema(schema)
        except (self._arrow.ArrowException, UnicodeDecodeError, OSError) as error:
            raise self._damaged(error) from None
        return list(schema.names)

    def _batches(self, most: int) -> Iterator[tuple[int, int, Any]]:
        total, read = self._dataset.count_rows(), 0
        for table in dataset_blocks(self._dataset, list(self.names)):
            for batch in table.to_batches(most):
                read += len(batch)
                yield read - 1, total, batch


def _check_name(path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path}: the name of the file is not valid UTF-8, which pyarrow needs; rename the file."
        ) from None


def _pyarrow(label: str) -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingDependencyError(
            f"{label} is Parquet or Arrow, which needs pyarrow, and that is not installed: pip install pyarrow"
        ) from None
    return pa
