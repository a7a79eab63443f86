"""A model and rows side by side, both in cells: every share and mean, and how far noise explains the difference.

With k of n rows in a set, the exact interval of Clopper and Pearson holds the true probability; its level allows for
the number of comparisons, so that all intervals hold together with probability 0.99. The distance of the model's
answer from its interval is then an error that noise does not explain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import betaincinv, ndtri

from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.joint.cells import Cells, Subset, shortened
from jointwise.joint.findings import Check, Finding

# Rows that a condition needs: of fewer, next to nothing could be told from noise.
GIVEN_ROWS = 30
# Probability that a model without error is found wrong anywhere; columns and pairs of columns have half of it each.
FALSE_ALARM = 0.01
# Errors no larger than this matter to nobody.
LEAST_ERROR = 0.005
# Shift of a probability near the middle of a bell curve for a shift by one standard deviation: by it an error of a mean
# is told in the same unit.
PER_DEVIATION = 0.4
# Findings that are kept.
KEPT = 50
# Columns of which all pairs are compared; in wider tables each column meets so many others, drawn at random.
MOST_PARTNERS = 150
# Cells of a pair of columns for which the exact interval is computed: those of the largest approximate error.
EXACT = 3


@dataclass(frozen=True, eq=False)
class Aside:
    """A set of a column that its cells do not tell apart, such as the values beyond all rows.

    Parameters
    ----------
    column : str
    text : str
        What a question calls it.
    kind : str
        As in `Finding`: "range" or "value".
    masses : array of shape (F,)
        Its probability under each component.
    share : float
        Share of the rows that lie there.
    n_rows : float
        Number of rows with a value.
    """

    column: str
    text: str
    kind: str
    masses: FloatArray
    share: float
    n_rows: float


@dataclass(frozen=True, eq=False)
class Values:
    """The numbers of a column, for its means.

    Parameters
    ----------
    position : int
        Of the column.
    values : array of shape (n,)
        NaN for gaps.
    means, squares : arrays of shape (F,)
        E[X | component] and E[X^2 | component].
    """

    position: int
    values: FloatArray
    means: FloatArray
    squares: FloatArray


@dataclass(frozen=True, eq=False)
class Comparison:
    """A model and rows, both in cells.

    Parameters
    ----------
    cells : tuple of Cells
        Of each column.
    mixing : array of shape (F,)
        Weights of the components.
    weights : array of shape (n,), optional
        How often each row counts.
    repeats : float
        Rows that count as one, where weights tell of no more rows than there are: noise is that of fewer.
    asides : tuple of Aside
    values : tuple of Values
    """

    cells: tuple[Cells, ...]
    mixing: FloatArray
    weights: FloatArray | None = None
    repeats: float = 1.0
    asides: tuple[Aside, ...] = ()
    values: tuple[Values, ...] = ()

    def check(self, rng: np.random.Generator) -> Check:
        """Compare all columns and pairs of columns, of very wide tables some pairs."""
        singles = list(_worst_of_each(_Singles(self).findings()))
        pairs = _Pairs(self, rng)
        found = [*singles, *_worst_of_each(pairs.findings())]
        found.sort(key=lambda f: -f.severity)
        n_rows = len(self.cells[0].codes) if self.weights is None else self.weights.sum() / self.repeats
        return Check(tuple(found[:KEPT]), round(n_rows), len(self.cells), pairs.n_pairs)


@dataclass(frozen=True)
class _Noise:
    """Intervals of the truth around what rows say, at a level that allows for many comparisons."""

    n_comparisons: int

    @property
    def level(self) -> float:
        """Probability that one side of one interval is missed."""
        return FALSE_ALARM / 2 / 2 / max(self.n_comparisons, 1)

    @property
    def z(self) -> float:
        return float(-ndtri(self.level))

    def approximate(self, p: FloatArray, share: FloatArray, n: FloatArray) -> FloatArray:
        """Distance of ``p`` from Wilson's interval around a share of n rows."""
        z2 = self.z**2 / n
        centre = (share + z2 / 2) / (1 + z2)
        half = np.sqrt(z2 * (share * (1 - share) + z2 / 4)) / (1 + z2)
        return np.asarray(np.abs(p - centre) - half)

    def exact(self, p: FloatArray, share: FloatArray, n: FloatArray) -> FloatArray:
        """Distance of ``p`` from the exact interval; zero inside."""
        k = share * n
        low = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), n - k + 1, self.level), 0.0)
        high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - self.level), 1.0)
        return np.maximum(np.maximum(low - p, p - high), 0.0)

    def of_means(self, gap: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the error of means beyond noise, both in units of the spread."""
        return np.maximum(np.abs(gap) - self.z * noise, 0.0) * PER_DEVIATION


def _deviation(p: FloatArray, n: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(p * (1 - p), 0.0) / n)


class _Singles:
    """Columns on their own: shares of sets, range, means."""

    def __init__(self, comparison: Comparison) -> None:
        self._all = comparison
        n_sets = sum(len(cells.asked) for cells in comparison.cells)
        self._noise = _Noise(n_sets + len(comparison.asides) + len(comparison.values))

    def findings(self) -> Iterator[Finding]:
        for cells in self._all.cells:
            yield from self._shares(cells)
        for aside in self._all.asides:
            p = float(np.clip(aside.masses @ self._all.mixing, 0.0, 1.0))
            n = aside.n_rows / self._all.repeats
            error = float(self._noise.exact(*(np.array([v]) for v in (p, aside.share, n)))[0])
            noise = float(_deviation(np.array(p), np.array(n)))
            yield Finding(f"P({aside.text})", aside.kind, (aside.column,), p, aside.share, n, noise, error)
        for values in self._all.values:
            yield from self._mean(values)

    def _shares(self, cells: Cells) -> Iterator[Finding]:
        counts = _counts(cells, self._all)
        total = counts.sum()
        if not total > 0:
            return
        members = cells.members(cells.asked)
        share, p = members @ counts / total, np.clip(members @ cells.masses @ self._all.mixing, 0.0, 1.0)
        n = np.full(len(p), total / self._all.repeats)
        error, noise = self._noise.exact(p, share, n), _deviation(p, n)
        for i in np.flatnonzero(error > LEAST_ERROR):
            kind = "interval" if cells.asked[i].kind == "side" else cells.asked[i].kind
            numbers = map(float, (p[i], share[i], n[i], noise[i], error[i]))
            yield Finding(f"P({cells.asked[i].text})", kind, (cells.name,), *numbers)

    def _mean(self, values: Values) -> Iterator[Finding]:
        present = ~np.isnan(values.values)
        x = values.values[present]
        w = np.ones(len(x)) if self._all.weights is None else self._all.weights[present]
        n = w.sum() / self._all.repeats
        mean, model = np.average(x, weights=w), values.means @ self._all.mixing
        spread = np.sqrt(np.average((x - mean) ** 2, weights=w))
        variance = max(spread**2, values.squares @ self._all.mixing - model**2)
        if not (n >= GIVEN_ROWS and spread > 0 and np.isfinite(variance)):
            return
        noise = np.sqrt(variance / n)
        error = self._noise.of_means((model - mean) / spread, noise / spread)
        name = self._all.cells[values.position].name
        yield Finding(f"E[{shortened(name)}]", "mean", (name,), *map(float, (model, mean, n, noise, error)))


class _Pairs:
    """Columns given another: shares of sets and means, of each ordered pair."""

    def __init__(self, comparison: Comparison, rng: np.random.Generator) -> None:
        self._all = comparison
        n_columns = len(comparison.cells)
        self._partners = [_partners(j, n_columns, rng) for j in range(n_columns)]
        self.n_pairs = len({(min(j, k), max(j, k)) for j, others in enumerate(self._partners) for k in others.tolist()})
        counts = [_counts(cells, comparison) for cells in comparison.cells]
        self._given = [self._conditions(cells, held) for cells, held in zip(comparison.cells, counts, strict=True)]
        self._events = [
            _Events.of(cells, held, comparison) for cells, held in zip(comparison.cells, counts, strict=True)
        ]
        self._numbers = _Numbers.of(comparison)
        numbers = set(self._numbers.columns.tolist())
        self._noise = _Noise(
            sum(
                len(given) * (len(self._events[k].subsets) + (k in numbers))
                for given, others in zip(self._given, self._partners, strict=True)
                for k in others.tolist()
            )
        )

    def _conditions(self, cells: Cells, counts: FloatArray) -> list[Subset]:
        """Sets of a column that enough rows meet, though not all, and that the model holds for possible."""
        members = cells.members(cells.given)
        held = members @ counts / self._all.repeats
        use = (held >= GIVEN_ROWS) & (held < counts.sum() / self._all.repeats)
        use &= members @ cells.masses @ self._all.mixing > 0
        return [subset for subset, used in zip(cells.given, use, strict=True) if used]

    def findings(self) -> Iterator[Finding]:
        for j, others in enumerate(self._partners):
            if self._given[j] and len(others):
                given = self._all.cells[j].members(self._given[j])
                joint = (given @ self._all.cells[j].masses) * self._all.mixing
                posterior = joint / joint.sum(axis=1, keepdims=True)
                yield from self._shares(j, others, given, posterior)
                yield from self._means(j, others, given, posterior)

    def _shares(self, j: int, others: IntArray, given: FloatArray, posterior: FloatArray) -> Iterator[Finding]:
        """Probabilities of what is asked of the others given each set of column ``j``."""
        events = [self._events[k] for k in others]
        block = np.repeat(np.arange(len(others)), [len(e.subsets) for e in events])
        tables = [given @ self._pair_counts(j, k) for k in others]
        # the last cell is that of gaps: rows with a gap in the column asked for are left out
        totals = np.stack([table[:, :-1].sum(axis=1) for table in tables], axis=1)[:, block]
        hits = np.hstack([table[:, :-1] @ e.members.T for table, e in zip(tables, events, strict=True)])
        own = np.concatenate([e.own_errors for e in events])
        p = np.clip(posterior @ np.vstack([e.masses for e in events]).T, 0.0, 1.0)
        n = totals / self._all.repeats
        enough = n >= GIVEN_ROWS
        with np.errstate(invalid="ignore", divide="ignore"):  # conditions that no row meets, left out by `enough`
            share = hits / totals
            rough = np.where(enough, self._noise.approximate(p, share, n) - own, -1.0)
        row, column = _best_of_blocks(rough, block)
        error = self._noise.exact(p[row, column], share[row, column], n[row, column]) - own[column]
        first = np.searchsorted(block, np.arange(len(others)))
        for i, c, e in zip(row.tolist(), column.tolist(), error.tolist(), strict=True):
            k = int(others[block[c]])
            event = self._events[k].subsets[c - first[block[c]]]
            question = f"P({event.text} | {self._given[j][i].text})"
            noise = _deviation(p[i, c], n[i, c])
            numbers = map(float, (p[i, c], share[i, c], n[i, c], noise, max(e, 0.0)))
            yield Finding(question, "given", (self._all.cells[k].name, self._all.cells[j].name), *numbers)

    def _pair_counts(self, j: int, k: int) -> FloatArray:
        """Rows in each cell of column ``j`` and of column ``k``, the last of which is that of gaps; (K_j, K_k + 1)."""
        left, right = self._all.cells[j], self._all.cells[k]
        size = right.n_cells + 1
        counts = np.bincount(left.codes * size + right.codes, self._all.weights, (left.n_cells + 1) * size)
        return counts.reshape(-1, size)[:-1].astype(np.float64)

    def _means(self, j: int, others: IntArray, given: FloatArray, posterior: FloatArray) -> Iterator[Finding]:
        """Means of the others given each set of column ``j``, of each the worst."""
        numbers = self._numbers
        use = np.flatnonzero(np.isin(numbers.columns, others))
        if not len(use):
            return
        cells = self._all.cells[j]
        # a row per cell of column j with ones at its rows
        rows = sparse.csr_matrix(
            (np.ones(len(cells.codes)), (cells.codes, np.arange(len(cells.codes)))),
            shape=(cells.n_cells + 1, len(cells.codes)),
        )[:-1]
        count, sums, squares = (
            given @ (rows @ table[:, use]) for table in (numbers.counts, numbers.sums, numbers.squares)
        )
        n = count / self._all.repeats
        enough = n >= GIVEN_ROWS
        count = np.where(enough, count, 1.0)
        mean, model = sums / count, posterior @ numbers.means[:, use]
        variance = np.maximum(squares / count - mean**2, posterior @ numbers.seconds[:, use] - model**2)
        noise = np.sqrt(np.maximum(variance, 0.0) / np.maximum(n, 1.0))
        error = self._noise.of_means(model - mean, noise) - numbers.own_errors[use] * PER_DEVIATION
        error = np.where(enough, np.maximum(error, 0.0), 0.0)
        for m, i in enumerate(np.argmax(error, axis=0)):
            name = self._all.cells[numbers.columns[use[m]]].name
            centre, spread = numbers.centres[use[m]], numbers.spreads[use[m]]
            told = model[i, m] * spread + centre, mean[i, m] * spread + centre, n[i, m], noise[i, m] * spread
            question = f"E[{shortened(name)} | {self._given[j][i].text}]"
            yield Finding(question, "given", (name, cells.name), *map(float, (*told, error[i, m])))


@dataclass(frozen=True, eq=False)
class _Events:
    """What is asked of a column under conditions: its sets, their probabilities under each component, own errors."""

    subsets: tuple[Subset, ...]
    members: FloatArray
    masses: FloatArray
    own_errors: FloatArray

    @classmethod
    def of(cls, cells: Cells, counts: FloatArray, comparison: Comparison) -> _Events:
        # categories that the model does not know are asked of the column alone
        subsets = tuple(subset for subset in cells.asked if subset.kind != "new")
        members = cells.members(subsets)
        masses = members @ cells.masses
        own = masses @ comparison.mixing - members @ counts / max(float(counts.sum()), 1e-300)
        return cls(subsets, members, masses, np.abs(own))


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The M columns of numbers, each in units of its spread, and the moments of the components in the same units.

    Parameters
    ----------
    columns : array of shape (M,)
        Their positions among all columns.
    centres, spreads : arrays of shape (M,)
    counts, sums, squares : arrays of shape (n, M)
        Weight of each row, and with it the number and its square; zero for gaps.
    means, seconds : arrays of shape (F, M)
    own_errors : array of shape (M,)
        Distance of the model's mean from that of the rows.
    """

    columns: IntArray
    centres: FloatArray
    spreads: FloatArray
    counts: FloatArray
    sums: FloatArray
    squares: FloatArray
    means: FloatArray
    seconds: FloatArray
    own_errors: FloatArray

    @classmethod
    def of(cls, comparison: Comparison) -> _Numbers:
        n_rows = len(comparison.cells[0].codes)
        X = np.column_stack([np.empty((n_rows, 0)), *(v.values for v in comparison.values)])
        centres, spreads = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        use = np.flatnonzero(spreads > 0)
        chosen = [comparison.values[i] for i in use]
        centres, spreads, X = centres[use], spreads[use], X[:, use]
        w = 1.0 if comparison.weights is None else comparison.weights[:, None]
        counts = np.where(np.isnan(X), 0.0, w)
        z = np.where(np.isnan(X), 0.0, (X - centres) / spreads)
        shape = (len(chosen), len(comparison.mixing))
        raw, squared = (np.array([getattr(v, k) for v in chosen]).reshape(shape).T for k in ("means", "squares"))
        means = (raw - centres) / spreads
        seconds = (squared - 2 * centres * raw + centres**2) / spreads**2
        own = comparison.mixing @ means - (counts * z).sum(axis=0) / np.maximum(counts.sum(axis=0), 1e-300)
        columns = np.array([v.position for v in chosen], dtype=np.int64)
        return cls(columns, centres, spreads, counts, counts * z, counts * z**2, means, seconds, np.abs(own))


def _counts(cells: Cells, comparison: Comparison) -> FloatArray:
    """Rows in each cell of a column, or the sum of their weights; shape (K,)."""
    return np.bincount(cells.codes, comparison.weights, cells.n_cells + 1)[:-1].astype(np.float64)


def _partners(j: int, n_columns: int, rng: np.random.Generator) -> IntArray:
    """Columns that column ``j`` is compared with: all others, of very many some."""
    others = np.delete(np.arange(n_columns), j)
    return others if n_columns <= MOST_PARTNERS else np.sort(rng.choice(others, MOST_PARTNERS, replace=False))


def _best_of_blocks(values: FloatArray, blocks: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of the `EXACT` largest values above zero in each block of columns."""
    row, column = np.nonzero(values > 0)
    order = np.lexsort((-values[row, column], blocks[column]))
    row, column = row[order], column[order]
    block = blocks[column]
    new: BoolArray = np.concatenate([[True], block[1:] != block[:-1]]) if len(block) else np.empty(0, dtype=bool)
    start = np.maximum.accumulate(np.where(new, np.arange(len(block)), 0))
    kept = np.arange(len(block)) - start < EXACT
    return row[kept], column[kept]


def _worst_of_each(findings: Iterator[Finding]) -> Iterator[Finding]:
    """The worst finding of each kind for each column or unordered pair of columns, those that matter."""
    worst: dict[tuple[str, frozenset[str]], Finding] = {}
    for finding in findings:
        if finding.error > LEAST_ERROR:
            key = finding.kind if finding.kind in {"range", "new"} else "", frozenset(finding.columns)
            if key not in worst or _weight(finding) > _weight(worst[key]):
                worst[key] = finding
    yield from worst.values()


def _weight(finding: Finding) -> float:
    """Error by which findings of a column compare: a single value that is wrong tells more than what lies around it."""
    return finding.error * (1.2 if finding.kind == "value" else 1.0)
