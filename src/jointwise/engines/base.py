"""The posterior-count pass: what every engine provides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise._typing import FloatArray, IntArray

# Factors below this are raised to it, so that the product of a few columns cannot underflow.
LEAST_FACTOR = 1e-30


@dataclass(frozen=True, eq=False)
class PosteriorCounts:
    """What one pass over coded rows gives an EM step; the counts of parts of a table add up.

    Parameters
    ----------
    counts : array of shape (I, F)
        S[i, r]: sum of the posteriors of component r over the rows whose cell falls in bin i. The bins of all columns
        are stacked.
    totals : array of shape (F,)
        Sum of the posteriors of each component over all rows.
    log_likelihood : float
        Sum over rows of log sum_r lam[r] prod_n table_n[x_n, r].
    """

    counts: FloatArray
    totals: FloatArray
    log_likelihood: float

    def __add__(self, other: PosteriorCounts) -> PosteriorCounts:
        return PosteriorCounts(
            self.counts + other.counts, self.totals + other.totals, self.log_likelihood + other.log_likelihood
        )


class PosteriorEngine(ABC):
    """Coded rows, ready for passes that sum posteriors.

    A missing cell contributes a factor one and no count.
    """

    @abstractmethod
    def posterior_counts(self, tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
        """One pass over the rows.

        Parameters
        ----------
        tables : array of shape (I, F)
            Positive factor of each bin given each component, the bins of all columns stacked. A factor that depends on
            the bin alone may be left out: it moves the log-likelihood by a constant.
        mixing : array of shape (F,)
            Weights of the components.
        """


def bin_starts(n_bins: Sequence[int]) -> IntArray:
    """Return where each column's bins begin among the stacked bins of all columns, and the total; shape (N + 1,)."""
    return np.concatenate([[0], np.cumsum(n_bins, dtype=np.int64)])


def padded_bins(n_bins: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Give each column one more bin, for "missing": return `bin_starts` with it, and the positions of the other bins.

    >>> padded_bins([2, 1])
    (array([0, 3, 5]), array([0, 1, 3]))
    """
    starts = bin_starts([bins + 1 for bins in n_bins])
    return starts, np.delete(np.arange(starts[-1]), starts[1:] - 1)
