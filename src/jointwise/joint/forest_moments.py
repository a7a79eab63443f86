"""Covariances of functions of the states of a tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._typing import FloatArray
from jointwise.joint.forest_tree import HIDDEN, ROOT, Tree


def products(tree: Tree, values: Sequence[FloatArray]) -> FloatArray:
    r"""E[c_j(s_j) c_k(s_k)] of each two variables; shape (N, N).

    Each node learns :math:`E[c_j \mid s]` of all variables j at once: first of those below it, then of all others from
    its parent. So the work grows with the square of the number of variables.

    Parameters
    ----------
    tree : Tree
    values : sequence of N arrays of shape (S_n,)
        c_n of each state.

    Examples
    --------
    >>> tree = Tree([0, 1], [-1, 0], ([[0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]]))
    >>> products(tree, [np.array([-1.0, 1.0]), np.array([0.0, 1.0])])
    array([[1.  , 0.35],
           [0.35, 0.45]])
    """
    n_variables = len(values)
    below = [np.zeros((size, n_variables)) for size in tree.states]
    for node in tree.upwards:
        variable, parent = int(tree.variables[node]), int(tree.parents[node])
        if variable != HIDDEN:
            below[node][:, variable] += values[variable]
        if parent != ROOT:
            below[parent] += tree.tables[node] @ below[node]
    means = np.array([tree.marginals[node] @ c for node, c in zip(tree.nodes, values, strict=True)])
    out, known = np.empty((n_variables, n_variables)), list(below)
    for node in range(tree.n_nodes):
        variable, parent = int(tree.variables[node]), int(tree.parents[node])
        if parent == ROOT:  # variables below other roots are independent of this one
            known[node] = below[node] + np.where(tree.root_of == node, 0.0, means)
        else:
            known[node] = below[node] + tree.backwards(node) @ (known[parent] - tree.tables[node] @ below[node])
        if variable != HIDDEN:
            out[variable] = (tree.marginals[node] * values[variable]) @ known[node]
    return out
