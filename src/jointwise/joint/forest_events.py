"""A tree given an event: regions of some variables become likelihoods of their states, and new laws on the edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from jointwise._numerics import log_dot
from jointwise._typing import FloatArray, IntArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import ImpossibleEventError
from jointwise.families import Category, PointMass
from jointwise.joint.crosstab import value_masses
from jointwise.joint.events import Point, Region, Values
from jointwise.joint.forest_reduce import reduced
from jointwise.joint.forest_tree import HIDDEN, ROOT, Tree
from jointwise.joint.simplex import log


@dataclass(frozen=True, eq=False)
class Restriction:
    """What a region does to a variable, the same in every tree.

    Parameters
    ----------
    logs : array of shape (S,)
        Log-likelihood of the region under each state.
    origin : array of shape (S',)
        The old state of each new one. A state that emits several values of a set becomes several.
    shares : array of shape (S',)
        Probability of each new state given its old one.
    dictionary : Dictionary or None
        The atoms of the variable given the region; None if it is gone.
    emission : array of shape (S', values) or None
        If values do not tell their state: P(value | new state). The node of the states is hidden then, and one for the
        values is added below it.
    """

    logs: FloatArray
    origin: IntArray
    shares: FloatArray
    dictionary: Dictionary | None
    emission: FloatArray | None = None

    @classmethod
    def of(cls, dictionary: Dictionary, region: Region) -> Restriction:
        """Return the effect of a region on a variable with these atoms."""
        if isinstance(region, Point):
            return cls._kept(dictionary.logpdf([region.value])[0], None)
        if isinstance(region, Values):
            return cls._listed(dictionary, region)
        mass = dictionary.closed_mass(region.low, region.high)
        keep = mass > 0
        if not keep.any():
            raise _impossible()
        return cls._kept(log(mass), dictionary.take(keep).truncate(region.low, region.high))

    @classmethod
    def _kept(cls, logs: FloatArray, dictionary: Dictionary | None) -> Restriction:
        origin = np.flatnonzero(logs > -np.inf)
        if not origin.size:
            raise _impossible()
        return cls(logs, origin, np.ones(len(origin)), dictionary)

    @classmethod
    def _listed(cls, dictionary: Dictionary, region: Values) -> Restriction:
        values = np.array(region.values)
        found = value_masses(dictionary, values, region.half)
        masses = found.toarray() if isinstance(found, csr_array) else found
        used = masses.sum(axis=1) > 0
        if not used.any():
            raise _impossible()
        family = Category if isinstance(dictionary.families[0], Category) else PointMass
        new, masses = Dictionary((family(values[used]),)), masses[used]
        total = masses.sum(axis=0)
        if ((masses > 0).sum(axis=1) == 1).all():  # each value tells its state
            origin = masses.argmax(axis=1)
            return cls(log(total), origin, masses[np.arange(len(masses)), origin] / total[origin], new)
        origin = np.flatnonzero(total)
        return cls(log(total), origin, np.ones(len(origin)), new, (masses[:, origin] / total[origin]).T)


def log_likelihoods(tree: Tree, logs: Mapping[int, FloatArray]) -> tuple[float, list[FloatArray]]:
    """Log-likelihood of an event, and the tables given it; a row is zero where its state is impossible.

    Parameters
    ----------
    tree : Tree
    logs : mapping of nodes to arrays of shape (S_node,)
        Log-likelihood of the event's part under each state of the node.
    """
    total, tables = 0.0, list(tree.tables)
    heard = dict(logs)
    for node in tree.upwards:
        if node not in heard:
            continue
        belief, parent = heard[node], int(tree.parents[node])
        message = log_dot(belief[None], tree.tables[node].T)[0]
        with np.errstate(invalid="ignore"):  # -inf - -inf in rows of impossible states
            tables[node] = np.exp(tree.logs[node] + belief - message[:, None])
        tables[node][np.isneginf(message)] = 0.0
        if parent == ROOT:
            total += float(message[0])
        else:
            heard[parent] = heard[parent] + message if parent in heard else message
    return total, tables


def conditioned(tree: Tree, restrictions: Mapping[int, Restriction]) -> tuple[float, Tree | None]:
    """Log-likelihood of an event, and the tree given it with its variables renumbered in order.

    The tree is None if the event is impossible, or leaves no variable.

    Parameters
    ----------
    tree : Tree
    restrictions : mapping of variables to Restriction
    """
    at = {tree.nodes[variable]: each for variable, each in restrictions.items()}
    total, tables = log_likelihoods(tree, {node: each.logs for node, each in at.items()})
    gone = [variable for variable, each in restrictions.items() if each.dictionary is None]
    if total == -np.inf or len(gone) == tree.n_variables:
        return total, None
    place = np.cumsum(~np.isin(np.arange(tree.n_variables), gone)) - 1
    place[gone] = HIDDEN
    variables = [HIDDEN if v == HIDDEN else int(place[v]) for v in tree.variables.tolist()]
    parents = tree.parents.tolist()
    for node, each in at.items():
        tables[node] = tables[node][:, each.origin] * each.shares
        for child in tree.children[node]:
            tables[child] = tables[child][each.origin]
        if each.emission is not None:
            variables.append(variables[node])
            variables[node] = HIDDEN
            parents.append(node)
            tables.append(each.emission)
    return total, reduced(variables, parents, tables)


def _impossible() -> ImpossibleEventError:
    return ImpossibleEventError("The event has probability zero, so there is nothing to condition on.")
