"""DuckDB relations: the rows of any SQL query.

A relation is run once for each pass. Its rows may come in another order each time, if the connection does not preserve
the order of insertion. That does no harm: profile and counts do not depend on the order, and all codes are made in one
pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from jointwise.exceptions import MissingDependencyError
from jointwise.rows.sources.base import gathered
from jointwise.rows.sources.local import LocalSource, block_rows, reading


def source(relation: Any) -> LocalSource:
    """Return the source of a `duckdb.DuckDBPyRelation`."""
    try:
        import pyarrow as pa  # noqa: F401  # the rows come as its batches
    except ImportError:
        raise MissingDependencyError(
            'Rows of a DuckDB relation come through pyarrow, which is not installed: pip install "jointwise[duckdb]"'
        ) from None
    return LocalSource(partial(_blocks, relation), "pyarrow")


def _blocks(relation: Any) -> Iterator[Any]:
    import duckdb

    with reading("The DuckDB relation", duckdb.Error, OSError):
        n_rows = block_rows(len(relation.columns))
        # a relation may keep the result of an earlier run, read or unread; a new projection runs the query again
        fresh = relation.project("*")
        read = fresh.to_arrow_reader if hasattr(fresh, "to_arrow_reader") else fresh.fetch_record_batch
        with read(n_rows) as reader:
            yield from gathered(reader, n_rows)
