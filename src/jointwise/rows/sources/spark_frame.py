"""Spark DataFrames: `mapInArrow` sends functions to the partitions, and small values return as cells of bytes.

Data between driver and executors is pickled, like Spark's own functions; nothing is unpickled from elsewhere.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointwise._typing import CodeArray
from jointwise.axes import Axis, code_dtype
from jointwise.exceptions import ClusterError, InputError, JointwiseError, MissingDependencyError
from jointwise.rows.base import Rows, StatisticT
from jointwise.rows.parted import Part, PartedRows, Parts
from jointwise.rows.sources.base import Source, gathered
from jointwise.tables.variables import Schema

# Rows counted or coded at a time; Spark's own batches of 10,000 would merge sketches too often.
BLOCK_ROWS = 1 << 17
# One cell of bytes for each result, with its place; `number` is `FAILED` if the bytes are an error.
CELLS = "part int, number int, rows long, value binary"
FAILED = -1


def source(frame: Any) -> Source:
    """Return the source of a Spark DataFrame, or of a pandas-on-Spark one."""
    return SparkSource(frame.to_spark() if hasattr(frame, "to_spark") else frame)


class Cell(NamedTuple):
    """A result of one partition."""

    part: int  # the partition
    number: int  # position in it
    rows: int  # number of rows it was made from, for codes; else zero
    value: bytes


class SparkSource(Source):
    """A Spark DataFrame, in blocks of each partition.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    container = "pyarrow"

    def __init__(self, frame: Any) -> None:
        self._names = list(frame.columns)
        # Spark takes names with dots for fields, and cannot tell equal names apart
        self._frame = frame.toDF(*(f"x{n}" for n in range(len(self._names))))

    def reduce(self, statistic: Callable[[Any], StatisticT]) -> StatisticT:
        """Return the sum of a statistic over all blocks, added in each partition and then here in their order."""
        names = self._names
        sums = _partition_sums(self._frame, lambda batches: map(statistic, _blocks(batches, names)))
        if not sums:
            raise InputError(
                f"Found a table with 0 sample(s) (shape=(0, {len(names)})) while a minimum of 1 is required."
            )
        total: StatisticT = reduce(add, sums)
        return total

    @contextmanager
    def coded(self, schema: Schema, axes: Sequence[Axis], folder: Path | None) -> Iterator[Rows]:  # noqa: ARG002
        """Context that yields the coded rows, which the executors keep in memory or on disk until it ends.

        Spark does not promise the same order of rows in two passes over a frame; the kept codes have a fixed order.
        """
        names, axes, weights = self._names, tuple(axes), self.weights

        def code(batches: Iterator[Any], part: int) -> Iterator[Cell]:
            for number, block in enumerate(_blocks(batches, names)):
                yield Cell(part, number, *_to_bytes(Part.of(block, schema, axes, weights)))

        frame = _mapped(self._frame, code).persist()
        try:
            weighted = weights is not None
            yield PartedRows(schema, axes, _SparkParts(frame, axes, weighted=weighted), weighted=weighted)
        finally:
            with suppress(Exception):  # if Spark is lost, so are the codes
                frame.unpersist()


class _SparkParts(Parts):
    """Codes as cells of a persisted frame."""

    def __init__(self, frame: Any, axes: Sequence[Axis], *, weighted: bool) -> None:
        self._frame = frame
        self._read = partial(_from_bytes, dtype=code_dtype(axes), n_columns=len(axes), weighted=weighted)
        found = _collected(frame.selectExpr("part", "number", "rows", f"if(number = {FAILED}, value, null) as value"))
        self._places = [(cell.part, cell.number) for cell in found]
        self._lengths = [cell.rows for cell in found]

    @property
    def lengths(self) -> Sequence[int]:
        return self._lengths

    def total(self, statistic: Callable[[Part], StatisticT]) -> StatisticT:
        read = self._read
        sums = _partition_sums(self._frame, lambda batches: (statistic(read(cell)) for cell in _cells(batches)))
        total: StatisticT = reduce(add, sums)
        return total

    def each(self, function: Callable[[Part, Any], Any], arguments: Sequence[Any]) -> list[Any]:
        read = self._read
        own = dict(zip(self._places, arguments, strict=True))

        def apply(batches: Iterator[Any], part: int) -> Iterator[Cell]:  # noqa: ARG001
            for cell in _cells(batches):
                found = function(read(cell), own[cell.part, cell.number])
                yield cell._replace(value=pickle.dumps(found))

        return [pickle.loads(cell.value) for cell in _collected(_mapped(self._frame, apply))]  # noqa: S301


def _partition_sums(frame: Any, statistics: Callable[[Iterator[Any]], Iterable[Any]]) -> list[Any]:
    """Return the sum of each partition's statistics, in order; a partition without any is left out."""

    def summed(batches: Iterator[Any], part: int) -> Iterator[Cell]:
        values = iter(statistics(batches))
        first = next(values, None)
        if first is not None:
            yield Cell(part, 0, 0, pickle.dumps(reduce(add, values, first)))

    return [pickle.loads(cell.value) for cell in _collected(_mapped(frame, summed))]  # noqa: S301


def _mapped(frame: Any, work: Callable[[Iterator[Any], int], Iterator[Cell]]) -> Any:
    """Return a frame of the cells that `work` makes from each partition's batches and number.

    An error of this package becomes a cell too: raised in a worker, it would be retried and return as a long text.
    """

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        types = [pa.int32(), pa.int32(), pa.int64(), pa.binary()]
        layout = pa.schema(list(zip(Cell._fields, types, strict=True)))
        part = TaskContext.get().partitionId()
        cells = work(batches, part)
        while True:
            try:
                cell = next(cells, None)
            except JointwiseError as error:
                cell = Cell(part, FAILED, 0, pickle.dumps(error))
            if cell is None:
                return
            yield pa.RecordBatch.from_pylist([cell._asdict()], schema=layout)

    with _explained():
        return frame.mapInArrow(run, CELLS)


def _collected(frame: Any) -> list[Cell]:
    """Return the cells of a frame in order; raise the first error among them."""
    with _explained():
        cells = sorted((Cell(*row) for row in frame.collect()), key=lambda cell: cell[:2])
    for cell in cells:
        if cell.number == FAILED:
            raise pickle.loads(cell.value)  # noqa: S301
    return cells


@contextmanager
def _explained() -> Iterator[None]:
    """Context in which failures of Spark become an error of one sentence."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException, PySparkImportError

    try:
        yield
    except PySparkImportError as error:
        raise MissingDependencyError(
            f'A Spark DataFrame needs more than is installed; install with: pip install "jointwise[spark]" ({error})'
        ) from error
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise ClusterError(_reason(error)) from error


def _reason(error: Exception) -> str:
    """Return the most useful line of Spark's long report, and what to do."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    said = next((line for line in lines if line.startswith("ModuleNotFoundError")), None)
    if said is not None:
        return (
            f"Spark's workers lack a package ({said}): jointwise must be installed in the Python they run, which the "
            "variable PYSPARK_PYTHON names."
        )
    said = lines[-1] if type(error).__name__ == "PythonException" else lines[0]
    return f"Spark could not do its part of the fit: {said.rstrip('.')}. Its own report is in the error above this one."


def _blocks(batches: Iterable[Any], names: Sequence[str]) -> Iterator[Any]:
    """Yield batches as larger Arrow tables, with the columns' own names; nothing if there are no rows."""
    for table in gathered(batches, BLOCK_ROWS):
        if len(table):
            yield table.rename_columns(names)


def _cells(batches: Iterable[Any]) -> Iterator[Cell]:
    for batch in batches:
        for part, number, rows, value in zip(*batch.columns, strict=True):
            yield Cell(part.as_py(), number.as_py(), rows.as_py(), value.as_buffer())


def _to_bytes(part: Part) -> tuple[int, bytes]:
    """Return the number of rows, and their codes followed by their weights, if they have any."""
    return len(part.codes), part.codes.tobytes() + (b"" if part.weights is None else part.weights.tobytes())


def _from_bytes(cell: Cell, dtype: Any, n_columns: int, *, weighted: bool) -> Part:
    codes: CodeArray = np.frombuffer(cell.value, dtype=dtype, count=cell.rows * n_columns).reshape(-1, n_columns)
    weights = np.frombuffer(cell.value, dtype=np.float64, offset=codes.nbytes).copy() if weighted else None
    return Part(codes, weights)
