"""Rare categories of a table, merged into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from jointwise._checks import shown
from jointwise._typing import AnyArray
from jointwise.tables import Table
from jointwise.tables.variables import OTHER

# Columns with more different texts are left alone: they name the rows.
MOST_LABELS = 1_000_000


class Labels:
    """Number of rows of each text in the columns of a table that come in blocks."""

    def __init__(self, blocks: Iterable[Table], skip: Iterable[str] = ()) -> None:
        self.counts: dict[str, Counter[str]] = {}
        left_alone = set(skip)
        for table in blocks:
            for n, name in enumerate(table.names):
                if name not in left_alone and not self._add(table, n, name):
                    left_alone.add(name)
                    self.counts.pop(name, None)

    def _add(self, table: Table, n: int, name: str) -> bool:
        """Count a column of a block; false for one that is to be left alone."""
        column = table.read(n)
        if column.labels is None or column.ordered or not all(isinstance(label, str) for label in column.labels):
            return bool(np.isnan(column.values).all())
        met = column.values[~np.isnan(column.values)].astype(np.intp)
        counts = self.counts.setdefault(name, Counter())
        numbers = np.bincount(met, minlength=len(column.labels)).tolist()
        counts.update({label: count for label, count in zip(column.labels, numbers, strict=True) if count})
        return len(counts) <= MOST_LABELS

    def kept(self, share: float) -> dict[str, frozenset[str]]:
        """Categories that are not rarer than ``share``, of columns where at least two are rarer and some are not."""
        found = {}
        for name, counts in self.counts.items():
            least = share * counts.total()
            kept = frozenset(label for label, count in counts.items() if count >= least)
            if kept and len(counts) - len(kept) > 1:
                found[name] = kept
        return found

    def note(self, kept: Mapping[str, frozenset[str]]) -> str:
        """Return a sentence that says what is merged; empty for nothing."""
        parts = []
        for name, labels in kept.items():
            counts = self.counts[name]
            rows = sum(count for label, count in counts.items() if label not in labels) / counts.total()
            parts.append(f"{shown(name)} ({len(counts) - len(labels):,} of {len(counts):,}, {rows:.2%} of the rows)")
        return f"Note: rare categories are merged into {shown(OTHER)}: {', '.join(parts)}." if parts else ""


def merged(blocks: Iterable[Table], kept: Mapping[str, frozenset[str]]) -> Iterator[Table]:
    """Yield the blocks with every category that is not kept replaced by one for all of them."""
    for table in blocks:
        columns = list(table.columns)
        for n, name in enumerate(table.names):
            if name in kept:
                columns[n] = _merged(table, n, kept[name])
        yield replace(table, columns=tuple(columns))


def _merged(table: Table, n: int, kept: frozenset[str]) -> AnyArray:
    column = table.read(n)
    words: AnyArray = np.array([None, *(w if w in kept else OTHER for w in column.labels or ())], dtype=object)
    return words[np.where(np.isnan(column.values), -1, column.values).astype(np.intp) + 1]
