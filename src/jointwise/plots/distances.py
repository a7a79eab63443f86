"""How methods compare as the number of rows grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._checks import listed
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.plots._figure import PALETTE, axes_or_new, bare, legend_beside, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vP*X"
# Distance of neighbouring methods in the logarithm of n, so that error bars do not hide each other.
APART = 0.012


def plot_distances(rows: Sequence[Mapping[str, Any]], ax: Axes | None = None) -> Axes:
    """Draw the distance D of several methods to the truth against the number of rows, with standard errors.

    Methods keep the order of their first appearance; both scales are logarithmic. A result that is not finite (the
    method gave a point no density) is left out of the mean and counted in the legend.

    Parameters
    ----------
    rows : sequence of mappings with keys "method", "n" and "D"
        One result each; results of the same method and n are averaged.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> results = [{"method": "JUPAD", "n": n, "D": d} for n, d in [(500, 0.4), (500, 0.5), (5000, 0.2)]]
    >>> ax = plot_distances(results)
    >>> ax.get_legend().get_texts()[0].get_text()
    'JUPAD'
    """
    results = list(rows)
    for row in results:
        lacking = {"method", "n", "D"} - set(row)
        if lacking:
            raise InputError(f"Each row needs the keys 'method', 'n' and 'D'; one lacks {listed(sorted(lacking))}.")
    if not results:
        raise InputError("There are no rows to draw; each is a mapping with the keys 'method', 'n' and 'D'.")
    methods = list(dict.fromkeys(str(row["method"]) for row in results))
    ax = axes_or_new(ax, 7.0, 4.2)
    for i, method in enumerate(methods):
        own = [(float(row["n"]), float(row["D"])) for row in results if str(row["method"]) == method]
        shift = np.exp(APART * (i - (len(methods) - 1) / 2))
        _draw_method(ax, np.array(own), method, i, shift)
    _log_scales(ax, np.unique([float(row["n"]) for row in results]))
    ax.set(xlabel="number of rows $N_s$", ylabel="distance $D$ to the truth")
    ax.grid(axis="y", color="0.9", lw=0.8)
    ax.set_axisbelow(True)
    bare(ax)
    legend_beside(ax)
    return ax


def _draw_method(ax: Axes, own: FloatArray, method: str, i: int, shift: float) -> None:
    """Draw means and standard errors of one method, from pairs (n, D) of shape (m, 2)."""
    finite = own[np.isfinite(own[:, 1])]
    groups = [(n, finite[finite[:, 0] == n, 1]) for n in np.unique(finite[:, 0])]
    sizes = np.array([n for n, _ in groups])
    means = np.array([d.mean() for _, d in groups])
    errors = np.array([d.std(ddof=1) / np.sqrt(len(d)) if len(d) > 1 else 0.0 for _, d in groups])
    left_out = len(own) - len(finite)
    note = f" ({left_out} of {len(own)} not finite)" if left_out else ""
    ax.errorbar(
        sizes * shift,
        means,
        yerr=errors,
        color=PALETTE[i % len(PALETTE)],
        marker=MARKERS[i % len(MARKERS)],
        ls="-" if i < len(PALETTE) else "--",
        ms=5,
        lw=1.6,
        capsize=2.5,
        label=text(method, 40) + note,
    )


def _log_scales(ax: Axes, sizes: FloatArray) -> None:
    """Set logarithmic scales with plain numbers, and ticks at the sizes that were tried."""
    from matplotlib import ticker

    ax.set(xscale="log", yscale="log")
    ax.set_xticks(sizes, [f"{n:,.0f}" for n in sizes])
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda d, _: f"{d:g}"))
    ax.yaxis.set_minor_locator(ticker.NullLocator())
