r"""The pass over a mixture of trees in plain numpy: belief propagation, all rows of a batch side by side.

An observed cell excludes all states but one; where states overlap it says how likely it is in each (see `Emissions`). A
missing cell excludes none. From the leaves to the roots,

.. math:: u_n(s) = e_n(s) + \sum_{c} m_c(s), \qquad m_n(s_p) = \log \sum_s \exp(\log p(s \mid s_p) + u_n(s)),

with e_n(s) zero or -inf, or the log-probability of the cell's code, and c the children of n. The messages of the roots
are log-likelihoods. From the roots to the leaves, :math:`C_n(s_p, s) = \exp(\log p(s \mid s_p) + u_n(s) - m_n(s_p))` is
the probability of a state given the parent's and all observed cells below, so that joint probabilities follow edge by
edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import logsumexp

from jointwise._typing import CodeArray, FloatArray, IntArray
from jointwise.engines.base import bin_starts
from jointwise.engines.trees.base import (
    EdgeSums,
    Forest,
    PairSums,
    TreeComponents,
    TreeEngine,
    check_pairs,
    pair_starts,
)
from jointwise.engines.trees.emissions import Emissions

# Most bytes of the joint probabilities of the rows of a batch.
BATCH_BYTES = 64 * 2**20


class ReferenceTreeEngine(TreeEngine):
    """Sums of a pass by numpy; see the module.

    Parameters
    ----------
    codes : array of shape (n, N), uint8 or uint16
        Column n holds 0 to n_bins[n] - 1, or n_bins[n] where a value is missing.
    n_bins : sequence of N ints
        Number of states of each column.
    weights : array of shape (n,), optional
        Weights of the rows; one each by default.
    emissions : Emissions, optional
        What states say of the codes, if codes are not states themselves.

    Examples
    --------
    >>> components = TreeComponents(Forest([2, 2], [[-1, 0]]), [0.0], np.log([0.5, 0.5, 0.9, 0.1, 0.1, 0.9]))
    >>> engine = ReferenceTreeEngine(np.array([[0, 0], [2, 1]], dtype=np.uint8), [2, 2])
    >>> engine.edge_sums(components).edges  # counts of column 0, then of both: the gap is 0 or 1, with 0.1 and 0.9
    array([1.1, 0.9, 1. , 0.1, 0. , 0.9])
    >>> engine.pair_sums(components, np.array([[0, 1]])).pairs[:, 0]
    array([1. , 0.1, 0. , 0.9])
    """

    def __init__(
        self,
        codes: CodeArray,
        n_bins: Sequence[int],
        weights: FloatArray | None = None,
        emissions: Emissions | None = None,
    ) -> None:
        self._codes = codes
        if emissions is not None:
            emissions.check(n_bins)
        self._n_bins = tuple(n_bins) if emissions is None else emissions.n_states
        self._evidence = [
            _excluded(bins) if emissions is None else emissions.logs(n) for n, bins in enumerate(self._n_bins)
        ]
        self._weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)

    def edge_sums(self, components: TreeComponents) -> EdgeSums:
        """Return the expected counts of all edges; see `TreeEngine`."""
        forest, F = components.forest, len(components.log_weights)
        forest.check(self._n_bins)
        sums = EdgeSums(np.zeros(F), np.zeros(forest.n_entries), 0.0)
        for trees, posteriors, likelihood in self._batches(components):
            edges = np.zeros(forest.n_entries)
            for r, tree in enumerate(trees):
                for n, above, below in tree.edges():
                    forest.table(edges, r, n)[:] = np.einsum("i,ip,ips->ps", posteriors[:, r], above, below)
            sums += EdgeSums(posteriors.sum(axis=0), edges, likelihood)
        return sums

    def pair_sums(self, components: TreeComponents, pairs: IntArray) -> PairSums:
        """Return the expected counts of pairs of columns; see `TreeEngine`."""
        components.forest.check(self._n_bins)
        F, pairs = len(components.log_weights), check_pairs(pairs, len(self._n_bins))
        starts, bins = pair_starts(self._n_bins, pairs), bin_starts(self._n_bins)
        sums = PairSums(np.zeros(F), np.zeros((starts[-1], F)), np.zeros((bins[-1], F)), 0.0)
        for trees, posteriors, likelihood in self._batches(components):
            counts, nodes = np.zeros_like(sums.pairs), np.zeros_like(sums.nodes)
            for r, tree in enumerate(trees):
                joint = tree.joint()
                for n in range(len(self._n_bins)):
                    nodes[bins[n] : bins[n + 1], r] = posteriors[:, r] @ tree.beliefs[n]
                for p, (i, j) in enumerate(pairs):
                    both = np.einsum("i,ist->st", posteriors[:, r], joint[i, j])
                    counts[starts[p] : starts[p + 1], r] = both.ravel()
            sums += PairSums(posteriors.sum(axis=0), counts, nodes, likelihood)
        return sums

    def _batches(self, components: TreeComponents) -> Iterator[tuple[list[_Tree], FloatArray, float]]:
        """Yield, for some rows at a time, what each tree knows of them, their posteriors (n, F), log-likelihood."""
        logs = components.logs
        size = max(1, BATCH_BYTES // (8 * sum(self._n_bins) ** 2))
        for start in range(0, len(self._codes), size):
            codes, weights = self._codes[start : start + size], self._weights[start : start + size]
            evidence = [own[codes[:, n]] for n, own in enumerate(self._evidence)]
            trees = [_Tree(components.forest, logs, r, evidence) for r in range(len(components.log_weights))]
            shares = components.log_weights + np.stack([tree.log_density for tree in trees], axis=1)
            log_density = logsumexp(shares, axis=1, keepdims=True)
            yield trees, weights[:, None] * np.exp(shares - log_density), float(weights @ log_density[:, 0])


class _Tree:
    """One component, and what it knows of some rows.

    Attributes
    ----------
    log_density : array of shape (n,)
        Of the observed cells.
    conditionals : list of arrays, each of shape (n, S_parent or 1, S_n)
        Probability of a state given the parent's and the observed cells.
    beliefs : list of arrays, each of shape (n, S_n)
        Probability of a state given the observed cells.
    """

    def __init__(self, forest: Forest, logs: FloatArray, r: int, evidence: Sequence[FloatArray]) -> None:
        self.parents, self.order = forest.parents[r], forest.order[r]
        self.log_density = np.zeros(len(evidence[0]))
        inside = [own.copy() for own in evidence]  # u_n
        self.conditionals: list[FloatArray] = [np.empty(0)] * len(evidence)
        for n in self.order[::-1]:
            terms = forest.table(logs, r, n) + inside[n][:, None, :]
            message = logsumexp(terms, axis=2)
            self.conditionals[n] = np.exp(terms - message[:, :, None])
            if self.parents[n] < 0:
                self.log_density += message[:, 0]
            else:
                inside[self.parents[n]] += message
        self.beliefs: list[FloatArray] = [np.empty(0)] * len(evidence)
        for n in self.order:
            self.beliefs[n] = np.einsum("ip,ips->is", self._above(n), self.conditionals[n])

    def _above(self, n: int) -> FloatArray:
        """Return the beliefs of the parent, or one for a root."""
        return self.beliefs[self.parents[n]] if self.parents[n] >= 0 else np.ones((len(self.log_density), 1))

    def edges(self) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Yield each column with its parent's beliefs (n, S_parent) and its conditionals (n, S_parent, S_n)."""
        for n in self.order:
            yield n, self._above(n), self.conditionals[n]

    def joint(self) -> dict[tuple[int, int], FloatArray]:
        """Return the joint probabilities of all pairs of columns given the observed cells, each (n, S_i, S_j).

        The path from an earlier column to a later one passes through the parent of the later one.
        """
        joint: dict[tuple[int, int], FloatArray] = {}
        for place, n in enumerate(self.order):
            for a in self.order[:place]:
                if self.parents[n] < 0:
                    both = self.beliefs[a][:, :, None] * self.beliefs[n][:, None, :]
                elif a == self.parents[n]:
                    both = self.beliefs[a][:, :, None] * self.conditionals[n]
                else:
                    both = joint[a, self.parents[n]] @ self.conditionals[n]
                joint[a, n], joint[n, a] = both, np.swapaxes(both, 1, 2)
        return joint


def _excluded(n_bins: int) -> FloatArray:
    """Return zero for the state of each code and all of a missing cell, else -inf; shape (n_bins + 1, n_bins)."""
    possible = np.vstack([np.eye(n_bins), np.ones((1, n_bins))]) > 0
    return np.where(possible, 0.0, -np.inf)
