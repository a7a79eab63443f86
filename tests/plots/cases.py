"""A density with one variable for each way of drawing."""

import numpy as np

from jointwise.dictionary import Dictionary
from jointwise.families import Cauchy, Gaussian, PointMass
from jointwise.joint import JointDensity, ProductMixture
from jointwise.tables.variables import Schema, Variable

TREES = ("ash", "birch", "cedar")
LONG = tuple(f"category number {i} with a name that is long" for i in range(20))


def mixed():
    """Two components, eight variables; rows come as a mapping."""
    lattice = Dictionary((Gaussian([20.0, 32.0], [4.0, 5.0]),)).on_lattice()
    columns = [
        (Variable("height", "continuous"), Dictionary((Gaussian([1.0, 3.0], [0.5, 0.8]),))),
        (Variable("rain", "continuous", spikes=(0.0,)), Dictionary((Gaussian([6.0], [1.5]), PointMass([0.0])))),
        (Variable("tail", "continuous"), Dictionary((Cauchy([0.0, 4.0], [1.0, 1.0]),))),
        (Variable("day", "continuous", dtype="date"), Dictionary((Gaussian([19000.0, 19700.0], [120.0, 90.0]),))),
        (Variable("age", "integer", dtype="int64"), lattice),
        (Variable("count", "integer", dtype="int64"), Dictionary.points([0.0, 1.0, 2.0])),
        (Variable("tree", "categorical", categories=TREES, dtype="string"), Dictionary.categories(3)),
        (Variable("long", "categorical", categories=LONG, dtype="string"), Dictionary.categories(20)),
    ]
    rng = np.random.default_rng(3)
    coefficients = [rng.dirichlet(np.full(d.n_atoms, 0.7), 2).T for _, d in columns]
    schema = Schema(tuple(v for v, _ in columns), "dict")
    return JointDensity(schema, ProductMixture([0.6, 0.4], coefficients, tuple(d for _, d in columns)))


def one(variable, dictionary, weights):
    """One variable, one component."""
    coefficients = np.asarray(weights, dtype=float)[:, None]
    return JointDensity(Schema((variable,), "dict"), ProductMixture([1.0], [coefficients], (dictionary,)))


def labels(axis, minor=False):
    """Texts of the ticks as drawn."""
    axis.figure.draw_without_rendering()
    return [tick.get_text() for tick in axis.get_ticklabels(minor=minor)]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]
