"""Tables: a frame, mapping or array comes in, its cells become float64, and results go out in the same form.

`read_table` reads arrays, mappings and frames into a `Table`. `encode` turns its rows into numbers by a schema, and
`decode` turns numbers back. Code that works column by column uses `Table` itself and the steps of `encode`:
`match_columns`, `encode_numbers` and `label_numbers`.
"""

from jointwise.tables.columns import Column
from jointwise.tables.encoding import decode, encode, encode_numbers, label_numbers, match_columns
from jointwise.tables.frames import with_columns
from jointwise.tables.gaps import emptied, with_gap_columns
from jointwise.tables.table import Table, read_table

__all__ = [
    "Column",
    "Table",
    "decode",
    "emptied",
    "encode",
    "encode_numbers",
    "label_numbers",
    "match_columns",
    "read_table",
    "with_columns",
    "with_gap_columns",
]
