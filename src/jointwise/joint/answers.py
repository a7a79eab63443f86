"""Answers to questions: a probability, a measure such as a mean, or the distribution of variables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._checks import shown
from jointwise.exceptions import InputError
from jointwise.joint.distribution import Distribution, distribution
from jointwise.joint.events import Alternatives, Point
from jointwise.joint.language import Question, parse_question
from jointwise.joint.questions import question_text
from jointwise.tables.variables import Kind, as_text

if TYPE_CHECKING:
    from jointwise.joint.density import JointDensity

# Levels of the quantiles in a summary, by name.
LEVELS = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
# Rows of a distribution that the printed form of an answer shows.
SHOWN_ROWS = 20
NO_MASS = "a single value of a continuous variable has probability zero; ask for a range."


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The answer to a question.

    Attributes
    ----------
    question : str
        The question as it was understood, in the form that all questions are written in.
    kind : str
        "probability", "distribution", or the measure: "mean", "sd", "variance", "median", "mode" or "quantile".
    names : tuple of str
        Variables asked for; empty for a probability.
    found : object
        A probability, a Distribution, or a mapping of names to a measure: a number, date or category.
    evidence : float
        Probability of what is given; a density if that names a single value of a continuous variable. One if nothing is
        given.
    level : float
        Level of a quantile.
    summary : mapping
        Mean, sd and quantiles of each number or date whose distribution was asked for; sd of dates in days.
    note : str
        What may surprise; mostly empty.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> density = hybrid(rng=0)
    >>> density.names[:3]
    ('x0', 'x1', 'x2')
    >>> answer = density.ask("P(x0 > 0 | x1 <= 1)")
    >>> answer.kind, round(float(answer), 3) == round(answer.value, 3)
    ('probability', True)
    """

    question: str
    kind: str
    names: tuple[str, ...]
    found: Any
    evidence: float
    level: float = nan
    summary: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""

    @property
    def distribution(self) -> Distribution | None:
        """Rows and probabilities, if a distribution was asked for."""
        return self.found if isinstance(self.found, Distribution) else None

    @property
    def by_name(self) -> Mapping[str, Any]:
        """A measure by names of variables; a probability under an empty name."""
        return self.found if isinstance(self.found, Mapping) else {"": self.found}

    @cached_property
    def value(self) -> Any:
        """What was found: a number, date or category, or a mapping.

        A measure of several variables is by their names, a distribution by values and intervals, or combinations of
        them.
        """
        if self.distribution is not None:
            return _by_label(self.distribution)
        return next(iter(self.by_name.values())) if len(self.by_name) == 1 else self.found

    def __float__(self) -> float:
        if self.distribution is not None or not isinstance(self.value, int | float):
            raise TypeError(f"The answer to {self.question} is no single number; see its `value`.")
        return float(self.value)

    def __repr__(self) -> str:
        if self.distribution is None:
            several = len(self.by_name) > 1
            values = [f"{name}: {short(v)}" if several else short(v) for name, v in self.by_name.items()]
            return f"{self.question} = {', '.join(values)}"
        (columns, *_) = self.distribution.blocks(SHOWN_ROWS if self.distribution.table.size > SHOWN_ROWS else None)
        *labels, probabilities = columns.values()
        texts = [", ".join(short(label) for label in row) for row in zip(*labels, strict=True)]
        wide = max(map(len, texts), default=0)
        rows = [f"  {text:<{wide}}  {p:7.2%}" for text, p in zip(texts, probabilities, strict=True)]
        if len(rows) < self.distribution.table.size:
            rows.append(f"  ... the {len(rows)} most probable of {self.distribution.table.size:,} rows")
        return "\n".join([self.question, *rows, *self.summary_lines()])

    def summary_lines(self) -> list[str]:
        """Return one line for each number or date whose distribution was asked for."""
        return [f"{name}: {_summary_text(values)}" for name, values in self.summary.items()]

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return the answer in plain types that JSON can hold, of a distribution the ``top`` most probable rows."""
        plain: dict[str, Any] = {"question": self.question, "evidence": _plain(self.evidence)}
        if self.distribution is None:
            plain[self.kind] = _plain(self.value)
            return plain
        blocks = [
            [dict(zip(columns, map(_plain, row), strict=True)) for row in zip(*columns.values(), strict=True)]
            for columns in self.distribution.blocks(top)
        ]
        return plain | {"rows": [row for block in blocks for row in block], "summary": _plain(self.summary)}


def ask(density: JointDensity, text: str) -> Answer:
    """Read and answer a question; see `jointwise.joint.language` for what may be asked."""
    if not isinstance(text, str):
        raise InputError(f"A question is text, such as 'P(age > 40)'; got {shown(text)}.")
    return answer(density, parse_question(text, density.schema))


def answer(density: JointDensity, question: Question) -> Answer:
    """Answer a question that has been read."""
    rest = density.condition(question.given)
    text = question_text(question, density.schema)
    evidence = _evidence(density, question.given)
    if question.measure:
        values = {name: measure(rest, name, question.measure, question.level) for name in question.names}
        return Answer(text, question.measure, question.names, values, evidence, question.level)
    if question.asked:
        p = min(rest.probability(question.asked), 1.0)
        points = [density.schema[name] for name, region in question.asked.items() if isinstance(region, Point)]
        note = NO_MASS if p == 0 and any(variable.kind is Kind.CONTINUOUS for variable in points) else ""
        return Answer(text, "probability", (), p, evidence, note=note)
    found = distribution(rest, question.names)
    numbers = [name for name in question.names if density.schema[name].categories is None]
    summary = {name: _summary(rest, name) for name in numbers}
    return Answer(text, "distribution", question.names, found, evidence, summary=summary)


def measure(density: JointDensity, name: str, what: str, level: float = nan) -> Any:
    """Return a measure of one variable, as a number, date or category."""
    one = density.marginal(name)
    if what == "mean":
        return one.mean()[name]
    if what == "mode":
        return one.mode()[name]
    if what in {"median", "quantile"}:
        return one.quantile(name, 0.5 if what == "median" else level)
    variance = one.var()[name]
    return variance if what == "variance" else variance**0.5


def _summary(density: JointDensity, name: str) -> dict[str, Any]:
    one = density.marginal(name)
    found = {"mean": one.mean()[name], "sd": one.var()[name] ** 0.5}
    return found | {word: one.quantile(name, level) for word, level in LEVELS.items()}


def _summary_text(values: Mapping[str, Any]) -> str:
    known = [f"{word} {short(values[word])}" for word in ("mean", "sd") if _is_number(values["mean"], values[word])]
    return ", ".join(
        [*known, f"median {short(values['median'])}", f"90% from {short(values['q05'])} to {short(values['q95'])}"]
    )


def _is_number(*values: Any) -> bool:
    """Whether all are finite numbers: the mean may exist where the variance does not."""
    return isinstance(values[0], int | float) and isfinite(values[-1])


def _by_label(found: Distribution) -> dict[Any, float]:
    if len(found.names) == 1:
        return dict(zip(found.parts[0].labels, found.table.tolist(), strict=True))
    labels = [part.labels for part in found.parts]
    return {
        tuple(part[i] for part, i in zip(labels, place, strict=True)): float(p)
        for place, p in np.ndenumerate(found.table)
    }


def _evidence(density: JointDensity, given: Mapping[str, Alternatives]) -> float:
    """Return the probability of what is given, or a density where that is zero because of single values."""
    p = min(density.probability(given), 1.0) if given else 1.0
    points = {name: region for name, region in given.items() if isinstance(region, Point)}
    if p > 0 or not points:
        return p
    row = np.full((1, len(density.schema)), np.nan)
    for name, region in points.items():
        row[0, density.schema.index(name)] = region.value
    height = float(np.exp(density.mixture.logpdf(row)[0]))
    ranges = {name: region for name, region in given.items() if name not in points}
    return height * (density.condition(points).probability(ranges) if ranges else 1.0)


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it; NaN is None and infinity is text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, dt.date):
        return value.isoformat()
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, float):
        return value
    return (None if isnan(value) else str(value)) if not isfinite(value) else float(f"{value:.10g}")


def short(value: Any) -> str:
    """Write a value for a person: four digits of a number, or all of a large whole one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return as_text(value)
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
