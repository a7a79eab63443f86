"""Sources: tables that are not in memory, each found by its type, one module for each kind.

A source owes one thing: to apply a function to its blocks and add the results, where the rows are. Profile, pair
counts and posterior counts are such functions, so that every source gives one and the same model.
"""

from __future__ import annotations

from typing import Any

from jointwise.marginals.sources.base import Source
from jointwise.marginals.sources.local import LocalSource

__all__ = ["LocalSource", "Source", "find_source"]


def find_source(data: Any) -> Source | None:
    """Return what reads a table that is not in memory, by its type; None for arrays and frames."""
    return data if isinstance(data, Source) else None
