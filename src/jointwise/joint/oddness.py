r"""How odd a row is, and each of its cells given the others.

The surprisal of a cell is :math:`-\log p(x_n \mid \text{other cells})`, which depends on the unit of a number. What it
is on average, the entropy of the column given the others, depends on the unit in the same way. The difference does
not, so it can be compared across columns of all kinds:

.. math:: s_n = -\log p(x_n \mid x_{-n}) - H(X_n \mid X_{-n})

Zero is a usual cell. A number k standard deviations from what a Gaussian expects has :math:`(k^2 - 1) / 2`. In the same
way a row has :math:`-\log f(x) - H(X)`; that falls by :math:`s_n` if cell n is forgotten. The entropies are means over
rows drawn from the density, the same in each call.
"""

from __future__ import annotations

import numpy as np

from jointwise._typing import BoolArray, FloatArray
from jointwise.joint.expert import Expert

# Rows drawn for the entropies, and the seed that makes them the same in each call. The standard error of a column's
# entropy is about 0.02 nats.
N_DRAWN, SEED = 2_000, 0


def drawn(mixture: Expert) -> FloatArray:
    """Return the rows whose mean surprisals are the entropies; shape (n, N)."""
    return mixture.sample(N_DRAWN, np.random.default_rng(SEED))


def surprisals(mixture: Expert, X: FloatArray) -> FloatArray:
    """-log p(cell | other cells) of encoded rows, NaN for a missing cell, inf for an impossible one; shape (n, N).

    The cells beside an impossible one are judged without it.
    """
    whole = mixture.logpdf(X)
    out = np.full(X.shape, np.nan)
    dead = np.isneginf(whole)
    if dead.any():
        possible = mixture.without_impossible_cells(X[dead])
        out[dead] = surprisals(mixture, possible)
        out[dead] = np.where(np.isnan(possible) & ~np.isnan(X[dead]), np.inf, out[dead])
    fine = np.flatnonzero(~dead)
    for n in range(mixture.n_variables):
        rows = fine[~np.isnan(X[fine, n])]
        out[rows, n] = without(mixture, X[rows], n) - whole[rows]
    return out


def without(mixture: Expert, X: FloatArray, n: int) -> FloatArray:
    """Log-density of encoded rows whose cell ``n`` is forgotten; shape (rows,)."""
    X = X.copy()
    X[:, n] = np.nan
    return mixture.logpdf(X)


def usual_surprisals(mixture: Expert) -> FloatArray:
    """H(X_n | other columns) of each column, in nats; shape (N,)."""
    return np.asarray(surprisals(mixture, drawn(mixture)).mean(axis=0))


class RowOddness:
    """How odd rows with the same known columns are: -log f(x) - H(X), and the share of rows that are as odd.

    Parameters
    ----------
    mixture : Expert
    known : array of shape (N,)
        Which columns are known.
    """

    def __init__(self, mixture: Expert, known: BoolArray) -> None:
        self._mixture = mixture
        self._known = known
        self._sorted = np.sort(-mixture.logpdf(np.where(known, drawn(mixture), np.nan)))
        self._entropy = float(self._sorted.mean())

    def of(self, x: FloatArray) -> tuple[float, float]:
        """Return the oddness of an encoded row (N,) in nats, and the share of drawn rows that are at least as odd."""
        found = float(-self._mixture.logpdf(np.where(self._known, x, np.nan)[None])[0])
        above = len(self._sorted) - int(np.searchsorted(self._sorted, found))
        return found - self._entropy, above / len(self._sorted)
