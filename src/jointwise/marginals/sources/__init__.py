"""Sources: tables that are not in memory, each found by its type, one module for each kind.

A source owes one thing: to apply a function to its blocks and add the results, where the rows are. Profile, pair
counts and posterior counts are such functions, so that every source gives one and the same model.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from jointwise.marginals.sources.base import Source
from jointwise.marginals.sources.dask_frame import DaskSource
from jointwise.marginals.sources.local import LocalSource
from jointwise.marginals.sources.spark_frame import SparkSource

__all__ = ["DaskSource", "LocalSource", "Source", "SparkSource", "find_source"]


def find_source(data: Any) -> Source | None:
    """Return what reads a table that is not in memory, by its type; None for arrays and frames."""
    if isinstance(data, Source):
        return data
    if nw.dependencies.is_dask_dataframe(data):
        return DaskSource(data)
    if nw.dependencies.is_pyspark_dataframe(data):
        return SparkSource(data)
    return None
