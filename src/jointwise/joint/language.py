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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from typing import TypeAlias, TypeVar

from jointwise._checks import LONGEST, shown, unknown_name
from jointwise.exceptions import JointwiseError, QuestionError
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
from jointwise.joint.words import is_gap, number_in, truth_of, value_in
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Schema, Variable, as_text

# Most characters of a question, and most brackets inside each other.
MOST_CHARACTERS, MOST_DEPTH = 10_000, 50

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
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|“([^”]*)”|‘([^’]*)’", re.DOTALL)
_SPACE = re.compile(r"\s*")
# Where a name or value ends that the model does not know.
_STOP = re.compile(
    r"\.\.|…|[=<>!≤≥≠|,;(){}\[\]&\"]|(?<!\w)(?:and|or|in|is|not|given|where|if|between)(?!\w)", re.IGNORECASE
)
# What may follow a name or value that the model knows.
_AFTER = re.compile(
    r"\s*(?:\??\s*$|\.\.|…|[=<>!≤≥≠|,;)}\]&]"
    r"|(?<=\W)(?:and|or|in|is|not|given|where|if|between|to)(?!\w)|(?<=\s)[-–]\s)",
    re.IGNORECASE,
)
_RELATIONS = {
    "==": "=",
    "=>": ">=",
    "=<": "<=",
    "!=": "!=",
    "<>": "!=",
    "<=": "<=",
    ">=": ">=",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "=": "=",
    "<": "<",
    ">": ">",
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_CLOSING = {"(": ")", "[": "]", "{": "}"}

ItemT = TypeVar("ItemT")
# Sets of values by the names of their variables.
Event = dict[str, Pieces]
# Names or categories with what they stand for, by their first letter in lower case.
Words: TypeAlias = dict[str, list[tuple[str, ItemT]]]


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
    """
    return _Parser(text, schema).question()


def parse_conditions(text: str, schema: Schema) -> dict[str, Alternatives]:
    """Read conditions alone, such as ``sex=F, age > 40``."""
    return _Parser(text, schema).only_conditions()


class _Parser:
    """Recursive descent over the text, one method per rule of the grammar."""

    def __init__(self, text: str, schema: Schema) -> None:
        if len(text) > MOST_CHARACTERS:
            raise QuestionError(f"A question has at most {MOST_CHARACTERS:,} characters.", text, MOST_CHARACTERS)
        self._text = text
        self._schema = schema
        self._names = _by_first_letter((name, name) for name in schema.names)
        self._labels: dict[str, Words[float]] = {}
        self._at = 0
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

    def _no_function(self, word: str) -> QuestionError:
        known = ("P", *dict.fromkeys(MEASURES.values()), "q10")
        if any(name.lower() == word.lower() for name in self._schema.names):
            return self._wrong(f"A variable takes no brackets; write {shown(word)} alone, or P(...) around all")
        return self._wrong(str(unknown_name("measure", word, known)).rstrip("."))

    def _measured(self, measure: str, level: float) -> Question:
        names = [self._required_name()]
        while self._accept(","):
            at, name = self._at, self._known_name()
            if name is None and measure == "quantile" and isnan(level):
                level = self._level()
                break
            self._at = at
            names.append(self._required_name())
        if measure == "quantile" and isnan(level):
            raise self._wrong("Say which quantile, as in quantile(x, 0.9) or q90(x)")
        return Question(tuple(names), {}, self._given() if self._bar() else {}, measure, level)

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
        if not names:
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
                high = inf if self._is_open() else self._value(variable)
                pieces = self._between(variable, value, high, place)
            else:
                pieces = self._compared(variable, relation, value, place)
        self._relation_read = relation
        if relation == "not in":
            pieces = others(variable, pieces)
        return {name: self._some(name, pieces, place)}

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

    def _compared(self, variable: Variable, relation: str, value: float, at: int) -> Pieces:
        if isnan(value):
            return self._unknown(variable, relation, at)
        if relation in {"=", "!="}:
            return ((value, value),) if relation == "=" else others(variable, ((value, value),))
        self._check_order(variable, at)
        if relation in {"<", "<="}:
            pieces = ((-inf, neighbour(variable, value, above=False) if relation == "<" else value),)
        else:
            pieces = ((neighbour(variable, value, above=True) if relation == ">" else value, inf),)
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
            "variable out",
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
        low = -inf if is_open else self._value(variable, in_list=in_list, in_range=True)
        if not is_open and not self._dots() and not (required and (self._word("to") or self._dash())):
            if required:
                raise self._wrong(f"Expected {required} here")
            return self._compared(variable, "=", low, at)
        before = self._accept("<")
        if is_open and self._is_open():
            raise self._wrong("A range needs an end, as in 30..40 or ..40")
        high = inf if self._is_open() else self._value(variable, in_list=in_list)
        low = neighbour(variable, low, above=True) if after else low
        return self._between(variable, low, neighbour(variable, high, above=False) if before else high, at)

    def _is_open(self) -> bool:
        """Whether a range ends here without a value."""
        return _AFTER.match(self._text, self._at) is not None

    def _between(self, variable: Variable, low: float, high: float, at: int) -> Pieces:
        self._check_order(variable, at)
        if isnan(low) or isnan(high):
            return self._unknown(variable, "", at)
        if low > high:
            raise self._wrong(f"The range of {shown(variable.name)} is empty: its ends are the wrong way round", at)
        return common(((low, high),), everything(variable))

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

    # ---- names and values -----------------------------------------------------------------------------------

    def _required_name(self) -> str:
        self._skip()
        at = self._at
        name = self._known_name()
        if name is None:
            raise self._no_name(at)
        return name

    def _known_name(self) -> str | None:
        """Read the name of a variable; None if there is none here."""
        return self._known(self._names)

    def _known_value(self, variable: Variable) -> float | None:
        """Read a category of a variable; None if there is none here."""
        if variable.name not in self._labels:
            codes = enumerate(variable.categories or ())
            self._labels[variable.name] = _by_first_letter((as_text(label), float(code)) for code, label in codes)
        return self._known(self._labels[variable.name])

    def _known(self, words: Words[ItemT]) -> ItemT | None:
        """Read the longest of the words that stands here, in quotes or not; letters may differ in case if one fits."""
        self._skip()
        quoted = _QUOTED.match(self._text, self._at)
        if quoted:
            text = _unquoted(quoted)
            near = words.get(text[:1].lower(), ())
            found = [item for word, item in near if word == text] or [i for w, i in near if w.lower() == text.lower()]
            self._at = quoted.end() if len(found) == 1 else self._at
            return found[0] if len(found) == 1 else None
        near = words.get(self._text[self._at : self._at + 1].lower(), ())
        for alike in (str, str.lower):
            fits = [
                (len(word), item)
                for word, item in near
                if alike(self._text[self._at : self._at + len(word)]) == alike(word) and word and self._ends(len(word))
            ]
            most = max((length for length, _ in fits), default=0)
            longest = [item for length, item in fits if length == most]
            if len(longest) == 1:
                self._at += most
                return longest[0]
        return None

    def _ends(self, length: int) -> bool:
        """Whether a name or value of this length may end here."""
        end = self._at + length
        joins = self._text[end - 1 : end].isalnum() and (self._text[end : end + 1].isalnum())
        return not joins and _AFTER.match(self._text, end) is not None

    def _generic(self) -> str:
        """Read what may be an unknown name or value: up to a sign or a word of the language."""
        self._skip()
        quoted = _QUOTED.match(self._text, self._at)
        if quoted:
            self._at = quoted.end()
            return _unquoted(quoted)
        if self._text[self._at : self._at + 1] in {'"', "'", "“", "‘"}:
            raise self._wrong("A quote is not closed here")
        stop = _STOP.search(self._text, self._at)
        start, self._at = self._at, stop.start() if stop else len(self._text)
        return self._text[start : self._at].rstrip()

    def _value(self, variable: Variable, *, in_list: bool = False, in_range: bool = False) -> float:
        """Read a value as the number that encodes it; NaN for a gap."""
        self._skip()
        at = self._at
        if variable.categories is not None and (code := self._known_value(variable)) is not None:
            return code
        length, value = self._value_in(variable, self._text[at:], at, in_list=in_list)
        dashed = in_range and self._text[at + length : at + length + 1] in {"-", "–"}  # as in 30-40
        if length and (dashed or self._ends(length)):
            self._at = at + length
            return value
        text = self._generic()
        if self._at == at:
            raise self._wrong("Expected a value here", at)
        return nan if is_gap(text) else self._encoded(variable, text, at)

    def _value_in(self, variable: Variable, text: str, at: int, *, in_list: bool) -> tuple[int, float]:
        try:
            return value_in(variable, text, in_list=in_list)
        except JointwiseError as error:
            raise self._wrong(str(error).rstrip("."), at) from None

    def _encoded(self, variable: Variable, text: str, at: int) -> float:
        length, value = self._value_in(variable, text, at, in_list=False)
        if length == len(text):
            return value
        if text in self._schema.names and text != variable.name:
            raise self._wrong(f"{shown(text)} is a variable; a condition compares a variable with values", at)
        if variable.categories is not None:
            raise self._wrong(str(unknown_name(_category_of(variable), text, variable.categories)).rstrip("."), at)
        what = "dates such as 2024-05-31" if is_temporal(variable.dtype) else "numbers"
        raise self._wrong(f"{shown(variable.name)} takes {what}; got {shown(text)}", at)

    def _no_name(self, at: int) -> QuestionError:
        """Return the error for a place where a variable's name should stand."""
        self._at = at
        text = self._generic()
        if not text:
            return self._wrong("Expected the name of a variable here", at)
        owners = [v for v in self._schema if any(as_text(c).lower() == text.lower() for c in v.categories or ())]
        if owners:
            name = owners[0].name
            return self._wrong(
                f"{shown(text)} is a value of {shown(name)}: write {name} = {text}, or {name} in {{...}}", at
            )
        return self._wrong(str(unknown_name("variable", text, self._schema.names)).rstrip("."), at)

    # ---- signs and words ------------------------------------------------------------------------------------

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

    def _sign(self) -> str | None:
        self._skip()
        for sign, relation in _RELATIONS.items():
            if self._text.startswith(sign, self._at):
                self._at += len(sign)
                return relation
        return None

    def _dots(self) -> bool:
        return self._accept("..") or self._accept("…")

    def _dash(self) -> bool:
        return self._accept("-") or self._accept("–")

    def _bar(self) -> bool:
        self._skip()
        if self._text.startswith("||", self._at):
            return False
        return self._accept("|") or any(map(self._word, ("given", "where", "if")))

    def _word(self, word: str) -> bool:
        """Accept a word of the language, in any case of letters."""
        self._skip()
        end = self._at + len(word)
        here = self._text[self._at : end].lower() == word and not self._text[end : end + 1].isalnum()
        self._at = end if here else self._at
        return here

    def _accept(self, sign: str) -> bool:
        self._skip()
        here = self._text.startswith(sign, self._at)
        self._at += len(sign) * here
        return here

    def _expect(self, sign: str, what: str) -> None:
        if not self._accept(sign):
            raise self._wrong(f"Expected {what} here")

    def _is_over(self) -> bool:
        self._skip()
        return self._at == len(self._text)

    def _end(self) -> None:
        self._accept("?")
        if not self._is_over():
            more = _FUNCTION.match(self._text, self._at + 1) or _FUNCTION.match(self._text, self._at + 2)
            raise self._wrong(
                "Another question begins here; ask one at a time"
                if more
                else "The question should end here; separate conditions by commas"
            )

    def _skip(self) -> None:
        self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches always

    def _wrong(self, sentence: str, at: int | None = None) -> QuestionError:
        return QuestionError(f"{sentence}.", self._text, self._at if at is None else at)


def _by_first_letter(words: Iterable[tuple[str, ItemT]]) -> Words[ItemT]:
    found: Words[ItemT] = {}
    for word, item in words:
        found.setdefault(word[:1].lower(), []).append((word, item))
    return found


def _unquoted(match: re.Match[str]) -> str:
    kind = match.lastindex or 1
    return re.sub(r"\\(.)", r"\1", match[kind], flags=re.DOTALL) if kind < 3 else match[kind]


def _example(variable: Variable) -> str:
    """A condition on a variable, for a message."""
    if variable.categories is None:
        return "= 40, > 40 or in 30..40" if not is_temporal(variable.dtype) else "> 2024-05-31"
    some = ", ".join(as_text(c) for c in variable.categories[:2])[:LONGEST]
    return f"= {as_text(variable.categories[0])[:LONGEST]} or in {{{some}}}"


def _category_of(variable: Variable) -> str:
    return f"category of variable {shown(variable.name)}:"
