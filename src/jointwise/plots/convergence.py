"""How a fit went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise.exceptions import InputError
from jointwise.plots._figure import PALETTE, axes_or_new, bare, legend_beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A range of positive numbers wider than this is drawn on a logarithmic scale.
WIDE = 10.0


def plot_convergence(estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the objective of every stage of a fit against its steps; it falls from step to step.

    Parameters
    ----------
    estimator : JUPAD, or any other with ``stages_``
        A fitted one, with ``stages_``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from jointwise import JUPAD
    >>> from jointwise.datasets import hybrid
    >>> model = JUPAD(3, random_state=0).fit(hybrid(rng=0).sample(300, rng=1))
    >>> plot_convergence(model).get_xlabel()
    'step'
    """
    stages = getattr(estimator, "stages_", None)
    if not isinstance(stages, Mapping):
        raise InputError(f"plot_convergence needs a fitted estimator with `stages_`, got {type(estimator).__name__}.")
    if not stages:
        raise InputError("The fit took no steps, so there is nothing to draw: it has one column, or one component.")
    ax = axes_or_new(ax, 6.4, 3.8)
    for i, (name, solution) in enumerate(stages.items()):
        history = solution.history
        colour, ending = PALETTE[i % len(PALETTE)], "" if solution.converged else ", not converged"
        label = f"{name}: {solution.n_steps} step{'s' * (solution.n_steps != 1)}{ending}"
        ax.plot(range(len(history)), history, color=colour, lw=1.6, label=label)
        ax.plot(len(history) - 1, history[-1], "o" if solution.converged else "x", color=colour, ms=5)
    ends = np.concatenate([s.history[np.isfinite(s.history)] for s in stages.values()])
    if ends.min() > 0 and ends.max() > WIDE * ends.min():
        ax.set_yscale("log")
    if max(s.n_steps for s in stages.values()) > WIDE:
        ax.set_xscale("symlog", linthresh=1)  # the first steps gain most; step 0 has no logarithm
        ax.set_xlim(left=-0.1)
        ax.xaxis.set_major_formatter("{x:g}")
    ax.set(xlabel="step", ylabel="objective")
    bare(ax)
    legend_beside(ax)
    return ax
