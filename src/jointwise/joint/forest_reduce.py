"""Trees made smaller: nodes without a variable are dropped or contracted wherever the others do not need them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._typing import FloatArray
from jointwise.joint.forest_tree import HIDDEN, ROOT, Tree, given_rows

# A contracted table may have this many entries, or as many as the two tables it replaces.
MOST_CONTRACTED = 1 << 16


def reduced(variables: Sequence[int], parents: Sequence[int], tables: Sequence[FloatArray]) -> Tree:
    """Tree with the same law of its variables, and no hidden node that can be spared.

    A hidden leaf is dropped. A hidden node with one child, and a hidden root with two, is contracted into an edge. A
    node with one state depends on nothing, so its edges are cut.

    Parameters
    ----------
    variables, parents : sequences of length M
        As in :class:`Tree`; at least one node has a variable.
    tables : sequence of M arrays
        Their rows may sum to zero where the parent's state is impossible.

    Examples
    --------
    >>> noisy = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> chain = reduced([0, -1, 1], [-1, 0, 1], [np.array([[0.5, 0.5]]), noisy, noisy])
    >>> chain.parents.tolist(), chain.tables[1].round(2).tolist()
    ([-1, 0], [[0.82, 0.18], [0.18, 0.82]])
    """
    draft = _Draft(variables, parents, [given_rows(table) for table in tables])
    for node in reversed(range(len(parents))):
        draft.settle(node)
    for node in draft.roots():
        draft.settle_root(node)
    return draft.tree()


class _Draft:
    """A tree whose nodes can be taken out."""

    def __init__(self, variables: Sequence[int], parents: Sequence[int], tables: list[FloatArray]) -> None:
        self._variables, self._parents, self._tables = list(variables), list(parents), tables
        self._children: list[list[int]] = [[] for _ in tables]
        self._left = [True] * len(tables)
        for node, parent in enumerate(self._parents):
            if parent != ROOT:
                self._children[parent].append(node)

    def roots(self) -> list[int]:
        return [node for node, left in enumerate(self._left) if left and self._parents[node] == ROOT]

    def settle(self, node: int) -> None:
        """Cut, drop or contract a node all of whose descendants are settled."""
        if self._tables[node].shape[1] == 1:
            for child in self._children[node]:
                self._parents[child] = ROOT
            self._children[node] = []
            self._cut(node)
        if self._variables[node] != HIDDEN:
            return
        children = self._children[node]
        if not children:
            self._cut(node)
            self._left[node] = False
        elif len(children) == 1 and self._is_small(self._tables[node], self._tables[children[0]]):
            child, parent = children[0], self._parents[node]
            self._tables[child] = self._tables[node] @ self._tables[child]
            self._parents[child] = parent
            if parent != ROOT:
                self._children[parent][self._children[parent].index(node)] = child
            self._left[node] = False

    def settle_root(self, node: int) -> None:
        """Contract a hidden root with two children: one of them becomes the root, and the parent of the other."""
        children = self._children[node]
        if self._variables[node] != HIDDEN or len(children) != 2:
            return
        first, second = children
        joint = self._tables[node].T * self._tables[first]  # of this node and its first child
        if self._is_small(joint.T, self._tables[second]):
            self._tables[first] = joint.sum(axis=0, keepdims=True)
            self._tables[second] = given_rows(joint.T) @ self._tables[second]
            self._parents[first], self._parents[second] = ROOT, first
            self._children[first].append(second)
            self._left[node] = False

    def _cut(self, node: int) -> None:
        """Take a node away from its parent; its table becomes that of a root with one state, or is not needed."""
        parent = self._parents[node]
        if parent != ROOT:
            self._children[parent].remove(node)
            self._parents[node], self._tables[node] = ROOT, self._tables[node][:1]

    @staticmethod
    def _is_small(first: FloatArray, second: FloatArray) -> bool:
        """Whether the product of two tables is not much larger than they are."""
        return bool(len(first) * second.shape[1] <= max(first.size + second.size, MOST_CONTRACTED))

    def tree(self) -> Tree:
        """Return what is left, parents first."""
        order = self.roots()
        for node in order:  # grows as it is walked
            order.extend(self._children[node])
        place = {node: k for k, node in enumerate(order)}
        parents = [ROOT if self._parents[node] == ROOT else place[self._parents[node]] for node in order]
        return Tree(
            np.array([self._variables[node] for node in order]),
            np.array(parents),
            tuple(given_rows(self._tables[node]) for node in order),
        )


def marginal(tree: Tree, keep: Sequence[int]) -> Tree:
    """Tree of some variables, in the order of ``keep``."""
    place = {variable: k for k, variable in enumerate(keep)}
    return reduced([place.get(v, HIDDEN) for v in tree.variables.tolist()], tree.parents.tolist(), tree.tables)
