"""Arrow datasets: files, folders and hive partitions of Parquet, Feather, CSV and other formats that Arrow reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from jointwise.rows.sources.base import gathered
from jointwise.rows.sources.local import LocalSource, block_rows, reading

# Batches and files read ahead: enough to keep the reader busy, few enough to need little memory.
READ_AHEAD, FILES_AHEAD = 2, 1


def source(dataset: Any) -> LocalSource:
    """Return the source of a `pyarrow.dataset.Dataset`."""
    return LocalSource(partial(_blocks, dataset), "pyarrow")


def _blocks(dataset: Any) -> Iterator[Any]:
    from pyarrow import ArrowException

    with reading("The Arrow dataset", ArrowException, OSError):
        yield from dataset_blocks(dataset)


def dataset_blocks(dataset: Any, columns: list[str] | None = None) -> Iterator[Any]:
    """Return the blocks of a dataset as Arrow tables, in the order of its files.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    columns : list of str, optional
        The columns to read; all by default.
    """
    n_rows = block_rows(len(dataset.schema) if columns is None else len(columns))
    batches = dataset.to_batches(
        columns=columns, batch_size=n_rows, batch_readahead=READ_AHEAD, fragment_readahead=FILES_AHEAD
    )
    return gathered(batches, n_rows)
