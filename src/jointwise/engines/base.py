"""The posterior-count pass: what every engine owes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from jointwise._typing import FloatArray


@dataclass(frozen=True, eq=False)
class PosteriorCounts:
    """What one pass over coded rows leaves behind for an EM step; counts of parts of a table add up.

    Parameters
    ----------
    counts : array of shape (I, F)
        S[i, r]: sum of the posteriors of component r over the rows whose cell falls in bin i, the bins of all columns
        stacked.
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
            Factor of each bin given each component, the bins of all columns stacked; positive. Any factor common to
            a row's bins may be left out: it moves the log-likelihood by a constant.
        mixing : array of shape (F,)
            Weights of the components.
        """


def bin_starts(n_bins: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Position of each column's first bin among the stacked bins of all columns, and their number at the end."""
    return np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int64)
