"""Mixtures of trees: columns that depend on their neighbours, each component with a tree of its own.

:func:`fit_trees` takes coded rows and :class:`TreeOptions` and returns a :class:`TreeFit`; :func:`fit_pairs_tree` fits
one tree to pair counts. `states` says what the values of a column are to a tree, `merging` which bins are one state and
`moving` where their edges lie, both by the `counts` of pairs. `splines` are smooth atoms of numbers, and `atoms` are
states made of these, where bins are not. `space` has the states of all columns, and `design` gathers what follows from
columns alone. `start` finds groups of rows, `choice` the numbers of trees and states, their kind and the strength of
the prior, and `fit` runs EM.
"""

from jointwise.fitting.trees.choice import TreeChoice, choose_trees
from jointwise.fitting.trees.design import MOST_COLUMNS
from jointwise.fitting.trees.fit import fit_pairs_tree, fit_trees
from jointwise.fitting.trees.options import TreeOptions
from jointwise.fitting.trees.result import TreeFit

__all__ = ["MOST_COLUMNS", "TreeChoice", "TreeFit", "TreeOptions", "choose_trees", "fit_pairs_tree", "fit_trees"]
