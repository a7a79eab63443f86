"""Explanations: which cells make a row odd, and which moved a prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointwise._checks import shown
from jointwise._typing import FloatArray
from jointwise.joint import prediction
from jointwise.joint.expert import Expert
from jointwise.joint.oddness import CellOddness, RowOddness
from jointwise.joint.quantiles import Quantiles
from jointwise.tables.gaps import column_positions
from jointwise.tables.variables import Kind, Schema

# The interval in which a cell was expected holds this share.
EXPECTED_SHARE = 0.8
# Most cells that are forgotten one after the other.
MOST_FORGOTTEN = 5


@dataclass(frozen=True)
class OddCell:
    """A cell of a row, and what was expected there given the other cells.

    Parameters
    ----------
    name : str
    value : object
        What the row holds; None for a gap, which is a cell of the row if gaps are part of the model.
    surprisal : float
        In nats above that of a usual cell of the column; see `JointDensity.surprisal`.
    expected : object
        Best guess given the other cells.
    interval : (object, object) or None
        The middle 80% of what was expected; None for categories without an order.
    probability : float or None
        Probability of the value, for categories, or of the gap.
    oddness : float or None
        What is left of the row's oddness when this cell and those listed before it are forgotten; None where the list
        of forgotten cells had ended.
    """

    name: str
    value: Any
    surprisal: float
    expected: Any
    interval: tuple[Any, Any] | None
    probability: float | None
    oddness: float | None

    def __str__(self) -> str:
        value = "missing" if self.value is None else f"= {shown(self.value)}"
        text = f"{self.name} {value}: {self.surprisal:+.1f} nats, expected {_short(self.expected)}"
        if self.interval is not None:
            text += f" ({_short(self.interval[0])} to {_short(self.interval[1])})"
        if self.probability is not None:
            text += f", probability {self.probability:.2g}"
        return text if self.oddness is None else f"{text}; oddness without it {self.oddness:+.1f}"


@dataclass(frozen=True)
class Oddness:
    """How odd a row is and which cells make it so.

    Parameters
    ----------
    oddness : float
        -log f(row), in nats above that of a usual row.
    share : float
        Share of rows, drawn from the density, that are at least as odd; a multiple of 1 / 2,000.
    cells : tuple of OddCell
        First those that one would forget one after the other, each with the largest fall of the oddness, then the
        others by their surprisal.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> found = hybrid(rng=0).explain({"x0": 40.0, "x1": 0.0})
    >>> found.cells[0].name, found.oddness > 5
    ('x0', True)
    """

    oddness: float
    share: float
    cells: tuple[OddCell, ...]

    def __str__(self) -> str:
        share = f"{self.share:.1%}" if self.share else "fewer than 0.05%"
        return "\n".join([f"oddness {self.oddness:+.1f} nats; {share} of rows are as odd", *map(str, self.cells)])


@dataclass(frozen=True)
class Reason:
    """A cell, and how it moved the prediction of another: the prediction with it, less that without it."""

    name: str
    value: Any
    contribution: float

    def __str__(self) -> str:
        value = "missing" if self.value is None else f"= {shown(self.value)}"
        return f"{self.name} {value}: {self.contribution:+.3g}"


@dataclass(frozen=True)
class Reasons:
    """What moved a prediction.

    Parameters
    ----------
    target : str
    prediction : object
        Best guess from all cells.
    unit : str
        What contributions are measured in: the target itself, or the log-probability of the predicted category.
    cells : tuple of Reason
        The largest first. They need not add up: cells that say the same each add little.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> found = hybrid(rng=0).explain({"x0": 3.0, "x1": 0.0}, "x2")
    >>> found.target, sorted(cell.name for cell in found.cells)
    ('x2', ['x0', 'x1'])
    """

    target: str
    prediction: Any
    unit: str
    cells: tuple[Reason, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.target}: {_short(self.prediction)}, moved ({self.unit}) by", *map(str, self.cells)])


def explain_oddness(schema: Schema, mixture: Expert, cells: CellOddness, rows: RowOddness, x: FloatArray) -> Oddness:
    """Explain one encoded row (N,) with a known cell or more."""
    places = column_positions(schema)
    oddness, share = rows.share(x)
    found = cells.of(x[None])[0]
    left = dict(_forgotten(places, cells, rows, x))
    rest = [int(k) for k in np.argsort(-found) if not np.isnan(found[k]) and k not in left]
    told = [_odd_cell(schema, mixture, places[k], x, found[k], left.get(k)) for k in [*left, *rest]]
    return Oddness(oddness, share, tuple(told))


def _forgotten(
    places: list[list[int]], cells: CellOddness, rows: RowOddness, x: FloatArray
) -> Iterator[tuple[int, float]]:
    """Yield columns in the order in which one would forget them, with the oddness left, while that is above zero."""
    x = x.copy()
    for _ in range(MOST_FORGOTTEN):
        gains = cells.of(x[None])[0]
        k = int(np.argmax(np.nan_to_num(gains, nan=-np.inf, posinf=np.inf)))
        if np.sum(~np.isnan(gains)) < 2 or gains[k] <= 0:
            return
        x[places[k]] = np.nan
        left, _ = rows.share(x)
        yield k, left
        if left <= 0:
            return


def _odd_cell(
    schema: Schema, mixture: Expert, place: list[int], x: FloatArray, surprisal: float, left: float | None
) -> OddCell:
    n, *tells = place
    variable, row = schema.variables[n], x[None].copy()
    row[:, place] = np.nan
    guess = variable.settle(prediction.best_values(mixture, n, variable.kind, row))
    interval, probability = None, None
    if variable.kind is not Kind.CATEGORICAL or variable.ordered:
        ends = Quantiles.of(EXPECTED_SHARE).of_rows(mixture, n, variable, row)[0]
        interval = (variable.decode_value(ends[0]), variable.decode_value(ends[1]))
    value, expected = None, variable.decode_value(float(guess[0]))
    if np.isnan(x[n]):
        probability = float(prediction.category_probabilities(mixture, tells[0], row, 2)[0, 1])
    else:
        value = variable.decode_value(float(x[n]))
        if variable.categories is not None:
            known = prediction.category_probabilities(mixture, n, row, len(variable.categories))[0]
            probability = float(known[int(x[n])]) if x[n] >= 0 else 0.0
    return OddCell(variable.name, value, float(surprisal), expected, interval, probability, left)


def contributions(schema: Schema, mixture: Expert, n: int, X: FloatArray) -> FloatArray:
    """How each cell moved the prediction of variable ``n``: with all, less without this one; shape (rows, columns).

    A number's prediction is its conditional mean, a category's the log-probability of the one that all cells predict.
    NaN where nothing is known of a cell, and for variable ``n`` itself.
    """
    kind, places = schema.variables[n].kind, column_positions(schema)
    chosen = prediction.best_values(mixture, n, kind, X) if kind is Kind.CATEGORICAL else np.empty(0)

    def predicted(rows: FloatArray) -> FloatArray:
        if kind is not Kind.CATEGORICAL:
            return prediction.expectations(mixture, n, rows)
        codes = chosen.astype(np.intp)
        known = prediction.category_probabilities(mixture, n, rows, int(mixture.dictionary(n).mode().max()) + 1)
        return np.asarray(np.log(known[np.arange(len(rows)), codes]))

    whole = predicted(X)
    out = np.full((len(X), len(places)), np.nan)
    for k, place in enumerate(places):
        here = ~np.isnan(X[:, place]).all(axis=1)
        if n not in place and here.any():
            rest = X.copy()
            rest[:, place] = np.nan
            out[here, k] = (whole - predicted(rest))[here]
    return out


def explain_prediction(schema: Schema, mixture: Expert, n: int, x: FloatArray) -> Reasons:
    """Explain the prediction of variable ``n`` from the other cells of one encoded row (N,)."""
    variable, places = schema.variables[n], column_positions(schema)
    moved = contributions(schema, mixture, n, x[None])[0]
    guess = variable.settle(prediction.best_values(mixture, n, variable.kind, x[None]))
    unit = "log-probability" if variable.kind is Kind.CATEGORICAL else variable.name
    cells = []
    for k in np.argsort(-np.abs(moved)).tolist():
        if not np.isnan(moved[k]):
            own, value = schema.variables[places[k][0]], x[places[k][0]]
            cells.append(Reason(own.name, None if np.isnan(value) else own.decode_value(float(value)), float(moved[k])))
    return Reasons(variable.name, variable.decode_value(float(guess[0])), unit, tuple(cells))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else shown(value)
