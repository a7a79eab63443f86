"""The language of questions: ``income, age | sex=F, age in 30..40`` or ``P(income=high | age > 40)``.

Grammar::

    question   = "P" "(" asked [ "|" conditions ] ")"  |  names [ "|" conditions ]
    asked      = conditions | names
    conditions = condition { "," condition }
    condition  = name ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) value
               | name "in" [ value ] ".." [ value ]
               | name "in" "{" value { "," value } "}"
    names      = name { "," name }
    name,value = words without signs, other than "in" between them; or anything in single or double quotes

Nothing is evaluated: text becomes tokens, tokens become a `Question`, and `bind` checks it against the variables of a
model. An error shows the place in the question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointwise._checks import shown
from jointwise.cli.cells import value_of
from jointwise.exceptions import InputError, JointwiseError, QuestionError, UnknownNameError
from jointwise.joint.events import Interval, Point, Region, parse_region
from jointwise.tables.variables import Kind, Schema, Variable

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<sign>\.\.|!=|<=|>=|[=<>|,(){}])"
    r"|(?P<word>(?:(?!\.\.)[^\s\"'=<>!|,(){}])+))"
)
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Token:
    """A piece of a question and its position; ``kind`` is "quoted", "word", "end" or the sign itself."""

    kind: str
    text: str
    at: int


@dataclass(frozen=True)
class Condition:
    """A condition on one variable: a comparison with one value, a range of two, or a list of values."""

    name: Token
    relation: str
    values: tuple[Token | None, ...]


@dataclass(frozen=True)
class Question:
    """Names or conditions asked for, and the conditions given."""

    text: str
    names: tuple[Token, ...] = ()
    asked: tuple[Condition, ...] = ()
    given: tuple[Condition, ...] = ()


def parse_question(text: str) -> Question:
    """Read a question.

    >>> question = parse_question("P(income = high | age in 30..40)")
    >>> [(c.name.text, c.relation) for c in (*question.asked, *question.given)]
    [('income', '='), ('age', 'in')]
    """
    return _Parser(text).question()


def parse_conditions(text: str) -> Question:
    """Read conditions alone, such as ``sex=F, age > 40``."""
    return _Parser(text).only_conditions()


class _Parser:
    """Recursive descent over the tokens, one method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0

    def question(self) -> Question:
        bracketed = self._peek().text == "P" and self._peek().kind == "word" and self._peek(1).kind == "("
        if bracketed:
            self._next += 2
        names, asked = self._asked(bracketed=bracketed)
        given = self._list(self._condition) if self._accept("|") else ()
        if bracketed:
            self._expect(")", "a closing bracket")
        self._expect("end", "" if bracketed or given else "a comma, a bar or the end")
        return Question(self._text, names, asked, given)

    def only_conditions(self) -> Question:
        given = self._list(self._condition)
        self._expect("end", "a comma or the end")
        return Question(self._text, given=given)

    def _asked(self, *, bracketed: bool) -> tuple[tuple[Token, ...], tuple[Condition, ...]]:
        start = self._next
        names = self._list(self._name)
        relation = self._peek()
        if relation.kind not in COMPARISONS and not self._is_in(relation):
            return names, ()
        if not bracketed:
            raise self._wrong(
                "Only names may stand before the bar; write P(...) around a question with conditions there", relation
            )
        self._next = start
        return (), self._list(self._condition)

    def _list(self, item: Callable[[], Any]) -> tuple[Any, ...]:
        items = [item()]
        while self._accept(","):
            items.append(item())
        return tuple(items)

    def _condition(self) -> Condition:
        name = self._name()
        relation = self._peek()
        if relation.kind in COMPARISONS:
            self._next += 1
            return Condition(name, relation.kind, (self._value(),))
        if not self._is_in(relation):
            raise self._wrong(f"Say what {shown(name.text)} should be, such as = 40, > 40 or in 30..40", relation)
        self._next += 1
        if self._accept("{"):
            values = self._list(self._value)
            self._expect("}", "a comma or a closing brace")
            return Condition(name, "one of", values)
        low = None if self._peek().kind == ".." else self._value()
        self._expect("..", "two dots, as in 30..40, or braces around several values")
        high = self._value() if self._peek().kind in {"word", "quoted"} else None
        if low is None and high is None:
            raise self._wrong("A range needs an end, as in 30..40 or ..40", self._peek())
        return Condition(name, "in", (low, high))

    def _name(self) -> Token:
        return self._take("the name of a variable")

    def _value(self) -> Token:
        return self._take("a value")

    def _take(self, what: str) -> Token:
        token = self._peek()
        if token.kind not in {"word", "quoted"}:
            raise self._wrong(f"Expected {what} here", token)
        self._next += 1
        last = token
        while token.kind == self._peek().kind == "word" and not self._is_in(self._peek()):
            last = self._peek()
            self._next += 1
        return token if last is token else Token("word", self._text[token.at : last.at + len(last.text)], token.at)

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _accept(self, kind: str) -> bool:
        here = self._peek().kind == kind
        self._next += here
        return here

    def _expect(self, kind: str, what: str) -> None:
        if not self._accept(kind):
            raise self._wrong(f"Expected {what} here" if what else "The question should end here", self._peek())

    @staticmethod
    def _is_in(token: Token) -> bool:
        return token.kind == "word" and token.text == "in"

    def _wrong(self, sentence: str, token: Token) -> QuestionError:
        return QuestionError(f"{sentence}.", self._text, token.at)


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            what = "A quote is not closed" if text[at] in "\"'" else f"The sign {text[at]!r} has no meaning"
            raise QuestionError(f"{what} here.", text, at)
        kind = match.lastgroup or ""
        token = match[kind]
        if kind == "quoted":
            yield Token(kind, re.sub(r"\\(.)", r"\1", token[1:-1]), match.start(kind))
        else:
            yield Token(token if kind == "sign" else kind, token, match.start(kind))
        at = match.end()
    yield Token("end", "", end)


# ---- questions about a model's variables ------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """A question about known variables; regions by the names of their variables."""

    names: tuple[str, ...]
    asked: Mapping[str, Region]
    given: Mapping[str, Region]


def bind(question: Question, schema: Schema) -> Bound:
    """Check a question against the variables of a model, and turn its conditions into regions."""
    binder = _Binder(question.text, schema)
    given, asked = binder.regions(question.given), binder.regions(question.asked)
    names = [binder.variable(token).name for token in question.names]
    for token in (*question.names, *(condition.name for condition in question.asked)):
        if names.count(token.text) > 1:
            raise QuestionError(f"{shown(token.text)} is asked for twice.", question.text, token.at)
        if isinstance(given.get(token.text), Point):
            raise QuestionError(
                f"{shown(token.text)} is given one value, so nothing is left to ask of it.", question.text, token.at
            )
    return Bound(tuple(names), asked, given)


class _Binder:
    def __init__(self, text: str, schema: Schema) -> None:
        self._text = text
        self._schema = schema

    def variable(self, token: Token) -> Variable:
        try:
            return self._schema[token.text]
        except UnknownNameError as error:
            raise QuestionError(str(error), self._text, token.at) from None

    def regions(self, conditions: tuple[Condition, ...]) -> dict[str, Region]:
        found: dict[str, Region] = {}
        for condition in conditions:
            variable = self.variable(condition.name)
            name, region = variable.name, self._region(variable, condition)
            found[name] = self._both(found[name], region, condition.name) if name in found else region
        return found

    def _region(self, variable: Variable, condition: Condition) -> Region:
        at = next((token.at for token in condition.values if token), condition.name.at)
        try:
            values = [None if token is None else self._value(variable, token) for token in condition.values]
            return _REGIONS[condition.relation](variable, values)
        except QuestionError:
            raise
        except JointwiseError as error:
            raise QuestionError(str(error), self._text, at) from None

    def _value(self, variable: Variable, token: Token) -> Any:
        try:
            value = value_of(variable, token.text)
            variable.encode_value(value)
        except JointwiseError as error:
            raise QuestionError(str(error), self._text, token.at) from None
        return value

    def _both(self, a: Region, b: Region, token: Token) -> Region:
        """Join two ranges of one variable, such as ``age > 30, age < 40``."""
        if isinstance(a, Interval) and isinstance(b, Interval):
            low, high = max(a.low, b.low), min(a.high, b.high)
            if low <= high:
                return Interval(low, high)
            raise QuestionError(f"No value of {shown(token.text)} meets both its conditions.", self._text, token.at)
        raise QuestionError(f"{shown(token.text)} has two conditions that do not make a range.", self._text, token.at)


def _unequal(variable: Variable, values: list[Any]) -> Region:
    if variable.categories is None:
        raise InputError(f"{shown(variable.name)} holds numbers: ask for a range instead of !=.")
    return parse_region(variable, {c for c in variable.categories if c != values[0]})


def _beyond(variable: Variable, value: Any, towards: float) -> Interval:
    """Values below ``value`` (towards minus infinity) or above it, without ``value`` itself."""
    parse_region(variable, (value, None))  # refuses categories without an order
    number = variable.encode_value(value)
    if variable.kind is Kind.CONTINUOUS:
        end = np.nextafter(number, towards)
    else:
        end = np.ceil(number) - 1 if towards < 0 else np.floor(number) + 1
    if variable.categories is not None and not 0 <= end < len(variable.categories):
        raise InputError(f"{shown(variable.name)} has no category beyond that one.")
    return Interval(-np.inf, float(end)) if towards < 0 else Interval(float(end), np.inf)


_REGIONS: Mapping[str, Callable[[Variable, list[Any]], Region]] = {
    "=": lambda variable, values: parse_region(variable, values[0]),
    "!=": _unequal,
    "<": lambda variable, values: _beyond(variable, values[0], -np.inf),
    "<=": lambda variable, values: parse_region(variable, (None, values[0])),
    ">": lambda variable, values: _beyond(variable, values[0], np.inf),
    ">=": lambda variable, values: parse_region(variable, (values[0], None)),
    "in": lambda variable, values: parse_region(variable, (values[0], values[1])),
    "one of": lambda variable, values: parse_region(variable, set(values)),
}
