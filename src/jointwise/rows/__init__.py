"""Rows as codes, wherever they lie.

`Rows` is what a fit asks of them. `CodedRows` holds the codes here, in memory or in a mapped file; `PartedRows` leaves
them with the workers of a cluster. `sources` has one module for each place a table can come from.
"""

from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows

__all__ = ["CodedRows", "Rows"]
