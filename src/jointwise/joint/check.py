"""The check of a density: a comparison with rows, which come as values or as bins, and its verdict in words.

Every column is cut into a few sets: values that repeat, intervals, the two sides of each edge. For each set of a
column, alone and given each set of another column, the model's probability is compared with the share of the rows.
The model's means are compared with those of the rows. See :mod:`jointwise.joint.comparison` for what noise explains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from jointwise._checks import listed
from jointwise._typing import CodeArray, FloatArray
from jointwise.axes import Axis, BinnedAxis
from jointwise.joint.cells import Cells, axis_of_values, cells_of_bins
from jointwise.joint.check_columns import column_findings
from jointwise.joint.check_pairs import MOST_PARTNERS, PairChecks
from jointwise.joint.comparison import LEAST_ERROR, Aside, Comparison, Numbers, as_shown
from jointwise.joint.expert import Expert
from jointwise.joint.findings import REMEDIES, Finding
from jointwise.joint.questions import beyond_text, shortened, value_text
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Kind, Schema, Variable

# Most findings shown as text.
SHOWN = 10
# Most rows that are compared: with more, noise is far below any error that matters.
MOST_ROWS = 20_000
# Most pairs of cells that are counted. Wide tables are checked on fewer rows, to bound the time.
MOST_COUNTED = 100_000_000
# Most findings that a check keeps.
KEPT = 50


@dataclass(frozen=True)
class Check:
    """The result of comparing a density with rows.

    Parameters
    ----------
    findings : tuple of Finding
        Answers that are wrong beyond noise: the worst of each column and each pair of columns, the worst first.
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
        """Whether any error is large enough to call for action."""
        return any(finding.is_far for finding in self.findings)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns with errors far beyond noise, or with any error if none is far; the worst first."""
        chosen = [f for f in self.findings if f.is_far] or self.findings
        return tuple(dict.fromkeys(name for finding in chosen for name in finding.columns))

    @property
    def verdict(self) -> str:
        """The result in words: the worst answer, and what to do if it is far from the rows."""
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
        """Yield what to do for each kind of error, with the columns that have it."""
        found: dict[str, list[str]] = {}
        for finding in self.findings:
            if finding.is_far:
                # under a condition both columns are named: either may be the cause
                found.setdefault(REMEDIES[finding.kind], []).extend(finding.columns)
        for remedy, names in found.items():
            yield f"{listed(map(shortened, dict.fromkeys(names)), 5)}: {remedy}."

    def table(self) -> dict[str, list[Any]]:
        """Return the findings as columns, the worst first, from which a frame can be built."""
        rows = [vars(finding) | {"columns": ", ".join(finding.columns)} for finding in self.findings]
        return {field.name: [row[field.name] for row in rows] for field in fields(Finding)}

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


def check_rows(schema: Schema, mixture: Expert, X: FloatArray, rng: np.random.Generator) -> Check:
    """Compare a mixture with encoded rows.

    Parameters
    ----------
    schema : Schema of N variables
    mixture : Expert
    X : array of shape (n, N)
        NaN for gaps, -1 for categories unknown to the schema. If there are many rows, a sample is compared.
    rng : numpy.random.Generator
    """
    n_pairs = max(len(schema) * min(len(schema), MOST_PARTNERS), 1)
    X = _sample(_sample(X, MOST_ROWS, rng), max(MOST_COUNTED // n_pairs, 2_000), rng)
    X = np.where(np.isfinite(X), X, np.nan)
    cells: list[Cells] = []
    asides: list[Aside] = []
    numbers: list[Numbers] = []
    for n, variable in enumerate(schema):
        axis = axis_of_values(variable, X[:, n])
        cells.append(cells_of_bins(variable, axis, mixture.component_masses(n, axis), axis.index(X[:, n]), None))
        present = X[~np.isnan(X[:, n]), n]
        if variable.categories is None and len(present):
            ends = float(present.min()), float(present.max())
            asides += beyond_range(variable, n, mixture, ends, float(len(present)))
            numbers += _numbers(variable, n, mixture, X[:, n])
    comparison = Comparison(tuple(cells), mixture, asides=tuple(asides), numbers=tuple(numbers))
    return _check(as_shown(comparison, schema), rng)


def check_bins(
    schema: Schema,
    mixture: Expert,
    axes: Sequence[Axis],
    codes: CodeArray,
    weights: FloatArray | None,
    rng: np.random.Generator,
    *,
    repeats: float = 1.0,
    asides: Sequence[Aside] = (),
) -> Check:
    """Compare a mixture with rows whose values are known by their bins only.

    Parameters
    ----------
    schema : Schema of N variables
    mixture : Expert
    axes : sequence of N axes
    codes : array of shape (n, N)
        Bin of each cell; `n_bins` for a gap.
    weights : array of shape (n,), optional
        How often each row counts.
    rng : numpy.random.Generator
    repeats : float
        See `Comparison`.
    asides : sequence of Aside
        Ranges and single values to compare too, which bins do not show.
    """
    cells = tuple(
        cells_of_bins(v, axis, mixture.component_masses(n, axis), codes[:, n], weights)
        for n, (v, axis) in enumerate(zip(schema, axes, strict=True))
    )
    return _check(as_shown(Comparison(cells, mixture, weights, repeats, tuple(asides)), schema), rng)


def _check(comparison: Comparison, rng: np.random.Generator) -> Check:
    """Compare all columns and pairs of columns; of a very wide table, some pairs."""
    singles = list(_worst_of_each(column_findings(comparison)))
    pairs = PairChecks(comparison, rng)
    found = [*singles, *_worst_of_each(pairs.findings())]
    found.sort(key=lambda f: -f.severity)
    weights = comparison.weights
    n_columns = len(comparison.cells) - len(comparison.gaps)
    n_rows = len(comparison.cells[0].codes) if weights is None else weights.sum() / comparison.repeats
    return Check(tuple(found[:KEPT]), round(n_rows), n_columns, pairs.n_pairs)


def _worst_of_each(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield the worst finding of each column and each unordered pair of columns; "range" and "new" count apart."""
    worst: dict[tuple[str, frozenset[str]], Finding] = {}
    for finding in findings:
        if finding.error > LEAST_ERROR:
            key = finding.kind if finding.kind in {"range", "new"} else "", frozenset(finding.columns)
            if key not in worst or _weight(finding) > _weight(worst[key]):
                worst[key] = finding
    yield from worst.values()


def _weight(finding: Finding) -> float:
    """Error for the choice of the worst: a wrong single value says more than the interval around it."""
    return finding.error * (1.2 if finding.kind == "value" else 1.0)


def beyond_range(
    variable: Variable, n: int, mixture: Expert, ends: tuple[float, float], n_rows: float
) -> tuple[Aside, Aside]:
    """Return the sets below the smallest and above the largest of ``n_rows`` values of variable ``n``.

    The ends of a continuous variable are moved a little outward, to numbers with few digits.
    """
    low, high = _outward(*ends) if variable.kind is Kind.CONTINUOUS and not is_temporal(variable.dtype) else ends
    below, _, above = mixture.component_masses(n, BinnedAxis(np.array([np.nextafter(low, -np.inf), high])))
    return (
        Aside(variable.name, beyond_text(variable, low, above=False), "range", below, 0.0, n_rows),
        Aside(variable.name, beyond_text(variable, high, above=True), "range", above, 0.0, n_rows),
    )


def single_value(variable: Variable, n: int, mixture: Expert, value: float, share: float, n_rows: float) -> Aside:
    """Return the set of one value of variable ``n``, which a share of ``n_rows`` rows have."""
    dictionary, coefficients = mixture.factor(n)
    masses = dictionary.point_mass(np.array([value]))[0] @ coefficients
    return Aside(variable.name, value_text(variable, value), "value", masses, share, n_rows)


def _outward(low: float, high: float) -> tuple[float, float]:
    """Return the ends of a range, moved outward by at most a hundredth of it to numbers with few digits.

    >>> _outward(0.000372, 19.9381)
    (0.0, 20.0)
    """
    if not 1e-100 < high - low < 1e100:
        return low, high
    digits = 2 - int(np.floor(np.log10(high - low)))
    unit = 10.0**-digits
    below, above = round(np.floor(low / unit) * unit, digits), round(np.ceil(high / unit) * unit, digits)
    return min(float(below), low), max(float(above), high)


def _sample(X: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    """Return at most ``most`` of the rows, in order."""
    return X if len(X) <= most else X[np.sort(rng.choice(len(X), most, replace=False))]


def _numbers(variable: Variable, n: int, mixture: Expert, column: FloatArray) -> list[Numbers]:
    """Return the numbers of a column, if both they and the model have a mean and a variance."""
    if is_temporal(variable.dtype):
        return []
    with np.errstate(over="ignore", invalid="ignore"):  # huge numbers and heavy tails: no mean to compare
        dictionary, coefficients = mixture.factor(n)
        used = (coefficients > 0).any(axis=1)
        mean, var = dictionary.mean()[used], dictionary.var()[used]
        means, squares = mean @ coefficients[used], (var + mean**2) @ coefficients[used]
        usable = np.isfinite([means, squares, np.full_like(means, np.nanstd(column))]).all()
    return [Numbers(n, column, means, squares)] if usable else []


def _several(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _said(f: Finding) -> str:
    return f"{f.question} is {f.model:.3g} in the model and {f.rows:.3g} in {f.n_rows:,.0f} rows"
