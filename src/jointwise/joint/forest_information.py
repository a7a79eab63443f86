"""Which columns depend on each other in a mixture of trees: the mutual information of all pairs, and its best tree."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import InputError
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_tree import ROOT, Tree

# States of all columns together whose joint probabilities are held at once (134 MB).
MOST_STATES = 4096


def pair_information(f: ForestMixture) -> FloatArray:
    r"""Mutual information of the states of each two variables, in nats; shape (N, N), zero on the diagonal.

    .. math:: I(a; b) = \sum_{s, t} P(s, t) \log \frac{P(s, t)}{P(s) P(t)}

    It is that of the variables if the atoms of their states do not overlap; otherwise it is at least as large.

    Parameters
    ----------
    f : ForestMixture
        With at most 4,096 states in all; ``marginal`` selects some variables.

    Examples
    --------
    >>> from jointwise.dictionary import Dictionary
    >>> tree = Tree([0, 1], [-1, 0], ([[0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]))
    >>> pair_information(ForestMixture([1.0], [Dictionary.categories(2)] * 2, [tree])).round(3)
    array([[0.   , 0.693],
           [0.693, 0.   ]])
    """
    sizes = np.array([d.n_atoms for d in f.dictionaries])
    if sizes.sum() > MOST_STATES:
        raise InputError(f"At most {MOST_STATES:,} states of all variables can be compared, got {sizes.sum():,}.")
    joint = np.zeros((sizes.sum(), sizes.sum()))
    for weight, tree in zip(f.weights.tolist(), f.trees, strict=True):
        joint += weight * state_pairs(tree)
    alone = np.concatenate([f.margin(n).weights for n in range(f.n_variables)])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    terms = rel_entr(joint, np.outer(alone, alone))
    sums = np.add.reduceat(np.add.reduceat(terms, starts, axis=0), starts, axis=1)
    out = np.asarray(np.maximum((sums + sums.T) / 2, 0.0))  # but for rounding, it is symmetric and not negative
    np.fill_diagonal(out, 0.0)
    return out


def state_pairs(tree: Tree) -> FloatArray:
    """Joint probabilities of the states of each two variables; shape (S, S), S the states of all variables.

    Each node in turn gets its joint law with all nodes before it from that of its parent.
    """
    ends = np.cumsum(tree.states)
    starts = ends - tree.states
    joint = np.zeros((ends[-1], ends[-1]))
    alone = np.concatenate(tree.marginals)
    for node, parent in enumerate(tree.parents.tolist()):
        here, before = slice(starts[node], ends[node]), slice(0, starts[node])
        if parent == ROOT:
            joint[before, here] = np.outer(alone[before], alone[here])
        else:
            joint[before, here] = joint[before, starts[parent] : ends[parent]] @ tree.tables[node]
        joint[here, before] = joint[before, here].T
        joint[here, here] = np.diag(alone[here])
    order = np.concatenate([np.arange(starts[node], ends[node]) for node in tree.nodes])
    return np.asarray(joint[np.ix_(order, order)])


def strongest_tree(information: FloatArray) -> IntArray:
    """Edges of the tree over all variables with the largest total information (Chow and Liu, 1968); shape (N - 1, 2).

    A mixture of one tree has that tree, unless two pairs have equal information.

    >>> strongest_tree(np.array([[0.0, 0.5, 0.2], [0.5, 0.0, 0.3], [0.2, 0.3, 0.0]])).tolist()
    [[0, 1], [1, 2]]
    """
    n = len(information)
    nearest, best = np.zeros(n, dtype=np.int64), information[0].copy()
    outside = np.arange(n) > 0
    edges = []
    while outside.any():  # Prim's algorithm
        new = int(np.argmax(np.where(outside, best, -np.inf)))
        edges.append((int(nearest[new]), new))
        outside[new] = False
        closer = outside & (information[new] > best)
        nearest[closer], best[closer] = new, information[new][closer]
    return np.array(edges, dtype=np.int64).reshape(-1, 2)
