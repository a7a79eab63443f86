"""Random mixtures of trees, and the same density as an enumeration of all combinations of states."""

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from hypothesis import strategies as st
from tests.joint.cases import KINDS, random_variable

from jointwise.dictionary import Dictionary
from jointwise.families import Gaussian, Lattice, PointMass
from jointwise.joint import JointDensity, ProductMixture
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_tree import Tree
from jointwise.tables.variables import Schema, Variable

# Bins do not overlap, so that each value settles its state; those of `KINDS` mostly do.
BINS = ("bins", "spiked bins", "integer bins")
SETTLED = (*BINS, "counts", "label", "grade")
ALL = (*KINDS, *BINS)


def bins(rng, name, kind):
    """A variable whose atoms are a Gaussian cut into pieces, some with point masses between them."""
    edges = np.concatenate([[-np.inf], np.unique(rng.normal(0, 3, 2).round(1)) + 0.05, [np.inf]])
    if kind == "integer bins":
        edges = np.concatenate([[-np.inf], np.unique(np.floor(edges[1:-1])) + 0.5, [np.inf]])
    law = Gaussian(0.5, 3.0)
    pieces = [law.truncate(low, high) for low, high in pairwise(edges)]
    if kind == "integer bins":
        return Variable(name, "integer", dtype="int64"), Dictionary(tuple(Lattice(piece) for piece in pieces))
    if kind == "bins":
        return Variable(name, "continuous"), Dictionary(tuple(pieces))
    return Variable(name, "continuous", spikes=(0.5,)), Dictionary((*pieces, PointMass(0.5)))


def variable_of(rng, name, kind):
    return bins(rng, name, kind) if kind in BINS else random_variable(rng, name, kind)


def random_law(rng, rows, size):
    """Rows on the simplex, uneven and with exact zeros, so that some states are impossible given others."""
    raw = rng.exponential(size=(rows, size)) ** 3 * (rng.random((rows, size)) < 0.8)
    raw[:, 0] += raw.sum(axis=1) == 0
    return raw / raw.sum(axis=1, keepdims=True)


def random_tree(rng, sizes, n_hidden=0, roots=0.15):
    """A tree or forest over variables with these numbers of states, and hidden nodes with two or three."""
    variables = rng.permutation(np.concatenate([np.arange(len(sizes)), np.full(n_hidden, -1)]))
    states = [sizes[v] if v >= 0 else int(rng.integers(1, 4)) for v in variables]
    parents = [-1 if k == 0 or rng.random() < roots else int(rng.integers(k)) for k in range(len(variables))]
    tables = [random_law(rng, 1 if p == -1 else states[p], s) for p, s in zip(parents, states, strict=True)]
    return Tree(variables, parents, tables)


def random_forest(rng, kinds, n_components, n_hidden=1):
    """A density, its variables named after their kinds."""
    named = [variable_of(rng, f"v{n}_{kind}", kind) for n, kind in enumerate(kinds)]
    sizes = [d.n_atoms for _, d in named]
    trees = [random_tree(rng, sizes, int(rng.integers(n_hidden + 1))) for _ in range(n_components)]
    weights = rng.dirichlet(np.ones(n_components))
    mixture = ForestMixture(weights, [d for _, d in named], trees)
    return JointDensity(Schema(tuple(v for v, _ in named)), mixture)


def state_probabilities(tree):
    """P(states of the variables), by a loop over all states of all nodes."""
    sizes = [tree.tables[node].shape[1] for node in tree.nodes]
    out = np.zeros(sizes)
    for states in product(*(range(table.shape[1]) for table in tree.tables)):
        p = 1.0
        for node, table in enumerate(tree.tables):
            parent = tree.parents[node]
            p *= table[0 if parent == -1 else states[parent], states[node]]
        out[tuple(states[node] for node in tree.nodes)] += p
    return out


def enumerated(f):
    """The same density as a mixture of products with a component for each combination of states."""
    joint = sum(w * state_probabilities(tree) for w, tree in zip(f.weights, f.trees, strict=True))
    used = np.argwhere(joint > 0)
    coefficients = [np.eye(d.n_atoms)[:, used[:, n]] for n, d in enumerate(f.dictionaries)]
    weights = joint[joint > 0]
    return ProductMixture(weights / weights.sum(), coefficients, f.dictionaries)


@dataclass(frozen=True)
class Twins:
    """The same density twice: as a mixture of trees, and enumerated."""

    trees: JointDensity
    whole: JointDensity
    rng: np.random.Generator

    @property
    def experts(self):
        return self.trees.mixture, self.whole.mixture


@st.composite
def twins(draw, min_variables=1, max_variables=4, kinds=ALL):
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=min_variables, max_size=max_variables))
    n_components, n_hidden = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = random_forest(rng, chosen, n_components, n_hidden)
    return Twins(density, JointDensity(density.schema, enumerated(density.mixture)), rng)
