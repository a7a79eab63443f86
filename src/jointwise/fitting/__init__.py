"""Fitting: where tables' counts, dictionaries and solvers meet.

:func:`fit` takes coded rows and :class:`Options` and returns a :class:`Fit`: the density, the :class:`Choice` behind
it, and how each stage went. :func:`fit_pairs` does the same from the counts of pairs alone. `rows` and `pairs` are the
two roads. `choice` chooses dictionaries, number of components and beta; `starts`, `atoms` and `average` are the stages
of a fit from rows, in the `order` of content; `possible` leaves no row impossible. `blocks` fits mixtures with a
Gaussian block, and `stack` weighs several fits. `held_out` checks a fit, and `checkpoint` keeps where a fit stands.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jointwise.fitting.held_out import Repeated
from jointwise.fitting.options import Options
from jointwise.fitting.pairs import fit_pairs
from jointwise.fitting.result import Choice, Fit
from jointwise.fitting.rows import fit_rows
from jointwise.rows.base import Rows

__all__ = ["Choice", "Fit", "Options", "fit", "fit_pairs", "fit_rows"]


def fit(
    rows: Rows,
    options: Options,
    rng: np.random.Generator,
    callback: Callable[[int, float], None] | None = None,
    *,
    repeated: Repeated | None = None,
) -> Fit:
    """Fit the joint density of coded rows, by the method that the options name; see `fit_rows` for the arguments."""
    rows = rows.on(options.device)
    if options.method == "rows":
        return fit_rows(rows, options, rng, callback, repeated=repeated)
    return fit_pairs(rows.pairs(), options, rng, callback)
