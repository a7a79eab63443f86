"""The dependence tree of a mixture of trees."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from jointwise._typing import FloatArray, IntArray
from jointwise.exceptions import InputError
from jointwise.joint import JointDensity
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_information import pair_information, strongest_tree
from jointwise.joint.sum import parts_of
from jointwise.plots._figure import MODEL, axes_or_new, check_density, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Edges below this many nats are left out: such columns are next to independent.
LEAST_INFORMATION = 1e-3
# Widths of edges, in points.
THINNEST, THICKEST = 0.6, 7.0
# Sizes in inches: a row of the picture at most and at least, a level of the tree, and a letter by the size of its font.
TALLEST_ROW, LEAST_ROW, LEVEL, LETTER = 0.32, 0.2, 0.75, 0.6
NARROWEST, WIDEST = 4.5, 16.0
NOTE = "number and width: mutual information (nats) with the column to the left"


def plot_tree(density: JointDensity, ax: Axes | None = None) -> Axes:
    """Draw which column depends on which, as a tree with edges as wide as the mutual information of their columns.

    A mixture of several trees has one such tree of its own: that with the largest total mutual information of pairs
    under the whole mixture. It is drawn rather than any component, because it shows what all of them agree on. A
    mixture of one tree has that tree. The number beside a name is the mutual information with the column to its left.
    Edges of less than 0.001 nats are left out, so that independent columns stand apart.

    In a sum of experts, it is the tree of the mixture of trees among them. Information is that of the states, which is
    exact if each value belongs to one state.

    Parameters
    ----------
    density : JointDensity
        A mixture of trees, or a sum with one.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from jointwise.dictionary import Dictionary
    >>> from jointwise.joint.forest_tree import Tree
    >>> from jointwise.tables.variables import Schema, Variable
    >>> schema = Schema(tuple(Variable(name, "integer") for name in ("a", "b", "c")))
    >>> noisy = [[0.9, 0.1], [0.2, 0.8]]
    >>> chain = Tree([0, 1, 2], [-1, 0, 1], ([[0.5, 0.5]], noisy, noisy))
    >>> ax = plot_tree(JointDensity(schema, ForestMixture([1.0], [Dictionary.points([0.0, 1.0])] * 3, [chain])))
    >>> [label.get_text() for label in ax.texts]
    ['a  0.28', 'b', 'c  0.27']
    """
    names = [text(name) for name in check_density(density).names]
    places = [density.schema.index(name) for name in density.names]
    information = pair_information(_forest(density))[np.ix_(places, places)]
    edges = strongest_tree(information)
    strength = information[edges[:, 0], edges[:, 1]]
    keep = strength >= LEAST_INFORMATION
    layout = _Layout.of(len(names), edges[keep])
    labels = [
        name if parent < 0 else f"{name}  {_number(information[n, parent])}"
        for n, (name, parent) in enumerate(zip(names, layout.parents, strict=True))
    ]
    longest = max(map(len, labels))
    n_rows, n_levels = len(names) + 1, int(layout.level.max()) + 1
    row = np.clip(TALLEST_ROW - 0.002 * n_rows, LEAST_ROW, TALLEST_ROW)
    width = np.clip(n_levels * LEVEL + longest * LETTER * 9 / 72 + 0.3, NARROWEST, WIDEST)
    ax = axes_or_new(ax, float(width), float(n_rows * row + 0.4))
    _draw(ax, layout, labels, information)
    return ax


def _number(nats: float) -> str:
    """Write a small number with two digits, a tiny one with three."""
    return f"{nats:.2f}" if nats >= 0.01 else f"{nats:.3f}"


def _forest(density: JointDensity) -> ForestMixture:
    """Return the mixture of trees with the largest share in a density."""
    parts = parts_of(density.mixture)
    found = [(share, part) for part, share in parts if isinstance(part, ForestMixture)]
    if not found:
        kinds = " and ".join(sorted({type(part).__name__ for part, _ in parts}))
        raise InputError(
            f"The dependence tree needs a density with a mixture of trees, and this one has {kinds} only. "
            "Fit one with TreeMixture, or see plot_mutual_information."
        )
    return max(found, key=lambda each: each[0])[1]


@dataclass(frozen=True)
class _Layout:
    """Places of the columns: each has a row of its own, so that no two labels meet.

    Parameters
    ----------
    row : array of shape (N,)
        From top to bottom.
    level : array of shape (N,)
        Distance from the root.
    parents : list of int
        The neighbour of each column on the way to the root, -1 for a root.
    """

    row: FloatArray
    level: IntArray
    parents: list[int]

    @classmethod
    def of(cls, n: int, edges: IntArray) -> _Layout:
        """Lay out a forest over n columns, the largest tree first, with a free row between trees."""
        near: list[list[int]] = [[] for _ in range(n)]
        for a, b in edges.tolist():
            near[a].append(b)
            near[b].append(a)
        row, level, parents = np.zeros(n), np.zeros(n, dtype=np.int64), [-1] * n
        at = 0.0
        for members in sorted(_trees(near), key=len, reverse=True):
            root = min(members, key=lambda v: sum(_distances(near, v).values()))  # in the middle of its tree
            for v, depth in _distances(near, root).items():
                level[v] = depth
                for w in near[v]:
                    if w != root and parents[w] < 0 and parents[v] != w:
                        parents[w] = v
            order = _in_order(near, parents, root)
            row[order] = at + np.arange(len(order))
            at += len(order) + (0.6 if len(order) > 1 else 0.0)
        return cls(row, level, parents)


def _trees(near: list[list[int]]) -> list[list[int]]:
    """Columns of each tree of a forest."""
    left, found = set(range(len(near))), []
    while left:
        members = list(_distances(near, min(left)))
        left -= set(members)
        found.append(members)
    return found


def _distances(near: list[list[int]], start: int) -> dict[int, int]:
    """Distance of each column of a tree from one of them, the nearest first."""
    found = {start: 0}
    for v in (queue := [start]):  # grows as it is walked
        for w in near[v]:
            if w not in found:
                found[w] = found[v] + 1
                queue.append(w)
    return found


def _in_order(near: list[list[int]], parents: list[int], root: int) -> list[int]:
    """Columns from top to bottom: each between the two halves of its children, smaller subtrees nearer to it."""
    size: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for v in reversed(_distances(near, root)):
        children[v] = sorted((w for w in near[v] if parents[w] == v), key=lambda w: size[w])
        size[v] = 1 + sum(size[w] for w in children[v])
    out, stack = [], [(root, False)]
    while stack:
        v, opened = stack.pop()
        if opened or not children[v]:
            out.append(v)
            continue
        above, below = children[v][::2], children[v][1::2]
        # the last in the list comes first
        stack += [(w, False) for w in below[::-1]] + [(v, True)] + [(w, False) for w in above]
    return out


def _draw(ax: Axes, layout: _Layout, labels: list[str], information: FloatArray) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    height = float(layout.row.max()) + 1.6
    inches = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    font = float(np.clip(0.62 * 72 * inches.height / height, 4.0, 9.0))
    letter = LETTER * font / 72
    # one level is as wide as the label that reaches furthest allows
    reach = [
        (inches.width - 0.25 - letter * len(label)) / (d + 0.3) for d, label in zip(layout.level, labels, strict=True)
    ]
    unit = float(np.clip(min(reach), 0.1, 2 * LEVEL))
    top = max(float(information.max()), 1e-12)
    for v, parent in enumerate(layout.parents):
        if parent < 0:
            continue
        x, y, at = layout.level[parent], layout.row[parent], (layout.level[v], layout.row[v])
        # it leaves downwards and arrives from the side, so that it crosses no label
        path = Path([(x, y), (x, at[1]), at], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
        width = THINNEST + (THICKEST - THINNEST) * information[v, parent] / top
        ax.add_patch(PathPatch(path, fill=False, edgecolor=MODEL, alpha=0.55, linewidth=width, capstyle="round"))
    dots: PathCollection = ax.scatter(layout.level, layout.row, s=(0.45 * font) ** 2, color="0.2", zorder=3)
    dots.set_clip_on(False)
    for v in range(len(labels)):
        ax.annotate(labels[v], (layout.level[v], layout.row[v]), (0.6 * font, 0), textcoords="offset points",
                    va="center", fontsize=font, zorder=4)  # fmt: skip
    ax.set_xlim(-0.3, inches.width / unit - 0.3)
    ax.set_ylim(height - 0.8, -0.8)
    ax.set_axis_off()
    size = min(font, 8.0)
    ax.set_title(fill(NOTE, max(int(inches.width * 72 / (LETTER * size)), 10)), fontsize=size, color="0.4", loc="left")
