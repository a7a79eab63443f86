"""What a table is for a model: its rows, gaps and mean log-density, and a sample of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.cli.passes import check_columns, encoded_blocks
from jointwise.cli.table_file import TableFile
from jointwise.joint import JointDensity
from jointwise.joint.check import MOST_ROWS


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over a table shows of it.

    Parameters
    ----------
    label : str
        Name of the file.
    n_rows : int
    gaps : array of shape (columns,)
        Missing cells of each column of the model.
    log_density : float
        Mean log-density of the rows that are possible, in nats; NaN if there is none.
    n_impossible : int
        Rows with density zero, such as those with a category that the model does not know.
    X : array of shape (n, N)
        Encoded rows: all, or a random sample of 20,000; -1 for unknown categories.
    """

    label: str
    n_rows: int
    gaps: IntArray
    log_density: float
    n_impossible: int
    X: FloatArray

    @classmethod
    def of(cls, file: TableFile, density: JointDensity, rng: np.random.Generator) -> Survey:
        """Look at every row of a table; holds the sample and one block at a time."""
        check_columns(file, density.schema)
        n_rows = n_possible = 0
        columns = [density.schema.index(name) for name in density.names]
        total, gaps = 0.0, np.zeros(len(columns), dtype=np.int64)
        sample = Sample(len(density.schema), rng)
        for _, _, X in encoded_blocks(file, density.schema, "Reading"):
            logs = density.mixture.logpdf(X)
            possible = np.isfinite(logs)
            n_rows, gaps = n_rows + len(X), gaps + np.isnan(X[:, columns]).sum(axis=0)
            n_possible, total = n_possible + int(possible.sum()), total + float(logs[possible].sum())
            sample.add(X)
        mean = total / n_possible if n_possible else float("nan")
        return cls(file.label, n_rows, gaps, mean, n_rows - n_possible, sample.rows)

    def facts(self) -> dict[str, str]:
        """Return the numbers in words, by what they are; those that say nothing are empty."""
        share = self.gaps.sum() / max(self.n_rows * len(self.gaps), 1)
        return {
            "rows": f"{self.n_rows:,} of {self.label}",
            "gaps": f"{self.gaps.sum():,} cells ({share:.1%})" if self.gaps.any() else "none",
            "mean log-density of a row": "" if np.isnan(self.log_density) else f"{self.log_density:.3f} nats",
            "impossible rows": f"{self.n_impossible:,}" if self.n_impossible else "",
        }


class Sample:
    """A random sample of rows that come in blocks, each row with equal chances."""

    def __init__(self, n_columns: int, rng: np.random.Generator) -> None:
        self.rows, self._tickets, self._rng = np.empty((0, n_columns)), np.empty(0), rng

    def add(self, X: FloatArray) -> None:
        """Add a block of rows, and keep those with the lowest tickets."""
        self.rows = np.concatenate([self.rows, X])
        self._tickets = np.concatenate([self._tickets, self._rng.random(len(X))])
        if len(self.rows) > MOST_ROWS:
            lowest: Any = np.sort(np.argpartition(self._tickets, MOST_ROWS)[:MOST_ROWS])
            self.rows, self._tickets = self.rows[lowest], self._tickets[lowest]
