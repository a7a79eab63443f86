"""One component of a forest mixture: a tree of states, with the law of each node given its parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jointwise._checks import reading, shown
from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import FileFormatError, InputError
from jointwise.joint.simplex import log, simplex

# Variable of a hidden node, and parent of a root.
HIDDEN = ROOT = -1


@dataclass(frozen=True, eq=False)
class Tree:
    r"""Nodes with states, each state drawn given that of the parent node.

    .. math:: p(s) = \prod_m p_m(s_m \mid s_{parent(m)})

    Several roots are allowed: the trees below them are independent. A node either emits the value of a variable, or is
    hidden and emits nothing.

    Parameters
    ----------
    variables : array of shape (M,)
        Variable of each node, -1 for a hidden one. Each of the variables 0, ..., N - 1 stands once.
    parents : array of shape (M,)
        Position of the parent of each node, smaller than its own; -1 for a root.
    tables : sequence of M arrays of shape (S_parent, S_node)
        p(s_node | s_parent), the rows on the simplex; that of a root has one row.

    Examples
    --------
    >>> tree = Tree([0, 1], [-1, 0], ([[0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]]))
    >>> tree.marginals[1].round(3)
    array([0.55, 0.45])
    """

    variables: IntArray
    parents: IntArray
    tables: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        variables, parents = (_integers(getattr(self, name), name) for name in ("variables", "parents"))
        if not len(variables) or len(parents) != len(variables) or len(self.tables) != len(variables):
            raise InputError(
                f"A tree needs a variable, a parent and a table for each of one or more nodes, got {len(variables)}, "
                f"{len(parents)} and {len(self.tables)}."
            )
        seen = np.sort(variables[variables != HIDDEN])
        if not np.array_equal(seen, np.arange(len(seen))):
            raise InputError("The variables of a tree must be 0, 1, ... once each, and -1 for hidden nodes.")
        if not ((parents >= ROOT) & (parents < np.arange(len(parents)))).all():
            raise InputError("The parent of each node must come before it, or be -1 for a root.")
        object.__setattr__(self, "variables", variables)
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "tables", _laws(self.tables, parents))

    @property
    def n_nodes(self) -> int:
        """Number of nodes M."""
        return len(self.parents)

    @cached_property
    def n_variables(self) -> int:
        """Number of variables N."""
        return int(np.count_nonzero(self.variables != HIDDEN))

    @cached_property
    def states(self) -> tuple[int, ...]:
        """Number of states of each node."""
        return tuple(table.shape[1] for table in self.tables)

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """Node of each variable."""
        found = np.empty(self.n_variables, dtype=np.int64)
        shown_nodes = np.flatnonzero(self.variables != HIDDEN)
        found[self.variables[shown_nodes]] = shown_nodes
        return tuple(found.tolist())

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Children of each node."""
        found: list[list[int]] = [[] for _ in range(self.n_nodes)]
        for node, parent in enumerate(self.parents.tolist()):
            if parent != ROOT:
                found[parent].append(node)
        return tuple(map(tuple, found))

    @cached_property
    def upwards(self) -> tuple[int, ...]:
        """All nodes, children before their parent, and each subtree without a break."""
        out: list[int] = []
        stack = np.flatnonzero(self.parents == ROOT).tolist()
        while stack:
            node = stack.pop()
            out.append(node)
            stack.extend(self.children[node])
        return tuple(out[::-1])

    @cached_property
    def tellers(self) -> dict[int, tuple[int, IntArray]]:
        """For hidden nodes, children first: a child whose state tells its parent's, and that for each of its states."""
        found: dict[int, tuple[int, IntArray]] = {}
        for node in self.upwards:
            for child in self.children[node] if self.variables[node] == HIDDEN else ():
                possible = self.tables[child] > 0
                told = self.variables[child] != HIDDEN or child in found
                if told and (possible.sum(axis=0) <= 1).all():
                    found[node] = child, possible.argmax(axis=0)
                    break
        return found

    @cached_property
    def logs(self) -> tuple[FloatArray, ...]:
        """Logarithms of the tables."""
        return tuple(log(table) for table in self.tables)

    @cached_property
    def marginals(self) -> tuple[FloatArray, ...]:
        """Probabilities of the states of each node; shapes (S_node,)."""
        found: list[FloatArray] = []
        for parent, table in zip(self.parents.tolist(), self.tables, strict=True):
            found.append(table[0] if parent == ROOT else found[parent] @ table)
        return tuple(found)

    @cached_property
    def root_of(self) -> IntArray:
        """Root above each variable; shape (N,)."""
        found: list[int] = []
        for node, parent in enumerate(self.parents.tolist()):
            found.append(node if parent == ROOT else found[parent])
        return np.array(found)[list(self.nodes)]

    def path(self, node: int) -> list[int]:
        """Nodes from a root down to ``node``."""
        found = [node]
        while self.parents[found[-1]] != ROOT:
            found.append(int(self.parents[found[-1]]))
        return found[::-1]

    def backwards(self, node: int) -> FloatArray:
        """P(s_parent | s_node), any law where s_node is impossible; shape (S_node, S_parent)."""
        before = self.marginals[self.parents[node]]
        return given_rows(before[:, None] * self.tables[node], axis=0).T

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and one array, which a file can hold."""
        return {
            "variables": self.variables.tolist(),
            "parents": self.parents.tolist(),
            "states": list(self.states),
            "tables": np.concatenate([table.ravel() for table in self.tables]),
        }

    @classmethod
    @reading("a tree as written by `to_dict`")
    def from_dict(cls, data: Mapping[str, Any]) -> Tree:
        """Read what `to_dict` returned, with every part checked."""
        parts = {"variables", "parents", "states", "tables"}
        if not isinstance(data, Mapping) or set(data) != parts:
            raise FileFormatError(f"a tree must have the parts {', '.join(sorted(parts))}")
        variables, parents, states = (_integers(data[name], name) for name in ("variables", "parents", "states"))
        flat = np.asarray(data["tables"], dtype=np.float64)
        if len({len(variables), len(parents), len(states)}) != 1 or not (states > 0).all():
            raise FileFormatError("a tree must have a variable, a parent and a positive number of states for each node")
        if not ((parents >= ROOT) & (parents < np.arange(len(parents)))).all():
            raise FileFormatError("the parent of each node of a tree must come before it, or be -1")
        rows = [1 if parent == ROOT else int(states[parent]) for parent in parents.tolist()]
        sizes = [r * c for r, c in zip(rows, states.tolist(), strict=True)]  # of Python's, which do not overflow
        if flat.shape != (sum(sizes),):
            raise FileFormatError(f"the tables of a tree must be {sum(sizes)} numbers in one row")
        ends = np.cumsum(sizes)
        tables = [flat[end - size : end].reshape(r, -1) for end, size, r in zip(ends, sizes, rows, strict=True)]
        return cls(variables, parents, tuple(tables))


def given_rows(joint: FloatArray, axis: int = 1) -> FloatArray:
    """Return rows (or columns, with axis 0) divided by their sums; one that is zero becomes uniform."""
    total = joint.sum(axis=axis, keepdims=True)
    empty = total <= 0
    return np.asarray(np.where(empty, 1.0 / joint.shape[axis], joint / np.where(empty, 1.0, total)))


def _integers(values: Any, name: str) -> IntArray:
    array = np.asarray(values)
    whole = array.size == 0 or array.dtype.kind == "i"
    if array.ndim != 1 or not whole or (isinstance(values, list) and any(isinstance(v, bool) for v in values)):
        raise InputError(f"{name} must be a list of integers, got {shown(values)}.")
    array = array.astype(np.int64)
    array.flags.writeable = False
    return array


def _laws(tables: Sequence[Any], parents: IntArray) -> tuple[FloatArray, ...]:
    """Checked tables, with as many rows as the parent has states."""
    checked: list[FloatArray] = []
    for node, (table, parent) in enumerate(zip(tables, parents.tolist(), strict=True)):
        law = simplex(table, f"tables[{node}]", 2, axis=1)
        rows = 1 if parent == ROOT else checked[parent].shape[1]
        if len(law) != rows:
            raise InputError(
                f"tables[{node}] must have one row for each of the {rows} states of its parent, got shape {law.shape}."
                if parent != ROOT
                else f"tables[{node}] is of a root and must have one row, got shape {law.shape}."
            )
        checked.append(law)
    return tuple(checked)
