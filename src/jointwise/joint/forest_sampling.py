"""Draws of the states of a tree, free or given what rows hold."""

from __future__ import annotations

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.joint.forest_messages import Messages
from jointwise.joint.forest_tree import ROOT, Tree
from jointwise.joint.product import draw_positions


def draw_states(tree: Tree, n: int, rng: np.random.Generator) -> list[IntArray]:
    """States of each node in ``n`` independent draws; arrays of shape (n,)."""
    states: list[IntArray] = []
    for parent, table in zip(tree.parents.tolist(), tree.tables, strict=True):
        before = np.zeros(n, dtype=np.int64) if parent == ROOT else states[parent]
        states.append(_draw_rows(table, before, rng))
    return states


def draw_states_given(messages: Messages, rng: np.random.Generator) -> list[IntArray]:
    r"""States of each node in each row, drawn together given the row's cells; arrays of shape (n,).

    From the root down, P(s | s_parent, cells) is proportional to p(s | s_parent) times the belief of the node.

    Parameters
    ----------
    messages : Messages
        Gathered with ``keep=True``, of rows with a positive density.
    rng : numpy.random.Generator
    """
    tree, n = messages.tree, len(messages.total)
    states: list[IntArray] = []
    for node, parent in enumerate(tree.parents.tolist()):
        before = np.zeros(n, dtype=np.int64) if parent == ROOT else states[parent]
        own, belief = messages.evidence[node], messages.beliefs[node]
        drawn = own.states.copy()
        rows = np.flatnonzero(own.open)
        if belief is None:
            drawn[rows] = _draw_rows(tree.tables[node], before[rows], rng)
        elif rows.size:
            logs = tree.logs[node][before[rows]] + belief[rows]
            drawn[rows] = draw_positions(np.exp(logs - logs.max(axis=1, keepdims=True)), rng)
        states.append(drawn)
    return states


def _draw_rows(table: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """One column for each of ``rows``, drawn with the probabilities of that row of ``table``; shape (len(rows),)."""
    uniform = rng.random(len(rows))
    order = np.argsort(rows, kind="stable")
    found, starts = np.unique(rows[order], return_index=True)
    out = np.empty(len(rows), dtype=np.int64)
    for row, where in zip(found, np.split(order, starts[1:]), strict=False):  # without rows, there is one empty part
        ladder = np.cumsum(table[row])
        out[where] = np.searchsorted(ladder / ladder[-1], uniform[where], side="right")
    return out
