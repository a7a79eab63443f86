"""Tables of a tree: sums over all states of products of one factor for each of some variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from jointwise._typing import FloatArray
from jointwise.joint.crosstab import combined, crosstab
from jointwise.joint.forest_tree import ROOT, Tree


def table(tree: Tree, factors: Mapping[int, FloatArray]) -> FloatArray:
    r"""Sum over states of the factors, with one dimension for each of the variables.

    .. math:: t[i, j, \dots] = \sum_s p(s) M_a[i, s_a] M_b[j, s_b] \cdots

    Parameters
    ----------
    tree : Tree
    factors : mapping of variables to arrays of shape (K, S)
        M_n, such as the mass of each region of a variable under each of its states.

    Examples
    --------
    >>> tree = Tree([0, 1], [-1, 0], ([[0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]]))
    >>> table(tree, {1: np.eye(2), 0: np.eye(2)})
    array([[0.45, 0.1 ],
           [0.05, 0.4 ]])
    """
    parts: dict[int, list[tuple[list[int], FloatArray]]] = {}  # what nodes have heard that have not yet spoken
    for variable, factor in factors.items():
        parts.setdefault(tree.nodes[variable], []).append(([variable], factor))
    done = []
    while parts:
        node = max(parts)  # parents come before their children
        own = parts.pop(node)
        axes, heard = [axis for each, _ in own for axis in each], [each for _, each in own]
        parent = int(tree.parents[node])
        if parent == ROOT or not parts:  # what is left are sums over the states above, which have been taken
            done.append((axes, crosstab(heard, tree.marginals[node]).ravel()))
        else:
            parts.setdefault(parent, []).append((axes, combined(heard) @ tree.tables[node].T))
    axes = [axis for own, _ in done for axis in own]
    out = reduce(np.multiply.outer, (each for _, each in done)).reshape([len(factors[axis]) for axis in axes])
    return np.asarray(out.transpose([axes.index(axis) for axis in factors]))


def mixed_table(trees: Sequence[Tree], weights: FloatArray, factors: Mapping[int, FloatArray]) -> FloatArray:
    """Weighted sum of the tables of several trees; shape as `table`."""
    return np.asarray(sum(w * table(tree, factors) for tree, w in zip(trees, weights.tolist(), strict=True) if w > 0))


def pair_table(tree: Tree, a: int, b: int) -> FloatArray:
    """Joint probability of the states of two variables; shape (S_a, S_b).

    >>> chain = Tree([0, 1], [-1, 0], ([[0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]]))
    >>> pair_table(chain, 1, 0)
    array([[0.45, 0.1 ],
           [0.05, 0.4 ]])
    """
    paths = [tree.path(tree.nodes[variable]) for variable in (a, b)]
    shared = [x for x, y in zip(*paths, strict=False) if x == y]
    if not shared:
        return np.outer(*(tree.marginals[path[-1]] for path in paths))
    out = tree.marginals[shared[-1]]
    below = [_descended(tree, path[len(shared) :]) for path in paths]
    if below[0] is None:  # the first is the last node that both paths share
        return np.diag(out) if below[1] is None else np.asarray(out[:, None] * below[1])
    left = below[0] * out[:, None]
    return np.asarray(left.T if below[1] is None else left.T @ below[1])


def _descended(tree: Tree, path: Sequence[int]) -> FloatArray | None:
    """Law of the last node of a path given the node above its first; None if the path is empty."""
    return reduce(np.matmul, [tree.tables[node] for node in path]) if path else None
