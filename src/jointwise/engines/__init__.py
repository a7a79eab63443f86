"""Engines: the passes over coded rows, arrays in and out.

`reference` is plain numpy: quick enough for millions of rows, and what faster engines are compared with.
"""

from jointwise.engines.reference import pair_counts

__all__ = ["pair_counts"]
