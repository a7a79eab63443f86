r"""The pass over a mixture of trees: what goes in, what comes out.

Every column n has a few states, the codes of its cells, and every component r a tree over the columns:

.. math:: f(x) = \sum_r \lambda_r \prod_n p_r(x_n \mid x_{\mathrm{parent}_r(n)}).

A root has no parent, and several roots make a forest. A missing cell is summed out: it may be in any of its states.

With P[i, r] the posterior of component r given the cells of row i that are observed, a pass gives the expected counts
of an EM step: of the states of each edge of each tree (`EdgeSums`), or of the states of any pairs of columns
(`PairSums`), from which better trees are found. They are exact with gaps too, also for two missing cells of a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise._typing import AnyArray, BoolArray, FloatArray, IntArray
from jointwise.engines.base import bin_starts
from jointwise.engines.blocks.base import LEAST_LOG
from jointwise.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Forest:
    """The structure of F trees over N columns.

    Parameters
    ----------
    n_bins : sequence of N ints
        Number of states of each column. Codes run from 0 to n_bins[n] - 1; n_bins[n] means missing.
    parents : array of shape (F, N)
        Parent of each column in each tree; -1 for a root.

    Examples
    --------
    >>> forest = Forest([2, 3], [[-1, 0], [1, -1], [-1, -1]])
    >>> forest.order.tolist(), forest.starts.tolist()
    ([[0, 1], [1, 0], [0, 1]], [0, 2, 8, 14, 17, 19, 22])
    >>> forest.table(np.arange(22), 1, 0)  # row: state of column 1, the parent; column: state of column 0
    array([[ 8,  9],
           [10, 11],
           [12, 13]])
    """

    n_bins: tuple[int, ...]
    parents: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", tuple(int(bins) for bins in self.n_bins))
        if not self.n_bins or min(self.n_bins) < 1:
            raise InputError(f"`n_bins` must be one positive number for each column; got {list(self.n_bins)}.")
        parents = np.array(self.parents)
        N = len(self.n_bins)
        if parents.ndim != 2 or parents.shape[1] != N or not len(parents) or parents.dtype.kind not in "iu":
            raise InputError(
                f"`parents` must be an array of integers of shape (trees, {N}); got {parents.dtype} of shape "
                f"{parents.shape}."
            )
        if parents.min() < -1 or parents.max() >= N:
            raise InputError(f"`parents` must be columns below {N}, or -1 for a root; got {_range(parents)}.")
        parents = parents.astype(np.int64)
        parents.flags.writeable = False
        object.__setattr__(self, "parents", parents)
        _ = self.order

    @property
    def n_trees(self) -> int:
        """Number of trees, F."""
        return len(self.parents)

    @cached_property
    def order(self) -> IntArray:
        """Columns of each tree, parents before children; shape (F, N)."""
        N = len(self.n_bins)
        # the column N stands above all roots; `above` goes up 1, 2, 4, ... edges at a time
        above = np.column_stack([np.where(self.parents < 0, N, self.parents), np.full(self.n_trees, N)])
        depth = (above < N).astype(np.int64)
        for _ in range(N.bit_length()):
            depth += np.take_along_axis(depth, above, axis=1)
            above = np.take_along_axis(above, above, axis=1)
        if (above < N).any():
            tree, column = np.argwhere(above < N)[0]
            raise InputError(f"`parents` of tree {tree} must have no cycle; the ancestors of column {column} have one.")
        order: IntArray = np.argsort(depth[:, :N], axis=1, kind="stable")
        return order

    @cached_property
    def starts(self) -> IntArray:
        """Where the table of each (tree, column) begins if all are laid end to end, and the end; shape (F N + 1,)."""
        bins = np.array(self.n_bins)
        above = np.where(self.parents < 0, 1, bins[self.parents])
        return bin_starts((above * bins).ravel().tolist())

    @property
    def n_entries(self) -> int:
        """Entries of all tables."""
        return int(self.starts[-1])

    def table(self, flat: AnyArray, r: int, n: int) -> AnyArray:
        """Return a view of the table of column n in tree r; shape (states of the parent, or 1, states of n)."""
        place = r * len(self.n_bins) + n
        return flat[self.starts[place] : self.starts[place + 1]].reshape(-1, self.n_bins[n])

    @cached_property
    def has_children(self) -> BoolArray:
        """Whether each column of each tree has children; shape (F, N)."""
        found = np.zeros(self.parents.shape, dtype=bool)
        tree, column = np.nonzero(self.parents >= 0)
        found[tree, self.parents[tree, column]] = True
        return found

    @cached_property
    def ranks(self) -> IntArray:
        """Position of each column in the order of its tree; shape (F, N)."""
        ranks: IntArray = np.argsort(self.order, axis=1)
        return ranks

    @cached_property
    def children(self) -> tuple[IntArray, IntArray]:
        """Where the children of each column begin, (F, N + 1), and the children, (F, N), roots last."""
        N = len(self.n_bins)
        above = np.where(self.parents < 0, N, self.parents)
        places = above + (N + 1) * np.arange(len(above))[:, None]
        counts = np.bincount(places.ravel(), minlength=above.size + len(above)).reshape(len(above), N + 1)[:, :N]
        starts = np.concatenate([np.zeros((len(above), 1), dtype=np.int64), np.cumsum(counts, axis=1)], axis=1)
        return starts, np.argsort(above, axis=1, kind="stable")

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """Where each row of each table begins if all are laid end to end, and how many states it has; shape (rows,)."""
        bins = np.tile(self.n_bins, self.n_trees)
        widths = np.repeat(bins, np.diff(self.starts) // bins)
        return np.cumsum(widths) - widths, widths

    @cached_property
    def padded(self) -> PaddedTables:
        """Where the entries are if every table has one more state, "missing", for the column and for its parent."""
        bins = np.tile(self.n_bins, self.n_trees)
        above = np.where(self.parents < 0, 0, np.array(self.n_bins)[self.parents]).ravel()
        starts = bin_starts(((above + 1) * (bins + 1)).tolist())
        begins, widths = self.rows
        table = np.repeat(np.arange(len(bins)), np.diff(self.starts) // bins)
        rows = starts[table] + (begins - self.starts[table]) // widths * (widths + 1)
        is_leaf = ~self.has_children.ravel()[table]
        places = np.repeat(rows - begins, widths) + np.arange(self.n_entries)
        leaves = np.flatnonzero(np.repeat(is_leaf, widths))
        return PaddedTables(starts, places, leaves, widths[is_leaf], (rows + widths)[is_leaf])

    def check(self, n_bins: Sequence[int]) -> None:
        """Raise unless the trees are over columns with these numbers of states."""
        if self.n_bins != tuple(n_bins):
            raise InputError("The trees are over columns with other states than the rows have.")


@dataclass(frozen=True, eq=False)
class PaddedTables:
    """Tables of shape (S_parent + 1, S_n + 1), or (1, S_n + 1) for a root, end to end: no cell needs a question.

    Parameters
    ----------
    starts : array of shape (F N + 1,)
        Where each table begins, and the end.
    places : array of shape (entries,)
        Where each entry of the tables without "missing" is.
    leaves : array of shape (entries of leaves,)
        Positions of the entries whose column has no children. A missing leaf needs no messages: with its parent's state
        s_p it gives sum_s p(s | s_p), and its states are expected in these proportions, which can wait for the sums.
    widths, missing : arrays of shape (rows of leaves,)
        Entries of each row of these tables, and where its "missing" is.
    """

    starts: IntArray
    places: IntArray
    leaves: IntArray
    widths: IntArray
    missing: IntArray

    def tables(self, logs: FloatArray, *, gaps: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return padded tables of logarithms and of probabilities; "missing" gives the factor of a leaf, or one.

        Rows without gaps need the logarithms only, and nothing at "missing".
        """
        if not gaps:
            found = np.zeros(self.starts[-1])
            found[self.places] = logs
            return found, np.empty(0)
        tables, probabilities = np.zeros((2, self.starts[-1])), np.exp(logs)
        tables[0, self.places], tables[1, self.places] = logs, probabilities
        tables[0, self.missing] = np.log(self._row_sums(probabilities[self.leaves]))
        return tables[0], tables[1]

    def counts(self, padded: FloatArray, logs: FloatArray, *, gaps: bool = True) -> FloatArray:
        """Return the counts of the entries, from padded ones, with missing leaves spread over their states."""
        counts = padded[self.places]
        if not gaps:
            return counts
        probabilities = np.exp(logs[self.leaves])
        each = padded[self.missing] / self._row_sums(probabilities)
        counts[self.leaves] += probabilities * np.repeat(each, self.widths)
        return counts

    def _row_sums(self, probabilities: FloatArray) -> FloatArray:
        """Return the sums of the rows of leaves, from their entries."""
        return np.asarray(np.add.reduceat(probabilities, np.cumsum(self.widths) - self.widths))


@dataclass(frozen=True, eq=False)
class TreeComponents:
    """The mixture whose posteriors a pass sums.

    Parameters
    ----------
    forest : Forest
    log_weights : array of shape (F,)
    tables : array of shape (entries,)
        log p_r(s_n | s_parent), all tables end to end; see `Forest.starts`. -inf counts as log(1e-300), so that an
        impossible row has a finite log-density and posteriors.
    """

    forest: Forest
    log_weights: FloatArray
    tables: FloatArray

    def __post_init__(self) -> None:
        for name, length in (("log_weights", self.forest.n_trees), ("tables", self.forest.n_entries)):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, array)
            if array.shape != (length,):
                raise InputError(f"`{name}` must have shape ({length},); got {array.shape}.")
            if not (array < np.inf).all():
                raise InputError(f"`{name}` must not be NaN or inf.")
        if not (self.log_weights > -np.inf).any():
            raise InputError("`log_weights` must have a component with a weight above zero.")

    @cached_property
    def logs(self) -> FloatArray:
        """The tables with zeros replaced; see `LEAST_LOG`."""
        return np.maximum(self.tables, LEAST_LOG)


@dataclass(frozen=True, eq=False)
class EdgeSums:
    """Expected counts of the edges of the trees; those of parts of a table, under equal components, add up.

    Parameters
    ----------
    totals : array of shape (F,)
        Sums of posteriors.
    edges : array of shape (entries,)
        Expected counts of (s_parent, s_n) in each component, or of s_n for a root, laid out as `TreeComponents.tables`.
    log_likelihood : float
        Sum over rows of their weighted log-densities.
    """

    totals: FloatArray
    edges: FloatArray
    log_likelihood: float

    def __add__(self, other: EdgeSums) -> EdgeSums:
        return EdgeSums(
            self.totals + other.totals, self.edges + other.edges, self.log_likelihood + other.log_likelihood
        )


@dataclass(frozen=True, eq=False)
class PairSums:
    """Expected counts of pairs of columns in each component; those of parts of a table add up.

    Parameters
    ----------
    totals : array of shape (F,)
        Sums of posteriors.
    pairs : array of shape (sum of S_i S_j, F)
        Expected counts of (s_i, s_j), row-major, for one asked pair after the other; see `pair_starts`.
    nodes : array of shape (sum of S_n, F)
        Expected counts of the states of each column, one column after the other.
    log_likelihood : float
        Sum over rows of their weighted log-densities.
    """

    totals: FloatArray
    pairs: FloatArray
    nodes: FloatArray
    log_likelihood: float

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(
            self.totals + other.totals,
            self.pairs + other.pairs,
            self.nodes + other.nodes,
            self.log_likelihood + other.log_likelihood,
        )


class TreeEngine(ABC):
    """Coded rows, ready for passes over a mixture of trees."""

    @abstractmethod
    def edge_sums(self, components: TreeComponents) -> EdgeSums:
        """Return the expected counts of all edges, from one pass over the rows."""

    @abstractmethod
    def pair_sums(self, components: TreeComponents, pairs: IntArray) -> PairSums:
        """Return the expected counts of pairs of columns, from one pass over the rows.

        Parameters
        ----------
        components : TreeComponents
        pairs : array of shape (P, 2)
            Different pairs i < j of columns.
        """


def pair_starts(n_bins: Sequence[int], pairs: IntArray) -> IntArray:
    """Return where each pair begins among the stacked states of all pairs, and the total; shape (P + 1,).

    >>> pair_starts([2, 3, 4], np.array([[0, 1], [1, 2]]))
    array([ 0,  6, 18])
    """
    bins = np.array(n_bins)
    return bin_starts(bins[pairs].prod(axis=1).tolist())


def pair_places(n_bins: Sequence[int], pairs: IntArray) -> IntArray:
    """Return where each of the stacked counts of pairs is in the flat table of all states against all states.

    >>> pair_places([1, 2, 2], np.array([[1, 2]]))
    array([ 8,  9, 13, 14])
    """
    starts, bins = bin_starts(n_bins), np.array(n_bins)
    of_pairs = pair_starts(n_bins, pairs)
    pair = np.repeat(np.arange(len(pairs)), np.diff(of_pairs))
    i, j = pairs[pair].T
    row, column = np.divmod(np.arange(of_pairs[-1]) - of_pairs[pair], bins[j])
    places: IntArray = (starts[i] + row) * starts[-1] + starts[j] + column
    return places


def check_pairs(pairs: IntArray, n_columns: int) -> IntArray:
    """Return pairs (P, 2) as integers of 64 bits; raise unless each is i < j of the columns."""
    found = np.asarray(pairs)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise InputError(f"`pairs` must be an array of integers of shape (pairs, 2); got shape {found.shape}.")
    if len(found) and not (found.min() >= 0 and found.max() < n_columns and (found[:, 0] < found[:, 1]).all()):
        raise InputError(f"`pairs` must be columns i < j below {n_columns}; got {_range(found)}.")
    if len(np.unique(found, axis=0)) < len(found):
        raise InputError("`pairs` must be different pairs of columns; one is there twice.")
    return found.astype(np.int64)


def _range(numbers: AnyArray) -> str:
    """Return the least and the largest number in words."""
    return f"numbers from {numbers.min()} to {numbers.max()}"
