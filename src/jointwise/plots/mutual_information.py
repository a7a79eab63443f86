"""The mutual information of all pairs of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointwise._checks import shown
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.joint import JointDensity
from jointwise.plots._colours import colour_map
from jointwise.plots._figure import axes_or_new, bare, check_density, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Largest matrix with numbers written into its cells.
MOST_WRITTEN = 16


def plot_mutual_information(density: JointDensity, ax: Axes | None = None) -> Axes:
    r"""Draw the mutual information of each pair of variables, :math:`I(a; b)` in nats, below the diagonal.

    Parameters
    ----------
    density : JointDensity
        Of at least two variables; ``density.marginal(names)`` selects some.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> ax = plot_mutual_information(hybrid(rng=0))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x1', 'x2', 'x3']
    """
    return draw_information(check_density(density).names, information_of_pairs(density), ax)


def information_of_pairs(density: JointDensity) -> FloatArray:
    """Mutual information of each pair of variables, in nats, NaN on the diagonal; shape (N, N)."""
    names = density.names
    if len(names) < 2:
        raise InputError(f"Mutual information needs two variables, but the density has only {shown(names[0])}.")
    information = np.full((len(names), len(names)), np.nan)
    for j in range(1, len(names)):
        for k in range(j):
            information[j, k] = information[k, j] = density.mutual_information(names[j], names[k]).value
    return information


def draw_information(names: Sequence[str], information: FloatArray, ax: Axes | None = None) -> Axes:
    """Draw what `information_of_pairs` has found, below the diagonal."""
    side = float(np.clip(0.45 * len(names) + 2.0, 3.6, 12))
    ax = axes_or_new(ax, side + 0.8, side)
    below = np.where(np.tri(len(names), k=-1, dtype=bool), information, np.nan)[1:, :-1]
    top = float(np.nanmax(below))
    image = ax.imshow(below, cmap=colour_map(), vmin=0, vmax=top or 1.0)
    ax.set_xticks(range(len(names) - 1), [text(n) for n in names[:-1]], rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names) - 1), [text(n) for n in names[1:]])
    if len(names) <= MOST_WRITTEN:
        _write_cells(ax, below, top)
    bare(ax)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    bar = ax.figure.colorbar(image, ax=ax, label="mutual information (nats)", shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    return ax


def _write_cells(ax: Axes, numbers: FloatArray, top: float) -> None:
    """Write each number into its cell, in white on dark cells."""
    for (row, column), number in np.ndenumerate(numbers):
        if np.isfinite(number):
            colour = "white" if number > 0.55 * top else "0.2"
            ax.text(column, row, f"{number:.2f}", ha="center", va="center", color=colour, fontsize="x-small")
