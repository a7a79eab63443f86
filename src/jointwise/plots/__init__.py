"""Pictures of a joint density, of a fit and of an experiment.

Every function draws into the Axes given as ``ax``, or into a new figure, and returns the Axes. Which one to pick:

- one variable, with its atoms: :func:`plot_marginal`
- two variables of any kinds: :func:`plot_pair`; several, in pairs: :func:`plot_corner`
- which variables depend on each other: :func:`plot_mutual_information`; as a tree, of a mixture of trees:
  :func:`plot_tree`
- one variable in each component: :func:`plot_components`
- how a fit went: :func:`plot_convergence`
- how methods compare as the number of rows grows: :func:`plot_distances`

The model is blue everywhere, data are grey bars or orange points. Spikes (values of a continuous variable with a
probability of their own) are drawn in strips beside the range. The functions need matplotlib, ``pip install
'jointwise[plot]'``, and change none of its settings.
"""

from jointwise.plots.components import plot_components
from jointwise.plots.convergence import plot_convergence
from jointwise.plots.distances import plot_distances
from jointwise.plots.marginal import plot_marginal
from jointwise.plots.mutual_information import plot_mutual_information
from jointwise.plots.pair import plot_corner, plot_pair
from jointwise.plots.tree import plot_tree

__all__ = [
    "plot_components",
    "plot_convergence",
    "plot_corner",
    "plot_distances",
    "plot_marginal",
    "plot_mutual_information",
    "plot_pair",
    "plot_tree",
]
