"""One variable given each component."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jointwise.joint import JointDensity
from jointwise.plots._colours import colour_map
from jointwise.plots._figure import axes_or_new, bare, check_density
from jointwise.plots._ruler import Ruler
from jointwise.plots.pair import slant
from jointwise.tables.variables import Kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_components(density: JointDensity, name: str, ax: Axes | None = None) -> Axes:
    """Draw one variable given each component as a heat map, one row per component.

    The height of a row is the weight of its component, the largest at the bottom, so that the average over the height
    is the marginal. Components of different colours differ in this variable. A spike is a strip beside the range,
    where white is probability zero and the darkest colour is one.

    Parameters
    ----------
    density : JointDensity
    name : str
        The variable.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> ax = plot_components(hybrid(rng=0), "x3")
    >>> ax.get_ylabel()
    'components, stacked by weight'
    """
    ruler = Ruler.of(check_density(density), name)
    order = np.argsort(-ruler.mixing, kind="stable")
    heights = np.concatenate([[0.0], np.cumsum(ruler.mixing[order])])
    ax = axes_or_new(ax, 6.4, 4.2 + ruler.names_room)
    colours, given = colour_map(), ruler.conditionals()[:, order].T
    mesh = ax.pcolormesh(ruler.edges, heights, given, cmap=colours, vmin=0, rasterized=True)
    for ends, probabilities in zip(ruler.strips, ruler.spike_conditionals(), strict=True):
        ax.pcolormesh(ends, heights, probabilities[order, None], cmap=colours, vmin=0, vmax=1, rasterized=True)
    ax.hlines(heights[1:-1], *ruler.limits, color="white", lw=1.0)
    ax.set(xlim=ruler.limits, ylim=(0, 1), ylabel="components, stacked by weight")
    ruler.dress(ax.xaxis)
    slant(ax.xaxis, ruler)
    bare(ax)
    unit = "probability" if ruler.values is not None or ruler.variable.kind is Kind.INTEGER else "density"
    bar = ax.figure.colorbar(mesh, ax=ax, label=f"{unit} given the component", pad=0.02)
    bar.outline.set_visible(False)
    return ax
