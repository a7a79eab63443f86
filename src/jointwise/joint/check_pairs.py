"""The check of each column given another: shares of sets and means, for each ordered pair of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from jointwise._typing import FloatArray, IntArray
from jointwise.engines.base import bin_starts
from jointwise.engines.compiled_shares import SetsOfColumns
from jointwise.joint.cells import Cells, Subset
from jointwise.joint.comparison import GIVEN_ROWS, PER_DEVIATION, Comparison, Noise, standard_error
from jointwise.joint.events import Values
from jointwise.joint.findings import Finding
from jointwise.joint.questions import shortened

# Up to this many columns all pairs are compared; in wider tables each column is compared with this many others, drawn
# at random.
MOST_PARTNERS = 150
# Most tables of pairs of columns where each has to be asked for.
MOST_TABLES = 300
# Cells of a pair of columns for which the exact interval is computed: those of the largest approximate error.
EXACT = 3
# Answers that are compared at a time: more would leave the processor's cache.
TOGETHER = 60_000


class PairChecks:
    """The comparisons of each column given another.

    Parameters
    ----------
    comparison : Comparison
    rng : numpy.random.Generator
        Draws the pairs of a very wide table.
    """

    def __init__(self, comparison: Comparison, rng: np.random.Generator) -> None:
        self._all = comparison
        n_columns = len(comparison.cells)
        most = MOST_PARTNERS if self._by_components else min(max(MOST_TABLES // n_columns, 1), MOST_PARTNERS)
        self._partners = [self._without_own_gaps(j, _partners(j, n_columns, most, rng)) for j in range(n_columns)]
        self.n_pairs = len(_unordered(self._partners))
        self._given = [self._conditions(cells) for cells in comparison.cells]
        self._events = [_Events.of(cells, comparison) for cells in comparison.cells]
        self._stack = _Stack.of(self._events)
        self._sets = _sets(comparison, self._events, self._stack)
        self._moments = _Moments.of(comparison)
        with_means = set(self._moments.columns.tolist()) if self._by_components else set()
        self._tables = {} if self._by_components else self._asked_tables()
        self._noise = Noise(
            sum(
                len(given) * (len(self._events[k].subsets) + (k in with_means))
                for given, others in zip(self._given, self._partners, strict=True)
                for k in others.tolist()
            )
        )

    def _without_own_gaps(self, j: int, others: IntArray) -> IntArray:
        """Return partners but the one that tells the gaps of column ``j``: a value that is shown is never missing."""
        gaps = self._all.gaps
        own = [gaps.get(j, -1), *(column for column, gap in gaps.items() if gap == j)]
        return others[~np.isin(others, own)]

    def _conditions(self, cells: Cells) -> list[Subset]:
        """Return the sets of a column that enough rows meet, but not all, and that are possible in the model."""
        members, counts = cells.members(cells.given), self._all.counts(cells)
        held = members @ counts / self._all.repeats
        use = (held >= GIVEN_ROWS) & (held < counts.sum() / self._all.repeats)
        use &= members @ cells.masses @ self._all.mixing > 0
        return [subset for subset, used in zip(cells.given, use, strict=True) if used]

    def findings(self) -> Iterator[Finding]:
        """Yield the largest errors of each ordered pair of columns."""
        for j, others in enumerate(self._partners):
            if self._given[j] and len(others):
                given = self._all.cells[j].members(self._given[j])
                parts = self._parts(others, len(given))
                if not self._by_components:
                    for part in parts:
                        yield from self._shares(j, part, given, self._from_tables(j, part, given))
                    continue
                joint = (given @ self._all.cells[j].masses) * self._all.mixing
                posterior = joint / joint.sum(axis=1, keepdims=True)
                for part in parts:
                    yield from self._shares(j, part, given, self._from_components(part, posterior))
                yield from self._means(j, others, given, posterior)

    def _parts(self, others: IntArray, n_given: int) -> list[IntArray]:
        """Return columns in parts with about `TOGETHER` answers each, under ``n_given`` conditions."""
        answers = np.cumsum(np.diff(self._stack.first)[others]) * n_given
        return np.split(others, np.flatnonzero(np.diff(answers // TOGETHER)) + 1)

    @property
    def _by_components(self) -> bool:
        """Whether the posterior of the component tells the answers; else pairs of cells are asked for one by one.

        Means under conditions are compared in the first case only.
        """
        return self._all.model.has_independent_components

    def _from_components(self, others: IntArray, posterior: FloatArray) -> FloatArray:
        """Return the model's probability of the other columns' sets from posteriors of shape (G, F); shape (E, G)."""
        asked, block = self._stack.sets_of(others)
        answers = self._stack.masses[asked] @ posterior.T
        for i, k in enumerate(others.tolist()):
            if k in self._all.gaps:  # of values that are shown
                answers[block == i] /= posterior @ self._all.shown(k)
        return answers

    def _from_tables(self, j: int, others: IntArray, given: FloatArray) -> FloatArray:
        """Return the model's probability of the other columns' sets given each set of column ``j``; shape (E, G)."""
        cells = self._all.cells
        alone = given @ cells[j].masses @ self._all.mixing
        answers = []
        for k in others.tolist():
            joint = given @ self._table(j, k)
            whole = joint.sum(axis=1) if k in self._all.gaps else alone  # of values that are shown
            answers.append(self._events[k].members @ joint.T / np.maximum(whole, 1e-300))
        return np.vstack(answers)

    def _table(self, j: int, k: int) -> FloatArray:
        """Return the model's probability of each pair of cells of two columns; shape (K_j, K_k)."""
        return self._tables[j, k] if j < k else self._tables[k, j].T

    def _asked_tables(self) -> dict[tuple[int, int], FloatArray]:
        """Return `_table` of all pairs that are compared, by their positions, the smaller one first."""
        regions = {n: cells.regions for n, cells in enumerate(self._all.cells)}
        asked = [others if given else others[:0] for given, others in zip(self._given, self._partners, strict=True)]
        groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}  # by the gaps of their columns
        for j, k in _unordered(asked).tolist():
            gaps = tuple(gap for n, gap in self._all.gaps.items() if n in (j, k))
            groups.setdefault(gaps, []).append((j, k))
        tables: dict[tuple[int, int], FloatArray] = {}
        for gaps, pairs in groups.items():
            shown = {gap: Values((0.0,)) for gap in gaps}
            model = self._all.model.condition(shown) if shown else self._all.model
            own = {n: regions[n] for n in sorted({n for pair in pairs for n in pair})}
            tables |= zip(pairs, model.pair_tables(own, pairs), strict=True)
        return tables

    def _shares(self, j: int, others: IntArray, given: FloatArray, answers: FloatArray) -> Iterator[Finding]:
        """Compare the shares of the other columns' sets given each set of column ``j`` with the model's answers."""
        asked, block = self._stack.sets_of(others)
        repeats = self._all.repeats
        hits, totals, beyond = self._sets.compared(
            j, others, given, answers, self._noise.z**2 * repeats, GIVEN_ROWS * repeats
        )
        found = np.flatnonzero(beyond)  # the many that noise explains are put aside first
        if not len(found):
            return
        at = np.divmod(found, len(given))
        column, own = block[at[0]], self._stack.own_errors[asked[at[0]]]
        of = totals[column, at[1]]
        p, share, n = np.clip(answers[at], 0.0, 1.0), hits[at] / of, of / repeats
        rough = self._noise.approximate(p, share, n) - own
        kept = _best_of_columns(rough, column, at[1], at[0])
        error = self._noise.exact(p[kept], share[kept], n[kept]) - own[kept]
        for i, e in zip(kept[error > 0].tolist(), error[error > 0].tolist(), strict=True):
            k = int(others[column[i]])
            event = self._events[k].subsets[asked[at[0][i]] - self._stack.first[k]]
            question = f"P({event.text} | {self._given[j][at[1][i]].text})"
            numbers = map(float, (p[i], share[i], n[i], standard_error(p[i], n[i]), e))
            yield Finding(question, "given", (self._all.cells[k].name, self._all.cells[j].name), *numbers)

    def _means(self, j: int, others: IntArray, given: FloatArray, posterior: FloatArray) -> Iterator[Finding]:
        """Compare the means of the other columns given each set of column ``j``; yield the worst of each."""
        moments = self._moments
        use = np.flatnonzero(np.isin(moments.columns, others))
        if not len(use):
            return
        cells = self._all.cells[j]
        # one row per cell of column j, with ones at the table's rows in that cell
        rows = sparse.csr_matrix(
            (np.ones(len(cells.codes)), (cells.codes, np.arange(len(cells.codes)))),
            shape=(cells.n_cells + 1, len(cells.codes)),
        )[:-1]
        count, sums, squares = (
            given @ (rows @ table[:, use]) for table in (moments.counts, moments.sums, moments.squares)
        )
        n = count / self._all.repeats
        enough = n >= GIVEN_ROWS
        count = np.where(enough, count, 1.0)
        mean, model = sums / count, posterior @ moments.means[:, use]
        variance = np.maximum(squares / count - mean**2, posterior @ moments.seconds[:, use] - model**2)
        noise = np.sqrt(np.maximum(variance, 0.0) / np.maximum(n, 1.0))
        error = self._noise.of_means(model - mean, noise) - moments.own_errors[use] * PER_DEVIATION
        error = np.where(enough, np.maximum(error, 0.0), 0.0)
        for m, i in enumerate(np.argmax(error, axis=0)):
            if not error[i, m] > 0:
                continue
            name = self._all.cells[moments.columns[use[m]]].name
            centre, spread = moments.centres[use[m]], moments.spreads[use[m]]
            answers = model[i, m] * spread + centre, mean[i, m] * spread + centre, n[i, m], noise[i, m] * spread
            question = f"E[{shortened(name)} | {self._given[j][i].text}]"
            yield Finding(question, "given", (name, cells.name), *map(float, (*answers, error[i, m])))


@dataclass(frozen=True, eq=False)
class _Events:
    """The sets of a column that are compared under conditions, and the error of each without a condition."""

    subsets: tuple[Subset, ...]
    members: FloatArray
    masses: FloatArray
    own_errors: FloatArray

    @classmethod
    def of(cls, cells: Cells, comparison: Comparison) -> _Events:
        # categories unknown to the model are compared in the column alone
        subsets = tuple(subset for subset in cells.asked if subset.kind != "new")
        members, counts = cells.members(subsets), comparison.counts(cells)
        masses = members @ cells.masses
        own = masses @ comparison.mixing - members @ counts / max(float(counts.sum()), 1e-300)
        return cls(subsets, members, masses, np.abs(own))


@dataclass(frozen=True, eq=False)
class _Stack:
    """The sets of all N columns, one after another: E in all.

    Parameters
    ----------
    first : array of shape (N + 1,)
        Where the sets of each column begin, and the number of all.
    masses : array of shape (E, F)
    own_errors : array of shape (E,)
    """

    first: IntArray
    masses: FloatArray
    own_errors: FloatArray

    @classmethod
    def of(cls, events: Sequence[_Events]) -> _Stack:
        return cls(
            bin_starts([len(e.subsets) for e in events]),
            np.concatenate([e.masses for e in events]),
            np.concatenate([e.own_errors for e in events]),
        )

    def sets_of(self, columns: IntArray) -> tuple[IntArray, IntArray]:
        """Return the sets of some columns, and for each the position of its column among these."""
        first, sizes = self.first[columns], np.diff(self.first)[columns]
        block = np.repeat(np.arange(len(columns)), sizes)
        return np.arange(len(block)) + (first - bin_starts(sizes.tolist())[:-1])[block], block


def _sets(comparison: Comparison, events: Sequence[_Events], stack: _Stack) -> SetsOfColumns:
    """Return the rows in cells and the sets that are compared, ready for passes."""
    codes = np.array([cells.codes for cells in comparison.cells], dtype=np.int64)
    subsets = [subset.cells for own in events for subset in own.subsets]
    return SetsOfColumns(
        codes=codes,
        n_cells=np.array([cells.n_cells for cells in comparison.cells]),
        weights=np.ones(codes.shape[1]) if comparison.weights is None else comparison.weights,
        first=stack.first,
        members=np.array([cell for cells in subsets for cell in cells], dtype=np.int64),
        ends=np.cumsum([len(cells) for cells in subsets]),
    )


@dataclass(frozen=True, eq=False)
class _Moments:
    """Moments of the M columns of numbers, of rows and of components, in units of each column's spread.

    Parameters
    ----------
    columns : array of shape (M,)
        Positions of the columns.
    centres, spreads : arrays of shape (M,)
        Mean and standard deviation of each column.
    counts, sums, squares : arrays of shape (n, M)
        Weight of each row, alone and times the number and its square; zero for gaps.
    means, seconds : arrays of shape (F, M)
        First and second moments of the components.
    own_errors : array of shape (M,)
        Error of each mean without a condition.
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
    def of(cls, comparison: Comparison) -> _Moments:
        n_rows = len(comparison.cells[0].codes)
        X = np.column_stack([np.empty((n_rows, 0)), *(v.values for v in comparison.numbers)])
        centres, spreads = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        use = np.flatnonzero(spreads > 0)
        chosen = [comparison.numbers[i] for i in use]
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


def _partners(j: int, n_columns: int, most: int, rng: np.random.Generator) -> IntArray:
    """Return the columns to compare column ``j`` with: all others, or a sample of very many."""
    others = np.delete(np.arange(n_columns), j)
    return others if n_columns <= most else np.sort(rng.choice(others, most, replace=False))


def _unordered(partners: Sequence[IntArray]) -> IntArray:
    """Return the pairs of a column and its partners, each pair once, the smaller position first; shape (P, 2).

    >>> _unordered([np.array([1, 2]), np.array([0]), np.array([], dtype=int)]).tolist()
    [[0, 1], [0, 2]]
    """
    n, first = len(partners), np.repeat(np.arange(len(partners)), [len(others) for others in partners])
    second = np.concatenate(partners)
    return np.stack(np.divmod(np.unique(np.minimum(first, second) * n + np.maximum(first, second)), n), axis=1)


def _best_of_columns(values: FloatArray, columns: IntArray, *order: IntArray) -> IntArray:
    """Return the places of the `EXACT` largest positive values of each column; equal ones in the order given."""
    at = np.lexsort((*order[::-1], -values, columns))
    at = at[values[at] > 0]
    column = columns[at]
    return np.asarray(at[np.arange(len(at)) - np.searchsorted(column, column) < EXACT])
