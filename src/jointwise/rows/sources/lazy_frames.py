"""Polars lazy frames: any query, run by its streaming engine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from jointwise.exceptions import MissingDependencyError
from jointwise.rows.sources.local import LocalSource, block_rows, reading


def source(frame: Any) -> LocalSource:
    """Return the source of a `polars.LazyFrame`, which is never collected as a whole."""
    if not hasattr(frame, "collect_batches"):
        raise MissingDependencyError(
            "A polars.LazyFrame is read in batches, which needs polars 1.34 or later: pip install --upgrade polars"
        )
    return LocalSource(partial(_batches, frame), "polars")


def _batches(frame: Any) -> Iterator[Any]:
    from polars.exceptions import PolarsError

    with reading("The lazy frame", PolarsError, OSError):
        n_rows = block_rows(len(frame.collect_schema()))
        # the order is kept, so that a query gives the same fit each time
        yield from frame.collect_batches(chunk_size=n_rows, maintain_order=True, engine="streaming")
