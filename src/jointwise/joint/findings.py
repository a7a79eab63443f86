"""The result of a check: answers of a model that the rows contradict, and a verdict in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from jointwise._checks import listed
from jointwise.joint.questions import shortened

# Errors beyond noise that call for action: of a share of all rows, and of a share under a condition, which concerns
# fewer rows. Fits of well-known tables stay below both, unless a spike is missed or columns are nearly functions of
# each other.
FAR, FAR_GIVEN = 0.05, 0.1
# Most findings shown as text.
SHOWN = 10
# What to do, by kind of finding.
REMEDIES = {
    "range": "the model reaches beyond the values that occur; give such a column bounds (supports=)",
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
        "value" (a single number), "category", "interval", "range" (beyond all rows), "new" (categories unknown to the
        model), "mean", or "given" for any answer under a condition.
    columns : tuple of str
        Columns concerned, the one asked for first.
    model : float
        Answer of the model.
    rows : float
        Answer of the rows.
    n_rows : float
        Number of rows that the answer rests on; with weights, the number of rows that they are worth.
    noise : float
        Standard error of the rows' answer if the model were right.
    error : float
        Error that noise does not explain: the model's answer is at least this far from the truth. Under a condition, it
        excludes the error that the column has without one. The error of a mean is stated as one of a probability: 0.4
        for a standard deviation, as for a bell curve near its middle.
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
        """Error divided by the error that calls for action; above one it is far beyond noise."""
        return self.error / (FAR_GIVEN if self.kind == "given" else FAR)

    @property
    def is_far(self) -> bool:
        """Whether the error is large enough to call for action."""
        return self.severity > 1


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


def _several(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _said(f: Finding) -> str:
    return f"{f.question} is {f.model:.3g} in the model and {f.rows:.3g} in {f.n_rows:,.0f} rows"
