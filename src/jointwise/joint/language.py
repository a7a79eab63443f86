"""The language of questions: ``P(job=nurse | age in 30..40)``, ``mean(pay | sex=F)`` or ``job, age | pay > 30``.

Grammar::

    question   = "P" "(" ( names | event ) [ given ] ")" [ given ]  |  ( names | event ) [ given ]
               | measure "(" names [ "," level ] [ given ] ")" [ given ]  |  measure names [ given ]
    measure    = "mean" | "sd" | "variance" | "median" | "mode" | "q10" | "quantile" | ...
    given      = ( "|" | "given" | "where" | "if" ) event
    event      = choice { ( "," | ";" ) choice }
    choice     = all { "or" ( all | value ) }
    all        = factor { ( "and" | "&" ) factor }
    factor     = "not" factor | "(" event ")" | condition
    condition  = name relation value | name "=" range | value relation name [ relation value ]
               | name [ "not" ] "in" ( range | "{" item { "," item } "}" ) | name "between" value "and" value
               | name                                                           of a variable that is true or false
               | name [ "is" [ "not" ] | "=" | "!=" ] ( "missing" | "present" )   if gaps are part of the model
    item       = value | range
    range      = [ value ] ".." [ value ]
    relation   = "=" | "==" | "is" | "!=" | "is not" | "<" | "<=" | ">" | ">="

A name or value is what the variables of the model know, whatever signs it contains (``merchant = A&B``), in any case
of letters if that is clear. Quotes are always allowed. Conditions of one variable may be joined by ``or``; those of
several are joined by commas or ``and``.

Nothing is evaluated: the text is read from left to right against a `Schema`. An error shows the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan

from jointwise._checks import LONGEST, shown, unknown_name
from jointwise.exceptions import QuestionError
from jointwise.joint.events import (
    Alternatives,
    Pieces,
    Point,
    common,
    everything,
    joined,
    neighbour,
    others,
    region_of,
)
from jointwise.joint.scanner import Scanner
from jointwise.joint.words import Span, is_gap, number_in, truth_of
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Schema, Variable, as_text

# Most brackets inside each other.
MOST_DEPTH = 50

# What may be asked of a variable, by each of its names.
MEASURES = {
    **dict.fromkeys(("mean", "average", "avg", "e", "expectation"), "mean"),
    **dict.fromkeys(("sd", "std", "stdev", "stddev"), "sd"),
    **dict.fromkeys(("var", "variance"), "variance"),
    "median": "median",
    "mode": "mode",
    "quantile": "quantile",
}
PROBABILITY = frozenset({"p", "pr", "prob", "probability"})
_QUANTILE = re.compile(r"q(\d{1,2}(?:\.\d+)?)")

_FUNCTION = re.compile(r"([^\W\d]\w*(?:\.\d+)?)\s*([(\[])")
_MEASURE = re.compile(r"\s*([^\W\d]\w*(?:\.\d+)?)\s+(?:of\s+)?")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_CLOSING = {"(": ")", "[": "]", "{": "}"}

# Sets of values by the names of their variables.
Event = dict[str, Pieces]


@dataclass(frozen=True)
class Question:
    """What is asked about the variables of a model.

    Attributes
    ----------
    names : tuple of str
        Variables whose distribution or measure is asked for; empty for a probability.
    asked : mapping of names to regions
        The event whose probability is asked for.
    given : mapping of names to regions
        What is known.
    measure : str
        "mean", "sd", "variance", "median", "mode" or "quantile"; empty for a probability or a distribution.
    level : float
        Level of a quantile, between 0 and 1.
    """

    names: tuple[str, ...] = ()
    asked: Mapping[str, Alternatives] = field(default_factory=dict)
    given: Mapping[str, Alternatives] = field(default_factory=dict)
    measure: str = ""
    level: float = nan


def parse_question(text: str, schema: Schema) -> Question:
    """Read a question about the variables of a schema.

    >>> sex = Variable("sex", "categorical", categories=("F", "M"))
    >>> schema = Schema((Variable("age", "integer"), Variable("pay (net)", "continuous"), sex))
    >>> question = parse_question("q90(pay (net) | 30 <= age < 40 and sex = F)", schema)
    >>> question.names, question.measure, question.level
    (('pay (net)',), 'quantile', 0.9)
    >>> question.given
    {'age': Interval(low=30.0, high=39.0), 'sex': Point(value=0.0, half=0.0)}

    One question may be written in many ways:

    >>> from jointwise.joint.questions import question_text
    >>> texts = ("age | sex is F", "median age given sex=f", "p(sex=F or M, age != 3)", "P(age=3..5) if pay (net)<20k")
    >>> for text in texts:
    ...     print(question_text(parse_question(text, schema), schema))
    age | sex=F
    median(age | sex=F)
    P(sex in {F, M}, age <= 2 or age >= 4)
    P(age in 3..5 | 'pay (net)' < 20000)
    """
    return _Parser(text, schema).question()


def parse_conditions(text: str, schema: Schema) -> dict[str, Alternatives]:
    """Read conditions alone, such as ``sex=F, age > 40``."""
    return _Parser(text, schema).only_conditions()


class _Parser(Scanner):
    """Recursive descent over the text, one method per rule of the grammar."""

    def __init__(self, text: str, schema: Schema) -> None:
        super().__init__(text, schema)
        self._depth = 0
        self._is_given = False  # whether conditions after the bar are being read
        self._relation_read = ""  # that of the condition read last

    # ---- questions ------------------------------------------------------------------------------------------

    def question(self) -> Question:
        self._skip()
        function = _FUNCTION.match(self._text, self._at)
        if function and self._known_name() is None:
            return self._function(function)
        self._at = 0
        found = self._unbracketed_measure() or self._asked_and_given("")
        self._end()
        return self._checked(found)

    def only_conditions(self) -> dict[str, Alternatives]:
        found = self._given()
        self._end()
        return found

    def _function(self, function: re.Match[str]) -> Question:
        word = function[1].lower()
        level = _QUANTILE.fullmatch(word)
        if word not in PROBABILITY and word not in MEASURES and not level:
            raise self._no_function(function[1])
        self._at = function.end()
        closing = _CLOSING[function[2]]
        if word in PROBABILITY:
            found = self._asked_and_given(closing)
        else:
            found = self._measured(MEASURES.get(word, "quantile"), float(level[1]) / 100 if level else nan)
        self._expect(closing, "a closing bracket")
        if not self._is_given and self._bar():
            found = replace(found, given=self._given())
        self._end()
        return self._checked(found)

    def _unbracketed_measure(self) -> Question | None:
        """Read ``mean pay`` or ``mean of pay``; None if no measure and name begin here."""
        found = _MEASURE.match(self._text)
        word = found[1].lower() if found and self._known_name() is None else ""
        level = _QUANTILE.fullmatch(word)
        self._at = found.end() if found else 0
        start = self._at
        if not (level or word in MEASURES) or self._known_name() is None:
            self._at = 0
            return None
        self._at = start
        return self._measured(MEASURES.get(word, "quantile"), float(level[1]) / 100 if level else nan)

    def _end(self) -> None:
        self._accept("?")
        if not self._is_over():
            more = _FUNCTION.match(self._text, self._at + 1) or _FUNCTION.match(self._text, self._at + 2)
            raise self._wrong(
                "Another question begins here; ask one at a time"
                if more
                else "The question should end here; separate conditions by commas"
            )

    def _no_function(self, word: str) -> QuestionError:
        known = ("P", *dict.fromkeys(MEASURES.values()), "q10")
        if any(name.lower() == word.lower() for name in self._schema.names):
            return self._wrong(f"A variable takes no brackets; write {shown(word)} alone, or P(...) around all")
        return self._wrong(str(unknown_name("measure", word, known)).rstrip("."))

    def _measured(self, measure: str, level: float) -> Question:
        names = [self._measurable(measure)]
        while self._accept(","):
            at, name = self._at, self._known_name()
            if name is None and measure == "quantile" and isnan(level):
                level = self._level()
                break
            self._at = at
            names.append(self._measurable(measure))
        if measure == "quantile" and isnan(level):
            raise self._wrong("Say which quantile, as in quantile(x, 0.9) or q90(x)")
        return Question(tuple(names), {}, self._given() if self._bar() else {}, measure, level)

    def _measurable(self, measure: str) -> str:
        """Read the name of a variable that has such a measure."""
        self._skip()
        at = self._at
        variable = self._schema[self._required_name()]
        ordered = variable.categories is None or (variable.ordered and measure in {"median", "quantile"})
        if measure != "mode" and not ordered:
            raise self._wrong(
                f"{shown(variable.name)} has categories, so it has no {measure}; ask for its distribution or its mode",
                at,
            )
        return variable.name

    def _level(self) -> float:
        self._skip()
        at, text = self._at, self._generic()
        level = number_in(text.removesuffix("%"))
        level = nan if level is None else level / 100 if text.endswith("%") else level
        if not 0 <= level <= 1:
            raise self._wrong(f"A level lies between 0 and 1, or 0% and 100%; got {shown(text)}", at)
        return level

    def _asked_and_given(self, closing: str) -> Question:
        self._skip()
        start = self._at
        names = self._only_names(closing)
        asked: Event = {}
        if not names or (closing and all(self._schema[name].gap_of is not None for name in names)):
            names = ()
            self._at = start
            asked = self._event()
        return Question(names, self._regions(asked), self._given() if self._bar() else {})

    def _only_names(self, closing: str) -> tuple[str, ...]:
        """Read names up to the bar or the end; empty if conditions stand there."""
        names: list[str] = []
        while (name := self._known_name()) is not None:
            names.append(name)
            if not (self._accept(",") or self._word("and") or self._accept("&")):
                break
        else:
            return ()
        at = self._at
        ended = self._is_over() or self._bar() or bool(closing and self._accept(closing))
        self._at = at
        return tuple(names) if ended else ()

    def _given(self) -> dict[str, Alternatives]:
        self._is_given = True
        event = self._event()
        return {
            name: region
            for name, region in self._regions(event).items()
            if event[name] != everything(self._schema[name])
        }

    def _checked(self, question: Question) -> Question:
        for name in (*question.names, *question.asked):
            if question.names.count(name) > 1:
                raise self._wrong(f"{shown(name)} is asked for twice", self._place_of(name))
            if isinstance(question.given.get(name), Point):
                raise self._wrong(
                    f"{shown(name)} is given one value, so nothing is left to ask of it", self._place_of(name)
                )
        return question

    def _place_of(self, name: str) -> int:
        return max(self._text.lower().find(name.lower()), 0)

    def _regions(self, event: Event) -> dict[str, Alternatives]:
        return {name: region_of(self._schema[name], pieces) for name, pieces in event.items()}

    # ---- conditions -----------------------------------------------------------------------------------------

    def _event(self) -> Event:
        found = self._choice()
        while self._accept(",") or self._accept(";"):
            found = self._both(found, self._choice())
        return found

    def _choice(self) -> Event:
        found = self._all()
        while self._word("or") or self._accept("||"):
            at = self._at
            more = self._all() if self._starts_condition(found) else self._another_value(found)
            found = self._either(found, more, at)
        return found

    def _all(self) -> Event:
        found = self._factor()
        while self._word("and") or self._accept("&&") or self._accept("&"):
            found = self._both(found, self._factor())
        return found

    def _factor(self) -> Event:
        self._skip()
        at, known = self._at, self._known_name()
        self._at = at
        if known is None and self._word("not"):
            return self._deeper(self._not)
        if known is None and self._text[self._at : self._at + 1] == "(":
            self._at += 1
            found = self._deeper(self._event)
            self._expect(")", "a comma or a closing bracket")
            return found
        return self._condition()

    def _not(self) -> Event:
        at = self._at
        event = self._factor()
        if len(event) != 1:
            raise self._wrong("`not` takes conditions on one variable", at)
        ((name, pieces),) = event.items()
        return {name: self._some(name, others(self._schema[name], pieces), at)}

    def _deeper(self, rule: Callable[[], Event]) -> Event:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise self._wrong(f"A question has at most {MOST_DEPTH} brackets inside each other")
        found = rule()
        self._depth -= 1
        return found

    def _condition(self) -> Event:
        at = self._at
        name = self._known_name()
        if name is None:
            found = self._value_first()
            if found is None:
                raise self._no_name(at)
            return found
        variable = self._schema[name]
        gap = self._gap(variable)
        if gap is not None:
            return gap
        relation = self._relation(variable)
        if not relation:
            return {name: self._true(variable)}
        place = self._at
        if relation in {"in", "not in"}:
            pieces = self._among(variable)
        elif relation == "between":
            low = self._value(variable)
            if not self._word("and"):
                raise self._wrong("Expected `and` here, as in between 30 and 40")
            pieces = self._between(variable, low, self._value(variable), place)
        else:
            value = self._value(variable)
            if relation == "=" and self._dots():  # age = 30..40
                high = (inf, inf) if self._is_open() else self._value(variable)
                pieces = self._between(variable, value, high, place)
            else:
                pieces = self._compared(variable, relation, value, place)
        self._relation_read = relation
        if relation == "not in":
            pieces = others(variable, pieces)
        return {name: self._some(name, pieces, place)}

    def _gap(self, variable: Variable) -> Event | None:
        """Read ``missing`` or ``is not present``; None if something else stands here.

        Where gaps are no part of the model, that a value is missing says nothing of it.
        """
        self._skip()
        start = self._at
        relation = self._relation(variable) or "="
        place = self._at
        if relation not in {"=", "!="} or (variable.categories is not None and self._known_value(variable) is not None):
            self._at = start
            return None
        self._at = place
        word = self._generic()
        if not word or not (is_gap(word) or word.lower() == "present"):
            self._at = start
            return None
        gap = self._schema.gaps.get(variable.name)
        if gap is None:
            return {variable.name: self._unknown(variable, relation, place)}
        is_missing = is_gap(word) == (relation == "=")
        self._relation_read = ""
        return {gap: ((float(is_missing),) * 2,)}

    def _value_first(self) -> Event | None:
        """Read ``30 < age`` or ``30 < age <= 40``; None if no value and relation begin here."""
        start = self._at
        self._generic()
        if (first := self._sign()) is None or (name := self._known_name()) is None:
            self._at = start
            return None
        variable, after = self._schema[name], self._at
        self._at = start
        low = self._value(variable)
        if self._sign() is None or self._known_name() != name or self._at != after:
            self._at = start
            return None
        pieces = self._compared(variable, _TURNED[first], low, start)
        place = self._at
        if (second := self._sign()) is not None:
            if {first[0], second[0]} & {"=", "!"} or first[0] != second[0]:
                raise self._wrong("A chain goes one way, as in 30 <= age < 40", place)
            pieces = common(pieces, self._compared(variable, second, self._value(variable), place))
        self._relation_read = first
        return {name: self._some(name, pieces, start)}

    def _another_value(self, event: Event) -> Event:
        """Read the second value of ``job = nurse or cook``."""
        self._skip()
        name, place = next(reversed(event)), self._at
        if len(event) != 1 or self._relation_read != "=":
            raise self._wrong(f"After `or`, write the whole condition, such as {name} {_example(self._schema[name])}")
        return {name: self._compared(self._schema[name], "=", self._value(self._schema[name]), place)}

    def _starts_condition(self, before: Event) -> bool:
        """Whether a condition begins here, and not merely another value of the variable of the condition before."""
        self._skip()
        at = self._at
        try:
            if self._text[at : at + 1] == "(" and self._known_name() is None:
                return True
            if self._word("not"):
                return True
            if (name := self._known_name()) is not None:
                has_relation = bool(self._relation(self._schema[name]))
                self._at = at
                return has_relation or all(self._known_value(self._schema[other]) is None for other in before)
            self._generic()
            return self._sign() is not None and self._known_name() is not None
        finally:
            self._at = at

    def _true(self, variable: Variable) -> Pieces:
        """Values of a variable named alone, which must be true or false."""
        truth = truth_of(variable)
        if truth is None:
            raise self._wrong(f"Say what {shown(variable.name)} should be, such as {_example(variable)}")
        return ((truth[True],) * 2,)

    def _compared(self, variable: Variable, relation: str, value: Span, at: int) -> Pieces:
        first, last = value
        if isnan(first):
            return self._unknown(variable, relation, at)
        if relation in {"=", "!="}:
            return (value,) if relation == "=" else others(variable, (value,))
        self._check_order(variable, at)
        if relation in {"<", "<="}:
            pieces = ((-inf, neighbour(variable, first, above=False) if relation == "<" else last),)
        else:
            pieces = ((neighbour(variable, last, above=True) if relation == ">" else first, inf),)
        found = common(pieces, everything(variable))
        if not found:
            raise self._wrong(f"{shown(variable.name)} has no category beyond that one", at)
        return found

    def _unknown(self, variable: Variable, relation: str, at: int) -> Pieces:
        """All values: that one is missing says nothing of it."""
        if self._is_given and relation in {"=", "!="}:
            return everything(variable)
        raise self._wrong(
            f"The model describes the values of {shown(variable.name)}, not which of them are missing; leave the "
            'variable out, or fit with missing="informative"',
            at,
        )

    def _check_order(self, variable: Variable, at: int) -> None:
        if variable.categories is not None and not variable.ordered:
            raise self._wrong(
                f"{shown(variable.name)} has categories without an order; name the categories instead, such as "
                f"{_example(variable)}",
                at,
            )

    def _among(self, variable: Variable) -> Pieces:
        """Read a range, or items in any brackets."""
        self._skip()
        at, opening = self._at, self._text[self._at : self._at + 1]
        if opening not in _CLOSING or self._known_value(variable) is not None:
            self._at = at
            return self._item(variable, required="two dots, as in 30..40, or braces around several values")
        self._at += 1
        items = [self._item(variable)]
        while self._accept(","):
            items.append(self._item(variable))
        self._expect(_CLOSING[opening], f"a comma or {_CLOSING[opening]}")
        points = [low for low, high in (piece for item in items for piece in item) if low == high]
        if opening != "{" and variable.categories is None and len(items) == len(points) == 2:
            a, b = self._text[at + 1 : self._at - 1].split(",", 1)
            raise self._wrong(
                f"Two numbers in {opening}{_CLOSING[opening]} may be a range or two values; write {a.strip()}.."
                f"{b.strip()} or {{{a.strip()}, {b.strip()}}}",
                at,
            )
        return joined(variable, (piece for item in items for piece in item))

    def _item(self, variable: Variable, required: str = "") -> Pieces:
        """Read a value or a range, where ``>30..<40`` leaves out its ends; with ``required``, a range."""
        self._skip()
        at, in_list, after = self._at, not required, self._accept(">")
        is_open = self._dots()
        low = (-inf, -inf) if is_open else self._value(variable, in_list=in_list, in_range=True)
        if not is_open and not self._dots() and not (required and (self._word("to") or self._dash())):
            if required and low[0] == low[1]:  # a month is a range by itself
                raise self._wrong(f"Expected {required} here")
            return self._compared(variable, "=", low, at)
        before = self._accept("<")
        if is_open and self._is_open():
            raise self._wrong("A range needs an end, as in 30..40 or ..40")
        high = (inf, inf) if self._is_open() else self._value(variable, in_list=in_list)
        first = (neighbour(variable, low[1], above=True),) * 2 if after else low
        return self._between(variable, first, (neighbour(variable, high[0], above=False),) * 2 if before else high, at)

    def _between(self, variable: Variable, low: Span, high: Span, at: int) -> Pieces:
        self._check_order(variable, at)
        ends = low[0], high[1]
        if any(map(isnan, ends)):
            return self._unknown(variable, "", at)
        if low[0] > high[1]:
            raise self._wrong(f"The range of {shown(variable.name)} is empty: its ends are the wrong way round", at)
        return common((ends,), everything(variable))

    def _both(self, a: Event, b: Event) -> Event:
        found = dict(a)
        for name, pieces in b.items():
            found[name] = self._some(name, common(found[name], pieces), self._at) if name in found else pieces
        return found

    def _either(self, a: Event, b: Event, at: int) -> Event:
        if len({*a, *b}) != 1:
            names = " and ".join(shown(name) for name in {**a, **b})
            raise self._wrong(
                f"`or` joins conditions on one variable, but these are on {names}; ask a question for each, or put "
                "brackets around those on one variable",
                at,
            )
        ((name, pieces),) = a.items()
        return {name: joined(self._schema[name], (*pieces, *b[name]))}

    def _some(self, name: str, pieces: Pieces, at: int) -> Pieces:
        if not pieces:
            raise self._wrong(f"No value of {shown(name)} meets its conditions", at)
        return pieces

    def _relation(self, variable: Variable) -> str:
        """Read a relation; empty if there is none."""
        self._skip()
        at = self._at
        if self._text[at : at + 1] == "=":  # in `income =>50K` the value may begin with a sign
            self._at += 1
            after = self._at
            if variable.categories is not None and self._known_value(variable) is not None:
                self._at = after
                return "="
            self._at = at
        elif variable.categories is not None and not variable.ordered and self._text[at : at + 1] in {"<", ">"}:
            value = self._known_value(variable)  # `income >50K`, where >50K is a category
            self._at = at
            if value is not None:
                return "="
        if (sign := self._sign()) is not None:
            return sign
        if self._word("is"):
            return "!=" if self._word("not") else "="
        if self._word("not"):
            if self._word("in"):
                return "not in"
            self._at = at
            return ""
        return next((word for word in ("in", "between") if self._word(word)), "")


def _example(variable: Variable) -> str:
    """A condition on a variable, for a message."""
    if variable.categories is None:
        return "= 40, > 40 or in 30..40" if not is_temporal(variable.dtype) else "> 2024-05-31"
    some = ", ".join(as_text(c) for c in variable.categories[:2])[:LONGEST]
    return f"= {as_text(variable.categories[0])[:LONGEST]} or in {{{some}}}"
