"""Sources: tables that are not in memory, recognised by their type; one module for each kind.

A source does one thing: it applies a function to its blocks where the rows are, and adds the results. Profile, pair
counts and posterior counts are such functions, so every source gives the same model.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jointwise.rows.sources.base import Source
from jointwise.rows.sources.local import LocalSource

__all__ = ["LocalSource", "Source", "find_source"]

# Package and name of each type that is a source, and the module here whose function `source` takes it.
_KINDS = {
    ("polars", "LazyFrame"): "lazy_frames",
    ("pyarrow", "Dataset"): "arrow_datasets",
    ("duckdb", "DuckDBPyRelation"): "duckdb_relations",
    ("dask", "DataFrame"): "dask_frame",
    ("dask_expr", "DataFrame"): "dask_frame",
    ("pyspark", "DataFrame"): "spark_frame",
}


def find_source(data: Any) -> Source | None:
    """Return the source of a table that is not in memory; None for arrays and frames.

    >>> find_source([[1.0, 2.0]]) is None
    True
    """
    if isinstance(data, Source):
        return data
    for each in type(data).__mro__:
        # compared by name, so that no package is loaded for it
        module = _KINDS.get((each.__module__.split(".")[0].lstrip("_"), each.__name__))
        if module is not None:
            found: Source = import_module(f"{__name__}.{module}").source(data)
            return found
    return None
