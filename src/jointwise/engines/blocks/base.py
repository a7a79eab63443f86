r"""The pass over a Gaussian block and its product columns: what goes in, what comes out.

A row has d block columns, which a component r sees through a Gaussian of their warped values w, and product columns,
which are independent given the component:

.. math:: f(x) = \sum_r \lambda_r \, N(w_o; \mu_r, \Sigma_r) \prod_{j} s_j[x_j, r] \prod_n T_n[x_n, r].

Here o are the block cells that are observed and not at a spike, and :math:`s_j` is the probability of the cell's spike,
or of no spike. A missing cell drops out of everything.

With P[i, r] the posterior of component r given row i, the pass gives the sums

.. math:: n_r = \sum_i P_{ir}, \qquad f_r = \sum_i P_{ir}\, \mathrm{E}[w_i - \mu_r \mid r], \qquad
          Q_r = \sum_i P_{ir}\, \mathrm{E}[(w_i - \mu_r)(w_i - \mu_r)^\top \mid r]

and the counts of bins and spikes. A block cell that is missing or at a spike has its conditional mean and covariance
given the others. Sums are centred at the current means, so no digits cancel in the next covariances,
:math:`Q_r / n_r - (f_r / n_r)(f_r / n_r)^\top`; the next means are :math:`\mu_r + f_r / n_r`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from jointwise._typing import AnyArray, FloatArray, IntArray
from jointwise.engines.base import bin_starts
from jointwise.exceptions import InputError

LOG_TAU = float(np.log(2 * np.pi))
# A probability of zero in a table counts as 1e-300, so that every row has a finite log-density.
LEAST_LOG = float(np.log(1e-300))


@dataclass(frozen=True, eq=False)
class BlockLayout:
    """Which columns of coded rows form the block, and the value that each of their bins stands for; fixed in a fit.

    Parameters
    ----------
    n_bins : sequence of N ints
        Number of bins of every column of the rows.
    columns : sequence of d ints
        Positions of the block columns.
    values : sequence of d arrays, each of shape (n_intervals,)
        Warped value w at each interval of a block column. The column's other bins are its spikes.
    others : sequence of ints
        Positions of the product columns. A column may be in neither list; passes ignore it.

    Examples
    --------
    >>> layout = BlockLayout([4, 2], columns=[0], values=[np.array([-1.0, 0.0, 1.0])], others=[1])
    >>> layout.d, layout.n_spikes
    (1, (1,))
    """

    n_bins: tuple[int, ...]
    columns: tuple[int, ...]
    values: tuple[FloatArray, ...]
    others: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("n_bins", "columns", "others"):
            object.__setattr__(self, name, tuple(int(number) for number in getattr(self, name)))
        object.__setattr__(self, "values", tuple(np.array(w, dtype=np.float64) for w in self.values))
        used = self.columns + self.others
        if len(set(used)) < len(used) or not all(0 <= n < len(self.n_bins) for n in used):
            raise InputError(
                f"`columns` and `others` must be different positions below {len(self.n_bins)}; got "
                f"{list(self.columns)} and {list(self.others)}."
            )
        if len(self.values) != self.d:
            raise InputError(f"`values` must be {self.d} arrays, one for each block column; got {len(self.values)}.")
        for column, w in zip(self.columns, self.values, strict=True):
            if w.ndim != 1 or len(w) > self.n_bins[column] or not np.isfinite(w).all():
                raise InputError(
                    f"`values` of column {column} must be at most {self.n_bins[column]} finite numbers, one for each "
                    f"interval; got an array of shape {w.shape}."
                )

    @property
    def d(self) -> int:
        """Number of block columns."""
        return len(self.columns)

    @cached_property
    def n_spikes(self) -> tuple[int, ...]:
        """Number of spikes of each block column."""
        return tuple(self.n_bins[column] - len(w) for column, w in zip(self.columns, self.values, strict=True))

    @cached_property
    def table_bins(self) -> tuple[int, ...]:
        """Number of bins of each product column."""
        return tuple(self.n_bins[column] for column in self.others)

    @cached_property
    def table_starts(self) -> IntArray:
        """Where the tables of product columns begin if all tables are stacked, then those of spikes, and the end.

        Each table has one more place, for "missing".
        """
        return bin_starts([bins + 1 for bins in self.table_bins] + [n + 2 for n in self.n_spikes])

    @cached_property
    def _places(self) -> IntArray:
        """Where the tables lie if all are stacked, without the places for "missing"."""
        return np.delete(np.arange(self.table_starts[-1]), np.asarray(self.table_starts[1:]) - 1)

    def stacked(self, components: BlockComponents) -> FloatArray:
        """Return all tables of the components below each other, zero for "missing"; shape (places, F)."""
        tables = np.zeros((self.table_starts[-1], len(components.log_weights)))
        if len(self._places):
            tables[self._places] = np.concatenate(components.tables + components.spikes)
        return np.asarray(np.maximum(tables, LEAST_LOG, out=tables))

    def unstacked(self, counts: FloatArray) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """Return the counts of product columns and of spikes, without "missing", from stacked ones (places, F)."""
        tables = tuple(counts[start : end - 1] for start, end in pairwise(self.table_starts))
        return tables[: len(self.others)], tables[len(self.others) :]

    def check(self, n_bins: Sequence[int]) -> None:
        """Raise unless the layout is one of rows with these bins."""
        if self.n_bins != tuple(n_bins):
            raise InputError("The layout of the block is one of rows with other axes.")


@dataclass(frozen=True, eq=False)
class BlockComponents:
    """The mixture whose posteriors a pass sums.

    Parameters
    ----------
    log_weights : array of shape (F,)
    means : array of shape (F, d)
    covariances : array of shape (F, d, d)
        Positive definite.
    tables : sequence of arrays, each of shape (n_bins, F)
        Log-likelihoods of the bins of each product column. Here and in `spikes`, -inf counts as log(1e-300), so that
        an impossible row has a finite log-density and posteriors.
    spikes : sequence of d arrays, each of shape (1 + S, F)
        Log-probabilities of "at no spike" and of each spike, for each block column.
    """

    log_weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    tables: tuple[FloatArray, ...] = ()
    spikes: tuple[FloatArray, ...] = ()

    def __post_init__(self) -> None:
        for name in ("log_weights", "means", "covariances"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        for name in ("tables", "spikes"):
            object.__setattr__(self, name, tuple(np.asarray(each, dtype=np.float64) for each in getattr(self, name)))

    @cached_property
    def factors(self) -> FloatArray:
        """Cholesky factors of the covariances, lower triangular; shape (F, d, d)."""
        try:
            factors: AnyArray = np.linalg.cholesky(self.covariances)
        except np.linalg.LinAlgError:
            least = np.linalg.eigvalsh(self.covariances).min(axis=1)
            raise InputError(
                f"`covariances` must be positive definite; that of component {int(np.argmin(least))} has the "
                f"eigenvalue {least.min():.3g}. Add to its diagonal."
            ) from None
        return factors

    def check(self, layout: BlockLayout) -> None:
        """Raise unless the arrays fit a layout, hold finite numbers, and the covariances are positive definite."""
        F, d = len(self.log_weights), layout.d
        parts = (
            ("means", (self.means,), [(F, d)]),
            ("covariances", (self.covariances,), [(F, d, d)]),
            ("tables", self.tables, [(bins, F) for bins in layout.table_bins]),
            ("spikes", self.spikes, [(1 + n, F) for n in layout.n_spikes]),
        )
        for name, arrays, expected in parts:
            shapes = [array.shape for array in arrays]
            if shapes != expected:
                raise InputError(f"`{name}` must have shapes {expected}; got {shapes}.")
        for name in ("means", "covariances"):
            if not np.isfinite(getattr(self, name)).all():
                raise InputError(f"`{name}` must be finite.")
        for name, arrays in (("log_weights", (self.log_weights,)), ("tables", self.tables), ("spikes", self.spikes)):
            each = list({id(array): array for array in arrays}.values())  # columns without spikes may share a table
            if each and not (np.concatenate(each, axis=None) < np.inf).all():
                raise InputError(f"`{name}` must not be NaN or inf.")
        if not (self.log_weights > -np.inf).any():
            raise InputError("`log_weights` must have a component with a weight above zero.")
        if d:
            _ = self.factors


@dataclass(frozen=True, eq=False)
class BlockSums:
    """What one pass over the rows leaves behind; the sums of parts of a table, under equal components, add up.

    Parameters
    ----------
    totals : array of shape (F,)
        n_r.
    firsts : array of shape (F, d)
        f_r, centred at the means of the pass.
    seconds : array of shape (F, d, d)
        Q_r, centred at the means of the pass.
    counts : tuple of arrays, each of shape (n_bins, F)
        Sums of posteriors by bin, for each product column.
    spikes : tuple of d arrays, each of shape (1 + S, F)
        Sums of posteriors of the rows at no spike and at each spike, for each block column.
    log_likelihood : float
        Sum over rows of their weighted log-densities.
    """

    totals: FloatArray
    firsts: FloatArray
    seconds: FloatArray
    counts: tuple[FloatArray, ...]
    spikes: tuple[FloatArray, ...]
    log_likelihood: float

    def __add__(self, other: BlockSums) -> BlockSums:
        return BlockSums(
            self.totals + other.totals,
            self.firsts + other.firsts,
            self.seconds + other.seconds,
            tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
            tuple(a + b for a, b in zip(self.spikes, other.spikes, strict=True)),
            self.log_likelihood + other.log_likelihood,
        )


class BlockEngine(ABC):
    """Coded rows, ready for passes over a Gaussian block."""

    @abstractmethod
    def sums(self, components: BlockComponents) -> BlockSums:
        """One pass over the rows; see the module."""


class ScoringBlockEngine(BlockEngine):
    """Rows in memory, which can also be scored one by one."""

    @abstractmethod
    def log_densities(self, components: BlockComponents, scales: Sequence[float] = (1.0,)) -> FloatArray:
        """Log-density of each row, with all covariances times each of some scales; shape (scales, n)."""
