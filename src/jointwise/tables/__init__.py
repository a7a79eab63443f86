"""Tables: anything with rows and columns goes in, encoded float64 goes through, the same kind comes out.

`read_table` reads arrays, mappings and frames; `encode` turns rows into numbers by a schema, `decode` is the
way back; `Table` is what has been read, for code that looks at whole columns.
"""

from jointwise.tables.columns import Column
from jointwise.tables.encoding import decode, encode
from jointwise.tables.table import Table, read_table

__all__ = ["Column", "Table", "decode", "encode", "read_table"]
