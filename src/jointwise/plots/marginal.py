"""One variable: its density or probabilities, its atoms, and data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.joint import JointDensity
from jointwise.plots._figure import ATOMS, DATA_BARS, FAINT, MODEL, axes_or_new, bare, check_density, encoded_columns
from jointwise.plots._ruler import Ruler
from jointwise.tables.variables import Kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of a curve, besides the corners of its atoms.
N_POINTS = 600
# Fewer rows than this are drawn one by one: a histogram of them would show nothing.
LEAST_ROWS = 20
LEAST_BARS, MOST_BARS = 5, 60
# Rows looked at to choose the number of bars.
MOST_COUNTED = 100_000
# An atom with less weight than this cannot be seen.
LEAST_WEIGHT = 1e-3
# A peak is cut at this many times the height of the fullest cell: some densities are infinite at a point.
CUT = 2.0
HEADROOM = 1.16
# More stems than this are thin.
MANY_STEMS = 30


def plot_marginal(
    density: JointDensity, name: str, data: Any = None, ax: Axes | None = None, *, atoms: bool = True
) -> Axes:
    """Draw the marginal of one variable, its atoms, and a histogram of data.

    A density is a line over its atoms (thin lines, each times its weight), probabilities are stems. A spike is a
    stem in its own strip beside the range, where the full height is probability one. At most four spikes have strips;
    any other is a thin bar in the range. If fewer than 20 rows lie in the range, they are ticks at the bottom. Long
    category names are listed down the side.

    Parameters
    ----------
    density : JointDensity
    name : str
        The variable.
    data : table, optional
        Rows with a column of this name; an array must have all columns of the density. Gaps are left out.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    atoms : bool
        Whether to draw the atoms.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> law = hybrid(rng=0)
    >>> ax = plot_marginal(law, "x0", data=law.sample(500, rng=1))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'density')
    """
    ruler = Ruler.of(check_density(density), name)
    rows = None if data is None else encoded_columns(density, [name], data)[:, 0]
    down = ruler.names_room > 0
    height = 3.6 if not down or ruler.values is None else float(np.clip(1 + 0.24 * len(ruler.values), 3, 14))
    ax = axes_or_new(ax, 6.4, height)
    draw_marginal(ax, ruler, rows, atoms=atoms, down=down)
    from matplotlib.ticker import MaxNLocator

    kind = "density" if ruler.variable.kind is Kind.CONTINUOUS and ruler.values is None else "probability"
    ruler.dress(ax.yaxis if down else ax.xaxis)
    if down:
        ax.set_xlabel(kind)
        ax.xaxis.set_major_locator(MaxNLocator(6))
        ax.set_ylabel(ruler.label)
    else:
        ax.set_ylabel(kind)
    bare(ax)
    low, high = ruler.limits
    _legend(ax, (1, 1) if down else ((ruler.edges[-1] - low) / (high - low), 1), down=down)
    return ax


def draw_marginal(ax: Axes, ruler: Ruler, rows: FloatArray | None, *, atoms: bool, down: bool = False) -> None:
    """Draw a marginal and encoded ``rows`` of its variable, without ticks and names."""
    seen = None if rows is None else rows[~np.isnan(rows)]
    if ruler.values is not None:
        _draw_probabilities(ax, ruler, ruler.values, seen, down=down)
        if atoms and not (ruler.dictionary.is_identity or ruler.dictionary.lists_values):
            _draw_atoms(ax, ruler, ruler.values)
    else:
        _draw_density(ax, ruler, seen, atoms=atoms)
    low, high = ruler.limits
    if down:
        ax.set_ylim(high, low)  # the first category on top
    else:
        ax.set_xlim(low, high)


def _draw_probabilities(ax: Axes, ruler: Ruler, values: FloatArray, seen: FloatArray | None, *, down: bool) -> None:
    """Draw stems at the values, over bars for the shares of the rows."""
    probabilities = ruler.conditionals() @ ruler.mixing
    width = 0.8 * float(np.diff(ruler.edges).min())
    top = float(probabilities.max())
    if seen is not None and len(seen):
        shares = np.array([(seen == value).mean() for value in values])
        label = _rows_label(seen, int(np.isin(seen, values).sum()))
        (ax.barh if down else ax.bar)(values, shares, width, color=DATA_BARS, zorder=1, label=label)
        top = max(top, float(shares.max()))
    many = len(values) > MANY_STEMS
    (ax.hlines if down else ax.vlines)(values, 0, probabilities, color=MODEL, lw=0.8 if many else 1.5, zorder=3)
    places = (probabilities, values) if down else (values, probabilities)
    ax.plot(*places, "o", color=MODEL, ms=2.5 if many else 5, zorder=4, label="model")
    if down:
        ax.set_xlim(0, 1.05 * top)
    else:
        ax.set_ylim(0, HEADROOM * top)


def _draw_density(ax: Axes, ruler: Ruler, seen: FloatArray | None, *, atoms: bool) -> None:
    grid = _grid(ruler)
    smooth = ruler.dictionary.take(ruler.is_smooth)
    parts = smooth.pdf(grid) * ruler.weights[ruler.is_smooth]
    heights = np.where(np.isfinite(parts), parts, np.nan).sum(axis=1)
    fullest = float((ruler.conditionals() @ ruler.mixing).max())
    top = min(float(np.nanmax(heights)), CUT * fullest)
    if seen is not None and len(seen):
        top = max(top, _draw_rows(ax, ruler, seen))
    if atoms:
        _draw_atoms(ax, ruler, grid)
    ax.plot(grid, heights, color=MODEL, lw=2, zorder=4, label="model")
    ax.set_ylim(0, HEADROOM * top)
    cell = float(np.diff(ruler.edges).mean())
    ax.vlines(ruler.folded, 0, np.minimum(ruler.folded_masses / cell, top), color=MODEL, lw=1.0, zorder=3)
    _draw_strips(ax, ruler, seen)


def _grid(ruler: Ruler) -> FloatArray:
    """Points at which a curve is evaluated: evenly spaced, and on both sides of every corner.

    The corner itself is left out, because two atoms that meet there may both include it.
    """
    low, high = ruler.edges[0], ruler.edges[-1]
    even = np.linspace(low, high, N_POINTS)
    if ruler.variable.kind is Kind.INTEGER:
        return np.unique(np.round(even))
    corners = ruler.dictionary.take(ruler.is_smooth).corners()
    both_sides = np.concatenate([np.nextafter(corners, -np.inf), np.nextafter(corners, np.inf)])
    within = both_sides[(both_sides >= low) & (both_sides <= high)]
    return np.setdiff1d(np.union1d(even, within), corners)


def _draw_atoms(ax: Axes, ruler: Ruler, grid: FloatArray) -> None:
    """Draw each atom in use, times its weight, as a thin line."""
    drawn = ruler.is_smooth & (ruler.weights > LEAST_WEIGHT)
    if not drawn.any():
        return
    parts = ruler.dictionary.take(drawn).pdf(grid) * ruler.weights[drawn]
    lines = ax.plot(grid, np.where(np.isfinite(parts), parts, np.nan), color=ATOMS, lw=0.8, alpha=0.8, zorder=2)
    lines[0].set_label(f"{drawn.sum()} atoms, weighted" if drawn.sum() > 1 else "one atom, weighted")


def _draw_rows(ax: Axes, ruler: Ruler, seen: FloatArray) -> float:
    """Draw a histogram of the rows in the range, or ticks if they are few; return its greatest height."""
    inside = seen[ruler.inside(seen)]
    label = _rows_label(seen, len(inside))
    inside = inside[~np.isin(inside, ruler.spikes)]
    if not len(inside):
        return 0.0
    if len(inside) < LEAST_ROWS:
        at_foot = np.full(len(inside), 0.04)
        along = ax.get_xaxis_transform()
        ax.plot(inside, at_foot, "|", color="black", ms=16, mew=1.5, zorder=5, transform=along, label=label)
        return 0.0
    edges = _bar_edges(ruler, inside)
    heights = np.histogram(inside, edges)[0] / len(seen) / np.diff(edges)
    ax.stairs(heights, edges, fill=True, color=DATA_BARS, zorder=1, label=label)
    return float(heights.max())


def _bar_edges(ruler: Ruler, inside: FloatArray) -> FloatArray:
    """Edges of a histogram from the smallest to the largest row; numpy's rule gives their number, within limits."""
    low, high = (inside.min(), inside.max()) if np.ptp(inside) > 0 else (ruler.edges[0], ruler.edges[-1])
    n_bars = len(np.histogram_bin_edges(inside[:MOST_COUNTED], "auto")) - 1
    n_bars = min(max(n_bars, LEAST_BARS), MOST_BARS)
    if ruler.variable.kind is not Kind.INTEGER:
        return np.asarray(np.linspace(low, high, n_bars + 1), dtype=np.float64)
    step = np.ceil((high - low + 1) / n_bars)
    return np.arange(low - 0.5, high + step, step)


def _draw_strips(ax: Axes, ruler: Ruler, seen: FloatArray | None) -> None:
    """Draw the spikes beside the range: the filled share of the height is the probability of the spike."""
    along = ax.get_xaxis_transform()
    for spike, mass, (left, right) in zip(ruler.spikes, ruler.spike_masses, ruler.strips, strict=True):
        middle, width = (left + right) / 2, right - left
        if seen is not None and len(seen):
            ax.bar(middle, (seen == spike).mean(), width, color=DATA_BARS, transform=along, zorder=1)
        ax.bar(middle, 1.0, width, fill=False, edgecolor=FAINT, lw=0.8, transform=along, zorder=2)
        ax.plot([middle, middle], [0, mass], color=MODEL, lw=2, transform=along, zorder=3)
        ax.plot(middle, mass, "o", color=MODEL, ms=5, transform=along, zorder=4)


def _rows_label(seen: FloatArray, n_inside: int) -> str:
    outside = f", {len(seen) - n_inside:,} outside" if n_inside < len(seen) else ""
    return f"data ({len(seen):,} row{'s' * (len(seen) != 1)}{outside})"


def _legend(ax: Axes, corner: tuple[float, float], *, down: bool) -> None:
    """Put the legend into the space above the highest bar, or above horizontal bars."""
    handles, labels = ax.get_legend_handles_labels()
    order = np.argsort([("model" not in label, "data" not in label) for label in labels], axis=0)[:, 0]
    handles, labels = [handles[i] for i in order], [labels[i] for i in order]
    ax.legend(
        handles,
        labels,
        loc="lower right" if down else "upper right",
        bbox_to_anchor=corner,
        ncols=len(labels),
        frameon=False,
        fontsize="small",
        borderaxespad=0.2,
        columnspacing=1.2,
    )
