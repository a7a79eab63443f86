"""Scanner: the text of a question from left to right, with the names and categories that a model knows.

A name or value is the longest one known that stands at the place, whatever signs it contains, in quotes or not, in any
case of letters if that is clear. What is not known ends at a sign or a word of the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import nan
from typing import TypeAlias, TypeVar

from jointwise._checks import shown, unknown_name
from jointwise.exceptions import JointwiseError, QuestionError
from jointwise.joint.words import Span, is_gap, value_in
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Schema, Variable, as_text

# Most characters of a question.
MOST_CHARACTERS = 10_000

_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|“([^”]*)”|‘([^’]*)’", re.DOTALL)
_SPACE = re.compile(r"\s*")
# Where a name or value ends that the model does not know.
_STOP = re.compile(
    r"\.\.|…|[=<>!≤≥≠|,;(){}\[\]&\"]|(?<!\w)(?:and|or|in|is|not|given|where|if|between)(?!\w)", re.IGNORECASE
)
# What may follow a name or value that the model knows.
_AFTER = re.compile(
    r"\s*(?:\??\s*$|\.\.|…|[=<>!≤≥≠|,;)}\]&]"
    r"|(?<=\W)(?:and|or|in|is|not|given|where|if|between|to|missing|present)(?!\w)|(?<=\s)[-–]\s)",
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

ItemT = TypeVar("ItemT")
# Names or categories with what they stand for, by their first letter in lower case.
Words: TypeAlias = dict[str, list[tuple[str, ItemT]]]


class Scanner:
    """A place in the text of a question; each method reads what stands there, or leaves the place as it is.

    Parameters
    ----------
    text : str
    schema : Schema
        The variables that may be named.
    """

    def __init__(self, text: str, schema: Schema) -> None:
        if len(text) > MOST_CHARACTERS:
            raise QuestionError(f"A question has at most {MOST_CHARACTERS:,} characters.", text, MOST_CHARACTERS)
        self._text = text
        self._schema = schema
        self._names = _by_first_letter((name, name) for name in schema.names)
        self._labels: dict[str, Words[float]] = {}
        self._at = 0

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

    def _value(self, variable: Variable, *, in_list: bool = False, in_range: bool = False) -> Span:
        """Read a value as the first and last number that it spans; NaN for a gap."""
        self._skip()
        at = self._at
        if variable.categories is not None and (code := self._known_value(variable)) is not None:
            return code, code
        length, value = self._value_in(variable, self._text[at:], at, in_list=in_list)
        dashed = in_range and self._text[at + length : at + length + 1] in {"-", "–"}  # as in 30-40
        if length and (dashed or self._ends(length)):
            self._at = at + length
            return value
        text = self._generic()
        if self._at == at:
            raise self._wrong("Expected a value here", at)
        return (nan, nan) if is_gap(text) else self._encoded(variable, text, at)

    def _value_in(self, variable: Variable, text: str, at: int, *, in_list: bool) -> tuple[int, Span]:
        try:
            return value_in(variable, text, in_list=in_list)
        except JointwiseError as error:
            raise self._wrong(str(error).rstrip("."), at) from None

    def _encoded(self, variable: Variable, text: str, at: int) -> Span:
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

    def _sign(self) -> str | None:
        self._skip()
        for sign, relation in _RELATIONS.items():
            if self._text.startswith(sign, self._at):
                self._at += len(sign)
                return relation
        return None

    def _is_open(self) -> bool:
        """Whether a range ends here without a value."""
        return _AFTER.match(self._text, self._at) is not None

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


def _category_of(variable: Variable) -> str:
    return f"category of variable {shown(variable.name)}:"
