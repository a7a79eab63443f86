"""Random questions P(event | conditions) about a table of columns, and their answers by counting rows.

A question names one column in its event and two or three others in its conditions. Each column has a region, written as
`JointDensity.probability` takes it, in one of five forms:

========  =================================================
category  one category
set       two to four categories
spike     a number that many rows share, such as 0
side      x >= t or x <= t, written (t, None) or (None, t)
interval  a <= x <= b, written (a, b)
========  =================================================

If a column has spikes, t, a and b are taken from its other values, so that sides and intervals do not end at spikes. A
row with a gap in a column that a question names is not counted for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binom

Table = Mapping[str, np.ndarray]

N_QUESTIONS, MIN_ROWS = 60, 100
FORMS = ("category", "set", "spike", "side", "interval")
# A number in at least this share of the rows is a spike.
SPIKE = 0.05
# A region holds for at least this share of the training rows, and fails for at least this share.
LEAST_SHARE = 0.01
# Most draws for one question; beyond that the table is too small.
MOST_DRAWS = 10_000


@dataclass(frozen=True)
class Question:
    """P(event | given), both mappings of names to a value, an interval or a set; ``form`` is that of the event."""

    event: Mapping[str, Any]
    given: Mapping[str, Any]
    form: str

    def __str__(self) -> str:
        return f"P({_written(self.event)} | {_written(self.given)})"


@dataclass(frozen=True)
class Counted:
    """Answers by counting: the share of rows with the event among those that satisfy the conditions.

    Parameters
    ----------
    shares : array of shape (n,)
        One for each question; if no row satisfies the conditions, the share of the event in all rows.
    n_rows : array of shape (n,)
        Number of rows that satisfy the conditions.
    """

    shares: np.ndarray
    n_rows: np.ndarray


def halves(table: Table, seed: int) -> tuple[Table, Table]:
    """Split a table into two halves at random: training rows and held-out rows."""
    n = len(next(iter(table.values())))
    order = np.random.default_rng(seed).permutation(n)
    return rows(table, order[: n // 2]), rows(table, order[n // 2 :])


def rows(table: Table, chosen: np.ndarray) -> Table:
    """Return some rows of a table."""
    return {name: column[chosen] for name, column in table.items()}


# ---- asking --------------------------------------------------------------------------------------------------------


def make_questions(
    train: Table, held_out: Table, seed: int, n_questions: int = N_QUESTIONS, min_rows: int = MIN_ROWS
) -> list[Question]:
    """Draw random questions, cycling through the forms of events.

    Parameters
    ----------
    train : table
        Rows that values and thresholds are taken from.
    held_out : table
        At least `min_rows` of these must satisfy the conditions, whether or not the event holds in them.
    seed : int
    n_questions : int
    min_rows : int
        Least number of held-out rows that satisfy the conditions of a question.
    """
    rng = np.random.default_rng(seed)
    columns = {name: _Values.of(column) for name, column in train.items()}
    forms = [form for form in FORMS if any(form in values.forms for values in columns.values())]
    found: list[Question] = []
    for _ in range(MOST_DRAWS * n_questions):
        if len(found) == n_questions:
            return found
        question = _draw(columns, forms[len(found) % len(forms)], rng)
        if _is_informative(question, train) and count(held_out, [question]).n_rows[0] >= min_rows:
            found.append(question)
    raise ValueError(f"Only {len(found)} of {n_questions} questions have {min_rows} held-out rows; ask for fewer rows.")


@dataclass(frozen=True)
class _Values:
    """Values of one column that questions may name: its categories, or its spikes and its other numbers in order."""

    categories: tuple[Any, ...] = ()
    spikes: tuple[Any, ...] = ()
    others: tuple[Any, ...] = ()

    @classmethod
    def of(cls, column: np.ndarray) -> _Values:
        present = column[_known(column)]
        if column.dtype.kind not in "fiu":
            return cls(categories=tuple(sorted(set(present.tolist()))))
        values, counts = np.unique(present, return_counts=True)
        spikes = values[counts >= SPIKE * len(present)]
        others = np.sort(present[~np.isin(present, spikes)])
        return cls(spikes=tuple(spikes.tolist()), others=tuple((others if len(others) else present).tolist()))

    @property
    def forms(self) -> tuple[str, ...]:
        if self.categories:
            return ("category", "set") if len(self.categories) > 2 else ("category",)
        return ("spike", "side", "interval") if self.spikes else ("side", "interval")

    def region(self, form: str, rng: np.random.Generator) -> Any:
        if form == "category":
            return self.categories[rng.integers(len(self.categories))]
        if form == "set":
            size = rng.integers(2, min(4, len(self.categories) - 1) + 1)
            return frozenset(self.categories[i] for i in rng.choice(len(self.categories), size, replace=False))
        if form == "spike":
            return self.spikes[rng.integers(len(self.spikes))]
        if form == "side":
            end = self.others[rng.integers(len(self.others))]
            return (end, None) if rng.random() < 0.5 else (None, end)
        return tuple(self.others[i] for i in np.sort(rng.integers(len(self.others), size=2)))


def _draw(columns: Mapping[str, _Values], form: str, rng: np.random.Generator) -> Question:
    """Draw the columns of a question, then a region of each."""
    named = str(rng.choice([name for name, values in columns.items() if form in values.forms]))
    others = rng.choice([name for name in columns if name != named], size=rng.integers(2, 4), replace=False)
    given = {str(name): columns[str(name)].region(str(rng.choice(columns[str(name)].forms)), rng) for name in others}
    return Question({named: columns[named].region(form, rng)}, given, form)


def _is_informative(question: Question, train: Table) -> bool:
    """Return whether every region holds for some training rows and fails for some."""
    for name, region in (question.event | question.given).items():
        share = _holds(train[name], region)[_known(train[name])].mean()
        if not LEAST_SHARE <= share <= 1 - LEAST_SHARE:
            return False
    return True


def _written(regions: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_region(region)}" for name, region in regions.items())


def _region(region: Any) -> str:
    if isinstance(region, frozenset):
        return f"in {{{', '.join(sorted(map(str, region)))}}}"
    if not isinstance(region, tuple):
        return f"= {region}"
    low, high = region
    return f">= {low:g}" if high is None else f"<= {high:g}" if low is None else f"in {low:g}..{high:g}"


# ---- counting ------------------------------------------------------------------------------------------------------


def count(table: Table, questions: list[Question]) -> Counted:
    """Answer questions by counting rows."""
    shares, n_rows = [], []
    for question in questions:
        ((name, region),) = question.event.items()
        known, holds = _known(table[name]), _holds(table[name], region)
        chosen = known & np.logical_and.reduce([_holds(table[n], r) for n, r in question.given.items()])
        n_rows.append(int(chosen.sum()))
        shares.append(holds[chosen if n_rows[-1] else known].mean())
    return Counted(np.array(shares), np.array(n_rows))


def ignoring_conditions(table: Table, questions: list[Question]) -> np.ndarray:
    """Return the share of all rows in which the event of each question holds."""
    return count(table, [replace(question, given={}) for question in questions]).shares


def noise(counted: Counted, shares: np.ndarray) -> np.ndarray:
    r"""Return the mean absolute error of the true answers against counted ones.

    With n rows and probability p, the mean absolute error of the counted share is

    .. math:: E|X / n - p| = 2 \frac{k}{n} (1 - p) P(X = k), \quad k = \lfloor n p \rfloor + 1

    (de Moivre).

    Parameters
    ----------
    counted : Counted
        The counted answers.
    shares : array of shape (n,)
        The true answers, or the best estimates of them.
    """
    n = counted.n_rows
    k = np.floor(n * shares) + 1
    return np.asarray(2 * k / n * (1 - shares) * binom.pmf(k, n, shares))


def _known(column: np.ndarray) -> np.ndarray:
    """Return which cells are not gaps."""
    if column.dtype.kind == "f":
        return ~np.isnan(column)
    return np.asarray(np.not_equal(column, None), dtype=bool)


def _holds(column: np.ndarray, region: Any) -> np.ndarray:
    """Return in which rows a column lies in a region; a gap never does."""
    if isinstance(region, frozenset):
        return np.logical_or.reduce([column == value for value in region])
    if not isinstance(region, tuple):
        return np.asarray(column == region)
    low, high = region
    return (column >= (-np.inf if low is None else low)) & (column <= (np.inf if high is None else high))
