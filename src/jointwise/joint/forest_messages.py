r"""Messages on a tree: what rows say about the states of its nodes, gathered along the edges.

A node that has heard from all its children sends to its parent, for each of the parent's states, the likelihood of all
that lies below:

.. math:: m(s_{parent}) = \sum_s p(s \mid s_{parent}) \, e(s) \prod_{children\ c} m_c(s)

where e(s) is the likelihood of the node's own cell. A cell that only one state can emit is *settled*: its node needs no
vector of likelihoods, and an edge between two settled cells is one entry of its table. So complete rows of states that
do not overlap cost a lookup for each edge. A hidden node is settled too if a child tells its state. All is done in log
space, for all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from jointwise._numerics import log_dot
from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.joint.forest_tree import HIDDEN, ROOT, Tree


@dataclass(frozen=True, eq=False)
class Evidence:
    """What n rows say about the states of one node.

    Parameters
    ----------
    settled : array of shape (n,)
        Which rows leave one state, or none.
    states : array of shape (n,)
        That state, where settled.
    log_likelihood : array of shape (n,)
        Log-likelihood of the settled cells given that state, -inf for a cell that no state can emit; zero for others.
    heard : array of shape (k,)
        Rows whose cell says something but leaves several states.
    said : array of shape (k, S)
        Log-likelihoods of the states in those rows.
    """

    settled: BoolArray
    states: IntArray
    log_likelihood: FloatArray
    heard: IntArray
    said: FloatArray

    @classmethod
    def of(cls, log_likelihood: Callable[[FloatArray], FloatArray], x: FloatArray) -> Evidence:
        """Evidence of cells ``x`` of shape (n,), NaN for gaps; each value is evaluated once.

        Parameters
        ----------
        log_likelihood : callable
            Maps values (U,) to log-likelihoods (U, S).
        x : array of shape (n,)
        """
        values, where = np.unique(x, return_inverse=True)  # sorts NaN last
        logs, seen = log_likelihood(values), ~np.isnan(values)
        possible = logs > -np.inf
        state, settled = possible.argmax(axis=1), seen & (possible.sum(axis=1) <= 1)
        here = np.where(settled, logs[np.arange(len(logs)), state], 0.0)
        heard = np.flatnonzero((seen & ~settled)[where])
        return cls(settled[where], state[where], here[where], heard, logs[where[heard]])

    @classmethod
    def none(cls, n: int) -> Evidence:
        """Evidence of a hidden node in n rows."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64), np.zeros(n), nothing, np.empty((0, 1)))

    @classmethod
    def told(cls, child: Evidence, origin: IntArray) -> Evidence:
        """Evidence of a hidden node, from a child each of whose states has one state of the parent as its origin."""
        return replace(cls.none(len(child.states)), settled=child.settled, states=origin[child.states])

    @cached_property
    def all_settled(self) -> bool:
        """Whether all rows settle the state."""
        return bool(self.settled.all())

    @cached_property
    def open(self) -> BoolArray:
        """Rows that do not settle the state; shape (n,)."""
        return np.asarray(~self.settled)

    def take(self, rows: IntArray) -> Evidence:
        """Evidence of some rows, increasing."""
        here = np.isin(self.heard, rows)
        return Evidence(
            self.settled[rows],
            self.states[rows],
            self.log_likelihood[rows],
            np.searchsorted(rows, self.heard[here]),
            self.said[here],
        )


class Messages:
    """Messages of n rows on one tree.

    Parameters
    ----------
    tree : Tree
    evidence : sequence of N Evidence
        One for each variable, of the same rows.
    n : int
        Number of rows.

    Attributes
    ----------
    total : array of shape (n,)
        Log-likelihood gathered so far, but for that of settled cells given their state.
    beliefs : list of arrays of shape (n, S) or None
        What each node has heard, in rows that do not settle its state; zero where nothing, None if so in all rows.
    """

    def __init__(self, tree: Tree, evidence: Sequence[Evidence], n: int) -> None:
        hidden = Evidence.none(n)
        self.tree, self.total = tree, np.zeros(n)
        self.evidence = [hidden if v == HIDDEN else evidence[v] for v in tree.variables.tolist()]
        for node, (child, origin) in tree.tellers.items():
            self.evidence[node] = Evidence.told(self.evidence[child], origin)
        self.beliefs: list[FloatArray | None] = [None] * tree.n_nodes
        self._live: list[BoolArray | None] = [None] * tree.n_nodes  # rows with a belief

    def gather(self, *, keep: bool = False) -> FloatArray:
        """Log-likelihood of each row, but for that of settled cells given their state; shape (n,).

        With ``keep``, beliefs are kept for `posteriors` and for draws of states.
        """
        for node in self.tree.upwards:
            self._upwards(node)
            if not keep:
                self.beliefs[node] = self._live[node] = None
        return self.total

    def gather_at(self, target: int) -> FloatArray:
        """Log-likelihood of each row jointly with each state of an open node; shape (n, S_target)."""
        path = self.tree.path(target)
        waiting = set(path)
        for node in self.tree.upwards:
            if node not in waiting:
                self._upwards(node)
                self.beliefs[node] = self._live[node] = None
        self._listen(path[0])
        self._start(path[0])
        for above, node in pairwise(path):
            self._listen(node)
            self._send(above, node, self.tree.tables[node], self.tree.logs[node])
            self.beliefs[above] = self._live[above] = None
        belief = self.beliefs[target]
        if belief is None:  # there are no rows: the root says its own law in each
            return np.empty((0, self.tree.states[target]))
        return np.asarray(belief + self.total[:, None])

    def posteriors(self) -> list[FloatArray | None]:
        r"""Log-probability of the states of each node given each row's cells; shapes (n, S), None for a settled node.

        It takes what `gather` kept. From the root down, with b the belief of a node and m its message to the parent,

        .. math:: P(s \mid cells) = b(s) \sum_t P(t \mid cells) \, p(s \mid t) / m(t)

        Only rows that leave the state open are filled in. In an impossible row they may be -inf.
        """
        tree, found = self.tree, list[FloatArray | None]()
        for node, parent in enumerate(tree.parents.tolist()):
            rows = np.flatnonzero(self.evidence[node].open)
            if not rows.size:
                found.append(None)
                continue
            logs = self._given_parent(node, rows, None if parent == ROOT else found[parent])
            total = log_sum(logs)
            out = np.zeros((len(self.total), tree.states[node]))
            out[rows] = logs - np.where(np.isneginf(total), 0.0, total)[:, None]
            found.append(out)
        return found

    def _given_parent(self, node: int, rows: IntArray, posterior: FloatArray | None) -> FloatArray:
        """Log-probability of a node's states in some rows, up to a constant in each, from that of its parent's."""
        parent, table, logs = int(self.tree.parents[node]), self.tree.tables[node], self.tree.logs[node]
        belief = self.beliefs[node]
        own = np.zeros((len(rows), table.shape[1])) if belief is None else belief[rows]
        if parent == ROOT:
            return np.asarray(logs[0] + own)
        above = self.evidence[parent]
        out = own + logs[above.states[rows]]
        if posterior is not None:
            free = above.open[rows]
            sent = np.zeros((free.sum(), len(table))) if belief is None else log_dot(own[free], table.T)
            before = posterior[rows[free]]
            possible = (before > -np.inf) & (sent > -np.inf)
            share = np.where(possible, before - np.where(possible, sent, 0.0), -np.inf)
            out[free] = own[free] + log_dot(share, table)
        return np.asarray(out)

    def _upwards(self, node: int) -> None:
        self._listen(node)
        parent = int(self.tree.parents[node])
        if parent != ROOT:
            self._send(node, parent, self.tree.tables[node].T, self.tree.logs[node].T)
            return
        own, live, belief = self.evidence[node], self._live[node], self.beliefs[node]
        prior = self.tree.logs[node][0]
        self.total += np.where(own.settled, prior[own.states], 0.0)
        if live is not None and belief is not None:
            rows = np.flatnonzero(live)
            self.total[rows] += log_sum(belief[rows] + prior)

    def _listen(self, node: int) -> None:
        """Add what a node's own cells say, where they leave several states."""
        own = self.evidence[node]
        if own.heard.size:
            self._tell(node, own.heard, own.said)

    def _start(self, root: int) -> None:
        """Add the law of a root's states."""
        own, prior = self.evidence[root], self.tree.logs[root][0]
        self.total += np.where(own.settled, prior[own.states], 0.0)
        rows = np.flatnonzero(own.open)
        self._tell(root, rows, np.broadcast_to(prior, (len(rows), len(prior))))

    def _tell(self, node: int, rows: IntArray, logs: FloatArray) -> None:
        """Add log-likelihoods of a node's states in some rows; shape (rows, S)."""
        belief, live = self.beliefs[node], self._live[node]
        if belief is None or live is None:
            belief = self.beliefs[node] = np.zeros((len(self.total), self.tree.states[node]))
            live = self._live[node] = np.zeros(len(self.total), dtype=bool)
        belief[rows] += logs
        live[rows] = True

    def _send(self, source: int, target: int, table: FloatArray, logs: FloatArray) -> None:
        """Send what a node knows along an edge with the law ``table`` of shape (S_source, S_target)."""
        here, there = self.evidence[source], self.evidence[target]
        if here.all_settled and there.all_settled:
            self.total += logs[here.states, there.states]
            return
        both = np.flatnonzero(here.settled & there.settled)
        self.total[both] += logs[here.states[both], there.states[both]]
        rows = np.flatnonzero(here.settled & there.open)
        if rows.size:
            self._tell(target, rows, logs[here.states[rows]])
        belief, live = self.beliefs[source], self._live[source]
        if belief is None or live is None:
            return  # nothing below says anything, and laws sum to one
        rows = np.flatnonzero(live & there.settled)
        if rows.size:
            self.total[rows] += log_sum(belief[rows] + logs.T[there.states[rows]])
        rows = np.flatnonzero(live & there.open)
        if rows.size:
            self._tell(target, rows, log_dot(belief[rows], table))


def log_sum(logs: FloatArray) -> FloatArray:
    """Logarithm of the sum of each row of exponentials, -inf for an empty sum; shape (n,)."""
    return log_dot(logs, np.ones((logs.shape[1], 1)))[:, 0]


def settled_log_likelihood(evidence: Sequence[Evidence]) -> FloatArray:
    """Log-likelihood of the cells that settle their states, given them; the same in all trees; shape (n,)."""
    return np.asarray(np.sum([each.log_likelihood for each in evidence], axis=0))
