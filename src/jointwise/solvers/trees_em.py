r"""Maximum a posteriori of a mixture of trees, from rows: EM that learns tables and trees.

With q_n the margin of column n and Q_jk the table of a pair of columns in the whole table (each on the simplex, with
consistent margins), the log-posterior is the log-likelihood of the rows plus

.. math:: \sum_r \sum_n \sum_{a,b} \big(\gamma \, Q_{mn}[a, b] + \alpha \, q_m[a] \, q_n[b]\big)
          \log p_r(b \mid a), \qquad m = \mathrm{parent}_r(n),

as if each component had seen `gamma` more rows of the whole table and `alpha` more rows of independent columns. All
counts of an M step have consistent margins then, and the spanning tree of largest mutual information is the exact
maximiser over all trees (Chow and Liu, 1968), so that the objective never rises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.engines.trees import EdgeSums, Forest, PairSums, TreeComponents, TreeEngine, pair_starts
from jointwise.engines.trees.gains import joint_sums
from jointwise.exceptions import InputError
from jointwise.solvers.base import Solver
from jointwise.solvers.factors import frozen

# Most expected counts of pairs that are held at a time; more are counted in several passes.
MOST_ENTRIES = 1 << 24
# Two models are one if their weights and tables differ by less than this.
SAME = 0.02


@dataclass(frozen=True, eq=False)
class TreeFactors:
    """The parameters of a mixture of trees.

    Attributes
    ----------
    forest : Forest
        The trees.
    weights : array of shape (F,)
        Mixing weights lam, on the simplex.
    tables : array of shape (entries,)
        p_r(s_n | s_parent), laid out as `Forest.starts` says; each row of each table is on the simplex.

    Examples
    --------
    >>> forest = Forest((2, 2), np.array([[-1, 0], [-1, -1]]))
    >>> both = TreeFactors(forest, np.array([0.5, 0.5]), np.array([0.5, 0.5, 0.9, 0.1, 0.2, 0.8, 0.5, 0.5, 0.3, 0.7]))
    >>> both.take([1]).tables
    array([0.5, 0.5, 0.3, 0.7])
    """

    forest: Forest
    weights: FloatArray
    tables: FloatArray

    def __post_init__(self) -> None:
        for name in ("weights", "tables"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def n_components(self) -> int:
        """Number of components F."""
        return self.weights.size

    def take(self, chosen: Sequence[int]) -> TreeFactors:
        """Return some of the components, their weights scaled to sum to one."""
        where = list(chosen)
        N, starts = len(self.forest.n_bins), self.forest.starts
        tables = [self.tables[starts[r * N] : starts[(r + 1) * N]] for r in where]
        weights = self.weights[where] / self.weights[where].sum()
        return TreeFactors(Forest(self.forest.n_bins, self.forest.parents[where]), weights, np.concatenate(tables))

    @classmethod
    def products(cls, weights: FloatArray, conditionals: Sequence[FloatArray]) -> TreeFactors:
        """Return components without edges, from the probabilities (S_n, F) of each column's states."""
        n_bins = tuple(len(each) for each in conditionals)
        parents = np.full((len(weights), len(n_bins)), -1, dtype=np.int64)
        return cls(Forest(n_bins, parents), weights, np.vstack(conditionals).T.ravel())


@dataclass(frozen=True, eq=False)
class PairPrior:
    """What is known of pairs of columns before components are: their tables in the whole table of rows.

    Parameters
    ----------
    n_bins : tuple of int
        States of each column.
    pairs : array of shape (P, 2)
        The pairs i < j that a tree may join; where they do not connect all columns, trees fall into several.
    tables : array of shape (sum of S_i S_j,)
        Q_ij of each pair, row-major, one after the other; each sums to one.
    means : tuple of arrays of shape (S_n,)
        The margins of these tables.
    margins : tuple of arrays of shape (S_n,)
        q_n, positive: what a component without rows takes for independent columns.
    """

    n_bins: tuple[int, ...]
    pairs: IntArray
    tables: FloatArray
    means: tuple[FloatArray, ...]
    margins: tuple[FloatArray, ...]

    @cached_property
    def starts(self) -> IntArray:
        """Where the table of each pair begins, and the end; shape (P + 1,)."""
        return pair_starts(self.n_bins, self.pairs)

    @cached_property
    def numbers(self) -> IntArray:
        """Position of the pair of any two columns, -1 where it is not among them; shape (N, N)."""
        found = np.full((len(self.n_bins), len(self.n_bins)), -1, dtype=np.int64)
        found[self.pairs[:, 0], self.pairs[:, 1]] = found[self.pairs[:, 1], self.pairs[:, 0]] = np.arange(
            len(self.pairs)
        )
        return found

    def chunks(self, chosen: IntArray, most: int) -> Iterator[IntArray]:
        """Yield the numbers of chosen pairs in groups whose tables have at most ``most`` entries."""
        sizes = np.diff(self.starts)[chosen]
        group = (np.cumsum(sizes) - sizes) // max(most, 1)
        for each in np.unique(group):
            yield chosen[group == each]


@dataclass(frozen=True, eq=False)
class TreesProblem:
    """Rows and the prior.

    Parameters
    ----------
    rows : TreeEngine
        The coded rows.
    n_rows : float
        Their number, or the sum of their weights.
    known : PairPrior
    alpha, gamma : float
        Rows of independent columns, and of the whole table, that the prior counts for; `alpha` positive.
    """

    rows: TreeEngine
    n_rows: float
    known: PairPrior
    alpha: float
    gamma: float

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise InputError(f"alpha must be positive; got {self.alpha!r}.")
        if not self.gamma >= 0:
            raise InputError(f"gamma must be zero or more; got {self.gamma!r}.")

    def components(self, factors: TreeFactors) -> TreeComponents:
        """Return the components as passes take them."""
        with np.errstate(divide="ignore"):
            return TreeComponents(factors.forest, np.log(factors.weights), np.log(factors.tables))

    def log_likelihood(self, factors: TreeFactors) -> float:
        """Return the log-likelihood of the rows' states."""
        return self.rows.edge_sums(self.components(factors)).log_likelihood

    def update(self, factors: TreeFactors) -> tuple[float, TreeFactors]:
        """Return the negative log-posterior per row, and the factors after an EM update that keeps the trees."""
        components = self.components(factors)
        sums = self.rows.edge_sums(components)
        return self.objective(components, sums.log_likelihood), self.maximised(factors.forest, sums)

    def update_trees(self, factors: TreeFactors) -> tuple[float, TreeFactors]:
        """Return the negative log-posterior per row, and the factors after an EM update with the best trees."""
        components = self.components(factors)
        most = MOST_ENTRIES // factors.n_components
        gains, totals, held, log_likelihood = [], np.empty(0), None, 0.0
        chunks = list(self.known.chunks(np.arange(len(self.known.pairs)), most))
        for chunk in chunks:
            sums = self.rows.pair_sums(components, self.known.pairs[chunk])
            gains.append(self._gains(chunk, sums.pairs, sums.nodes))
            totals, log_likelihood, nodes = sums.totals, sums.log_likelihood, sums.nodes
            held = sums.pairs if len(chunks) == 1 else None
        if not chunks:
            return self.update(factors)
        forest = Forest(self.known.n_bins, best_trees(len(self.known.n_bins), self.known.pairs, np.vstack(gains)))
        edges = self._root_counts(forest, nodes)
        for chunk in [chunks[0]] if held is not None else self.known.chunks(self._used(forest), most):
            pairs = held if held is not None else self.rows.pair_sums(components, self.known.pairs[chunk]).pairs
            self._fill(forest, edges, chunk, pairs)
        objective = self.objective(components, log_likelihood)
        return objective, self.maximised(forest, EdgeSums(totals, edges, log_likelihood))

    def objective(self, components: TreeComponents, log_likelihood: float) -> float:
        """Return the negative log-posterior per row at some components."""
        return -(log_likelihood + float(self.prior_counts(components.forest) @ components.logs)) / self.n_rows

    def maximised(self, forest: Forest, sums: EdgeSums) -> TreeFactors:
        """Return the factors that maximise the expected log-posterior given the trees, from the sums of a pass."""
        counts = sums.edges + self.prior_counts(forest)
        return TreeFactors(forest, sums.totals / sums.totals.sum(), normalised(forest, counts))

    def prior_counts(self, forest: Forest) -> FloatArray:
        """Return the rows of the prior at every entry of the tables of all trees; shape (entries,)."""
        if forest not in self._counted:  # most steps keep the trees of the last one
            self._counted.clear()
            N = len(forest.n_bins)
            parts = [self._prior_of(tree[n], n) for tree in forest.parents.tolist() for n in range(N)]
            self._counted[forest] = np.concatenate(parts)
        return self._counted[forest]

    @cached_property
    def _counted(self) -> dict[Forest, FloatArray]:
        return {}

    @cached_property
    def _priors(self) -> dict[tuple[int, int], FloatArray]:
        return {}

    def _prior_of(self, parent: int, n: int) -> FloatArray:
        """Return the rows of the prior at the states of a parent and a column, or of a root (-1), flat."""
        if (parent, n) not in self._priors:
            known = self.known
            if parent < 0:
                found = self.gamma * known.means[n] + self.alpha * known.margins[n]
            else:
                k = known.numbers[parent, n]
                table = known.tables[known.starts[k] : known.starts[k + 1]].reshape(known.n_bins[min(parent, n)], -1)
                table = table if parent < n else table.T
                found = self.gamma * table + self.alpha * np.outer(known.margins[parent], known.margins[n])
            self._priors[parent, n] = found.ravel()
        return self._priors[parent, n]

    def _gains(self, chunk: IntArray, pairs: FloatArray, nodes: FloatArray) -> FloatArray:
        """Return the rows' gain in log-posterior if a tree joins a pair, for each component; shape (pairs, F).

        It is the mutual information of the expected counts with the prior's, times their sum.
        """
        known = self.known
        asked = known.pairs[chunk]
        where = slice(known.starts[chunk[0]], known.starts[chunk[-1] + 1])  # chunks of all pairs are without gaps
        prior, n_bins = np.array([self.gamma, self.alpha]), np.array(known.n_bins)
        joint = joint_sums(pairs, known.tables[where], n_bins, asked, np.concatenate(known.margins), prior)
        own = np.concatenate([self._prior_of(-1, n) for n in range(len(known.n_bins))])
        counts = nodes + own[:, None]
        ends = np.concatenate([[0], np.cumsum(known.n_bins)[:-1]])
        single = np.add.reduceat(_x_log_x(counts), ends, axis=0)
        total = _x_log_x(counts[: known.n_bins[0]].sum(axis=0))
        return np.asarray(joint - single[asked[:, 0]] - single[asked[:, 1]] + total)

    def _root_counts(self, forest: Forest, nodes: FloatArray) -> FloatArray:
        """Return expected counts laid out as the tables, filled for roots."""
        edges = np.zeros(forest.n_entries)
        ends = np.concatenate([[0], np.cumsum(forest.n_bins)])
        for r, n in np.argwhere(forest.parents < 0):
            forest.table(edges, r, n)[0] = nodes[ends[n] : ends[n + 1], r]
        return edges

    def _used(self, forest: Forest) -> IntArray:
        """Return the numbers of the pairs that some tree joins."""
        r, n = np.nonzero(forest.parents >= 0)
        return np.unique(self.known.numbers[forest.parents[r, n], n]).astype(np.int64)

    def _fill(self, forest: Forest, edges: FloatArray, chunk: IntArray, pairs: FloatArray) -> None:
        """Write the expected counts of those edges whose pairs are in a chunk."""
        starts = pair_starts(forest.n_bins, self.known.pairs[chunk])
        place = {int(k): position for position, k in enumerate(chunk)}
        for r, n in np.argwhere(forest.parents >= 0).tolist():
            m = int(forest.parents[r, n])
            at = place.get(int(self.known.numbers[m, n]))
            if at is not None:
                table = pairs[starts[at] : starts[at + 1], r].reshape(forest.n_bins[min(m, n)], -1)
                forest.table(edges, r, n)[:] = table if m < n else table.T


def best_trees(n_columns: int, pairs: IntArray, gains: FloatArray) -> IntArray:
    """Return the parents in the spanning tree of the largest sum of gains, for each component; shape (F, N).

    Parameters
    ----------
    n_columns : int
    pairs : array of shape (P, 2)
    gains : array of shape (P, F)
        What each pair of columns gains as an edge, not negative but for rounding.

    Examples
    --------
    >>> best_trees(3, np.array([[0, 1], [0, 2], [1, 2]]), np.array([[3.0], [1.0], [2.0]])).tolist()
    [[-1, 0, 1]]
    """
    parents = np.full((gains.shape[1], n_columns), -1, dtype=np.int64)
    some = max(MOST_ENTRIES // n_columns**2, 1)
    for first in range(0, len(parents), some):
        parents[first : first + some] = _spanning(n_columns, pairs, gains[:, first : first + some])
    return parents


def _spanning(n_columns: int, pairs: IntArray, gains: FloatArray) -> IntArray:
    """Return the trees of some components, which grow side by side by the column of the largest gain (Prim, 1957).

    A tree that no pair joins with another column ends there, and the next begins at the first column that is left.
    """
    F = gains.shape[1]
    each = np.arange(F)
    joined = np.full((F, n_columns, n_columns), -np.inf)
    joined[:, pairs[:, 0], pairs[:, 1]] = joined[:, pairs[:, 1], pairs[:, 0]] = gains.T
    reached = np.full((F, n_columns), -np.inf)  # the largest gain of each column with the tree, and by which of these
    parents = np.full((F, n_columns), -1, dtype=np.int64)
    seen = np.zeros((F, n_columns), dtype=bool)
    for _ in range(n_columns):
        left = np.where(seen, -np.inf, reached)
        chosen = np.argmax(left, axis=1)
        chosen = np.where(left[each, chosen] > -np.inf, chosen, np.argmin(seen, axis=1))
        seen[each, chosen] = True
        gain = joined[each, chosen]
        closer = ~seen & (gain > reached)
        reached = np.where(closer, gain, reached)
        parents = np.where(closer, chosen[:, None], parents)
    return parents


def normalised(forest: Forest, counts: FloatArray) -> FloatArray:
    """Return counts laid out as tables with each row of each table scaled to sum to one; rows without counts even."""
    starts, widths = forest.rows
    sums = np.add.reduceat(counts, starts)
    if (sums > 0).all():
        return np.asarray(counts / np.repeat(sums, widths))
    sums, even = np.repeat(sums, widths), 1 / np.repeat(widths, widths)
    return np.asarray(np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), even))


class TreesState(NamedTuple):
    """Factors, the result of one EM update from them, and how settled their trees are."""

    factors: TreeFactors
    objective: float
    update: TreeFactors
    decreases: tuple[float, float]  # by the last step and the one before
    age: int  # steps since the trees were last looked at
    wait: int  # steps until they are looked at again
    settled: bool  # whether they were looked at when steps had become small, and gained little


@dataclass(frozen=True, eq=False)
class TreesEM(Solver[TreesProblem, TreesState, TreeFactors]):
    r"""EM on rows from given factors.

    With N_r[a, b] the expected counts of a pair of columns in component r with those of the prior, a step is

    .. math:: \lambda_r \leftarrow n_r / n, \qquad p_r(b \mid a) \leftarrow N_r[a, b] / \textstyle\sum_b N_r[a, b].

    At some steps all pairs are counted and each tree becomes the best one; at the others the edges alone are counted.
    The best trees are looked for at the start, after 2, 4, 8, ... further steps, and when steps have become small.
    The objective never rises.

    Parameters
    ----------
    start : TreeFactors
    tol : float
        Stop when two steps in a row each lower the objective (in nats per row) by no more than this, and new trees
        have not changed that.
    fixed : bool
        Whether to keep the trees of the start.
    """

    start: TreeFactors
    tol: float = 1e-4
    fixed: bool = False

    def init(self, problem: TreesProblem) -> TreesState:
        """Return the start with its objective."""
        objective, update = problem.update(self.start) if self.fixed else problem.update_trees(self.start)
        return TreesState(self.start, objective, update, (np.inf, np.inf), 0, 2, self.fixed)

    def step(self, problem: TreesProblem, state: TreesState) -> TreesState:
        """Return the state after one EM update."""
        slow = max(state.decreases) <= self.tol
        look = not state.settled and (slow or state.age + 1 >= state.wait)
        objective, update = (problem.update_trees if look else problem.update)(state.update)
        decrease = state.objective - objective
        settled = self.fixed or (slow if look else state.settled and decrease <= self.tol)
        age, wait = (0, 2 * state.wait) if look else (state.age + 1, state.wait)
        return TreesState(state.update, objective, update, (decrease, state.decreases[0]), age, wait, settled)

    def objective(self, state: TreesState) -> float:
        """Return the negative log-posterior per row, in nats."""
        return state.objective

    def is_done(self, state: TreesState) -> bool:
        """Return whether each of the last two steps, with settled trees, lowered the objective by at most `tol`."""
        return state.settled and (self.fixed or state.age >= 2) and max(state.decreases) <= self.tol

    def value(self, state: TreesState) -> TreeFactors:
        """Return the factors."""
        return state.factors


def chow_liu(known: PairPrior, n_rows: float, alpha: float) -> TreeFactors:
    """Return the most likely tree of a whole table, from the tables of its pairs.

    Parameters
    ----------
    known : PairPrior
    n_rows : float
        Rows of the whole table.
    alpha : float
        Rows of independent columns seen before.

    Examples
    --------
    >>> tables = np.array([0.5, 0.0, 0.0, 0.5])
    >>> known = PairPrior((2, 2), np.array([[0, 1]]), tables, (np.full(2, 0.5),) * 2, (np.full(2, 0.5),) * 2)
    >>> chow_liu(known, 98.0, 2.0).tables
    array([0.5 , 0.5 , 0.99, 0.01, 0.01, 0.99])
    """
    N = len(known.n_bins)
    problem = TreesProblem(_NoRows(known.n_bins), n_rows, known, alpha, gamma=n_rows)
    start = TreeFactors(Forest(known.n_bins, np.full((1, N), -1)), np.ones(1), np.concatenate(known.margins))
    return problem.update_trees(start)[1]


@dataclass(frozen=True)
class _NoRows(TreeEngine):
    """An engine without rows: what the prior knows is all there is."""

    n_bins: tuple[int, ...]

    def edge_sums(self, components: TreeComponents) -> EdgeSums:
        return EdgeSums(np.ones(1), np.zeros(components.forest.n_entries), 0.0)

    def pair_sums(self, components: TreeComponents, pairs: IntArray) -> PairSums:
        del components
        entries = int(pair_starts(self.n_bins, pairs)[-1])
        return PairSums(np.ones(1), np.zeros((entries, 1)), np.zeros((sum(self.n_bins), 1)), 0.0)


def sharpened(law: FloatArray, counts: FloatArray, one: FloatArray, other: FloatArray, n_steps: int) -> FloatArray:
    r"""Return the law T of the hidden states of two columns after steps of EM.

    EM maximises the likelihood of the columns' codes,

    .. math:: \sum_{c, d} N[c, d] \log \sum_{a, b} P(c \mid a) \, T[a, b] \, P(d \mid b) .

    Parameters
    ----------
    law : array of shape (S, T)
        Where EM begins, positive.
    counts : array of shape (C, D)
        Rows with each pair of codes.
    one, other : arrays of shapes (S, C) and (T, D)
        Law of the codes given the states.
    n_steps : int

    Examples
    --------
    >>> noisy = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> counts = noisy.T @ np.diag([0.5, 0.5]) @ noisy  # of states that are always equal
    >>> sharpened(np.full((2, 2), 0.25) + 0.1 * np.eye(2), counts, noisy, noisy, 100).round(2)
    array([[0.49, 0.01],
           [0.01, 0.49]])
    """
    law, total = law / law.sum(), float(counts.sum())
    if not total > 0:
        return law
    for _ in range(n_steps):
        expected = one.T @ law @ other
        ratios = np.divide(counts, expected, out=np.zeros_like(counts), where=counts > 0)
        law = law * (one @ ratios @ other.T) / total
    return np.asarray(law)


def averaged(models: Sequence[TreeFactors]) -> TreeFactors:
    """Return the mean of the densities of several models: all their components; of models that agree, those of one."""
    which = [next(j for j, other in enumerate(models) if _agree(model, other)) for model in models]
    shares = np.bincount(which) / len(models)
    models, shares = [models[int(j)] for j in np.flatnonzero(shares)], shares[shares > 0]
    return TreeFactors(
        Forest(models[0].forest.n_bins, np.concatenate([m.forest.parents for m in models])),
        np.concatenate([share * m.weights for share, m in zip(shares, models, strict=True)]),
        np.concatenate([m.tables for m in models]),
    )


def _agree(a: TreeFactors, b: TreeFactors) -> bool:
    """Whether two models are the same up to how far EM went, with components in the same order."""
    return a is b or (
        np.array_equal(a.forest.parents, b.forest.parents)
        and np.allclose(a.weights, b.weights, rtol=0, atol=SAME)
        and np.allclose(a.tables, b.tables, rtol=0, atol=SAME)
    )


def _x_log_x(x: FloatArray) -> FloatArray:
    """Return x log x of positive numbers."""
    found = np.log(x)
    found *= x
    return found
