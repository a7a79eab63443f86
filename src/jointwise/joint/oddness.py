r"""How odd a row is, and each of its cells given the others.

The surprisal of a cell is :math:`-\log p(x_n \mid \text{other cells})`, which depends on the unit of a number. What it
is on average, the entropy of the column given the others, depends on the unit in the same way. The difference does
not, so it can be compared across columns of all kinds:

.. math:: s_n = -\log p(x_n \mid x_{-n}) - H(X_n \mid X_{-n})

Zero is a usual cell. A number k standard deviations from what a Gaussian expects has :math:`(k^2 - 1) / 2`. In the same
way a row with the known columns K has

.. math:: -\log f(x_K) - H(X_K),

so rows with different gaps can be compared: each is measured against rows of which the same is known.

If gaps are part of the model, a cell tells whether it is there, and then what it shows. Both have a surprisal and an
entropy, the second among cells that are there, and those of a cell are added up. A row is then measured against rows
with the same gaps, and its gaps against those of all rows.

The entropies are means over rows drawn from the density, the same in each call.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from jointwise._typing import AnyArray, BoolArray, FloatArray
from jointwise.joint.expert import Expert
from jointwise.tables.gaps import column_positions, emptied
from jointwise.tables.variables import Schema

# Rows drawn for the entropies, and the seed that makes them the same in each call. The standard error of a column's
# entropy is about 0.02 nats.
N_DRAWN, SEED = 2_000, 0
# If rows have many patterns of gaps, each gets an equal part of so many drawn rows, and at least so many: then the
# standard error of the oddness of a row of ten numbers is 0.3 nats.
MOST_DRAWN, LEAST_DRAWN = 400_000, 50
# Drawn rows evaluated at once, and most patterns of gaps whose surprisals are kept (16 kB each).
BLOCK, MOST_KEPT = 65_536, 256


def drawn(mixture: Expert, n: int = N_DRAWN) -> FloatArray:
    """Return the rows whose mean surprisals are the entropies; shape (n, N)."""
    return mixture.sample(n, np.random.default_rng(SEED))


class CellOddness:
    """How odd the cells of rows are, each given the others of its row.

    Parameters
    ----------
    schema : Schema
    mixture : Expert
        Of the variables of the schema.

    Attributes
    ----------
    usual : two arrays of shape (columns,)
        H(X_n | other columns) of what cells show, and of whether they are there, in nats.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> f = hybrid(rng=0)
    >>> CellOddness(f.schema, f.mixture).of(np.array([[40.0, 0.0, np.nan, np.nan]])).round(1)[0, 2:]
    array([nan, nan])
    """

    def __init__(self, schema: Schema, mixture: Expert) -> None:
        self._mixture, self._cells = mixture, column_positions(schema)
        self.usual = tuple(map(_mean, self.surprisals(emptied(drawn(mixture), schema))))

    def of(self, X: FloatArray) -> FloatArray:
        """Surprisal of each cell of encoded rows (n, N), less the usual one of its column; shape (n, columns).

        NaN for a cell of which nothing is known, inf for an impossible one. The cells beside an impossible one are
        judged without it.
        """
        shown, gap = (part - usual for part, usual in zip(self.surprisals(X), self.usual, strict=True))
        known = ~(np.isnan(shown) & np.isnan(gap))
        return np.where(known, np.nan_to_num(shown, posinf=np.inf) + np.nan_to_num(gap, posinf=np.inf), np.nan)

    def surprisals(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """-log p of what each cell shows and of whether it is there, NaN where that is not known; (n, columns) each."""
        mixture, shape = self._mixture, (len(X), len(self._cells))
        shown, gap = np.full(shape, np.nan), np.full(shape, np.nan)
        whole = mixture.logpdf(X)
        dead = np.isneginf(whole)
        if dead.any():
            possible = mixture.without_impossible_cells(X[dead])
            gone = np.isnan(possible) & ~np.isnan(X[dead])
            shown[dead], gap[dead] = self.surprisals(possible)
            for k, cell in enumerate(self._cells):
                shown[np.flatnonzero(dead)[gone[:, cell].any(axis=1)], k] = np.inf
        for k, (n, *tells) in enumerate(self._cells):
            there = _rows(~dead & ~np.isnan(X[:, n]))
            forgotten = whole.copy()
            forgotten[there] = without(mixture, X[there], [n])
            shown[there, k] = forgotten[there] - whole[there]
            told = _rows(~dead & ~np.isnan(X[:, tells]).any(axis=1) if tells else np.zeros(len(X), dtype=bool))
            gap[told, k] = without(mixture, X[told], [n, *tells]) - forgotten[told]
        return shown, gap


class RowOddness:
    """How odd whole rows are: -log f(x) - H of what is known of the row.

    Parameters
    ----------
    schema : Schema
    mixture : Expert
        Of the variables of the schema.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> f = hybrid(rng=0)
    >>> odd = RowOddness(f.schema, f.mixture)
    >>> X = f.sample(4000, rng=1)
    >>> X[::2, 1:] = np.nan
    >>> bool(abs(odd.of(X)[::2].mean()) < 0.1), bool(abs(odd.of(X)[1::2].mean()) < 0.2)
    (True, True)
    """

    def __init__(self, schema: Schema, mixture: Expert) -> None:
        self._mixture = mixture
        self._tells = np.zeros(len(schema), dtype=bool)
        self._tells[[schema.index(name) for name in schema.gaps.values()]] = True
        self._kept: dict[bytes, FloatArray] = {}

    @cached_property
    def _drawn(self) -> FloatArray:
        return drawn(self._mixture)

    def of(self, X: FloatArray) -> FloatArray:
        """Oddness of encoded rows (n, N) in nats, infinite for an impossible one; shape (n,)."""
        patterns, place = np.unique(self._patterns(X), axis=0, return_inverse=True)
        m = int(np.clip(MOST_DRAWN // max(len(patterns), 1), LEAST_DRAWN, N_DRAWN))
        usual, size = np.empty(len(patterns)), max(BLOCK // m, 1)
        for start in range(0, len(patterns), size):
            some = patterns[start : start + size]
            of_values, gaps, of_gaps = self._typical(some, m)
            usual[start : start + size] = of_values.mean(axis=1) - gaps + of_gaps.mean(axis=1)
        found = -self._mixture.logpdf(X)
        return np.where(np.isinf(found), found, found - usual[place.reshape(-1)])

    def share(self, x: FloatArray) -> tuple[float, float]:
        """Return the oddness of one encoded row (N,), and the share of drawn rows that are at least as odd."""
        pattern = self._patterns(x[None])
        if pattern.tobytes() not in self._kept:
            (values,), (gaps,), (others,) = self._typical(pattern, N_DRAWN)
            if len(self._kept) == MOST_KEPT:
                self._kept.clear()
            self._kept[pattern.tobytes()] = values - gaps + others
        found, usual = float(-self._mixture.logpdf(x[None])[0]), self._kept[pattern.tobytes()]
        return (np.inf, 0.0) if found == np.inf else (float(found - usual.mean()), float(np.mean(usual >= found)))

    def _patterns(self, X: FloatArray) -> AnyArray:
        """What is known of each row: for a gap, 0 or 1, for a value, 1; -1 where nothing is; shape (n, N)."""
        told = np.where(self._tells, X, 1.0)
        return np.where(np.isnan(X), -1.0, told).astype(np.int8)

    def _typical(self, patterns: AnyArray, m: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Surprisals of m drawn rows of which the same is known as in each of some patterns (P, N).

        Returns
        -------
        values : array of shape (P, m)
            Of rows with the gaps of the pattern.
        gaps : array of shape (P,)
            Of the gaps of the pattern alone.
        others : array of shape (P, m)
            Of the gaps of rows drawn without regard to the pattern.
        """
        known, n_patterns = patterns >= 0, len(patterns)
        free = self._drawn[:m]
        told = np.where(known & self._tells, patterns, np.nan)
        if not (known & self._tells).any():
            nothing = np.zeros(n_patterns)
            return self._surprisal(free, known), nothing, np.zeros((n_patterns, 1))
        rows = self._mixture.complete(np.repeat(told, m, axis=0), np.random.default_rng(SEED))
        values = self._surprisal(rows.reshape(n_patterns, m, -1), known)
        return values, -self._mixture.logpdf(told), self._surprisal(free, known & self._tells)

    def _surprisal(self, rows: FloatArray, known: BoolArray) -> FloatArray:
        """-log f of the known columns (P, N) of drawn rows, (m, N) or (P, m, N); shape (P, m)."""
        masked = np.where(known[:, None, :], rows, np.nan)
        return -self._mixture.logpdf(masked.reshape(-1, masked.shape[-1])).reshape(masked.shape[:2])


def without(mixture: Expert, X: FloatArray, forgotten: list[int]) -> FloatArray:
    """Log-density of encoded rows some of whose cells are forgotten; shape (rows,)."""
    X = X.copy()
    X[:, forgotten] = np.nan
    return mixture.logpdf(X)


def _rows(chosen: BoolArray) -> AnyArray:
    return np.flatnonzero(chosen)


def _mean(part: FloatArray) -> FloatArray:
    """Mean of each column without NaN; zero where there is nothing else."""
    known = ~np.isnan(part)
    return np.asarray(np.where(known, part, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))
