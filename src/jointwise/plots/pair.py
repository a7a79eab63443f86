"""Two variables of any kinds as a heat map with data, and several variables in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._checks import shown
from jointwise._typing import AnyArray, FloatArray
from jointwise.exceptions import InputError
from jointwise.joint import JointDensity
from jointwise.plots._colours import colour_bar, colour_map, colour_scale
from jointwise.plots._figure import DATA_POINTS, axes_or_new, bare, check_density, encoded_columns, pyplot, remark
from jointwise.plots._ruler import FEW, Ruler
from jointwise.plots.marginal import draw_marginal
from jointwise.tables.variables import Kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import Normalize

# Most rows drawn as points; more would only hide each other.
MOST_POINTS = 2000
# With more points than this, they are smaller, and smaller the more there are.
MANY_POINTS = 400
# Variables of a corner plot if none are named.
MOST_PANELS = 6
# With more category names than this, they are written more steeply.
STEEP = 12


def plot_pair(density: JointDensity, a: str, b: str, data: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the joint density of two variables as a heat map, with rows of data as points.

    Colour is the mean density of a cell, or its probability if both variables have single values. If narrow peaks would
    leave the rest white, the scale of colours is uneven, and says so. Points that share a place are spread around it. A
    spike is a strip beside the range with its own scale of colours: they show the distribution of the other variable at
    the spike, and the percentage is the probability of the spike. At most four spikes of a variable have strips; the
    others count in their cells. Where two strips cross, dark means that one spike hardly comes without the other.

    Parameters
    ----------
    density : JointDensity
    a, b : str
        The variables along the horizontal and the vertical axis.
    data : table, optional
        Rows with columns of these names; an array must have all columns of the density. At most 2,000 rows are
        drawn, evenly spaced in the table.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> law = hybrid(rng=0)
    >>> ax = plot_pair(law, "x0", "x3", data=law.sample(200, rng=1))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'x3')
    """
    if a == b:
        raise InputError(f"A pair needs two different variables, got {shown(a)} twice; see plot_marginal.")
    rulers = Ruler.of(check_density(density), a), Ruler.of(density, b)
    rows = None if data is None else encoded_columns(density, [a, b], data)
    width, height = (max(0.0, 0.25 * (len(r.variable.categories or ()) - 12)) for r in rulers)
    ax = axes_or_new(ax, 6.0 + width, 4.8 + height + rulers[0].names_room)
    mesh = draw_pair(ax, density, *rulers, rows)
    for ruler, axis in zip(rulers, (ax.xaxis, ax.yaxis), strict=True):
        ruler.dress(axis)
    slant(ax.xaxis, rulers[0])
    both_discrete = all(r.values is not None or r.variable.kind is Kind.INTEGER for r in rulers)
    colour_bar(mesh, ax, "probability" if both_discrete else "density")
    if rows is not None:
        remark(ax, points_text(_shown_rows(*rulers, rows), rows))
    return ax


def plot_corner(density: JointDensity, names: Sequence[str] | None = None, data: Any = None) -> AnyArray:
    """Draw every pair of some variables below the diagonal, and every marginal on it.

    Parameters
    ----------
    density : JointDensity
    names : sequence of str, optional
        The variables; the first six by default.
    data : table, optional
        As in :func:`plot_pair`.

    Returns
    -------
    array of Axes of shape (K, K)
        Those above the diagonal are empty.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> plot_corner(hybrid(rng=0), ["x0", "x1", "x3"]).shape
    (3, 3)
    """
    chosen = list(check_density(density).names[:MOST_PANELS] if names is None else names)
    drawn = density.marginal(chosen)
    rulers = [Ruler.of(drawn, name) for name in chosen]
    rows = None if data is None else encoded_columns(density, chosen, data)
    side = 1.6 * len(chosen) + 0.8
    _, axes = pyplot().subplots(
        len(chosen), len(chosen), figsize=(side, side), layout="constrained", squeeze=False, sharex="col"
    )
    for i, k in np.ndindex(axes.shape):
        if k > i:
            axes[i, k].set_axis_off()
        elif k == i:
            draw_marginal(axes[i, i], rulers[i], None if rows is None else rows[:, i], atoms=False)
        else:
            draw_pair(axes[i, k], drawn, rulers[k], rulers[i], None if rows is None else rows[:, [k, i]], size=2.5)
    _dress_corner(axes, rulers)
    if rows is not None and len(chosen) > 1:
        most = f"at most {MOST_POINTS:,} of " if len(rows) > MOST_POINTS else ""
        axes[0, -1].text(1, 1, f"{most}{len(rows):,} rows drawn", ha="right", va="top", fontsize="small", color="0.4",
                         transform=axes[0, -1].transAxes)  # fmt: skip
    return np.asarray(axes)


def draw_pair(
    ax: Axes, density: JointDensity, across: Ruler, up: Ruler, rows: FloatArray | None, size: float = 8.0
) -> QuadMesh:
    """Draw the heat map of two variables and encoded ``rows`` of them, without ticks and names."""
    colours = colour_map()
    meshes = [
        ax.pcolormesh(x, y, f.T, cmap=colours, norm=_scale(x, y, f, most), rasterized=True)
        for x, y, f, most in _blocks(density, across, up)
    ]
    _rule_cells(ax, across, up)
    if rows is not None:
        _draw_points(ax, across, up, _shown_rows(across, up, rows), size)
    ax.set_xlim(across.limits)
    ax.set_ylim(up.limits[::-1] if up.is_list else up.limits)
    return meshes[0]


def _scale(x: FloatArray, y: FloatArray, f: FloatArray, most: float) -> Normalize:
    """Scale of colours of a block; of one cell, the crossing of two strips, up to ``most``."""
    from matplotlib.colors import Normalize

    return Normalize(0.0, most or 1.0) if f.size == 1 else colour_scale(f, np.outer(np.diff(x), np.diff(y)))


def _blocks(density: JointDensity, across: Ruler, up: Ruler) -> list[tuple[FloatArray, FloatArray, FloatArray, float]]:
    """Edges and densities of the range, and of each strip along it and crossing of strips.

    The number beside them is the smaller probability of the two spikes of a crossing, and one for other blocks.
    """
    regions = {density.schema.index(ruler.variable.name): ruler.regions for ruler in (across, up)}
    table = density.mixture.crosstab(regions) / across.widths[:, None] / up.widths
    n_across, n_up = len(across.edges) - 1, len(up.edges) - 1
    # the range is one block, each strip another
    columns = [(across.edges, slice(n_across), 1.0), *_strip_slices(across, n_across)]
    rows = [(up.edges, slice(n_up), 1.0), *_strip_slices(up, n_up)]
    return [(x, y, table[i, j], min(p, q)) for x, i, p in columns for y, j, q in rows]


def _strip_slices(ruler: Ruler, n_cells: int) -> list[tuple[FloatArray, slice, float]]:
    strips = zip(ruler.strips, ruler.spike_masses.tolist(), strict=True)
    return [(ends, slice(n_cells + k, n_cells + k + 1), p) for k, (ends, p) in enumerate(strips)]


def _rule_cells(ax: Axes, across: Ruler, up: Ruler) -> None:
    """Draw white lines between the cells of single values, if they are not too many."""
    for ruler, lines in ((across, ax.vlines), (up, ax.hlines)):
        if ruler.values is not None and len(ruler.values) <= 30:
            lines(ruler.edges[1:-1], *(up if ruler is across else across).limits, color="white", lw=1.5)


def _shown_rows(across: Ruler, up: Ruler, rows: FloatArray) -> FloatArray:
    """Rows that are drawn: those that lie in the picture, or some of them, evenly spaced."""
    rows = rows[across.inside(rows[:, 0]) & up.inside(rows[:, 1])]
    return rows[:: -(-len(rows) // MOST_POINTS) or 1]


def points_text(drawn: FloatArray, rows: FloatArray) -> str:
    """Say how many of the rows are drawn."""
    if len(drawn) == len(rows):
        return f"all {len(rows):,} rows drawn" if len(rows) > 1 else f"{len(rows)} row drawn"
    return f"{len(drawn):,} of {len(rows):,} rows drawn"


def _draw_points(ax: Axes, across: Ruler, up: Ruler, rows: FloatArray, size: float) -> None:
    rng = np.random.default_rng(0)  # the same picture each time
    many = len(rows) > MANY_POINTS  # so that the colours below can be seen
    ax.scatter(
        across.places(rows[:, 0], rng),
        up.places(rows[:, 1], rng),
        s=size * (MANY_POINTS / len(rows)) ** 0.5 if many else size,
        color=DATA_POINTS,
        edgecolors="none" if many else "white",
        linewidths=0.0 if many else 0.3,
        alpha=0.6 if many else 0.8,
        label="data",
        rasterized=True,
    )


def _dress_corner(axes: AnyArray, rulers: list[Ruler]) -> None:
    """Put ticks and names at the left and at the bottom only."""
    last = len(rulers) - 1
    for i, k in zip(*np.tril_indices(len(rulers)), strict=True):
        ax = axes[i, k]
        ax.tick_params(which="both", labelsize="small")
        bare(ax)
        if i == last:
            rulers[k].dress(ax.xaxis, FEW)
            slant(ax.xaxis, rulers[k], always=True)
        else:
            ax.tick_params(axis="x", which="both", labelbottom=False)
        if i == k:
            ax.set_yticks([])
            ax.spines["left"].set_visible(False)
        elif k == 0:
            rulers[i].dress(ax.yaxis, FEW)
        else:
            ax.tick_params(axis="y", which="both", left=False, labelleft=False)
    axes[0, 0].figure.align_labels()


def slant(axis: Axis, ruler: Ruler, *, always: bool = False) -> None:
    """Write long category names at an angle."""
    if ruler.variable.categories is not None and (always or ruler.names_room):
        steep = len(ruler.variable.categories) > STEEP
        for label in axis.get_ticklabels():
            label.set(rotation=70 if steep else 40, horizontalalignment="right", rotation_mode="anchor")
