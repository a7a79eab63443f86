"""Sources: tables that are not in memory, each found by its type, one module for each kind.

A source owes one thing: to apply a function to its blocks and add the results, where the rows are. Profile, pair
counts and posterior counts are such functions, so that every source gives one and the same model.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jointwise.rows.sources.base import Source
from jointwise.rows.sources.local import LocalSource

__all__ = ["LocalSource", "Source", "find_source"]

# Package and name of each type that is a source, and the module here whose function `source` reads it.
_KINDS = {
    ("polars", "LazyFrame"): "lazy_frames",
    ("pyarrow", "Dataset"): "arrow_datasets",
    ("duckdb", "DuckDBPyRelation"): "duckdb_relations",
    ("dask", "DataFrame"): "dask_frame",
    ("dask_expr", "DataFrame"): "dask_frame",
    ("pyspark", "DataFrame"): "spark_frame",
}


def find_source(data: Any) -> Source | None:
    """Return what reads a table that is not in memory, by its type; None for arrays and frames.

    >>> find_source([[1.0, 2.0]]) is None
    True
    """
    if isinstance(data, Source):
        return data
    for each in type(data).__mro__:
        # by name, so that no package is loaded to find that a table is not its own
        module = _KINDS.get((each.__module__.split(".")[0].lstrip("_"), each.__name__))
        if module is not None:
            found: Source = import_module(f"{__name__}.{module}").source(data)
            return found
    return None
