r"""Check: a density compared with rows, and what noise alone would give.

Every column is cut into a few sets: values that repeat, intervals, the two sides of each edge. For each set A of a
column, and given each set B of another one, the model's probability is compared with the share of the rows, and the
model's mean with theirs. With k of n rows in A, the exact interval of Clopper and Pearson holds the true probability;
its level allows for the number of comparisons, so that all intervals hold together with probability 0.99. The distance
of the model's answer from its interval is then an error that noise does not explain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import betaincinv, ndtri

from jointwise._checks import listed
from jointwise._typing import BoolArray, CodeArray, FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.joint.cells import Cells, axis_of_values, beyond_text, cells_of_bins, shortened
from jointwise.joint.mixture import ProductMixture
from jointwise.variables import Kind, Schema, Variable, is_temporal

# Rows that are compared at most: with more, noise is far below what matters.
MOST_ROWS = 20_000
# Rows that a condition needs: of fewer, next to nothing could be told from noise.
GIVEN_ROWS = 30
# Probability that a model without error is found wrong anywhere; columns and pairs of columns have half of it each.
FALSE_ALARM = 0.01
# Errors no larger than this matter to nobody.
LEAST_ERROR = 0.005
# Errors beyond noise that call for action: of a share of all rows, and of one given a condition.
FAR, FAR_GIVEN = 0.05, 0.1
# Shift of a probability near the middle of a bell curve for a shift by one standard deviation: by it an error of a mean
# is told in the same unit.
PER_DEVIATION = 0.4
# Findings that are kept, and shown as text.
KEPT, SHOWN = 50, 10
# Columns of which all pairs are compared; in wider tables each column meets so many others, drawn at random.
MOST_PARTNERS = 150
# Pairs of cells that are counted at most: it bounds the time for wide tables, by fewer rows.
MOST_COUNTED = 400_000_000
# Cells of a pair of columns for which the exact interval is computed: those of the largest approximate error.
EXACT = 3

REMEDIES = {
    "range": "the model reaches beyond the values that occur; give such a column atoms that end there (dictionaries=)",
    "value": "a value that repeats has another probability in the model; declare what the column is (kinds=), or give "
    "it a point mass there (dictionaries=)",
    "interval": "the column's own shape is missed; give it a finer dictionary (dictionaries=) or raise n_bins",
    "mean": "the column's own shape is missed; give it a finer dictionary (dictionaries=) or raise n_bins",
    "category": "its categories have other shares; fit the model to rows like these",
    "new": "the rows hold categories that the model does not know; fit it again with such rows",
    "given": "answers under conditions are diluted; raise n_components, or drop a column that is nearly a function of "
    "another",
}


@dataclass(frozen=True)
class Finding:
    """One answer of a model that the rows contradict.

    Parameters
    ----------
    question : str
        In the language of the command, such as ``P(cut=Ideal | table in 59..60)``.
    kind : str
        "value" of a number, "category", "interval", "range" (beyond all rows), "new" (categories the model does not
        know), "mean", or "given" for any answer under a condition.
    columns : tuple of str
        Columns concerned, the one asked for first.
    model : float
        The model's answer.
    rows : float
        That of the rows.
    n_rows : float
        Number of rows it rests on, or what their weights amount to.
    noise : float
        Standard error of the rows' answer if the model were right.
    error : float
        Error that noise does not explain: at least so far is the model's answer from the truth. Under a condition, what
        the column asked for errs on its own is taken off. That of a mean is told in the same unit, by the shift of
        probability that a shift of a bell curve makes: 0.4 for a standard deviation.
    """

    question: str
    kind: str
    columns: tuple[str, ...]
    model: float
    rows: float
    n_rows: float
    noise: float
    error: float

    @property
    def severity(self) -> float:
        """Error in units of that which calls for action: above one it is far beyond noise."""
        return self.error / (FAR_GIVEN if self.kind == "given" else FAR)

    @property
    def is_far(self) -> bool:
        """Whether the error is so large that something should be done."""
        return self.severity > 1


@dataclass(frozen=True)
class Check:
    """What a comparison of a density with rows has found.

    Parameters
    ----------
    findings : tuple of Finding
        Answers that are wrong beyond noise, the worst first; of each column and each pair of columns the worst.
    n_rows : int
        Rows compared.
    n_columns, n_pairs : int
        Columns and pairs of columns compared.

    Examples
    --------
    >>> wrong = Finding("P(gain=0)", "value", ("gain",), 0.016, 0.917, 20000.0, 0.001, 0.89)
    >>> check = Check((wrong,), 20000, 12, 66)
    >>> check.is_clean, check.is_far, check.columns
    (False, True, ('gain',))
    >>> Check((), 500, 3, 3).verdict
    'Nothing beyond noise in 500 rows: 3 columns, 3 pairs.'
    """

    findings: tuple[Finding, ...]
    n_rows: int
    n_columns: int
    n_pairs: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found beyond noise."""
        return not self.findings

    @property
    def is_far(self) -> bool:
        """Whether an error is so large that something should be done."""
        return any(finding.is_far for finding in self.findings)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns concerned: those of errors far beyond noise where there are such, the worst first."""
        chosen = [f for f in self.findings if f.is_far] or self.findings
        return tuple(dict.fromkeys(name for finding in chosen for name in finding.columns))

    @property
    def verdict(self) -> str:
        """What was found, in words: the worst answer, and what to do where it is far from the rows."""
        what = f"{_several(self.n_columns, 'column')}, {_several(self.n_pairs, 'pair')}"
        if self.is_clean:
            return f"Nothing beyond noise in {self.n_rows:,} rows: {what}."
        if not self.is_far:
            worst = self.findings[0]
            return (
                f"The largest error that noise does not explain in {self.n_rows:,} rows ({what}) is {worst.error:.2g}: "
                f"{_said(worst)}."
            )
        worst = next(f for f in self.findings if f.is_far)
        return " ".join([f"Far beyond noise in {self.n_rows:,} rows: {_said(worst)}.", *self._remedies()])

    def _remedies(self) -> Iterator[str]:
        """What to do, by kind of error, with the columns that have it."""
        found: dict[str, list[str]] = {}
        for finding in self.findings:
            if finding.is_far:
                # of a condition both columns are named, for either may be to blame
                found.setdefault(REMEDIES[finding.kind], []).extend(finding.columns)
        for remedy, names in found.items():
            yield f"{listed(map(shortened, dict.fromkeys(names)), 5)}: {remedy}."

    def table(self) -> dict[str, list[Any]]:
        """Return the findings as columns, the worst first; a frame takes them."""
        return {
            "question": [f.question for f in self.findings],
            "kind": [f.kind for f in self.findings],
            "columns": [", ".join(f.columns) for f in self.findings],
            "model": [f.model for f in self.findings],
            "rows": [f.rows for f in self.findings],
            "n_rows": [f.n_rows for f in self.findings],
            "noise": [f.noise for f in self.findings],
            "error": [f.error for f in self.findings],
        }

    def __str__(self) -> str:
        lines = [("question", "model", "rows", "of", "noise", "error")]
        for f in self.findings[:SHOWN]:
            numbers = (f"{f.model:.3g}", f"{f.rows:.3g}", f"{f.n_rows:,.0f}", f"{f.noise:.1g}", f"{f.error:.2g}")
            lines.append((f.question, *numbers))
        if len(lines) == 1:
            return self.verdict
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in lines
        ]
        return "\n".join([self.verdict, "", *shown])


def _several(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _said(f: Finding) -> str:
    return f"{f.question} is {f.model:.3g} in the model and {f.rows:.3g} in {f.n_rows:,.0f} rows"


# ---- what is compared ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Beyond:
    """The values of a column beyond all rows, on one side.

    Parameters
    ----------
    column : str
    text : str
        What a question calls it.
    masses : array of shape (F,)
        Its probability under each component.
    n_rows : float
        Number of rows, none of which lies there.
    """

    column: str
    text: str
    masses: FloatArray
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
    beyond : tuple of Beyond
    values : tuple of Values
    """

    cells: tuple[Cells, ...]
    mixing: FloatArray
    weights: FloatArray | None = None
    repeats: float = 1.0
    beyond: tuple[Beyond, ...] = ()
    values: tuple[Values, ...] = ()

    def check(self, rng: np.random.Generator) -> Check:
        """Compare all columns and pairs of columns, of very wide tables some pairs."""
        singles = list(_worst_of_each(_Singles(self).findings()))
        pairs = _Pairs(self, rng)
        found = [*singles, *_worst_of_each(pairs.findings())]
        found.sort(key=lambda f: -f.severity)
        n_rows = len(self.cells[0].codes) if self.weights is None else self.weights.sum() / self.repeats
        return Check(tuple(found[:KEPT]), round(n_rows), len(self.cells), pairs.n_pairs)


def check_rows(schema: Schema, mixture: ProductMixture, X: FloatArray, rng: np.random.Generator) -> Check:
    """Compare a mixture with encoded rows.

    Parameters
    ----------
    schema : Schema of N variables
    mixture : ProductMixture
    X : array of shape (n, N)
        NaN for gaps, -1 for categories that the schema does not know. Of many rows, a sample is compared.
    rng : numpy.random.Generator
    """
    X = X[np.sort(rng.choice(len(X), MOST_ROWS, replace=False))] if len(X) > MOST_ROWS else X
    X = _fewer(np.where(np.isfinite(X), X, np.nan), rng)
    cells: list[Cells] = []
    beyond: list[Beyond] = []
    values: list[Values] = []
    for n, variable in enumerate(schema):
        axis = axis_of_values(variable, X[:, n])
        masses = mixture.dictionaries[n].masses(axis) @ mixture.coefficients[n]
        cells.append(cells_of_bins(variable, axis, masses, axis.index(X[:, n]), None))
        present = X[~np.isnan(X[:, n]), n]
        if variable.categories is None and len(present):
            ends = float(present.min()), float(present.max())
            beyond += beyond_range(variable, n, mixture, ends, float(len(present)))
            values += _values(variable, n, mixture, X[:, n])
    return Comparison(tuple(cells), mixture.weights, beyond=tuple(beyond), values=tuple(values)).check(rng)


def check_bins(
    schema: Schema,
    mixture: ProductMixture,
    axes: Sequence[Axis],
    codes: CodeArray,
    weights: FloatArray | None,
    rng: np.random.Generator,
    *,
    repeats: float = 1.0,
    beyond: Sequence[Beyond] = (),
) -> Check:
    """Compare a mixture with rows of which only the bins are known.

    Parameters
    ----------
    schema : Schema of N variables
    mixture : ProductMixture
    axes : sequence of N axes
    codes : array of shape (n, N)
        As `encode_rows` makes them.
    weights : array of shape (n,), optional
        How often each row counts.
    rng : numpy.random.Generator
    repeats : float
        Rows that count as one; see `Comparison`.
    beyond : sequence of Beyond
        What is asked of the range, which bins do not tell.
    """
    cells = tuple(
        cells_of_bins(v, axis, mixture.dictionaries[n].masses(axis) @ mixture.coefficients[n], codes[:, n], weights)
        for n, (v, axis) in enumerate(zip(schema, axes, strict=True))
    )
    return Comparison(cells, mixture.weights, weights, repeats, tuple(beyond)).check(rng)


def beyond_range(
    variable: Variable, n: int, mixture: ProductMixture, ends: tuple[float, float], n_rows: float
) -> tuple[Beyond, Beyond]:
    """Return what lies beyond the smallest and the largest of so many values of variable ``n``.

    Of numbers both are taken a little further out, to short ones.
    """
    low, high = _outward(*ends) if variable.kind is Kind.CONTINUOUS and not is_temporal(variable.dtype) else ends
    masses = mixture.dictionaries[n].mass([-np.inf, high], [np.nextafter(low, -np.inf), np.inf])
    below, above = masses @ mixture.coefficients[n]
    return (
        Beyond(variable.name, beyond_text(variable, low, above=False), below, n_rows),
        Beyond(variable.name, beyond_text(variable, high, above=True), above, n_rows),
    )


def _outward(low: float, high: float) -> tuple[float, float]:
    """Return ends of a range a hundredth of it further out at most, with few digits.

    >>> _outward(0.000372, 19.9381)
    (0.0, 20.0)
    """
    if not 1e-100 < high - low < 1e100:
        return low, high
    digits = 2 - int(np.floor(np.log10(high - low)))
    unit = 10.0**-digits
    below, above = round(np.floor(low / unit) * unit, digits), round(np.ceil(high / unit) * unit, digits)
    return min(float(below), low), max(float(above), high)


def _fewer(X: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return fewer rows where the columns are so many that counting pairs would take long."""
    partners = min(X.shape[1], MOST_PARTNERS)
    most = max(MOST_COUNTED // max(X.shape[1] * partners, 1), 2_000)
    return X if len(X) <= most else X[np.sort(rng.choice(len(X), most, replace=False))]


def _values(variable: Variable, n: int, mixture: ProductMixture, column: FloatArray) -> list[Values]:
    """Return the numbers of a column in units of their spread, if both they and the model have a mean and a spread."""
    if is_temporal(variable.dtype):
        return []
    with np.errstate(over="ignore", invalid="ignore"):  # huge numbers and heavy tails: no mean to compare
        dictionary, coefficients = mixture.dictionaries[n], mixture.coefficients[n]
        used = (coefficients > 0).any(axis=1)
        mean, var = dictionary.mean()[used], dictionary.var()[used]
        means, squares = mean @ coefficients[used], (var + mean**2) @ coefficients[used]
        usable = np.isfinite([means, squares, np.full_like(means, np.nanstd(column))]).all()
    return [Values(n, column, means, squares)] if usable else []


# ---- comparisons ---------------------------------------------------------------------------------------------


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
        self._noise = _Noise(n_sets + len(comparison.beyond) + len(comparison.values))

    def findings(self) -> Iterator[Finding]:
        for cells in self._all.cells:
            yield from self._shares(cells)
        for side in self._all.beyond:
            p = float(np.clip(side.masses @ self._all.mixing, 0.0, 1.0))
            n = side.n_rows / self._all.repeats
            error = self._noise.exact(*(np.array([v]) for v in (p, 0.0, n)))[0]
            noise = float(_deviation(np.array(p), np.array(n)))
            yield Finding(f"P({side.text})", "range", (side.column,), p, 0.0, n, noise, float(error))
        for values in self._all.values:
            yield from self._mean(values)

    def _shares(self, cells: Cells) -> Iterator[Finding]:
        counts = np.bincount(cells.codes, self._all.weights, cells.n_cells + 1)[:-1]
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
        # an event that no row could show is asked of the column alone
        self._asked = [[s for s in cells.asked if s.kind != "new"] for cells in comparison.cells]
        self._given = [self._conditions(cells) for cells in comparison.cells]
        numbers = {values.position for values in comparison.values}
        self._noise = _Noise(
            sum(
                len(given) * (len(self._asked[k]) + (k in numbers))
                for given, others in zip(self._given, self._partners, strict=True)
                for k in others.tolist()
            )
        )

    def _conditions(self, cells: Cells) -> list[Any]:
        """Sets of a column that enough rows meet, though not all."""
        counts = np.bincount(cells.codes, self._all.weights, cells.n_cells + 1)[:-1] / self._all.repeats
        held = cells.members(cells.given) @ counts
        enough = (held >= GIVEN_ROWS) & (held < counts.sum())
        return [subset for subset, use in zip(cells.given, enough, strict=True) if use]

    def findings(self) -> Iterator[Finding]:
        for j, others in enumerate(self._partners):
            if self._given[j] and len(others):
                yield from self._given_column(j, others)

    def _given_column(self, j: int, others: IntArray) -> Iterator[Finding]:
        """All that is asked of other columns given the sets of column ``j``."""
        cells = self._all.cells
        given = cells[j].members(self._given[j])
        by_component = (given @ cells[j].masses) * self._all.mixing
        total = by_component.sum(axis=1)
        possible = total > 0
        given, by_component, total = given[possible], by_component[possible], total[possible]
        subsets = [subset for subset, use in zip(self._given[j], possible, strict=True) if use]
        if not subsets:
            return
        counts = given @ self._pair_counts(j, others)
        members = [cells[k].members(self._asked[k]) for k in others]
        blocks = np.repeat(np.arange(len(others)), [len(m) for m in members])
        # rows with a gap in the column asked for are left out: the last cell of each column is theirs
        padded = sparse.block_diag([np.pad(m, ((0, 0), (0, 1))) for m in members], format="csr")
        observed = sparse.block_diag([np.append(np.ones(cells[k].n_cells), 0.0)[None] for k in others], format="csr")
        n = np.asarray((observed @ counts.T).T)
        hits = np.asarray((padded @ counts.T).T)
        asked = np.vstack([m @ cells[k].masses for m, k in zip(members, others, strict=True)])
        p = np.clip(by_component @ asked.T / total[:, None], 0.0, 1.0)
        own = np.concatenate([self._own_errors(k) for k in others])
        yield from self._shares(j, others, subsets, blocks, p, hits, n[:, blocks], own)
        yield from self._means(j, others, subsets, by_component / total[:, None], given, n)

    def _own_errors(self, k: int) -> FloatArray:
        """How far the model is from the rows in what is asked of column ``k`` without a condition; shape (asked,)."""
        cells, members = self._all.cells[k], self._all.cells[k].members(self._asked[k])
        counts = np.bincount(cells.codes, self._all.weights, cells.n_cells + 1)[:-1]
        return np.asarray(np.abs(members @ (cells.masses @ self._all.mixing - counts / max(counts.sum(), 1e-300))))

    def _pair_counts(self, j: int, others: IntArray) -> FloatArray:
        """Rows in each cell of column ``j`` and each cell of the others, gaps being one; shape (K_j, sum of K + 1)."""
        cells = self._all.cells
        sizes = np.array([cells[k].n_cells + 1 for k in others])
        starts = np.cumsum(sizes) - sizes
        out = np.empty((cells[j].n_cells, int(sizes.sum())))
        for k, start, size in zip(others, starts, sizes, strict=True):
            keys = cells[j].codes * size + cells[k].codes
            table = np.bincount(keys, self._all.weights, (cells[j].n_cells + 1) * size)
            out[:, start : start + size] = table.reshape(-1, size)[:-1]
        return out

    def _shares(
        self,
        j: int,
        others: IntArray,
        subsets: list[Any],
        blocks: IntArray,
        p: FloatArray,
        hits: FloatArray,
        totals: FloatArray,
        own: FloatArray,
    ) -> Iterator[Finding]:
        n = totals / self._all.repeats
        enough = n >= GIVEN_ROWS
        with np.errstate(invalid="ignore", divide="ignore"):  # conditions that no row meets, left out by `enough`
            share = hits / totals
            rough = np.where(enough, self._noise.approximate(p, share, n) - own, -1.0)
        row, column = _best_of_blocks(rough, blocks)
        error = np.maximum(self._noise.exact(p[row, column], share[row, column], n[row, column]) - own[column], 0.0)
        asked = [(k, s) for k in others.tolist() for s in self._asked[k]]
        for i, c, e in zip(row.tolist(), column.tolist(), error, strict=True):
            k, event = asked[c]
            question = f"P({event.text} | {subsets[i].text})"
            names = self._all.cells[k].name, self._all.cells[j].name
            noise = _deviation(p[i, c], n[i, c])
            yield Finding(question, "given", names, *map(float, (p[i, c], share[i, c], n[i, c], noise, e)))

    def _means(
        self, j: int, others: IntArray, subsets: list[Any], posterior: FloatArray, given: FloatArray, totals: FloatArray
    ) -> Iterator[Finding]:
        place = {k: i for i, k in enumerate(others.tolist())}
        numbers = [values for values in self._all.values if values.position in place]
        if not numbers:
            return
        codes = self._all.cells[j].codes
        for values in numbers:
            present = ~np.isnan(values.values)
            x = values.values[present]
            centre, spread = x.mean(), x.std()
            if not spread > 0:
                continue
            x = (x - centre) / spread
            w = np.ones(len(x)) if self._all.weights is None else self._all.weights[present]
            sums, squares = (given @ np.bincount(codes[present], w * y, given.shape[1] + 1)[:-1] for y in (x, x**2))
            count = totals[:, place[values.position]]
            n = count / self._all.repeats
            enough = n >= GIVEN_ROWS
            count = np.where(enough, count, 1.0)
            mean, model = sums / count, (posterior @ values.means - centre) / spread
            second = posterior @ ((values.squares - 2 * centre * values.means + centre**2) / spread**2)
            variance = np.maximum(squares / count - mean**2, second - model**2)
            noise = np.sqrt(np.maximum(variance, 0.0) / np.maximum(n, 1.0))
            error = np.where(enough, self._noise.of_means(model - mean, noise), 0.0)
            i = int(np.argmax(error))
            name = self._all.cells[values.position].name
            told = map(
                float, (model[i] * spread + centre, mean[i] * spread + centre, n[i], noise[i] * spread, error[i])
            )
            names = name, self._all.cells[j].name
            yield Finding(f"E[{shortened(name)} | {subsets[i].text}]", "given", names, *told)


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
