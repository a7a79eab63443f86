"""Findings of a check: answers of a model that the rows contradict, and what to do about them."""

from __future__ import annotations

from dataclasses import dataclass

# Errors beyond noise that call for action: of a share of all rows, and of a share under a condition, which concerns
# fewer rows. Fits of well-known tables stay below both, unless a spike is missed or columns are nearly functions of
# each other.
FAR, FAR_GIVEN = 0.05, 0.1
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

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> found = hybrid(rng=0).check(hybrid(rng=1).sample(2000, rng=0)).findings[0]
    >>> found.is_far, abs(found.model - found.rows) > found.noise
    (True, True)
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
