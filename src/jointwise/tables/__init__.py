"""Tables: anything with rows and columns goes in, encoded float64 goes through, the same kind comes out.

`read_table` reads arrays, mappings and frames; `encode` turns rows into numbers by a schema, `decode` is the
way back; `Table` is what has been read, for code that looks at whole columns, and `match_columns`, `encode_numbers`
and `label_numbers` are the steps of `encode` for such code.
"""

from jointwise.tables.columns import Column
from jointwise.tables.encoding import decode, encode, encode_numbers, label_numbers, match_columns
from jointwise.tables.frames import with_columns
from jointwise.tables.table import Table, read_table

__all__ = [
    "Column",
    "Table",
    "decode",
    "encode",
    "encode_numbers",
    "label_numbers",
    "match_columns",
    "read_table",
    "with_columns",
]
