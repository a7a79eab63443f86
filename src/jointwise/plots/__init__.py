"""Pictures of a joint density, of a fit and of an experiment.

Every function draws into the Axes given as ``ax``, or into a new figure, and returns the Axes. Which one to pick:

- one variable, with the atoms it is made of: :func:`plot_marginal`
- two variables of any kinds: :func:`plot_pair`; several, two by two: :func:`plot_corner`
- which variables tell of each other: :func:`plot_mutual_information`
- what the components are: :func:`plot_components`
- how a fit went: :func:`plot_convergence`
- how methods compare as data grow: :func:`plot_distances`

Model and data look the same everywhere: the model is blue, data are grey bars or orange points. Values that hold a
probability of their own in an otherwise continuous variable (spikes) are drawn beside the rest, in strips. matplotlib
is needed: ``pip install 'jointwise[plot]'``. No setting of matplotlib is changed.
"""

from jointwise.plots.curves import plot_convergence, plot_distances
from jointwise.plots.marginal import plot_marginal
from jointwise.plots.matrices import plot_components, plot_mutual_information
from jointwise.plots.pair import plot_corner, plot_pair

__all__ = [
    "plot_components",
    "plot_convergence",
    "plot_corner",
    "plot_distances",
    "plot_marginal",
    "plot_mutual_information",
    "plot_pair",
]
